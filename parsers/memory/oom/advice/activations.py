"""Advice about what layers compute: attention logits, the loss's logits, what is kept for the backward pass, its type.

Each estimate stands on the listed buffers as they are: what replaces them (a chunk of the loss, the layer that is
computed again) is counted, what the compiler then does differently is not known.
"""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.memory.oom.advice.cuts import (
    Cuts,
    advice_of,
    items_of,
    saving_of,
    shape_of,
    shapes_of,
    size_of,
    summed,
    worth_it,
)
from tpuprof.parsers.memory.oom.advice.roles import Facts, Item
from tpuprof.parsers.memory.oom.advice.sizes import halved, resized
from tpuprof.parsers.memory.oom.advice.words import amount, product, some, times, total
from tpuprof.parsers.memory.oom.model import Advice

CHUNKS = 8
"""Into so many pieces the loss is taken apart for the estimate."""

_ELEMENT_BYTES = {"f32": 4, "bf16": 2, "f16": 2, "f64": 8, "s32": 4, "u32": 4, "s8": 1, "u8": 1, "pred": 1}


def attention_cuts(facts: Facts) -> Cuts:
    """Flash attention stores neither logits nor weights of attention."""
    return {item.index: 0 for item in facts.of("attention")}


def attention_advice(facts: Facts) -> list[Advice]:
    """The logits of attention, all of them."""
    items = facts.of("attention")
    saving = saving_of(facts, attention_cuts(facts))
    if not worth_it(facts, saving):
        return []
    kept = any("jvp(" in item.op and "transpose(" not in item.op for item in items)
    layers = _layers_in_words(facts, items)
    sentence = f"attention logits {shapes_of(items)}{' kept for backward' if kept else ''}{layers}"
    instead = []
    own = {item.index for item in items}
    remat = saving_of(facts, {index: left for index, left in remat_cuts(facts).items() if index in own})
    if remat:
        instead.append(f"jax.checkpoint per layer -{amount(remat)}")
    narrow = saving_of(facts, halved(items))
    if narrow:
        instead.append(f"bf16 alone -{amount(narrow)}")
    how = "flash (splash) attention never stores them"
    others = f"or {', '.join(instead)}" if instead else ""
    arithmetic = _worked_out(items[0])
    if len(items) > 1:
        arithmetic += f"; {summed(items)}"
    return [advice_of(facts, "remat", saving, sentence, how, arithmetic, items, others)]


