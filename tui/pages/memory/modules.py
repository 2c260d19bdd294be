"""The compiled modules of a run as the memory tab shows them: all of them, the first one, and a space asked for."""

from __future__ import annotations

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.model import MemoryPage, ModuleLabel, SpaceMemory
from tpuprof.parsers.pages.memory.compiled import CompiledModules


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
