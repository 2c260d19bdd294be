"""How the page of SparseCores is read: only hosts that have them are decoded, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from tpuprof.parsers.files.logdir import HostFile, Run
from tpuprof.parsers.hosts.progress import Meter
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.ops.sparse_core import SparseCorePage, no_sparse_cores, sparse_core_page
from tpuprof.parsers.session.files import each_host, left_out, opened
from tpuprof.parsers.steps.sparse_beside import SparseHost, has_sparse_cores, needed_bytes, sparse_host, steps_of


def read_sparse_core(
    run: Run,
    host: str | None,
    meter: Meter,
    summaries: Callable[[str], Sequence[HostSummary]],
    warnings: Callable[[], Sequence[str]],
) -> SparseCorePage:
    """Reads the page of one host, or of all.

    Args:
        summaries: those of a host, whose steps are those of the overview; asked for only where there are SparseCores.
        warnings: of the overview; they begin to be made where there are SparseCores, or nothing can be read.

    Raises:
        ProfileError, Cancelled: as for `Session.overview`.
    """
    files = run.files(host)

    damages: list[str] = []

    def part(file: HostFile, meter: Meter) -> tuple[str, SparseHost | None]:
        with closing(opened(file)) as trace:
            if not has_sparse_cores(trace):
                damages.extend(problem.sentence for problem in trace.problems)
                return file.label, None
            grid = summaries(file.host)[0].steps
            steps = None
            if grid is not None and len(grid):
                steps = steps_of(grid.names, grid.start_ps, grid.longest_ps, grid.source)
            meter.opened(needed_bytes(trace))
            return file.label, sparse_host(trace, file.host, steps, meter.chunk)

    found, failures = each_host(files, meter, part)
    hosts, parts = [label for label, _ in found], [made for _, made in found if made is not None]
    if parts or not found:
        return sparse_core_page(parts, hosts, warnings())
    return no_sparse_cores(hosts, [*damages, *left_out(failures), *(problem.sentence for problem in run.problems)])
