"""Cores that depend on each other are one group, whatever runs beside them; groups do not wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import present, session_at, summary_of, write_run
from tests.support.composed.engines import REPLICAS, TRAINER_AND_ROLLOUT, Engine, engines_space
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.pages.hosts.hosts import HOSTS, hosts_page
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.shared.groups import groups_of
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.steps.accounts.owners import WAITS


def found(hosts: Sequence[Sequence[Engine]]) -> list[tuple[str, ...]]:
    summaries = [summary_of(engines_space(engines), f"h{host}") for host, engines in enumerate(hosts)]
    return [group.core_names for group in groups_of(summaries)]


def planted(hosts: Sequence[Sequence[Engine]]) -> list[tuple[str, ...]]:
    """A group an engine, and one for all engines of a program whose collective needs more devices than a host has."""
    groups: dict[object, tuple[str, ...]] = {}
    for host, engines in enumerate(hosts):
        first = 0
        for at, engine in enumerate(engines):
            names = tuple(f"h{host}:{core}" for core in range(first, first + engine.cores))
            first += engine.cores
            key = engine.program if engine.devices > engine.cores else (host, at)
            groups[key] = (*groups.get(key, ()), *names)
    return list(groups.values())


PERIODS = st.lists(st.integers(50, 99), min_size=1, max_size=3, unique=True)


@given(PERIODS, st.integers(1, 3), st.booleans(), st.booleans())
def test_engines_side_by_side_are_groups(periods: list[int], cores: int, talks: bool, same_program: bool) -> None:
    """They drift apart: that they run one program, as long as another one, joins none of them."""
    hosts = [
        [
            Engine(
                "jit_decode" if same_program else f"jit_decode_{at}",
                cores,
                (20, 25),
                period,
                7 * at,
                devices=cores if talks and cores > 1 else 0,
            )
            for at, period in enumerate(periods)
        ]
    ] * 2
    assert sorted(found(hosts)) == sorted(planted(hosts))


@given(st.lists(st.integers(0, 900), min_size=2, max_size=3), st.integers(1, 2))
def test_hosts_of_one_collective_are_a_group_whatever_their_clocks(begins: list[int], cores: int) -> None:
    hosts = [[Engine("jit_step", cores, (20, 30), 60, begin, cores * len(begins))] for begin in begins]
    assert found(hosts) == planted(hosts) and len(planted(hosts)) == 1


@pytest.mark.parametrize(("period_ms", "runs", "groups"), [(1004, 15, 1), (1016, 15, 2), (1016, 900, 2)])
def test_one_launch_joins_cores_that_drift_a_little(period_ms: int, runs: int, groups: int) -> None:
    engines = [Engine(period_ms=period, runs=runs, is_numbered=True) for period in (1000, period_ms)]
    assert len(found([engines])) == groups


def test_hosts_without_a_collective_are_independent() -> None:
    page = hosts_page([summary_of(engines_space([Engine(period_ms=60 + at)]), f"h{at}") for at in range(3)])
    assert (page.verdict, page.straggler, len(page.rows)) == ("independent", None, 3)
    assert [row.group for row in page.cores] == [1, 2, 3]
    assert [present(row.step_time).median_ps / 1e9 for row in page.rows] == [60, 61, 62]


@pytest.mark.parametrize("engines", [REPLICAS, TRAINER_AND_ROLLOUT], ids=["replicas", "trainer and rollout"])
def test_a_group_is_as_if_it_were_alone(engines: Sequence[Engine], tmp_path: Path) -> None:
    """The overview stands for the largest; narrowed to any, pages are those of its engine in a profile of its own."""
    session = session_at(write_run(tmp_path / "all", h=engines_space(engines)))
    whole = session.page(OVERVIEW)
    assert len(whole.groups) == len(engines)
    main = max(engines, key=lambda engine: (engine.cores, sum(engine.busy_ms)))
    for row, engine in zip(whole.groups, engines, strict=True):
        alone = session_at(write_run(tmp_path / str(row.number), h=engines_space([engine]))).page(OVERVIEW)
        narrowed = session.of_core(f"group {row.number}").page(OVERVIEW)
        assert narrowed.groups == alone.groups == ()
        assert narrowed.performance.step_time == alone.performance.step_time
        assert narrowed.performance.device_duty_cycle_percent == alone.performance.device_duty_cycle_percent
        assert [of.worth_ps for of in narrowed.findings] == [of.worth_ps for of in alone.findings]
        time = present(present(alone.performance.step_time))
        assert (present(row.step_time).median_ps, len(row.core_names)) == (time.median_ps, engine.cores)
        busy = [core.busy_percent for core in session.page(HOSTS).cores if core.group == row.number]
        assert row.busy_percent == pytest.approx(sum(filter(None, busy)) / engine.cores, rel=0.02)
        if engine is main:
            assert whole.performance.step_time == alone.performance.step_time
            assert [of.title for of in whole.findings] == [of.title for of in alone.findings]
            assert f"group {row.number} (" in present(whole.account).verdict.statement
    with pytest.raises(ProfileError, match="no group 9") as error:
        session.of_core("group 9")
    assert error.value.exit_code == EXIT_NOT_FOUND


def test_nobody_waits_where_nothing_joins_cores(tmp_path: Path) -> None:
    session: Session = session_at(write_run(tmp_path, h=engines_space(REPLICAS)))
    account = present(session.page(OVERVIEW).account)
    assert account.fraction(*WAITS) == 0 and account.waited_for == ""
    assert {row.wait_percent for row in session.page(HOSTS).cores} == {None}
