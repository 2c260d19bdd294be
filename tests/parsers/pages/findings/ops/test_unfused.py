"""Ops that pass arrays to each other through HBM: which could be one, and what that would save."""

from __future__ import annotations

import pytest

from tests.parsers.pages.findings.build import Op, evidence, found, grid, modules, the, with_
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.pages.findings.finding import Evidence

X, ROW = "f32[8192,4096]{1,0}", "f32[8192]{0}"
BYTES = 8192 * 4096 * 4
REDUCE = """%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}
"""


def program(*lines: str) -> bytes:
    """A program of these lines, with an array ``%x`` and what sums up its rows or columns."""
    inside = "\n".join(f"  {line}" for line in lines)
    fused = "".join(
        f"""%{name} (p: {X}) -> {shape} {{
  %p.{name} = {X} parameter(0)
  %zero.{name} = f32[] constant(0)
  ROOT %r.{name} = {shape} reduce(%p.{name}, %zero.{name}), dimensions={{{dimension}}}, to_apply=%sum
}}
"""
        for name, shape, dimension in (("rows", ROW, 1), ("columns", "f32[4096]{0}", 0))
    )
    text = f"HloModule jit_step\n{REDUCE}{fused}ENTRY %main (x: {X}) -> {X} {{\n  %x = {X} parameter(0)\n{inside}\n}}\n"
    return read_module_text("jit_step", text.splitlines()).SerializeToString()


def of(proto: bytes, *ops: tuple[str, float]) -> Evidence:
    """A step of a millisecond in which ops move so many arrays each, at 80 % of HBM's peak."""
    made = []
    for name, arrays in ops:
        us = arrays * BYTES / 1000e9 / 0.8 * 1e6
        made.append(Op(name, "loop fusion", us * 20, 20, hbm=round(arrays * BYTES), scope=f"loss/log_softmax/{name}"))
    time = sum(op.time for op in made) / 20
    return with_(evidence(grid({"vector": time, "compute": 1000}), made), modules=(modules(proto),))


def test_sums_over_columns_have_to_be_whole_before_they_are_used() -> None:
    proto = program(
        "%total = f32[4096]{0} fusion(%x), kind=kLoop, calls=%columns", f"ROOT %shares = {X} subtract(%x, %total)"
    )
    assert found("unfused", of(proto, ("total", 1), ("shares", 2))) is None


def test_what_depends_on_another_op_is_not_fused_over_it() -> None:
    proto = program(
        f"%norm = {X} negate(%x)",
        f'%product = {X} custom-call(%norm), custom_call_target="matmul"',
        f"ROOT %residual = {X} add(%norm, %product)",
    )
    assert found("unfused", of(proto, ("norm", 2), ("residual", 3))) is None


def test_ops_of_hardly_any_time_between_the_way_there_and_back_are_part_of_the_row() -> None:
    lines = (
        f"%there = {X} negate(%x)",
        f"%tiny = {ROW} fusion(%there), kind=kLoop, calls=%rows",
        f"%back = {X} subtract(%there, %tiny)",
        f"ROOT %out = {X} add(%back, %x)",
    )
    proof = of(program(*lines), ("there", 2), ("tiny", 0.0005), ("back", 2), ("out", 3))
    finding = the("unfused", proof)
    assert finding.title == "3 memory-bound ops in a row are not fused: loss/log_softmax"
    # neither of two arrays is written or read, and %x is read once
    assert finding.worth_ps == pytest.approx(5 * BYTES / 1000e9 / 0.8 * 1e12, rel=1e-3)
    # what the compiler fuses with nothing keeps them apart, however short it is
    apart = program(lines[0], f'%tiny = {ROW} custom-call(%there), custom_call_target="sum"', *lines[2:])
    left = the("unfused", of(apart, ("there", 2), ("back", 2), ("out", 3)))
    assert left.title == "2 memory-bound ops in a row are not fused: loss/log_softmax"
