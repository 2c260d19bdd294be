"""The timeline tab on a screen: its frames, and what its keys do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from tests.support.app.scene import after, list_above, press, scene
from tests.support.app.stage import (
    ENVIRONMENT,
    LOGDIR,
    ReadyPages,
    check_cells,
    check_golden,
    frame,
    make_app,
    settled,
    strips,
    timeline_tab,
    until,
)
from tests.support.made.pages import training_overview
from tests.support.made.timelines import read_up_to, two_cores
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.hosts.progress import Progress
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.parsers.timeline.read.timeline import OnPart
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.loader import ProgressCallback
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.draw.spans import CLASS_LETTER
from tpuprof.tui.pages.timeline import load as timeline_load
from tpuprof.tui.pages.timeline.popup import EventList
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.widgets.popup import TextPopup

STEP = ("]", "]", "j", "j", "j", ".", ".")
"""The second step, with an op of its loop selected."""


def shown(keys: Sequence[str] = (), width: int = 80, height: int = 24, options: AppOptions | None = None) -> str:
    """The frame after some keys, and below it the colours: a class's letter where a cell is of its colour."""

    async def played() -> str:
        async with scene(make_app(options=options), ("4", *keys), width, height) as (app, _):
            check_cells(app)
            return frame(app) + colours(app)

    return asyncio.run(played())


def colours(app: TpuprofApp) -> str:
    """Which cells have which class's colour as their ground."""
    styles = app.main.look.palette.styles
    letters = {styles[f"on.{name}"].bgcolor: letter for name, letter in CLASS_LETTER.items()}  # type: ignore[index]
    letters |= {styles["on.step"].bgcolor: "-", styles["on.module"].bgcolor: "=", styles["on.selected"].bgcolor: "#"}
    letters[styles["text"].bgcolor] = " "
    rows = (
        "".join(
            letters.get(segment.style.bgcolor, " ") if segment.style else "" for segment in strip for _ in segment.text
        )
        for strip in strips(app)[2:-1]
    )
    return "".join(f"|{row.rstrip()}\n" for row in rows)


def test_the_whole_trace() -> None:
    check_golden("timeline-80x24", shown())
    for width, height in ((60, 15), (120, 40)):
        shown((), width, height)


def test_a_step_with_an_event_selected() -> None:
    check_golden("timeline-step-80x24", shown(STEP))


class PagesByParts(ReadyPages):
    """A session that shows a part of its timeline and waits for what the test makes of it."""

    def __init__(self) -> None:
        super().__init__(training_overview())
        self.go_on = threading.Event()
        self.is_cancelled: Callable[[], bool] = lambda: False
        self.on_progress: ProgressCallback = lambda _: None

    def timeline(self, host: str | None = None, *, on_part: OnPart | None = None) -> Timeline:
        """One section of three, and then all."""
        made = super().timeline(host)
        assert on_part is not None
        on_part(read_up_to(made, 1))
        self.on_progress(Progress("host0", 0, 1, 1, 3, 4_100_000))
        while not self.go_on.wait(0.005):
            if self.is_cancelled():
                raise Cancelled
        return made


@asynccontextmanager
async def by_parts(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[TpuprofApp, Pilot[None]]]:
    """The app while one section of three is shown."""
    pages = PagesByParts()
    monkeypatch.setattr(timeline_load, "PART_SECONDS", 0.0)

    def opened(run: Run, on_progress: ProgressCallback, is_cancelled: Callable[[], bool]) -> PagesByParts:
        pages.on_progress, pages.is_cancelled = on_progress, is_cancelled
        return pages

    app = TpuprofApp("~/logs", AppOptions(), detect(ENVIRONMENT), find=lambda _: LOGDIR, open_session=opened)
    async with scene(app, (), 120, 40) as (_, pilot):
        await pilot.press("4")
        await until(pilot, lambda: "1 of 3 sections" in frame(app) and "4.1 M" in frame(app))
        yield app, pilot
        pages.go_on.set()
        await settled(pilot)


