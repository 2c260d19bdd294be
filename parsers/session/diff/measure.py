"""What one run adds to a comparison: the time of each op in the run's steps, by batch of steps.

Sums over the whole capture would be wrong: an op that runs before the first step, or in a step that the capture cut
into, has time there but no step. So it keeps the time of each op in each step out of the pass over the ops that gives
the host's summary, and adds up that of the typical steps by op and batch. The rest of a step is idle time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Floats, Int64s, distinct, interval_index, positions
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass, fields
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.hlo.programs import module_name
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.formats.xspace.core.pass_sums import StepCells
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.hosts.core_summary import OfCore
from tpuprof.parsers.hosts.op_summary import of_file
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.hosts.summary import SUMMARY_OF_HOST, HostSummary, needed_bytes, summarise
from tpuprof.parsers.ops.core.sums import CoreSums
from tpuprof.parsers.ops.device import device_ordinal, tensor_cores
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.session.diff.noise import MOST_BATCHES, Bounds, MeanEstimate, estimate, within
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.boundaries.markers import CoreSteps

OpKey = tuple[int, int, str]
"""Program id and symbol id of an op, or program id and name of one without ids: what `merge_tables` goes by."""


@dataclass(frozen=True, slots=True)
class Op:
    """An op of one run; it stands for all ops of this name in programs of this name.

    Attributes:
        program: the program's name, without its id.
        row: row in the run's table of the one with the most time.
    """

    program: str
    name: str
    category: str | None
    op_class: OpClass
    framework_op: str
    row: int


@dataclass(frozen=True, slots=True)
class BatchedTimes:
    """Times of one run, added up by batch of its units.

    Attributes:
        ops: the distinct ops.
        time_ps: float64[ops, batches], self time.
        count: float64[ops], occurrences per unit.
        whole_ps: float64[batches], the units' whole time, idle time included.
        units: float64[batches], steps times cores, more than 0. Units that are no steps are one batch, without a
            spread.
        runs: how often each program ran, and how long: float64[batches] each, times cores; without ids in their names.
        every: the same over all steps, odd ones too, which have batches of their own; None where this is all.
        of_launches: whether a batch is the mean of a launch.
    """

    ops: tuple[Op, ...]
    time_ps: Floats
    count: Floats
    whole_ps: Floats
    units: Floats
    runs: Mapping[str, tuple[Floats, Floats]]
    every: BatchedTimes | None = None
    of_launches: bool = False

    def time(self, rows: Sequence[int]) -> MeanEstimate:
        return estimate(self.time_ps[list(rows)].sum(axis=0), self.units, self.of_launches)

    @property
    def means(self) -> Floats:
        """float64[ops]: self time of each op per unit."""
        means: Floats = self.time_ps.sum(axis=1) / self.units.sum()
        return means

    @property
    def whole(self) -> MeanEstimate:
        return estimate(self.whole_ps, self.units, self.of_launches)

    @property
    def idle(self) -> MeanEstimate:
        """The whole time without that of the ops; slightly below 0 where an op outlasts its step."""
        return estimate(self.whole_ps - self.time_ps.sum(axis=0), self.units, self.of_launches)


def rows_of(run: BatchedTimes, program: str | None) -> list[int]:
    """The numbers of a program's ops."""
    return [row for row, op in enumerate(run.ops) if op.program == program]


def of_program(run: BatchedTimes, program: str | None) -> BatchedTimes | None:
    """The ops of one program by its own runs, in the steps that it ran in; None where it ran in none."""
    run = run.every or run
    runs, run_ps = run.runs.get(program or "", (np.zeros(0), np.zeros(0)))
    ran = np.flatnonzero(runs > 0)
    if not len(ran):
        return None
    rows = rows_of(run, program)
    count = run.count[rows] * (run.units.sum() / runs.sum())
    return BatchedTimes(
        tuple(run.ops[row] for row in rows), run.time_ps[rows][:, ran], count, run_ps[ran], runs[ran], {}
    )


def listed_ops(page: OpsPage) -> tuple[tuple[Op, ...], Int64s]:
    """The distinct ops of a run, the one with the most time first, and which of them each row of its table is."""
    number: dict[tuple[str, str], int] = {}
    ops: list[Op] = []
    of_row = np.empty(len(page), np.int64)
    for row, (program, name) in enumerate(zip(page.program, page.table.name, strict=True)):
        key = (module_name(program), name)
        if key not in number:
            number[key] = len(ops)
            framework = page.table.framework_op[row].rstrip(":")
            ops.append(Op(*key, page.table.category[row], page.op_class[row], framework, row))
        of_row[row] = number[key]
    return tuple(ops), of_row


