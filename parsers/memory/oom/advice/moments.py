"""What changes leave of the peak, over the whole program: where one moment needs less, another may be the peak.

Only of a compiled module is known what is in memory at every moment. Of an error's text a change is taken to save what
it leaves less of the listed buffers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpuprof.parsers.memory.account.roles import NeedFacts

Cuts = Mapping[int, int]
"""Index of a buffer to the bytes that are left of it, at most its size; a buffer that is not in it stays."""


class Recomputed(dict[int, int]):
    """Cuts of what is computed again: nothing of the buffers is left, but for `inputs`.

    Attributes:
        inputs_bytes: what is kept of them from when the buffers are born until they die.
        work_bytes: what one layer takes while it is computed again, for its backward pass.
        work_from: the point from which on layers are computed again; before it there are their inputs alone.
    """

    def __init__(self, cuts: Cuts, inputs_bytes: int, work_bytes: int, work_from: int) -> None:
        super().__init__(cuts)
        self.inputs_bytes, self.work_bytes, self.work_from = inputs_bytes, work_bytes, work_from


def composed(facts: NeedFacts, cuts: Sequence[Cuts]) -> dict[int, int]:
    """What some changes leave, one after the other: each leaves a fixed share of a buffer, rounded up."""
    left: dict[int, int] = {}
    for each in cuts:
        for index, size in each.items():
            whole = facts.items[index].size
            left[index] = -(-left.get(index, whole) * size // whole) if whole else 0
    return left


def saved(facts: NeedFacts, cuts: Sequence[Cuts]) -> int:
    """What some changes save of the peak together, in their order, by what each leaves of `facts.everywhere`."""
    every = facts.everywhere or facts
    again = next((each for each in cuts if isinstance(each, Recomputed)), None)
    left = composed(every, cuts)
    if again is None or facts.everywhere is None:
        return max(0, lowered(facts, left))
    others = composed(every, [each for each in cuts if each is not again])
    whole = sum(every.items[index].size for index in again)
    share = sum(others.get(index, every.items[index].size) for index in again) / whole if whole else 0.0
    return max(0, lowered(facts, left, _again(every, again, share)))


def _again(every: NeedFacts, again: Recomputed, share: float) -> list[tuple[int, int, int]]:
    """Begin, end and bytes of what layers that are computed again need, where other changes leave a share of it."""
    items = [every.items[index].buffer for index in again]
    begin = min((item.born or 0 for item in items), default=0)
    end = max((item.dies or 0 for item in items), default=0)
    return [
        (begin, end, int(share * again.inputs_bytes)),
        (max(begin, again.work_from), end, int(share * again.work_bytes)),
    ]


def lowered(facts: NeedFacts, left: Cuts, added: Sequence[tuple[int, int, int]] = ()) -> int:
    """By how much the peak is lower once that is left of the buffers of `facts.everywhere`.

    Args:
        added: begin, end and bytes of what comes in their place.
    """
    moments, everywhere = facts.need.moments, facts.everywhere
    if moments is None or everywhere is None:
        return sum(facts.items[index].size - size for index, size in left.items())
    heap = moments.heap_bytes
    steps = np.zeros(len(heap) + 1, np.int64)
    for index, size in left.items():
        item = everywhere.items[index]
        born, dies = item.buffer.born or 0, item.buffer.dies
        steps[min(max(born, 0), len(heap))] += item.size - size
        steps[len(heap) if dies is None else min(dies, len(heap))] -= item.size - size
    for begin, end, size in added:
        if begin < end:
            steps[min(max(begin, 0), len(heap))] -= size
            steps[min(end, len(heap))] += size
    after = heap - np.cumsum(steps)[: len(heap)]
    return int(heap.max()) - int(after.max())
