"""Small expectations of a compiled program: ``no f32[8192,*]``, ``custom-call splash*``, ``while = 1``."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase, translate
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.modules import HloModule, is_kernel
from tpuprof.parsers.formats.hlo.shapes import parse_shape
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.pages.program.facts import arrays, donated, is_remat
from tpuprof.parsers.pages.program.programs import CompiledProgram

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

_EXPECTED = pattern(r"(no )?\s*([\w*?\[\],.-]+)(?:\s+([^\s=<>!]+))?\s*(?:(=|<=|>=|<|>|!=)\s*(\d{1,9}))?")
_COMPARED = dict(zip(("=", "<", ">", "<=", ">=", "!="), ["eq", "lt", "gt", "le", "ge", "ne"], strict=True))
_MOST_SHOWN = 5
_DONATED, _REMAT, _KERNEL, _PRODUCTS = "donated", "remat", "kernel", ("dot", "convolution")
_GRAMMAR = (
    "an array, an opcode, the name of an instruction, kernel, remat or donated, with no before it, or behind it a "
    'pattern of names or types and a count: "no f32[8192,*]", "custom-call splash*", "dot bf16*", "while = 1"'
)
_OPCODE = pattern(
    r"abs|acos|acosh|add|add-dependency|after-all|all-gather|all-reduce|all-to-all|and|asin|asinh|async-done|"
    r"async-start|async-update|atan2|atanh|batch-norm-grad|batch-norm-inference|batch-norm-training|bitcast|"
    r"bitcast-convert|broadcast|call|cbrt|ceil|cholesky|clamp|clz|collective-broadcast|collective-permute|compare|"
    r"complex|concatenate|conditional|constant|convert|convolution|copy|copy-done|copy-start|cos|cosh|cosine|"
    r"count-leading-zeros|custom-call|divide|domain|dot|dynamic-reshape|dynamic-slice|dynamic-update-slice|erf|"
    r"exponential|exponential-minus-one|fft|floor|fusion|gather|get-dimension-size|get-tuple-element|imag|infeed|iota|"
    r"is-finite|log|log-plus-one|logistic|map|maximum|minimum|multiply|negate|not|opt-barrier|optimization-barrier|or|"
    r"outfeed|pad|parameter|partition-id|popcnt|power|ragged-all-to-all|ragged-dot|real|recv|recv-done|reduce|"
    r"reduce-precision|reduce-scatter|reduce-window|remainder|replica-id|reshape|reverse|rng|rng-bit-generator|"
    r"rng-get-and-update-state|round-nearest-afz|round-nearest-even|rsqrt|scaled-dot|scan|scatter|select|"
    r"select-and-scatter|send|send-done|set-dimension-size|shift-left|shift-right-arithmetic|shift-right-logical|sign|"
    r"sine|sinh|slice|sort|sqrt|stochastic-convert|subtract|tan|tanh|topk|transpose|triangular-solve|tuple|while|xor"
)


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expectation and what came of it.

    Attributes:
        expected: as it was written.
        is_kept: whether the programs are so.
        count: how many instructions match.
        evidence: some of them, ``name (file:line)``; those whose source line is known come first.
    """

    expected: str
    is_kept: bool
    count: int
    evidence: tuple[str, ...]


def check_expectation(programs: Sequence[CompiledProgram], expected: str) -> Expectation:
    """Looks whether an expectation holds: there is none, at least one, or so many of what it names.

    It names arrays, ``f32[8192,*]``, or an opcode with or without a pattern of names: of the instruction, of what a
    custom call calls, of where it comes from, or of an array that it takes or makes. ``dot`` and ``convolution`` are
    one, as TPU compilers write both so. An asynchronous instruction counts where it starts. A word that is no opcode is
    refused: of a slip of the pen there is always none.

    Raises:
        ProfileError: it can't be read as one; exit code 2.
    """
    match = _EXPECTED.fullmatch(expected.strip())
    if match is None or (match[1] and match[4]) or not _is_known(match[2]):
        raise ProfileError("usage", f"{printable(expected)} is no expectation.", _GRAMMAR, EXIT_USAGE)
    is_none, what, name, sign, number = match.groups()
    of_shape = re.compile(translate(what.replace("[", "[[]").replace(",", "[,]"))) if "[" in what else None
    found = []
    every = ((each.module, part) for each in programs for part in each.module.proto.hlo_module.computations)
    for module, one in ((module, one) for module, part in every for one in part.instructions):
        if of_shape is not None:
            is_there = any(of_shape.match(array.plain) for array in arrays(one.shape))
        else:
            is_there = _is_one(one, what)
        if is_there and (name is None or any(fnmatchcase(each, name) for each in _names(module, one))):
            found.append((text(one.name), module.source(one)))
    if what == _DONATED:
        found = [(f"argument {at}", None) for each in programs for at in donated(each.module)]
    kept = not found if is_none else bool(getattr(operator, _COMPARED[sign or ">"])(len(found), int(number or 0)))
    found.sort(key=lambda each: each[1] is None)  # what names a line of the source says most
    shown = tuple(f"{name} ({at})" if at else name for name, at in found[:_MOST_SHOWN])
    return Expectation(expected, kept, len(found), shown)


def _is_known(what: str) -> bool:
    """Whether something of that name can be in a program."""
    if "[" in what:
        kind = what.partition("[")[0]
        return not kind.isalnum() or parse_shape(f"{kind}[]") is not None
    word = what.removesuffix("-start").removesuffix("-done")
    is_opcode = _OPCODE.fullmatch(word) is not None
    return is_opcode or word in (_DONATED, _REMAT, _KERNEL) or any(sign in word for sign in "*?.")


def _is_one(proto: hlo_pb2.HloInstructionProto, what: str) -> bool:
    """Whether an instruction is of an opcode, or has a name with a point in it."""
    if what in (_REMAT, _KERNEL):
        return is_remat(proto) if what == _REMAT else is_kernel(proto)
    opcode, wanted = text(proto.opcode).removesuffix("-start"), what.removesuffix("-start")
    products = _PRODUCTS if wanted in _PRODUCTS else (wanted,)
    return any(fnmatchcase(opcode, each) for each in products) or ("." in what and fnmatchcase(text(proto.name), what))


def _names(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> Iterator[str]:
    """What a pattern of names may match."""
    yield from (text(proto.name), text(proto.custom_call_target), text(proto.metadata.op_name).rpartition("/")[2])
    yield from (array.plain for one in (proto, *module.operand_protos(proto)) if one for array in arrays(one.shape))
