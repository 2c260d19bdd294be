"""The largest batch with which a compiled module fits: its heap at other batches, every buffer as large as it is then.

By arithmetic over the module as it is compiled now. Two things are the compiler's to decide at another batch: how it
lays buffers out, for which 3 % are left free, and what it computes again to save memory, which it does by itself once
a program comes near to what there is. What is kept for the backward pass is what it can compute
again, but for what a loop keeps of all its iterations in one array.
"""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.memory.account.need import Known, fits, need_of_memory
from tpuprof.parsers.memory.account.roles import MUCH_AGAIN, again_as, most_needed, read
from tpuprof.parsers.memory.batch.growth import Growth
from tpuprof.parsers.memory.model import HBM, SpaceMemory

NOT_IN_HBM = "The compiler chooses what it keeps outside HBM, whatever the batch."
_MOST_TIMES = 1 << 12  # a batch that is larger by more than this is not looked for
_LEAST_KEPT = 0.1  # of the peak: with less than this kept for the backward pass the compiler finds little to do again
_MOST_APART = 0.2  # of what the passes compute: with more that does not seem to grow, the batch was lost on its way
_ROUND = 4  # the next batch that is named is a multiple of a power of two of about this share of it


@dataclass(frozen=True, slots=True)
class BatchNeed:
    """What a module needs at a batch, if the compiler computes nothing again.

    Attributes:
        batch: on one device.
        peak_bytes: by arithmetic; now, as the compiler says.
        over_bytes: by how much that is too large with the gaps between buffers, negative where it fits.
        what: which batch it is, a phrase: ``now``, ``the largest that fits``.
    """

    batch: int
    peak_bytes: int
    over_bytes: int
    what: str


@dataclass(frozen=True, slots=True)
class BatchFit:
    """What a module needs at other batches.

    Attributes:
        batch: now, on one device; None with a reason in `unknown`.
        inputs: the arguments that lead with it, ``batch['tokens'] s32[8,1024]``.
        used_bytes, capacity_bytes: the peak now, and what there is.
        growing_bytes: of the peak, what grows with the batch.
        largest: the largest batch that fits with `MARGIN`; None where none does, or `unknown` says why it is not known.
        largest_bytes: the peak then.
        next: the first round batch above it that does not fit; None without `largest`.
        next_bytes: the peak then, if the compiler computes nothing again.
        gaps_bytes: between buffers, as now; they count where it is said what fits.
        recomputable_bytes: of the peak now, what the compiler may compute again rather than keep.
        unknown: why there is no answer, a sentence; empty where there is one.
        batches: what it needs at some batches, ascending: half of now, now, the largest, the next, twice the largest.
    """

    batch: int | None = None
    inputs: tuple[str, ...] = ()
    used_bytes: int | None = None
    capacity_bytes: int | None = None
    growing_bytes: int | None = None
    largest: int | None = None
    largest_bytes: int | None = None
    next: int | None = None
    next_bytes: int | None = None
    gaps_bytes: int = 0
    recomputable_bytes: int | None = None
    unknown: str = ""
    batches: tuple[BatchNeed, ...] = ()

    @property
    def over_bytes(self) -> int | None:
        if self.next_bytes is None or self.capacity_bytes is None:
            return None
        return self.next_bytes + self.gaps_bytes - self.capacity_bytes

    @property
    def may_recompute(self) -> bool:
        """Whether the compiler may make the next round batch fit by computing things again."""
        kept, used = self.recomputable_bytes, self.used_bytes
        if kept is None or used is None or self.over_bytes is None or not self.batch or self.next is None:
            return False
        return kept >= _LEAST_KEPT * used and kept * self.next // self.batch > self.over_bytes


