"""How the page of collectives is made: of the events of each host's cores, over the steps that its summary has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.collectives.host import COLLECTIVES_OF_HOST, COUNT, HostCollectives
from tpuprof.parsers.pages.collectives.model import ONE_STEP, OUTSIDE, CollectivesPage
from tpuprof.parsers.pages.collectives.page import collectives_page
from tpuprof.parsers.pages.steps import common_steps
from tpuprof.parsers.session.makers.summaries import read
from tpuprof.parsers.steps.grid import shared_steps

if TYPE_CHECKING:
    from tpuprof.parsers.files.places import HostFile
    from tpuprof.parsers.hosts.summary import HostSummary
    from tpuprof.parsers.session.session import Session
    from tpuprof.parsers.steps.grid import StepGrid

_WHOLE = ("profile",)


def collectives(session: Session, host: str | None) -> CollectivesPage:
    """What moves between cores, and what compute hides of it.

    Where all collectives run outside of the steps, as those of a program that ran once beside a loop of another one,
    each core's whole time counts as one step.
    """
    found = read(session, host)
    files, summaries = found.files, found.summaries
    if not any(summary.core_count for summary in summaries):
        return collectives_page(summaries, (), (), "", False)
    steps = common_steps(summaries)
    parts = session.reduced_with(COLLECTIVES_OF_HOST, _grids(files, summaries, steps.grid)).summaries
    if steps.grid is not None and (any(_count(part) for part in parts) or not any(part.outside for part in parts)):
        notes = (*steps.remarks, *([steps.note] if steps.note else []))
        return collectives_page(summaries, parts, steps.grid.names, steps.note, True, notes)
    note = f"{OUTSIDE if steps.grid is not None else ''}{ONE_STEP}"
    parts = session.reduced_with(COLLECTIVES_OF_HOST, dict.fromkeys(files)).summaries
    return collectives_page(summaries, parts, _WHOLE, note, False, [note])


def _count(part: HostCollectives) -> int:
    return int(part.of_collective[COUNT].sum())


def _grids(
    files: Sequence[HostFile], summaries: Sequence[HostSummary], joined: StepGrid | None
) -> dict[HostFile, StepGrid]:
    """The steps of each host that all hosts share."""
    if joined is None:
        return {}
    having = [
        (file, summary.steps)
        for file, summary in zip(files, summaries, strict=True)
        if summary.steps is not None and summary.steps.source == joined.source
    ]
    shared = shared_steps([grid for _, grid in having])
    if len(shared[0]) != len(joined):  # they share none: the steps are those of the first
        return dict(having[:1])
    return {file: grid for (file, _), grid in zip(having, shared, strict=True)}
