"""The static schedule of one program of a TPU core: what the compiler put into each bundle of instructions.

A TPU core runs one bundle a cycle at best; each unit has slots in it. A schedule says nothing of time: how often a
bundle runs, and how long it waits for a copy, is not in it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import Sized, dataclass

UNITS = ("MXU", "XLU", "VALU", "EUP", "VLOAD", "VSTORE", "SALU")
"""The units that have slots in a bundle, as the compiler calls them: matrix, cross-lane, vector arithmetic, special
functions, vector loads, vector stores, scalar arithmetic."""

SPACES = {2: "vmem", 3: "smem", 4: "sflag"}


@dataclass(frozen=True, slots=True, eq=False)
class Regions(Sized):
    """The parts of a program, one inside another, in their order: the first is the whole.

    Attributes:
        kind: ``program``, ``region``, ``loop pre-header``, ``loop header``, ``loop branch``, ``loop body``,
            ``loop footer``, ``loop footer branch``, ``loop exit``, ``check``, ``branch``, ``predicated``,
            ``fallthrough``.
        parent: row of the region around it, -1 for the first.
        turns: how often it runs in one call where all conditions hold, by the bounds of the loops around it; -1 where
            one of these is not constant. A pipeline over a grid turns once or twice more than the grid has steps.
    """

    kind: tuple[str, ...]
    parent: Int64s
    turns: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Instructions(Sized):
    """The instructions of a program, in their order.

    Attributes:
        bundle: in which it stands.
        opcode: its number, as the compiler counts them.
        region: row of the innermost region around it.
        origin: row of `Schedule.origins`, -1 where the compiler did not say where it comes from.
    """

    bundle: Int64s
    opcode: Int64s
    region: Int64s
    origin: Int64s


@dataclass(frozen=True, slots=True)
class Origin:
    """Where instructions come from.

    Attributes:
        places: ``file:line``, the innermost call first, and where the compiler made one instruction of two, both lines;
            () where it does not say.
        scopes: `jax.named_scope`s and the pipeline's own (``ep_wait_in``), each once.
    """

    places: tuple[str, ...]
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LloAllocation:
    """Memory that a program takes.

    Attributes:
        space: ``vmem``, ``smem`` or ``sflag``; the compiler's number where it is another.
        bytes: of it.
        number: as the compiler counts them.
        is_spill: whether it holds registers that were too few.
    """

    space: str
    bytes: int
    number: int
    is_spill: bool


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """The schedule of one kernel or fusion.

    Attributes:
        instruction: the HLO instruction that it is of, ``mm.1``.
        program: the HLO module, ``jit_step``; empty where it is not said.
        bundles: how many there are.
        used: slots that are used, of each of `UNITS` in each bundle.
        slots: how many slots each of `UNITS` has in a bundle.
        spills, fills: registers that each bundle writes to memory because there are too few, and reads back.
        regions, instructions, origins, allocations: see there.
    """

    instruction: str
    program: str
    bundles: int
    used: NDArray[np.uint8]
    slots: tuple[int, ...]
    spills: NDArray[np.uint8]
    fills: NDArray[np.uint8]
    regions: Regions
    instructions: Instructions
    origins: tuple[Origin, ...]
    allocations: tuple[LloAllocation, ...]

    @property
    def owner(self) -> Int64s:
        """Row of the innermost region whose instructions stand in each bundle; an empty one has that of the one before.

        The compiler says of each region from where to where it reaches, but those of regions side by side overlap.
        """
        owner = np.full(self.bundles, -1, np.int64)
        np.maximum.at(owner, self.instructions.bundle, self.instructions.region)
        last = np.maximum.accumulate(np.where(owner >= 0, np.arange(self.bundles), 0))
        return np.maximum(owner[last], 0)

    def shares(self) -> tuple[float | None, ...]:
        """Share of its slots that each unit uses, 0 to 1; None for a unit without slots."""
        used = self.used.sum(axis=1, dtype=np.int64).tolist()
        return tuple(
            count / (self.bundles * slots) if self.bundles and slots else None
            for count, slots in zip(used, self.slots, strict=True)
        )

    @property
    def spill_bytes(self) -> int:
        """Bytes of VMEM for registers that were too few."""
        return sum(each.bytes for each in self.allocations if each.space == "vmem" and each.is_spill)
