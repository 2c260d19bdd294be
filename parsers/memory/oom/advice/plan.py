"""The cheapest combination of changes with which a program fits.

What a change costs is a rank, not a time: what costs nothing at run time comes before what changes numbers, that before
what computes things again, that before what makes a step do less. Of combinations of the same cost the one that leaves
more memory free counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.account.need import Need
from tpuprof.parsers.memory.account.roles import NeedFacts, read
from tpuprof.parsers.memory.oom.advice import words
from tpuprof.parsers.memory.oom.advice.advice import changes_of
from tpuprof.parsers.memory.oom.advice.batch import at_batch, batch_items, smaller_batch
from tpuprof.parsers.memory.oom.advice.moments import Cuts, saved
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
    "optimizer": (6, "the optimizer's state in bf16", "changes its numbers"),
    "gradients": (6, "gradients in bf16", "changes their numbers"),
    "bf16": (6, "activations in bf16", "changes their numbers"),
    "remat": (8, "checkpoint the layers", "computes their forward pass again, about a third more FLOPs"),
    "recompute": (8, "recompute_grad around the blocks", "computes them again"),
}
"""Change to its rank, what to do, and what that costs; batches come last."""

_EXCLUDE = {"gradients", "duplicates"}  # weights in bf16 have gradients in bf16
_BATCH_COST, _MOST_CHANGES, _MARGIN = 10, 3, 0.01


@dataclass(frozen=True, slots=True)
class _Candidate:
    cost: int
    left: int
    keys: tuple[str, ...]
    batch: int | None


def plan(need: Need) -> Plan | None:
    """What to change so that a program fits into HBM; None where it fits, or nothing is known of its buffers.

    Where no combination is enough, the one that comes nearest, and how many chips its arguments need.
    """
    there, used = need.capacity_bytes, need.used_bytes
    if need.memory_space != "hbm" or there is None or used is None or (need.over_bytes or 0) <= 0 or not need.buffers:
        return None
    facts = read(need)
    cuts = {key: left for key, left in changes_of(facts) if key in _COSTS and left}
    found = [
        candidate
        for count in range(_MOST_CHANGES + 1)
        for keys in itertools.combinations(cuts, count)
        if not set(keys) >= _EXCLUDE
        for candidate in _candidates(facts, keys, [cuts[key] for key in keys], used, there)
    ]
    enough = [each for each in found if each.left <= there * (1 - _MARGIN)]
    best = min(enough, key=lambda each: (each.cost, each.left)) if enough else min(found, key=lambda each: each.left)
    return _worded(facts, best, used, there, bool(enough))


def _candidates(
    facts: NeedFacts, keys: tuple[str, ...], cuts: Sequence[Cuts], used: int, there: int
) -> list[_Candidate]:
    """Some changes alone, and with the largest batch, halved as often as need be, that fits beside them."""
    every = facts.everywhere or facts
    rest = used - saved(facts, cuts)
    cost = sum(_COSTS[key][0] for key in keys)
    found = [_Candidate(cost, rest, keys, None)]
    leading, batch = batch_items(every), facts.batch
    halvings = 0
    smaller_alone = smaller_batch(facts) if not keys else None
    if leading and smaller_alone is not None:
        cuts_alone = {item.index: at_batch(every, item, smaller_alone) for item in leading}
        found.append(_Candidate(_BATCH_COST + 1, used - saved(facts, [cuts_alone]), keys, smaller_alone))
    while leading and batch is not None and batch >= 2 and batch % 2 == 0:
        batch, halvings = batch // 2, halvings + 1
        smaller = {item.index: at_batch(every, item, batch) for item in leading}
        need = used - saved(facts, [*cuts, smaller])
        found.append(_Candidate(cost + _BATCH_COST + 2 * halvings, need, keys, batch))
        if need <= there * (1 - _MARGIN):
            break
    return found


def _worded(facts: NeedFacts, best: _Candidate, used: int, there: int, fits: bool) -> Plan:
    steps = [_COSTS[key][1] for key in best.keys]
    steps += [f"batch {facts.batch} -> {best.batch}"] if best.batch is not None else []
    costs = [_COSTS[key][2] for key in best.keys if _COSTS[key][2]]
    costs += ["a step does less, or takes several microbatches"] if best.batch is not None else []
    changes = [Change(key.partition(" ")[0] if key.startswith("padding") else key, None) for key in best.keys]
    changes += [Change("batch", best.batch)] if best.batch is not None else []
    size = f"~{words.amount(best.left)} of {words.capacity(there)}"
    if fits:
        sentence = f"{_listed(steps)}: {size}, fits"
        return Plan(tuple(changes), best.left, True, sentence, tuple(costs))
    nearest = f"{_listed(steps)} leave {size}" if steps else "nothing known here makes it smaller"
    sentence = f"no combination of what is known here fits: {nearest}{_chips(facts.need, there)}"
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
