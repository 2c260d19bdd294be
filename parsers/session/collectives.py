"""Reads the page of collectives: the events of each host's cores, over the steps that its summary has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from tpuprof.parsers.collectives.host import COUNT, HostCollectives, host_collectives, needed_bytes
from tpuprof.parsers.hosts.plan import decoding_threads
from tpuprof.parsers.pages.collectives.model import ONE_STEP, OUTSIDE, CollectivesPage
from tpuprof.parsers.pages.collectives.page import collectives_page
from tpuprof.parsers.pages.steps import common_steps
from tpuprof.parsers.session.files import each_host, opened
from tpuprof.parsers.steps.grid import shared_steps

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import HostFile
    from tpuprof.parsers.hosts.progress import Meter
    from tpuprof.parsers.hosts.summary import HostSummary
    from tpuprof.parsers.steps.grid import StepGrid

Work = Callable[["HostFile", "Meter"], HostCollectives]
"""Reads one host."""

_WHOLE = ("profile",)


def read_collectives(files: Sequence[HostFile], summaries: Sequence[HostSummary], meter: Meter) -> CollectivesPage:
    """The page of some hosts.

    Where all collectives run outside of the steps, as those of a program that ran once beside a loop of another one,
    each core's whole time counts as one step.

    Args:
        summaries: of the hosts that are readable.
    """
    readable = {summary.host for summary in summaries}
    files = [file for file in files if file.label in readable]

    def each(of: Sequence[HostFile], work: Work) -> list[HostCollectives]:
        return each_host(of, meter, work)[0]

    if not any(summary.core_count for summary in summaries):
        return collectives_page(summaries, (), (), "", False)
    steps = common_steps(summaries)
    grids = _grids(files, summaries, steps.grid)
    having = [file for file in files if file.path in grids]
    parts = each(having, lambda file, meter: _read(file, meter, grids[file.path])) if having else []
    if steps.grid is not None and (any(_count(part) for part in parts) or not any(part.outside for part in parts)):
        notes = (*steps.remarks, *([steps.note] if steps.note else []))
        return collectives_page(summaries, parts, steps.grid.names, steps.note, True, notes)
    note = f"{OUTSIDE if steps.grid is not None else ''}{ONE_STEP}"
    parts = each(files, lambda file, meter: _read(file, meter, None))
    return collectives_page(summaries, parts, _WHOLE, note, False, [note])


def _count(part: HostCollectives) -> int:
    return int(part.of_collective[COUNT].sum())


def _grids(files: Sequence[HostFile], summaries: Sequence[HostSummary], joined: StepGrid | None) -> dict[str, StepGrid]:
    """By path, the steps of each host that all hosts share."""
    if joined is None:
        return {}
    having = [
        (file.path, summary.steps)
        for file, summary in zip(files, summaries, strict=True)
        if summary.steps is not None and summary.steps.source == joined.source
    ]
    shared = shared_steps([grid for _, grid in having])
    if len(shared[0]) != len(joined):  # they share none: the steps are those of the first
        return dict(having[:1])
    return {path: grid for (path, _), grid in zip(having, shared, strict=True)}


def _read(file: HostFile, meter: Meter, grid: StepGrid | None) -> HostCollectives:
    with closing(opened(file)) as trace:
        meter.opened(needed_bytes(trace))
        return host_collectives(trace, file.host, grid, meter.chunk, decoding_threads())
