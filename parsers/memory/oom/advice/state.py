"""Advice about what lasts longer than a layer: optimizer state, weights' gradients, copies of weights, outputs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from tpuprof.parsers.base.intervals import totals
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.memory.account.roles import BufferFacts, NeedFacts, by_type
from tpuprof.parsers.memory.oom.advice import rule
from tpuprof.parsers.memory.oom.advice.moments import Cuts
from tpuprof.parsers.memory.oom.advice.words import amount, listed_names, shapes_of, size_of, summed
from tpuprof.parsers.memory.oom.model import Advice

_LEAST_CAST = 0.4  # share of the saving that is sure: the compiler keeps copies of its own for its matrix products
_KEY = pattern(
    r"(?<![A-Za-z])(mu|nu|mean|square|exp_avg\w*|momentum|velocity|trace|moments?\d?)(?![A-Za-z])", re.IGNORECASE
)


@rule.change(
    "optimizer",
    "optimizer",
    rule.ChangeOrder.STATE,
    "optimizer state in bf16, or halved",
    # outputs of its types are its new values, which take no argument's place
    lambda facts: rule.halved(
        [*facts.of("optimizer"), *rule.of_their_types(facts.of("output"), facts.of("optimizer"))]
    ),
)
def optimizer(_: NeedFacts, items: Sequence[BufferFacts], saving: int) -> rule.AdviceText:
    """Optimizer state in float32: moments in bfloat16, or sharded over two devices, are half of it either way."""
    new = [item for item in items if item.role == "output"]
    items = [item for item in items if item.role == "optimizer"]
    whole = size_of(items) + size_of(new)
    names = totals((_state_name(item), item.size) for item in items)
    largest = listed_names(sorted(names, key=lambda name: -names[name]))
    return rule.AdviceText(
        f"optimizer {largest} in f32, {len(items)} array{'s' * (len(items) != 1)}"
        + (f", and its new values beside it ({amount(size_of(new))}), which are not donated" if new else ""),
        "shard it over the data axis (FSDP, ZeRO): 1/N of it on each of N devices; or store it in bf16",
        f"{amount(whole)}; in bf16, or on 2 devices: {amount(whole - saving)} each",
    )


def _state_name(item: BufferFacts) -> str:
    """``state['mean']`` of ``state['mean']['layers']['up']``: the name up to the part that says what it is."""
    name = item.op or item.buffer.name
    match = _KEY.search(name)
    if match is None or item.buffer.category != "parameter":
        return name.rsplit("/", 1)[0]
    end = re.match(r"['\"]?\]?", name[match.end() :])
    return name[: match.end()] + (end[0] if end is not None else "")


@rule.change(
    "gradients",
    "bf16",
    rule.ChangeOrder.NARROWER,
    "gradients in bf16, or halved",
    lambda facts: rule.halved(facts.of("gradient")),
)
def gradients(_: NeedFacts, items: Sequence[BufferFacts], saving: int) -> rule.AdviceText:
    """Gradients of weights that are all in memory at once, in float32; half in bfloat16, or over two devices."""
    stack = max(item.stack for item in items)
    layers = f" of all {stack} layers" if stack > 1 else ""
    filled = ", zero-filled, of the weights' shapes" if any(item.opcode == "broadcast" for item in items) else ""
    return rule.AdviceText(
        f"gradients{layers} in f32: {shapes_of(items)}{filled}",
        "shard weights and gradients (FSDP), or keep gradients in bf16",
        f"{summed(items)}; in bf16, or on 2 devices: {amount(size_of(items) - saving)} each",
    )


def _cast(facts: NeedFacts) -> list[BufferFacts]:
    return [item for item in facts.of("weight copy") if item.opcode != "copy"]


def _cast_cuts(facts: NeedFacts) -> Cuts:
    """Weights that are passed in the type that they are cast to: no copy is left, and they and their gradients are as
    narrow.

    A cast inside of the layer saves nothing: the compiler takes it out of the loop, behind a barrier too. And where the
    program computes in float32 it makes the narrow copies by itself, for its matrix products, whatever it is given.
    """
    copies = _cast(facts)
    if not any(item.element == "bf16" for item in copies):
        return rule.gone(() if facts.is_wide else copies)
    given = (item for item in facts.of("parameter") if not facts.need.known.grows(item.buffer))
    dims = {item.whole_dims for item in (*given, *copies) if len(item.dims) > 1}
    wide = [item for item in facts.of("parameter", "gradient") if item.whole_dims in dims and item.element == "f32"]
    return {**rule.halved(wide), **rule.gone(() if facts.is_wide else copies)}


@rule.change("duplicates", "duplicates", rule.ChangeOrder.STATE, "weights passed in bf16", _cast_cuts)
def cast(facts: NeedFacts, cut: Sequence[BufferFacts], saving: int) -> rule.AdviceText:
    """Copies of weights in another type."""
    items = _cast(facts)
    if not items:
        return rule.AdviceText("", "", "")
    element = items[0].element
    sentence = f"weights cast to {element}{_all_layers(facts, items)}: {shapes_of(items)}"
    how = f"pass them in {element}: then neither the copy nor float32 weights and gradients are there"
    arithmetic = f"copies {amount(size_of(items))}, of weights and gradients {amount(saving - size_of(items))}"
    if facts.is_wide:
        how = f"pass them in {element}: float32 weights and gradients are not there then; the copies stay"
        arithmetic = f"of weights and gradients {amount(saving)}"
    least = 1.0 if facts.is_wide else max(_LEAST_CAST, 1 - size_of(items) / saving)
    every = [*items, *(item for item in cut if item not in items)]
    return rule.AdviceText(sentence, how, arithmetic, items=every, least=least)


def _layout_cuts(facts: NeedFacts) -> Cuts:
    return rule.gone(item for item in facts.of("weight copy") if item.opcode == "copy")


@rule.change("layout", "duplicates", rule.ChangeOrder.STATE, "weights in the layout used", _layout_cuts)
def layout(facts: NeedFacts, items: Sequence[BufferFacts], _: int) -> rule.AdviceText:
    """Copies of weights in another layout, which none need that arrive in the layout they are used in."""
    return rule.AdviceText(
        f"weights copied to another layout{_all_layers(facts, items)}: {shapes_of(items)}",
        "pass them in the layout that is used (jax.experimental.layout, AUTO)",
        summed(items),
    )


def _layers_of(facts: NeedFacts, item: BufferFacts) -> int:
    """How many layers of a scan an array of weights holds; 0 where it is none of a scan's."""
    dims = item.whole_dims
    return dims[0] if len(dims) > 2 and (item.stack > 1 or dims[0] in facts.stacks) else 0


