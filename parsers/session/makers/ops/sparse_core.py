"""How the page of SparseCores is made: only hosts that have them are decoded."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from tpuprof.parsers.hosts.reduction import Reduced, left_out
from tpuprof.parsers.pages.ops.sparse_core.host import (
    SPARSE_CORES_OF_HOST,
    SparseHost,
    StepSpans,
    has_sparse_cores,
    steps_of,
)
from tpuprof.parsers.pages.ops.sparse_core.page import SparseCorePage, no_sparse_cores, sparse_core_page
from tpuprof.parsers.session.files import each_host, opened
from tpuprof.parsers.session.makers.summaries import read
from tpuprof.parsers.session.pages import OVERVIEW

if TYPE_CHECKING:
    from tpuprof.parsers.files.places import HostFile
    from tpuprof.parsers.hosts.progress import Meter
    from tpuprof.parsers.hosts.summary import HostSummary
    from tpuprof.parsers.session.session import Session


def sparse_core(session: Session, host: str | None) -> SparseCorePage:
    """What SparseCores do beside the TensorCores."""
    files = session.run.files(host)
    damages: list[str] = []

    def look(file: HostFile, meter: Meter) -> tuple[HostFile, bool]:
        with closing(opened(file, meter)) as trace:
            if has := has_sparse_cores(trace):
                return file, has
            damages.extend(problem.sentence for problem in trace.problems)
            return file, has

    found, failures = each_host(files, session.meter(files), look)
    having = [file for file, has in found if has]
    if not having and found:
        notes = [*damages, *left_out(failures), *session.problems]
        return no_sparse_cores([file.label for file, _ in found], notes)
    warnings = session.page(OVERVIEW, host).warnings
    reduced = _reduced(session, host, having)
    if reduced.failed and not reduced.read:
        raise reduced.failed[0][1]
    lost = {*having} - {*reduced.files}
    hosts = [file.label for file, _ in found if file not in lost]
    return sparse_core_page(reduced.summaries, hosts, [*warnings, *reduced.left_out])


def _reduced(session: Session, host: str | None, having: Sequence[HostFile]) -> Reduced[SparseHost]:
    steps = {file: _steps(summary) for file, summary in read(session, host)}
    return session.reduced_with(SPARSE_CORES_OF_HOST, {file: steps[file] for file in having if file in steps})


def _steps(summary: HostSummary) -> StepSpans | None:
    """The steps of a host's overview."""
    grid = summary.steps
    if grid is None or not len(grid):
        return None
    return steps_of(grid.names, grid.start_ps, grid.longest_ps, grid.source)
