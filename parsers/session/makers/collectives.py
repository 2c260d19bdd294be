"""How the page of collectives is made: of each host's collectives by step, over the steps that all hosts share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tpuprof.parsers.collectives.host import COLLECTIVES_OF_HOST
from tpuprof.parsers.collectives.model import COUNT, HostCollectives
from tpuprof.parsers.pages.collectives.model import ONE_STEP, OUTSIDE, CollectivesPage
from tpuprof.parsers.pages.collectives.page import collectives_page
from tpuprof.parsers.pages.steps import common_steps
from tpuprof.parsers.session import pages
from tpuprof.parsers.session.makers.summaries import note_programs
from tpuprof.parsers.steps.aligned import shared_steps

if TYPE_CHECKING:
    from tpuprof.parsers.collectives.host import CollectivesSummary
    from tpuprof.parsers.session.session import Session
    from tpuprof.parsers.steps.aligned import AlignedSteps

_WHOLE = ("profile",)


def collectives(session: Session, host: str | None) -> CollectivesPage:
    """What moves between cores, and what compute hides of it.

    Where all collectives run outside of the steps, as those of a program that ran once beside a loop of another one,
    each core's whole time counts as one step.
    """
    found = session.reduced(COLLECTIVES_OF_HOST, host)
    note_programs(session, found)
    page = _page(found.summaries)
    return replace(page, warnings=(*page.warnings, *found.left_out))


def _page(summaries: Sequence[CollectivesSummary]) -> CollectivesPage:
    if not any(summary.core_count for summary in summaries):
        every = [summary.all_collectives for summary in summaries if summary.all_collectives.cores]
        has_any = any(map(_count, every))
        remarks = (ONE_STEP,) if has_any else ()
        return collectives_page(summaries, every, _WHOLE if every else (), ONE_STEP * has_any, False, remarks)
    steps = common_steps(summaries)
    parts = _in_shared_steps(summaries, steps.grid)
    if steps.grid is not None and (any(map(_count, parts)) or not any(part.outside for part in parts)):
        notes = (*steps.remarks, *([steps.note] if steps.note else []))
        return collectives_page(summaries, parts, steps.grid.names, steps.note, True, notes)
    note = f"{OUTSIDE if steps.grid is not None else ''}{ONE_STEP}"
    every = [summary.all_collectives for summary in summaries]
    return collectives_page(summaries, every, _WHOLE, note, False, [note])


def has_collectives(session: Session, host: str | None) -> bool:
    """Whether an op moves data to other cores or devices, or to other slices."""
    ops = session.page(pages.OPS, host)
    kinds = zip(ops.op_class, ops.table.category, strict=True)
    if any(name == "collective" and category != "partition-id" for name, category in kinds):
        return True
    return ops.runs_on == "core" and any(
        ops.table.is_across_slices(row, lambda: session.page(pages.MODULES, host)) for row in range(len(ops.table))
    )


def _count(part: HostCollectives) -> int:
    return int(part.of_collective[COUNT].sum())


def _in_shared_steps(summaries: Sequence[CollectivesSummary], joined: AlignedSteps | None) -> list[HostCollectives]:
    """The collectives of each host in the steps that all hosts share."""
    if joined is None:
        return []
    having = [
        (summary.steps, summary.collectives)
        for summary in summaries
        if summary.steps is not None and summary.collectives is not None and summary.steps.source == joined.source
    ]
    shared = shared_steps([grid for grid, _ in having])
    if len(shared[0]) != len(joined):  # they share none: the steps are those of the first
        return [collectives for _, collectives in having[:1]]
    return [collectives.take(rows) for (_, collectives), rows in zip(having, shared, strict=True)]