async def test_keys_work_on_what_is_read_and_stay_where_they_led(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []
    async with by_parts(monkeypatch) as (app, pilot):
        assert "Chip 1: TPU core 0" in frame(app) and "reading" in frame(app)
        await pilot.press("j", "j", ".", ".")
        here = timeline_tab(app).selection
        assert here is not None and not timeline_tab(app).is_whole and app.main.current_run.is_loading
        await pilot.press("/", *"fusion", "enter")
        assert "1 of 3 sections is read" in frame(app)
        timeline_tab(app).go_to("op", "all-reduce.2")
        assert timeline_tab(app).selection != "all-reduce.2", "the longest may be in what is not read yet"
        app.main.current_run.loaded = lambda: seen.append(timeline_tab(app).selection)
    assert seen == ["all-reduce.2"]


async def test_who_cancels_keeps_no_half_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    async with by_parts(monkeypatch) as (app, pilot):
        await pilot.press("escape")
        assert not timeline_tab(app).has_page and "Cancelled" in frame(app)


def test_parts_come_no_more_often_than_one_can_look(monkeypatch: pytest.MonkeyPatch) -> None:
    made, told = two_cores(), list[str]()
    times = iter([0.0, 0.1, 0.3, 0.35, 0.4, 0.6, 0.7])

    class Parts(ReadyPages):
        def timeline(self, host: str | None = None, *, on_part: OnPart | None = None) -> Timeline:
            assert on_part is not None
            for _ in range(4):
                on_part(read_up_to(made, 1))
            return made

    def tell(part: str, payload: object) -> None:
        is_part = isinstance(payload, timeline_load.HostTimeline) and payload.timeline.unread
        told.append("part" if is_part else part)

    timeline_load.load(Parts(training_overview()), LOGDIR.runs[0], None, tell, lambda: next(times))
    assert told == ["part", "part", "timeline", "flows"]


def test_in_ascii() -> None:
    assert shown(STEP, options=AppOptions(ascii=True)).isascii()


def test_without_colours() -> None:
    check_golden("timeline-step-80x24-mono", shown(STEP, options=AppOptions(color="never")))


def test_in_sixteen_colours_classes_stay_apart() -> None:
    text = shown(STEP, options=AppOptions(color="16"))
    assert all(letter in text for letter in "CVN#")


async def test_what_ran_between_two_marks_is_listed_and_gone_to() -> None:
    async with scene(keys=["4", *STEP, "home", "space", ".", ".", ".", "space"]) as (app, pilot):
        assert list_above(app, EventList).count
        check_golden("timeline-measured-80x24", frame(app))
        assert "of Chip 0: TPU core 0, XLA Ops" in frame(app)
        assert "2 tracks, XLA Ops" in await after(pilot, "b")
        await press(pilot, "b")
        assert "2 tracks, XLA Ops" not in frame(app) and "fusion.1" in frame(app)
        await press(pilot, "b")
        assert "tracks; cut" in frame(app) and "Chip 1: TPU core 0 / XLA Ops" in frame(app)
        await press(pilot, "b", "S", "j", "enter")
        assert app.main.popups.popup is None
        assert timeline_tab(app).selection is not None
        assert "m…m" in frame(app)
        assert "m…m" not in await after(pilot, "escape") and app.main.tab_name == "timeline"


async def test_the_mouse_moves_an_end_of_an_interval_and_a_click_elsewhere_clears_it() -> None:
    def interval(app: TpuprofApp) -> tuple[int, int]:
        view = timeline_tab(app)._view
        assert view is not None and view.interval is not None
        return view.interval

    async with scene(keys="4") as (app, pilot):

        async def drag(first: int, last: int) -> None:
            await pilot.mouse_down(offset=(first, 8))
            await pilot.hover(offset=(last, 8))
            await pilot.mouse_up(offset=(last, 8))
            await settled(pilot)

        await drag(30, 50)
        await press(pilot, "escape")
        begin, end = interval(app)
        await drag(50, 60)
        assert app.main.popups.popup is None and "i lists what ran in it" in frame(app)
        assert interval(app)[0] == begin and interval(app)[1] > end
        await drag(30, 40)
        assert interval(app)[0] > begin
        begin, end = interval(app)
        await pilot.mouse_down(offset=(60, 8))
        await pilot.hover(offset=(35, 8))
        assert interval(app)[1] == begin, "it moves with the mouse, beyond the other end too"
        await pilot.mouse_up(offset=(35, 1))
        await pilot.hover(offset=(70, 8))
        assert interval(app)[1] == begin, "it is let go also where the button comes up elsewhere"
        await pilot.click(offset=(38, 8))
        await settled(pilot)
        assert "m…m" in frame(app) and app.main.look.glyphs.mark in frame(app).splitlines()[8], "a click inside points"
        await pilot.click(offset=(70, 8))
        await settled(pilot)
        assert "m…m" not in frame(app)


async def test_enter_tells_everything_about_an_event() -> None:
    async with scene(keys=["4", *STEP, "enter"]) as (app, _):
        assert isinstance(app.main.popups.popup, TextPopup)
        text = frame(app)
        assert "fusion.1" in text and "Chip 0: TPU core 0, XLA Ops, lane 1" in text and "class" in text
        assert "host0.xplane.pb" in text, "the file is not there: that is said, and the rest is shown"


async def test_search_marks_what_it_finds_and_a_filter_hides_tracks() -> None:
    async with scene(keys="4") as (app, pilot):
        assert "12 events, 1 name" in await after(pilot, "/", *"all-reduce")
        await press(pilot, "enter", "escape", "n")
        assert timeline_tab(app).selection == "all-reduce.2" and "match 2 of 12" in frame(app)
        await press(pilot, "escape", "F", *"python")
        assert "1 track" in frame(app) and "XLA Ops" not in frame(app)
        assert "XLA Ops" in await after(pilot, "enter", "escape") and app.main.tab_name == "timeline"


async def test_arrows_lead_from_the_launch_to_the_module_and_back() -> None:
    async with scene(keys=["4", "j", "home", "."]) as (app, pilot):
        assert timeline_tab(app).selection == "jit_step(7)"
        await press(pilot, "<")
        assert timeline_tab(app).selection == "Execute" and "launch" in frame(app)
        await press(pilot, ">")
        assert timeline_tab(app).selection == "jit_step(7)"


async def test_o_goes_to_the_op_and_escape_back_and_keys_of_other_tabs_rest_here() -> None:
    async with scene(None, ["4", *STEP, "o", "escape"], 120, 40) as (app, pilot):
        assert app.main.tab_name == "timeline" and timeline_tab(app).selection == "fusion.1"
        await press(pilot, "3", "escape")
        assert app.main.tab_name == "op-profile", "a tab that was chosen by its key came from nowhere"
        assert "Verdict and notes" in await after(pilot, "4", "w", "s", "W")
        text = await after(pilot, "escape", "?")
        assert "Select: the cursor" in text and "Zoom in at the cursor" in text and "Pan to the left" in text
        assert "Timing: mark begin" in text


async def test_brackets_do_not_leave_the_tab_while_it_loads() -> None:
    async with scene() as (app, pilot):
        await pilot.press("4", "]", "]")
        assert app.main.tab_name == "timeline"
        await settled(pilot)
        await pilot.press("tab")
        assert app.main.tab_name == "memory"


async def test_a_smaller_screen_keeps_the_place() -> None:
    async with scene(None, ["4", *STEP], 120, 40) as (app, pilot):
        selected = timeline_tab(app).selection
        await pilot.resize_terminal(60, 15)
        await settled(pilot)
        assert timeline_tab(app).selection == selected
        assert app.main.look.glyphs.mark in frame(app)
        check_cells(app)
