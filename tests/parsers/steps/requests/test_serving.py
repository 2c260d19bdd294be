"""What modules of programs that serve do: by their names, and by the arguments of their compiled HLO."""

from __future__ import annotations

import pytest

from tests.support.build import PlaneBuilder, StatInput, trace_of
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.steps.requests.serving import MOST_INPUTS, MOST_PARSED, answers_requests, batch_inputs, phase_of

BF16, S32, U32, S8 = 16, 4, 8, 2

Argument = tuple[str, int, list[int]]
"""What the program calls it, its type and dimensions."""


def programs(arguments: dict[int, list[Argument]]) -> HloModules:
    """Programs of such arguments by their ids, written in reverse order."""
    plane = PlaneBuilder.alone("/host:metadata")
    for program, parameters in arguments.items():
        proto = hlo_pb2.HloProto()
        proto.hlo_module.entry_computation_id = 2
        inner = proto.hlo_module.computations.add(name=b"inner", id=1)
        inner.instructions.add(
            name=b"q", opcode=b"parameter", id=1, shape=hlo_pb2.ShapeProto(element_type=S32, dimensions=[3])
        )
        entry = proto.hlo_module.computations.add(name=b"main", id=2)
        for at, (label, kind, shape) in reversed([*enumerate(parameters)]):
            parameter = entry.instructions.add(name=b"p%d" % at, opcode=b"parameter", id=10 + at, parameter_number=at)
            parameter.shape.CopyFrom(hlo_pb2.ShapeProto(element_type=kind, dimensions=shape))
            parameter.metadata.op_name = label.encode()
        stats: dict[str, StatInput] = {"Hlo Proto": proto.SerializeToString(), "program_id": program}
        plane.event_id(f"jit_decode({program})", "", **stats)
    return HloModules.of(trace_of(plane.space))


@pytest.mark.parametrize(
    ("name", "phase", "serves"),
    [
        ("jit_prefill(1)", "prefill", True),
        ("jit_context_encoding", "prefill", True),
        ("jit_generate(1)", "decode", True),
        ("jit_prefill_and_decode", "prefill and decode", True),
        ("jit_sample_tokens", "sampling", True),
        ("jit_step_fun", None, True),
        ("jit_Predict", None, True),
        ("jit_train_step", None, False),
    ],
)
def test_names_tell_phases(name: str, phase: str | None, serves: bool) -> None:
    assert (phase_of(name), answers_requests(name)) == (phase, serves)


def test_arrays_of_whole_numbers_tell_the_batch_smaller_ones_first() -> None:
    weights: Argument = ("params['w']", S8, [4096, 4096])
    arguments = [weights, ("tokens", S32, [8, 128]), ("lengths", S32, [8]), ("step", S32, []), ("key", U32, [2])]
    assert batch_inputs(["jit_decode(7)"], [programs({7: arguments})]) == {
        "jit_decode(7)": ("lengths s32[8]", "tokens s32[8,128]")
    }


def test_what_differs_from_other_shapes_of_the_module_tells_it_too() -> None:
    shapes = programs({n: [("w", BF16, [64, 64]), ("", BF16, [n, 64])] for n in (8, 16)})
    told = batch_inputs(["jit_decode(8)", "jit_decode(16)", "jit_other(9)"], [shapes])
    assert told == {"jit_decode(8)": ("bf16[8,64]",), "jit_decode(16)": ("bf16[16,64]",)}
    assert batch_inputs(["jit_decode(8)"], [shapes]) == {"jit_decode(8)": ()}  # nothing to compare with


def test_few_inputs_are_named_and_few_modules_parsed() -> None:
    names = [f"jit_decode({n})" for n in range(1, MOST_PARSED + 3)]
    arguments = [(f"a{at}", S32, [at + 1]) for at in range(MOST_INPUTS + 2)]
    modules = programs({n: arguments for n in range(1, MOST_PARSED + 3)})
    told = batch_inputs(names, [modules])
    assert list(told) == names[:MOST_PARSED] and {len(inputs) for inputs in told.values()} == {MOST_INPUTS}
    assert len(modules._parsed) == MOST_PARSED


def test_without_hlo_nothing_is_told() -> None:
    assert batch_inputs(["jit_decode(7)", "no id", "jit_f(x)"], [programs({})]) == {}
    assert batch_inputs(["jit_decode(7)"], []) == {}
