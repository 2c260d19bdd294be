"""The cheapest combination of changes with which a program fits.

What a change costs is a rank, not a time: what costs nothing at run time comes before what changes numbers, that before
what computes things again, that before what makes a step do less. Of combinations of the same cost the one that leaves
more memory free counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.account.need import Need
from tpuprof.parsers.memory.account.roles import NeedFacts, is_lone, read
from tpuprof.parsers.memory.oom.advice import words
from tpuprof.parsers.memory.oom.advice.advice import advise, changes_of
from tpuprof.parsers.memory.oom.advice.batch import at_batch, batch_items, smaller_batch
from tpuprof.parsers.memory.oom.advice.moments import Cuts, saved
from tpuprof.parsers.memory.oom.advice.rule import most_left
from tpuprof.parsers.memory.oom.advice.shard import chips_for, chips_in_words
from tpuprof.parsers.memory.oom.model import Change, Plan

_COSTS: Mapping[str, tuple[int, str, str]] = {
    "donation": (1, "donate the arguments", ""),
    "layout": (2, "pass the weights in the layout that is used", ""),
    "duplicates": (6, "weights in bf16", "changes their numbers"),
    "attention": (3, "flash attention", ""),
    "loss": (4, "the loss in 8 chunks", "computes the logits twice"),
    "padding": (4, "other axes last", ""),
    "padding 2": (4, "other axes last", ""),
    "padding 3": (4, "other axes last", ""),
    "shard": (13, "shard parameters and state over {chips}", "takes more chips, and gathers each layer's weights"),
    "optimizer": (6, "the optimizer's state in bf16", "changes its numbers"),
    "gradients": (6, "gradients in bf16", "changes their numbers"),
    "bf16": (6, "activations in bf16", "changes their numbers"),
    "remat": (8, "checkpoint the layers", "computes their forward pass again, about a third more FLOPs"),
    "recompute": (8, "recompute_grad around the blocks", "computes them again"),
}
"""Change to its rank, what to do, and what that costs; batches come last."""

_EXCLUDE = {"gradients", "duplicates"}  # weights in bf16 have gradients in bf16
_BATCH_COST, _MOST_CHANGES = 10, 3


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Some changes: what is left after them, and what at most where the compiler decides how much they save."""

    cost: int
    left: int
    most: int
    keys: tuple[str, ...]
    batch: int | None


def plan(need: Need) -> Plan | None:
    """What to change so that a program fits into HBM; None where it fits, or at most one of its buffers is known.

    Where no combination is enough, the one that comes nearest, and how many chips its arguments need.
    """
    there, used = need.capacity_bytes, need.used_bytes
    if need.memory_space != "hbm" or there is None or used is None or (need.over_bytes or 0) <= 0 or not need.buffers:
        return None
    if is_lone(need):
        return None
    facts = read(need)
    cuts = {key: left for key, left in changes_of(facts) if key in _COSTS and left}
    # of the saving of each change, how much is in doubt, where the compiler decides how much it is
    doubts = {
        each.change.key: 1 - each.least_bytes / each.saving_bytes
        for each in advise(need)
        if each.change is not None and each.saving_bytes and each.least_bytes is not None
    }
    found = [
        candidate
        for count in range(_MOST_CHANGES + 1)
        for keys in itertools.combinations(cuts, count)
        if not set(keys) >= _EXCLUDE
        for candidate in _candidates(facts, keys, [cuts[key] for key in keys], doubts)
    ]
    enough = [each for each in found if need.is_met(used - each.most)]
    enough = enough or [each for each in found if need.is_met(used - each.left)]
    best = min(enough, key=lambda each: (each.cost, each.left)) if enough else min(found, key=lambda each: each.left)
    return _worded(facts, best, there, (need.is_met(used - best.most), bool(enough)))


