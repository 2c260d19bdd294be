"""Arguments that every step casts: those that nothing changes, and those that the program trains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.parsers.pages.findings.build import Op, evidence, found, grid, modules, the, with_
from tests.support.build import present
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, budget
from tpuprof.parsers.pages.findings.finding import Evidence
from tpuprof.parsers.pages.findings.ops.arrays import ModuleArrays, large_arrays
from tpuprof.parsers.pages.findings.ops.needless.arguments import cast_arguments
from tpuprof.parsers.steps.step_account import tpu_account

WIDE, NARROW, OTHER = "f32[4096,4096]{1,0}", "bf16[4096,4096]{1,0}", "f32[4096,1024]{1,0}"


def program(result: str = NARROW, root: str = "%cast", read: str = "%w", given: str = WIDE) -> hlo_pb2.HloProto:
    """A program that casts its argument."""
    text = f"""HloModule jit_step
ENTRY %main (w: {given}) -> {result} {{
  %w = {given} parameter(0), metadata={{op_name="params['kernel']"}}
  %new = {WIDE} negate({read})
  %cast = {NARROW} convert({read})
  ROOT %out = {result} {root if root.startswith("tuple") else f"copy({root})"}
}}
"""
    return read_module_text("jit_step", text.splitlines())


def casting(proto: hlo_pb2.HloProto, time: float = 60) -> Evidence:
    """A step of a millisecond in which the cast takes so long."""
    ops = [
        Op("cast", "non-fusion elementwise", time * 20, hbm=96 << 20, scope="teacher/convert_element_type"),
        Op("dot.1", "convolution", (1000 - time) * 20),
    ]
    steps = grid({"vector": time, "compute": 1000 - time})
    return with_(evidence(steps, ops), modules=(modules(proto.SerializeToString()),))


def test_a_cast_of_an_argument_that_nothing_changes_is_worth_all_of_it() -> None:
    finding = the("memory-bound", casting(program()))
    assert finding.title == "Each step casts arguments that it does not change: teacher/convert_element_type"
    assert finding.worth_ps == pytest.approx(60e6, rel=1e-3)
    assert finding.evidence[1].endswith(
        "casts 67.1 MB of params['kernel'], which is neither donated nor returned with new values."
    )
    assert finding.advice.startswith("Cast them once, outside the step")


def test_an_element_of_an_argument_that_is_a_tuple_is_an_argument_too() -> None:
    proto = program(given=f"({WIDE}, {OTHER})", read="%element")
    main = proto.hlo_module.computations[0]
    element = main.instructions.add(
        name=b"element", opcode=b"get-tuple-element", id=90, operand_ids=[main.instructions[0].id], tuple_index=0
    )
    element.shape.CopyFrom(main.instructions[0].shape.tuple_shapes[0])
    for each in main.instructions[1:3]:
        each.operand_ids[:] = [90]
    assert found("memory-bound", casting(proto)) is not None
    proto.hlo_module.buffer_donor.entries.add(parameter_number=0, parameter_shape_index=[1])
    assert found("memory-bound", casting(proto)) is not None
    proto.hlo_module.buffer_donor.entries.add(parameter_number=0, parameter_shape_index=[0])
    assert found("memory-bound", casting(proto)) is None


def given_up(aliased: bool) -> hlo_pb2.HloProto:
    """The program may use the parameter's memory."""
    proto = program()
    entries = proto.hlo_module.input_output_alias.entries if aliased else proto.hlo_module.buffer_donor.entries
    entries.add(parameter_number=0)
    return proto


@pytest.mark.parametrize(
    "proof",
    [
        casting(program(WIDE, "%new")),
        casting(program(f"({NARROW}, {WIDE})", "tuple(%cast, %new)")),
        casting(given_up(aliased=True)),
        casting(given_up(aliased=False)),
        casting(program(read="%new")),
        casting(program(), time=15),
    ],
    ids=["new values", "new values beside it", "aliased", "donated", "made by the program", "short"],
)
def test_casts_that_are_as_they_should_be(proof: Evidence) -> None:
    assert found("memory-bound", proof) is None


def test_a_parameter_that_another_program_updates_is_cast_as_it_should_be() -> None:
    whole: Budget = present(budget(of := casting(program()), tpu_account(of.grid)))
    update = ModuleArrays(HloModule(program(WIDE, "%new")), {})
    both = (*large_arrays(whole), update)
    assert cast_arguments.claims(whole, []) != [NOTHING]
    assert cast_arguments.claims(replace(whole, _known={large_arrays: both}), []) == [NOTHING]
