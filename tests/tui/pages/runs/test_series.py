"""The runs as a series, a view of their list: its frames, its keys, what is read when, and its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.app.stage import LOOK, check_golden
from tests.tui.app.test_parts import PlainContext
from tests.tui.pages.runs.test_popup import ASCII_LOOK, Desk
from tests.tui.pages.runs.test_trend import point
from tpuprof.parsers.files.logdir import Run, open_logdir
from tpuprof.parsers.session.trend import Judged, TrendPoint, judged
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.app.runs import KeptPoints, Series
from tpuprof.tui.demo import demo_path
from tpuprof.tui.widgets.line_canvas import ScreenLook

STEPS = (100, 100.2, 99.9, 130, 100.1, 100, 112, 112.1, 111.9)


def runs_of(count: int) -> list[Run]:
    """Runs an hour apart, the newest first, as a log folder lists them."""
    made = [Run(f"run_{at:04}", f"/logs/{at}", (), (), 3600.0 * (at + 1)) for at in range(count)]
    return made[::-1]


class Known:
    """A series that is known as far as it was begun."""

    def __init__(self, points: Sequence[TrendPoint | str | None], is_judged: bool = True) -> None:
        runs = runs_of(len(points))[::-1]
        self.points = {run.path: of for run, of in zip(runs, points, strict=True)}
        found = judged([None if isinstance(of, str) else of for of in points]) if is_judged else ()
        self.found = {run.path: of for run, of in zip(runs, found, strict=False)}
        self.begun: list[list[str]] = []

    def begin(self, runs: Sequence[Run]) -> None:
        self.begun.append([run.name for run in runs])

    def point(self, run: Run) -> TrendPoint | str | None:
        return self.points.get(run.path)

    def judged(self, run: Run) -> Judged | None:
        return self.found.get(run.path)


def desk_with(series: Known, look: ScreenLook = LOOK) -> Desk:
    """The list of the runs of a series."""
    return Desk(runs_of(len(series.points)), lambda _: None, compares=False, look=look, series=series)


def test_frames() -> None:
    points: list[TrendPoint | str | None] = [*map(point, STEPS), "It is broken.", None]
    check_golden("runs-trend-80x24", desk_with(Known(points)).press("v", *["k"] * 4).frame())
    assert desk_with(Known(points), ASCII_LOOK).press("v").frame().isascii()


def test_it_is_read_when_it_is_shown_first_the_oldest_first() -> None:
    series = Known([*map(point, STEPS)])
    desk = desk_with(series)
    assert not series.begun and ("v", "trend") in desk.foot()
    desk.press("v")
    assert series.begun == [[run.name for run in runs_of(len(STEPS))[::-1]]]
    desk.list.set_runs(runs_of(len(STEPS) + 1))
    assert len(series.begun) == 2, "a run has come"
    assert "step time" not in desk.press("v").frame() and "step time" in desk.press("v").frame()


def test_changes_are_those_of_the_report() -> None:
    desk = desk_with(Known([*map(point, STEPS)])).press("v")
    desk.place(100, 24)
    rows = {word: line for line in desk.frame().splitlines() for word in line.split() if word[4:].isdigit()}
    assert "odd" in rows["run_0003"] and "slower" in rows["run_0006"] and "+12.0%" in rows["run_0006"]
    assert list(rows) == sorted(rows), "the oldest first"


def test_runs_that_are_not_read_yet_have_no_figures() -> None:
    desk = desk_with(Known([point(100), "It is broken.", None], is_judged=False)).press("v")
    rows = [line for line in desk.frame().splitlines() if "run_" in line]
    assert len(rows) == 3 and all("n/a" in row for row in rows[1:])


def test_the_cursor_goes_along_the_runs_and_opens_one() -> None:
    desk = desk_with(Known([*map(point, STEPS)])).press("v", "g", "j", "enter")
    assert desk.opened == ["run_0001"] and not desk.popup.is_open


def test_escape_leads_back_to_the_list_and_then_closes() -> None:
    desk = desk_with(Known([point(100)])).press("v", "escape")
    assert desk.popup.is_open and "verdict" not in desk.frame()
    assert not desk.press("escape").popup.is_open


def test_two_thousand_runs_show_those_around_the_cursor() -> None:
    text = desk_with(Known([*map(point, [100.0] * 2000)])).press("v").frame()
    assert "2,000 runs" in text and "run_1999" in text and "run_0000" not in text


# --- reading


def test_a_series_is_read_once_and_judged_as_a_whole() -> None:
    steps = {run.path: point(step) for run, step in zip(runs_of(len(STEPS))[::-1], STEPS, strict=True)}
    asked: list[str] = []

    class Made(KeptPoints):
        def read(self, run: Run, is_cancelled: Callable[[], bool]) -> TrendPoint | str:
            asked.append(run.name)
            return steps[run.path] if run.path != "/logs/2" else "It is broken."

    context, told = PlainContext(), list[int]()
    series = Series(context, Made(AppOptions()), lambda: told.append(1))
    runs = runs_of(len(STEPS))[::-1]
    series.begin(runs)
    assert series.point(runs[0]) is None and series.judged(runs[0]) is None
    context.work_off()
    assert series.point(runs[2]) == "It is broken." and told
    assert [of.verdict for run in runs if (of := series.judged(run))][3:7] == ["odd", "noise", "noise", "slower"]
    series.begin(runs)
    context.work_off()
    assert len(asked) == len(STEPS)


def test_a_series_that_is_given_up_is_not_judged() -> None:
    context = PlainContext()
    series = Series(context, KeptPoints(AppOptions()), lambda: None)
    series.begin(runs_of(3)[::-1])
    series.cancel()
    context.work_off()
    assert series.judged(runs_of(3)[0]) is None


def test_the_figures_of_a_run_are_those_of_its_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run = open_logdir(demo_path()).find_run(None)
    kept = KeptPoints(AppOptions(cache=False))
    found = kept.read(run, lambda: False)
    assert isinstance(found, TrendPoint) and found.mfu == pytest.approx(0.374636, abs=1e-6)
    assert found.idle_percent is not None and found.step_ps is not None
    gone = replace(run, path="/gone", hosts=tuple(replace(file, path="/gone") for file in run.hosts))
    assert isinstance(kept.read(gone, lambda: False), str)
    kept.keep()
