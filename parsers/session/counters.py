"""The performance counters of a run's hosts, read when they are asked for: no other page needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.files.logdir import HostFile
from tpuprof.parsers.hosts.progress import Meter
from tpuprof.parsers.ops.counters.host import HostCounters, host_counters
from tpuprof.parsers.ops.counters.samples import has_counters
from tpuprof.parsers.pages.counters import CountersPage, KernelRow, counters_page
from tpuprof.parsers.session.files import each_host, left_out, opened

_ASKED = 4
"""So many hosts are asked whether there are counters: the options of the profiler are one program's."""


def read_counters(
    files: Sequence[HostFile], meter: Meter, notes: Sequence[str], nothing: Callable[[], ProfileError]
) -> CountersPage:
    """The counters of some hosts.

    Args:
        notes: what to say besides of what they are of.
        nothing: why there is no host at all.

    Raises:
        ProfileError: no host is readable.
    """

    def read(file: HostFile, meter: Meter) -> HostCounters:
        with closing(opened(file)) as trace:
            return host_counters(trace, file.label, meter.chunk)

    parts, failures = each_host(files, meter, read)
    if not parts:
        raise failures[0] if failures else nothing()
    return counters_page(parts, [*left_out(failures), *notes])


def kernels_of(files: Sequence[HostFile]) -> tuple[KernelRow, ...]:
    """What custom calls of some hosts use of the units; none where no host is readable. For any thread."""
    try:
        quiet = Meter(files, lambda _: None, lambda: False)
        return read_counters(files, quiet, (), lambda: ProfileError("no_hosts", "", "")).kernels
    except ProfileError:
        return ()


def any_counters(files: Sequence[HostFile]) -> bool:
    """Whether the devices of one of the first hosts have counters."""
    for file in files[:_ASKED]:
        with suppress(ProfileError), closing(opened(file)) as trace:
            if any(map(has_counters, trace.planes)):
                return True
    return False
