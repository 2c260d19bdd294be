"""The collectives of one core, or of another device, summed by what they lie in: its steps, or all of its time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, interval_index
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.pages.collectives.host_sums import WAITING, Collective
from tpuprof.parsers.pages.collectives.slices import SliceCollective
from tpuprof.parsers.pages.collectives.transfers import TransferOverlap, Transfers


@dataclass(frozen=True, slots=True)
class Windows:
    """One core's transfers by what they are summed within: its steps, or its whole time as one.

    Attributes:
        span: start and end of each window on the trace's clock.
        sums: int64[WAITING, n, windows], of the core's collectives; columns as of `PARTS`.
        totals: int64[3, windows], see `HostCollectives`.
    """

    span: Intervals
    sums: Int64s
    totals: Int64s

    def take(self, rows: Int64s) -> Windows:
        span = self.span[0][rows], self.span[1][rows]
        return Windows(span, self.sums[..., rows], self.totals[:, rows])


@dataclass(frozen=True, slots=True)
class CoreCollectives:
    """The collectives of one core, and `count` transfers."""

    collectives: tuple[Collective, ...]
    count: int
    steps: Windows
    whole: Windows
    slices: tuple[SliceCollective, ...]
    unpaired: int


def summed(
    collectives: Sequence[Collective],
    transfers: Transfers,
    overlap: TransferOverlap,
    steps: Intervals,
    whole: Intervals,
    slices: tuple[SliceCollective, ...] = (),
    unpaired: int = 0,
) -> CoreCollectives:
    """The sums of a core's transfers in its steps, and in its whole time, where all of them count."""
    times = _by_window(steps, transfers, overlap, len(collectives))
    sums = times[..., :-1], times.sum(axis=2, keepdims=True)[..., : len(whole[0])]
    in_steps, in_whole = (
        Windows(span, of, overlap.within(span)) for span, of in zip((steps, whole), sums, strict=True)
    )
    return CoreCollectives(tuple(collectives), len(transfers), in_steps, in_whole, slices, unpaired)


def _by_window(windows: Intervals, transfers: Transfers, overlap: TransferOverlap, count: int) -> Int64s:
    """int64[WAITING, count, windows + 1]: sums of a core's transfers; the last ones are of those in no window."""
    columns = len(windows[0]) + 1
    window = interval_index(transfers.at_ps, *windows)
    cell = transfers.op * columns + np.where(window < 0, columns - 1, window)
    parts = (np.ones(len(transfers), np.int64), *overlap.parts)
    return np.stack([sum_by_key(cell, part, count * columns) for part in parts]).reshape(WAITING, count, columns)
