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
from tpuprof.parsers.memory.oom.advice.moments import Cuts, composed, saved
from tpuprof.parsers.memory.oom.advice.padding import chosen, padding
from tpuprof.parsers.memory.oom.advice.rule import LEAST_BYTES, AdviceText, Rule, advice_of, items_of, saving_of
from tpuprof.parsers.memory.oom.advice.scoped import scoped, single
from tpuprof.parsers.memory.oom.advice.shard import shard
from tpuprof.parsers.memory.oom.advice.state import cast, donation, equal, gradients, layout, optimizer
from tpuprof.parsers.memory.oom.advice.words import amount, capacity, ratio, short_name
from tpuprof.parsers.memory.oom.model import Advice, Toggle, WhatIfEstimate

_MANY_GAPS = 0.05  # share of the need from which on gaps between buffers are worth a line
_MOSTLY, _HARDLY = 0.5, 0.05
_RESHARDING = ("_identity_fn", "_multi_slice", "_allgather")


@Rule
def fragmentation(facts: NeedFacts) -> list[Advice]:
    """Gaps, where they are large or as large as what is missing."""
    need, gaps = facts.need, facts.need.fragmentation_bytes
    if gaps is None or gaps <= 0:
        return []
    over, of = need.over_bytes, need.temporaries_bytes
    used = need.used_bytes or of or facts.whole_bytes
    if gaps < _MANY_GAPS * used and not (over is not None and 0 < over <= gaps and 2 * gaps > _MANY_GAPS * used):
        return []
    words = AdviceText(
        f"{amount(gaps)}{f' of {amount(of)} of temporaries' if of else ''} are gaps between buffers",
        "fewer and smaller large buffers (scan over layers, remat, chunks) leave gaps that others fit into",
        f"gaps {amount(gaps)}" + (f"; {amount(over)} are missing" if over is not None and over > 0 else ""),
    )
    return [advice_of(facts, "fragmentation", None, words)]


@Rule
def request(facts: NeedFacts) -> list[Advice]:
    """Memory that was not free when a program was loaded or an array made."""
    need, requested, free = facts.need, facts.need.requested_bytes, facts.need.free_bytes
    if need.kind not in ("load", "runtime") or requested is None:
        return []
    program = short_name(need.program) if need.program else ""
    what = f"loading {program or 'the program'}" if need.kind == "load" else "an allocation"
    sentence = f"{what} needs {amount(requested)} in one piece"
    arithmetic = f"requested {amount(requested)}"
    if free is not None:
        sentence += f", {amount(free)} {'are' if free != 1 else 'is'} free"
        arithmetic += f" - free {amount(free)} = {amount(requested - free)} short"
        if free >= requested:
            piece = None if need.fragmentation_bytes is None else free - need.fragmentation_bytes
            sentence += ", but not in one piece" if piece is None else f", of which {amount(piece)} in one piece"
            arithmetic = f"free {amount(free)} - requested {amount(requested)} = {amount(free - requested)} to spare"
    how = "other arrays hold the rest: jax.live_arrays() lists them, jax.profiler.save_device_memory_profile shows "
    how += "which lines (tpuprof-tui oom LOG memory.prof); delete or donate arrays that are no longer used"
    if need.kind == "load":
        how += "; jax.clear_caches() unloads programs that are no longer needed"
    if need.outputs_bytes:
        sentence += f"; outputs of earlier runs take {amount(need.outputs_bytes)}"
    lines = [AdviceText(sentence, how, arithmetic)]
    if need.program and any(name in need.program for name in _RESHARDING):
        sentence = f"{program} is JAX copying a whole array to every device (process_allgather, device_put)"
        how = "keep it sharded, or fetch it shard by shard"
        lines.insert(0, AdviceText(sentence, how, f"{amount(requested)} on every device"))
    return [advice_of(facts, "other", None, words) for words in lines]


@Rule
def cache(facts: NeedFacts) -> list[Advice]:
    """The KV cache of a serving engine, which is to hold one request of the longest kind at least."""
    need = facts.need
    if need.kind != "cache":
        return []
    longest = f" of {need.wanted_tokens:,} tokens" if need.wanted_tokens else ""
    sentence = f"the keys and values of a request{longest} do not fit into what weights leave of HBM"
    fits = f"max_model_len={need.fitting_tokens} fits" if need.fitting_tokens else "a smaller max_model_len or batch"
    how = f"{fits}; or more memory for the cache: a larger gpu_memory_utilization (SGLang: mem_fraction_static), "
    how += "more chips (tensor_parallel_size), keys and values in fp8 (kv_cache_dtype), which halves them"
    texts = []
    if need.used_bytes and need.capacity_bytes:
        texts.append(f"{amount(need.used_bytes)} needed, {amount(need.capacity_bytes)} there")
    if need.fitting_tokens:
        texts.append(f"{need.fitting_tokens:,} tokens fit")
    return [advice_of(facts, "other", None, AdviceText(sentence, how, "; ".join(texts) or "the text has no sizes"))]


@Rule
def parts(facts: NeedFacts) -> list[Advice]:
    """Advice from the totals alone, where most of the need is not in the listed buffers."""
    need, used = facts.need, facts.need.used_bytes
    if need.kind != "compile" or need.memory_space != "hbm" or used is None or facts.listed_bytes > _HARDLY * used:
        return []
    advice = []
    there, temporaries, arguments = need.capacity_bytes, need.temporaries_bytes, need.arguments_bytes
    smaller = "a smaller batch per device, jax.checkpoint around the layers"
    if temporaries is not None and temporaries > _MOSTLY * used:
        is_more = there is not None and 0 < there < temporaries
        share = f", {ratio(temporaries, there)} the HBM" if there and is_more else f" of {amount(used)}"
        arithmetic = f"{amount(temporaries)} of {amount(used)} needed"
        if there:
            arithmetic += f", {capacity(there)} there"
        if there and temporaries >= there > 0:
            arithmetic += f"; a batch of 1/{-(-temporaries // there)} if all of it grows with the batch"
        how = smaller + ("; donating arguments does not help" if is_more else "")
        words = AdviceText(f"temporaries alone take {amount(temporaries)}{share}", how, arithmetic)
        advice.append(advice_of(facts, "batch", None, words))
    elif temporaries is None and arguments is not None and arguments <= _MOSTLY * used:
        sentence = f"the program itself takes {amount(used - arguments)}, its arguments {amount(arguments)}"
        arithmetic = f"{amount(used)} needed - {amount(arguments)} of arguments = {amount(used - arguments)}"
        advice.append(advice_of(facts, "batch", None, AdviceText(sentence, smaller, arithmetic)))
    if arguments is not None and arguments > _MOSTLY * used:
        sentence = f"arguments alone take {amount(arguments)} of {amount(used)}"
        how = "shard weights and optimizer state over more devices (FSDP), or keep them in bf16"
        words = AdviceText(sentence, how, f"{amount(arguments)} / N on N devices")
        advice.append(advice_of(facts, "optimizer", None, words))
    return advice


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
