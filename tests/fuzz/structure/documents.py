"""Changes documents of JSON value by value, so that what comes out is JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from copy import deepcopy
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
            events[at] = _copy(rng, _VALUES)
        elif how == 4 and rng.random() < 0.6:
            _put_phases(rng, events, at)
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


def _copy(rng: random.Random, values: Sequence[Any]) -> Any:
    """One of some values, for itself alone: none comes to hold itself, or what an earlier document put into it."""
    return deepcopy(rng.choice(values))


def _put_phases(rng: random.Random, events: list[Any], at: int) -> None:
    """Puts in events of other phases, in the thread of one that is there: begins and ends, arrows, another host."""
    like = events[at] if isinstance(events[at], dict) else {}
    link = rng.choice((1, 7, "x", 1 << 60, None))
    for phase in rng.choice(("BE", "BBEE", "EB", "be", "bb", "e", "B", "X", "sf", "iC", "M", "B" * 1100)):
        event = {**like, "ph": phase, "ts": rng.choice((1, "2.5", 10**9, None)), "id": link, "cat": "tf_exec"}
        if phase == "X":
            event |= {"bind_id": rng.choice((3, "3", 1 << 60)), "flow_in": True, "cat": rng.choice(("x", "PjRt", 5))}
        elif phase == "M":
            event |= {"name": "process_name", "pid": rng.choice((1, 7)), "args": {"name": "/host:CPU 2 other"}}
        elif rng.random() < 0.5:
            step = {"step_num": 3, "step_name": like.get("name"), "group_id": 1, "a": 1.5, "b": True, "c": 1 << 63}
            event["args"] = step | {"d": [1], "e": "1e5", "f": "0.25"}
        events.insert(at, event)
        at = min(at + rng.choice((1, 1, 20)), len(events))


def changed_kept(rng: random.Random, data: bytes) -> bytes:
    """What was kept, of which some values of its tree changed; its arrays stay as they were."""
    size = int.from_bytes(data[:8], "little")
    tree = json.loads(data[8 : 8 + size])
    for _ in range(rng.choice((1, 1, 3))):
        _change_within(rng, tree, 12)
    text = json.dumps(tree, separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


_KEPT: tuple[Any, ...] = (
    *({"kept": "a"}, {"bytes": [0, 8]}, {"bytes": [-1, 5]}, {"array": ["<i8", "|i1", [2], 0]}, {"map": [[1, 2]]}),
    *({"array": ["<i8", "|i1", [-2], 0]}, {"array": ["|O", "|O", [2], 0]}, {"record": 0, "of": []}, {"record": 99}),
    *({"records": 0, "columns": []}, {}, {"record": -1, "of": [1]}, {"array": ["<i8", "<i8", [1 << 40, 1 << 40], 0]}),
    *("os:path", "base.errors:Problem", "base.errors:printable", "base.errors:nothing", "pages:no", "base.words:a.b"),
)


def _change_within(rng: random.Random, value: Any, depth: int) -> None:
    if not isinstance(value, list | dict) or not value:
        return
    key = rng.randrange(len(value)) if isinstance(value, list) else rng.choice(sorted(value))
    if depth and rng.random() < 0.8 and isinstance(value[key], list | dict) and value[key]:
        _change_within(rng, value[key], depth - 1)
    elif rng.random() < 0.2:
        del value[key]
    else:
        value[key] = _copy(rng, (*_KEPT, *_KEPT, *_VALUES))


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
        values[key] = _copy(rng, _VALUES)
