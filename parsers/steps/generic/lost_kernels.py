"""Kernels of GPUs that the profiler lost: the GPU was busy then, and nothing shows it.

Launches of the host without a kernel show them, and steps that lack kernels of a program whose others they have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base import intervals
from tpuprof.parsers.base.intervals import Columns, Int64s, no_ints
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.formats.xspace.core.pass_sums import StepCells
from tpuprof.parsers.formats.xspace.parts_of_lines import PartOfLine
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.device import is_gpu
from tpuprof.parsers.ops.host_events.events import Ends, HostEvents, HostThread, read_threads
from tpuprof.parsers.ops.streams.devices import StreamDevice
from tpuprof.parsers.ops.table import EMPTY_TABLE
from tpuprof.parsers.steps.boundaries.markers import ends_of
from tpuprof.parsers.steps.boundaries.recorded import LEAST_LOST, Pieces, recorded_runs
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns
from tpuprof.parsers.steps.generic.op_events import OpEvents
from tpuprof.parsers.steps.generic.programs import programs_on

_LAUNCH = "correlation_id"


@dataclass(frozen=True, slots=True)
class LostLaunches(Sized):
    """The launches of a host whose kernels are not in the profile.

    Attributes:
        rows: int64[m] of each thread, its events that are such launches.
        start_ps: int64[n], when they began, on any thread.
        launches: how many launches there are, with these.
    """

    sized_by = "start_ps"
    rows: tuple[Int64s, ...]
    start_ps: Int64s
    launches: int

    @property
    def are_many(self) -> bool:
        """Whether so many are lost that it is unknown how busy the GPUs were."""
        return len(self) > 0 and len(self) >= LEAST_LOST * self.launches


def launches_for(host: HostEvents | None, gpus: Sequence[StreamDevice]) -> Int64s:
    """int64[threads]: how many launches of each thread of a host have a kernel on some GPUs."""
    threads = () if host is None else host.threads
    launches, kernels = _numbered(threads), _numbered([stream for gpu in gpus for stream in gpu.streams])
    return np.bincount(launches.line[intervals.is_among(launches.number, kernels.number)], minlength=len(threads))


@dataclass(frozen=True, slots=True)
class _Numbered(Columns):
    """Events with the number of a launch: int64[n] each. `line` and `row` are their places."""

    line: Int64s
    row: Int64s
    number: Int64s
    name: Int64s
    start: Int64s
    end: Int64s


def _numbered(lines: Sequence[HostThread]) -> _Numbered:
    parts = []
    for at, line in enumerate(lines):
        stat, row = line.stat(_LAUNCH), line.stat(_LAUNCH).rows
        columns = stat.values.integers(), line.metadata_id[row].astype(np.int64), line.start_ps[row], line.end_ps[row]
        parts.append(_Numbered(np.full(len(row), at), row, *columns))
    return _Numbered.joined(parts)


def lost_launches(trace: Trace, host: HostEvents | None, gpus: Sequence[StreamDevice]) -> LostLaunches:
    """Finds the launches whose number no event of a GPU has.

    Events of other calls have numbers too, such as those that wait for a GPU, and other threads may launch for other
    GPUs. So a launch is an event of a name, on a thread, of which some have a kernel. What is launched after the last
    launch with a kernel may run after the capture, unless events go on for longer than any kernel ended after its
    launch; after a part of the capture it does run.

    Args:
        trace: GPUs of it that are left out have the kernels of some launches.
        host: None for a profile without the host's events.
        gpus: decoded with `correlation_id`.
    """
    threads = () if host is None else host.threads
    streams = [stream for gpu in gpus for stream in gpu.streams]
    of, kernels = _numbered(threads), _numbered(streams)
    numbers, which = np.unique(kernels.number, return_inverse=True)
    ends = np.zeros(len(numbers), np.int64)
    np.maximum.at(ends, which, kernels.end)
    place = intervals.positions(of.number, numbers)
    has = place >= 0
    last = int(of.start[has].max(initial=0))
    if not any(isinstance(line, PartOfLine) for plane in trace.planes for line in plane.lines):
        until = max((int(line.end_ps.max()) for line in (*threads, *streams) if len(line)), default=0)
        last = max(last, until - int((ends[place[has]] - of.start[has]).max(initial=0)))
    others = [each for plane in filter(is_gpu, trace.left_out) for each in read_threads(plane, (_LAUNCH,))]
    is_launch = intervals.is_among(of.name, intervals.distinct(of.name[has])) & intervals.is_among(
        of.line, intervals.distinct(of.line[has])
    )
    is_launch &= (of.start <= last) & (has | ~intervals.is_among(of.number, _numbered(others).number))
    lost = is_launch & ~has
    rows = tuple(of.row[lost & (of.line == at)] for at in range(len(threads)))
    return LostLaunches(rows, of.start[lost], int(is_launch.sum()))


def lost_in_steps(gpu: StreamDevice, ops: OpEvents, start_ps: Int64s, end_ps: Int64s) -> Int64s:
    """int64[steps]: the time of kernels that a step lacks and all quiet steps have of a program (`recorded_runs`).

    A step lasts here until the next one starts, because the kernel that is lost may be its last.

    Args:
        ops: the events on the GPU.
        start_ps, end_ps: int64[steps], in order of time.
    """
    until = np.append(start_ps[1:], end_ps[-1:])
    lost_ps = np.zeros(len(start_ps), np.int64)
    programs, of_op = programs_on(gpu)
    step = intervals.interval_index(ops.start, start_ps, until)
    for program in range(len(programs)):
        mine = np.flatnonzero((of_op[ops.op] == program) & (step >= 0))
        steps, run = np.unique(step[mine], return_inverse=True)
        none = no_ints()
        columns = np.zeros(len(steps), np.int64), start_ps[steps], until[steps], np.full(len(steps), -1)
        runs = ModuleRuns(0, ("",), *columns, Ends.joined([]), steps)
        pieces = Pieces.of(ends_of(none), runs)
        at = np.searchsorted(pieces.times, runs.start_ps)[run]
        took = (ops.end - ops.start)[mine]
        cells = StepCells(at, intervals.numbered(ops.op[mine]), took, np.ones_like(took))
        lost_ps[steps] += recorded_runs(runs, pieces, cells, ends_of(none), None, EMPTY_TABLE).lost_ps
    return lost_ps
