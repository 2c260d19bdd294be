"""Words of advice: sizes in binary units, products of dimensions, names, and what buffers are, lists with an end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.words import BINARY_UNITS, binary_parts
from tpuprof.parsers.formats.hlo.shapes import plain_shape
from tpuprof.parsers.memory.account.roles import BufferFacts

_LONGEST_NAME, _MOST_SHAPES = 48, 3
_LIMIT = 1 << 80  # sizes beyond it are nonsense, and too large for a float


def amount(size: int) -> str:
    """A size with three digits: ``12.1 GiB``, ``470 MiB``, ``512 B``."""
    return " ".join(binary_parts(max(-_LIMIT, min(size, _LIMIT))))


def capacity(size: int) -> str:
    """What there is of a memory, to be compared with: two decimals unless they are zero, ``15.75 GiB``, ``128 MiB``."""
    size = max(-_LIMIT, min(size, _LIMIT))
    factor, unit = next((pair for pair in BINARY_UNITS if abs(size) >= pair[0]), (1, "B"))
    return f"{size / factor:.2f}".rstrip("0").rstrip(".") + f" {unit}"


def product(dims: Sequence[int], element_bytes: float) -> str:
    """``64 x 4 x 2048 x 2048 x 4 B``; half bytes as ``0.5 B``."""
    return " x ".join([*map(str, dims), f"{element_bytes:g} B"])


def sum_of_sizes(sizes: Iterable[int]) -> str:
    """``3 x 4.00 GiB``, ``7.81 + 3.91 GiB`` in the unit of the largest, of many the largest four and the rest."""
    values = sorted(sizes, reverse=True)
    if not values or values[0] == values[-1]:
        return repeated(len(values), amount(values[0])) if values else "0 B"
    shown = values if len(values) <= 5 else values[:3]
    rest = [] if len(values) <= 5 else [f"{len(values) - 3} more"]
    return " + ".join([*map(amount, shown), *rest])


def short_name(name: str) -> str:
    """A name from a file, fit to print: where it is long, its end, which says more than its beginning."""
    text = printable(name)
    return text if len(text) <= _LONGEST_NAME else "..." + text[3 - _LONGEST_NAME :]


def listed_names(names: Sequence[str], most: int = 3) -> str:
    """``layer_0, layer_1 and 4 more``: different names in their order."""
    different = list(dict.fromkeys(short_name(name) for name in names if name))
    rest = len(different) - most
    if rest == 1:  # the last name takes no more room than "and 1 more"
        most, rest = most + 1, 0
    return ", ".join(different[:most]) + (f" and {rest} more" if rest > 0 else "")


def repeated(count: int, noun: str) -> str:
    """``3 x f32[8,8]``; the noun alone for one."""
    return noun if count == 1 else f"{count} x {noun}"


def ratio(whole: int, part: int) -> str:
    """``3.1x``: how often `part` goes into `whole`."""
    value = min(whole, _LIMIT) / min(part, _LIMIT) if part else math.inf
    return f"{value:.1f}x" if value < 99.95 else f"{value:,.0f}x"


def size_of(items: Sequence[BufferFacts]) -> int:
    """Bytes of them all."""
    return sum(item.size for item in items)


def in_buffers(items: Sequence[BufferFacts]) -> str:
    """``281 MiB in 12 buffers``."""
    return f"{amount(size_of(items))} in {len(items)} buffer{'s' * (len(items) != 1)}"


def shape_of(item: BufferFacts) -> str:
    """``f32[64,4,2048,2048]``; the buffer's name where the shape is unknown."""
    return plain_shape(item.element, item.whole_dims) if item.element else short_name(item.buffer.name)


def shapes_of(items: Sequence[BufferFacts]) -> str:
    """``3 x f32[64,4,2048,2048], bf16[64,2047,16000] and 4 more``: by bytes, the largest first."""
    sizes = grouped((shape_of(item), item.size) for item in items)
    ordered = sorted(sizes, key=lambda shape: -sum(sizes[shape]))
    shown = [repeated(len(sizes[shape]), shape) for shape in ordered[:_MOST_SHAPES]]
    rest = sum(len(sizes[shape]) for shape in ordered[_MOST_SHAPES:])
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def summed(items: Sequence[BufferFacts]) -> str:
    """``3 x 4.00 GiB = 12.0 GiB``; of one buffer its shape and size."""
    if len(items) == 1:
        return f"{shape_of(items[0])} = {amount(items[0].size)}"
    return f"{sum_of_sizes(item.size for item in items)} = {amount(size_of(items))}"
