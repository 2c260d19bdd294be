"""The graph against the XProf that is installed: what each instruction takes, feeds and calls, and what lies around it.

Skipped where XProf is not installed: in this interpreter, or in the one that ``TPUPROF_XPROF_PYTHON`` names.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.parity.oracle.graph_text import instructions_of, neighbourhood_of
from tests.parity.oracle.live import ask_texts
from tests.support.build import session_at
from tpuprof.parsers.formats.hlo.graph import HloGraph
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.pages.graph.neighbourhood import around
from tpuprof.parsers.pages.graph.programs import GRAPHS
from tpuprof.tui.demo import demo_path

Record = Callable[[str, object], None]
RADIUS = 2
FIELDS = 7


def graphs_of(path: Path, folder: Path) -> list[tuple[HloGraph, str]]:
    """The modules of a profile as graphs, each with XProf's text of it."""
    texts = ask_texts(path.read_bytes(), folder)
    programs = session_at(path).page(GRAPHS)
    labels = {str(label): label for label in programs.compiled.places}
    assert labels.keys() == texts.keys()
    return [(programs.program(label).graph, texts[name]) for name, label in labels.items()]


def is_inside_async(graph: HloGraph, row: int) -> bool:
    """Whether it is in what an asynchronous op wraps, which the text leaves out: it writes ``slice-start`` instead."""
    callers = graph.callers[graph.computation(row)].tolist()
    return bool(callers) and all(graph.opcode(caller).startswith("async-") for caller in callers)


def compared(graph: HloGraph, text: str) -> tuple[int, int]:
    """Holds every instruction of a module against XProf's text; the number of fields, and how many are explained."""
    theirs = instructions_of(text)
    told = [row for row in range(len(graph)) if not is_inside_async(graph, row)]
    short_forms = 0
    assert {graph.name(row) for row in told} == theirs.keys()
    for row in told:
        one, name = theirs[graph.name(row)], graph.name(row)
        number = graph.computation(row)
        assert [graph.name(each) for each in graph.operands[row]] == one.operands, name
        assert {graph.name(each) for each in graph.users[row]} == one.users, name
        if graph.opcode(row) in ("async-start", "async-update", "async-done"):
            assert one.opcode.endswith(graph.opcode(row).removeprefix("async")) and not one.called
            short_forms += 2
        else:
            assert {graph.computation_name(each) for each in graph.called[row]} == one.called, name
            assert graph.opcode(row) == one.opcode, name
        assert graph.computation_name(number) == one.computation, name
        assert (row == int(graph.root[number])) == one.is_root, name
        near = around(graph, row, RADIUS, most=10**6)
        mine = {graph.name(each): distance for each, distance in zip(near.rows, near.distances, strict=True)}
        assert mine == neighbourhood_of(theirs, name, RADIUS), name
    return FIELDS * len(told), short_forms


def test_the_demo(tmp_path: Path, record_property: Record) -> None:
    counts = [compared(graph, text) for graph, text in graphs_of(Path(demo_path()), tmp_path)]
    number, explained = (sum(column) for column in zip(*counts, strict=True))
    assert (number, explained) == (FIELDS * (3051 + 865 - 74), 2 * 74)
    record_property("parity", ("graph, live demo", number, number - explained, explained))


@pytest.mark.shared
def test_a_real_profile(shared: Path, tmp_path: Path, record_property: Record) -> None:
    path = next((shared / "profiles" / "tpu-v6e-inference").rglob("*.xplane.pb"))
    number = sum(compared(graph, text)[0] for graph, text in graphs_of(path, tmp_path))
    assert number == FIELDS * (3 + 6 + 3 + 31)
    record_property("parity", ("graph, live v6e", number, number, 0))


def test_shapes_are_xprofs(tmp_path: Path) -> None:
    from tpuprof.parsers.formats.hlo.shapes import shape_text

    for graph, text in graphs_of(Path(demo_path()), tmp_path):
        theirs = instructions_of(text)
        for row in (row for row in range(len(graph)) if not is_inside_async(graph, row)):
            mine = shape_text(graph.proto(row).shape).replace(", ", ",")
            assert mine == theirs[graph.name(row)].shape.replace(", ", ",")


def test_xprofs_text_reads_as_the_same_graph(tmp_path: Path) -> None:
    for graph, text in graphs_of(Path(demo_path()), tmp_path):
        read = HloGraph(HloModule(read_module_text("", text.splitlines())))
        assert len(read) == sum(not is_inside_async(graph, row) for row in range(len(graph)))
        assert compared(read, text) == (FIELDS * len(read), 0)
