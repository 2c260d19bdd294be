"""Local maxima of the memory in use, where the backward pass begins, and the buffers of an op."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.memory.modules.build import MIB, space_of, training_space
from tests.support.build import present
from tests.support.made.compiled import compiled_modules
from tpuprof.parsers.memory.model import HBM, Buffer, SpaceMemory
from tpuprof.parsers.memory.modules import landmarks


def test_peaks_are_parted_by_a_fall_and_a_rise() -> None:
    heap = np.array([0, 50, 100, 100, 40, 40, 90, 10, 95], np.int64)
    assert landmarks.peaks(heap).tolist() == [2, 6, 8]
    assert landmarks.next_peak(heap, 2, 1) == 6
    assert landmarks.next_peak(heap, 6, -1) == 2
    assert landmarks.next_peak(heap, 5, 1) == 6
    assert landmarks.next_peak(heap, 8, 1) is None
    assert landmarks.next_peak(heap, 2, -1) is None


def test_a_small_fall_parts_nothing() -> None:
    assert landmarks.peaks(np.array([0, 1000, 990, 1001, 0], np.int64)).tolist() == [3]


@pytest.mark.parametrize(("heap", "found"), [([], []), ([7], [0]), ([0, 0, 0], [0]), ([5, 1], [0]), ([1, 5], [1])])
def test_short_curves(heap: list[int], found: list[int]) -> None:
    assert landmarks.peaks(np.array(heap, np.int64)).tolist() == found


@given(st.lists(st.integers(0, 400), min_size=1, max_size=60))
def test_what_a_peak_is(values: list[int]) -> None:
    heap = np.array(values, np.int64)
    found = landmarks.peaks(heap).tolist()
    drop = max(1, int(landmarks.LEAST_DROP * heap.max()))
    assert int(heap[found].max()) == int(heap.max())
    assert found == sorted(set(found))
    for at in found:
        assert heap[at] >= heap[at - 1 if at else 0]
        assert heap[at] >= heap[min(at + 1, len(heap) - 1)]
    for one, other in pairwise(found):
        assert int(heap[one : other + 1].min()) <= min(heap[one], heap[other]) - drop


def test_the_buffers_of_an_op_are_found_by_its_name_alone() -> None:
    compiled = compiled_modules()
    space = compiled.space(compiled.find("jit_train_step"), HBM)
    rows = landmarks.live_ranges_of(space, "fusion.397").tolist()
    assert rows
    assert all(space.buffers[row].name.partition("{")[0] == "fusion.397" for row in rows)
    assert space.live_ranges.size_bytes[rows].tolist() == sorted(
        space.live_ranges.size_bytes[rows].tolist(), reverse=True
    )
    assert not len(landmarks.live_ranges_of(space, "fusion.39"))
    assert not len(landmarks.live_ranges_of(space, "no such op"))


NAMES = {"F": "jit(f)/jvp(M)/h/dot", "B": "jit(f)/transpose(jvp(M))/h/dot", "o": "jit(f)/adam/mul", ".": None}


def step(passes: Sequence[str]) -> SpaceMemory:
    buffers = [
        Buffer(f"t{at}", "temporary", MIB, MIB, framework_op=NAMES[letter], born=at + 1, dies=at + 2)
        for at, letter in enumerate(passes)
    ]
    return space_of(buffers, len(passes) + 2)


def test_the_backward_pass_begins_with_its_first_buffer() -> None:
    assert landmarks.backward_from(step("FFFF.FFBBBooBBo")) == 8
    assert landmarks.backward_from(step("F" * 20 + "BFB" + "B" * 20)) in (21, 23)


def test_nothing_is_said_of_what_has_no_two_passes_one_by_one() -> None:
    assert landmarks.backward_from(step("FFFFFFFF")) is None
    assert landmarks.backward_from(step("oooo....")) is None
    assert landmarks.backward_from(step("FFFFFBB")) is None
    assert landmarks.backward_from(step("FB" * 20)) is None
    assert landmarks.backward_from(step("BBBBBFFFFF")) is None
    assert landmarks.backward_from(training_space()) is None


def test_of_many_buffers_some_are_looked_at() -> None:
    page = step("F" * 3000 + "B" * 3000)
    asked: list[int] = []

    class Counted:
        def __len__(self) -> int:
            return len(page.buffers)

        def __getitem__(self, row: int, /) -> Buffer:
            asked.append(row)
            return page.buffers[row]

    found = present(landmarks.backward_from(dataclasses.replace(page, buffers=Counted())))
    assert abs(found - 3001) <= 6000 // landmarks.SAMPLED + 1
    assert len(asked) <= landmarks.SAMPLED
