"""How the page of performance counters is made: no other page needs them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Trace
from tpuprof.parsers.hosts.reader import HostReader, Means
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.ops.counters.host import HostCounters, host_counters, needed_bytes
from tpuprof.parsers.ops.counters.samples import has_counters as any_in
from tpuprof.parsers.ops.device import CUSTOM_CALL
from tpuprof.parsers.pages.counters import CountersPage, KernelRow, counters_page
from tpuprof.parsers.session.files import opened
from tpuprof.parsers.session.pages import OPS

if TYPE_CHECKING:
    from tpuprof.parsers.files.places import HostFile
    from tpuprof.parsers.pages.ops.ops import OpsPage
    from tpuprof.parsers.session.session import Session

_ASKED = 4
"""How many hosts are asked whether there are counters: all hosts were profiled with the same options."""


def _reduce(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> HostCounters:
    return host_counters(trace, file.label, on_chunk)


COUNTERS_OF_HOST = Reduction("counters", HostCounters, needed_bytes, _reduce)
"""The counters of a host's devices."""


def counters(session: Session, host: str | None) -> CountersPage:
    """The performance counters."""
    found = session.reduced(COUNTERS_OF_HOST, host)
    needs = _needs(session.page(OPS, host)) if any(summary.kernels for summary in found.summaries) else {}
    return counters_page(found.summaries, [*found.left_out, *session.only_shown], needs)


def _needs(ops: OpsPage) -> dict[tuple[int, str], float]:
    """What custom calls need of the matrix units, by the work that their shapes say, or that somebody counted."""
    table, used = ops.table, ops.rates.flops_utilization.tolist()
    keys = zip(table.program_id.tolist(), table.name, table.category, used, strict=True)
    return {(program, name): need for program, name, kind, need in keys if kind == CUSTOM_CALL and 0 < need <= 1}


def kernels_of(files: Sequence[HostFile], ops: OpsPage) -> tuple[KernelRow, ...]:
    """What custom calls of some hosts use of the units; none where no host is readable. For any thread.

    Args:
        ops: of these hosts.
    """
    found = HostReader(COUNTERS_OF_HOST, Means(), lambda _: None).read(files)
    return counters_page(found.summaries, needs=_needs(ops)).kernels if found.read else ()


def has_counters(session: Session, host: str | None) -> bool:
    """Whether the devices of one of the first hosts have counters; it reads the names of their lines."""
    for file in session.run.files(host)[:_ASKED]:
        with suppress(ProfileError), closing(opened(file)) as trace:
            if any(map(any_in, trace.planes)):
                return True
    return False
