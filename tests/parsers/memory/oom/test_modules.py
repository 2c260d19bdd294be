"""Advice on real modules that did not fit, where the HLO says more than sizes: loops, outputs, the batch."""

from __future__ import annotations

import pytest

from tests.parsers.memory.oom.test_proof import triage_of
from tpuprof.parsers.memory.oom.model import Advice, Change

GIB = 1 << 30


def advice_on(name: str, key: str) -> Advice | None:
    found = [each for each in triage_of(name).advice if each.change is not None and each.change.key == key]
    return found[0] if found else None


def test_a_cache_that_a_loop_reads_and_writes_is_not_saved_by_donating_it() -> None:
    """The compiler needs as much either way: each layer's old cache is read after the first layer's is written."""
    assert advice_on("serving, KV cache", "donation") is None


def test_donating_saves_what_nothing_else_uses_the_place_of() -> None:
    donation = advice_on("Adam, not donated", "donation")
    assert donation is not None and donation.saving_bytes == pytest.approx(20 * GIB, rel=0.01)
    assert "12.0 GiB of other values lie in their place before" in donation.arithmetic


def test_a_cache_grows_with_the_batch() -> None:
    batch = advice_on("serving, KV cache", "batch")
    assert batch is not None and batch.change == Change("batch", 8)
    assert batch.saving_bytes == pytest.approx(24.62 * GIB, rel=0.01)


def test_state_that_no_change_makes_fit_is_spread_over_chips() -> None:
    shard = advice_on("Adam, state too large", "shard")
    assert shard is not None and shard.change == Change("shard", 4)
    assert "shard them over 4 chips" in shard.how and "this alone is enough" in shard.how


def test_new_state_that_is_not_donated_is_narrower_too() -> None:
    optimizer = advice_on("Adam, not donated", "optimizer")
    assert optimizer is not None and optimizer.saving_bytes == 32 * GIB
    assert "its new values beside it (32.0 GiB), which are not donated" in optimizer.sentence


def test_a_program_that_computes_in_float32_keeps_its_narrow_copies() -> None:
    cast = advice_on("mixture of experts", "duplicates")
    assert cast is not None and "the copies stay" in cast.how and cast.saving_bytes == pytest.approx(GIB, rel=0.01)


def test_the_plan_is_what_fits_for_sure() -> None:
    """Checkpoints of layers that are written out may save nothing, where the compiler computes them again already."""
    plan, remat = triage_of("decoder, no scan").plan, advice_on("decoder, no scan", "remat")
    assert remat is not None and remat.least_bytes == 0
    assert plan is not None and plan.fits and plan.changes == (Change("batch", 24),)
