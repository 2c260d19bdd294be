"""Advice about what layers compute: attention logits, the loss's logits, what is kept for the backward pass, its type.

Each estimate stands on the listed buffers as they are: what replaces them (a chunk of the loss, the layer that is
computed again) is counted, what the compiler then does differently is not known.
"""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.memory.oom.advice.roles import Facts, Item, Type, by_type
from tpuprof.parsers.memory.oom.advice.rule import Cuts, Stage, Words, halved, less, resized, rule_of_change, saving_of
from tpuprof.parsers.memory.oom.advice.words import (
    amount,
    product,
    shape_of,
    shapes_of,
    size_of,
    some,
    summed,
    times,
    total,
)

CHUNKS = 8
"""Into so many pieces the loss is taken apart for the estimate."""

_ELEMENT_BYTES = {"f32": 4, "bf16": 2, "f16": 2, "f64": 8, "s32": 4, "u32": 4, "s8": 1, "u8": 1, "pred": 1}


def _attention_cuts(facts: Facts) -> Cuts:
    """Flash attention stores neither logits nor weights of attention."""
    return {item.index: 0 for item in facts.of("attention")}


def _attention_words(facts: Facts, items: Sequence[Item], _: int) -> Words:
    """The logits of attention, all of them."""
    kept = any("jvp(" in item.op and "transpose(" not in item.op for item in items)
    own = {item.index for item in items}
    remat = saving_of(facts, {index: left for index, left in _remat_cuts(facts).items() if index in own})
    narrow = saving_of(facts, halved(items))
    others = ((f"jax.checkpoint per layer -{amount(remat)}", remat), (f"bf16 alone -{amount(narrow)}", narrow))
    instead = ", ".join(other for other, saving in others if saving)
    return Words(
        f"attention logits {shapes_of(items)}{' kept for backward' if kept else ''}{_layers_in_words(facts, items)}",
        "flash (splash) attention never stores them",
        _worked_out(items[0]) + (f"; {summed(items)}" if len(items) > 1 else ""),
        f"or {instead}" if instead else "",
    )


ATTENTION = rule_of_change("attention", "remat", Stage.NOT_STORED, "flash attention", _attention_cuts, _attention_words)


