"""Which op of one run is which of another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.session.diff.build import MS, Program, diff_of, op
from tpuprof.parsers.session.diff.match import normalised

STEPS = [[("fusion.1", 6 * MS), ("fusion.2", 4 * MS), ("copy.3", MS)]] * 3
TEXTS = {
    "fusion.1": "f32[8,128]{1,0} fusion(f32[8]{0} %param.1, f32[4] %copy.3), kind=kLoop, calls=%fused_computation.1",
    "fusion.2": "f32[16]{0} fusion(f32[8]{0} %param.2), kind=kOutput, calls=%fused_computation.2",
    "copy.3": "f32[4] copy(f32[4] %param.3)",
}
BASE = Program(steps=STEPS, texts=TEXTS, categories={"copy.3": "copy"})


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("%a.7 = f32[8] fusion(f32[8] %p.3), calls=%comp.12", "%b.9 = f32[8] fusion(f32[8] %p.31), calls=%comp"),
        ("%a.1 = f32[8] all-reduce(%x.1), channel_id=3", "%a = f32[8] all-reduce(%x.2.5), channel_id=77"),
    ],
)
def test_numbers_of_names_do_not_count(text: str, other: str) -> None:
    assert normalised(text) and normalised(text) == normalised(other)


def test_shapes_and_opcodes_count() -> None:
    assert normalised("%a = f32[8] add(f32[8] %x)") != normalised("%a = f32[16] add(f32[16] %x)")
    assert normalised("%a = f32[8] add(f32[8] %x)") != normalised("%a = f32[8] multiply(f32[8] %x)")
    assert normalised("copy.3") == "" and normalised("") == ""


def test_other_shapes_under_the_same_name(tmp_path: Path) -> None:
    framework = {"fusion.1": "jit(step)/mlp/dot"}
    bigger = {**TEXTS, "fusion.1": TEXTS["fusion.1"].replace("[8,128]", "[16,128]")}
    before = replace(BASE, framework=framework)
    found = op(diff_of(tmp_path, before, replace(before, texts=bigger)), "fusion.1")
    assert found.matched_by == "name" and found.text_changed and found.old_name is None


def test_other_operands_and_another_name(tmp_path: Path) -> None:
    """What an op is made of has changed, but not where it comes from and what it makes."""
    framework = {"fusion.1": "jit(step)/mlp/dot", "fusion.9": "jit(step)/mlp/dot"}
    text = TEXTS["fusion.1"].replace("f32[4] %copy.3", "f32[4] %copy.3, s32[] %param.9")
    steps = [[("fusion.9", 6 * MS), *step[1:]] for step in STEPS]
    after = replace(BASE, steps=steps, texts={**TEXTS, "fusion.9": text}, framework=framework)
    found = op(diff_of(tmp_path, replace(BASE, framework=framework), after), "fusion.9")
    assert (found.matched_by, found.old_name, found.text_changed) == ("origin", "fusion.1", True)


def test_different_origins_are_new_and_gone(tmp_path: Path) -> None:
    before = replace(BASE, framework={"copy.3": "jit(step)/a"})
    texts = {**TEXTS, "copy.3": "f32[4,4] copy(f32[4,4] %x)"}
    diff = diff_of(tmp_path, before, replace(before, framework={"copy.3": "jit(step)/b"}, texts=texts))
    assert sorted(item.time.mark for item in diff.ops if item.name == "copy.3") == ["gone", "new"]


LAYERS = st.dictionaries(st.integers(1, 99), st.integers(1, 5), min_size=1, max_size=4)


@settings(max_examples=20)
@given(LAYERS, LAYERS)
def test_layers_alike_are_matched_in_the_order_of_their_numbers_whatever_time_they_take(
    tmp_path_factory: pytest.TempPathFactory, before: dict[int, int], after: dict[int, int]
) -> None:
    named = (
        {f"fusion.{at}": ms * MS for at, ms in before.items()},
        {f"fusion.{at}00": ms * MS for at, ms in after.items()},
    )
    texts = [dict.fromkeys(of, "f32[8] fusion(f32[8] %p.1), calls=%c.1") for of in named]
    a, b = (Program(steps=[[*of.items()]] * 3, texts=text) for of, text in zip(named, texts, strict=True))
    pairs = {(op.old_name, op.name) for op in diff_of(tmp_path_factory.mktemp("runs"), a, b).ops if op.old_name}
    assert pairs == {
        (f"fusion.{old}", f"fusion.{new}00") for old, new in zip(sorted(before), sorted(after), strict=False)
    }


@settings(max_examples=20)
@given(st.permutations(range(4)), st.integers(0, 3))
def test_clones_that_were_numbered_anew_are_matched_by_what_they_compute(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], first: int
) -> None:
    """Layers of one text, whose numbers the compiler deals out in another order: the scope tells them apart."""
    numbers = [range(4), [first + number for number in order]]
    a, b = (
        Program(
            steps=[[(f"fusion.{of[layer]}", (layer + 1) * MS) for layer in range(4)]] * 3,
            texts={f"fusion.{number}": "f32[8] fusion(f32[8] %p.1), calls=%c.1" for number in of},
            framework={f"fusion.{of[layer]}": f"jit(step)/layer_{layer}/mul" for layer in range(4)},
        )
        for of in numbers
    )
    diff = diff_of(tmp_path_factory.mktemp("runs"), a, b)
    assert [op.time.delta for op in diff.ops] == [0] * 4
    renamed = {(op.old_name or op.name, op.name) for op in diff.ops}
    assert renamed == {(f"fusion.{old}", f"fusion.{new}") for old, new in zip(*numbers, strict=True)}


def test_a_program_that_was_renamed(tmp_path: Path) -> None:
    diff = diff_of(tmp_path, BASE, replace(BASE, program="jit_train"))
    assert {item.matched_by for item in diff.ops} == {"text"} and {item.time.mark for item in diff.ops} == {"same"}
    assert diff.warnings[-1] == "no program has the same name in both: A ran jit_step, B ran jit_train"


SHAPES = {"fusion.1": "f32[8]", "fusion.2": "f32[16]", "copy.3": "f32[4]"}


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["", "a(%x.1)", "a(%x.2)", "b(%x.1)"]), min_size=6, max_size=6))
def test_a_text_has_changed_where_both_runs_have_one_and_these_differ_in_more_than_numbers(
    tmp_path_factory: pytest.TempPathFactory, chosen: list[str]
) -> None:
    sides = [dict(zip(SHAPES, part, strict=True)) for part in (chosen[:3], chosen[3:])]
    a, b = (replace(BASE, texts={name: text and f"{SHAPES[name]} {text}" for name, text in of.items()}) for of in sides)
    diff = diff_of(tmp_path_factory.mktemp("runs"), a, b)
    for found in diff.ops:
        assert found.old_name in (None, found.name)
        old, new = (of[found.name] for of in sides)
        if found.time.mark not in ("new", "gone"):
            assert found.text_changed == bool(old and new and old[0] != new[0])
