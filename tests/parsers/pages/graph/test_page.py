"""The page of the graph: an op, its neighbours, what that answers; and how an op is found in a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partialmethod

import pytest

from tests.support.build import present
from tests.support.files.hlo_graphs import SMALL, deep_module, program_of, programs_of, small_graph
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.formats.hlo.graph import HloGraph
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.pages.graph.model import NO_PROFILE
from tpuprof.parsers.pages.graph.neighbourhood import Neighbourhood, around, neighbour, neighbourhood
from tpuprof.parsers.pages.graph.programs import GRAPHS, Programs
from tpuprof.parsers.pages.memory.compiled import CompiledModules, ModuleSource
from tpuprof.parsers.session.session import Session
from tpuprof.tui.demo import demo_path
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.pages.graph.drawing import GraphView, compose

PROGRAM = program_of(small_graph())


def around_op(name: str) -> Neighbourhood:
    return neighbourhood(PROGRAM, present(PROGRAM.graph.row(name)))


@pytest.fixture(scope="module")
def demo() -> Programs:
    return Session(open_logdir(demo_path()).find_run(None)).page(GRAPHS)


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        (
            "fusion.3",
            ["Of 2 ops that it waits for, all-reduce-done is last; feeds 2 ops: all-reduce-start and exponential.4."],
        ),
        (
            "all-reduce-done",
            [
                "Waits for the transfer that all-reduce-start started; feeds 1 op: fusion.3.",
                "1 instruction lies between start and done.",
            ],
        ),
        (
            "copy.7",
            ["Waits for copy-done; feeds 1 op: fusion.3.", "It only rearranges an array: layout {1,0} to {0,1}."],
        ),
        (
            "copy-done",
            [
                "Waits for the transfer that copy-start started; feeds 1 op, in the loop: copy.7.",
                "It moves an array from HBM to VMEM unchanged.",
                "1 instruction lies between start and done.",
            ],
        ),
        ("negate.2", ["Waits for nothing: needs arguments of the program; feeds 1 op, in the loop: all-reduce-start."]),
        ("exponential.4", ["Waits for fusion.3; its result is what the program returns."]),
        ("arg", ["Is an argument of the program; feeds 2 ops: copy-start and negate.2."]),
        ("sum", ["Waits for nothing: needs values from its caller; is what add returns to all-reduce-start."]),
        ("x", ["Of 2 ops that it waits for, fusion.3 is last, in the pass before; feeds 1 op: all-reduce-start."]),
        ("next", ["Waits for itself, in the pass before; feeds 1 op: itself in the next pass."]),
        ("less", ["Waits for next, in the pass before; is what condition returns to while.1."]),
        ("w", ["Waits for copy-done; feeds 1 op: copy.7."]),
        ("add.1", ["Needs multiply.1 and copy.7; feeds 2 ops: all-reduce-start and exponential.4."]),
    ],
)
def test_what_an_op_waits_for_and_feeds(name: str, answers: list[str]) -> None:
    assert list(around_op(name).answers) == answers


def test_what_a_loop_computes_is_ready_when_the_loop_ends() -> None:
    root = "  ROOT %exponential.4 = f32[8,128]{1,0:T(8,128)} exponential(%x.1)"
    after = root.replace("exponential(%x.1)", "add(%negate.2, %x.1)")
    program = program_of(HloGraph(HloModule(read_module_text("a", SMALL.replace(root, after).splitlines()))))
    here = neighbourhood(program, program.graph.row("exponential.4") or 0)
    assert here.answers[0].startswith("Of 2 ops that it waits for, fusion.3 is last; ")


def test_a_loop_may_be_what_the_program_returns() -> None:
    lines = [line for line in SMALL.splitlines() if "%x.1 =" not in line and "exponential" not in line]
    text = "\n".join(lines).replace("  %while.1 =", "  ROOT %while.1 =")
    program = program_of(HloGraph(HloModule(read_module_text("a", text.splitlines()))))
    said = {name: neighbourhood(program, program.graph.row(name) or 0).answers[0] for name in ("negate.2", "fusion.3")}
    said["copy-done"] = neighbourhood(program, program.graph.row("copy-done") or 0).answers[0]
    assert said["negate.2"].endswith("; feeds 1 op, in the loop: all-reduce-start.")
    assert said["fusion.3"].endswith("; feeds 1 op: all-reduce-start; the program returns it too.")
    assert said["copy-done"].endswith("; feeds 1 op, in the loop: copy.7; the program returns it too.")


def test_without_a_schedule_nothing_is_last() -> None:
    text = SMALL.replace("is_scheduled=true, ", "")
    program = program_of(HloGraph(HloModule(read_module_text("a", text.splitlines()))))
    here = neighbourhood(program, program.graph.row("fusion.3") or 0)
    assert here.answers[0].startswith("Needs all-reduce-done and copy.7; ")


def test_why_an_op_stands_alone() -> None:
    assert around_op("negate.2").why_not_fused == (
        "its operands are arguments of the program: there is no op before it to fuse with",
        "its users read arrays from memory: all-reduce-start",
    )
    assert around_op("fusion.3").why_not_fused == () == around_op("multiply.1").why_not_fused
    assert around_op("copy-start").why_not_fused == () == around_op("tuple.1").why_not_fused


def test_an_op_with_its_neighbours() -> None:
    here = around_op("fusion.3")
    assert (here.op.opcode, here.op.shape, here.op.size_bytes) == ("fusion", "f32[8,128]{1,0:T(8,128)}", 4096)
    assert (here.op.source, here.op.framework_op, here.op.inside) == ("model.py:12", "jit(step)/add", 4)
    assert here.in_loops == 1 and here.op.why_untimed == NO_PROFILE
    assert [(step.computation, step.caller, step.role) for step in here.path] == [
        ("main", None, ""),
        ("body", "while.1", "body"),
    ]
    (called,) = here.called
    assert (called.name, called.role, called.first, called.more) == ("fused", "calls", ("add.1", "multiply.1"), 0)
    first, second, order = (neighbour(here, "operands", at) for at in range(3))
    assert [(one.node.name, one.places, one.is_control) for one in (first, second, order)] == [
        ("all-reduce-done", (0,), False),
        ("copy.7", (1,), False),
        ("next", (), True),
    ]
    assert second.node.changes_layout and second.node.moves == "layout {1,0} to {0,1}"
    tuple_of = neighbour(here, "users", 0)
    assert (tuple_of.places, tuple_of.behind) == ((1,), ("all-reduce-start", "exponential.4"))
    assert neighbour(around_op("next"), "users", 1).is_control
    assert around_op("copy-start").op.partner == "copy-done" and around_op("copy-start").op.size_bytes == 4096


def test_what_lies_around() -> None:
    row = present(PROGRAM.graph.row("copy.7"))
    near = around(PROGRAM.graph, row, 1)
    assert [PROGRAM.graph.name(each) for each in near.rows] == ["copy.7", "fusion.3", "w"]
    assert near.distances == (0, 1, 1) and near.is_all and len(near.edges) == 2
    assert len(around(PROGRAM.graph, row, 2).rows) == 7 and len(around(PROGRAM.graph, row, 0).rows) == 1
    few = around(PROGRAM.graph, row, 99, most=4)
    assert len(few.rows) == 4 and not few.is_all


def test_every_op_of_the_demo_has_a_page(demo: Programs) -> None:
    program = demo.find(None).program
    for row in range(len(program.graph)):
        here = neighbourhood(program, row)
        assert here.answers[0][0].isupper() and here.answers[0].endswith(".")
        assert not any(one.size_bytes is None for one in (here.op,) if one.opcode == "fusion")


def test_an_op_is_found_by_name_program_module_or_framework_op(demo: Programs) -> None:
    train, eval_step = demo.compiled.places
    assert demo.find("%fusion.397").program.label == train
    name = demo.program(eval_step).graph.name(5)
    assert demo.find(name, eval_step.program_id).program.label == eval_step
    assert demo.find(None, module="jit_eval_step").program.label == eval_step
    page = present(demo.times.page)
    framework_op = parse_framework_op(page.table.framework_op[0]).name
    found = demo.find(framework_op)
    longest = [name for name, full in zip(page.table.name, page.table.framework_op, strict=True) if full]
    assert found.program.graph.name(found.row) == longest[0] != framework_op


def test_what_is_not_there_is_said(demo: Programs) -> None:
    with pytest.raises(ProfileError) as caught:
        demo.find("fusion.39x")
    assert caught.value.exit_code == EXIT_NOT_FOUND
    assert (
        caught.value.hint
        == "one of: fusion.390, fusion.393, fusion.394, fusion.397, bitcast_dynamic-update-slice_fusion.39"
    )
    with pytest.raises(ProfileError, match=r"has an instruction nosuch") as caught:
        demo.find("nosuch")
    assert "report ops" in caught.value.hint
    with pytest.raises(ProfileError, match=r"has no instruction nosuch") as caught:
        programs_of(read_module_text("small", SMALL.splitlines())).find("nosuch")
    assert "--format hlo" in caught.value.hint, "without a profile no op ran"
    with pytest.raises(ProfileError, match="There is no module nothing") as caught:
        demo.find("fusion.397", module="nothing")
    assert "jit_train_step" in caught.value.hint
    with pytest.raises(ProfileError, match="holds no compiled HLO, so operands and users of its ops are unknown"):
        Programs(CompiledModules([]), None).find("x")


def test_damaged_modules_are_one_sentence() -> None:
    modules = HloModules({1: ("jit_a", lambda name: f"The compiled HLO of {name} is damaged.")})
    programs = Programs(CompiledModules([ModuleSource("host0", modules)]), None)
    for name in ("x", None):
        with pytest.raises(ProfileError, match="The compiled HLO of jit_a is damaged"):
            programs.find(name)
    good = read_module_text("small", SMALL.splitlines())
    with pytest.raises(ProfileError, match="holds no instructions"):
        programs_of(hlo_pb2.HloProto()).find(None)
    assert programs_of(hlo_pb2.HloProto(), good).find("copy.7").program.label.program_id == 2


def counting(
    graph: HloGraph, rows: set[int], plain: Callable[[HloGraph, int], hlo_pb2.HloInstructionProto], row: int
) -> hlo_pb2.HloInstructionProto:
    rows.add(row)
    return plain(graph, row)


@pytest.mark.parametrize("side", ["operands", "users"])
def test_nothing_is_decoded_but_what_shows(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[set[int]] = []
    for size in (2_000, 20_000):
        program = program_of(HloGraph(HloModule(deep_module(size))))
        rows: set[int] = set()
        monkeypatch.setattr(HloGraph, "proto", partialmethod(counting, rows, HloGraph.proto))
        parameter, middle = 0, len(program.graph) // 2
        for row in (parameter, middle):
            here = neighbourhood(program, row)
            compose(here, (), GraphView(side="users", is_direct=side == "users"), Pen(80, BLOCK), 24)
        monkeypatch.undo()
        decoded.append(rows)
    assert len(decoded[0]) == len(decoded[1]) < 80, "of a long list what shows, however long it is"
