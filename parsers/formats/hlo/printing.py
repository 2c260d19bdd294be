"""A computation as HLO text, line by line, as far as the module's proto is read here.

It is text to read: attributes that this project does not decode are left out, and so are the values of large constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.graph import HloGraph
from tpuprof.parsers.formats.hlo.modules import braces, literal
from tpuprof.parsers.formats.hlo.shapes import shape_text
from tpuprof.parsers.formats.xspace.walk import text

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

_CALLS = {
    "while": ("body", "condition"),
    "conditional": (),
    **dict.fromkeys(("fusion", "async-start", "async-update", "async-done"), ("calls",)),
}
_TO_APPLY = "to_apply"
_MOST_GROUPS = 64
_LAYOUT = pattern(r"\{[^{}]*\}")


def module_lines(graph: HloGraph) -> Iterator[str]:
    """The whole module, the program's own computation last, as XLA prints it."""
    scheduled = ", is_scheduled=true" if graph.is_scheduled else ""
    yield f"HloModule {graph.module.name}{scheduled}"
    numbers = [number for number in range(graph.computation_count) if number != graph.entry]
    for number in (*numbers, graph.entry):
        yield ""
        yield from computation_lines(graph, number)


def computation_lines(graph: HloGraph, number: int) -> Iterator[str]:
    """A computation: its head, an instruction a line in the order in which they run, and the closing brace."""
    yield head_line(graph, number)
    for row in graph.rows(number):
        yield f"  {instruction_line(graph, row)}"
    yield "}"


def head_line(graph: HloGraph, number: int) -> str:
    """The head of a computation with the shapes of its parameters and result, without layouts."""
    parameters = []
    index = 0
    while (row := graph.parameter(number, index)) is not None:
        parameters.append(f"{graph.name(row)}: {_without_layout(graph.proto(row).shape)}")
        index += 1
    root = int(graph.root[number])
    result = _without_layout(graph.proto(root).shape) if root >= 0 else "()"
    entry = "ENTRY " if number == graph.entry else ""
    return f"{entry}%{graph.computation_name(number)} ({', '.join(parameters)}) -> {result} {{"


def instruction_line(graph: HloGraph, row: int) -> str:
    """An instruction: name, shape with layout, opcode, operands and attributes."""
    proto = graph.proto(row)
    root = "ROOT " if row == int(graph.root[graph.computation(row)]) else ""
    operands = ", ".join(f"%{graph.name(each)}" if each >= 0 else "?" for each in graph.operands[row].tolist())
    shown = f"{shape_text(proto.shape)} {text(proto.opcode)}({operands or literal(proto)})"
    attributes = "".join(f", {one}" for one in _attributes(graph, row, proto))
    return f"{root}%{text(proto.name)} = {shown}{attributes}"


def _attributes(graph: HloGraph, row: int, proto: hlo_pb2.HloInstructionProto) -> Iterator[str]:
    """The attributes of an instruction, in XLA's words."""
    opcode = text(proto.opcode)
    yield from _of_shapes(proto, opcode)
    if opcode == "dot":
        yield from _of_dot(proto.dot_dimension_numbers)
    if proto.fusion_kind:
        yield f"kind={text(proto.fusion_kind)}"
    yield from _of_collective(proto)
    yield from _called(graph, row, opcode)
    if proto.custom_call_target:
        yield f'custom_call_target="{text(proto.custom_call_target)}"'
    controls = [graph.name(each) for each in graph.controls[row].tolist() if each >= 0]
    if controls:
        yield f"control-predecessors={{{', '.join(f'%{name}' for name in controls)}}}"
    yield from _metadata(graph, proto)