def measure_whole(page: OpsPage, summaries: Sequence[HostSummary], units: int) -> BatchedTimes:
    """The times of a whole capture, divided by the number of units and of devices.

    On a host's CPU an op runs on any of the threads, whose number says nothing.
    """
    ops, of_row = listed_ops(page)
    on_threads = any(summary.thread_count for summary in summaries)
    share = float(max(1, units * (sum(map(_devices, summaries)) if on_threads else page.core_count)))
    time = sum_by_key(of_row, page.table.self_ps, len(ops))[:, None].astype(np.float64)
    count = sum_by_key(of_row, page.table.occurrences, len(ops)) / share
    runs: dict[str, tuple[Floats, Floats]] = {}
    for summary in summaries:
        _add_runs(runs, summary, lambda middle: np.zeros(len(middle), np.int64), 1)
    return BatchedTimes(ops, time, count, np.array([float(page.total_ps)]), np.array([share]), runs)


def _devices(summary: HostSummary) -> int:
    """How many devices of a program a host's CPU is."""
    steps = summary.on_cpu
    return 1 if steps is None or steps.of_devices is None else len(steps.of_devices.numbers)


def _add_runs(
    runs: dict[str, tuple[Floats, Floats]], summary: HostSummary, batch_of: Callable[[Int64s], Int64s], batches: int
) -> None:
    """Adds the runs of a host's programs by batch.

    Args:
        batch_of: the batch that each run is in, given the middle of its time; -1 for none.
    """
    for module in summary.requests.modules:
        number, time = runs.setdefault(module_name(module.name), (np.zeros(batches), np.zeros(batches)))
        cores = module.cores if module.is_joined else 1
        batch = batch_of(module.start_ps + module.duration_ps // 2)
        np.add.at(number, batch[batch >= 0], cores)
        np.add.at(time, batch[batch >= 0], module.duration_ps[batch >= 0].astype(np.float64) * cores)


def measure_steps(
    page: OpsPage, summaries: Sequence[StepsSummary], bounds: Bounds, has_time_between: bool = False
) -> BatchedTimes:
    """The times of a run by typical step.

    Args:
        summaries: the run's hosts; those without steps take no part.
        bounds: how long a typical step takes on its slowest core.
        has_time_between: whether a step has the time up to the next one.
    """
    ops, of_row = listed_ops(page)
    known = {key: int(of_row[row]) for row, key in enumerate(_keys(page.table))}
    hosts = [(summary, summary.steps) for summary in summaries if summary.steps is not None]
    lengths = [grid.duration_ps + _time_between(grid, has_time_between) for _, grid in hosts]
    chosen = [np.flatnonzero(within(of.max(axis=0).astype(np.float64), bounds)) for of in lengths]
    number = max(1, min((min(len(steps), MOST_BATCHES) for steps in chosen if len(steps)), default=1))
    wide = 2 * number  # batches of typical steps, then those of the odd ones
    time, count = np.zeros((len(ops), wide)), np.zeros((len(ops), wide))
    whole, units = np.zeros(wide), np.zeros(wide)
    runs: dict[str, tuple[Floats, Floats]] = {}
    for (summary, grid), length, typical in zip(hosts, lengths, chosen, strict=True):
        batch = _batches(len(grid), typical, number)
        units += len(grid.core_names) * np.bincount(batch, minlength=wide)
        whole += np.bincount(batch, length.sum(axis=0).astype(np.float64), minlength=wide)
        _add_runs(runs, summary, partial(_batch_of, grid, batch), wide)
        of_ops = np.array([known[key] for key in _keys(summary.table)], np.int32) * wide
        of_steps = batch.astype(np.int32)
        for core in summary.op_steps:
            key = of_ops[core.row] + of_steps[core.step]
            time += sum_by_key(key, core.self_ps.astype(np.int64), time.size).reshape(time.shape)
            count += sum_by_key(key, core.count.astype(np.int64), count.size).reshape(count.shape)

    def measured(batches: slice, every: BatchedTimes | None) -> BatchedTimes:
        by_program = {program: (number[batches], taken[batches]) for program, (number, taken) in runs.items()}
        least = np.maximum(units[batches], 1.0)
        each = count[:, batches].sum(axis=1) / least.sum()
        return BatchedTimes(ops, time[:, batches], each, whole[batches], least, by_program, every)

    return measured(slice(number), measured(slice(wide), None))


def _time_between(grid: AlignedSteps, is_asked: bool) -> Int64s:
    """int64[cores, steps]: the time from each step to the next; as long as no step is for the last. Else 0."""
    out: Int64s = grid.between_ps.sum(axis=2) * is_asked
    out[:, -1:] = -grid.duration_ps[:, -1:] * is_asked
    return out


def _batches(count: int, typical: Int64s, number: int) -> Int64s:
    """int64[steps]: the batch of each step; odd steps have batches of their own, behind those of the typical ones."""
    batch, odd = np.empty(count, np.int64), np.ones(count, np.bool_)
    odd[typical] = False
    for steps, first in ((typical, 0), (np.flatnonzero(odd), number)):
        batch[steps] = first + np.arange(len(steps)) * number // max(1, len(steps))
    return batch


def _batch_of(grid: AlignedSteps, batch: Int64s, moments: Int64s) -> Int64s:
    """int64[n]: the batch of the step that each moment is in; -1 for one in no step."""
    of_step = np.append(batch, -1)  # the last one for moments in no step
    end = np.minimum(grid.end_ps, np.append(grid.start_ps[1:], grid.end_ps[-1:]))
    return of_step[interval_index(moments, grid.start_ps, end)]


def _keys(table: OpTable) -> tuple[OpKey, ...]:
    columns = zip(table.has_ids.tolist(), table.program_id.tolist(), table.symbol_id.tolist(), table.name, strict=True)
    return tuple(
        (program, symbol, "") if has_ids else (program, -1, name) for has_ids, program, symbol, name in columns
    )


# --- what a host adds


@dataclass(frozen=True, slots=True)
class StepsSummary(HostSummary):
    """What all pages of a profile need of one host, and the ops by step of the cores that have the host's steps."""

    op_steps: tuple[StepCells, ...]


def _reduce(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> StepsSummary:
    of_planes = dict[int, _OfCore]()

    def take(plane: Plane, steps: CoreSteps, sums: CoreSums) -> None:
        of_planes[plane.index] = _keys(sums.table), steps.start_ps, sums.cells

    summary = summarise(trace, file.host, on_chunk, threads, OfCore(None, take), file.part)
    rows = {key: row for row, key in enumerate(_keys(summary.table))}
    planes = tensor_cores(trace)[::-1]  # in a damaged file two may have one number: the first counts
    of_cores = {core_label(file.host, device_ordinal(plane)): of_planes[plane.index] for plane in planes}
    op_steps = _in_steps(of_cores, summary.steps, rows)
    known = {field.name: getattr(summary, field.name) for field in fields(summary)}
    return of_file(StepsSummary(**known, op_steps=op_steps), file)


STEPS_OF_HOST = Reduction("steps", StepsSummary, needed_bytes, _reduce, tables=("table",), includes=SUMMARY_OF_HOST)
"""What all pages need of a host, and its ops by step."""


_OfCore = tuple[tuple[OpKey, ...], Int64s, StepCells]
"""Of one core its ops, when its steps begin, and its ops by these steps."""


def _in_steps(
    of_cores: Mapping[str, _OfCore], grid: AlignedSteps | None, rows: Mapping[OpKey, int]
) -> tuple[StepCells, ...]:
    """The ops of the cores that have the host's steps, added up by these steps; nothing without such steps.

    Args:
        of_cores: by their names.
        rows: of the host's table.
    """
    if grid is None:
        return ()
    parts = []
    for name, start in dict(zip(grid.core_names, grid.core_start_ps, strict=True)).items():
        keys, own_start, cells = of_cores[name]
        ops = cells.each()
        row = np.array([rows.get(key, -1) for key in keys], np.int64)[ops.row]
        step = positions(own_start, start)[ops.step]
        kept = (row >= 0) & (step >= 0)  # others are in no step, or in no whole run
        parts.append(((step * len(rows) + row)[kept], ops.self_ps[kept].astype(np.int64), ops.count[kept]))
    place, self_ps, count = (np.concatenate(column) for column in zip(*parts, strict=True))
    known = distinct(place)
    at = np.searchsorted(known, place)
    step, row = np.divmod(known, max(len(rows), 1))
    sums = [sum_by_key(at, of, len(known)) for of in (self_ps, count)]
    return (StepCells(*map(_narrow, (step, row, *sums))),)


def _narrow(values: NDArray[np.signedinteger]) -> NDArray[np.signedinteger]:
    """The same numbers, none below -1, in the smallest type."""
    most = int(values.max(initial=0))
    return values.astype(next(kind for kind in (np.int16, np.int32, np.int64) if most <= np.iinfo(kind).max))
