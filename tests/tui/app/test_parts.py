"""The parts of the app alone, on a stage without an app."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.app.stage import LOGDIR, LOOK, NEWEST, ReadyPages
from tests.support.made.pages import training_overview
from tpuprof.tui.app.context import AppPart, N
from tpuprof.tui.app.current_run import CurrentRun
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.pages import TABS
from tpuprof.tui.widgets.chrome import State
from tpuprof.tui.widgets.popup import Popup
from tpuprof.tui.widgets.tab import Payload, Tab


class PlainTab(Tab):
    """A tab that keeps what it is shown."""

    def __init__(self) -> None:
        super().__init__(LOOK)
        self.parts: list[str] = []

    @property
    def has_page(self) -> bool:
        return bool(self.parts)

    def show(self, part: str, payload: Payload) -> str | None:
        self.parts.append(part)
        return f"shows {part}"

    def show_state(self, state: State) -> None:
        self.parts = []


class PlainContext:
    """Does jobs when a test asks for it, and hands on news at once."""

    def __init__(self) -> None:
        self.look = LOOK
        self.flash = ""
        self.tabs = {tab.name: PlainTab() for tab in TABS}
        self.tab_name = "overview"
        self.popup: Popup | None = None
        self.screens: list[str] = []
        self.jobs: list[Callable[[], object]] = []

    def show_tab(self, name: str) -> None:
        self.tab_name = name

    def open(self, popup: Popup) -> None:
        self.popup = popup

    def open_screen(self, name: str, content: object) -> None:
        self.screens.append(name)

    def redraw(self) -> None:
        """Nothing."""

    def work(self, group: str, job: Callable[[], object], *, exclusive: bool = True) -> None:
        self.jobs.append(job)

    def post_news(self, part: AppPart[N], news: N) -> None:
        part.take(news)

    def work_off(self) -> None:
        """Does what is to be done, and what comes of that."""
        while self.jobs:
            self.jobs.pop(0)()


def shown_on(context: PlainContext) -> CurrentRun:
    """What a stage shows of two runs."""
    pages, options = ReadyPages(training_overview()), AppOptions()
    return CurrentRun(context, "~/logs", options, lambda _: LOGDIR, lambda *_: pages)


def test_the_first_page_is_loaded_and_then_that_of_the_shown_tab() -> None:
    context = PlainContext()
    shown = shown_on(context)
    shown.begin()
    assert shown.is_loading and shown.overview is None
    context.tab_name = "timeline"
    context.work_off()
    assert shown.run == NEWEST and shown.overview is not None and not shown.is_loading
    assert {name: tab.parts for name, tab in context.tabs.items() if tab.parts} == {
        "overview": ["page"],
        "timeline": ["timeline", "flows"],
    }
    assert context.flash == "shows flows"
