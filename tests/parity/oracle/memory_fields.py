"""XProf's memory viewer as fields, and our figures in its units."""

from __future__ import annotations

import re
from typing import Any

from tests.parity.oracle.fields import Value
from tpuprof.parsers.memory.model import Buffer, SpaceMemory

MIB = 2.0**20
SMALL_BYTES = 16 << 10
"""XProf adds up smaller buffers into one."""

Fields = dict[str, Value]

_GROUPS = {"parameter": "Parameter", "output": "Output", "constant": "Constant", "temporary": "Temporary"}
_SCALARS = (
    "moduleName",
    "entryComputationName",
    "peakHeapMib",
    "peakUnpaddedHeapMib",
    "peakHeapSizePosition",
    "totalBufferAllocationMib",
    "indefiniteBufferAllocationMib",
    "entryComputationParametersMib",
    "maybeLiveOutMib",
    "nonReusableMib",
    "maxScopedVmemAllocationMib",
    "maxScopedVmemInstructionName",
)
_TEXTS = ("moduleName", "entryComputationName", "maxScopedVmemInstructionName")


def their_fields(answer: Any) -> Fields:
    """Everything that XProf says but colors and the order of what it keeps in hash tables; a zero is left out there."""
    fields: Fields = {name: answer.get(name, "" if name in _TEXTS else 0) for name in _SCALARS}
    for name in ("heapSizes", "unpaddedHeapSizes", "hloInstructionNames"):
        fields |= {f"{name}/{at}": value for at, value in enumerate(answer.get(name, []))}
    for number, span in answer.get("logicalBufferSpans", {}).items():
        fields |= {f"span/{number}/{end}": span.get(end, 0) for end in ("start", "limit")}
    for heap in answer.get("maxHeap", []):
        fields |= _their_buffer(heap)
    fields |= {f"bySize/{at}": heap["logicalBufferSizeMib"] for at, heap in enumerate(answer.get("maxHeapBySize", []))}
    for lasting in answer.get("indefiniteLifetimes", []):
        fields |= _their_allocation(lasting)
    for block in answer.get("bufferBlocks", []):
        if int(block.get("logicalBufferId", 0)) >= 0:
            fields |= _their_block(block)
    return fields


def _their_buffer(heap: Any) -> Fields:
    number = int(heap.get("logicalBufferId", 0))
    if number < 0:
        return {"small": heap["logicalBufferSizeMib"], "small label": heap["label"]}
    source = heap.get("sourceInfo") or {}
    return {
        f"buffer/{number}/{name}": value
        for name, value in {
            "label": heap["label"],
            "size": heap["logicalBufferSizeMib"],
            "unpadded": heap.get("unpaddedShapeMib", 0),
            "name": heap["instructionName"],
            "shape": heap.get("shapeString", ""),
            "op": heap.get("tfOpName", ""),
            "group": heap["groupName"],
            "opcode": heap["opCode"],
            "source": f"{source['fileName']}:{source['lineNumber']}" if "fileName" in source else "",
            "stack": _without_columns(source.get("stackFrame", "")),
        }.items()
    }


def _without_columns(stack: str) -> str:
    """Each frame as ``file:line``."""
    return "\n".join(frame.rpartition(":")[0] for frame in stack.splitlines())


def _their_allocation(lasting: Any) -> Fields:
    """An allocation that is there throughout: what it is for, and of its logical buffers the first largest one."""
    attributes, buffers = lasting.get("attributes", []), lasting.get("logicalBuffers", [])
    category = "Output" if "may-be live out" in attributes else "Constant"
    fields: Fields = {
        "size": lasting.get("sizeMib", 0),
        "group": "Parameter" if "entry computation parameter" in attributes else category,
    }
    if buffers:
        largest = max(buffers, key=lambda buffer: float(buffer.get("sizeMib", 0)))
        index = ",".join(largest.get("shapeIndex", []))
        fields["buffer"] = f"{largest['hloName']}{{{index}}}" if index else largest["hloName"]
        fields["buffer id"] = int(largest.get("id", 0))
        fields["shape"] = re.sub(r"/\*index=\d+\*/", "", largest.get("shape", ""))
    return {f"allocation/{lasting.get('id', 0)}/{name}": value for name, value in fields.items()}


def _their_block(block: Any) -> Fields:
    number = int(block.get("logicalBufferId", 0))
    names = ("offset", "size", "startStep", "endStep", "unpaddedSize")
    texts = ("name", "tfOpName", "category", "shapeString")
    values = {name: block.get(name, 0) for name in names} | {name: block.get(name, "") for name in texts}
    return {f"block/{number}/{name}": value for name, value in values.items()}


