"""What to do about memory that ran out: advice, ranked by what it would save, and what changes would come to together.

Every rule takes its facts from the listed buffers, see `roles` for where those come from; one that finds nothing in
them says nothing. Savings are of each advice alone, estimates all: two of them may be about the same bytes.

What-if counts each byte once. Each change leaves a share of each buffer that it is about. Changes are applied one after
the other by their `ChangeOrder`, a later one to what the earlier ones left. That is not the order in which they are
listed, which is that of the advice: the n-th toggle is the n-th advice, and alone it saves what that says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, repeat

from tpuprof.parsers.memory.account.need import Need
from tpuprof.parsers.memory.account.roles import NeedFacts, read
from tpuprof.parsers.memory.oom.advice.activations import attention, bf16, loss, recompute, remat
from tpuprof.parsers.memory.oom.advice.batch import batch
from tpuprof.parsers.memory.oom.advice.general import cache, fragmentation, parts, request
from tpuprof.parsers.memory.oom.advice.moments import Cuts, composed, saved
from tpuprof.parsers.memory.oom.advice.padding import chosen, padding
from tpuprof.parsers.memory.oom.advice.rule import LEAST_BYTES, Rule, items_of, saving_of
from tpuprof.parsers.memory.oom.advice.scoped import scoped, single
from tpuprof.parsers.memory.oom.advice.shard import shard
from tpuprof.parsers.memory.oom.advice.state import cast, donation, equal, gradients, layout, optimizer
from tpuprof.parsers.memory.oom.model import Advice, Toggle, WhatIfEstimate

MOST_ADVICE = 10

_HBM: tuple[Rule, ...] = (
    *(attention, loss, remat, recompute, padding, gradients, cast, layout, optimizer, donation, bf16, batch, shard),
    *(cache, request, parts, fragmentation, chosen, equal),
)
"""In this order where they save the same, or where the saving is unknown."""

# what a compiled module keeps in VMEM and SMEM is the compiler's choice, so nothing is advised for that
_ON_CHIP: tuple[Rule, ...] = (scoped, single, request)

TOGGLES = tuple(key for rule in (*_HBM, *_ON_CHIP) for key in rule.toggles)  # keys of all changes
_LEAST = 0.001  # of the need; what changes less is no toggle


def _rules(facts: NeedFacts) -> tuple[Rule, ...]:
    return _HBM if facts.need.memory_space == "hbm" else _ON_CHIP


def advise(need: Need) -> tuple[Advice, ...]:
    """What to do, the largest saving first, those without an estimate last; at most `MOST_ADVICE`."""
    facts = read(need)
    advice = [each for rule in _rules(facts) for each in rule.advise(facts)]
    advice.sort(key=lambda each: (each.saving_bytes is None, -(each.saving_bytes or 0)))
    return tuple(advice[:MOST_ADVICE])


def _changes(facts: NeedFacts, chosen: Collection[str]) -> Iterator[tuple[str, Rule, Cuts, Cuts]]:
    """What each chosen change leaves at the peak and everywhere, in the order in which they are applied."""
    for rule in sorted(_rules(facts), key=lambda rule: rule.stage):
        if not set(rule.toggles).isdisjoint(chosen):
            every = rule.cuts(facts)
            whole = rule.cuts_everywhere(facts) if facts.everywhere is not None else every
            for key, cuts, everywhere in zip(
                rule.toggles, chain(every, repeat({})), chain(whole, repeat({})), strict=False
            ):
                if key in chosen:
                    yield key, rule, cuts, everywhere


def changes_of(facts: NeedFacts) -> list[tuple[str, Cuts]]:
    """Every change that can be tried, with what it leaves of the program's buffers."""
    return [(key, everywhere) for key, _, _, everywhere in _changes(facts, TOGGLES)]


def toggles(need: Need) -> tuple[Toggle, ...]:
    """The changes that would save something, the largest saving first, as in the advice.

    So a number stands for the same change in both lists, as far as the advice has estimates; changes that are too small
    for advice follow.
    """
    facts = read(need)
    least = max(LEAST_BYTES, _LEAST * facts.whole_bytes) if facts.need.memory_space == "hbm" else 1
    ranked = []
    for key, rule, cuts, everywhere in _changes(facts, TOGGLES):
        if saving_of(facts, cuts) >= least:
            items = items_of(facts, cuts)
            toggle = Toggle(key, rule.kind, rule.title(facts, items), tuple(item.index for item in items))
            ranked.append((-saved(facts, [everywhere]), TOGGLES.index(key), toggle))
    return tuple(toggle for _, _, toggle in sorted(ranked, key=lambda each: each[:2]))


def saved_alone(need: Need, chosen: Collection[str]) -> dict[str, int]:
    """What each of some of a need's toggles would save alone, as `what_if` says of it."""
    facts = read(need)
    return {key: saved(facts, [everywhere]) for key, _, _, everywhere in _changes(facts, chosen)}


def _without_gradients(facts: NeedFacts, key: str, cuts: Cuts) -> Cuts:
    if key != "duplicates":
        return cuts
    return {index: left for index, left in cuts.items() if facts.items[index].role != "gradient"}


def what_if(need: Need, chosen: Collection[str]) -> WhatIfEstimate:
    """What the chosen toggles would come to; keys that are none of the need's change nothing.

    Sizes never grow, and one more toggle never saves less: each leaves a fixed share of a buffer, rounded up.
    """
    facts = read(need)
    changes = list(_changes(facts, chosen))
    if {"gradients", "duplicates"} <= set(chosen):  # weights in bf16 have gradients in bf16: these are halved once
        changes = [
            (key, rule, _without_gradients(facts, key, cuts), _without_gradients(facts.everywhere or facts, key, every))
            for key, rule, cuts, every in changes
        ]
    left = composed(facts, [cuts for _, _, cuts, _ in changes])
    sizes = [left.get(item.index, item.size) for item in facts.items]
    saved_by: dict[str, int] = {}
    before = 0
    for count, (key, _, _, _) in enumerate(changes, 1):
        so_far = saved(facts, [everywhere for _, _, _, everywhere in changes[:count]])
        saved_by[key], before = so_far - before, so_far
    after = tuple(min(size, buffer.size_bytes) for size, buffer in zip(sizes, need.buffers, strict=True))
    used = None if need.used_bytes is None else max(0, need.used_bytes - before)
    return WhatIfEstimate(used, before, saved_by, after)
