"""How the counters are read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tpuprof.parsers.session import pages

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Publish


def is_there(session: Pages, host: str | None) -> bool:
    """Whether the devices have counters; it reads the names of their lines."""
    return session.page(pages.HAS_COUNTERS, host)


def load(session: Pages, run: Run, host: str | None, publish: Publish) -> None:
    """Tells the page."""
    for module in ("parsers.ops.filter", "tui.pages.counters.fields", "tui.pages.counters.drawing"):
        import_module(f"tpuprof.{module}")  # what the view needs is read here, and not on the screen's thread
    publish("counters", session.page(pages.COUNTERS, host))
