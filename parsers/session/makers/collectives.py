"""How the page of collectives is made: of the events of each host's cores, over the steps that its summary has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tpuprof.parsers.collectives.host import COLLECTIVES_OF_HOST, COUNT, HostCollectives, StepsOrWhole
from tpuprof.parsers.hosts.reduction import Reduced
from tpuprof.parsers.pages.collectives.model import ONE_STEP, OUTSIDE, CollectivesPage
from tpuprof.parsers.pages.collectives.page import collectives_page
from tpuprof.parsers.pages.steps import common_steps
from tpuprof.parsers.session import pages
from tpuprof.parsers.session.makers.summaries import read
from tpuprof.parsers.steps.aligned import shared_steps

if TYPE_CHECKING:
    from tpuprof.parsers.files.places import HostFile
    from tpuprof.parsers.hosts.summary import HostSummary
    from tpuprof.parsers.session.session import Session
    from tpuprof.parsers.steps.aligned import AlignedSteps

_WHOLE = ("profile",)


def collectives(session: Session, host: str | None) -> CollectivesPage:
    """What moves between cores, and what compute hides of it.

    Where all collectives run outside of the steps, as those of a program that ran once beside a loop of another one,
    each core's whole time counts as one step.
    """
    found = read(session, host)
    if not any(summary.core_count for summary in found.summaries):
        return _page(found, Reduced((), ()), (), (), "", False)
    steps = common_steps(found.summaries)
    grids = _grids(found.files, found.summaries, steps.grid)
    reduced = session.reduced_with(COLLECTIVES_OF_HOST, grids)
    parts = [part.in_steps for part in reduced.summaries if part.in_steps is not None]
    if steps.grid is not None and (any(map(_count, parts)) or not any(part.outside for part in parts)):
        notes = (*steps.remarks, *([steps.note] if steps.note else []))
        return _page(found, reduced, parts, steps.grid.names, steps.note, True, notes)
    note = f"{OUTSIDE if steps.grid is not None else ''}{ONE_STEP}"
    others = session.reduced_with(COLLECTIVES_OF_HOST, dict.fromkeys(file for file in found.files if file not in grids))
    of_file = dict((*reduced, *others))
    every = tuple((file, of_file[file]) for file in found.files if file in of_file)
    parts = [part.whole for _, part in every if part.whole is not None]
    return _page(found, Reduced(every, (*reduced.failed, *others.failed)), parts, _WHOLE, note, False, [note])


def has_collectives(session: Session, host: str | None) -> bool:
    """Whether TensorCores ran an op that moves data to other cores, or to other slices."""
    ops = session.page(pages.OPS, host)
    if ops.runs_on != "core":
        return False
    kinds = zip(ops.op_class, ops.table.category, strict=True)
    if any(name == "collective" and category != "partition-id" for name, category in kinds):
        return True
    return any(
        ops.table.is_across_slices(row, lambda: session.page(pages.MODULES, host)) for row in range(len(ops.table))
    )


def _page(
    found: Reduced[HostSummary],
    reduced: Reduced[StepsOrWhole],
    parts: Sequence[HostCollectives],
    step_names: Sequence[str],
    steps_note: str,
    has_steps: bool,
    notes: Sequence[str] = (),
) -> CollectivesPage:
    """The page of the hosts whose collectives could be read, which names the others; see `collectives_page`.

    Raises:
        ProfileError: no host could be read the second time.
    """
    if reduced.failed and not reduced.read:
        raise reduced.failed[0][1]
    failed = {file for file, _ in reduced.failed}
    summaries = [summary for file, summary in found if file not in failed]
    page = collectives_page(summaries, parts, step_names, steps_note, has_steps, notes)
    return replace(page, warnings=(*page.warnings, *reduced.left_out))


def _count(part: HostCollectives) -> int:
    return int(part.of_collective[COUNT].sum())


def _grids(
    files: Sequence[HostFile], summaries: Sequence[HostSummary], joined: AlignedSteps | None
) -> dict[HostFile, AlignedSteps]:
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
