"""The steps that the cores of all hosts share, and their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.intervals import Floats, median
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import nearest, printable
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.shared.common import holes_in_words
from tpuprof.parsers.pages.shared.groups import CoreGroup, group_shown, groups_of, in_group, shown_words
from tpuprof.parsers.steps.aligned import AlignedSteps, join_hosts
from tpuprof.parsers.steps.model import StepSource, StepTime


@dataclass(frozen=True, slots=True)
class CommonSteps:
    """The steps that the cores of all hosts share.

    Attributes:
        grid: the steps and what the cores do in them; None where there are none, and where ops of all were lost.
        note: how steps were inferred, or why there are none; empty for marked steps.
        remarks: sentences on lost ops, and on steps that were left out.
        spans: when they are; None where there are none.
    """

    grid: AlignedSteps | None
    note: str
    remarks: tuple[str, ...]
    spans: AlignedSteps | None


def common_steps(summaries: Sequence[HostSummary]) -> CommonSteps:
    """Joins the steps of all hosts that have some; marked steps count before inferred ones.

    Where cores form several groups, they are those of the largest.
    """
    main, lost = group_shown(summaries), holes_in_words(summaries)
    if main is not None:
        of_main, of_group = common_steps(in_group(summaries, main)), holes_in_words(in_group(summaries, main))
        return replace(
            of_main, remarks=(shown_words(main), *lost, *(of for of in of_main.remarks if of not in of_group))
        )
    having = [(summary.steps, summary) for summary in summaries if summary.steps is not None]
    if not having:
        return CommonSteps(None, next((of.step_note for of in summaries if of.step_note), "no step"), lost, None)
    is_marked = any(grid.source == "steps" for grid, _ in having)
    grids = [grid for grid, _ in having if (grid.source == "steps") == is_marked]  # marked ones where there are any
    note = "" if is_marked else having[0][1].step_note
    joined = join_hosts(grids)
    if not len(joined):
        remark = f"the hosts share no step: the steps shown are those of {grids[0].core_names[0].rpartition(':')[0]}"
        return _common(grids[0], note, (remark, *lost))
    return _common(joined, note, lost)


def _common(grid: AlignedSteps, note: str, remarks: tuple[str, ...]) -> CommonSteps:
    return CommonSteps(None if grid.are_lost else grid, note, (*remarks, *_remarks(grid)), grid)


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
    first, between, last = text.partition("-")
    if text in names:
        first = last = text
    elif not between:
        last = first
    for name in (first, last):
        if name not in names:
            raise _unknown_step(name, names)
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
