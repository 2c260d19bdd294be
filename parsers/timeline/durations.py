"""How long the events of a track last, in four bytes an event."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, no_ints
from tpuprof.parsers.base.record import dataclass

_LONG = (1 << 32) - 1
"""Stands for a duration of four milliseconds or more, which the column has no room for."""

_LONG_BYTES = 12
"""How many bytes more a long event takes: where many are long, eight bytes for each event are fewer."""

_Event = int | np.integer
_Events = slice | NDArray[np.integer]


@dataclass(frozen=True, slots=True, eq=False)
class Durations:
    """Durations in picoseconds; an index, a slice or an array of indices gives those of some events.

    Attributes:
        column: uint32[n], the largest of them for a long event; or int64[n], where many events are long.
        long_at, long_ps: uint32[m] and int64[m]: which events are long, ascending, and how long they last; none with
            int64.
    """

    column: NDArray[np.uint32] | Int64s
    long_at: NDArray[np.uint32]
    long_ps: Int64s

    @classmethod
    def of(cls, lasting_ps: Int64s) -> Durations:
        """Durations in their smallest form; it may keep the array."""
        long_at = np.flatnonzero(lasting_ps.view(np.uint64) >= _LONG).astype(np.uint32)
        if len(long_at) * _LONG_BYTES > 4 * len(lasting_ps) or len(lasting_ps) > _LONG:
            return cls(lasting_ps, long_at[:0], no_ints())
        column = lasting_ps.astype(np.uint32)
        column[long_at] = _LONG
        return cls(column, long_at, lasting_ps[long_at])

    def __len__(self) -> int:
        return len(self.column)

    @overload
    def __getitem__(self, events: _Event) -> int: ...

    @overload
    def __getitem__(self, events: _Events) -> Int64s: ...

    def __getitem__(self, events: _Event | _Events) -> int | Int64s:
        if isinstance(events, int | np.integer):
            return int(self[np.array([range(len(self))[events]])][0])
        lasting: Int64s = self.column[events].astype(np.int64)
        if len(self.long_at) and len(long_ := np.flatnonzero(lasting == _LONG)):
            if isinstance(events, slice):
                first, _, step = events.indices(len(self))
                at: NDArray[np.integer] = first + step * long_
            else:
                at = events[long_]
            lasting[long_] = self.long_ps[np.searchsorted(self.long_at, at.astype(np.uint32))]
        return lasting


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """When events end, in picoseconds; an index, a slice or an array of indices gives those of some events.

    Attributes:
        start_ps: int64[n], when they begin.
        lasting: how long they last.
    """

    start_ps: Int64s
    lasting: Durations

    @overload
    def __getitem__(self, events: _Event) -> int: ...

    @overload
    def __getitem__(self, events: _Events) -> Int64s: ...

    def __getitem__(self, events: _Event | _Events) -> int | Int64s:
        if isinstance(events, int | np.integer):
            return int(self.start_ps[events]) + self.lasting[events]
        end = self.lasting[events]
        end += self.start_ps[events]
        return end
