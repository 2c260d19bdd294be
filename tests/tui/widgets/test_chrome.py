"""The footer while hosts are read, and the header while not all of them are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.made.pages import training_overview
from tests.support.made.runs import RUNS
from tpuprof.parsers.base.errors import Damage
from tpuprof.parsers.files.logdir import Logdir
from tpuprof.parsers.hosts.progress import HostAtWork, Progress
from tpuprof.tui.app.listings import changed_run_sentence, heading
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.widgets.chrome import progress_line

AT_WORK = (HostAtWork("worker-3", 50, 200), HostAtWork("worker-4", 0, 0), HostAtWork("worker-5\x1b", 199, 200))


def words(width: int, at_work: tuple[HostAtWork, ...] = AT_WORK) -> str:
    progress = Progress("worker-3", 3, 13, 120_000_000, 480_000_000, 48_000, at_work)
    return "".join(text for text, _ in progress_line(progress, 4.0, Pen(width, BLOCK)))


@pytest.mark.parametrize("width", range(60, 181, 12))
def test_progress_keeps_to_its_width_and_says_how_to_stop_it(width: int) -> None:
    assert len(words(width)) == width and "host 4/13" in words(width) and "Esc cancels" in words(width)


def test_progress_of_each_host_where_there_is_room() -> None:
    assert "worker-3 25%  worker-4 0%" in words(180) and "99%" in words(180) and "\x1b" not in words(180)
    assert "worker" not in words(80) and "worker" not in words(180, AT_WORK[:1])


def test_the_header_says_of_how_many_hosts_a_page_is() -> None:
    page = training_overview()
    run = RUNS[0]
    assert len(page.hosts) < len(run.hosts)
    facts = heading("~", Logdir("~", RUNS, (), ()), run, None, page).facts
    assert f"{len(page.hosts)} of {len(run.hosts)} hosts" in facts
    assert f"all {len(run.hosts)} hosts" in heading("~", None, run, None, None).facts


def test_what_a_changed_run_is_said_to_have() -> None:
    run = RUNS[0]
    assert changed_run_sentence(run, 1) == f"{run.name} now has {len(run.hosts)} hosts: r reads it again"
    assert changed_run_sentence(run, len(run.hosts)) == f"{run.name} has changed: r reads it again"


@pytest.mark.parametrize(
    ("hosts", "damage", "simulated", "badge"),
    [
        (1, (), False, ""),
        (1, ("cut off",), False, "FILE CUT OFF"),
        (1, ("damaged",), True, "SIMULATED TIMES, FILE DAMAGED"),
        (4, ("cut off", "damaged", "cut off"), False, "2 FILES CUT OFF, 1 FILE DAMAGED"),
    ],
)
def test_the_badge_of_a_profile_that_lacks_something(
    hosts: int, damage: tuple[Damage, ...], simulated: bool, badge: str
) -> None:
    page = training_overview()
    environment = replace(page.environment, host_count=hosts, damage=damage, simulated=simulated)
    page = replace(page, environment=environment, hosts=tuple(host.host for host in RUNS[0].hosts))
    assert heading("~", None, RUNS[0], None, page).badge == badge
    part = heading("~", None, RUNS[0], None, replace(page, hosts=page.hosts[:1]))
    assert f"1 OF {len(page.hosts)} HOSTS READ" in part.badge
    assert heading("~", None, RUNS[0], page.hosts[0], replace(page, hosts=page.hosts[:1])).badge == badge
