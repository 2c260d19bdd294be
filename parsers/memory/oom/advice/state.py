"""Advice about what lasts longer than a layer: optimizer state, weights' gradients, copies of weights, outputs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from tpuprof.parsers.memory.oom.advice.cuts import (
    Cuts,
    advice_of,
    items_of,
    saving_of,
    shapes_of,
    size_of,
    summed,
    worth_it,
)
from tpuprof.parsers.memory.oom.advice.roles import Facts, Item
from tpuprof.parsers.memory.oom.advice.sizes import halved, resized
from tpuprof.parsers.memory.oom.advice.words import amount, some
from tpuprof.parsers.memory.oom.model import Advice

_KEY = re.compile(
    r"(?<![A-Za-z])(mu|nu|mean|square|exp_avg\w*|momentum|velocity|trace|moments?\d?)(?![A-Za-z])", re.IGNORECASE
)


def optimizer_cuts(facts: Facts) -> Cuts:
    """Moments in bfloat16, or sharded over two devices: half either way."""
    return halved(facts.of("optimizer"))


def optimizer_advice(facts: Facts) -> list[Advice]:
    """Optimizer state in float32."""
    cuts = optimizer_cuts(facts)
    items = items_of(facts, cuts)
    saving = saving_of(facts, cuts)
    if not worth_it(facts, saving):
        return []
    whole = size_of(items)
    names = Counter[str]()
    for item in items:
        names[_state_name(item)] += item.size
    sentence = f"optimizer {some([name for name, _ in names.most_common()])} in f32, {_arrays(items)}"
    how = "shard it over the data axis (FSDP, ZeRO): 1/N of it on each of N devices; or store it in bf16"
    arithmetic = f"{amount(whole)}; in bf16, or on 2 devices: {amount(whole - saving)} each"
    return [advice_of(facts, "optimizer", saving, sentence, how, arithmetic, items)]


def _state_name(item: Item) -> str:
    """``state['mean']`` of ``state['mean']['layers']['up']``: the name up to the part that says what it is."""
    name = item.op or item.buffer.name
    match = _KEY.search(name)
    if match is None or item.buffer.category != "parameter":
        return name.rsplit("/", 1)[0]
    end = re.match(r"['\"]?\]?", name[match.end() :])
    return name[: match.end()] + (end[0] if end is not None else "")


def gradient_cuts(facts: Facts) -> Cuts:
    """Gradients in bfloat16, or sharded over two devices: half either way."""
    return halved(facts.of("gradient"))


def gradient_advice(facts: Facts) -> list[Advice]:
    """Gradients of weights that are all in memory at once, in float32."""
    cuts = gradient_cuts(facts)
    items = items_of(facts, cuts)
    saving = saving_of(facts, cuts)
    if not worth_it(facts, saving):
        return []
    whole = size_of(items)
    stack = max(item.stack for item in items)
    layers = f" of all {stack} layers" if stack > 1 else ""
    filled = ", zero-filled, of the weights' shapes" if any(item.opcode == "broadcast" for item in items) else ""
    sentence = f"gradients{layers} in f32: {shapes_of(items)}{filled}"
    how = "shard weights and gradients (FSDP), or keep gradients in bf16"
    arithmetic = f"{summed(items)}; in bf16, or on 2 devices: {amount(whole - saving)} each"
    return [advice_of(facts, "bf16", saving, sentence, how, arithmetic, items)]


def cast_cuts(facts: Facts) -> Cuts:
    """Weights that are cast where they are used: one layer's at a time.

    Of a copy for all layers of a scan a layer's part stays, of equal ones one. What there is once must be passed in the
    narrow type, and nothing stays.
    """
    cuts: dict[int, int] = {}
    seen: Counter[tuple[str, tuple[int, ...]]] = Counter()
    single = [item for item in _cast(facts) if not _layers_of(facts, item)]
    alike = Counter((item.element, item.whole_dims) for item in single)
    for item in _cast(facts):
        key = (item.element, item.whole_dims)
        seen[key] += 1
        if _layers_of(facts, item):
            cuts[item.index] = resized(item, 0, 1)
        else:
            cuts[item.index] = item.size if alike[key] > 1 and seen[key] == 1 else 0
    return {index: left for index, left in cuts.items() if left < facts.items[index].size}


def cast_advice(facts: Facts) -> list[Advice]:
    """Copies of weights in another type."""
    items, saving = _cast(facts), saving_of(facts, cast_cuts(facts))
    if not worth_it(facts, saving):
        return []
    kind, left = items[0].element, size_of(items) - saving
    sentence = f"weights cast to {kind}{_all_layers(facts, items)}: {shapes_of(items)}"
    how, arithmetic = f"pass them in {kind}", summed(items)
    if left:
        how = "cast in the layer behind jax.lax.optimization_barrier: one layer at a time"
        how += f"; or pass them in {kind}, then none is left"
        arithmetic += f"; one layer at work stays: {amount(left)}"
    return [advice_of(facts, "duplicates", saving, sentence, how, arithmetic, items)]


def layout_cuts(facts: Facts) -> Cuts:
    """Weights that arrive in the layout they are used in need no copies."""
    return {item.index: 0 for item in facts.of("weight copy") if item.opcode == "copy"}


def layout_advice(facts: Facts) -> list[Advice]:
    """Copies of weights in another layout."""
    items = [item for item in facts.of("weight copy") if item.opcode == "copy"]
    if not worth_it(facts, size_of(items)):
        return []
    sentence = f"weights copied to another layout{_all_layers(facts, items)}: {shapes_of(items)}"
    how = "pass them in the layout that is used (jax.experimental.layout, AUTO)"
    return [advice_of(facts, "duplicates", size_of(items), sentence, how, summed(items), items)]


def _cast(facts: Facts) -> list[Item]:
    return [item for item in facts.of("weight copy") if item.opcode != "copy"]


def _layers_of(facts: Facts, item: Item) -> int:
    """How many layers of a scan an array of weights holds; 0 where it is none of a scan's."""
    dims = item.whole_dims
    return dims[0] if len(dims) > 2 and (item.stack > 1 or dims[0] in facts.stacks) else 0


