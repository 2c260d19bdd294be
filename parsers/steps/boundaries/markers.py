"""Where steps begin and end on one core.

Markers are the events of a core's `Steps` line. A program that runs several HLO modules a step has a marker for each
module; the markers that one host step launched are one step (see `parsers.steps.groups.groups`). A marker that no host
step launched is no step, as long as others are (XProf's `MergeHostSteps`). Where no core has a marker, steps are
inferred: a step is the time from the end of one run of the busiest HLO module to the end of its next run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Columns, Int64s, Intervals, interval_index, no_ints, opens
from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.core.ops import DEVICE_SPAN, STEPS_LINE, device_spans, event_spans
from tpuprof.parsers.steps.boundaries.runs import NEARLY_ALL, ModuleRuns


@dataclass(frozen=True, slots=True)
class CoreSteps(Sized):
    """The steps of one core, in order of time, not overlapping.

    Attributes:
        names: name of each step.
        start_ps, end_ps: int64[n], on the trace's clock.
        duration_ps: int64[n], by the device's own clock where the markers have it; the clocks drift by some 0.03 %.
        lost: bool[n], the steps of whose runs much was not recorded (`boundaries.recorded`); None where that is none.
    """

    names: tuple[str, ...]
    start_ps: Int64s
    end_ps: Int64s
    duration_ps: Int64s
    lost: Bools | None = None

    def take(self, rows: NDArray[np.intp]) -> CoreSteps:
        names = tuple(self.names[row] for row in rows.tolist())
        lost = None if self.lost is None else self.lost[rows]
        return CoreSteps(names, self.start_ps[rows], self.end_ps[rows], self.duration_ps[rows], lost)

    def without(self, spans: Intervals) -> CoreSteps:
        """The steps, which follow each other, from the last of some spans in each on to the first one after it.

        Args:
            spans: disjoint and in order; none of them holds an end of a step.
        """
        if not len(spans[0]):
            return self
        last = np.searchsorted(spans[1], self.end_ps, side="right") - 1
        start = np.maximum(self.start_ps, np.where(last >= 0, spans[1][np.maximum(last, 0)], self.start_ps))
        never = np.iinfo(np.int64).max
        first = np.append(spans[0], never)[np.searchsorted(spans[0], self.end_ps)]
        end = np.where(first < np.append(self.end_ps[1:], never), first, self.end_ps)
        return replace(self, start_ps=start, end_ps=end, duration_ps=end - start)

    def lost_among(self, rows: NDArray[np.intp]) -> Bools:
        """bool[rows]: which of some steps are lost."""
        return np.zeros(len(rows), np.bool_) if self.lost is None else self.lost[rows]


@dataclass(frozen=True, slots=True)
class LaunchingSteps:
    """Which host step launched each marker of a core.

    Attributes:
        group: int64[n], each marker's group in file order, -1 for none.
        step_numbers: the number that the program gave a group's step, where it gave one.
    """

    group: Int64s
    step_numbers: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Marks(Columns):
    """Events of a line in order of start.

    Attributes:
        name: the metadata id of each, which says its name.
        start, end: on the trace's clock; device_start, device_end: by the device's.
        group: the host step that launched each; -1 where that is unknown.
    """

    name: Int64s
    start: Int64s
    end: Int64s
    device_start: Int64s
    device_end: Int64s
    group: Int64s


def _marks(plane: Plane, line_name: str, group: Int64s) -> _Marks:
    """A line's events in order of start; several lines of one name count as one.

    Args:
        group: of each event in file order; of another number of events it says nothing.
    """
    parts: list[_Marks] = []
    for line in plane.lines:
        if line.name == line_name:
            events = line.events(DEVICE_SPAN)
            start, end = event_spans(line, events)
            name, unknown = events.metadata_id.astype(np.int64), np.full(len(start), -1)
            parts.append(_Marks(name, start, end, *device_spans(events, start, end), unknown))
    marks = _Marks.joined(parts)
    marks = replace(marks, group=group) if len(group) == len(marks) else marks
    return marks.take(np.argsort(marks.start, kind="stable"))


def marked_steps(plane: Plane, host_steps: LaunchingSteps | None = None, line_name: str = STEPS_LINE) -> CoreSteps:
    """The steps that a core's `Steps` line marks; none where it has no such line or it is empty.

    Args:
        host_steps: which host step launched each marker; None where that is unknown.
    """
    host_steps = host_steps or LaunchingSteps(no_ints(), {})
    marks = _marks(plane, line_name, host_steps.group)
    marks = marks.take(marks.end > marks.start)
    first, last = _merged(marks.group, marks.end)
    marks = replace(marks.take(first), end=marks.end[last], device_end=marks.device_end[last])
    if len(marks) > 1:  # overlapping markers would count an op twice
        cut = np.minimum(marks.end, np.append(marks.start[1:], marks.end[-1]))
        marks = replace(marks, end=cut, device_end=marks.device_end - (marks.end - cut))
        marks = marks.take(cut > marks.start)  # of markers with one start the last is kept
    groups, numbers = marks.group.tolist(), host_steps.step_numbers
    unnumbered = marks.name[[of not in numbers for of in groups]]  # only their labels are decoded
    labels = iter(plane.event_metadata.labels(unnumbered))
    names = tuple(str(numbers[of]) if of in numbers else next(labels) for of in groups)
    duration = marks.device_end - marks.device_start
    return CoreSteps(names, marks.start, marks.end, np.where(duration > 0, duration, marks.end - marks.start))


def steps_beside(runs: ModuleRuns, marked: CoreSteps, beside: ModuleRuns) -> CoreSteps:
    """The steps of a core without markers, by those of another one: what runs in the middle of these is in them.

    A step begins as long before its first run, and ends as long after the last, as on the other core; `beside` are the
    runs there. None where the two do not run as often in nearly all steps.
    """
    (mine, first, last), (its, its_first, its_last) = (_runs_in(marked, of) for of in (runs, beside))
    start, end = marked.start_ps + first - its_first, marked.end_ps + last - its_last
    rows = np.flatnonzero((mine == its) & (its > 0) & (end > start))
    if len(rows) < NEARLY_ALL * np.count_nonzero(its):
        rows = rows[:0]
    start, end = start[rows], end[rows]
    end[:-1] = np.minimum(end[:-1], start[1:])
    return replace(marked.take(rows), start_ps=start, end_ps=end, duration_ps=end - start)


def _runs_in(steps: CoreSteps, runs: ModuleRuns) -> tuple[Int64s, Int64s, Int64s]:
    """int64[steps] each: how many runs have their middle in each step, the first one's start, the last one's end."""
    of_run = interval_index((runs.start_ps + runs.end_ps) // 2, steps.start_ps, steps.end_ps)
    inside = np.flatnonzero(of_run >= 0)
    first, last = steps.end_ps.copy(), steps.start_ps.copy()
    np.minimum.at(first, of_run[inside], runs.start_ps[inside])
    np.maximum.at(last, of_run[inside], runs.end_ps[inside])
    return np.bincount(of_run[inside], minlength=len(steps)), first, last


def _merged(group: Int64s, end: Int64s) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first marker of each run of markers of one group, and the marker that ends last.

    It leaves out markers without a group, unless none has one.
    """
    if not (group >= 0).any():
        every = np.arange(len(group))
        return every, every
    begins = opens(group)
    first = np.flatnonzero(begins)
    latest = np.flatnonzero(end == np.maximum.reduceat(end, first)[np.cumsum(begins) - 1])
    last = latest[np.searchsorted(latest, first)]
    known = group[first] >= 0
    return first[known], last[known]


