"""What-if: each byte counts once, sizes never grow, and more changes never save less."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.parsers.memory.oom.advice.needs import made, needs
from tests.parsers.memory.oom.advice.test_need import module
from tpuprof.parsers.memory.account.need import Need, need_of_memory
from tpuprof.parsers.memory.oom.advice.advice import TOGGLES, advise, toggles, what_if

_CHOICES = st.sets(st.sampled_from(TOGGLES))


@given(needs(), _CHOICES)
def test_sizes_never_grow_and_add_up(need: Need, chosen: Collection[str]) -> None:
    estimate = what_if(need, chosen)
    before = [each.size_bytes for each in need.buffers]
    assert len(estimate.sizes) == len(before)
    assert all(after <= size for after, size in zip(estimate.sizes, before, strict=True))
    assert all(after >= 0 for after, size in zip(estimate.sizes, before, strict=True) if size >= 0)
    assert estimate.saved_bytes == sum(estimate.saved_by.values())
    assert estimate.saved_bytes == sum(max(0, size) for size in before) - sum(max(0, size) for size in estimate.sizes)
    assert all(saved >= 0 for saved in estimate.saved_by.values())
    assert set(estimate.saved_by) <= set(chosen)
    assert (estimate.used_bytes is None) == (need.used_bytes is None)


@given(needs(), _CHOICES, _CHOICES)
def test_more_changes_never_save_less(need: Need, some: set[str], more: set[str]) -> None:
    few, many = what_if(need, some), what_if(need, some | more)
    assert many.saved_bytes >= few.saved_bytes
    assert all(after <= size for after, size in zip(many.sizes, few.sizes, strict=True))


@given(needs(), _CHOICES)
def test_together_they_save_at_most_what_each_saves_alone(need: Need, chosen: set[str]) -> None:
    together = what_if(need, chosen).saved_bytes
    # rounding up leaves at most a byte of a buffer for each change
    slack = len(need.buffers) * len(chosen)
    assert together <= sum(what_if(need, (key,)).saved_bytes for key in chosen) + slack


@given(needs())
def test_every_toggle_changes_its_buffers_and_no_others(need: Need) -> None:
    found = toggles(need)
    savings = [what_if(need, (each.key,)).saved_bytes for each in found]
    assert savings == sorted(savings, reverse=True)
    for toggle in found:
        estimate = what_if(need, (toggle.key,))
        assert estimate.saved_bytes > 0
        changed = {
            index
            for index, (after, each) in enumerate(zip(estimate.sizes, need.buffers, strict=True))
            if after < each.size_bytes
        }
        assert changed <= set(toggle.buffers)
        sizes = [need.buffers[index].size_bytes for index in toggle.buffers]
        assert sizes == sorted(sizes, reverse=True)


@given(needs())
def test_the_toggle_of_a_number_is_the_advice_of_that_number(need: Need) -> None:
    savings = [advice.saving_bytes for advice in advise(need) if advice.saving_bytes is not None]
    found = toggles(need)
    assert len(found) >= len(savings)
    for saving, toggle in zip(savings, found, strict=False):
        assert what_if(need, (toggle.key,)).saved_bytes == saving


def saved_by_each(need: Need) -> dict[str, int]:
    return {toggle.key: what_if(need, (toggle.key,)).saved_bytes for toggle in toggles(need)}


_LARGE = st.sampled_from([made("a transformer of four layers"), made("windows of a kernel")])


@given(needs() | _LARGE, st.randoms(use_true_random=False))
def test_the_order_of_the_buffers_and_which_narrow_type_they_have_do_not_matter(need: Need, chance: Random) -> None:
    order = list(need.buffers)
    chance.shuffle(order)
    narrow = [replace(each, shape=each.shape and each.shape.replace("bf16[", "f16[")) for each in order]
    assert saved_by_each(replace(need, buffers=tuple(order))) == saved_by_each(need)
    assert saved_by_each(replace(need, buffers=tuple(narrow))) == saved_by_each(need)


@pytest.mark.parametrize("name", ["jit_train_step", "jit_train_step_v6e", "jit_eval_step", "jit_conv_step_v5e"])
def test_toggles_of_the_demo_are_its_advice(name: str) -> None:
    need = need_of_memory(module(name))
    advice = [each for each in advise(need) if each.saving_bytes is not None]
    found = toggles(need)[: len(advice)]
    for each, toggle in zip(advice, found, strict=True):
        assert what_if(need, (toggle.key,)).saved_bytes == each.saving_bytes
        assert set(toggle.buffers) <= set(each.buffers)


def test_unknown_keys_change_nothing() -> None:
    assert what_if(made("a transformer of four layers"), ("nonsense", "scoped")).saved_bytes == 0
