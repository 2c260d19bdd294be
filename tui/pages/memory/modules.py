"""The compiled modules of a run as the memory tab shows them: all of them, the first one, and a space asked for."""

from __future__ import annotations

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.model import MemoryPage, ModuleLabel, SpaceMemory
from tpuprof.parsers.pages.memory import CompiledModules, first_space


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
