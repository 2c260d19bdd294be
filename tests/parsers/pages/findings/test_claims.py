"""Claims: nothing is negative, and no cell is claimed beyond what it holds, whatever is asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.pages.findings.build import evidence, grid, the
from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.pages.findings import claims
from tpuprof.parsers.steps.accounts.owners import OWNERS, Owner, owner_index

amounts = st.one_of(st.just(0.0), st.floats(0, 1e12), st.floats(-1e12, 1e15), st.just(math.inf))
owners = st.lists(st.sampled_from(OWNERS), min_size=1, max_size=4, unique=True)


@st.composite
def accounts(draw: st.DrawFn) -> Floats:
    cores, steps = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    cells = rng.integers(0, 10**12, (cores, steps, len(OWNERS))).astype(np.float64)
    cells *= rng.random((1, 1, len(OWNERS))) < 0.7
    return cells


@st.composite
def some_claims(draw: st.DrawFn, left: Floats) -> claims.Claim:
    how = draw(st.sampled_from(("taken", "filled", "everything", "spread", "ops")))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    asked = rng.random(left.shape[:2]) * draw(st.floats(-1e12, 1e13))
    if how == "ops":
        count = draw(st.integers(0, 6))
        op_ps = rng.random(count) * draw(st.floats(0, 1e12))
        owner = rng.choice([owner_index(name) for name in OWNERS if name not in ("ideal", "collective_wait")], count)
        saved, ideal = op_ps * rng.random(count) * 2, op_ps * rng.random(count)
        return claims.of_ops(left, np.arange(count), owner, ideal, op_ps, saved, draw(st.booleans()))
    if how == "spread":
        return claims.Claim.of_cells(claims.spread_evenly(left, draw(owners), draw(amounts)))
    if how == "everything":
        return claims.Claim.of_cells(claims.everything(left, draw(owners)))
    return claims.Claim.of_cells((claims.taken if how == "taken" else claims.filled)(left, draw(owners), asked))


@given(st.data())
def test_no_cell_is_claimed_beyond_what_it_holds(data: st.DataObject) -> None:
    whole = left = data.draw(accounts())
    together = np.zeros_like(whole)
    for _ in range(data.draw(st.integers(1, 6))):
        claim = data.draw(some_claims(left))
        assert np.isfinite(claim.cells).all() and claim.cells.min() >= 0
        assert (claim.cells <= left * (1 + 1e-12) + 1e-3).all()
        assert claim.op_ps.sum() == pytest.approx(claim.worth_ps if len(claim.rows) else 0.0, rel=1e-6, abs=1.0)
        left = claims.after(left, claim)
        together += claim.cells
        assert left.min() >= 0
    assert together + left == pytest.approx(whole, rel=1e-9, abs=1.0)


@given(accounts(), owners, st.floats(0, 1e12))
def test_a_mean_is_claimed_as_far_as_its_owners_have_it(left: Floats, some: list[Owner], wanted: float) -> None:
    have = float(claims.mean_of(left)[[owner_index(owner) for owner in some]].sum())
    assert float(claims.mean_of(claims.spread_evenly(left, some, wanted)).sum()) == pytest.approx(
        min(wanted, have), rel=1e-9, abs=1e-3
    )


def test_an_amount_of_which_the_mean_is_known_is_the_same_in_each_step() -> None:
    left = np.zeros((1, 4, len(OWNERS)))
    left[0, :, owner_index("loss")] = [10.0, 10.0, 10.0, 90.0]
    assert claims.spread_evenly(left, ("loss",), 8.0)[0, :, owner_index("loss")].tolist() == [8.0] * 4
    assert claims.spread_evenly(left, ("loss",), 20.0)[0, :, owner_index("loss")].tolist() == [10.0, 10.0, 10.0, 50.0]


def test_what_one_step_lacks_is_claimed_in_the_others_of_the_same_core() -> None:
    left = np.zeros((2, 2, len(OWNERS)))
    left[:, :, owner_index("barrier")] = [[5.0, 30.0], [5.0, 5.0]]
    claimed = claims.filled(left, ("barrier",), np.array([10.0, 10.0]))[:, :, owner_index("barrier")]
    assert claimed.tolist() == [[5.0, 15.0], [5.0, 5.0]]


@pytest.mark.parametrize(("goes_away", "ideal"), [(False, 0.0), (True, 2.0)])
def test_an_op_gives_what_it_loses_and_its_time_at_the_roof_only_where_work_goes_away(
    goes_away: bool, ideal: float
) -> None:
    left = np.full((1, 1, len(OWNERS)), 100.0)
    at, rows = np.array([owner_index("loss")]), np.zeros(1, np.intp)
    claim = claims.of_ops(left, rows, at, np.array([4.0]), np.array([10.0]), np.array([8.0]), goes_away)
    assert (claim.of("loss"), claim.of("ideal"), claim.op_ps.tolist()) == (6.0, ideal, [6.0 + ideal])


def test_advice_to_overlap_says_what_there_is_to_hide_behind() -> None:
    little = evidence(grid({"compute": 20, "collective": 80}))
    assert "Compute takes 20.0 µs" in the("collective", little).advice
    assert "What computes" not in the("collective", evidence(grid({"compute": 80, "collective": 20}))).advice
