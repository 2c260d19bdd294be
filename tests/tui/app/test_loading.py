"""Loading: the screen first, progress, cancelling, errors, and loads that overtake each other."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from textual.worker import WorkerFailed

from tests.support.app.scene import after
from tests.support.app.stage import (
    BROKEN,
    DEADLINE_SECONDS,
    ENVIRONMENT,
    LOGDIR,
    OLDER,
    MadePages,
    ParkedPages,
    ReadyPages,
    check_golden,
    frame,
    make_app,
    on_stage,
    settled,
    until,
)
from tests.support.made.pages import inference_overview, training_overview
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.parsers.hosts.progress import Progress
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.loader import LoadDone, Loader, LoadNews, LoadProgress, PageReady, Request, RunsFound
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.terminal.detect import detect


class FailingPages(MadePages):
    """A session that can't be read."""

    def __init__(self, error: Exception) -> None:
        super().__init__({OVERVIEW: self.overview})
        self.error = error

    def overview(self, host: str | None) -> Overview:
        raise self.error


async def test_first_frame_stands_before_anything_is_looked_for() -> None:
    frames: list[str] = []
    release = threading.Event()

    def find(path: str) -> Logdir:
        frames.append(app.screen._compositor.render_strips()[1].text)
        release.wait(60)
        return LOGDIR

    app = TpuprofApp(
        "~/logs", AppOptions(), detect(ENVIRONMENT), find=find, open_session=lambda *_: ReadyPages(training_overview())
    )

    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: bool(frames))
        check_golden("searching-80x24", frame(app))
        release.set()
        await settled(pilot)
        assert "STEP TIME" in frame(app)
    assert "1 Overview" in frames[0]


def parked() -> tuple[TpuprofApp, ParkedPages]:
    pages = ParkedPages()
    return make_app(pages), pages


async def decoding(pilot: Pilot[None], app: TpuprofApp, pages: ParkedPages) -> None:
    """Waits until the first progress is on the screen."""
    await until(pilot, pages.started.is_set)
    await until(pilot, lambda: "4.1 M" in frame(app))


async def test_keys_are_answered_while_a_worker_decodes() -> None:
    app, pages = parked()
    async with app.run_test(size=(80, 24)) as pilot:
        await decoding(pilot, app, pages)
        check_golden("decoding-80x24", frame(app))
        await pilot.press("4")
        assert app.main.tab_name == "timeline"
        assert "host 1/2" in frame(app).splitlines()[-1], "progress goes on in the footer"
        await pilot.press("?", "escape", "R", "escape", "1")
        assert app.main.tab_name == "overview"
        assert not pages.let_go.is_set()
        pages.let_go.set()
        await settled(pilot)
        assert "STEP TIME" in frame(app)


async def test_escape_cancels_at_once_and_r_loads_again() -> None:
    app, pages = parked()
    async with app.run_test(size=(80, 24)) as pilot:
        await decoding(pilot, app, pages)
        await pilot.press("escape")
        assert "Cancelled" in frame(app)
        check_golden("cancelled-80x24", frame(app))
        await until(pilot, pages.was_cancelled.is_set)
        await settled(pilot)
        assert "Cancelled" in frame(app)
        pages.let_go.set()
        assert "STEP TIME" in await after(pilot, "r")


async def test_leaving_while_decoding_stops_the_thread() -> None:
    app, pages = parked()
    async with app.run_test(size=(80, 24)) as pilot:
        await decoding(pilot, app, pages)
        await pilot.press("q")
    assert pages.was_cancelled.wait(DEADLINE_SECONDS)
    assert app.return_code == 0


async def test_page_stays_while_another_load_runs_and_is_cancelled() -> None:
    pages = ParkedPages()
    app = make_app(pages)
    pages.let_go.set()
    async with on_stage(app) as pilot:
        pages.let_go.clear()
        pages.started.clear()
        await pilot.press("r")
        await until(pilot, pages.started.is_set)
        await until(pilot, lambda: "host 1/2" in frame(app).splitlines()[-1])
        assert "STEP TIME" in frame(app)
        await pilot.press("escape")
        assert "Cancelled; this is the page from before" in frame(app)
        assert "STEP TIME" in frame(app)


async def test_error_is_a_sentence_with_a_hint_and_where_it_was_searched() -> None:
    error = ProfileError("corrupt", "host0.xplane.pb is no profile: its third field ends early.", "copy it again")
    app = make_app(FailingPages(error))
    async with on_stage(app):
        check_golden("failed-80x24", frame(app))
    assert app.return_code in (0, None)


async def test_nothing_found() -> None:
    def find(path: str) -> Logdir:
        raise ProfileError(
            "not_found", f"{path} does not exist; the nearest folder that does is ~.", "ls", EXIT_NOT_FOUND
        )

    app = TpuprofApp("~/lgos", AppOptions(), detect(ENVIRONMENT), find=find)
    async with on_stage(app) as pilot:
        text = frame(app)
        assert "~/lgos does not exist" in text
        assert "try: ls" in text
        assert "R runs" not in text
        await pilot.press("R", "H", "W", "y", "/", "enter", "n", "j", "l", "G", "ctrl+d")
        assert app.main.popups.popup is None
        assert "~/lgos does not exist" in frame(app)


