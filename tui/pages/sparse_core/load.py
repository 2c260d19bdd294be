"""How the page is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.session import pages

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Publish


def load(session: Pages, run: Run, host: str | None, publish: Publish) -> None:
    """Tells the page."""
    publish("sparse-core", session.page(pages.SPARSE_CORE, host))


def is_there(session: Pages, host: str | None) -> bool:
    """Whether the run has SparseCores."""
    return session.page(pages.HAS_SPARSE_CORES, host)