def numbered_steps(runs: ModuleRuns, host_steps: LaunchingSteps) -> CoreSteps:
    """The steps that the host's annotations number, on a core without markers.

    A step goes from the end of the last run that the annotation before launched to the end of the last run that its own
    launched, as `inferred_steps` do; the first has no start. Where numbers are left out, and as many runs of the
    program lie between, annotations were lost, and these runs are the steps.

    Args:
        host_steps: which host step launched each run of a module.
    """
    none = CoreSteps((), no_ints(), no_ints(), no_ints())
    if len(host_steps.group) != len(runs):
        return none
    group = host_steps.group[runs.place].tolist()
    known = [row for row, of in enumerate(group) if of in host_steps.step_numbers]
    if not known:
        return none
    number = np.array([host_steps.step_numbers[group[row]] for row in known], np.int64)
    rows, number = _with_lost_numbers(runs, np.array(known, np.int64), number)
    first = np.flatnonzero(opens(number))
    return _periods(tuple(map(str, number[first].tolist())), np.maximum.reduceat(runs.end_ps[rows], first))


def _with_lost_numbers(runs: ModuleRuns, rows: Int64s, number: Int64s) -> tuple[Int64s, Int64s]:
    """Some runs and the numbers of their steps, with those of steps whose annotations were lost."""
    more = [(rows, number)]
    for at in np.flatnonzero(np.diff(number) > 1).tolist():
        first, last = int(rows[at]), int(rows[at + 1])
        between = first + 1 + np.flatnonzero(runs.module[first + 1 : last] == runs.module[first])
        if len(between) == int(number[at + 1]) - int(number[at]) - 1:
            more.append((between, number[at] + 1 + np.arange(len(between))))
    rows, number = (np.concatenate(of) for of in zip(*more, strict=True))
    order = np.argsort(rows, kind="stable")
    return rows[order], number[order]


def _periods(names: Sequence[str], end: Int64s) -> CoreSteps:
    """The times from each end to the next, by the name of what ends then; the first one has no start."""
    kept = np.flatnonzero(np.append(True, np.diff(np.maximum.accumulate(end)) > 0)) if len(end) else no_ints()
    end = end[kept]
    duration = np.diff(end)
    return CoreSteps(tuple(names[row] for row in kept[1:].tolist()), end[: len(duration)], end[1:], duration)


def inferred_steps(runs: ModuleRuns, module: str) -> CoreSteps:
    """Periods of a module on one core: from the end of each run to the end of the next. The first run has no period.

    Cores that work together start a run at different times, where one of them is late, and end it at the same time, for
    they meet in it. So ends make the periods of all cores alike, and a pause of one host is in one period of all.
    """
    return ends_of(runs.end_ps[runs.module == runs.names.index(module)] if module in runs.names else no_ints())


def ends_of(end_ps: Int64s) -> CoreSteps:
    """The steps that end at some times, but for the first, whose start is unknown; they count from 0."""
    return _periods(tuple(str(number - 1) for number in range(len(end_ps))), end_ps)
