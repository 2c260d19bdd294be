"""How the memory of a run is read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tpuprof.tui.pages.memory.modules import MemoryPages

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Tell


def load(session: Pages, run: Run, host: str | None, tell: Tell) -> None:
    """Tells the compiled modules, the one with the largest peak read in full; then what the allocators reported."""
    import_module("tpuprof.tui.pages.memory.module_view")  # what the screen needs at once is read here
    tell("modules", MemoryPages.of(session.memory(host)))
    page = session.memory_profile(host)
    tell("allocators", (page, session.module_runs(host)))
