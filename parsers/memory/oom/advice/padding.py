"""Advice about padding: which axis a tile rounds up, and what an array takes with other axes last.

A layout's first tile, (8,128) for most arrays, rounds up the two most minor dimensions, by default the last two. An
array with a short last axis takes many times its elements; the same elements with a long axis last, or with two axes
merged into one, do not. Whether the compiler then keeps that layout is its own decision, so the saving is the most
that can be had.

Where other axes than the last two are the most minor ones the compiler has put them there, and no order of the axes in
the program promises less padding. Of those it is only said that a longer axis would cost nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.shapes import Shape, plain_shape, round_up
from tpuprof.parsers.memory.account.roles import BufferFacts, NeedFacts, largest_first
from tpuprof.parsers.memory.oom.advice import rule, words
from tpuprof.parsers.memory.oom.advice.batch import batch_axis
from tpuprof.parsers.memory.oom.advice.moments import Cuts
from tpuprof.parsers.memory.oom.advice.words import amount, size_of
from tpuprof.parsers.memory.oom.model import Advice

_MOST_SHAPES = 3  # shapes that get a line, and a change of their own
_LEAST_FACTOR = 1.1  # padding below it is not worth a change
_MOST_CHOSEN, _MOST_AXES = 2, 8
_ALMOST = 1.05  # an arrangement that takes no more than this times the best is as good, if it is simpler


@dataclass(frozen=True, slots=True)
class _Arranged:
    """An order of an array's axes, major to minor, and the elements that it takes with padding.

    Attributes:
        merged: the first of two neighbours that become one axis; None where none do.
        moved: how many of the last two axes are others than they were.
    """

    elements: int
    dims: tuple[int, ...]
    merged: int | None
    moved: int

    @property
    def work(self) -> int:
        """How much it changes a program: moving axes takes a transpose, merging two takes none."""
        return 2 * (self.moved > 0) + (self.merged is not None)

    def how(self, shape: Shape) -> str:
        as_shape = plain_shape(shape.element_type, self.dims)
        if self.merged is None:
            return f"order its axes as {as_shape}"
        how = f"merge axes {self.merged} and {self.merged + 1}"
        return f"{how}: {as_shape}" if self.moved == 0 else f"{how} and order the axes as {as_shape}"


def _padding_advice(facts: NeedFacts) -> list[Advice]:
    """The shapes whose padding is worth most, a line each."""
    advice = []
    for best, cuts in _padded(facts):
        items, saving = [facts.items[index] for index in cuts], rule.saving_of(facts, cuts)
        if rule.worth_it(facts, saving):
            advice.append(rule.advice_of(facts, "padding", saving, _padding_words(items, best, saving), items))
    return advice


padding = rule.Rule(
    _padding_advice,
    key="padding",
    kind="padding",
    changes=_MOST_SHAPES,
    cuts=lambda facts: [cuts for _, cuts in _padded(facts)],
    title=lambda _, items: f"less padding of {words.shape_of(items[0])}",
    stage=rule.ChangeOrder.PADDING,
)


@rule.Rule
def chosen(facts: NeedFacts) -> list[Advice]:
    """Padding of axes that the compiler made the most minor ones, a line for each length: the batch, 90 channels."""
    groups: dict[tuple[bool, int, int], list[BufferFacts]] = {}
    for item in facts.items:
        shape = _padded_shape(item)
        if shape is None or _is_default(shape):
            continue
        axis, length, padded = _most_padded(shape)
        is_batch = item.role != "parameter" and length == facts.batch and axis == batch_axis(item)
        groups.setdefault((is_batch, length, padded), []).append(item)
    by_waste = []
    for (is_batch, length, padded), items in groups.items():
        waste = size_of(items) - sum(min(item.size, rule.bare(item)) for item in items)
        if rule.worth_it(facts, waste):
            ordered = largest_first(items)
            saying = _chosen_words(ordered, is_batch, length, padded, waste)
            by_waste.append((waste, rule.advice_of(facts, "padding", None, saying, ordered)))
    by_waste.sort(key=lambda pair: -pair[0])
    return [advice for _, advice in by_waste[:_MOST_CHOSEN]]


def _padded(facts: NeedFacts) -> list[tuple[_Arranged, Cuts]]:
    """The shapes that can be arranged with less padding, the largest saving first; buffers of each by size."""
    shapes = ((item, _padded_shape(item)) for item in facts.items)
    plain = (item for item, shape in shapes if shape is not None and _is_default(shape))
    groups = grouped((item.buffer.shape or "", item) for item in plain)
    arranged = []
    for items in groups.values():
        best = _best(items[0].shape)
        if best is not None and (cuts := rule.less(facts, _cuts(largest_first(items), best))):
            arranged.append((best, cuts))
    arranged.sort(key=lambda pair: -rule.saving_of(facts, pair[1]))
    return arranged[:_MOST_SHAPES]


def _padded_shape(item: BufferFacts) -> Shape | None:
    """The shape of a buffer that padding makes larger by `_LEAST_FACTOR`; None for others, or where that is unknown."""
    shape = item.shape
    if (
        shape is None
        or item.buffer.padding_bytes == 0
        or item.buffer.category in ("scoped", "constant", "thread-local")
    ):
        return None
    dims, padded = shape.dimensions, shape.padded_dimensions
    if padded is None or not 2 <= len(dims) <= _MOST_AXES or 0 in dims or not shape.tiles or len(shape.tiles[0]) != 2:
        return None
    return shape if math.prod(padded) >= _LEAST_FACTOR * math.prod(dims) else None


def _is_default(shape: Shape) -> bool:
    """Whether the last two axes are the most minor ones, as they are where the compiler does not prefer others."""
    rank = len(shape.dimensions)
    return shape.minor_to_major[:2] == (rank - 1, rank - 2)


def _cuts(items: Sequence[BufferFacts], best: _Arranged) -> Cuts:
    """What an arrangement leaves of buffers of one shape.

    A buffer may be larger or smaller than its shape says; the share that is saved is the shape's, and never more than
    the text calls padding.
    """
    cuts = {}
    for item in items:
        left = -(-item.size * best.elements // math.prod(item.padded_dims)) if item.padded_dims else item.size
        padding = item.buffer.padding_bytes
        cuts[item.index] = left if padding is None else max(left, item.size - padding)
    return cuts


def _best(shape: Shape | None) -> _Arranged | None:
    """The simplest arrangement of about the fewest elements; None where it does not take less."""
    padded = shape.padded_dimensions if shape is not None else None
    if shape is None or padded is None:
        return None
    arranged = list(_arrangements(shape))
    enough = _ALMOST * min(each.elements for each in arranged)
    best = min((each for each in arranged if each.elements <= enough), key=lambda each: (each.work, each.elements))
    return best if best.elements * _LEAST_FACTOR <= math.prod(padded) else None


def _arrangements(shape: Shape) -> Iterator[_Arranged]:
    """Any axis last and any before it, also with two neighbours merged."""
    rows, lanes = shape.tiles[0]
    for merged, dims in _merged(shape.dimensions):
        whole, rank = math.prod(dims), len(dims)
        for last, second in itertools.permutations(range(rank), 2):
            rest = [size for axis, size in enumerate(dims) if axis not in (last, second)]
            moved = (last != rank - 1) + (second != rank - 2)
            tiled = round_up(dims[second], rows) * round_up(dims[last], lanes)
            elements = whole // (dims[last] * dims[second]) * tiled
            yield _Arranged(elements, (*rest, dims[second], dims[last]), merged, moved)


def _merged(dims: tuple[int, ...]) -> Iterator[tuple[int | None, tuple[int, ...]]]:
    yield None, dims
    for axis in range(len(dims) - 1) if len(dims) > 2 else ():
        yield axis, (*dims[:axis], dims[axis] * dims[axis + 1], *dims[axis + 2 :])


def _padding_words(items: Sequence[BufferFacts], best: _Arranged, saving: int) -> rule.AdviceText:
    shape = items[0].shape
    assert shape is not None
    dims, padded = shape.dimensions, shape.padded_dimensions or shape.dimensions
    axes = [axis for axis in shape.minor_to_major[:2] if padded[axis] != dims[axis]]
    axes.sort(key=lambda axis: -padded[axis] / max(1, dims[axis]))
    grown = ", ".join(f"axis {axis}: {dims[axis]} -> {padded[axis]}" for axis in axes)
    tile = ",".join(str(size) for size in shape.tiles[0])
    what = words.repeated(len(items), plain_shape(shape.element_type, dims))
    names = words.listed_names([item.op_name for item in items], 1)
    sentence = f"{math.prod(padded) / max(1, math.prod(dims)):.1f}x padding of {what}, tile ({tile})"
    sentence += f": {names}" if names and len(items) == 1 else ""
    width, whole = items[0].size // max(1, math.prod(padded)), size_of(items)
    sizes = words.product(padded, width) if width else plain_shape(shape.element_type, padded)
    elements = sum(item.buffer.unpadded_bytes or 0 for item in items)
    left = "unpadded" if whole - saving <= elements else "rearranged"
    arithmetic = f"{grown}; {words.repeated(len(items), sizes)} = {amount(whole)}, {left} {amount(whole - saving)}"
    return rule.AdviceText(sentence, best.how(shape), arithmetic, key="padding")


def _chosen_words(
    items: Sequence[BufferFacts], is_batch: bool, length: int, padded: int, waste: int
) -> rule.AdviceText:
    """An axis that the compiler made a most minor one: what would cost nothing; nothing is saved by that."""
    shape = items[0].shape
    assert shape is not None
    axis = _most_padded(shape)[0]
    place = shape.minor_to_major.index(axis)
    where, multiple = ("rows", "lanes")[place == 0], shape.tiles[0][1 - place]
    what = f"the batch, {length}," if is_batch else f"axis {axis}, {length},"
    sentence = f"the compiler put {what} into the {where} of {words.shapes_of(items)}"
    how = f"a multiple of {multiple} costs nothing more there: {padded} takes as much as {length}"
    if padded == multiple and is_batch and place == 0:
        how += ", and a smaller batch saves nothing"
    return rule.AdviceText(
        sentence, how, f"{length} -> {padded}; {words.in_buffers(items)}, of which {amount(waste)} are padding"
    )


def _most_padded(shape: Shape) -> tuple[int, int, int]:
    """The axis that padding makes longer by the largest factor, its length, and its length with padding."""
    dims, padded = shape.dimensions, shape.padded_dimensions or shape.dimensions
    axis = max(shape.minor_to_major[:2], key=lambda axis: padded[axis] / max(1, dims[axis]))
    return axis, dims[axis], padded[axis]
