"""How the input pipeline is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.session import pages

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Tell


def load(session: Pages, run: Run, host: str | None, tell: Tell) -> None:
    """Tells the page."""
    tell("page", session.page(pages.INPUT, host))