def _candidates(
    facts: NeedFacts, keys: tuple[str, ...], cuts: Sequence[Cuts], doubts: Mapping[str, float]
) -> list[_Candidate]:
    """Some changes alone, and with the largest batch, halved as often as need be, that fits beside them."""
    every, used, batch = facts.everywhere or facts, facts.need.used_bytes or 0, facts.batch
    parts = [(saved(facts, [cut]), doubts.get(key.partition(" ")[0], 0.0)) for key, cut in zip(keys, cuts, strict=True)]
    found = [_candidate(facts, keys, cuts, parts, None)]
    leading = batch_items(every)
    lengths = [smaller_batch(facts)] if not keys else []
    while leading and batch is not None and batch >= 2 and batch % 2 == 0:
        batch //= 2
        lengths.append(batch)
    for length in filter(None, lengths if leading else ()):
        smaller = {item.index: at_batch(every, item, length) for item in leading}
        alone = saved(facts, [smaller])
        doubt = 1 - (used - most_left(facts, alone, [smaller], is_batch=True)) / alone if alone and facts.again else 0.0
        found.append(_candidate(facts, keys, [*cuts, smaller], [*parts, (alone, max(0.0, doubt))], length))
        if facts.need.is_met(used - found[-1].most):
            break
    return found


def _candidate(
    facts: NeedFacts, keys: tuple[str, ...], cuts: Sequence[Cuts], parts: Sequence[tuple[int, float]], batch: int | None
) -> _Candidate:
    """Some changes; `parts` are the saving of each alone, and the share of it that is in doubt."""
    saving, used, alone = saved(facts, cuts), facts.need.used_bytes or 0, sum(size for size, _ in parts)
    doubt = int(saving * sum(size * share for size, share in parts) / alone) if alone else 0
    cost = sum(_COSTS[key][0] for key in keys)
    if batch is not None:
        halvings = max(1, math.ceil(math.log2((facts.batch or batch) / batch)))
        cost += _BATCH_COST + (2 * halvings if keys or facts.batch == batch << halvings else 1)
    return _Candidate(cost, used - saving, used - saving + doubt, keys, batch)


def _worded(facts: NeedFacts, best: _Candidate, there: int, fits: tuple[bool, bool]) -> Plan:
    """In words; whether it fits for sure, and whether it may."""
    chips = chips_for(facts) if "shard" in best.keys else None
    steps = [_COSTS[key][1].format(chips=chips_in_words(facts)) for key in best.keys]
    steps += [f"batch {facts.batch} -> {best.batch}"] if best.batch is not None else []
    costs = [_COSTS[key][2] for key in best.keys if _COSTS[key][2]]
    costs += ["a step does less, or takes several microbatches"] if best.batch is not None else []
    changes = [
        Change(key.partition(" ")[0] if key.startswith("padding") else key, chips if key == "shard" else None)
        for key in best.keys
    ]
    changes += [Change("batch", best.batch)] if best.batch is not None else []
    size = f"~{words.amount(best.left)} of {words.capacity(there)}"
    if any(fits):
        between = f"~{words.amount(best.left)} to {words.amount(best.most)} of {words.capacity(there)}"
        end = f"{size}, fits" if fits[0] else f"{between}, may fit: the compiler decides"
        return Plan(tuple(changes), best.left, fits[0], f"{_listed(steps)}: {end}", tuple(costs))
    nearest = f"{_listed(steps)} leave {size}" if steps else "none of them makes it smaller"
    sentence = f"the remedies that are estimated here are not enough: {nearest}{_chips(facts.need, there)}"
    return Plan(tuple(changes), best.left, False, sentence, tuple(costs))


def _chips(need: Need, there: int) -> str:
    """What arguments that are too large alone come to: over how many chips they must be spread."""
    arguments = need.arguments_bytes
    if arguments is None or arguments <= there // 2:
        return ""
    count = 1
    while arguments / count > there * 0.75:
        count *= 2
    if count == 1:
        return ""
    return (
        f"; arguments alone take {words.amount(arguments)}: shard parameters and optimizer state over at least {count} "
        f"chips ({words.amount(arguments // count)} each), or keep them in a narrower type"
    )


def _listed(steps: Sequence[str]) -> str:
    return " and ".join([", ".join(steps[:-1]), steps[-1]] if len(steps) > 1 else steps)