async def test_a_run_without_hosts() -> None:
    empty = Run("empty", "/logs/empty", (), (BROKEN,))
    logdir = replace(LOGDIR, runs=(empty, OLDER))
    error = ProfileError("no_hosts", "Run empty holds no readable profile.", "capture a profile first")
    app = make_app(FailingPages(error), logdir=logdir)
    async with on_stage(app) as pilot:
        assert "choose among 2 runs" in frame(app)
        await pilot.press("R")
        assert "host2.xplane.pb is empty" in frame(app)


async def test_a_run_of_a_name_that_none_has() -> None:
    app = make_app(options=AppOptions(run="nope"))
    async with on_stage(app):
        assert "nope is not the name of a run in ~/logs: train_b, train_a." in " ".join(frame(app).split())


async def test_run_and_host_of_the_command_line() -> None:
    pages = ReadyPages(training_overview())
    app = make_app(pages, options=AppOptions(run="train_a", host="host0"))
    async with on_stage(app):
        assert app.main.current_run.run == OLDER
    assert pages.asked == ["host0"]


async def test_an_error_of_our_own_is_not_swallowed() -> None:
    app = make_app(FailingPages(ZeroDivisionError("a bug")))
    with pytest.raises(WorkerFailed, match="a bug"):
        async with on_stage(app):
            pass
    assert app.return_code == 1


async def test_newer_load_wins() -> None:
    first, second = ParkedPages(), ReadyPages(inference_overview())
    opened: list[Run] = []

    def open_session(run: Run, on_progress: object, is_cancelled: object) -> ParkedPages | ReadyPages:
        opened.append(run)
        return first.opened(run, on_progress, lambda: False) if len(opened) == 1 else second  # type: ignore[arg-type, return-value]

    app = TpuprofApp("~/logs", AppOptions(), detect(ENVIRONMENT), find=lambda _: LOGDIR, open_session=open_session)

    async with app.run_test(size=(80, 24)) as pilot:
        await decoding(pilot, app, first)
        await pilot.press("R", "j", "enter")
        await until(pilot, lambda: "STEP TIME inferred" in frame(app))
        first.let_go.set()  # the older load, which nobody can stop, is done only now
        await settled(pilot)
        assert "STEP TIME inferred" in frame(app)
        assert app.main.current_run.run == OLDER


# --- the loader alone


class Clock:
    """Seconds by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class ManyChunks(MadePages):
    """A session that reports 1,000 chunks in ten seconds of its clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__({OVERVIEW: self.overview})
        self.clock = clock
        self.on_progress: Callable[[Progress], None] = lambda _: None

    def opened(self, run: Run, on_progress: Callable[[Progress], None], is_cancelled: object) -> ManyChunks:
        """As `loader.OpenSession`."""
        self.on_progress = on_progress
        return self

    def overview(self, host: str | None) -> Overview:
        for chunk in range(1000):
            self.clock.seconds += 0.01
            self.on_progress(Progress("host0", 0, 1, chunk + 1, 1000, chunk * 5))
        return training_overview()


def test_progress_is_thinned_out_by_time_and_estimates_what_is_left() -> None:
    clock = Clock()
    posted: list[LoadNews] = []
    loader = Loader(lambda _: LOGDIR, ManyChunks(clock).opened, posted.append, clock)
    loader.work(loader.begin(Request("~/logs")))
    progress = [message for message in posted if isinstance(message, LoadProgress)]
    assert 60 <= len(progress) <= 67
    assert isinstance(posted[0], RunsFound)
    assert [type(message) for message in posted[-2:]] == [PageReady, LoadDone]
    assert progress[0].seconds_left is None, "too early to say"
    for message in progress[10:]:
        assert message.seconds_left == pytest.approx(10.0 - message.progress.bytes_done / 100, abs=0.02)


def test_a_cancelled_load_posts_nothing_more() -> None:
    posted: list[LoadNews] = []
    loader = Loader(lambda _: LOGDIR, lambda *_: ReadyPages(training_overview()), posted.append)
    job = loader.begin(Request("~/logs"))
    assert loader.is_loading
    assert loader.cancel()
    assert not loader.cancel()
    loader.work(job)
    assert not posted
    assert not loader.is_loading


def test_session_is_kept_for_another_host_of_the_same_run() -> None:
    opened: list[Run] = []
    pages = ReadyPages(training_overview())
    posted: list[LoadNews] = []

    def open_session(run: Run, *_: object) -> ReadyPages:
        opened.append(run)
        return pages

    loader = Loader(lambda _: LOGDIR, open_session, posted.append)
    for request in (Request("x"), Request("x", host="host1"), Request("x", run_name="train_a"), Request("x")):
        loader.work(loader.begin(request))
    assert [run.name for run in opened] == ["train_b", "train_a", "train_b"]
    assert pages.asked == [None, "host1", None, None]
    generations = [message.generation for message in posted]
    assert generations == sorted(generations)
    assert [loader.is_current(message) for message in posted] == [generation == 4 for generation in generations]


def test_the_session_of_another_run_goes_with_it() -> None:
    """Sessions and pages know each other, so that only the garbage collector ends them: with --latest all day long."""
    opened: list[weakref.ref[ReadyPages]] = []

    def open_session(*_: object) -> ReadyPages:
        pages = ReadyPages(training_overview())
        vars(pages)["itself"] = pages
        opened.append(weakref.ref(pages))
        return pages

    loader = Loader(lambda _: LOGDIR, open_session, lambda _: None)
    gc.disable()
    try:
        for name in ("train_b", "train_a"):
            loader.work(loader.begin(Request("x", run_name=name)))
        assert [ref() is None for ref in opened] == [True, False]
    finally:
        gc.enable()
