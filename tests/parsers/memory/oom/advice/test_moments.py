"""What changes leave of the peak, against a sum at every moment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.memory.oom.advice.needs import buffer, need_of
from tpuprof.parsers.memory.account.need import Moments
from tpuprof.parsers.memory.account.roles import read
from tpuprof.parsers.memory.oom.advice.moments import lowered

POINT = st.none() | st.integers(-1, 7)
BUFFERS = st.lists(st.tuples(POINT, POINT, st.integers(0, 9), st.integers(0, 9)), max_size=4)
ADDED = st.lists(st.tuples(st.integers(-1, 7), st.integers(-1, 7), st.integers(0, 9)), max_size=2)


@given(st.lists(st.integers(50, 90), min_size=1, max_size=6), BUFFERS, ADDED)
def test_the_peak_is_lower_by_what_the_highest_moment_is_lower(
    heap: list[int], made: list[tuple[int | None, int | None, int, int]], added: list[tuple[int, int, int]]
) -> None:
    spans = [(born, dies) for born, dies, *_ in made if dies is None or dies >= max(0, born or 0)]
    sizes = [size for born, dies, *size in made if dies is None or dies >= max(0, born or 0)]
    buffers = [
        replace(buffer("u8[1]{0}", size=size), born=born, dies=dies)
        for (born, dies), (size, _) in zip(spans, sizes, strict=True)
    ]
    need = replace(need_of(*buffers), moments=Moments(np.array(heap, np.int64), ()))
    after = list(heap)
    for (born, dies), (size, left) in zip(spans, sizes, strict=True):
        for at in range(max(0, born or 0), min(len(heap), len(heap) if dies is None else dies)):
            after[at] -= size - left
    for begin, end, size in added:
        for at in range(max(0, begin), min(len(heap), end)):
            after[at] += size
    left_of = {index: left for index, (_, left) in enumerate(sizes)}
    assert lowered(read(need), left_of, added) == max(heap) - max(after)
