"""What-if: which changes can be tried on the listed buffers, and what they would come to together.

Each change leaves a share of each buffer that it is about. Changes are applied one after the other in the order of
`ORDER`, a later one to what the earlier ones left, so that each byte counts once: first a smaller batch, which all else
depends on, then what is not stored at all any more, then narrower types, then padding, then state. That is not the
order in which they are listed, which is that of the advice: the n-th toggle is the n-th advice, and alone it saves what
that says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType

from tpuprof.parsers.memory.oom.advice import advice
from tpuprof.parsers.memory.oom.advice.activations import (
    CHUNKS,
    attention_cuts,
    bf16_cuts,
    loss_cuts,
    recompute_cuts,
    remat_cuts,
)
from tpuprof.parsers.memory.oom.advice.batch import batch_cuts, smaller_batch
from tpuprof.parsers.memory.oom.advice.cuts import LEAST_BYTES, Cuts, items_of, saving_of
from tpuprof.parsers.memory.oom.advice.padding import MOST_SHAPES, padding_cuts
from tpuprof.parsers.memory.oom.advice.roles import Facts, read
from tpuprof.parsers.memory.oom.advice.scoped import divisor, scoped_cuts
from tpuprof.parsers.memory.oom.advice.state import cast_cuts, donation_cuts, gradient_cuts, layout_cuts, optimizer_cuts
from tpuprof.parsers.memory.oom.advice.words import short_shape
from tpuprof.parsers.memory.oom.model import Estimate, Need, Toggle

_PADDING = tuple("padding" if at == 0 else f"padding {at + 1}" for at in range(MOST_SHAPES))
"""A key for each shape, worked out together."""

_Change = Callable[[Facts], Cuts]

_HBM: Mapping[str, _Change | None] = MappingProxyType(
    {
        "batch": batch_cuts,
        "attention": attention_cuts,
        "loss": loss_cuts,
        "remat": remat_cuts,
        "recompute": recompute_cuts,
        "bf16": bf16_cuts,
        "gradients": gradient_cuts,
        **dict.fromkeys(_PADDING),
        "optimizer": optimizer_cuts,
        "duplicates": cast_cuts,
        "layout": layout_cuts,
        "donation": donation_cuts,
    }
)
_ON_CHIP: Mapping[str, _Change | None] = MappingProxyType({"scoped": scoped_cuts})

ORDER = (*_HBM, *_ON_CHIP)
"""Keys of all toggles in the order in which they are applied."""

_TIES = {key: advice.ORDER.index(_PADDING[0] if key in _PADDING else key) for key in ORDER}
"""Place in the order of advice that saves the same."""

_TITLES: Mapping[str, str] = MappingProxyType(
    {
        "attention": "flash attention",
        "loss": f"loss in {CHUNKS} chunks",
        "remat": "jax.checkpoint around layers",
        "recompute": "tf.recompute_grad around the block",
        "bf16": "activations f32 -> bf16",
        "gradients": "gradients in bf16, or halved",
        "optimizer": "optimizer state in bf16, or halved",
        "duplicates": "weights cast a layer at a time",
        "layout": "weights in the layout used",
        "donation": "donated arguments",
    }
)

_LEAST = 0.001  # of the need; what changes less is no toggle


def _changes(facts: Facts, chosen: Collection[str]) -> Iterator[tuple[str, Cuts]]:
    """What each chosen change leaves, in the order in which they are applied."""
    shapes: list[Cuts] | None = None
    for key, rule in (_HBM if facts.is_hbm else _ON_CHIP).items():
        if key not in chosen:
            continue
        if rule is not None:
            yield key, rule(facts)
            continue
        shapes = padding_cuts(facts) if shapes is None else shapes
        number = _PADDING.index(key)
        yield key, shapes[number] if number < len(shapes) else {}


def toggles(need: Need) -> tuple[Toggle, ...]:
    """The changes that would save something, the largest saving first, as in the advice.

    So a number stands for the same change in both lists, as far as the advice has estimates; changes that are too small
    for advice follow.
    """
    facts = read(need)
    found = []
    for key, cuts in _changes(facts, ORDER):
        saving = saving_of(facts, cuts)
        if saving < 1 or (facts.is_hbm and saving < max(LEAST_BYTES, _LEAST * facts.whole_bytes)):
            continue
        largest = tuple(item.index for item in items_of(facts, cuts))
        found.append((-saving, _TIES[key], Toggle(key, _title(key, facts, largest), largest)))
    found.sort(key=lambda each: each[:2])
    return tuple(toggle for _, _, toggle in found)


def _title(key: str, facts: Facts, buffers: Collection[int]) -> str:
    if key == "batch":
        return f"batch {facts.batch} -> {smaller_batch(facts)}"
    if key == "scoped":
        return f"blocks 1/{divisor(facts)}"
    if key in _PADDING:
        first = facts.items[next(iter(buffers))]
        return f"less padding of {short_shape(first.element, first.whole_dims)}"
    return _TITLES[key]


def saved_alone(need: Need, chosen: Collection[str]) -> dict[str, int]:
    """What each of some of a need's toggles would save alone, as `what_if` says of it."""
    facts = read(need)
    return {key: saving_of(facts, cuts) for key, cuts in _changes(facts, chosen)}


def what_if(need: Need, chosen: Collection[str]) -> Estimate:
    """What the chosen toggles would come to; keys that are none of the need's change nothing.

    Sizes never grow, and one more toggle never saves less: each leaves a fixed share of a buffer, rounded up.
    """
    facts = read(need)
    sizes = [item.size for item in facts.items]
    saved_by: dict[str, int] = {}
    for key, cuts in _changes(facts, chosen):
        saved = 0
        for index, left in cuts.items():
            whole = facts.items[index].size
            now = -(-sizes[index] * left // whole) if whole else 0
            saved += sizes[index] - now
            sizes[index] = now
        saved_by[key] = saved
    total = sum(saved_by.values())
    used = need.used_bytes
    after = tuple(min(size, buffer.size_bytes) for size, buffer in zip(sizes, need.buffers, strict=True))
    return Estimate(None if used is None else max(0, used - total), total, saved_by, after)
