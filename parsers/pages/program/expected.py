"""Small expectations of a compiled program: ``no f32[8192,*]``, ``custom-call splash*``, ``while = 1``."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase, translate

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.pages.program.facts import arrays
from tpuprof.parsers.pages.program.programs import CompiledProgram

_EXPECTED = pattern(r"(no )?\s*([\w*?\[\],-]+)(?:\s+([^\s=<>!]+))?\s*(?:(=|<=|>=|<|>|!=)\s*(\d{1,9}))?")
_COMPARED = dict(zip(("=", "<", ">", "<=", ">=", "!="), ["eq", "lt", "gt", "le", "ge", "ne"], strict=True))
_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expectation and what came of it.

    Attributes:
        expected: as it was written.
        is_kept: whether the programs are so.
        count: how many instructions match.
        evidence: the first of them, ``name (file:line)``.
    """

    expected: str
    is_kept: bool
    count: int
    evidence: tuple[str, ...]


def check_expectation(programs: Sequence[CompiledProgram], expected: str) -> Expectation:
    """Looks whether an expectation holds: there is none, at least one, or so many of what it names.

    It names arrays, ``f32[8192,*]``, or an opcode with or without a pattern of names: of the instruction, of what a
    custom call calls, or of where it comes from. An asynchronous instruction counts where it starts.

    Raises:
        ProfileError: it can't be read as one; exit code 2.
    """
    match = _EXPECTED.fullmatch(expected.strip())
    if match is None or (match[1] and match[4]):
        hint = '"no f32[8192,*]", "custom-call splash*", "while = 1"'
        raise ProfileError("usage", f"{printable(expected)} is no expectation.", hint, EXIT_USAGE)
    is_none, what, name, sign, number = match.groups()
    of_shape = re.compile(translate(what.replace("[", "[[]").replace(",", "[,]"))) if "[" in what else None
    found = []
    every = ((each.module, part) for each in programs for part in each.module.proto.hlo_module.computations)
    for module, one in ((module, one) for module, part in every for one in part.instructions):
        if of_shape is not None:
            is_there = any(of_shape.match(array.plain) for array in arrays(one.shape))
        else:
            is_there = fnmatchcase(text(one.opcode).removesuffix("-start"), what.removesuffix("-start"))
        names = (text(one.name), text(one.custom_call_target), text(one.metadata.op_name).rpartition("/")[2])
        if is_there and (name is None or any(fnmatchcase(each, name) for each in names)):
            found.append((text(one.name), module.source(one)))
    kept = not found if is_none else bool(getattr(operator, _COMPARED[sign or ">"])(len(found), int(number or 0)))
    shown = tuple(f"{name} ({at})" if at else name for name, at in found[:_MOST_SHOWN])
    return Expectation(expected, kept, len(found), shown)
