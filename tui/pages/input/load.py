"""How the input pipeline is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.session import pages

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Publish


def load(session: Pages, run: Run, host: str | None, publish: Publish) -> None:
    """Tells the page."""
    publish("page", session.page(pages.INPUT, host))
