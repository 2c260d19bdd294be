"""What a change leaves of each buffer, and an `Advice` with the saving that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpuprof.parsers.memory.oom.advice.roles import Facts, Item
from tpuprof.parsers.memory.oom.advice.words import amount, short_name, short_shape, times, total
from tpuprof.parsers.memory.oom.model import Advice, AdviceKind

Cuts = Mapping[int, int]
"""Index of a buffer to the bytes that are left of it, at most its size; a buffer that is not in it stays."""

LEAST_SHARE = 0.01
"""Share of the need below which advice is not worth a line."""

LEAST_BYTES = 1 << 20
"""And bytes: a program that needs next to nothing needs no advice."""

FITS = "fits with this alone"

_LISTED = "of the listed buffers"
_MOSTLY_LISTED = 0.9
_MOST_SHAPES = 3


def saving_of(facts: Facts, cuts: Cuts) -> int:
    """Bytes that a change saves alone."""
    return sum(facts.items[index].size - left for index, left in cuts.items())


def worth_it(facts: Facts, saving: int) -> bool:
    """Whether a saving deserves a line."""
    return saving >= LEAST_BYTES and saving >= LEAST_SHARE * facts.whole_bytes


def advice_of(
    facts: Facts,
    kind: AdviceKind,
    saving: int | None,
    sentence: str,
    how: str,
    arithmetic: str,
    items: Sequence[Item],
    instead: str = "",
) -> Advice:
    """An advice about `items`, the largest first; says whether it is enough alone, and if few buffers are known.

    Args:
        instead: what else can be done about the same buffers, with another saving.
    """
    over = facts.over_bytes
    if saving is not None and over is not None and 0 < over <= saving:
        how = f"{how}; {FITS}"
    if instead:
        how = f"{how}; {instead}"
    if saving is not None and not facts.need.is_whole:
        used = facts.need.used_bytes
        if used is None or facts.listed_bytes < _MOSTLY_LISTED * used:
            arithmetic = f"{arithmetic} ({_LISTED})"
    return Advice(
        kind=kind,
        saving_bytes=saving,
        sentence=sentence,
        how=how,
        arithmetic=arithmetic,
        source=next((item.buffer.source for item in items if item.buffer.source), None),
        buffers=tuple(item.index for item in items),
    )


def items_of(facts: Facts, cuts: Cuts) -> list[Item]:
    """The buffers that a change is about, the largest first."""
    return sorted((facts.items[index] for index in cuts), key=lambda item: (-item.size, item.index))


def size_of(items: Sequence[Item]) -> int:
    """Bytes of them all."""
    return sum(item.size for item in items)


def in_buffers(items: Sequence[Item]) -> str:
    """``281 MiB in 12 buffers``."""
    return f"{amount(size_of(items))} in {len(items)} buffer{'s' * (len(items) != 1)}"


def shape_of(item: Item) -> str:
    """``f32[64,4,2048,2048]``; the buffer's name where the shape is unknown."""
    return short_shape(item.element, item.whole_dims) if item.element else short_name(item.buffer.name)


def shapes_of(items: Sequence[Item]) -> str:
    """``3 x f32[64,4,2048,2048], bf16[64,2047,16000] and 4 more``: by bytes, the largest first."""
    sizes: dict[str, list[int]] = {}
    for item in items:
        sizes.setdefault(shape_of(item), []).append(item.size)
    ordered = sorted(sizes, key=lambda shape: -sum(sizes[shape]))
    shown = [times(len(sizes[shape]), shape) for shape in ordered[:_MOST_SHAPES]]
    rest = sum(len(sizes[shape]) for shape in ordered[_MOST_SHAPES:])
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def summed(items: Sequence[Item]) -> str:
    """``3 x 4.00 GiB = 12.0 GiB``; of one buffer its shape and size."""
    if len(items) == 1:
        return f"{shape_of(items[0])} = {amount(items[0].size)}"
    return f"{total(item.size for item in items)} = {amount(size_of(items))}"
