"""What custom calls use of each unit by the compiler's count, held against what their shapes need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.words import share
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.hosts.reader import HostReader, ReadOptions
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.ops.core.kernel_work import LEAST
from tpuprof.parsers.ops.counters.kernels import ScopeUse, merged_uses, scope_uses
from tpuprof.parsers.ops.counters.placed import CustomCalls, placed_tracks
from tpuprof.parsers.ops.counters.samples import has_counters as any_in
from tpuprof.parsers.ops.counters.samples import sampled
from tpuprof.parsers.ops.device import CUSTOM_CALL, is_device
from tpuprof.parsers.pages.shared.host_files import reading
from tpuprof.parsers.pages.shared.key import PageKey, PageSession

if TYPE_CHECKING:
    from tpuprof.parsers.pages.ops.ops import OpsPage

TRACE_KERNELS = (
    "LIBTPU_INIT_ARGS='--xla_xprof_register_llo_debug_info=true --xla_xprof_enable_custom_call_tracing=true'"
)
"""Which flags record what custom calls do: XProf's docs/custom_call_profiling.md."""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """What a custom call or a scope of it uses of a unit, and the host that it ran on; `refused`: why it can't be."""

    host: str
    use: ScopeUse
    refused: str = ""

    @property
    def counted(self) -> float | None:
        """Time in which the unit worked, of the time that is known of, 0-1, whether that can be or not."""
        return self.use.busy_ps / self.use.sampled_ps if self.use.sampled_ps else None

    @property
    def share(self) -> float | None:
        """The same; None where it is refused."""
        return None if self.refused else self.counted


Needs = Mapping[tuple[int, str], float]
"""The part of the matrix units' peak (0-1) that the work of custom calls needs over their time, by program and op."""


def _held(row: KernelRow, needs: Needs) -> KernelRow:
    """A row on the matrix units, refused where it can't be: work that was done needs more of them, or there is less."""
    used, need = row.share, needs.get((row.use.program_id, row.use.name))
    if used is None or not row.use.unit.startswith("MXU"):
        return row
    if used > 1 + 1e-6:
        return replace(row, refused=f"it would be {share(used)} of its time")
    if row.use.scope or need is None or used >= LEAST * need:
        return row
    return replace(row, refused=f"it is {share(used)}, and the shapes need {share(need)}")


def kernel_uses(parts: Sequence[HostCallUnits], needs: Needs) -> tuple[KernelRow, ...]:
    """The custom calls of some hosts, each with its scopes."""
    return tuple(_held(KernelRow(part.host, use), needs) for part in parts for use in part.kernels)


# --- what one host adds


@dataclass(frozen=True, slots=True)
class HostCallUnits:
    """The custom calls of one host and their scopes, summed over its cores."""

    host: str
    kernels: tuple[ScopeUse, ...]


def needed_bytes(trace: Trace) -> int:
    """Bytes of the lines of devices with counters."""
    return sum(map(plane_bytes, planes_with_counters(trace)))


def planes_with_counters(trace: Trace) -> Iterator[Plane]:
    """The devices that have counters."""
    return (plane for plane in trace.planes if is_device(plane) and any_in(plane))


def plane_bytes(plane: Plane) -> int:
    """Bytes of all lines of a device."""
    return sum(line.size for line in plane.lines)


def _reduce(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> HostCallUnits:
    kernels: list[ScopeUse] = []
    for plane in planes_with_counters(trace):
        kernels += trace.optional(f"read the counters of {printable(plane.name)}", partial(_of_plane, plane)) or ()
        on_chunk(plane_bytes(plane), 0)
    return HostCallUnits(file.label, merged_uses(kernels))


def _of_plane(plane: Plane) -> list[ScopeUse]:
    core = CustomCalls(plane)
    return list(scope_uses(core, placed_tracks(core, list(sampled(plane)))))


CALL_UNITS_OF_HOST = Reduction("call-units", HostCallUnits, needed_bytes, _reduce, given_by=("counters",))
"""What the custom calls of a host use of the units."""


# --- how they are read


def call_units(session: PageSession, host: str | None, ops: OpsPage, failed: list[str]) -> tuple[KernelRow, ...]:
    """What custom calls use of the units; nothing where no host has counters.

    Args:
        ops: of the same hosts.
        failed: gets a sentence for what can't be read.
    """
    if not has_counters(session, host):
        return ()
    found = session.reduced(CALL_UNITS_OF_HOST, host)
    failed += found.left_out
    return kernel_uses(found.summaries, needs_of(ops))


def call_units_in(files: Sequence[HostFile], ops: OpsPage) -> tuple[KernelRow, ...]:
    """The same for files of hosts, on any thread; nothing where none of them is readable."""
    found = HostReader(CALL_UNITS_OF_HOST, ReadOptions(), lambda _: None).read(files)
    return kernel_uses(found.summaries, needs_of(ops))


def needs_of(ops: OpsPage) -> Needs:
    """What custom calls need of the matrix units, by the work that their shapes say, or that somebody counted."""
    table, used = ops.table, ops.rates.flops_utilization.tolist()
    keys = zip(table.program_id.tolist(), table.name, table.category, used, strict=True)
    return {(program, name): need for program, name, kind, need in keys if kind == CUSTOM_CALL and 0 < need <= 1}


_ASKED = 4
"""How many hosts are asked whether there are counters: all hosts were profiled with the same options."""


def has_counters(session: PageSession, host: str | None) -> bool:
    """Whether the devices of one of the first hosts have counters; it reads the names of their lines."""
    for file in session.run.files(host)[:_ASKED]:
        with suppress(ProfileError), reading(file) as trace:
            if any(map(any_in, trace.planes)):
                return True
    return False


HAS_COUNTERS = PageKey(has_counters)
