"""Advice about what layers compute: attention logits, the loss's logits, what is kept for the backward pass, its type.

Each estimate stands on the listed buffers as they are: what replaces them (a chunk of the loss, the layer that is
computed again) is counted, what the compiler then does differently is not known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from tpuprof.parsers.memory.account.roles import KEPT_NARROW, BufferFacts, NeedFacts, again_as, by_type
from tpuprof.parsers.memory.oom.advice import rule, words
from tpuprof.parsers.memory.oom.advice.moments import Cuts, Recomputed
from tpuprof.parsers.memory.oom.advice.words import amount, shapes_of, size_of, summed

CHUNKS = 8  # pieces that the loss is split into for the estimate
_MOSTLY = 0.9
_HEAD = 128  # features of a head where no array shows how many there are
_LEAST_NARROWER = 0.35  # share of what halving saves: the compiler keeps some in bf16 already, or in f32 again
_LEAST_CHUNKS = 0.3  # and of the loss in chunks: what is beside the logits then decides
_LARGE = 32  # times as large another array may be at most that is of the same kind
_LEAST_KNOWN_CHUNKS = 0.7
_ELEMENT_BYTES = {"f32": 4, "bf16": 2, "f16": 2, "f64": 8, "s32": 4, "u32": 4, "s8": 1, "u8": 1, "pred": 1}


def _attention_cuts(facts: NeedFacts, is_wide: bool = False) -> Cuts:
    """What attention's scores leave: a kernel's operands and its output, beside what is kept of these already.

    Operands of a kernel have the type that the program computes in. In float32 the compiler keeps those of its own
    matrix products in bfloat16, which are 2 bytes an element less; the output is kept as the kernel writes it besides.
    Of layers that are written out the compiler may keep the kernel's padded lanes, too (`is_wide`).
    """
    items, cuts = facts.of("attention"), dict[int, int]()
    more = 3 * 2 + 4 if facts.is_wide else 2
    seen = Counter[tuple[str, tuple[int, ...]]]()
    for item in items:
        heads, features = math.prod(item.dims[:-2]), _head_features(facts, item)
        is_first = seen[item.layer, item.dims] < (
            1 if item.layer or item.stack > 1 else max(1, facts.need.known.layers)
        )
        seen[item.layer, item.dims] += 1
        rows = heads * item.dims[-2] * item.stack
        row = features * more + 2 * 4
        if is_wide and item.stack == 1:
            row = max(features, _HEAD) * more + 2 * 4 * _HEAD
        extra = rows * row if is_first and _is_kept(item) and len(item.dims) > 2 else 0
        cuts[item.index] = min(item.size, extra)
    return cuts


def _is_kept(item: BufferFacts) -> bool:
    """Whether the forward pass keeps it for the backward pass."""
    return ("jvp(" in item.op and "transpose(" not in item.op) or KEPT_NARROW in item.buffer.name


def _head_features(facts: NeedFacts, scores: BufferFacts) -> int:
    """How many features a head has, by arrays of as many heads; the usual 128 where there are none."""
    heads, rows = math.prod(scores.dims[-3:-2]), scores.dims[-2]
    found = Counter(
        item.dims[-1]
        for item in facts.of("activation", "backward", "forward", "other")
        if len(item.dims) == 4 and {heads, rows} <= set(item.dims[1:]) and 1 < item.dims[-1] <= 2 * _HEAD
    )
    return max(found, key=lambda length: (found[length], -length), default=_HEAD)


@rule.change("attention", "remat", rule.ChangeOrder.NOT_STORED, "flash attention", _attention_cuts)
def attention(facts: NeedFacts, items: Sequence[BufferFacts], saving: int) -> rule.AdviceText:
    """The logits and weights of attention, which flash attention does not store."""
    kept = any(_is_kept(item) for item in items)
    own = {item.index for item in items}
    again = rule.saving_of(facts, {index: left for index, left in _remat_cuts(facts).items() if index in own})
    narrow = rule.saving_of(facts, rule.halved(items))
    others = ((f"jax.checkpoint per layer -{amount(again)}", again), (f"bf16 alone -{amount(narrow)}", narrow))
    instead = ", ".join(other for other, size in others if size)
    left = size_of(items) - saving
    return rule.AdviceText(
        f"attention logits {shapes_of(items)}{' kept for backward' if kept else ''}{_layers_in_words(facts, items)}",
        "flash (splash) attention never stores them",
        _worked_out(items[0])
        + (f"; {summed(items)}" if len(items) > 1 else "")
        + (f"; the kernel's operands and output take {amount(left)} more" if left else ""),
        f"or {instead}" if instead else "",
        least=rule.saving_of(facts, _attention_cuts(facts, is_wide=facts.need.known.is_read)) / saving,
    )


def _loss_cuts(facts: NeedFacts) -> Cuts:
    return {item.index: -(-item.size // CHUNKS) for item in facts.of("loss")}


@rule.change("loss", "remat", rule.ChangeOrder.NOT_STORED, f"loss in {CHUNKS} chunks", _loss_cuts)
def loss(facts: NeedFacts, items: Sequence[BufferFacts], saving: int) -> rule.AdviceText:
    """Logits over the vocabulary for all tokens at once."""
    sure = "" if any(item.op for item in items) else "what looks like "
    narrow = rule.saving_of(facts, rule.halved(items))
    return rule.AdviceText(
        f"{sure}loss logits {shapes_of(items)}, vocabulary {items[0].dims[-1]:,}",
        f"compute the loss in chunks of tokens (a scan with jax.checkpoint), here 1/{CHUNKS} at a time",
        f"{summed(items)}; 1/{CHUNKS} stays: {amount(size_of(items) - saving)}",
        f"or bf16 alone -{amount(narrow)}" if narrow else "",
        least=_LEAST_KNOWN_CHUNKS if facts.need.known.is_read else _LEAST_CHUNKS,
    )


def _remat_cuts(facts: NeedFacts) -> Cuts:
    """`jax.checkpoint` around each layer: kept are the layers' inputs, and of one layer what it computes again.

    Buffers of one shape from several layers belong together. What stays of m of them in L layers is what one layer has,
    ceil(m / L); of the shape of the layers' inputs one a layer more. That shape is taken to be the smallest one of
    three dimensions, (batch, sequence, features), or of two. What `jax.checkpoint` is at work on already is left alone.
    """
    computed = facts.of("activation", "attention")
    at_work = ("transpose(", "checkpoint", "remat")
    groups = by_type(item for item in computed if not any(word in item.op for word in at_work))
    floats = [key for key in groups if groups[key][0].is_float]
    ranked = [key for key in floats if len(key[1]) == 3] or [key for key in floats if len(key[1]) == 2]
    row_bytes = {key: _ELEMENT_BYTES.get(key[0], 4) * key[1][-1] for key in ranked}
    inputs = min(row_bytes, key=lambda key: (row_bytes[key], key), default=None)
    cuts: dict[int, int] = {}
    for key, items in groups.items():
        # of what a scan keeps one layer's part of each array stays, and the array of inputs as it is
        stacked = [item for item in items if item.stack > 1]
        cuts |= {item.index: rule.resized(item, 0, 1) for item in (stacked[:-1] if key == inputs else stacked)}
        cuts |= _repeated_cuts([item for item in items if item.stack == 1], facts.need.known.layers, key == inputs)
    return rule.less(facts, cuts)


def _repeated_cuts(items: Sequence[BufferFacts], known: int, with_inputs: bool) -> Cuts:
    """What layers keep that are written out one after the other, in scopes of their own or as many as are known."""
    named = [item for item in items if item.layer]
    members = named or items
    layers = len({item.layer for item in named}) if named else known or len(members)
    if layers < 2:
        return {}
    return rule.gone(members[-(-len(members) // layers) + (layers - 1 if with_inputs else 0) :])


def _recomputed(facts: NeedFacts) -> Cuts:
    """The same over the whole program, where that is known: all that layers keep goes, but for their inputs; and while
    a layer is at work on its backward pass it has one array of each shape, since what follows from that element by
    element is computed as it is read.
    """
    every = facts.everywhere
    if every is None:
        return _remat_cuts(facts)
    cut = [every.items[index] for index in _remat_cuts(every)]
    types = by_type(cut)
    layers = max([1, len({item.layer for item in cut if item.layer}), *(item.stack for item in cut)])
    layers = layers if layers > 1 else every.need.known.layers
    kept = [item for item in every.of("activation", "attention") if _is_kept(item) or item.stack > 1]
    kept = [item for item in kept if (item.element, item.dims) in types]
    kept += _delayed(every, layers) if all(item.stack == 1 for item in kept) else []
    if not kept or layers < 2:
        return {}
    work: dict[tuple[int, ...], int] = {}
    for item in kept:
        work[item.dims] = max(work.get(item.dims, 0), -(-item.size // item.stack))
    logits = every.of("loss")
    begin = max((item.buffer.dies or 0 for item in logits if _LARGE * item.size >= logits[0].size), default=0)
    return Recomputed(rule.gone(kept), _inputs_bytes(facts, kept, layers), sum(work.values()), begin)


def _delayed(every: NeedFacts, layers: int) -> list[BufferFacts]:
    """What the backward pass of written out layers keeps, so that it can make all weights' gradients together."""
    groups = by_type(item for item in every.of("backward") if every.need.known.grows(item.buffer))
    return [item for items in groups.values() if len(items) >= layers for item in items]