def _of_shapes(proto: hlo_pb2.HloInstructionProto, opcode: str) -> Iterator[str]:
    """Dimensions, slices, indices and windows."""
    if proto.dimensions or opcode in ("broadcast", "concatenate", "reduce", "reverse", "transpose"):
        yield f"dimensions={braces(proto.dimensions)}"
    if proto.slice_dimensions:
        parts = (f"[{one.start}:{one.limit}" + f":{one.stride}]".replace(":1]", "]") for one in proto.slice_dimensions)
        yield f"slice={{{', '.join(parts)}}}"
    if proto.dynamic_slice_sizes:
        yield f"dynamic_slice_sizes={braces(proto.dynamic_slice_sizes)}"
    if opcode == "get-tuple-element":
        yield f"index={proto.tuple_index}"
    if proto.comparison_direction:
        yield f"direction={text(proto.comparison_direction)}"
    if proto.HasField("window"):
        yield from _window(proto.window)


def _of_dot(numbers: hlo_pb2.DotDimensionNumbers) -> Iterator[str]:
    for side, batch, contracting in (
        ("lhs", numbers.lhs_batch_dimensions, numbers.lhs_contracting_dimensions),
        ("rhs", numbers.rhs_batch_dimensions, numbers.rhs_contracting_dimensions),
    ):
        yield from [f"{side}_batch_dims={braces(batch)}"] if batch else []
        yield f"{side}_contracting_dims={braces(contracting)}"


def _of_collective(proto: hlo_pb2.HloInstructionProto) -> Iterator[str]:
    """Channel, and who takes part."""
    if proto.channel_id:
        yield f"channel_id={proto.channel_id}"
    groups = proto.replica_groups or proto.collective_device_list.replica_groups
    if groups:
        yield f"replica_groups={{{','.join(braces(group.replica_ids) for group in groups[:_MOST_GROUPS])}}}"
    elif proto.HasField("iota_collective_device_list"):
        iota = proto.iota_collective_device_list
        over = ",".join(map(str, iota.iota_reshape_dims))
        turned = f"T({','.join(map(str, iota.iota_transpose_perm))})" if iota.iota_transpose_perm else ""
        yield f"replica_groups=[{iota.num_replica_groups},{iota.num_devices_per_group}]<=[{over}]{turned}"
    if proto.source_target_pairs:
        pairs = (f"{{{pair.source},{pair.target}}}" for pair in proto.source_target_pairs[:_MOST_GROUPS])
        yield f"source_target_pairs={{{','.join(pairs)}}}"
    if proto.is_host_transfer:
        yield "is_host_transfer=true"


def _called(graph: HloGraph, row: int, opcode: str) -> Iterator[str]:
    names = [f"%{graph.computation_name(number)}" for number in graph.called[row].tolist() if number >= 0]
    if opcode == "conditional":
        yield f"branch_computations={{{', '.join(names)}}}"
    elif opcode == "custom-call" and names:
        yield f"called_computations={{{', '.join(names)}}}"
    else:
        keys = _CALLS.get(opcode, (_TO_APPLY,))
        yield from (f"{key}={name}" for key, name in sorted(zip(keys, names, strict=False), reverse=True))


def _window(window: hlo_pb2.Window) -> Iterator[str]:
    sizes = window.dimensions
    if sizes:
        words = [f"size={'x'.join(str(one.size) for one in sizes)}"]
        if any(one.stride != 1 for one in sizes):
            words.append(f"stride={'x'.join(str(one.stride) for one in sizes)}")
        if any(one.padding_low or one.padding_high for one in sizes):
            words.append(f"pad={'x'.join(f'{one.padding_low}_{one.padding_high}' for one in sizes)}")
        yield f"window={{{' '.join(words)}}}"


def _metadata(graph: HloGraph, proto: hlo_pb2.HloInstructionProto) -> Iterator[str]:
    source = graph.module.source(proto)
    words = [f'op_name="{text(proto.metadata.op_name)}"'] if proto.metadata.op_name else []
    words += [f'source="{source}"'] if source else []
    if words:
        yield f"metadata={{{' '.join(words)}}}"


def _without_layout(proto: hlo_pb2.ShapeProto) -> str:
    return _LAYOUT.sub("", shape_text(proto))
