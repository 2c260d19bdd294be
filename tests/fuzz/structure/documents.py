"""Changes documents of JSON value by value, so that what comes out is JSON."""

from __future__ import annotations

import json
import random
from typing import Any

_VALUES: tuple[Any, ...] = (
    *(0, 1, -1, 0.5, 1e-9, 1e18, 1e300, -1e300, 2**63, 2**64, -(2**63), 10**30, float("inf"), float("nan")),
    *("", "0", "-1", "1e999", "X", "M", "B", "E", "C", "s", "t", "f", "b", "process_name", "thread_name", "XLA Ops"),
    *("\x1b[201~", "\u202e", "a" * 300, "9" * 400, "/device:TPU:0", "/host:CPU", "Steps", "XLA Modules", "\ud800"),
    *(None, True, False, [], {}, [1, "a"], {"a": {"b": []}}, [[[[[[]]]]]]),
)


def changed_trace(rng: random.Random, data: bytes) -> bytes:
    """A Chrome trace with some of its events changed, in another order at times, written in any of the ways of JSON."""
    document = json.loads(data)
    events: list[Any] = document["traceEvents"]
    for _ in range(rng.choice((1, 2, 5, 30))):
        at = rng.randrange(len(events))
        how = rng.randrange(6)
        if how < 3 and isinstance(events[at], dict) and events[at]:
            _change(rng, events[at])
        elif how == 3:
            events[at] = rng.choice(_VALUES)
        elif how == 4:
            events[at:at] = [events[at]] * rng.choice((1, 50))
        else:
            del events[at : at + rng.choice((1, 10))]
        if not events:
            break
    if rng.random() < 0.3:
        rng.shuffle(events)
    if rng.random() < 0.1:
        _change(rng, document)
    space = rng.choice(((",", ":"), (", ", ": "), (" ,\n", ":\t")))
    text = json.dumps(events if rng.random() < 0.1 else document, separators=space, ensure_ascii=rng.random() < 0.5)
    return text.encode("utf-8", "surrogatepass")


def _change(rng: random.Random, values: dict[str, Any]) -> None:
    key = rng.choice(sorted(values))
    how = rng.randrange(4)
    if isinstance(values[key], dict) and values[key] and how:
        _change(rng, values[key])
    elif how == 0:
        del values[key]
    elif how == 1:
        values[rng.choice((key, "dur", "ts", "args", "tdur", "id", "x"))] = values[key]
    else:
        values[key] = rng.choice(_VALUES)
