"""A buffer's figures and names in few cells, as all tables of buffers write them."""

from __future__ import annotations

from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.formats.hlo.shapes import Shape, parse_shape
from tpuprof.parsers.memory.model import CATEGORIES, Buffer, Category
from tpuprof.tui.draw.format import UNKNOWN, binary_size, count
from tpuprof.tui.draw.pen import Card
from tpuprof.tui.draw.spans import StyleKey

CATEGORY = "cat."  # heading of the column of categories
CATEGORY_WORDS = dict(zip(CATEGORIES, ("arg", "out", "thread", "const", "temp", "scoped"), strict=True))
"""Categories in a narrow column."""

WASTED, PADDED = 2.0, 1.1  # expansion from which on padding is bad, and from which on it is worth a look
_LAYOUT = pattern(r"\{[^{}]*\}")
_SHORT_SHAPE = 4096


def expansion_style(expansion: float | None) -> StyleKey:
    """How much attention an expansion by padding deserves."""
    if expansion is None:
        return "dim"
    return "bad" if expansion >= WASTED else "warn" if expansion >= PADDED else "dim"


def expansion_words(expansion: float | None) -> str:
    """``8.0x``; ``-`` for no padding worth naming."""
    if expansion is None or expansion < 1.005:
        return UNKNOWN if expansion is None else "-"
    return f"{expansion:.{int(expansion < 99.95)}f}x" if expansion < 999.5 else ">999x"


def short_shape(shape: str | None) -> str:
    """A shape without its layouts: ``f32[8,1024]``."""
    return _LAYOUT.sub("", shape[:_SHORT_SHAPE]) if shape else UNKNOWN


NAMED = 5  # callers, or buffers of a group, that a card names

CATEGORY_PHRASES: dict[Category, str] = {
    **dict(zip(CATEGORIES, CATEGORIES, strict=True)),
    **{"parameter": "argument of the program", "output": "output of the program"},
    "scoped": "scoped to one instruction",
}
"""Categories as a phrase, as all cards of buffers write them."""


def padding_words(shape: Shape) -> str | None:
    """Which dimensions a shape's tile makes longer: ``tile (8,128): 16 -> 128 in dimension 3``; None for none."""
    padded = shape.padded_dimensions
    if padded is None or not shape.tiles:
        return None
    changed = [
        f"dimension {dimension} from {count(size)} to {count(longer)}"
        for dimension, (size, longer) in enumerate(zip(shape.dimensions, padded, strict=True))
        if longer != size
    ]
    tile = f"tile ({','.join(map(str, shape.tiles[0]))})"
    if changed:
        return f"{tile} rounds up {' and '.join(changed)}"
    missing = len(shape.tiles[0]) - len(shape.dimensions)
    return f"{tile} has {counted(missing, 'more dimension')} than the array" if missing > 0 else None


def padding_entry(card: Card, buffer: Buffer, key: StyleKey) -> None:
    """What padding adds to a buffer that has some, and which dimensions are padded."""
    elements, expansion = binary_size(buffer.unpadded_bytes), expansion_words(buffer.expansion)
    card.entry("padding", f"{binary_size(buffer.padding_bytes)}: {elements} of elements take {expansion}", key)
    shape = parse_shape(buffer.shape) if buffer.shape else None
    card.known("", None if shape is None else padding_words(shape), key)


def alike_entry(card: Card, others: int, total_bytes: int, where: str, more: str = "") -> None:
    """How many other buffers have its shape, and what they take with it.

    Args:
        where: they are looked for.
        more: words before their number.
    """
    if not others:
        card.entry("alike", f"no other buffer of this shape {where}", "dim")
    else:
        words = f"{more}{counted(others, 'other')} of this shape {where}, {binary_size(total_bytes)} together"
        card.entry("alike", words)


def source_entry(card: Card, buffer: Buffer) -> None:
    """The line of code that a buffer comes from, and what called it."""
    if not buffer.source and not buffer.stack:
        return
    first = buffer.source or buffer.stack[0]
    card.entry("source", first)
    callers = [frame for frame in buffer.stack if frame.partition(" ")[0] != first]
    more = [f"and {len(callers) - NAMED} more"] if len(callers) > NAMED else []
    for place, frame in enumerate([*callers[:NAMED], *more]):
        card.entry("" if place else "called", frame, "dim")
