"""How the hosts of a run are compared."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tpuprof.parsers.session import pages

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Publish


def load(session: Pages, run: Run, host: str | None, publish: Publish) -> None:
    """Tells the page."""
    import_module("tpuprof.tui.pages.hosts.drawing")  # what the screen needs at once is read here
    publish("page", session.page(pages.HOSTS))
