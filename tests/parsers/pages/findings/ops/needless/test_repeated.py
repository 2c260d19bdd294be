"""What the trips of a loop repeat: casts of weights that stay the same."""

from __future__ import annotations

import pytest

from tests.parsers.pages.findings.build import Op, evidence, found, grid, modules, the, with_
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.pages.findings.finding import Evidence

WIDE, NARROW = "f32[4096,4096]{1,0}", "bf16[4096,4096]{1,0}"
STATE = f"(s32[], {WIDE}, {WIDE}, {NARROW})"
CASTS = f"""HloModule jit_step
%cast_of (p: {WIDE}) -> {NARROW} {{
  %p = {WIDE} parameter(0)
  ROOT %c = {NARROW} convert(%p)
}}
%body (s: {STATE}) -> {STATE} {{
  %s = {STATE} parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %w = {WIDE} get-tuple-element(%s), index=1
  %g = {WIDE} get-tuple-element(%s), index=2
  %x = {NARROW} get-tuple-element(%s), index=3
  %of_weights = {NARROW} fusion(%w), kind=kLoop, calls=%cast_of
  %of_gradients = {NARROW} fusion(%g), kind=kLoop, calls=%cast_of
  %sum = {WIDE} add(%g, %g)
  %one.1 = s32[] constant(1)
  %i2 = s32[] add(%i, %one.1)
  ROOT %t = {STATE} tuple(%i2, %w, %sum, %of_gradients)
}}
%condition (s: {STATE}) -> pred[] {{
  %s2 = {STATE} parameter(0)
  ROOT %less.1 = pred[] constant(true)
}}
ENTRY %main (a: {STATE}) -> {STATE} {{
  %a = {STATE} parameter(0)
  ROOT %loop = {STATE} while(%a), condition=%condition, body=%body
}}
"""


def program(text: str) -> hlo_pb2.HloProto:
    return read_module_text("jit_step", text.splitlines())


def casting(name: str, time: float) -> Evidence:
    """A step of a millisecond with a loop of 20 trips, in which one op takes so long."""
    ops = [
        Op("loop", "while", time / 2, occurrences=20),
        Op(name, "loop fusion", time * 10, occurrences=400, hbm=96 << 20, scope="params/convert_element_type"),
    ]
    steps = grid({"vector": 1.05 * time, "compute": 1000 - 1.05 * time}, cores=1)
    return with_(evidence(steps, ops), modules=(modules(program(CASTS).SerializeToString()),))


def test_a_cast_of_what_no_trip_changes_is_worth_all_but_one_of_them() -> None:
    finding = the("memory-bound", casting("of_weights", 200))
    assert finding.title == "Each of 20 trips casts the same weights: params/convert_element_type"
    assert finding.worth_ps == pytest.approx(200e6 * 19 / 20, rel=1e-3)
    assert "of_weights" in finding.evidence[1] and "every trip of loop" in finding.evidence[1]
    assert "outside the loop" in finding.advice


def test_a_cast_of_what_each_trip_changes_is_needed() -> None:
    finding = found("memory-bound", casting("of_gradients", 200))
    assert finding is None or "casts" not in finding.title
