"""What a piece of advice is: one rule, with what its change leaves of each buffer and the saving that follows.

A change may make an axis shorter or a type narrower, padding included. The compiler is taken to keep the layout. What
it rounds up then follows from the layout's first tile: its last number from the most minor axis (the lanes), the one
before from the next (the rows). Compilers give an array with few rows a tile of fewer, (4,128) for three and (1,128)
for one, down to as many as are packed into 4 bytes: (2,128) of bfloat16. So the same array in bfloat16 takes half of
what it takes in float32 unless it has a single row. An array of one axis is tiled by 1024 elements, short ones by 512
bytes: 128 of float32, 256 of bfloat16.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.hlo.shapes import round_up
from tpuprof.parsers.memory.account.roles import BufferFacts, NeedFacts, largest_first, most_needed
from tpuprof.parsers.memory.oom.advice.moments import Cuts, composed, saved
from tpuprof.parsers.memory.oom.advice.words import amount
from tpuprof.parsers.memory.oom.model import Advice, AdviceKind, Change

Title = Callable[[NeedFacts, Sequence[BufferFacts]], str]
"""What to call a change, by the buffers that it is about, the largest first."""

LEAST_SHARE = 0.01  # of the need: advice that saves less is not worth a line
LEAST_BYTES = 1 << 20  # nor is one that saves less than this: what needs next to nothing needs no advice
FITS = "this alone is enough"
_MOSTLY_LISTED = 0.9
_COMPUTED = ("attention", "loss", "remat", "bf16", "batch")  # changes of what the passes compute
_UNSURE = 5  # times as much as is worth a line must be saved by what may save nothing
_ELSEWHERE = 0.02  # of a saving: from here on it is said that another moment becomes the peak

_SHORTEST = 256  # elements of bfloat16 that a short array of one axis is rounded up to
# rows that are packed into one of 4 bytes; fewer than that make no tile
_PACKED = {"bf16": 2, "f16": 2, "s16": 2, "u16": 2, "s8": 4, "u8": 4, "pred": 4}


class ChangeOrder(IntEnum):
    """When what-if applies a change."""

    BATCH = 0  # all else depends on it
    NOT_STORED = 1  # at all any more
    NARROWER = 2
    PADDING = 3
    STATE = 4


@dataclass(frozen=True, slots=True)
class Rule:
    """A piece of advice: what it says, and the changes that can be tried of it.

    Attributes:
        advise: what to say about a need; nothing where the rule finds nothing in it.
        key, kind: of its toggles; the key names them.
        changes: how many can be tried at most; 0 where it is unknown what the advice would save.
        cuts, title: what each of them leaves, and what people call it.
        everywhere: what each of them leaves of all the program's buffers, `NeedFacts.everywhere`; as `cuts` by default.
        stage: when they are applied.
    """

    advise: Callable[[NeedFacts], list[Advice]]
    key: str = ""
    kind: AdviceKind = "other"
    changes: int = 0
    cuts: Callable[[NeedFacts], Sequence[Cuts]] = lambda _: ()
    title: Title = lambda *_: ""
    stage: ChangeOrder = ChangeOrder.STATE
    everywhere: Callable[[NeedFacts], Sequence[Cuts]] | None = None

    def cuts_everywhere(self, facts: NeedFacts) -> Sequence[Cuts]:
        """What each change leaves of all the program's buffers, as far as they are known."""
        if self.everywhere is None or facts.everywhere is None:
            return self.cuts(facts.everywhere or facts)
        return self.everywhere(facts)

    @property
    def toggles(self) -> tuple[str, ...]:
        """Keys of its changes: its own, then ``key 2``, ``key 3``."""
        return tuple(f"{self.key} {number + 1}" if number else self.key for number in range(self.changes))


@dataclass(frozen=True, slots=True)
class AdviceText:
    """What an advice says, see `Advice`.

    Attributes:
        instead: what else can be done about the same buffers, with another saving.
        items: what it is about, where that is more than its change leaves less of.
        least: share of the saving that is to be had at least, where the compiler decides.
        target: of the change, see `Change`.
        key: of the change, where it is not the rule's.
    """

    sentence: str
    how: str
    arithmetic: str
    instead: str = ""
    items: Sequence[BufferFacts] = ()
    target: int | None = None
    key: str = ""
    least: float = 1.0


