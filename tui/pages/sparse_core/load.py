"""How the page is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Tell


def load(session: Pages, run: Run, host: str | None, tell: Tell) -> None:
    """Tells the page."""
    tell("sparse-core", session.sparse_core(host))


def is_there(session: Pages, host: str | None) -> bool:
    """Whether the run has SparseCores."""
    return session.has_sparse_cores(host)