def batch_fit(memory: SpaceMemory, growth: Growth | str, known: Known | None = None) -> BatchFit:
    """The largest batch with which a module fits into HBM, given how it grows, see `growth_of`.

    Args:
        known: what its HLO says besides.
    """
    if memory.space != HBM:
        return BatchFit(unknown=NOT_IN_HBM)
    if memory.capacity is None:
        return BatchFit(unknown=f"The size of the {memory.name} is unknown.")
    if isinstance(growth, str):
        return BatchFit(unknown=growth)
    there = memory.capacity.size_bytes
    at_peak = np.isin(growth.rows, memory.at(memory.peak_position))
    growing = int(memory.live_ranges.size_bytes[growth.rows[at_peak]].sum())
    facts = read(need_of_memory(memory, known=known))
    growing_ids = set(memory.live_ranges.logical_buffer[growth.rows].tolist())
    kept = sum(item.size for item in facts.of("activation", "attention") if item.stack == 1)
    computed = facts.of("activation", "attention", "loss")
    apart = sum(item.size for item in computed if item.buffer.logical_buffer not in growing_ids)
    if apart > _MOST_APART * sum(item.size for item in computed):
        return BatchFit(unknown="The HLO does not show how a large part of the activations grows with the batch.")
    gaps = memory.needed_bytes - memory.peak_bytes
    fit = BatchFit(
        growth.batch, growth.inputs, memory.peak_bytes, there, growing, recomputable_bytes=kept, gaps_bytes=gaps
    )
    if not growing:
        return replace(fit, unknown="Nothing that is in memory at the peak grows with the batch.")
    largest = _largest(growth, memory, there)
    if largest is not None and largest >= growth.batch * _MOST_TIMES:
        return replace(fit, unknown=f"Hardly anything grows with the batch: {_MOST_TIMES:,} times as much fits.")
    if largest is None:
        return replace(fit, unknown="Not even a batch of 1 fits: the part that does not grow with it is too large.")
    following = next_round(largest)
    while need_at(growth, memory, following) <= there:
        following = next_round(following)
    shown = {growth.batch // 2: "half of now", 2 * largest: "twice the largest", following: "the next round one"}
    shown |= {largest: "the largest that fits"}
    shown |= {growth.batch: "now, the largest that fits" if largest == growth.batch else "now"}
    sizes = {batch: peak_at(growth, memory, batch) for batch in sorted(shown) if batch}
    return replace(
        fit,
        batches=tuple(BatchNeed(batch, size, size + gaps - there, shown[batch]) for batch, size in sizes.items()),
        largest=largest,
        largest_bytes=peak_at(growth, memory, largest),
        next=following,
        next_bytes=peak_at(growth, memory, following),
    )


def _largest(growth: Growth, memory: SpaceMemory, there: int) -> int | None:
    again = _again(growth, memory)
    low, high = 0, growth.batch
    while fits(need_at(growth, memory, high), there):
        if high >= growth.batch * _MOST_TIMES:
            return high
        low, high = high, high * 2
    while high - low > 1:  # low fits, if it is a batch at all, and high does not
        middle = (low + high) // 2
        needed = need_at(growth, memory, middle)
        if middle < growth.batch and len(again):
            needed = most_needed(memory.needed_bytes, needed, growth.bytes_at(memory, middle)[again].tolist(), there)
        low, high = (middle, high) if fits(needed, there) else (low, middle)
    return low or None


def _again(growth: Growth, memory: SpaceMemory) -> Int64s:
    """Which of the growing rows the compiler computes again by itself, each once; none where that is not much."""
    sizes = memory.live_ranges.size_bytes[growth.rows]
    names = [again_as(memory.buffers[row].name) for row in growth.rows.tolist()]
    largest = {names[place]: place for place in np.argsort(sizes, kind="stable").tolist() if names[place]}
    found = np.array(sorted(largest.values()), np.int64)
    return found if int(sizes[found].sum()) >= MUCH_AGAIN * memory.peak_bytes else found[:0]


def need_at(growth: Growth, memory: SpaceMemory, batch: int) -> int:
    """What is needed at another batch, with gaps as large as now."""
    return peak_at(growth, memory, batch) + memory.needed_bytes - memory.peak_bytes


def next_round(batch: int) -> int:
    """The next multiple above a batch of the largest power of two that is at most a fourth of it."""
    step = 1 << max(0, (batch // _ROUND).bit_length() - 1)
    return (batch // step + 1) * step


def peak_at(growth: Growth, memory: SpaceMemory, batch: int) -> int:
    """The peak at another batch, bytes: the live ranges are as now, the sizes as they are then."""
    ranges, points = memory.live_ranges, memory.points
    more = growth.bytes_at(memory, batch) - ranges.size_bytes[growth.rows]
    steps = np.zeros(points + 1, np.int64)
    np.add.at(steps, np.clip(ranges.born[growth.rows], 0, points), more)
    np.subtract.at(steps, np.clip(ranges.dies[growth.rows], 0, points), more)
    return int((memory.heap_bytes + np.cumsum(steps)[:points]).max())
