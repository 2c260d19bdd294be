"""Puts the app on a stage: made-up runs and pages, a terminal of choice, and its screen as text."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from textual.app import App
from textual.pilot import Pilot
from textual.strip import Strip

from tests.support.build import present
from tests.support.golden import check_golden as check_file
from tests.support.made.big_table import big_page
from tests.support.made.compiled import compiled_modules, memory_over_time
from tests.support.made.input_pages import input_bound_page
from tests.support.made.many_hosts import profiles, steady, summaries
from tests.support.made.pages import training_overview
from tests.support.made.timelines import launches, two_cores
from tpuprof.parsers.base.errors import Cancelled, Problem, ProfileError
from tpuprof.parsers.files.logdir import HostFile, Logdir, Run, open_logdir
from tpuprof.parsers.hosts.progress import Progress
from tpuprof.parsers.memory.model import SpaceMemory
from tpuprof.parsers.pages.collectives.page import COLLECTIVES, HAS_COLLECTIVES, collectives_page
from tpuprof.parsers.pages.counters.page import COUNTERS, counters_page
from tpuprof.parsers.pages.graph.programs import GRAPHS, Programs
from tpuprof.parsers.pages.hosts.hosts import HOSTS, hosts_page
from tpuprof.parsers.pages.hosts.model import HostsPage
from tpuprof.parsers.pages.input.input import INPUT
from tpuprof.parsers.pages.memory.key import MEMORY, MEMORY_PROFILE, MODULE_RUNS
from tpuprof.parsers.pages.ops.framework_ops import FRAMEWORK_OPS, framework_ops_page
from tpuprof.parsers.pages.ops.kernels.call_units import HAS_COUNTERS
from tpuprof.parsers.pages.ops.kernels.page import HAS_TPU_KERNELS
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.ops.op_profile import OP_PROFILE, OP_PROFILE_WITHOUT_IDLE, op_profile_page
from tpuprof.parsers.pages.ops.roofline import ROOFLINE, ROOFLINE_WITHOUT_INFEED, roofline_page
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.parsers.pages.overview.model_use.page import MODEL, ModelPage
from tpuprof.parsers.pages.shared.key import MODULES, SUMMARIES, Page, PageKey
from tpuprof.parsers.pages.sparse_core.page import HAS_SPARSE_CORES, SPARSE_CORE, no_sparse_cores
from tpuprof.parsers.session.pages import Pages
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.parsers.timeline.read.flows import Flows
from tpuprof.parsers.timeline.read.timeline import OnPart
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.loader import ProgressCallback
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages.input.view import InputPipelineTab
from tpuprof.tui.pages.memory.view import MemoryTab
from tpuprof.tui.pages.ops.details.card_cache import OpPages
from tpuprof.tui.pages.ops.view import OpsTab
from tpuprof.tui.pages.overview.view import OverviewTab
from tpuprof.tui.pages.timeline.view import TimelineTab
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.widgets.chrome import act_of
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.tab import Tab

T = TypeVar("T")

GOLDEN = Path(__file__).parents[2] / "tui" / "golden"
ENVIRONMENT = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": "/nowhere"}
LOOK = ScreenLook.of(detect(ENVIRONMENT))
NOW = 1_763_700_000.0
DEADLINE_SECONDS = 30.0
"""Only a hang takes this long."""


def host_file(name: str, megabytes: float = 51.5, hours: int = 1) -> HostFile:
    """A profile file of a host, so many hours old."""
    return HostFile(name, f"/logs/{name}.xplane.pb", int(megabytes * 1e6), NOW - 3600 * hours, False)


BROKEN = Problem("empty_file", "/logs/host2.xplane.pb", "host2.xplane.pb is empty.", "capture it again")
NEWEST = Run("train_b", "/logs/b", (host_file("host0"), host_file("host1", 862.0)), (BROKEN,))
OLDER = Run("train_a", "/logs/a", (host_file("host0", 3.25, 2),), ())
LOGDIR = Logdir("~/logs", (NEWEST, OLDER), ("looked for *.xplane.pb in 3 folders under ~/logs: 3 files in 2 runs",), ())


def of_hosts(page: Overview, host: str | None) -> Overview:
    """A page as that of one host of `NEWEST`, or of all."""
    return replace(page, hosts=tuple(file.host for file in NEWEST.hosts) if host is None else (host,))


def _two_hosts(host: str | None) -> HostsPage:
    made = profiles({"host0": steady(900), "host1": steady(1000)})
    return hosts_page(summaries(made))


MADE: Mapping[PageKey[Any], Callable[[str | None], object]] = {
    INPUT: lambda host: input_bound_page(),
    OPS: lambda host: big_page(40),
    OP_PROFILE: lambda host: op_profile_page(big_page(40)),
    OP_PROFILE_WITHOUT_IDLE: lambda host: op_profile_page(big_page(40), with_idle=False),
    FRAMEWORK_OPS: lambda host: framework_ops_page(big_page(40), []),
    ROOFLINE: lambda host: roofline_page(big_page(40), []),
    ROOFLINE_WITHOUT_INFEED: lambda host: roofline_page(big_page(40), [], with_infeed=False),
    COLLECTIVES: lambda host: collectives_page([], (), (), "", has_steps=False),
    COUNTERS: lambda host: counters_page([]),
    HAS_COLLECTIVES: lambda host: True,
    HAS_COUNTERS: lambda host: False,
    HAS_SPARSE_CORES: lambda host: False,
    HAS_TPU_KERNELS: lambda host: False,
    SPARSE_CORE: lambda host: no_sparse_cores(("host0",)),
    MODULES: lambda host: (),
    MEMORY: lambda host: compiled_modules(),
    GRAPHS: lambda host: Programs(compiled_modules(), None),
    MEMORY_PROFILE: lambda host: memory_over_time(),
    MODULE_RUNS: lambda host: (),
    HOSTS: _two_hosts,
    SUMMARIES: lambda host: summaries(profiles({"host0": steady(900)})),
}
"""Pages of forty made-up ops, of an input pipeline that is waited for, of the demo's compiled modules, and of two
hosts, the second of which holds up the first."""


class MadePages:
    """A session of made-up pages.

    Args:
        made: pages beside those of `MADE`, or in their place; each is made for the host.
    """

    def __init__(self, made: Mapping[PageKey[Any], Callable[[str | None], object]]) -> None:
        self.made = {**MADE, **made}

    def page(self, key: PageKey[Page], host: str | None = None) -> Page:
        return cast("Page", self.made[key](host))

    def timeline(self, host: str | None = None, *, on_part: OnPart | None = None) -> Timeline:
        """Two cores and a host thread."""
        return two_cores()

    def flows(self, timeline: Timeline) -> Flows:
        """From the launch of each module to its run."""
        return launches(timeline)


class ReadyPages(MadePages):
    """A session that has its overview at once.

    Attributes:
        asked: the hosts that were asked for.
        model_page: the page on the model; None where it can't be read.
    """

    def __init__(self, page: Overview, model: ModelPage | None = None) -> None:
        super().__init__({OVERVIEW: self.overview, MODEL: self.model})
        self.overview_page, self.model_page = page, model
        self.asked: list[str | None] = []

    def overview(self, host: str | None) -> Overview:
        self.asked.append(host)
        return of_hosts(self.overview_page, host)

    def model(self, host: str | None) -> ModelPage:
        if self.model_page is None:
            raise ProfileError("damaged", "The model can't be read.")
        return self.model_page


class ParkedPages(MadePages):
    """A session that decodes until it is let go or cancelled.

    Attributes:
        started: set once it decodes.
        let_go: set by the test to let it finish.
        was_cancelled: set once it has noticed that.
    """

    def __init__(self) -> None:
        super().__init__({OVERVIEW: self.overview})
        self.started = threading.Event()
        self.let_go = threading.Event()
        self.was_cancelled = threading.Event()
        self._on_progress: ProgressCallback = lambda _: None
        self._is_cancelled: Callable[[], bool] = lambda: False

    def opened(self, run: Run, on_progress: ProgressCallback, is_cancelled: Callable[[], bool]) -> Pages:
        """As `loader.OpenSession`."""
        self._on_progress, self._is_cancelled = on_progress, is_cancelled
        return self

    def overview(self, host: str | None) -> Overview:
        """Reports progress and waits."""
        self._on_progress(Progress("host0", 0, 2, 306_000_000, 612_000_000, 4_100_000))
        self.started.set()
        while not self.let_go.wait(0.005):
            if self._is_cancelled():
                self.was_cancelled.set()
                raise Cancelled
        return of_hosts(training_overview(), host)


@cache
def demo_session() -> Session:
    """The demo profile, read and its ops summed up once for all tests."""
    session = Session(open_logdir(demo_path()).find_run(None))
    session.page(OVERVIEW)
    session.page(OP_PROFILE)
    return session


def make_demo_app(environ: Mapping[str, str] = ENVIRONMENT, **chosen: Any) -> TpuprofApp:
    """The app over the demo profile, with some options."""
    options = AppOptions(demo=True, **chosen)
    return TpuprofApp(
        demo_path(),
        options,
        detect(environ, color=options.color, ascii_only=options.ascii, theme=options.theme),
        open_session=lambda run, on_progress, is_cancelled: demo_session(),
        environ=environ,
    )


def make_app(pages: Pages | None = None, *, logdir: Logdir = LOGDIR, options: AppOptions | None = None) -> TpuprofApp:
    """The app over made-up runs; every run has the same pages."""
    options = options or AppOptions()
    shown = pages or ReadyPages(training_overview())
    return TpuprofApp(
        "~/logs",
        options,
        detect(ENVIRONMENT, color=options.color, ascii_only=options.ascii, mouse=options.mouse, theme=options.theme),
        find=lambda _: logdir,
        open_session=shown.opened if isinstance(shown, ParkedPages) else lambda run, progress, cancelled: shown,
        now=lambda: NOW,
        environ=ENVIRONMENT,
    )


def _tab(name: str, kind: type[T]) -> Callable[[TpuprofApp], T]:
    """Gets the app's tab of that name."""

    def tab(app: TpuprofApp) -> T:
        found = app.main.tabs[name]
        assert isinstance(found, kind)
        return found

    return tab


