"""A whole module out of its HLO text, ``….after_optimizations.txt``, where no proto of it is there.

`parsers.formats.hlo.texts` reads what memory is made of; this reads every instruction with what it takes and calls, as
an `HloProto` without buffers. A line that it does not know it passes over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.texts import TextTables, read_instruction
from tpuprof.parsers.formats.proto import hlo_pb2

COMPUTATION = pattern(r"(ENTRY )?%?([^\s(=]+) (?:\(.*\) -> .*)?\{\s*$")
INSTRUCTION = pattern(r"\s+(ROOT )?%?([^\s=%{(]+) = (.*)", re.DOTALL)
_OPERAND = pattern(r"%?([^\s%()]+)$")
_CALLED = pattern(
    r"[ ,](calls|to_apply|body|condition|true_computation|false_computation|branch_computations|called_computations)="
    r"(?:\{([^{}]*)\}|%?([^\s,{}]+))"
)
_CONTROLS = pattern(r"control-predecessors=\{([^{}]*)\}")
_NUMBER = pattern(r" (index|channel_id|feature_group_count|batch_group_count)=(\d{1,9})")
_TARGET = pattern(r'custom_call_target="([^"]{0,4096})"')
_THREAD = pattern(r' async_execution_thread="([^"]{0,64})"')
_PRECISION = pattern(r" operand_precision=\{((?:(?:default|high|highest),?){1,8})\}")
_DIRECTION = pattern(r" direction=([A-Z]{2})")
_GROUPS = pattern(r" replica_groups=\{((?:\{[0-9,]*\},?)*)\}")
_KIND = pattern(r" kind=(k\w{1,30})")
_DIMENSIONS = pattern(r" dimensions=\{([0-9,]{0,2048})\}")
_ALIAS = pattern(r"\{[0-9, ]{0,99}\}: \((\d{1,9}), ")
_COMMENT = pattern(r"/\*index=\d{1,9}\*/")
_WINDOW = pattern(r" window=\{([^{}]{0,4096})\}")
_SIZES = pattern(r"(size|stride|pad|lhs_dilate|rhs_dilate)=((?:-?\d{1,12}[_x]?)+)(?= |$)")
_LABELS = pattern(r" dim_labels=([0-9a-z?]{1,64})_([0-9a-z?]{1,64})->([0-9a-z?]{1,64})")
_CONTRACTED = pattern(r" ((?:lhs|rhs)_(?:contracting|batch)_dim)s=\{((?:\d{1,9},?){0,64})\}")
_METADATA = pattern(r", (?:metadata|backend_config|frontend_attributes)=")
_LITERAL = pattern(r"-?\d{1,18}")
_PRECISIONS = ("default", "high", "highest")
_INT64 = (4, 5, 8, 9)  # S32, S64, U32, U64
_BRACKET, _MARK = pattern(r'[()"]'), pattern(r"[(){}\[\],]")
_ORDER = ("body", "condition")
_WINDOW_FIELDS = {
    "size": ("size",),
    "stride": ("stride",),
    "pad": ("padding_low", "padding_high"),
    "lhs_dilate": ("base_dilation",),
    "rhs_dilate": ("window_dilation",),
}


def read_module_text(name: str, lines: Iterable[str]) -> hlo_pb2.HloProto:
    """The module that a text describes; never raises.

    What an instruction takes and calls stands before it in every text that XLA writes, so that nothing has to wait for
    the rest of a text, which may have a million lines.

    Args:
        name: of the module, where the text does not say it.
    """
    proto, tables, is_scheduled = hlo_pb2.HloProto(), TextTables(), False
    module = proto.hlo_module
    ids: dict[str, int] = {}
    computations: dict[str, int] = {}
    fused = set[int]()
    computation: hlo_pb2.HloComputationProto | None = None
    for line in lines:
        if computation is None:
            is_scheduled = (line.startswith("HloModule ") and _read_head(module, line)) or is_scheduled
            if match := COMPUTATION.match(line):
                computation = module.computations.add(id=len(computations) + 1, name=_bytes(match[2]))
                computations.setdefault(match[2], computation.id)
                if match[1]:
                    module.entry_computation_id = computation.id
            else:
                tables.take(line.rstrip("\n"))
        elif line.startswith("}"):
            computation = None
        elif match := INSTRUCTION.match(line):
            made = computation.instructions.add()
            operands, rest = _read(made, _COMMENT.sub("", match[3]) if "/*" in match[3] else match[3])
            made.id, made.name = len(ids) + 1, _bytes(match[2])
            ids.setdefault(match[2], made.id)
            computation.root_id = made.id if match[1] or not computation.root_id else computation.root_id
            controls = _names(found[1]) if (found := _CONTROLS.search(rest)) else []
            called = [computations[each] for each in _called(rest) if each in computations]
            made.operand_ids.extend(ids.get(each, 0) for each in operands)
            made.called_computation_ids.extend(called)
            made.control_predecessor_ids.extend(ids[each] for each in controls if each in ids)
            fused.update(called if made.opcode == b"fusion" else ())
    for one in module.computations if is_scheduled else ():
        if one.id in fused:
            continue  # a fusion's inside has no order of its own
        module.schedule.sequences[one.id].instruction_ids.extend(each.id for each in one.instructions)
    module.name = _bytes(tables.name or name)
    module.stack_frame_index.CopyFrom(tables.frames)
    return proto


def _read_head(module: hlo_pb2.HloModuleProto, line: str) -> bool:
    """Fills in which arguments are donated, by the module's first line; returns whether its order is the schedule."""
    for number in _ALIAS.findall(line.partition(" input_output_alias={")[2]):
        module.input_output_alias.entries.add(parameter_number=int(number))
    return " is_scheduled=true" in line


