"""How the memory of a run is read: compiled modules, the one that is shown first, and what the allocators reported."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.model import MemoryPage, ModuleLabel, SpaceMemory
from tpuprof.parsers.pages.memory import CompiledModules, first_space
from tpuprof.tui.draw.layout import clean

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.memory.live_arrays import LiveArrays
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Tell


def load(session: Pages, run: Run, host: str | None, tell: Tell) -> None:
    """Tells the compiled modules, the one with the largest peak read in full; then what the allocators
    reported, and who holds memory by a device memory profile beside it.
    """
    import_module("tpuprof.tui.pages.memory.module_view")  # what the screen needs at once is read here
    tell("modules", MemoryPages.of(session.memory(host)))
    page = session.memory_profile(host)
    tell("allocators", (page, session.module_runs(host)))
    arrays = ArraysBeside.of(run.path)
    if arrays is not None:
        tell("arrays", arrays)


@dataclass(frozen=True, slots=True)
class ArraysBeside:
    """The newest device memory profile beside a run's profile.

    Attributes:
        name: of the file.
        page: what it tells; None where it can't be read.
        problem: why; empty where it can.
    """

    name: str
    page: LiveArrays | None
    problem: str = ""

    @classmethod
    def of(cls, run_path: str) -> ArraysBeside | None:
        """Reads it; None where there is none."""
        from tpuprof.parsers.session.live_arrays import arrays_beside  # noqa: PLC0415 - when all else is shown

        path = next(iter(arrays_beside(run_path)), None)
        if path is None:
            return None
        from tpuprof.parsers.memory.live_arrays import read_live_arrays  # noqa: PLC0415 - where there is one

        import_module("tpuprof.tui.report.holders")
        name = os.path.basename(path)
        try:
            return cls(name, read_live_arrays(path))
        except ProfileError as error:
            return cls(name, None, error.sentence)

    def words(self, ascii_only: bool) -> str:
        """What it says in a line, and the key that opens it."""
        name = clean(self.name, ascii_only)
        if self.page is None:
            return f"{name} beside: {clean(self.problem, ascii_only)}"
        from tpuprof.tui.report.holders import holders, in_a_line  # noqa: PLC0415

        return f"`L` live arrays, {name} beside: {in_a_line(holders(self.page), ascii_only)}"


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
