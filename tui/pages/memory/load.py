"""How the memory of a run is read: compiled modules, the one that is shown first, and what the allocators reported."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.model import MemoryPage, ModuleLabel, SpaceMemory
from tpuprof.parsers.pages.memory import CompiledModules, first_space

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


@dataclass(frozen=True, slots=True)
class SpaceRequest:
    """A memory space of a module, and the instruction to go to there (empty: none)."""

    module: ModuleLabel
    space: int
    instruction: str = ""


@dataclass(frozen=True, slots=True)
class MemoryPages:
    """The modules of a run and host.

    Attributes:
        page: all modules, the largest peak first.
        compiled: makes a memory space's figures when they are asked for; takes a while.
        first: the HBM of the module with the largest peak; None where no module has figures.
        problem: why that one can't be shown; None where it can, or where there is none.
    """

    page: MemoryPage
    compiled: CompiledModules
    first: SpaceMemory | None
    problem: str | None

    @classmethod
    def of(cls, compiled: CompiledModules) -> MemoryPages:
        """Parses all modules, which takes a while.

        Raises:
            Cancelled: the work was to end.
        """
        page = compiled.page()
        best = page.first
        if best is None:
            return cls(page, compiled, None, page.modules[0].problem if page.modules else None)
        shown = space_of(compiled, SpaceRequest(best.module, first_space(best.peaks)))
        first, problem = (None, shown) if isinstance(shown, str) else (shown, None)
        return cls(page, compiled, first, problem)


def space_of(compiled: CompiledModules, wanted: SpaceRequest) -> SpaceMemory | str:
    """A memory space's figures, or the sentence on why there are none."""
    try:
        return compiled.space(wanted.module, wanted.space)
    except ProfileError as error:
        return error.sentence