def _read(made: hlo_pb2.HloInstructionProto, line: str) -> tuple[list[str], str]:
    """Fills an instruction with what stands behind ``name =``; the names of its operands, and the attributes."""
    opcode_end = read_instruction(line, made)
    if opcode_end is None:
        return [], ""
    inside, end = _brackets(line, opcode_end)
    opcode, rest = made.opcode, line[end:]
    cut = _METADATA.search(rest)
    rest = rest[: cut.start()] if cut else rest
    _read_attributes(made, rest)
    if opcode == b"parameter":
        made.parameter_number = int(inside) if inside.isdecimal() and len(inside) < 10 else 0
        return [], rest
    if opcode == b"constant":
        if _LITERAL.fullmatch(inside) and made.shape.element_type in _INT64 and not made.shape.dimensions:
            made.literal.s64s.append(int(inside))
        return [], rest
    operands = [match[1] for part in _parts(inside) if (match := _OPERAND.search(part.strip()))]
    return operands, rest


def _read_attributes(made: hlo_pb2.HloInstructionProto, rest: str) -> None:
    """Fills in what stands behind the operands, as far as it is read here."""
    for key, number in _NUMBER.findall(rest):
        setattr(made, "tuple_index" if key == "index" else key, int(number))
    for field, expression in (
        ("custom_call_target", _TARGET),
        ("fusion_kind", _KIND),
        ("async_execution_thread", _THREAD),
        ("comparison_direction", _DIRECTION),
    ):
        if match := expression.search(rest):
            setattr(made, field, _bytes(match[1]))
    if match := _DIMENSIONS.search(rest):
        made.dimensions.extend(int(one) for one in match[1].split(",") if one)
    if made.opcode in (b"convolution", b"dot"):
        _read_product(made, rest)
    if match := _GROUPS.search(rest):
        for group in re.findall(r"[0-9,]+", match[1].replace("},{", "} {")):
            made.replica_groups.add(replica_ids=[int(one) for one in group.split(",") if one])


def _read_product(made: hlo_pb2.HloInstructionProto, rest: str) -> None:
    """Fills in the window and the dimensions of a matrix product."""
    for key, listed in _CONTRACTED.findall(rest):
        getattr(made.dot_dimension_numbers, f"{key}ensions").extend(int(one) for one in listed.split(",") if one)
    if precision := _PRECISION.search(rest):
        made.precision_config.operand_precision.extend(map(_PRECISIONS.index, precision[1].split(",")))
    window = _WINDOW.search(rest)
    for key, sizes in _SIZES.findall(window[1]) if window else ():
        for place, size in enumerate(sizes.split("x")):
            if len(made.window.dimensions) <= place:
                made.window.dimensions.add(size=1, stride=1, window_dilation=1, base_dilation=1)
            for field, number in zip(_WINDOW_FIELDS[key], size.split("_"), strict=False):
                setattr(made.window.dimensions[place], field, int(number))
    if labels := _LABELS.search(rest):
        numbers, (left, right, out) = made.convolution_dimension_numbers, labels.groups()
        numbers.input_batch_dimension, numbers.input_feature_dimension = left.find("b"), left.find("f")
        numbers.kernel_input_feature_dimension = right.find("i")
        numbers.kernel_output_feature_dimension = right.find("o")
        numbers.output_batch_dimension, numbers.output_feature_dimension = out.find("b"), out.find("f")
        numbers.input_spatial_dimensions.extend(left.index(sign) for sign in sorted(left) if sign.isdigit())
        numbers.kernel_spatial_dimensions.extend(right.index(sign) for sign in sorted(right) if sign.isdigit())
        numbers.output_spatial_dimensions.extend(out.index(sign) for sign in sorted(out) if sign.isdigit())


def _brackets(line: str, begin: int) -> tuple[str, int]:
    """What stands in the brackets that open at a place, and where they end; texts in quotes are passed over."""
    depth, quoted = 0, False
    for match in _BRACKET.finditer(line, begin):
        sign = match[0]
        if sign == '"':
            quoted = not quoted
        elif not quoted:
            depth += 1 if sign == "(" else -1
            if not depth:
                return line[begin + 1 : match.start()], match.end()
    return "", len(line)


def _parts(text: str) -> Iterable[str]:
    """What stands between the commas that are in no brackets."""
    depth, begin = 0, 0
    for match in _MARK.finditer(text):
        sign = match[0]
        if sign in "({[":
            depth += 1
        elif sign in ")}]":
            depth -= 1
        elif not depth:
            yield text[begin : match.start()]
            begin = match.end()
    yield text[begin:]


def _called(rest: str) -> list[str]:
    """Names of the computations that an instruction calls, a loop's body before its condition."""
    found = [(key, _names(several) if several else [one]) for key, several, one in _CALLED.findall(rest)]
    found.sort(key=lambda pair: _ORDER.index(pair[0]) if pair[0] in _ORDER else 0)
    return [name for _, names in found for name in names]


def _names(text: str) -> list[str]:
    return [part.strip().removeprefix("%") for part in text.split(",") if part.strip()]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
