"""Calls the decoder's functions with arrays of any kind, length and order: they answer, or refuse with ValueError."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.trial import Outcome
from tpuprof.parsers.formats.xspace.core import api
from tpuprof.parsers.formats.xspace.core.types import EventColumns

_KINDS = (np.int64, np.int64, np.int64, np.int64, np.int32, np.uint64, np.float64, np.uint8)
_ODD = (-1, 0, 1, 7, 1 << 40, (1 << 63) - 1, -(1 << 63))


def read(_: Path, data: bytes, rng: random.Random) -> Outcome:
    """Several calls, on these bytes where a function reads some; the outcome is the last one's."""
    outcome = Outcome("refused")
    for _call in range(12):
        name = rng.choice(sorted(_CALLS))
        try:
            with np.errstate(all="ignore"):  # numbers are of any kind, and made into others here
                _CALLS[name](rng, data)
            outcome = Outcome("read")
        except (ValueError, TypeError, OverflowError):
            outcome = Outcome("refused")
        except Exception as error:  # noqa: BLE001 - which one is what the trial is for
            return Outcome("raised", f"{name}: {type(error).__name__}: {error}"[:300])
    return outcome


def _numbers(rng: random.Random, count: int, most: int = 60) -> Any:
    """Some numbers, in order mostly; of another kind or shape at times."""
    values = sorted(rng.randrange(most + 1) for _ in range(count))
    if rng.random() < 0.1 and values:
        values[rng.randrange(count)] = rng.choice(_ODD)
    kind = rng.choice(_KINDS) if rng.random() < 0.15 else np.int64
    made = np.array(values, np.int64).astype(kind)
    return made.reshape(1, -1) if rng.random() < 0.03 else made


def _bytes(rng: random.Random, data: bytes) -> Any:
    """The bytes, as one of the buffers that there are."""
    array = np.frombuffer(data, np.uint8)
    odd = (array[::2], memoryview(data)[::2], array.astype(np.int32), memoryview(bytes(4)).cast("B", (2, 2)))
    return rng.choice(odd) if rng.random() < 0.2 else rng.choice((data, array, memoryview(data)))


def _pair(rng: random.Random) -> tuple[Any, Any]:
    """Starts and ends, in the order of nesting mostly."""
    count = rng.choice((0, 1, 5, 40))
    start = _numbers(rng, count)
    wide = rng.choice((5, 60, 1 << 61))
    end = np.array([rng.randrange(wide) for _ in range(count + (rng.random() < 0.05))], np.int64)
    end[: len(start)] += start.ravel()[: len(end)].astype(np.int64) if start.ndim == 1 else 0
    if rng.random() < 0.8 and len(end) == start.size:
        order = np.lexsort((-end, start.ravel()))
        return start.ravel()[order], end[order]
    return start, end


def _scan(rng: random.Random, data: bytes) -> None:
    """Columns of one length, or of several."""
    room, stats = rng.choice((0, 3, 40)), rng.randrange(4)
    n = [room + (rng.random() < 0.02) for _ in range(6)]
    kinds = (rng.choice((np.int32, np.int64)), np.int64, np.int64)
    placed = rng.choice((0, 1))
    columns: list[Any] = [np.zeros(n[at], kind) for at, kind in enumerate(kinds)]
    columns += [np.zeros(room, np.uint8), np.zeros(placed * n[3], np.int64), np.zeros(placed * n[3], np.uint32)]
    columns += [np.zeros((stats, n[4]), kind) for kind in (np.uint8, np.int64)] + [np.zeros((stats, n[5]), np.uint32)]
    wanted = np.array([rng.choice((1, 2, 3, 4, 5, 6)) for _ in range(stats + (rng.random() < 0.05))], np.int64)
    place = rng.choice((0, 0, 0, room, *_ODD))
    chosen = np.array([rng.random() < 0.5 for _ in range(rng.choice((0, 0, 1, 9)))], np.bool_)
    api.scan_events(_bytes(rng, data), 0, rng.choice((0, 0, 1, *_ODD)), wanted, EventColumns(*columns), place, chosen)


def _groups(function: Callable[..., object]) -> Callable[[random.Random, bytes], object]:
    def call(rng: random.Random, _: bytes) -> object:
        count = rng.choice((0, 3, 20))
        keys = _numbers(rng, count, 5)
        return function(keys, _numbers(rng, count + (rng.random() < 0.1)), rng.choice((6, 6, 6, 3, -1, 0)))

    return call


_STATES: tuple[tuple[int, Any], ...] = ((16, np.uint64), (16, np.uint64), (15, np.uint64), (16, np.int64))
_CALLS: dict[str, Callable[[random.Random, bytes], object]] = {
    "scan": _scan,
    "split": lambda rng, data: api.split_fields(_bytes(rng, data), rng.choice((0, 0, 3, *_ODD))),
    "stats": lambda rng, data: api.stat_columns(_bytes(rng, data), *_pair(rng), 4, _numbers(rng, 3, 9)),
    "nest": lambda rng, _: api.nest(*_pair(rng)),
    "self times": lambda rng, _: api.self_times(*_pair(rng)),
    "lanes": lambda rng, _: api.lanes(*_pair(rng)),
    "sum": _groups(api.sum_by_key),
    "least": _groups(api.min_by_key),
    "hash": lambda rng, data: api.hash_packets(_bytes(rng, data), np.zeros(*rng.choice(_STATES))),
}
