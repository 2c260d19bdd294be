"""How the overview is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.parsers.session.pages import Pages, PartialPages

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.tui.pages import Publish


def load(session: Pages, run: Run, host: str | None, publish: Publish) -> None:
    """Tells the page; before that, now and then, one "partial" page of the hosts read so far, where that is known."""
    if isinstance(session, PartialPages):

        def on_partial(page: Overview, hosts_done: int, hosts_total: int) -> None:
            publish("partial", page)

        page = session.page_as_read(OVERVIEW, host, on_partial)
    else:
        page = session.page(OVERVIEW, host)
    publish("page", page)
