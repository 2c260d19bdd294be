"""What to do first about memory that ran out: ranked by what it would save, estimates all.

Every rule takes its facts from the listed buffers, see `advice_roles` for where those come from; one that finds nothing
in them says nothing. Savings are of each advice alone: two of them may be about the same bytes, which `what_if` counts
once. Whatever has a saving can be tried there, under the key that stands with its rule here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tpuprof.parsers.memory.oom.advice import activations, batch, general, padding, scoped, state
from tpuprof.parsers.memory.oom.advice.roles import Facts, read
from tpuprof.parsers.memory.oom.model import Advice, Need

MOST_ADVICE = 10

_Rules = Mapping[str, Callable[[Facts], list[Advice]]]

_HBM: _Rules = MappingProxyType(
    {
        "attention": activations.attention_advice,
        "loss": activations.loss_advice,
        "remat": activations.remat_advice,
        "recompute": activations.recompute_advice,
        "padding": padding.padding_advice,
        "gradients": state.gradient_advice,
        "duplicates": state.cast_advice,
        "layout": state.layout_advice,
        "optimizer": state.optimizer_advice,
        "donation": state.donation_advice,
        "bf16": activations.bf16_advice,
        "batch": batch.batch_advice,
        "request": general.request_advice,
        "parts": general.parts_advice,
        "fragmentation": general.fragmentation_advice,
        "chosen": padding.chosen_advice,
        "equal": state.equal_advice,
    }
)
"""In this order where they save the same, or where the saving is unknown."""

_ON_CHIP: _Rules = MappingProxyType({"scoped": scoped.scoped_advice, "request": general.request_advice})
"""What a compiled module keeps in VMEM and SMEM is the compiler's choice, so nothing is advised for that."""


ORDER = (*_HBM, *_ON_CHIP)
"""Keys in the order of advice that saves the same."""


def advise(need: Need) -> tuple[Advice, ...]:
    """What to do, the largest saving first, those without an estimate last; at most `MOST_ADVICE`."""
    facts = read(need)
    found = [advice for rule in (_HBM if facts.is_hbm else _ON_CHIP).values() for advice in rule(facts)]
    found.sort(key=lambda advice: (advice.saving_bytes is None, -(advice.saving_bytes or 0)))
    return tuple(found[:MOST_ADVICE])