def _inputs_bytes(facts: NeedFacts, kept: Sequence[BufferFacts], layers: int) -> int:
    """What the layers' inputs take that are not kept already: the smallest arrays that are no mere rows of others."""
    passes = [
        item for item in (facts.everywhere or facts).of("activation") if item.is_float and len(item.dims) in (2, 3)
    ]
    sizes = {item.dims: math.prod(item.dims) for item in passes}
    elements = min((size for size in sizes.values() if _LARGE * size >= max(sizes.values())), default=0)
    gone = {item.index for item in kept}
    there = sum(item.stack for item in passes if sizes[item.dims] == elements and item.index not in gone)
    return max(0, layers - there) * elements * (4 if facts.is_wide else 2)


@rule.change("remat", "remat", rule.ChangeOrder.NOT_STORED, "jax.checkpoint around layers", _remat_cuts, _recomputed)
def remat(facts: NeedFacts, cut: Sequence[BufferFacts], saving: int) -> rule.AdviceText:
    """All that `jax.checkpoint` around the layers would drop, with what stays of the same types."""
    types = by_type(cut)
    items = [item for item in facts.of("activation", "attention") if (item.element, item.dims) in types]
    if any(item.layer for item in items):
        items = [item for item in items if item.layer or item.stack > 1]
    where = "the scan's body" if any(item.stack > 1 for item in items) else "each layer"
    whole = size_of(items)
    return rule.AdviceText(
        f"activations kept for backward{_layers_in_words(facts, items)}: {shapes_of(items)}",
        f"jax.checkpoint around {where}: backward computes them again, one layer at a time",
        f"{amount(whole)} in {len(items)} buffers; {amount(whole - saving)} stays: inputs, and one layer at work",
        items=items,
        least=_least_remat(items, facts.need.known.layers),
    )