def _all_layers(facts: NeedFacts, items: Sequence[BufferFacts]) -> str:
    """``, all 32 layers at once``, where all of them hold as many."""
    layers, *others = {_layers_of(facts, item) for item in items} or {0}
    return f", all {layers} layers at once" if layers > 1 and not others else ""


@rule.Rule
def equal(facts: NeedFacts) -> list[Advice]:
    """Equal arrays that nothing else here explains: what they are, without an estimate."""
    groups = by_type(
        item for item in facts.of("other", "backward") if item.is_temporary and item.element and len(item.dims) > 1
    )
    items = max((group for group in groups.values() if len(group) > 1), key=size_of, default=[])
    if not rule.worth_it(facts, size_of(items) // 2):
        return []
    words = rule.AdviceText(
        f"{shapes_of(items)} in memory at once: {listed_names([item.op or item.buffer.name for item in items], 3)}",
        "check whether one is enough, and whether they must be alive together",
        summed(items),
    )
    return [rule.advice_of(facts, "duplicates", None, words, items)]


def _donation_cuts(facts: NeedFacts) -> Cuts:
    """Outputs that could take the place of an argument of the same type and dimensions.

    No more than what outputs and arguments have left that do not share memory yet. Only where the outputs are listed.
    What else used the place of such an output before needs another then: that much is not saved.
    """
    room, known = _donatable(facts), facts.need.known
    arguments = [item for item in facts.of("parameter", "optimizer", "cache") if item.buffer.category == "parameter"]
    free = Counter((item.element, item.whole_dims) for item in arguments)
    cuts: dict[int, int] = {}
    for item in facts.of("output"):
        key = (item.element, item.whole_dims)
        if item.element and free[key] > 0 and 0 < item.size <= room:
            free[key] -= 1
            room -= item.size
            stays = min(item.size, known.guest_bytes(item.buffer))
            if stays < item.size:
                cuts[item.index] = stays
    return cuts


def _donatable(facts: NeedFacts) -> int:
    """Bytes of outputs that could share memory with arguments and do not."""
    need = facts.need
    if need.arguments_bytes is None or need.outputs_bytes is None:
        return 0
    aliased = max(0, need.aliased_bytes or 0)
    return max(0, min(need.arguments_bytes, need.outputs_bytes) - aliased)


def _donation_advice(facts: NeedFacts) -> list[Advice]:
    """Arguments that the program could write its outputs over."""
    cuts, room, need = _donation_cuts(facts), _donatable(facts), facts.need
    saving, items = rule.saving_of(facts, cuts), rule.items_of(facts, cuts)
    how = "jax.jit(..., donate_argnums=...): outputs take the place of arguments that are not used again"
    if rule.worth_it(facts, saving):
        sentence = f"outputs in memory beside arguments of the same shape: {shapes_of(items)}"
        left = size_of(items) - saving
        rest = f"; {amount(left)} of other values lie in their place before, and then need another" if left else ""
        words = rule.AdviceText(sentence, how, f"{summed(items)} could share memory{rest}", key="donation")
        return [rule.advice_of(facts, "donation", saving, words, items)]
    if cuts or need.aliased_bytes is None or not rule.worth_it(facts, room) or facts.of("output"):
        return []
    outputs, arguments = amount(need.outputs_bytes or 0), amount(need.arguments_bytes or 0)
    shared = amount(need.aliased_bytes)
    sentence = f"outputs take {outputs}, of which {shared} share memory with {arguments} of arguments"
    return [
        rule.advice_of(facts, "donation", None, rule.AdviceText(sentence, how, f"at most {amount(room)} can be shared"))
    ]


donation = rule.Rule(
    _donation_advice, "donation", "donation", 1, lambda facts: [_donation_cuts(facts)], lambda *_: "donated arguments"
)