def change(
    key: str,
    kind: AdviceKind,
    stage: ChangeOrder,
    title: str | Title,
    cuts: Callable[[NeedFacts], Cuts],
    everywhere: Callable[[NeedFacts], Cuts] | None = None,
) -> Callable[[Callable[[NeedFacts, list[BufferFacts], int], AdviceText]], Rule]:
    """Makes a rule about one change out of its words, which it says where the change saves enough.

    The words are given the buffers that the change leaves less of, the largest first, and what it saves.
    """

    def rule(words: Callable[[NeedFacts, list[BufferFacts], int], AdviceText]) -> Rule:
        def advise(facts: NeedFacts) -> list[Advice]:
            left = cuts(facts)
            saving, items = saving_of(facts, left), items_of(facts, left)
            if not worth_it(facts, saving):
                return []
            said = words(facts, items, saving)
            everywhere = made.cuts_everywhere(facts)
            held = saved(facts, everywhere)
            if not worth_it(facts, held) and 2 * held < saving:  # another moment needs as much
                return []
            if not said.least and not worth_it(facts, held // _UNSURE):
                return []
            if abs(held - saving) > _ELSEWHERE * saving:
                text = f"{said.arithmetic}; then another moment is the peak, {amount(held)} lower"
                said = replace(said, arithmetic=text)
            return [advice_of(facts, kind, held, replace(said, key=said.key or key), items, everywhere)]

        titled = (lambda *_: title) if isinstance(title, str) else title
        of_all = None if everywhere is None else lambda facts: [everywhere(facts)]
        made = Rule(advise, key, kind, 1, lambda facts: [cuts(facts)], titled, stage, of_all)
        return made

    return rule


def advice_of(
    facts: NeedFacts,
    kind: AdviceKind,
    saving: int | None,
    words: AdviceText,
    items: Sequence[BufferFacts] = (),
    everywhere: Sequence[Cuts] = (),
) -> Advice:
    """An advice about `items`, the largest first; says whether it is enough alone, and if few buffers are known.

    Args:
        everywhere: what its change leaves of all the program's buffers.
    """
    how, arithmetic, need = words.how, words.arithmetic, facts.need
    items = words.items or items
    least = None if saving is None else int(words.least * saving)
    if saving and least is not None and any(items) and facts.again and words.key in _COMPUTED:
        least = min(least, (facts.need.used_bytes or 0) - most_left(facts, saving, everywhere, words.key == "batch"))
    if least is not None and need.is_met(least):
        how += f"; {FITS}"
    if words.instead:
        how += f"; {words.instead}"
    is_known = need.is_whole or (need.used_bytes is not None and facts.listed_bytes >= _MOSTLY_LISTED * need.used_bytes)
    if saving is not None and not is_known:
        arithmetic += " (of the listed buffers)"
    source = next((item.buffer.source for item in items if item.buffer.source), None)
    if saving and least is not None and least < saving:
        arithmetic += f"; the compiler decides, ~{amount(least)} to {amount(saving)}"
    return Advice(
        kind,
        saving,
        words.sentence,
        how,
        arithmetic,
        source,
        tuple(item.index for item in items),
        Change(words.key, words.target) if words.key else None,
        least if least != saving else None,
    )


def most_left(facts: NeedFacts, saving: int, cuts: Sequence[Cuts], is_batch: bool = False) -> int:
    """What a need may come to at most after a saving, where the compiler computes much again now."""
    used, left = facts.need.used_bytes or 0, composed(facts.everywhere or facts, cuts)
    over, there = facts.need.over_bytes, facts.need.capacity_bytes
    room = None if over is None or there is None or not is_batch else used - over
    again = [left.get(item.index, item.size) for item in facts.again]
    return min(used, most_needed(used, used - saving, again, room))


def saving_of(facts: NeedFacts, cuts: Cuts) -> int:
    """Bytes that a change saves alone."""
    return sum(facts.items[index].size - left for index, left in cuts.items())


def worth_it(facts: NeedFacts, saving: int) -> bool:
    """Whether a saving deserves a line."""
    return saving >= LEAST_BYTES and saving >= LEAST_SHARE * facts.whole_bytes


def items_of(facts: NeedFacts, cuts: Cuts) -> list[BufferFacts]:
    """The buffers that a change is about, the largest first."""
    return largest_first(facts.items[index] for index in cuts)


def of_their_types(items: Iterable[BufferFacts], others: Iterable[BufferFacts]) -> list[BufferFacts]:
    """Those of some buffers that are of the types and dimensions of others, of each no more than there are of these."""
    left = Counter((other.element, other.whole_dims) for other in others)
    found = []
    for item in items:
        if left[item.element, item.whole_dims] > 0:
            left[item.element, item.whole_dims] -= 1
            found.append(item)
    return found


def gone(items: Iterable[BufferFacts]) -> Cuts:
    """Nothing is left of them."""
    return {item.index: 0 for item in items}


def less(facts: NeedFacts, left: Cuts) -> Cuts:
    """Those of the buffers of which less is left than they take."""
    return {index: size for index, size in left.items() if size < facts.items[index].size}


@dataclass(frozen=True, slots=True)
class Rounding:
    """How the length of an axis is rounded up.

    Attributes:
        multiple: to a multiple of this.
        least: a shorter axis gets a tile of at least this many, or of the next power of two.
        length: the axis as it is.
    """

    multiple: int
    least: int
    length: int

    def rounded(self, length: int) -> int:
        """What an axis of another length takes; never less for a longer one."""
        if length >= self.length:
            return round_up(length, self.multiple)
        return round_up(length, min(self.multiple, max(self.least, 1 << max(0, length - 1).bit_length())))

    def scaled(self, size: int, length: int) -> int:
        """Bytes of an array of `size` bytes once the axis has another length."""
        now = self.rounded(self.length)
        return -(-size * self.rounded(length) // now) if now else size


def rounding(item: BufferFacts, axis: int) -> Rounding:
    """How an axis of the whole array, the layers' included, is rounded; not at all where the layout is unknown."""
    shape, length = item.shape, item.whole_dims[axis]
    if shape is None or not shape.tiles or shape.padded_dimensions is None:
        return Rounding(1, 1, length)
    tile, place = shape.tiles[0], shape.minor_to_major.index(axis)
    if place >= len(tile):
        return Rounding(1, 1, length)
    multiple = tile[-1 - place]
    least = _PACKED.get(item.element, 1) if place == 1 and len(tile) == 2 else multiple
    return Rounding(multiple, least, length)


def resized(item: BufferFacts, axis: int, length: int) -> int:
    """Bytes of a buffer once an axis of its array has another length."""
    return rounding(item, axis).scaled(item.size, length)


def half(item: BufferFacts) -> int:
    """Bytes of an array in float32 once it is in bfloat16; all of them where padding takes what that saves."""
    shape, size = item.shape, -(-item.size // 2)
    if shape is None or not shape.tiles or shape.padded_dimensions is None or not shape.dimensions:
        return size
    tile = shape.tiles[0]
    if len(tile) == 1:
        count = shape.padded_dimensions[shape.minor_to_major[0]]
        grown = round_up(count, _SHORTEST) if tile[0] < _SHORTEST else count
    elif len(tile) == 2 and tile[0] == 1 and len(shape.dimensions) > 1:
        count = shape.padded_dimensions[shape.minor_to_major[1]]
        grown = round_up(count, _PACKED["bf16"])
    else:
        return size
    return min(item.size, -(-item.size * grown // (2 * count))) if count else size


def halved(items: Iterable[BufferFacts]) -> dict[int, int]:
    """What is left of those in float32 once they are in bfloat16: index to bytes."""
    return {item.index: half(item) for item in items if item.element == "f32"}


def bare(item: BufferFacts) -> int:
    """Bytes of a buffer's elements without padding, by its shape; its size where that is unknown."""
    whole = math.prod(item.padded_dims or (0,))
    return -(-item.size * math.prod(item.whole_dims) // whole) if whole else item.size
