"""What the trips of a loop repeat: casts of weights that stay the same, and weights that are read for a few rows."""

from __future__ import annotations

import pytest

from tests.parsers.pages.findings.build import Op, evidence, found, grid, modules, the, with_
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.pages.findings.finding import Evidence
from tpuprof.parsers.pages.findings.ops.trips import varying

WIDE, NARROW = "f32[4096,4096]{1,0}", "bf16[4096,4096]{1,0}"
STATE = f"(s32[], {WIDE}, {WIDE}, {NARROW})"
CASTS = f"""HloModule jit_step
%cast_of (p: {WIDE}) -> {NARROW} {{
  %p = {WIDE} parameter(0)
  ROOT %c = {NARROW} convert(%p)
}}
%inner_body (r: (s32[], {WIDE})) -> (s32[], {WIDE}) {{
  %r = (s32[], {WIDE}) parameter(0)
  %j = s32[] get-tuple-element(%r), index=0
  %v = {WIDE} get-tuple-element(%r), index=1
  %of_a_layer = {NARROW} fusion(%v), kind=kLoop, calls=%cast_of
  %one = s32[] constant(1)
  %k = s32[] add(%j, %one)
  ROOT %u = (s32[], {WIDE}) tuple(%k, %v)
}}
%inner_condition (r: (s32[], {WIDE})) -> pred[] {{
  %r2 = (s32[], {WIDE}) parameter(0)
  ROOT %less = pred[] constant(true)
}}
%body (s: {STATE}) -> {STATE} {{
  %s = {STATE} parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %w = {WIDE} get-tuple-element(%s), index=1
  %g = {WIDE} get-tuple-element(%s), index=2
  %x = {NARROW} get-tuple-element(%s), index=3
  %of_weights = {NARROW} fusion(%w), kind=kLoop, calls=%cast_of
  %of_gradients = {NARROW} fusion(%g), kind=kLoop, calls=%cast_of
  %zero = s32[] constant(0)
  %begin = (s32[], {WIDE}) tuple(%zero, %w)
  %inner = (s32[], {WIDE}) while(%begin), condition=%inner_condition, body=%inner_body
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


def test_what_differs_from_trip_to_trip_is_followed_through_a_loop_in_the_loop() -> None:
    module = HloModule(program(CASTS))
    body = next(each for each in module.proto.hlo_module.computations if each.name == b"body")
    differs = varying(module, body)
    everything = [each for of in module.proto.hlo_module.computations for each in of.instructions]
    names = {each.name.decode() for each in everything if each.id in differs}
    assert {"i", "g", "of_gradients", "sum", "i2"} <= names
    assert names.isdisjoint({"w", "of_weights", "zero", "begin"})
    # the counter of the loop inside begins at a constant: what that loop casts is the same in every trip of this one
    assert "of_a_layer" not in names
    inner = next(each for each in module.proto.hlo_module.computations if each.name == b"inner_body")
    assert {each.name for each in everything if each.id in varying(module, inner)} == {b"r", b"j", b"k", b"u"}


def rows(count: int, passes: tuple[str, str] = ("jvp(model)", "transpose(jvp(model))")) -> Evidence:
    """A step of a millisecond: 8 trips, each with two products of so many rows by weights of 4096 x 4096."""
    activations = f"bf16[{count},4096]{{1,0}}"
    text = (
        CASTS[: CASTS.index("%cast_of")]
        + f"""
%body (s: (s32[], {NARROW}, {activations})) -> (s32[], {NARROW}, {activations}) {{
  %s = (s32[], {NARROW}, {activations}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %w = {NARROW} get-tuple-element(%s), index=1
  %x = {activations} get-tuple-element(%s), index=2
  %forward = {activations} dot(%x, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  %backward = {activations} dot(%forward, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT %t = (s32[], {NARROW}, {activations}) tuple(%i, %w, %backward)
}}
%condition (s: (s32[], {NARROW}, {activations})) -> pred[] {{
  %s2 = (s32[], {NARROW}, {activations}) parameter(0)
  ROOT %less = pred[] constant(true)
}}
ENTRY %main (a: (s32[], {NARROW}, {activations})) -> (s32[], {NARROW}, {activations}) {{
  %a = (s32[], {NARROW}, {activations}) parameter(0)
  ROOT %loop = (s32[], {NARROW}, {activations}) while(%a), condition=%condition, body=%body
}}
"""
    )
    proto = program(text)
    for computation in proto.hlo_module.computations:
        for each in computation.instructions:
            if each.opcode == b"dot":
                each.dot_dimension_numbers.lhs_contracting_dimensions[:] = [1]
                each.dot_dimension_numbers.rhs_contracting_dimensions[:] = [0]
    flops, moved = 2 * count * 4096 * 4096, 2 * (2 * count * 4096 + 4096 * 4096)
    each_us = max(flops / 100e12, moved / 1000e9) / 0.85 * 1e6
    time = each_us * 8 * 2 * 10  # of 10 steps on 2 cores
    ops = [Op("loop", "while", time / 10, occurrences=20)]
    for name, scope in zip(("forward", "backward"), passes, strict=True):
        ops.append(Op(name, "convolution fusion", time, 160, flops, moved, scope=f"while/body/{scope}/mlp/dot_general"))
    steps = grid({"compute": 2 * time / 20, "vector": 1000})
    return with_(evidence(steps, ops), modules=(modules(proto.SerializeToString()),))


def test_micro_batches_of_few_rows_read_their_weights_too_often() -> None:
    finding = the("memory-bound", rows(32))
    assert finding.title == "Micro-batches of 32 rows leave matrix products waiting for their weights"
    # 16 products, each with its bytes at 85 % of HBM's peak; in one micro-batch the FLOPs, at 75 %, hold them up
    before = 16 * 2 * (4096 * 4096 + 2 * 32 * 4096) / 1000e9 / 0.85 * 1e12
    after = 16 * 2 * 32 * 4096 * 4096 / 100e12 / 0.75 * 1e12
    assert finding.worth_ps == pytest.approx(before - after, rel=1e-3)
    assert "8 trips, each with a forward and a backward pass" in finding.evidence[1]


def test_many_rows_keep_the_matrix_unit_busy() -> None:
    assert found("memory-bound", rows(2048)) is None


def test_a_loop_with_one_pass_is_over_layers_or_tokens_and_not_over_micro_batches() -> None:
    assert found("memory-bound", rows(32, ("model", "model"))) is None