def _all_layers(facts: Facts, items: Sequence[Item]) -> str:
    """``, all 32 layers at once``, where all of them hold as many."""
    found = {_layers_of(facts, item) for item in items}
    layers = next(iter(found), 0)
    return f", all {layers} layers at once" if len(found) == 1 and layers > 1 else ""


def equal_advice(facts: Facts) -> list[Advice]:
    """Equal arrays that nothing else here explains: what they are, without an estimate."""
    groups: dict[tuple[str, tuple[int, ...]], list[Item]] = {}
    for item in facts.of("other", "backward"):
        if item.is_temporary and item.element and len(item.dims) > 1:
            groups.setdefault((item.element, item.dims), []).append(item)
    items = max((group for group in groups.values() if len(group) > 1), key=size_of, default=[])
    if not worth_it(facts, size_of(items) // 2):
        return []
    sentence = f"{shapes_of(items)} in memory at once: {some([item.op or item.buffer.name for item in items], 3)}"
    how = "look whether one would do, or whether they must be alive together"
    return [advice_of(facts, "duplicates", None, sentence, how, summed(items), items)]


def donation_cuts(facts: Facts) -> Cuts:
    """Outputs that could take the place of an argument of the same type and dimensions.

    No more than what outputs and arguments have left that do not share memory yet. Only where the outputs are listed.
    """
    room = _donatable(facts)
    arguments = [item for item in facts.of("parameter", "optimizer") if item.buffer.category == "parameter"]
    free = Counter((item.element, item.whole_dims) for item in arguments)
    cuts: dict[int, int] = {}
    for item in facts.of("output"):
        key = (item.element, item.whole_dims)
        if item.element and free[key] > 0 and 0 < item.size <= room:
            free[key] -= 1
            room -= item.size
            cuts[item.index] = 0
    return cuts


def _donatable(facts: Facts) -> int:
    """Bytes of outputs that could share memory with arguments and do not."""
    need = facts.need
    if need.arguments_bytes is None or need.outputs_bytes is None:
        return 0
    aliased = max(0, need.aliased_bytes or 0)
    return max(0, min(need.arguments_bytes, need.outputs_bytes) - aliased)


def donation_advice(facts: Facts) -> list[Advice]:
    """Arguments that the program could write its outputs over."""
    cuts, room, need = donation_cuts(facts), _donatable(facts), facts.need
    saving = saving_of(facts, cuts)
    how = "jax.jit(..., donate_argnums=...): outputs take the place of arguments that are not used again"
    if worth_it(facts, saving):
        items = items_of(facts, cuts)
        sentence = f"outputs in memory beside arguments of the same shape: {shapes_of(items)}"
        arithmetic = f"{summed(items)} could share memory"
        return [advice_of(facts, "donation", saving, sentence, how, arithmetic, items)]
    if cuts or need.aliased_bytes is None or not worth_it(facts, room) or facts.of("output"):
        return []
    outputs, shared = amount(need.outputs_bytes or 0), amount(need.aliased_bytes)
    sentence = (
        f"outputs take {outputs}, of which {shared} share memory with {amount(need.arguments_bytes or 0)} of arguments"
    )
    return [advice_of(facts, "donation", None, sentence, how, f"at most {amount(room)} can be shared", [])]


def _arrays(items: Sequence[Item]) -> str:
    return "1 array" if len(items) == 1 else f"{len(items)} arrays"
