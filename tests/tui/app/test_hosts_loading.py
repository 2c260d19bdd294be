"""Loading a run of several hosts: the page of the first ones on the screen, refined as others come."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from tests.support.app.stage import LOGDIR, MadePages, make_app, overview_tab, until
from tests.support.made.many_hosts import straggling_page
from tests.support.made.pages import training_overview
from tpuprof.parsers.pages.hosts.hosts import HOSTS
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.parsers.session.pages import PartialPages
from tpuprof.tui.app.loader import LoadDone, Loader, LoadNews, PageReady, Request


class Arriving(MadePages):
    """A session of three hosts: a page over the first, then, once it is let go, that over all."""

    def __init__(self) -> None:
        super().__init__({OVERVIEW: lambda host: training_overview(), HOSTS: lambda host: straggling_page()})
        self.let_go = threading.Event()

    def page_as_read(self, key: object, host: str | None, on_partial: Callable[[Overview, int, int], None]) -> Overview:
        """As `Session.page_as_read`."""
        page = training_overview()
        on_partial(replace(page, warnings=("1 of 3 hosts so far: the others are still being read",)), 1, 3)
        assert self.let_go.wait(60)
        return page


def test_the_loader_posts_pages_over_the_first_hosts() -> None:
    pages, posted = Arriving(), list[LoadNews]()
    assert isinstance(pages, PartialPages) and not isinstance(MadePages({}), PartialPages)
    pages.let_go.set()
    loader = Loader(lambda _: LOGDIR, lambda *_: pages, posted.append)
    loader.work(loader.begin(Request("~/logs")))
    ready = [message for message in posted if isinstance(message, PageReady)]
    assert [(one.page, one.part == "partial") for one in ready] == [("overview", True), ("overview", False)]
    assert "so far" in ready[0].payload.warnings[0] and ready[1].payload == training_overview()
    assert isinstance(posted[-1], LoadDone)


def test_the_loader_posts_the_hosts_compared() -> None:
    posted: list[LoadNews] = []
    loader = Loader(lambda _: LOGDIR, lambda *_: Arriving(), posted.append)
    loader.work(loader.begin(Request("~/logs", pages=("hosts",))))
    assert [one.payload.straggler for one in posted if isinstance(one, PageReady)] == [2]


def test_a_cancelled_load_posts_no_more_pages() -> None:
    pages, posted = Arriving(), list[LoadNews]()

    def post(message: LoadNews) -> None:
        posted.append(message)
        if isinstance(message, PageReady):
            loader.cancel()
            pages.let_go.set()

    loader = Loader(lambda _: LOGDIR, lambda *_: pages, post)
    loader.work(loader.begin(Request("~/logs")))
    assert [one.part == "partial" for one in posted if isinstance(one, PageReady)] == [True]
    assert not any(isinstance(one, LoadDone) for one in posted)


async def test_the_screen_shows_the_first_hosts_and_goes_on_loading() -> None:
    pages = Arriving()
    app = make_app(pages)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.main.current_run.has_overview)
        assert app.main.current_run.is_loading
        pages.let_go.set()
        await until(pilot, lambda: not app.main.current_run.is_loading)
        assert overview_tab(app).has_page
