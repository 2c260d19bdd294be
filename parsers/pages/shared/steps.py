"""The steps that the cores of all hosts share, and their times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.intervals import Floats, median, medians
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import examples, nearest, printable
from tpuprof.parsers.files.core_names import host_of
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.shared.common import holes_in_words
from tpuprof.parsers.pages.shared.groups import CoreGroup, group_shown, groups_of, in_group, shown_words
from tpuprof.parsers.steps.aligned import AlignedSteps, join_hosts, shared_steps
from tpuprof.parsers.steps.model import StepSource, StepTime

_ALIKE = 1.1
"""Steps are as long as each other where the longest of their medians is no longer than this multiple of the least."""


@dataclass(frozen=True, slots=True)
class CommonSteps:
    """The steps that the cores of all hosts share.

    Attributes:
        grid: the steps and what the cores do in them; None where there are none, and where ops of all were lost.
        note: how steps were inferred, or why there are none; empty for marked steps.
        remarks: sentences on lost ops, and on steps that were left out.
        spans: when they are; None where there are none.
        rows: which of its `HostSummary.steps` each host has in them, by its place; none of one that takes no part.
    """

    grid: AlignedSteps | None
    note: str
    remarks: tuple[str, ...]
    spans: AlignedSteps | None
    rows: Mapping[int, NDArray[np.intp]]


def common_steps(summaries: Sequence[HostSummary]) -> CommonSteps:
    """Joins the steps of all hosts that have some.

    Where cores form several groups, they are those of the largest. Hosts with marked steps are joined to those without
    by the ends of steps, where these belong together; else marked steps count before inferred ones.
    """
    main, lost = group_shown(summaries), holes_in_words(summaries)
    if main is not None:
        of_main, of_group = common_steps(in_group(summaries, main)), holes_in_words(in_group(summaries, main))
        return replace(
            of_main,
            remarks=(shown_words(main), *lost, *(of for of in of_main.remarks if of not in of_group)),
            rows={main.parts[at][0]: rows for at, rows in of_main.rows.items() if not main.parts[at][1]},
        )
    having = {at: summary.steps for at, summary in enumerate(summaries) if summary.steps is not None}
    if not having:
        why = next((summary.step_note for summary in summaries if summary.step_note), "no step")
        return CommonSteps(None, why, lost, None, {})
    marked = {at: grid for at, grid in having.items() if grid.source == "steps"} or having
    if len(marked) == len(having):
        return _common(having, summaries[next(iter(having))].step_note, lost)
    where = f"no Steps line on {examples([summaries[at].host for at in having if at not in marked])}"
    ends = {at: grid.periods() if at in marked else grid for at, grid in having.items()}
    note = f"{where}: a step is taken as the time from the end of one to the end of the next"
    joined = _common(ends, note, lost) if all(map(len, ends.values())) else None
    if joined is None or not _keep_step(joined, ends):
        alone = _common(marked, "", lost)
        grid = None if alone.grid is None else replace(alone.grid, is_partial=True)
        return replace(alone, grid=grid, note=f"{where}, and no step there is one here: how long cores wait is unknown")
    return replace(joined, rows={at: rows + (at in marked) for at, rows in joined.rows.items()})


def _keep_step(joined: CommonSteps, grids: Mapping[int, AlignedSteps]) -> bool:
    """Whether the steps of hosts that are found differently belong together: most of them, and as long on all cores."""
    if joined.spans is None or 2 * len(joined.spans) < min(map(len, grids.values())) or len(joined.rows) < len(grids):
        return False
    lengths = medians(joined.spans.duration_ps.T.astype(np.float64))
    return float(lengths.max()) <= _ALIKE * float(lengths.min())


def _common(grids: Mapping[int, AlignedSteps], note: str, remarks: tuple[str, ...]) -> CommonSteps:
    """The steps that hosts share, by their places, or those of the first where they share none."""
    index = shared_steps(list(grids.values()))
    if not len(index[0]):
        first, grid = next(iter(grids.items()))
        remarks = (f"the hosts share no step: the steps shown are those of {host_of(grid.core_names[0])}", *remarks)
        return _common({first: grid}, note, remarks)
    grid = join_hosts(list(grids.values()), index)
    note = "" if grid.source == "steps" else note
    rows = dict(zip(grids, index, strict=True))
    return CommonSteps(None if grid.are_lost else grid, note, (*remarks, *_remarks(grid)), grid, rows)


def group_rows(summaries: Sequence[HostSummary]) -> tuple[CoreGroup, ...]:
    """The groups of cores side by side, each with the time of its steps; none where all cores are one group."""
    groups = groups_of(summaries)
    timed = (replace(group, step_time=_time_of(in_group(summaries, group))) for group in groups)
    return tuple(timed) if len(groups) > 1 else ()


def _time_of(summaries: Sequence[HostSummary]) -> StepTime | None:
    generic = max((of.generic for of in summaries if of.generic), key=lambda of: len(of.steps), default=None)
    if generic is not None and generic.steps:
        return step_time(np.array([step.duration_ps for step in generic.steps], np.float64), generic.source)
    grid = common_steps(summaries).spans
    return None if grid is None or not len(grid) else step_time(grid.longest_ps.astype(np.float64), grid.source)


def _remarks(grid: AlignedSteps) -> tuple[str, ...]:
    if not grid.dropped:
        return grid.incomplete
    were, them = ("step was", "it") if grid.dropped == 1 else ("steps were", "them")
    return (f"{grid.dropped} {were} left out: not every core has {them}", *grid.incomplete)


def step_time(durations: Floats, source: StepSource, note: str = "") -> StepTime:
    """Summary over at least one step, each with its slowest core (`ComputeStepTimeSummaryInMs`)."""
    return StepTime(*mean_and_range(durations), len(durations), source, note)


def mean_and_range(values: Floats) -> tuple[float, float, float, float, float]:
    """Mean, standard deviation of the sample, median, least and largest of at least one value."""
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return float(values.mean()), deviation, median(values), float(values.min()), float(values.max())


def chosen_steps(text: str, names: Sequence[str]) -> slice:
    """Which steps a name means, or a range of names, ``104-108``, with both ends.

    Raises:
        ProfileError: `unknown_step`, exit code 3, with the nearest names.
    """
    first, between, last = (text if text in names else text.replace("..", "-").replace(":", "-")).partition("-")
    if text in names:
        first = last = text
    elif not between:
        last = first
    for name in (first, last):
        if name not in names:
            raise _unknown_step(name or text, names)
    begin, end = names.index(first), names.index(last)
    return slice(min(begin, end), max(begin, end) + 1)


def _unknown_step(name: str, names: Sequence[str]) -> ProfileError:
    """The error of a step that is not there: the nearest by number, else by name."""
    there = f"{names[0]} to {names[-1]}" if len(names) > 1 else names[0]
    near = nearest(name, names)
    if name.isdecimal() and all(each.isdecimal() for each in names):
        near = sorted(names, key=lambda each: abs(int(each) - int(name)))[:2]
    sentence = f"The profile has no step {printable(name)}: its steps are {printable(there)}."
    return ProfileError(
        "unknown_step", sentence, f"--step {' or '.join(map(printable, (near or names)[:2]))}", EXIT_NOT_FOUND
    )
