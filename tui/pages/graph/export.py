"""The graph in formats of others: Graphviz's dot, HLO text, and the compiler's own proto."""

from __future__ import annotations

from collections.abc import Iterator

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.printing import computation_lines, module_lines
from tpuprof.parsers.pages.graph.model import Node
from tpuprof.parsers.pages.graph.neighbourhood import Subgraph, around
from tpuprof.parsers.pages.graph.programs import Program
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.format import share
from tpuprof.tui.report.output import Produce, Write, text_pieces

ENDINGS = {".dot": "dot", ".hlo": "hlo", ".gv": "dot", ".txt": "text", ".pb": "proto"}
"""How a file's name ends, and what is written into it; besides rows and the screen, as on every page."""

WRITTEN_STEPS = 3  # steps around the op that are written for Graphviz

_STYLE = 'style=filled, fillcolor="{}"'
_COLOURS = (
    (("all-", "reduce-scatter", "collective-", "send", "recv"), "#f2d7b0"),
    (("dot", "convolution"), "#b7d1ee"),
    (("copy", "transpose", "bitcast", "reshape"), "#cfe8cf"),
    (("fusion",), "#e6e6e6"),
    (("parameter", "constant"), "#f6e6a6"),
    (("while", "conditional", "call", "custom-call"), "#d9c8ec"),
)


def dot(program: Program, row: int, near: Subgraph) -> Iterator[str]:
    """What lies around an instruction, for Graphviz: a box each, a cluster a computation, dashed what is only an order.

    Yields:
        Pieces of the text.
    """
    yield f"// {_plain(str(program.label))}: around {_plain(program.graph.name(row))}\n"
    yield "digraph module {\n  rankdir=TB;\n  node [shape=box, fontname=monospace, fontsize=10];\n"
    by_computation: dict[str, list[Node]] = {}
    for each in near.rows:
        node = program.node(each)
        by_computation.setdefault(node.computation, []).append(node)
    for number, (computation, nodes) in enumerate(by_computation.items()):
        yield f"  subgraph cluster_{number} {{\n    label={_quoted(computation)};\n"
        for node in nodes:
            yield f"    n{node.row} [{_look(node, node.row == row)}];\n"
        yield "  }\n"
    for begin, end, is_control in near.edges:
        yield f"  n{begin} -> n{end}{' [style=dashed]' if is_control else ''};\n"
    yield "}\n"


def _look(node: Node, is_centre: bool) -> str:
    words = [node.name, node.opcode, node.shape if len(node.shape) < 120 else f"{node.shape[:117]}..."]
    words += [binary_size(node.size_bytes)] if node.size_bytes is not None else []
    words += [f"{share(node.fraction)} of the time"] if node.fraction is not None else []
    colour = next((colour for begins, colour in _COLOURS if node.opcode.startswith(begins)), "#ffffff")
    border = ", penwidth=3" if is_centre else ""
    return f"label={_quoted(chr(10).join(words))}, {_STYLE.format(colour)}{border}"


def _quoted(text: str) -> str:
    lines = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n"))
    return '"' + "\\n".join(lines) + '"'


def _plain(text: str) -> str:
    return printable(text).replace("\n", " ")


def computation_text(program: Program, row: int) -> Iterator[str]:
    """The computation that an instruction is in, as HLO text."""
    graph = program.graph
    yield from _told(computation_lines(graph, graph.computation(row)))


def module_text(program: Program) -> Iterator[str]:
    """The whole module as HLO text."""
    yield from _told(module_lines(program.graph))


def _told(lines: Iterator[str]) -> Iterator[str]:
    yield from (f"{printable(line)}\n" for line in lines)


def proto(program: Program) -> Produce:
    """The module as the compiler wrote it, an HloProto with what this project does not read too."""

    def produce(write: Write) -> None:
        write(program.graph.module.proto.SerializeToString())

    return produce


def made(kind: str, program: Program, row: int) -> Produce:
    """What `ENDINGS` names of a program."""
    if kind == "proto":
        return proto(program)
    if kind == "dot":
        return text_pieces(dot(program, row, around(program.graph, row, WRITTEN_STEPS)))
    return text_pieces(module_text(program) if kind == "hlo" else computation_text(program, row))