def our_fields(memory: SpaceMemory, point: int) -> Fields:
    """The same of ours; the buffers are those in memory at a point."""
    rows = [memory.buffers[row] for row in range(len(memory.live_ranges))]
    lasting = [buffer for buffer in rows if buffer.category != "temporary"]
    padding = sum(buffer.padding_bytes or 0 for buffer in lasting)  # which XProf counts as elements
    events = len(memory.instructions)
    whole = sum(buffer.size_bytes for buffer in lasting)
    fields: Fields = {
        "moduleName": memory.module.name,
        "entryComputationName": None,
        "peakHeapMib": memory.peak_bytes / MIB,
        "peakUnpaddedHeapMib": None
        if memory.peak_unpadded_bytes is None
        else (memory.peak_unpadded_bytes + padding) / MIB,
        "peakHeapSizePosition": max(0, memory.peak_position - 1),
        "totalBufferAllocationMib": memory.total_allocation_bytes / MIB,
        "indefiniteBufferAllocationMib": whole / MIB,
        "entryComputationParametersMib": memory.arguments_bytes / MIB,
        "maybeLiveOutMib": memory.outputs_bytes / MIB,
        "nonReusableMib": None,
        "maxScopedVmemAllocationMib": (memory.scoped_bytes or 0) / MIB,
        "maxScopedVmemInstructionName": memory.scoped_instruction or "",
    }
    fields |= {f"heapSizes/{at}": size / MIB for at, size in enumerate(memory.heap_bytes.tolist())}
    for at, size in enumerate(memory.heap_unpadded_bytes.tolist()):
        fields[f"unpaddedHeapSizes/{at}"] = (size + padding) / MIB
    fields |= {f"hloInstructionNames/{at}": name for at, name in enumerate((*memory.instructions, ""))}
    fields |= our_heap([memory.buffers[row] for row in memory.at(point).tolist()])
    for row, buffer in enumerate(rows):
        if buffer.category != "temporary":
            fields |= _our_allocation(int(memory.live_ranges.allocation[row]), buffer)
        elif f"span/{buffer.logical_buffer}/start" not in fields:
            fields |= _our_span(buffer, events)
    return fields


def our_heap(rows: list[Buffer]) -> Fields:
    """The buffers at a point as XProf lists them."""
    fields: Fields = {}
    for buffer in rows:
        if buffer.size_bytes >= SMALL_BYTES:
            fields |= {f"buffer/{buffer.logical_buffer}/{name}": value for name, value in _our_buffer(buffer).items()}
    small = sum(buffer.size_bytes for buffer in rows if buffer.size_bytes < SMALL_BYTES) / MIB
    sizes = [buffer.size_bytes / MIB for buffer in rows if buffer.size_bytes >= SMALL_BYTES]
    sizes = sorted([*sizes, *([small] if small else [])], reverse=True)
    fields |= {f"bySize/{at}": size for at, size in enumerate(sizes)}
    return fields | {"small": small, "small label": f"small (<{SMALL_BYTES} bytes)"}


def _our_buffer(buffer: Buffer) -> Fields:
    instruction = buffer.name.partition("{")[0]
    return {
        "label": f"{instruction}: {buffer.shape} # {buffer.framework_op or ''}",
        "size": buffer.size_bytes / MIB,
        "unpadded": None if buffer.unpadded_bytes is None else buffer.unpadded_bytes / MIB,
        "name": buffer.name,
        "shape": buffer.shape,
        "op": buffer.framework_op or "",
        "group": _GROUPS[buffer.category],
        "opcode": buffer.opcode,
        "source": buffer.source or "",
        "stack": "\n".join(re.sub(r"(:[0-9]+) .*", r"\1", frame) for frame in buffer.stack),
    }


def _our_allocation(index: int, buffer: Buffer) -> Fields:
    fields: Fields = {
        "size": buffer.size_bytes / MIB,
        "group": _GROUPS[buffer.category],
        "shape": buffer.shape,
        "buffer": buffer.name,
        "buffer id": buffer.logical_buffer,
    }
    return {f"allocation/{index}/{name}": value for name, value in fields.items()}


def _our_span(buffer: Buffer, events: int) -> Fields:
    """Events instead of points; XProf lets what is never freed end with the last event."""
    number = buffer.logical_buffer
    begin, end = (buffer.born or 0) - 1, min((buffer.dies or 0), events) - 1
    block: Fields = {
        "offset": buffer.offset_bytes,
        "size": buffer.size_bytes,
        "startStep": begin,
        "endStep": end,
        "unpaddedSize": buffer.unpadded_bytes,
        "name": buffer.name,
        "tfOpName": buffer.framework_op or "",
        "category": _GROUPS[buffer.category],
        "shapeString": buffer.shape,
    }
    return {f"span/{number}/start": begin, f"span/{number}/limit": end} | {
        f"block/{number}/{name}": value for name, value in block.items()
    }