def _least_remat(items: Sequence[BufferFacts], layers: int) -> float:
    """The share that is sure. What a scan keeps is one array, and goes. Of layers that are written out the compiler
    keeps what it wants to, and where it computes things again by itself already, and no weights show how many layers
    there are, nothing may be left to save.
    """
    if size_of([item for item in items if item.stack > 1]) >= _MOSTLY * size_of(items):
        return 1.0
    return 0.0 if layers < 2 and any(again_as(item.buffer.name) for item in items) else 0.5


def _equal(facts: NeedFacts) -> list[BufferFacts]:
    """The equal arrays of a TensorFlow program that take most, the largest first."""
    groups = by_type(item for item in facts.of("forward") if item.is_tensorflow and len(item.dims) > 1)
    return max(groups.values(), key=lambda group: size_of(group[1:]), default=[])


@rule.change(
    "recompute",
    "remat",
    rule.ChangeOrder.NOT_STORED,
    "tf.recompute_grad around the block",
    lambda facts: rule.gone(_equal(facts)[1:]),
)
def recompute(facts: NeedFacts, _: Sequence[BufferFacts], saving: int) -> rule.AdviceText:
    """Equal arrays, of which one would do; TensorFlow's names do not show whether they are kept for gradients."""
    items = _equal(facts)
    shape = words.repeated(len(items), words.shape_of(items[0]))
    ops = words.listed_names([item.op for item in items], 2)
    return rule.AdviceText(
        f"{shape} in memory at once: {ops}",
        "if they are kept for gradients: tf.recompute_grad around the block keeps one of them",
        f"{len(items) - 1} of {words.sum_of_sizes(item.size for item in items)} = {amount(saving)}",
        items=items,
    )


def _bf16_cuts(facts: NeedFacts) -> Cuts:
    """Two bytes for each element where there are four, in what the passes compute; gradients have their own rule."""
    return rule.less(facts, rule.halved(facts.of("attention", "activation", "backward", "forward")))


@rule.change("bf16", "bf16", rule.ChangeOrder.NARROWER, "activations f32 -> bf16", _bf16_cuts)
def bf16(_: NeedFacts, items: Sequence[BufferFacts], saving: int) -> rule.AdviceText:
    """What the passes compute in float32."""
    plain = all(item.role == "forward" and not item.is_tensorflow for item in items)
    left = f"at 2 B {amount(size_of(items) - saving)}"
    whole = f"{amount(size_of(items))} in {len(items)} buffers at 4 B an element"
    return rule.AdviceText(
        f"{'arrays' if plain else 'activations'} in f32: {shapes_of(items)}",
        "compute and keep them in bf16, sum and normalise in f32",
        f"{_worked_out(items[0]) if len(items) == 1 else whole}; {left}",
        least=_LEAST_NARROWER,
    )


def _worked_out(item: BufferFacts) -> str:
    """``64 x 4 x 2048 x 2048 x 4 B = 4.00 GiB``, with padded dimensions."""
    width = _ELEMENT_BYTES.get(item.element)
    if width is None or not item.padded_dims:
        return f"{words.shape_of(item)}: {amount(item.size)}"
    return f"{words.product(item.padded_dims, width)} = {amount(item.size)}"


def _layers_in_words(facts: NeedFacts, items: Sequence[BufferFacts]) -> str:
    """``, 3 of 4 layers``; nothing where the layers are unknown."""
    stack = max((item.stack for item in items), default=1)
    named = {item.layer for item in items if item.layer}
    here = max(stack, len(named))
    if here < 2:
        return f" in {next(iter(named))}" if named else ""
    return f", {here} of {facts.layers} layers" if here <= facts.layers else f", {here} layers"
