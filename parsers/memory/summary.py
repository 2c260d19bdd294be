"""What a memory space comes to: whose its bytes are, what to change where it does not fit, the largest batch."""

from __future__ import annotations

from collections.abc import Mapping

from tpuprof.parsers.base.record import dataclass, field, replace
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.memory.account.need import Known, need_of_memory
from tpuprof.parsers.memory.account.owners import MemoryAccount, MemoryOwner, account, owners_of_rows
from tpuprof.parsers.memory.batch.fit import NOT_IN_HBM, BatchFit, batch_fit
from tpuprof.parsers.memory.batch.growth import growth_of
from tpuprof.parsers.memory.batch.known import known_of
from tpuprof.parsers.memory.batch.structure import structure_of
from tpuprof.parsers.memory.model import HBM, SpaceMemory
from tpuprof.parsers.memory.oom.advice.plan import plan
from tpuprof.parsers.memory.oom.model import Plan


@dataclass(frozen=True, slots=True)
class SpaceSummary:
    """What a memory space of a module comes to.

    Attributes:
        account: whose the bytes at the peak are.
        plan: the cheapest combination of changes that fits; None where it fits as it is, or is not of HBM.
        fit: the largest batch that fits, or why it is not known.
        known: what advice about the module stands on besides.
        owners: row of `SpaceMemory.live_ranges` to whose it is, of all but small buffers that are away at the peak.
    """

    account: MemoryAccount | None
    plan: Plan | None
    fit: BatchFit
    known: Known = field(default_factory=Known)
    owners: Mapping[int, MemoryOwner] = field(default_factory=dict)


def space_summary(hlo: HloModule, memory: SpaceMemory) -> SpaceSummary:
    """Makes it; takes longer than the memory space itself."""
    structure = structure_of(hlo) if memory.space == HBM else None
    growth = growth_of(hlo, memory, structure) if memory.space == HBM else NOT_IN_HBM
    known = known_of(hlo, memory, growth, structure)
    fit = batch_fit(memory, growth, known)
    known = replace(known, fitting_batch=fit.largest)
    need = need_of_memory(memory, known=known)
    return SpaceSummary(account(need), plan(need), fit, known, owners_of_rows(memory, need))
