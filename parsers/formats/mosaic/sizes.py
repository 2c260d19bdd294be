"""How many bytes an array takes in a TPU's VMEM: padded to registers of 128 lanes, and rows by eights."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.mosaic.entries import Shaped

LANES = 128
_ROWS = 8
_WIDTH = pattern(r"(?:bf|f|[su]?i|index)([0-9]{1,4})?")
_LIMIT = 1 << 62


def element_bits(element: str) -> int | None:
    """Bits of a number by its type, ``bf16``, ``f8E4M3FN``, ``i4``; None for what is not a number."""
    found = _WIDTH.match(element)
    if found is None:
        return None
    return int(found.group(1)) if found.group(1) else 32 if element == "index" else None


def elements(dimensions: Sequence[int]) -> int | None:
    """How many numbers an array has; None where a dimension is not known before the program runs, and negative."""
    return prod(dimensions) if all(size >= 0 for size in dimensions) else None


def unpadded_bytes(dimensions: tuple[int, ...], element: str) -> int | None:
    """Bytes of the numbers alone; None where a dimension or the type is not known."""
    bits, count = element_bits(element), elements(dimensions)
    return (count * bits + 7) // 8 if bits is not None and count is not None and count < _LIMIT else None


def vmem_bytes(dimensions: tuple[int, ...], element: str) -> int | None:
    """Bytes in VMEM: rows padded to a power of two, or to a multiple of eight from there on, and columns to 128.

    Numbers that share a row of 32 bits take at least a whole one. A list is laid out as rows of 128. This is how
    Mosaic lays out the arguments of a kernel since TPU v4 (`infer_memref_layout.cc`).
    """
    bits = element_bits(element)
    if not bits or elements(dimensions) is None:
        return None
    size = dimensions[-1] if dimensions else 1
    rows = dimensions[-2] if len(dimensions) > 1 else -(-size // LANES)
    columns = -(-size // LANES) * LANES if len(dimensions) > 1 else LANES
    tile = min(_ROWS, 1 << max(rows - 1, 0).bit_length())
    tile = max(tile, min(32 // bits, _ROWS) if bits < 32 else 1)
    return unpadded_bytes((*dimensions[:-2], -(-rows // tile) * tile, columns), element)


def bytes_of(shape: Shaped) -> int | None:
    """Bytes of an array where it lies: padded in VMEM, else the numbers alone."""
    padded = shape.space == "vmem"
    return (vmem_bytes if padded else unpadded_bytes)(shape.dimensions, shape.element)