def loss_cuts(facts: Facts) -> Cuts:
    """One chunk of the loss's logits at a time."""
    return {item.index: -(-item.size // CHUNKS) for item in facts.of("loss")}


def loss_advice(facts: Facts) -> list[Advice]:
    """Logits over the vocabulary for all tokens at once."""
    items = facts.of("loss")
    saving = saving_of(facts, loss_cuts(facts))
    if not worth_it(facts, saving):
        return []
    largest = items[0]
    sure = "" if any(item.op for item in items) else "what looks like "
    sentence = f"{sure}loss logits {shapes_of(items)}, vocabulary {largest.dims[-1]:,}"
    how = f"compute the loss in chunks of tokens (a scan with jax.checkpoint), here 1/{CHUNKS} at a time"
    narrow = saving_of(facts, halved(items))
    others = f"or bf16 alone -{amount(narrow)}" if narrow else ""
    whole = size_of(items)
    arithmetic = f"{summed(items)}; 1/{CHUNKS} stays: {amount(whole - saving)}"
    return [advice_of(facts, "remat", saving, sentence, how, arithmetic, items, others)]


def remat_cuts(facts: Facts) -> Cuts:
    """`jax.checkpoint` around each layer: kept are the layers' inputs, and of one layer what it computes again.

    Buffers of one shape from several layers belong together. What stays of m of them in L layers is what one layer has,
    ceil(m / L); of the shape of the layers' inputs one a layer more. That shape is taken to be the smallest one of
    three dimensions, (batch, sequence, features). What `jax.checkpoint` is at work on already is left alone.
    """
    groups: dict[tuple[str, tuple[int, ...]], list[Item]] = {}
    for item in facts.of("activation", "attention"):
        if "transpose(" not in item.op and "checkpoint" not in item.op and "remat" not in item.op:
            groups.setdefault((item.element, item.dims), []).append(item)
    inputs = _layer_inputs(list(groups))
    cuts: dict[int, int] = {}
    for key, items in groups.items():
        cuts.update(_stacked_cuts([item for item in items if item.stack > 1], key == inputs))
        cuts.update(_repeated_cuts([item for item in items if item.stack == 1], key == inputs))
    return {index: left for index, left in cuts.items() if left < facts.items[index].size}


def _layer_inputs(keys: Sequence[tuple[str, tuple[int, ...]]]) -> tuple[str, tuple[int, ...]] | None:
    """Of these types and dimensions those of the layers' inputs."""
    bytes_of = {key: _ELEMENT_BYTES.get(key[0], 4) * key[1][-1] for key in keys if len(key[1]) == 3}
    return min(bytes_of, key=lambda key: (bytes_of[key], key), default=None)


def _stacked_cuts(items: Sequence[Item], with_inputs: bool) -> Cuts:
    """What a scan keeps: of each array one layer's part stays, the array of inputs as it is."""
    cuts = {item.index: resized(item, 0, 1) for item in items}
    if with_inputs and items:
        del cuts[items[-1].index]
    return cuts


def _repeated_cuts(items: Sequence[Item], with_inputs: bool) -> Cuts:
    """What layers keep that are written out one after the other."""
    named = [item for item in items if item.layer]
    members = named if named else list(items)
    layers = len({item.layer for item in named}) if named else len(members)
    if layers < 2:
        return {}
    stay = -(-len(members) // layers) + (layers - 1 if with_inputs else 0)
    return {item.index: 0 for item in members[stay:]}


def remat_advice(facts: Facts) -> list[Advice]:
    """All that `jax.checkpoint` around the layers would drop."""
    cuts = remat_cuts(facts)
    saving = saving_of(facts, cuts)
    if not worth_it(facts, saving):
        return []
    kept = facts.of("activation", "attention")
    shapes = {(item.element, item.dims) for item in kept if item.index in cuts}
    items = [item for item in kept if (item.element, item.dims) in shapes]
    if any(item.layer for item in items):
        items = [item for item in items if item.layer or item.stack > 1]
    scanned = any(item.stack > 1 for item in items)
    sentence = f"activations kept for backward{_layers_in_words(facts, items)}: {shapes_of(items)}"
    where = "the scan's body" if scanned else "each layer"
    how = f"jax.checkpoint around {where}: backward computes them again, one layer at a time"
    whole = size_of(items)
    arithmetic = (
        f"{amount(whole)} in {len(items)} buffers; {amount(whole - saving)} stays: inputs, and one layer at work"
    )
    return [advice_of(facts, "remat", saving, sentence, how, arithmetic, items)]


def recompute_cuts(facts: Facts) -> Cuts:
    """Of equal arrays of a TensorFlow program one stays."""
    return {item.index: 0 for item in _recomputed(facts)[1:]}


def _recomputed(facts: Facts) -> list[Item]:
    """The equal arrays that take most, the largest first."""
    groups: dict[tuple[str, tuple[int, ...]], list[Item]] = {}
    for item in facts.of("forward"):
        if item.is_tensorflow and len(item.dims) > 1:
            groups.setdefault((item.element, item.dims), []).append(item)
    return max(groups.values(), key=lambda group: sum(item.size for item in group[1:]), default=[])


def recompute_advice(facts: Facts) -> list[Advice]:
    """Equal arrays of a TensorFlow program: its names do not tell whether they are kept for gradients."""
    items, saving = _recomputed(facts), saving_of(facts, recompute_cuts(facts))
    if not worth_it(facts, saving):
        return []
    sentence = f"{times(len(items), shape_of(items[0]))} in memory at once: {some([item.op for item in items], 2)}"
    how = "if they are kept for gradients: tf.recompute_grad around the block keeps one of them"
    arithmetic = f"{len(items) - 1} of {total(item.size for item in items)} = {amount(saving)}"
    return [advice_of(facts, "remat", saving, sentence, how, arithmetic, items)]


def bf16_cuts(facts: Facts) -> Cuts:
    """Two bytes for each element where there are four, in what the passes compute; gradients have a change of their
    own.
    """
    left = halved(facts.of("attention", "loss", "activation", "backward", "forward"))
    return {index: size for index, size in left.items() if size < facts.items[index].size}


def bf16_advice(facts: Facts) -> list[Advice]:
    """What the passes compute in float32."""
    cuts = bf16_cuts(facts)
    items = items_of(facts, cuts)
    saving = saving_of(facts, cuts)
    if not worth_it(facts, saving):
        return []
    plain = all(item.role == "forward" and not item.is_tensorflow for item in items)
    sentence = f"{'arrays' if plain else 'activations'} in f32: {shapes_of(items)}"
    how = "compute and keep them in bf16, sum and normalise in f32"
    whole = size_of(items)
    arithmetic = f"{amount(whole)} in {len(items)} buffers at 4 B an element; at 2 B {amount(whole - saving)}"
    if len(items) == 1:
        arithmetic = f"{_worked_out(items[0])}; at 2 B {amount(whole - saving)}"
    return [advice_of(facts, "bf16", saving, sentence, how, arithmetic, items)]


def _worked_out(item: Item) -> str:
    """``64 x 4 x 2048 x 2048 x 4 B = 4.00 GiB``, with padded dimensions."""
    width = _ELEMENT_BYTES.get(item.element)
    padded = item.shape.padded_dimensions if item.shape is not None else None
    if width is None or not padded:
        return f"{shape_of(item)}: {amount(item.size)}"
    return f"{product(padded, width)} = {amount(item.size)}"


def _layers_in_words(facts: Facts, items: Sequence[Item]) -> str:
    """``, 3 of 4 layers``; nothing where the layers are unknown."""
    stack = max((item.stack for item in items), default=1)
    named = {item.layer for item in items if item.layer}
    here = max(stack, len(named))
    if here < 2:
        return f" in {next(iter(named))}" if named else ""
    return f", {here} of {facts.layers} layers" if here <= facts.layers else f", {here} layers"
