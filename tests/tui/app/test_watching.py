"""Other runs than the one on the screen: the list, comparing two, and new ones that come."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.app.scene import app_over, list_above
from tests.support.app.stage import check_cells, frame, ops_tab, overview_tab, settled, until
from tests.support.build import write_run
from tests.support.servers.profiler_server import profile
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.session.session import Session
from tpuprof.tui.app import watch
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.pages.commands.diff.screen import DiffScreen
from tpuprof.tui.pages.runs.popup import RunsList

OLD, NEW, NEWER = "2020_01_01_00_00_00", "2020_01_02_00_00_00", "2020_01_03_00_00_00"


def add_run(logdir: Path, name: str) -> None:
    write_run(logdir, name, **{"worker-0": profile()})


@pytest.fixture
def logdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A logdir with two runs, looked at often."""
    monkeypatch.setattr(watch, "WATCHED_EVERY_SECONDS", 0.02)
    add_run(tmp_path, OLD)
    add_run(tmp_path, NEW)
    return tmp_path


@asynccontextmanager
async def watched(logdir: Path, options: AppOptions | None = None) -> AsyncIterator[tuple[TpuprofApp, Pilot[None]]]:
    """The app over a logdir; the worker that watches it goes on."""
    app = app_over(logdir, options)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.main.current_run.has_overview and app.main.watcher.logdir != "")
        yield app, pilot


def shown_run(app: TpuprofApp) -> str:
    return app.main.current_run.run.name if app.main.current_run.run is not None else ""


async def test_the_list_fills_in_and_opens_a_run(logdir: Path) -> None:
    async with watched(logdir) as (app, pilot):
        assert shown_run(app) == NEW
        await pilot.press("R")
        await until(pilot, lambda: "jit_step" in frame(app) and "TPU test" in frame(app))
        check_cells(app)
        await pilot.press("j", "enter")
        await until(pilot, lambda: shown_run(app) == OLD and overview_tab(app).has_page)


async def test_two_runs_are_compared_and_left_again(logdir: Path) -> None:
    async with watched(logdir) as (app, pilot):
        await pilot.press("R", "c", "j", "c")
        await until(pilot, lambda: isinstance(app.screen, DiffScreen))
        await pilot.pause()
        assert "SAME" in frame(app)
        await pilot.press("q")
        await pilot.pause()
        assert not isinstance(app.screen, DiffScreen)
        assert app.is_running
        assert "STEP TIME" in frame(app)


async def test_a_run_that_cannot_be_compared_is_said(logdir: Path) -> None:
    write_run(logdir, OLD, **{"worker-0": b"\n\xff\xff"})
    async with watched(logdir) as (app, pilot):
        await pilot.press("R", "c", "j", "c")
        await until(pilot, lambda: "Comparing" not in frame(app) and app.main.popups.popup is None)
        assert not isinstance(app.screen, DiffScreen)
        assert "is not a profile" in frame(app).splitlines()[-1]


async def test_a_new_run_is_told_of_and_opened_with_a_key(logdir: Path) -> None:
    async with watched(logdir) as (app, pilot):
        add_run(logdir, NEWER)
        await until(pilot, lambda: f"New run {NEWER}" in frame(app))
        assert shown_run(app) == NEW
        await pilot.press("r")
        await until(pilot, lambda: shown_run(app) == NEWER and overview_tab(app).has_page)
        await settled(pilot)


async def test_the_newest_is_followed_where_that_is_asked_for(logdir: Path) -> None:
    async with watched(logdir, AppOptions(latest=True)) as (app, pilot):
        add_run(logdir, NEWER)
        await until(pilot, lambda: shown_run(app) == NEWER and overview_tab(app).has_page)


def add_host(logdir: Path, run: str) -> None:
    write_run(logdir, run, **{"worker-1": profile()})


async def test_a_run_that_grows_is_read_again_with_a_key(logdir: Path) -> None:
    async with watched(logdir) as (app, pilot):
        add_host(logdir, NEW)
        await until(pilot, lambda: f"{NEW} now has 2 hosts: r reads it again" in frame(app))
        await pilot.press("j")
        assert "r reads the new hosts" in frame(app) and "host worker-0" in frame(app)
        await pilot.press("3")
        await until(pilot, lambda: ops_tab(app).has_page)
        assert app.main.current_run.run is not None and len(app.main.current_run.run.hosts) == 1
        await pilot.press("r")
        await until(pilot, lambda: app.main.current_run.run is not None and len(app.main.current_run.run.hosts) == 2)
        await until(pilot, lambda: "all 2 hosts" in frame(app))
        await settled(pilot)
        assert app.main.watcher.new_run is None and "r reads" not in frame(app)


async def test_a_run_that_grows_is_followed_where_that_is_asked_for(logdir: Path) -> None:
    async with watched(logdir, AppOptions(latest=True)) as (app, pilot):
        add_host(logdir, NEW)
        await until(pilot, lambda: "all 2 hosts" in frame(app) and overview_tab(app).has_page)


async def test_an_open_list_shows_runs_that_come(logdir: Path) -> None:
    async with watched(logdir) as (app, pilot):
        await pilot.press("R")
        add_run(logdir, NEWER)
        await until(pilot, lambda: NEWER in frame(app) and "3 runs" in frame(app))
        assert [row.run.name for row in list_above(app, RunsList).rows] == [NEWER, NEW, OLD]
        await pilot.press("escape", "j")
        assert "one of 3 runs" in frame(app) and "r opens the new run" in frame(app)


async def test_comparing_is_given_up_with_escape(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, seen = threading.Event(), []

    def takes_forever(before: Session, _after: Session) -> None:
        begun.set()
        while not before.is_cancelled():
            time.sleep(0.005)
        seen.append("ended")
        raise Cancelled

    async with watched(logdir) as (app, pilot):
        monkeypatch.setattr("tpuprof.parsers.session.diff.compare.compare", takes_forever)
        await pilot.press("D")
        await until(pilot, begun.is_set)
        await pilot.press("j")
        assert f"Comparing {OLD} with {NEW}; Esc cancels" in frame(app)
        await pilot.press("escape")
        await until(pilot, lambda: seen == ["ended"])
        assert "The comparison was cancelled" in frame(app) and not isinstance(app.screen, DiffScreen)
