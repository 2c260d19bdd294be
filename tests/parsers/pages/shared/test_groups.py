"""Cores that depend on each other are one group, whatever runs beside them; groups do not wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.build import present, session_at, summary_of, write_run
from tests.support.composed.engines import MS, REPLICAS, TRAINER_AND_ROLLOUT, Engine, engines_space
from tests.support.reports import printed
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.files.runs import Run
from tpuprof.parsers.pages.hosts.hosts import HOSTS, hosts_page
from tpuprof.parsers.pages.hosts.model import PARTS, HostRow
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.shared.groups import groups_of
from tpuprof.parsers.pages.shared.steps import common_steps
from tpuprof.parsers.steps.accounts.owners import OWNERS
from tpuprof.parsers.steps.step_account import tpu_account
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.pages.hosts.drawing import HostsState, compose_hosts
from tpuprof.tui.pages.hosts.fields import steps_of
from tpuprof.tui.pages.hosts.report import REPORT

OF_HOST = ("group", "of_several", "mxu_percent", "hbm_percent", "profile_duration_ps", "problems")
"""What is of a whole host, or of its place beside others."""


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


@given(st.lists(st.lists(st.tuples(st.integers(50, 99), st.integers(1, 2)), min_size=1, max_size=2), min_size=1))
@settings(max_examples=20)
def test_a_host_has_a_row_for_each_of_its_groups(hosts: list[list[tuple[int, int]]]) -> None:
    """Each with the figures that the group's cores have in a profile of their own, on the screen and in the report."""
    engines = [[Engine("jit", cores, (20, 30), period + at) for at, (period, cores) in enumerate(of)] for of in hosts]
    page = hosts_page([summary_of(engines_space(of), f"h{host}") for host, of in enumerate(engines)])
    alone = [(f"h{host}", engine) for host, of in enumerate(engines) for engine in of]
    if len(alone) == 1 or len(alone) != len(page.rows):  # engines of one rhythm may be one group
        return
    assert (page.verdict, page.straggler) == ("independent", None)
    text = printed(REPORT, page, Run("r", "/r", (), ()), "text")
    for row, (host, engine) in zip(page.rows, alone, strict=True):
        only = hosts_page([summary_of(engines_space([engine]), host)])
        same = [name for name in HostRow.__slots__ if name not in OF_HOST]
        assert [getattr(row, name) for name in same] == [getattr(only.rows[0], name) for name in same]
        assert f"{host}, group {row.group} " in text
        of_group = [step.duration_ps for step in steps_of(page) if step.group == row.group]
        assert of_group == [step.duration_ps for step in steps_of(only)]
    screen = compose_hosts(page, HostsState(cursor=2), Pen(120, BLOCK), 40)
    assert len(screen.order) == 1 + len(page.rows) + len(page.cores)


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


BUSY = st.lists(st.integers(20, 40), min_size=2, max_size=4)


@given(BUSY, st.booleans(), st.data())
def test_who_waits_for_whom_is_the_same_whichever_cores_mark_their_steps(
    busy: list[int], is_one_host: bool, data: st.DataObject
) -> None:
    """With a host for each core all that changes is that steps go from end to end."""
    marked = data.draw(st.sets(st.integers(0, len(busy) - 1), min_size=1))
    engine = Engine("jit", len(busy), tuple(busy), devices=len(busy), ends_ms=50, marked=tuple(marked))
    hosts = [replace(engine, cores=1, busy_ms=(of,), marked=(0,) * (at in marked)) for at, of in enumerate(busy)]
    spaces = [engines_space([each]) for each in ([engine] if is_one_host else hosts)]
    cores = hosts_page([summary_of(space, f"h{at}") for at, space in enumerate(spaces)]).cores
    parts = [present(row.parts_ps) for row in cores]
    assert [of[PARTS.index("wait")] for of in parts] == [(max(busy) - of) * MS for of in busy]
    from_end = not is_one_host and len(marked) < len(busy)
    assert {sum(of) for of in parts} == {(60 if from_end else 50) * MS}
    assert {row.common_steps for row in cores} == {10 - from_end}


@given(BUSY, st.booleans())
def test_cores_that_never_meet_do_not_wait_whether_they_mark_steps_or_not(busy: list[int], are_marked: bool) -> None:
    engine = Engine("jit", len(busy), tuple(busy), is_numbered=True, marked=range(len(busy) * are_marked))
    summary = summary_of(engines_space([engine]))
    account = present(tpu_account(common_steps([summary]).grid))
    whole = dict(zip(OWNERS, account.mean_ps + account.mean_between_ps, strict=True))
    assert account.mean_period_ps == pytest.approx(60 * MS) and whole["barrier"] == whole["collective_wait"] == 0
    assert whole["host"] == pytest.approx((60 - np.mean(busy)) * MS)
    assert {row.slowest_in for row in hosts_page([summary]).cores} == {0}
