"""The keys that a buffer has in JSON wherever it comes from, a compiled module or the text of an error."""

from __future__ import annotations

from tpuprof.parsers.memory.model import Buffer


def shared_record(buffer: Buffer) -> dict[str, object]:
    """A buffer with the keys of every document."""
    return {
        "name": buffer.name,
        "category": buffer.category,
        "size_bytes": buffer.size_bytes,
        "unpadded_bytes": buffer.unpadded_bytes,
        "expansion": buffer.expansion,
        "padding_bytes": buffer.padding_bytes,
        "shape": buffer.shape,
        "framework_op": buffer.framework_op,
        "source": buffer.source,
        "allocation_type": buffer.allocation_type,
        "offset_bytes": buffer.offset_bytes,
        "born": buffer.born,
        "dies": buffer.dies,
        "at_peak": buffer.at_peak,
    }
