"""The graph of a module in columns, what stands behind tuples and loops, and HLO text in and out."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.support.build import present
from tests.support.files.hlo_graphs import SMALL, deep_module, small_graph
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.hlo import reach
from tpuprof.parsers.formats.hlo.files import HloFile, find_hlo_files, read_hlo_file, read_whole_module
from tpuprof.parsers.formats.hlo.graph import HloGraph
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.formats.hlo.printing import computation_lines, module_lines
from tpuprof.parsers.formats.proto import hlo_pb2

GRAPH = small_graph()
DUMP = Path(__file__).with_name("dump.zip")


def names(rows: object) -> list[str]:
    return [GRAPH.name(int(row)) for row in rows]  # type: ignore[attr-defined]


def row(name: str) -> int:
    return present(GRAPH.row(name))


def test_operands_users_and_orders() -> None:
    fusion = row("fusion.3")
    assert names(GRAPH.operands[fusion]) == ["all-reduce-done", "copy.7"]
    assert names(GRAPH.users[fusion]) == ["tuple.1"]
    assert names(GRAPH.controls[fusion]) == ["next"] and names(GRAPH.controlled[row("next")]) == ["fusion.3"]
    assert names(GRAPH.users[row("w")]) == ["copy.7", "tuple.1"]
    assert GRAPH.row("%copy.7") == row("copy.7") and GRAPH.row("nothing") is None


def test_computations_and_the_way_to_them() -> None:
    assert [GRAPH.computation_name(number) for number in GRAPH.called[row("while.1")]] == ["body", "condition"]
    chain = [(GRAPH.computation_name(at), caller and GRAPH.name(caller)) for at, caller in GRAPH.chain(row("add.1"))]
    assert chain == [("fused", "fusion.3"), ("body", "while.1"), ("main", None)]
    assert GRAPH.computation_name(GRAPH.entry) == "main" and names([GRAPH.root[GRAPH.entry]]) == ["exponential.4"]
    fused = GRAPH.computation(row("add.1"))
    assert (GRAPH.parameter(fused, 1), GRAPH.parameter(fused, 9)) == (row("p1"), None)
    assert GRAPH.count(fused, "parameter") == 2


def test_what_is_behind_tuples_and_loops() -> None:
    assert names(reach.sources(GRAPH, row("copy.7")).rows) == ["copy-done"], "before the loop; it never changes in it"
    assert names(reach.sources(GRAPH, row("all-reduce-start")).rows) == ["negate.2", "fusion.3"], "or the pass before"
    assert names(reach.sinks(GRAPH, row("negate.2")).rows) == ["all-reduce-start"]
    assert names(reach.sinks(GRAPH, row("fusion.3")).rows) == ["all-reduce-start", "exponential.4"]
    assert names(reach.sources(GRAPH, row("multiply.1")).rows) == ["all-reduce-done", "copy.7"], "out of the fusion"
    assert names(reach.sinks(GRAPH, row("add.1")).rows) == ["all-reduce-start", "exponential.4"]
    assert names(reach.maker(GRAPH, row("x.1")).rows) == ["fusion.3"]


def test_what_is_far_is_left_out_and_said() -> None:
    found = reach.sinks(HloGraph(HloModule(deep_module(20_000))), 0)
    assert not found.is_all and len(found.rows) <= reach.MOST_STEPS


def test_a_search_looks_at_names_opcodes_and_framework_ops() -> None:
    assert names(GRAPH.find("COPY")) == ["copy.7", "copy-start", "copy-done", "tuple.2"][:3]
    assert names(GRAPH.find("less")) == ["less"] and names(GRAPH.find("compare")) == ["less"]
    assert names(GRAPH.find("jit(step)/add")) == ["add.1", "fusion.3"]
    assert names(GRAPH.find("ADD  jit(step)")) == ["add.1", "fusion.3"] and not len(GRAPH.find("add compare"))
    assert not len(GRAPH.find(" ")) and not len(GRAPH.find("")) and not len(GRAPH.find("(step"[::-1]))


def test_the_schedule_is_the_order() -> None:
    assert GRAPH.is_scheduled
    body = GRAPH.computation(row("copy.7"))
    assert names(GRAPH.rows(body))[5:8] == ["next", "all-reduce-start", "copy.7"]


def test_calls_that_lead_back_to_themselves_end() -> None:
    proto = hlo_pb2.HloProto()
    for number in (1, 2):
        computation = proto.hlo_module.computations.add(id=number, name=b"c%d" % number, root_id=number)
        made = computation.instructions.add(id=number, name=b"call.%d" % number, opcode=b"call")
        made.called_computation_ids.append(3 - number)
        made.operand_ids.append(number)
    proto.hlo_module.entry_computation_id = 3
    graph = HloGraph(HloModule(proto))
    assert len(list(graph.chain(0))) <= 3
    assert reach.sources(graph, 0).is_all and reach.sinks(graph, 0).is_all


# --- texts


def of_dump(tmp_path: Path) -> Path:
    zipfile.ZipFile(DUMP).extractall(tmp_path)
    return tmp_path / "dump"


def same(one: HloGraph, other: HloGraph) -> None:
    assert len(one) == len(other)
    for at in range(len(one)):
        there = present(other.row(one.name(at)))
        for lists, others in ((one.operands, other.operands), (one.controls, other.controls)):
            assert [one.name(each) for each in lists[at]] == [other.name(each) for each in others[there]]
        assert {one.name(each) for each in one.users[at]} == {other.name(each) for each in other.users[there]}
        called = [one.computation_name(each) for each in one.called[at]]
        assert called == [other.computation_name(each) for each in other.called[there]]
        assert (one.opcode(at), one.position(at)) == (other.opcode(there), other.position(there))


def test_a_dump_of_texts_is_the_graph_of_the_proto(tmp_path: Path) -> None:
    folder = of_dump(tmp_path)
    (proto,) = find_hlo_files(str(folder))
    whole = HloGraph(read_hlo_file(proto))
    for path in folder.glob("*.pb"):
        path.unlink()
    (texts,) = find_hlo_files(str(folder))
    assert texts.path.endswith("-buffer-assignment.txt")
    same(HloGraph(read_whole_module(texts)), whole)
    for path in folder.glob("*-*.txt"):
        path.unlink()
    (alone,) = find_hlo_files(str(folder))
    graph = HloGraph(read_whole_module(alone))
    same(graph, whole)
    assert graph.module.source(graph.proto(graph.row("ynn_fusion") or 0)) == "train.py:5"
    with pytest.raises(ProfileError, match="does not hold the buffers"):
        read_hlo_file(alone)


def test_texts_of_buffers_alone_have_no_graph(tmp_path: Path) -> None:
    folder = of_dump(tmp_path)
    for path in (*folder.glob("*.pb"), *folder.glob("*optimizations.txt")):
        path.unlink()
    (texts,) = find_hlo_files(str(folder))
    with pytest.raises(ProfileError, match="hold its buffers, but not how large each one is"):
        read_whole_module(texts)
    odd = folder / "module_0001.x.after_optimizations.txt"
    odd.write_text("HloModule x\n\nnothing\n")
    with pytest.raises(ProfileError, match="has no instruction"):
        read_whole_module(HloFile(str(odd), "x", None, 1, ""))


def test_a_module_is_what_its_text_says() -> None:
    lines = list(module_lines(GRAPH))
    same(HloGraph(HloModule(read_module_text("again", lines))), GRAPH)
    assert lines[0] == "HloModule jit_step, is_scheduled=true"
    own = [line.strip() for line in SMALL.splitlines() if " = " in line and "metadata" not in line]
    assert not [line for line in own if line not in {one.strip() for one in lines}]
    body = list(computation_lines(GRAPH, GRAPH.computation(row("copy.7"))))
    assert body[0].startswith("%body (state: (s32[], f32[8,128], f32[8,128])) -> (s32[]") and body[-1] == "}"
    assert body[10].endswith('control-predecessors={%next}, metadata={op_name="jit(step)/add" source="model.py:12"}')


@pytest.mark.parametrize(
    "line", ["  %a = f32[8] add(%x, %y", "  %a = ", "  %a = f32[8]{0} (", "  %b = (f32[ add(((((", "}", "  ROOT"]
)
def test_odd_lines_are_passed_over(line: str) -> None:
    text = ["HloModule m", "ENTRY %main () -> f32[8] {", line, "  %c = f32[8]{0} constant({...})", "}"]
    graph = HloGraph(HloModule(read_module_text("m", text)))
    assert line == "}" or graph.row("c") is not None
