"""How the graphs of a run are read: which modules there are, and the times of their ops; none is parsed yet."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tpuprof.parsers.session import pages

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Publish


def load(session: Pages, run: Run, host: str | None, publish: Publish) -> None:
    """Tells the modules as graphs."""
    import_module("tpuprof.tui.pages.graph.screen")  # what the screen needs at once is read here
    publish("graph", session.page(pages.GRAPHS, host))
