"""Advice about padding: which axis, by which tile, what it would save."""

from __future__ import annotations

import pytest

from tests.parsers.memory.oom.advice.needs import GIB, MIB, buffer, need_of
from tpuprof.parsers.memory.account.need import Need
from tpuprof.parsers.memory.oom.advice.advice import advise, toggles
from tpuprof.parsers.memory.oom.model import Advice


def padding(need: Need) -> list[Advice]:
    return [advice for advice in advise(need) if advice.kind == "padding"]


@pytest.mark.parametrize(
    ("shape", "how", "saving"),
    [
        # 64 channels fill half of the 128 lanes
        ("bf16[4,512,512,64]{3,2,1,0:T(8,128)(2,1)}", "merge axes 2 and 3: bf16[4,512,32768]", 128 * MIB),
        # one row fills an eighth of a tile
        ("f32[65536,1,1024]{2,1,0:T(8,128)}", "merge axes 0 and 1: f32[65536,1024]", 1792 * MIB),
        ("f32[65536,4]{1,0:T(8,128)}", "order its axes as f32[4,65536]", 30 * MIB),
        # no axis is a multiple of 128, but two merged are longer than that
        ("f32[524288,60,60]{2,1,0:T(8,128)}", "merge axes 1 and 2: f32[524288,3600]", None),
        ("f32[100,100,90,100]{3,2,1,0:T(8,128)}", "merge axes 2 and 3: f32[100,100,9000]", None),
        ("f32[7001,700,700]{2,1,0:T(8,128)}", "merge axes 1 and 2: f32[7001,490000]", None),
    ],
)
def test_how(shape: str, how: str, saving: int | None) -> None:
    made = buffer(shape)
    (advice,) = padding(need_of(made))
    assert advice.how == how
    assert advice.saving_bytes is not None
    assert advice.saving_bytes <= (made.padding_bytes or 0)
    if saving is not None:
        assert advice.saving_bytes == saving


def test_little_padding_is_no_advice() -> None:
    assert padding(need_of(buffer("f32[64,2047,16000]{2,1,0:T(8,128)}"))) == []
    assert padding(need_of(buffer("f32[8,18]{1,0:T(8,128)}"), used=GIB)) == []
    assert padding(need_of(buffer("f32[4096,2000,96,100]{3,2,1,0:T(8,128)}"))) != []
    assert padding(need_of(buffer("f32[4096,2000,96,120]{3,2,1,0:T(8,128)}"))) == []  # 1.07 times


@pytest.mark.parametrize("shape", ["f32[18]{0:T(128)}", "f32[1000,18]", "f32[1000,18]{1,0}", "f32[0,18]{1,0:T(8,128)}"])
def test_what_cannot_be_told(shape: str) -> None:
    assert padding(need_of(buffer(shape, size=MIB))) == []


def test_a_size_that_contradicts_the_shape_saves_no_more_than_its_padding() -> None:
    (advice,) = padding(need_of(buffer("s32[4194304,8,4]{2,1,0:T(8,128)}", size=GIB)))
    assert advice.saving_bytes == GIB // 2  # the text says that its elements take the other half
    assert advice.buffers == (0,)


def test_equal_shapes_share_a_line_and_three_lines_are_enough() -> None:
    equal = [buffer("bf16[4,512,512,64]{3,2,1,0:T(8,128)(2,1)}", name=f"fusion.{n}") for n in range(2)]
    others = [buffer(f"f32[{n},65536,4]{{2,1,0:T(8,128)}}") for n in (8, 16, 24, 32)]
    found = padding(need_of(*equal, *others))
    assert len(found) == 3
    assert found[0].sentence.startswith("32.0x padding of f32[32,65536,4]")
    (one,) = padding(need_of(*equal))
    assert one.sentence == "2.0x padding of 2 x bf16[4,512,512,64], tile (8,128)"
    assert one.saving_bytes == 256 * MIB
    assert one.buffers == (0, 1)


def test_what_the_compiler_put_into_the_lanes_can_not_be_saved() -> None:
    arrays = [buffer("bf16[64,112,112,30]{0,3,2,1:T(8,128)(2,1)}", f"jit(f)/jvp(net)/op{n}") for n in range(2)]
    need = need_of(*arrays, buffer("f32[64,56,56]{0,2,1:T(8,128)}", "jit(f)/jvp(net)/norm"))
    (advice,) = padding(need)
    assert advice.saving_bytes is None
    assert advice.sentence == (
        "the compiler put the batch, 64, into the lanes of 2 x bf16[64,112,112,30], f32[64,56,56]"
    )
    assert advice.how == (
        "a multiple of 128 costs nothing more there: 128 takes as much as 64, and a smaller batch saves nothing"
    )
    assert advice.arithmetic == "64 -> 128; 198 MiB in 3 buffers, of which 105 MiB are padding"
    assert advice.buffers == (0, 1, 2)
    assert not any(toggle.key.startswith("padding") for toggle in toggles(need))


def test_channels_that_the_compiler_put_into_the_lanes() -> None:
    (advice,) = padding(need_of(buffer("f32[3,64,28,28,90]{4,1,3,2,0:T(8,128)}")))
    assert advice.sentence == "the compiler put axis 4, 90, into the lanes of f32[3,64,28,28,90]"
    assert advice.how == "a multiple of 128 costs nothing more there: 128 takes as much as 90"
    (rows,) = padding(need_of(buffer("f32[5,1024,128,64]{1,0,3,2:T(8,128)}")))
    assert rows.sentence == "the compiler put axis 0, 5, into the rows of f32[5,1024,128,64]"
    assert rows.how == "a multiple of 8 costs nothing more there: 8 takes as much as 5"
