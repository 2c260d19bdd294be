"""The arguments of events in reports: all their stats, as JSON can hold them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from google.protobuf.message import DecodeError

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.proto import xplane_pb2
from tpuprof.parsers.formats.xspace.metadata import StatValue
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.details import metadata_stats, own_stats
from tpuprof.parsers.timeline.model import Track

_SPACES = {1: "hbm", 2: "cmem", 3: "vmem"}
_OPERATIONS = {1: "read", 2: "write"}
_CHARACTERS_KEPT = 1 << 24
"""Of the arguments that names have in common: with more of them the oldest are read again."""

Args = dict[str, object]


def argument_reader(trace: Trace, tracks: Sequence[Track]) -> Callable[[int, int], Args]:
    """Reads all stats of single events, those of each name's metadata only once.

    Returns:
        A function of the track, an index of `tracks`, and the event. Its names and values are fit for JSON, see
        `plain_value`. A name that stands twice with different values gets a number, so that nothing is lost.
    """
    of_name: dict[tuple[int, int], Args] = {}
    kept = 0

    def common_args(track: Track, number: int, index: int) -> Args:
        nonlocal kept
        key = (number, int(track.key[index]))
        if key not in of_name:
            if kept > _CHARACTERS_KEPT:
                of_name.clear()
                kept = 0
            long_name = track.names.long_name(key[1])
            more = [("long_name", long_name)] if long_name else []
            of_name[key] = _merged([*metadata_stats(trace, track, index), *more])
            kept += 100 + sum(len(value) for value in of_name[key].values() if isinstance(value, str))
        return of_name[key]

    def read(number: int, index: int) -> Args:
        own = _merged(own_stats(trace, tracks[number], index))
        common = common_args(tracks[number], number, index)
        if own.keys().isdisjoint(common):
            return {**own, **common}
        for name, value in common.items():
            _put(own, name, value)
        return own

    return read


def _merged(stats: Iterable[tuple[str, StatValue]]) -> Args:
    """Stats as arguments."""
    args: Args = {}
    for name, value in stats:
        _put(args, printable(name), plain_value(name, value))
    return args


def _put(args: Args, name: str, value: object) -> None:
    """Adds an argument; under another name where one of that name says something else."""
    free, number = name, 2
    while free in args:
        if args[free] == value:
            return
        free, number = f"{name} ({number})", number + 1
    args[free] = value


def plain_value(name: str, value: StatValue) -> object:
    """A stat's value as JSON can hold it: bytes as what they hold, where that is known, else as their length.

    A breakdown of memory accesses becomes a list of objects; what is no finite number, None.
    """
    if isinstance(value, str):
        return printable(value)
    if not isinstance(value, bytes):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if name == "memory_access_breakdown":
        try:
            accesses = xplane_pb2.MemoryAccessBreakdown.FromString(value).memory_accessed
        except DecodeError:
            return f"{len(value)} damaged bytes"
        return [
            {
                "operation": _OPERATIONS.get(access.operation_type, "unknown"),
                "memory": _SPACES.get(access.memory_space, f"space {access.memory_space}"),
                "bytes": access.bytes_accessed,
            }
            for access in accesses
        ]
    return f"{len(value)} bytes"
