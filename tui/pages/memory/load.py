"""How the memory of a run is read: compiled modules, what the allocators reported, and live arrays beside the run."""

from __future__ import annotations

import os
from importlib import import_module

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.memory.live_arrays import LiveArrays, holders_of, read_live_arrays
from tpuprof.parsers.memory.model import MemoryPage, ModuleLabel, SpaceMemory
from tpuprof.parsers.pages.memory.compiled import CompiledModules
from tpuprof.parsers.pages.memory.key import MEMORY, MEMORY_PROFILE, MODULE_RUNS
from tpuprof.parsers.session.live_arrays import sibling_arrays
from tpuprof.parsers.session.pages import Pages
from tpuprof.tui.pages import Publish
from tpuprof.tui.report.shared.holders import in_a_line


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
        first: the HBM of the module with the largest peak, or why it can't be shown.
    """

    page: MemoryPage
    compiled: CompiledModules
    first: SpaceMemory | str


def load(session: Pages, run: Run, host: str | None, publish: Publish) -> None:
    """Tells the compiled modules, the one with the largest peak read in full; then what the allocators
    reported, and who holds memory by a device memory profile beside it.
    """
    import_module("tpuprof.tui.pages.memory.module_view")  # what the screen needs at once is read here
    compiled = session.page(MEMORY, host)
    first = compiled.asked()
    publish("modules", MemoryPages(compiled.page(), compiled, first))
    if not isinstance(first, str):
        publish("summary", (first, compiled.summary(first)))
    page = session.page(MEMORY_PROFILE, host)
    publish("allocators", (page, session.page(MODULE_RUNS, host)))
    arrays = SiblingArrays.of(run.path)
    if arrays is not None:
        publish("arrays", arrays)


@dataclass(frozen=True, slots=True)
class SiblingArrays:
    """The newest device memory profile beside a run's profile.

    Attributes:
        page: what it holds; None where it can't be read.
        problem: why; empty where it can.
    """

    name: str
    page: LiveArrays | None
    problem: str = ""

    @classmethod
    def of(cls, run_path: str) -> SiblingArrays | None:
        """Reads it; None where there is none."""
        path = next(iter(sibling_arrays(run_path)), None)
        if path is None:
            return None

        name = os.path.basename(path)
        try:
            return cls(name, read_live_arrays(path))
        except ProfileError as error:
            return cls(name, None, error.sentence)

    def words(self, ascii_only: bool) -> str:
        if self.page is None:
            return f"{self.name} beside: {self.problem}"
        return f"L live arrays, {self.name} beside: {in_a_line(holders_of(self.page), ascii_only)}"
