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
    return max(0, lowered(facts, composed(facts.everywhere or facts, cuts)))


def lowered(facts: NeedFacts, left: Cuts) -> int:
    """By how much the peak is lower once that is left of the buffers of `facts.everywhere`."""
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
    after = heap - np.cumsum(steps)[: len(heap)]
    return int(heap.max()) - int(after.max())
