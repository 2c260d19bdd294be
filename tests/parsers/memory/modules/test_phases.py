"""Where the backward pass begins."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tests.parsers.memory.modules.build import MIB, space_of, training_space
from tpuprof.parsers.memory.model import Buffer, SpaceMemory
from tpuprof.parsers.memory.modules.phases import SAMPLED, backward_from

NAMES = {"F": "jit(f)/jvp(M)/h/dot", "B": "jit(f)/transpose(jvp(M))/h/dot", "o": "jit(f)/adam/mul", ".": None}


def step(passes: Sequence[str]) -> SpaceMemory:
    buffers = [
        Buffer(f"t{at}", "temporary", MIB, MIB, framework_op=NAMES[letter], born=at + 1, dies=at + 2)
        for at, letter in enumerate(passes)
    ]
    return space_of(buffers, len(passes) + 2)


def test_the_backward_pass_begins_with_its_first_buffer() -> None:
    assert backward_from(step("FFFF.FFBBBooBBo")) == 8
    assert backward_from(step("F" * 20 + "BFB" + "B" * 20)) in (21, 23)


def test_nothing_is_said_of_what_has_no_two_passes_one_by_one() -> None:
    assert backward_from(step("FFFFFFFF")) is None
    assert backward_from(step("oooo....")) is None
    assert backward_from(step("FFFFFBB")) is None
    assert backward_from(step("FB" * 20)) is None
    assert backward_from(step("BBBBBFFFFF")) is None
    assert backward_from(training_space()) is None


def test_of_many_buffers_some_are_looked_at() -> None:
    page = step("F" * 3000 + "B" * 3000)
    asked: list[int] = []

    class Counted:
        def __len__(self) -> int:
            return len(page.buffers)

        def __getitem__(self, row: int, /) -> Buffer:
            asked.append(row)
            return page.buffers[row]

    found = backward_from(dataclasses.replace(page, buffers=Counted()))
    assert found is not None
    assert abs(found - 3001) <= 6000 // SAMPLED + 1
    assert len(asked) <= SAMPLED