overview_tab = _tab("overview", OverviewTab)
input_tab = _tab("input", InputPipelineTab)
ops_tab = _tab("op-profile", OpsTab)
timeline_tab = _tab("timeline", TimelineTab)
memory_tab = _tab("memory", MemoryTab)


def op_pages(app: TpuprofApp) -> OpPages:
    """The pages that the ops tab shows."""
    return present(ops_tab(app).pages)


def space_of(app: TpuprofApp) -> SpaceMemory:
    """The memory space that the memory tab shows."""
    return present(memory_tab(app).space_shown)


@asynccontextmanager
async def on_stage(app: TpuprofApp, width: int = 80, height: int = 24) -> AsyncIterator[Pilot[None]]:
    """Runs the app until its first page, or whatever it shows instead, is there."""
    async with app.run_test(size=(width, height)) as pilot:
        await settled(pilot)
        yield pilot


async def settled(pilot: Pilot[None]) -> None:
    """Waits until no worker runs and every message is handled."""
    app = pilot.app
    await pilot.pause()
    while any(not worker.is_finished for worker in app.workers) or card_is_late(app):
        await app.workers.wait_for_complete()
        await asyncio.sleep(0.01 if card_is_late(app) else 0)
        await pilot.pause()


def card_is_late(app: App[Any]) -> bool:
    """Whether the ops tab, where it is there, waits for the cursor to rest before it shows a card."""
    tab = app.main.tabs.get("op-profile") if isinstance(app, TpuprofApp) else None
    return isinstance(tab, OpsTab) and tab.card_is_late


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Lets the app work until the condition holds."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        await pilot.pause()


def strips(app: App[Any]) -> list[Strip]:
    """What the screen shows, line by line."""
    return app.screen._compositor.render_strips()


def frame(app: App[Any]) -> str:
    """The screen's text; a line's blanks at its end are left out."""
    return "\n".join(strip.text.rstrip() for strip in strips(app)) + "\n"


def answer(tab: Tab, key: str) -> object:
    """What a key of a tab alone does and answers; None where it is none of its keys now."""
    act = act_of(tab.keys, key)
    return None if act is None else tab.do(act)


def check_golden(name: str, text: str) -> None:
    check_file(GOLDEN / f"{name}.txt", text)


def check_cells(app: App[Any]) -> None:
    """Every line has exactly the screen's width, and every cell a style with a background."""
    for strip in strips(app):
        assert strip.cell_length == app.size.width, strip.text
        for segment in strip:
            assert segment.style is not None, segment
            assert segment.style.bgcolor is not None, segment