def _loss_cuts(facts: Facts) -> Cuts:
    """One chunk of the loss's logits at a time."""
    return {item.index: -(-item.size // CHUNKS) for item in facts.of("loss")}


def _loss_words(facts: Facts, items: Sequence[Item], saving: int) -> Words:
    """Logits over the vocabulary for all tokens at once."""
    sure = "" if any(item.op for item in items) else "what looks like "
    narrow = saving_of(facts, halved(items))
    return Words(
        f"{sure}loss logits {shapes_of(items)}, vocabulary {items[0].dims[-1]:,}",
        f"compute the loss in chunks of tokens (a scan with jax.checkpoint), here 1/{CHUNKS} at a time",
        f"{summed(items)}; 1/{CHUNKS} stays: {amount(size_of(items) - saving)}",
        f"or bf16 alone -{amount(narrow)}" if narrow else "",
    )


LOSS = rule_of_change("loss", "remat", Stage.NOT_STORED, f"loss in {CHUNKS} chunks", _loss_cuts, _loss_words)


def _remat_cuts(facts: Facts) -> Cuts:
    """`jax.checkpoint` around each layer: kept are the layers' inputs, and of one layer what it computes again.

    Buffers of one shape from several layers belong together. What stays of m of them in L layers is what one layer has,
    ceil(m / L); of the shape of the layers' inputs one a layer more. That shape is taken to be the smallest one of
    three dimensions, (batch, sequence, features). What `jax.checkpoint` is at work on already is left alone.
    """
    computed = facts.of("activation", "attention")
    at_work = ("transpose(", "checkpoint", "remat")
    groups = by_type(item for item in computed if not any(word in item.op for word in at_work))
    inputs = _layer_inputs(list(groups))
    cuts: dict[int, int] = {}
    for key, items in groups.items():
        cuts.update(_stacked_cuts([item for item in items if item.stack > 1], key == inputs))
        cuts.update(_repeated_cuts([item for item in items if item.stack == 1], key == inputs))
    return less(facts, cuts)


def _layer_inputs(types: Sequence[Type]) -> Type | None:
    """Of these types that of the layers' inputs."""
    bytes_of = {key: _ELEMENT_BYTES.get(key[0], 4) * key[1][-1] for key in types if len(key[1]) == 3}
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
    members = named or items
    layers = len({item.layer for item in named}) if named else len(members)
    if layers < 2:
        return {}
    stay = -(-len(members) // layers) + (layers - 1 if with_inputs else 0)
    return {item.index: 0 for item in members[stay:]}


def _remat_words(facts: Facts, cut: Sequence[Item], saving: int) -> Words:
    """All that `jax.checkpoint` around the layers would drop, with what stays of the same types."""
    types = by_type(cut)
    items = [item for item in facts.of("activation", "attention") if (item.element, item.dims) in types]
    if any(item.layer for item in items):
        items = [item for item in items if item.layer or item.stack > 1]
    where = "the scan's body" if any(item.stack > 1 for item in items) else "each layer"
    whole = size_of(items)
    return Words(
        f"activations kept for backward{_layers_in_words(facts, items)}: {shapes_of(items)}",
        f"jax.checkpoint around {where}: backward computes them again, one layer at a time",
        f"{amount(whole)} in {len(items)} buffers; {amount(whole - saving)} stays: inputs, and one layer at work",
        items=items,
    )


REMAT = rule_of_change("remat", "remat", Stage.NOT_STORED, "jax.checkpoint around layers", _remat_cuts, _remat_words)


def _recomputed(facts: Facts) -> list[Item]:
    """The equal arrays of a TensorFlow program that take most, the largest first."""
    groups = by_type(item for item in facts.of("forward") if item.is_tensorflow and len(item.dims) > 1)
    return max(groups.values(), key=lambda group: size_of(group[1:]), default=[])


def _recompute_cuts(facts: Facts) -> Cuts:
    """Of equal arrays one stays."""
    return {item.index: 0 for item in _recomputed(facts)[1:]}


def _recompute_words(facts: Facts, _: Sequence[Item], saving: int) -> Words:
    """Equal arrays: TensorFlow's names do not tell whether they are kept for gradients."""
    items = _recomputed(facts)
    return Words(
        f"{times(len(items), shape_of(items[0]))} in memory at once: {some([item.op for item in items], 2)}",
        "if they are kept for gradients: tf.recompute_grad around the block keeps one of them",
        f"{len(items) - 1} of {total(item.size for item in items)} = {amount(saving)}",
        items=items,
    )


RECOMPUTE = rule_of_change(
    "recompute",
    "remat",
    Stage.NOT_STORED,
    "tf.recompute_grad around the block",
    _recompute_cuts,
    _recompute_words,
)


def _bf16_cuts(facts: Facts) -> Cuts:
    """Two bytes for each element where there are four, in what the passes compute; gradients have their own rule."""
    return less(facts, halved(facts.of("attention", "loss", "activation", "backward", "forward")))


def _bf16_words(_: Facts, items: Sequence[Item], saving: int) -> Words:
    """What the passes compute in float32."""
    plain = all(item.role == "forward" and not item.is_tensorflow for item in items)
    left = f"at 2 B {amount(size_of(items) - saving)}"
    whole = f"{amount(size_of(items))} in {len(items)} buffers at 4 B an element"
    return Words(
        f"{'arrays' if plain else 'activations'} in f32: {shapes_of(items)}",
        "compute and keep them in bf16, sum and normalise in f32",
        f"{_worked_out(items[0]) if len(items) == 1 else whole}; {left}",
    )


BF16 = rule_of_change("bf16", "bf16", Stage.NARROWER, "activations f32 -> bf16", _bf16_cuts, _bf16_words)


def _worked_out(item: Item) -> str:
    """``64 x 4 x 2048 x 2048 x 4 B = 4.00 GiB``, with padded dimensions."""
    width = _ELEMENT_BYTES.get(item.element)
    if width is None or not item.padded_dims:
        return f"{shape_of(item)}: {amount(item.size)}"
    return f"{product(item.padded_dims, width)} = {amount(item.size)}"


def _layers_in_words(facts: Facts, items: Sequence[Item]) -> str:
    """``, 3 of 4 layers``; nothing where the layers are unknown."""
    stack = max((item.stack for item in items), default=1)
    named = {item.layer for item in items if item.layer}
    here = max(stack, len(named))
    if here < 2:
        return f" in {next(iter(named))}" if named else ""
    return f", {here} of {facts.layers} layers" if here <= facts.layers else f", {here} layers"
