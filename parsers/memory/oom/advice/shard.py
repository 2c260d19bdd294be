"""Advice about what every chip has a copy of: parameters, gradients and optimizer state, spread over chips instead.

Fully sharded (FSDP), each of N chips has 1/N of them, and gathers a layer's weights when the layer is at work. The
batch of a chip is taken to stay as it is, so that the whole batch grows with the chips.
"""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.memory.account.owners import COLLECTIVE, KV_CACHE
from tpuprof.parsers.memory.account.roles import BufferFacts, NeedFacts
from tpuprof.parsers.memory.oom.advice.moments import Cuts, saved
from tpuprof.parsers.memory.oom.advice.rule import AdviceText, ChangeOrder, change, of_their_types
from tpuprof.parsers.memory.oom.advice.words import amount, size_of

_MOST_CHIPS = 256
_LEAST_SHARE = 0.1  # of the need: with less in the arguments it is something else that is too large
_AT_WORK = 2  # layers whose weights are there at once: the one at work, and the next one on its way


def _spread(facts: NeedFacts) -> list[BufferFacts]:
    """What can be spread: state, gradients, copies of weights, and outputs that are new state."""
    found = [
        item
        for item in facts.of("parameter", "optimizer", "gradient", "weight copy")
        if item.is_float and len(item.dims) > 1 and not facts.need.known.grows(item.buffer)
        if not KV_CACHE.search(f"{item.op} {item.buffer.name}")
    ]
    arguments = (item for item in found if item.buffer.category == "parameter")
    return [*found, *of_their_types(facts.of("output"), arguments)]


def _cuts(facts: NeedFacts, chips: int | None) -> Cuts:
    """One share of each; what is gathered for a layer at work stays with the largest of them; nothing for None."""
    if chips is None:
        return {}
    items = _spread(facts)
    cuts = {}
    for item in items:  # what else used an output's place is no longer than it by chance then
        guest = facts.need.known.guest_bytes(item.buffer) if item.role == "output" else 0
        cuts[item.index] = min(item.size, -(-(item.size + guest) // chips))
    weights = [item for item in items if item.role == "parameter"]
    layers = max([facts.layers, *facts.stacks], default=0) or 1
    gathered = min(size_of(weights), _AT_WORK * size_of(weights) // layers) // 2  # in bfloat16
    largest = max(weights, key=lambda item: item.size, default=None)
    if largest is not None:
        cuts[largest.index] = min(largest.size, cuts[largest.index] + gathered)
    return cuts


def chips_for(facts: NeedFacts) -> int | None:
    """The fewest chips, a power of two, with which it fits; None where it fits as it is, or with no number of them."""
    if facts.need.memory_space != "hbm" or facts.need.capacity_bytes is None:
        return None
    if size_of(_spread(facts)) < _LEAST_SHARE * facts.whole_bytes:
        return None
    chips = 2
    while chips <= _MOST_CHIPS:
        if facts.need.is_met(saved(facts, [_cuts(facts.everywhere or facts, chips)])):
            return chips
        chips *= 2
    return None


def chips_in_words(facts: NeedFacts) -> str:
    """``4 chips``; of a program that is spread over some already ``4 times as many chips``."""
    chips = chips_for(facts)
    is_spread = facts.need.known.is_spread or any(
        COLLECTIVE.match(item.opcode) or COLLECTIVE.match(item.operands) for item in facts.items
    )
    return f"{chips} times as many chips" if is_spread else f"{chips} chips"


@change(
    "shard",
    "optimizer",
    ChangeOrder.STATE,
    lambda facts, _: f"state over {chips_in_words(facts)}",
    lambda facts: _cuts(facts, chips_for(facts)),
    lambda facts: _cuts(facts.everywhere or facts, chips_for(facts)),
)
def shard(facts: NeedFacts, items: Sequence[BufferFacts], saving: int) -> AdviceText:
    """State that each chip has all of."""
    chips, whole = chips_for(facts) or 1, size_of(items)
    return AdviceText(
        f"parameters, gradients and optimizer state take {amount(whole)} on each chip, {len(items)} arrays",
        f"shard them over {chips_in_words(facts)} (FSDP, ZeRO); the batch of each chip as it is",
        f"{amount(whole)} / {chips}, and the weights of the layers at work: {amount(whole - saving)} on each",
        target=chips,
    )
