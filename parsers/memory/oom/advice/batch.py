"""Advice about the batch: what grows with it, how much smaller it must be, or how much larger it may be.

Of what leads with the batch only a part shrinks with it. Where the compiler put the batch into the lanes it is rounded
up to a multiple of 128, so 32 take what 64 do, see `rule`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tpuprof.parsers.memory.account.need import MARGIN
from tpuprof.parsers.memory.account.roles import BufferFacts, NeedFacts, is_lone, largest_first, leads
from tpuprof.parsers.memory.batch.growth import resized as resized_in_tiles
from tpuprof.parsers.memory.oom.advice.moments import Cuts, lowered
from tpuprof.parsers.memory.oom.advice.rule import AdviceText, ChangeOrder, change, less, most_left, resized, rounding
from tpuprof.parsers.memory.oom.advice.words import amount, in_buffers, size_of

_ROWS = 8  # a batch that is smaller is rounded down to a multiple of this where that leaves one: 8 rows make a tile
_ROUND = 8  # a batch is rounded down to a multiple of a power of two of about this share of it
_MOST_TIMES = 1 << 10  # a batch that is larger by more than this is not looked for


def batch_items(facts: NeedFacts) -> list[BufferFacts]:
    """What grows with the batch, the largest first: by the HLO where that is known, else what leads with it; of
    arguments those of integers, which weights are not.
    """
    items = facts.of("attention", "loss", "activation", "backward", "forward", "copy", "parameter", "other")
    lengths = {item.dims[1] for item in items if len(item.dims) > 2 and item.dims[0] == facts.batch}
    tokens = frozenset(length * (facts.batch or 0) for length in lengths if length > _ROWS)
    weights = frozenset(item.dims for item in facts.of("parameter", "optimizer", "gradient", "weight copy"))
    found = {item.index for item in items if _grows(item, facts.batch, tokens, weights)}
    found |= {item.index for item in facts.items if facts.need.known.grows(item.buffer)}
    return largest_first(facts.items[index] for index in found)


def _grows(item: BufferFacts, batch: int | None, tokens: Collection[int], weights: Collection[tuple[int, ...]]) -> bool:
    """Whether it leads with the batch, with all tokens, or with the tokens of each expert."""
    dims = item.dims
    if len(dims) < 2 or batch is None or (item.role == "parameter" and item.is_float):
        return False
    if dims[0] == batch:
        return item.role != "other"
    return dims not in weights and item.is_float and item.role != "parameter" and leads(dims, batch, tokens)


def batch_axis(item: BufferFacts) -> int:
    """The axis that is the batch, of an array that leads with it or with the layers."""
    return 0 if item.stack == 1 else 1


def at_batch(facts: NeedFacts, item: BufferFacts, length: int) -> int:
    """Bytes of an array that grows with the batch, once that has another length."""
    batch, known, number = facts.batch or 1, facts.need.known, item.buffer.logical_buffer
    if number is not None and number in known.grown:
        return resized_in_tiles(item.size, item.shape, known.grown[number], batch, length)
    axis = batch_axis(item)
    if item.dims[0] == batch:
        return resized(item, axis, length)
    return -(-item.size * length // batch)  # what leads with all tokens is long enough for tiles not to matter


def fitting_batch(facts: NeedFacts) -> int | None:
    """The largest batch with which all fits by arithmetic; None where none does, or what there is is unknown."""
    batch, over = facts.batch, facts.need.over_bytes
    if facts.need.known.is_read:
        return facts.need.known.fitting_batch
    if batch is None or over is None or not batch_items(facts):
        return None
    every, used, margin = (
        facts.everywhere or facts,
        facts.need.used_bytes or 0,
        MARGIN * (facts.need.capacity_bytes or 0),
    )

    def fits(length: int) -> bool:
        cuts = _at(every, length)
        saving = lowered(facts, cuts)
        if over > 0:
            return facts.need.is_met(used - most_left(facts, saving, [cuts], is_batch=True))
        return saving >= over + margin

    low, high = (0, batch) if over > 0 else (batch, batch * _MOST_TIMES)
    while high - low > 1:  # low fits, if it is a batch at all, and high does not
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low or None


def _at(facts: NeedFacts, length: int) -> dict[int, int]:
    """What a batch of another length leaves, or makes, of what leads with it."""
    return {item.index: at_batch(facts, item, length) for item in batch_items(facts)}


def smaller_batch(facts: NeedFacts) -> int | None:
    """The largest round batch that fits by arithmetic; half of it where none fits or nothing is too large.

    A long batch that is no multiple of a large power of two may be laid out in another way, or padded.
    """
    batch, fitting = facts.batch, fitting_batch(facts)
    if batch is None or fitting is None or fitting >= batch:
        return None if batch is None else batch // 2
    if is_lone(facts.need):  # the rest of the program, of which nothing is known, needs room too
        (item,), there, half = facts.items, facts.need.capacity_bytes or 0, batch // 2
        while half > 1 and at_batch(facts, item, half) >= there:
            half //= 2
        return half
    step = max(_ROWS, 1 << max(0, (fitting // _ROUND).bit_length() - 1))
    return fitting // step * step if fitting >= _ROWS else fitting


def batch_cuts(facts: NeedFacts) -> Cuts:
    """What leads with the batch shrinks with it, in whole tiles."""
    smaller = smaller_batch(facts)
    if smaller is None:
        return {}
    return less(facts, _at(facts, smaller))


def _cuts_everywhere(facts: NeedFacts) -> Cuts:
    smaller, everywhere = smaller_batch(facts), facts.everywhere or facts
    return {} if smaller is None else less(everywhere, _at(everywhere, smaller))


@change(
    "batch",
    "batch",
    ChangeOrder.BATCH,
    lambda facts, _: f"batch {facts.batch} -> {smaller_batch(facts)}",
    batch_cuts,
    _cuts_everywhere,
)
def batch(facts: NeedFacts, _: Sequence[BufferFacts], __: int) -> AdviceText:
    """A smaller batch; where the program fits also how large it may be."""
    fitting, items = fitting_batch(facts), batch_items(facts)
    length, smaller, over = facts.batch or 0, smaller_batch(facts) or 0, facts.need.over_bytes
    inputs = " and inputs" if any(item.role == "parameter" for item in items) else ""
    sentence = f"{amount(size_of(items))} of activations{inputs} grow with the batch, {length} on each device"
    if not any("jvp(" in item.op for item in items):
        sentence = f"{amount(size_of(items))} of arrays lead with dimension {length}, which looks like the batch"
    how = f"batch {length} -> {smaller}, or split it into microbatches"
    arithmetic = _worked_out(items, batch_cuts(facts), length, smaller)
    if over is not None and over > 0:
        how += "; no batch fits alone" if fitting is None else ""
        arithmetic += f"; by arithmetic {fitting} fit" if fitting is not None and fitting > smaller else ""
    elif over is not None and fitting is not None and length < fitting < length * _MOST_TIMES - 1:
        how = f"up to {fitting} fit by arithmetic; {how}"
        arithmetic += f"; {amount(-over)} are free"
    return AdviceText(sentence, how, arithmetic, items=items, target=smaller)


def _worked_out(items: Sequence[BufferFacts], cuts: Cuts, batch: int, smaller: int) -> str:
    """``281 MiB in 12 buffers x 32/64 = 141 MiB``, and what does not shrink like that because of tiles."""
    how = {item.index: rounding(item, min(batch_axis(item), len(item.whole_dims) - 1)) for item in items if item.dims}
    even = {index for index, axis in how.items() if axis.rounded(smaller) * batch == axis.rounded(batch) * smaller}
    scaled = [item for item in items if item.index in even]
    others = [item for item in items if item.index not in even and item.index in cuts]
    stay = [item for item in items if item.index not in even and item.index not in cuts]
    texts = []
    if scaled:
        left = sum(cuts.get(item.index, item.size) for item in scaled)
        texts.append(f"{in_buffers(scaled)} x {smaller}/{batch} = {amount(left)}")
    if others:
        texts.append(f"{in_buffers(others)} in whole tiles -> {amount(sum(cuts[item.index] for item in others))}")
    if stay:
        padded = {how[item.index].rounded(batch) for item in stay}
        to = f" to {padded.pop()}" if len(padded) == 1 else ""
        texts.append(f"{in_buffers(stay)} stay, {smaller} is padded{to} there like {batch}")
    return "; ".join(texts)
