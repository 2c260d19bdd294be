"""What the steps would be without some owners: never longer, never negative, and no more saved than there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.steps.accounts.owners import OWNERS, WAITS, Owner, owner_index
from tpuprof.parsers.steps.step_account import Account
from tpuprof.parsers.steps.what_if import owners_named, without

TINY = 1e-3
"""Picoseconds that sums of floats may be off by."""


def account_of(cores: Sequence[Sequence[Mapping[Owner, int]]], between: Mapping[Owner, int] | None = None) -> Account:
    """An account of what each core does in each step; what it has less than the longest core is a barrier."""
    owner_ps = np.array([[[step.get(owner, 0) for owner in OWNERS] for step in steps] for steps in cores], np.int64)
    longest = owner_ps.sum(axis=2).max(axis=0)
    owner_ps[:, :, owner_index("barrier")] += longest - owner_ps.sum(axis=2)
    between_ps = np.zeros_like(owner_ps)
    between_ps[:, :-1] = [(between or {}).get(owner, 0) for owner in OWNERS]
    names = tuple(map(str, range(len(longest))))
    core_names = tuple(f"host0:{core}" for core in range(len(cores)))
    return Account(names, core_names, longest, owner_ps, between_ps)


@st.composite
def accounts(draw: st.DrawFn) -> Account:
    cores, steps = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    some = st.dictionaries(st.sampled_from(OWNERS), st.integers(0, 1 << 42), max_size=6)
    of_core = st.lists(some, min_size=steps, max_size=steps)
    return account_of(draw(st.lists(of_core, min_size=cores, max_size=cores)), draw(some))


def one(owner: Owner) -> tuple[Owner, ...]:
    return (owner,)


SOME = st.frozensets(st.sampled_from(OWNERS))


@given(accounts(), SOME)
def test_steps_are_not_longer_and_add_up(of: Account, owners: frozenset[Owner]) -> None:
    found = without(of, owners)
    assert (found.step_ps >= 0).all()
    assert (found.step_ps <= of.step_ps + TINY).all()
    assert (found.owner_ps >= -TINY).all()
    np.testing.assert_allclose(found.owner_ps.sum(axis=1), found.step_ps, atol=TINY)
    assert (np.abs(found.owner_ps[:, [owner_index(owner) for owner in owners]]) <= TINY).all()
    assert found.owners == tuple(owner for owner in OWNERS if owner in owners)


@given(accounts())
def test_nothing_taken_away_changes_nothing(of: Account) -> None:
    found = without(of, ())
    assert found.step_ps.tolist() == of.step_ps.tolist()
    np.testing.assert_allclose(found.owner_ps, of.owner_ps.mean(axis=0), atol=TINY)
    assert found.mean_period_ps == pytest.approx(of.mean_step_ps + of.mean_between_ps.sum())


@given(accounts(), SOME, SOME)
def test_more_taken_away_makes_no_step_longer(of: Account, owners: frozenset[Owner], more: frozenset[Owner]) -> None:
    less, least = without(of, owners), without(of, owners | more)
    assert (least.step_ps <= less.step_ps + TINY).all()
    assert (least.between_ps <= less.between_ps + TINY).all()


@given(accounts())
def test_without_all_owners_nothing_is_left(of: Account) -> None:
    found = without(of, OWNERS)
    assert (found.step_ps == 0).all()
    assert found.mean_period_ps == 0
    assert found.saved_ps == pytest.approx(of.mean_step_ps + of.mean_between_ps.sum())


@given(
    st.lists(st.dictionaries(st.sampled_from(OWNERS), st.integers(0, 1 << 42)), min_size=1, max_size=4),
    st.integers(1, 4),
    SOME,
)
def test_equal_cores_lose_exactly_what_is_taken(
    steps: list[dict[Owner, int]], cores: int, owners: frozenset[Owner]
) -> None:
    found = without(account_of([steps] * cores), owners)
    expected = [sum(ps for owner, ps in step.items() if owner not in owners) for step in steps]
    np.testing.assert_allclose(found.step_ps, expected, atol=TINY)


@given(accounts())
def test_without_waits_the_cores_are_even(of: Account) -> None:
    own = [column for column, owner in enumerate(OWNERS) if owner not in WAITS]
    np.testing.assert_allclose(without(of, WAITS).step_ps, of.owner_ps[:, :, own].sum(axis=2).mean(axis=0), atol=TINY)


def test_a_faster_core_helps_as_far_as_the_others_wait_for_it() -> None:
    late: dict[Owner, int] = {"ideal": 60, "input": 40}
    early: dict[Owner, int] = {"ideal": 75, "collective_wait": 25}
    of = account_of([[late], [early]], {"host": 7})
    found = without(of, one("input"))
    assert found.step_ps.tolist() == [75]
    left = dict(zip(OWNERS, found.owner_ps[0].tolist(), strict=True))
    assert (left["ideal"], left["input"], left["collective_wait"]) == (67.5, 0, 7.5)
    assert without(of, one("collective_wait")).step_ps.tolist() == [87.5]
    assert without(of, one("barrier")).step_ps.tolist() == [100]


def test_what_cores_wait_in_turns_stays() -> None:
    """Each core is late once: no core's own time is the whole step."""
    of = account_of([[{"ideal": 70, "collective_wait": 20, "copy": 10}], [{"ideal": 80, "collective_wait": 20}]])
    assert without(of, one("copy")).step_ps.tolist() == [100]
    assert without(of, one("ideal")).step_ps.tolist() == [30]


def test_time_between_steps_goes_with_its_owners() -> None:
    of = account_of([[{"ideal": 60}] * 3] * 2, {"host": 30, "input": 10})
    found = without(of, one("host"))
    assert (found.mean_step_ps, found.mean_period_ps, found.saved_ps, found.saved_fraction) == (60, 70, 30, 0.3)


@pytest.mark.parametrize(
    ("names", "owners"),
    [
        ("input", ("input",)),
        ("collective, waiting", ("barrier", "collective_wait", "collective_transfer")),
        ("host", ("host", "dispatch")),
        ("compile,compile,ideal", ("compile", "ideal")),
    ],
)
def test_names_are_owners_or_groups_of_them(names: str, owners: tuple[Owner, ...]) -> None:
    assert owners_named(names) == owners


@pytest.mark.parametrize("names", ["", "inputs", "input,", "\x1b[31m"])
def test_other_names_are_told_with_those_that_there_are(names: str) -> None:
    with pytest.raises(ProfileError) as error:
        owners_named(names)
    assert error.value.exit_code == EXIT_USAGE
    assert "the owners are barrier, between_ops, collective, collective_transfer, " in error.value.sentence
    assert error.value.sentence.isprintable()
