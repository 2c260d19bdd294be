"""The graph in formats of others: HLO text, and the compiler's own proto."""

from __future__ import annotations

from collections.abc import Iterator

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.printing import computation_lines, module_lines
from tpuprof.parsers.pages.graph.programs import Program
from tpuprof.tui.report.output import Produce, Write, text_pieces

ENDINGS = {".hlo": "hlo", ".txt": "text", ".pb": "proto"}
"""How a file's name ends, and what is written into it; besides rows and the screen, as on every page."""


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
    return text_pieces(module_text(program) if kind == "hlo" else computation_text(program, row))
