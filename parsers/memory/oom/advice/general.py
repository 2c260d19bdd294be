"""Advice where no list of buffers helps: gaps between them, loading, allocating at run time, texts without a list."""

from __future__ import annotations

from tpuprof.parsers.memory.account.roles import NeedFacts
from tpuprof.parsers.memory.oom.advice.rule import AdviceText, Rule, advice_of
from tpuprof.parsers.memory.oom.advice.words import amount, capacity, ratio, short_name
from tpuprof.parsers.memory.oom.model import Advice

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
    fits = f"max_model_len={need.fitting_tokens} fits" if need.fitting_tokens else "a smaller max_model_len"
    how = f"{fits}; or more memory for the cache: a larger gpu_memory_utilization, more chips (tensor_parallel_size), "
    how += "keys and values in fp8 (kv_cache_dtype), which halves them"
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
