"""What one run adds to a comparison: the time of each op in the run's steps, by batch of steps.

Sums over the whole capture would be wrong: an op that runs before the first step, or in a step that the capture cut
into, has time there but no step. So it decodes the op events of every core once more, and adds up those that start in a
typical step by op and batch. The rest of a step is idle time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from zlib import crc32

import numpy as np

from tpuprof.parsers.base.intervals import Floats, Int64s, place
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.hlo.programs import module_name
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.parsers.hosts.plan import on_threads
from tpuprof.parsers.hosts.progress import Meter
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.core.ops import OPS_LINE, core_ops
from tpuprof.parsers.ops.device import device_ordinal, is_tensor_core
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.session.diff.noise import MOST_BATCHES, Bounds, MeanEstimate, estimate, within
from tpuprof.parsers.session.files import opened
from tpuprof.parsers.steps.aligned import AlignedSteps

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
    """

    ops: tuple[Op, ...]
    time_ps: Floats
    count: Floats
    whole_ps: Floats
    units: Floats
    runs: Mapping[str, tuple[Floats, Floats]]
    every: BatchedTimes | None = None

    def time(self, rows: Sequence[int]) -> MeanEstimate:
        """Self time of some ops together."""
        return estimate(self.time_ps[list(rows)].sum(axis=0), self.units)

    @property
    def means(self) -> Floats:
        """float64[ops]: self time of each op per unit."""
        means: Floats = self.time_ps.sum(axis=1) / self.units.sum()
        return means

    @property
    def whole(self) -> MeanEstimate:
        """The whole time."""
        return estimate(self.whole_ps, self.units)

    @property
    def idle(self) -> MeanEstimate:
        """The whole time without that of the ops; slightly below 0 where an op outlasts its step."""
        return estimate(self.whole_ps - self.time_ps.sum(axis=0), self.units)


def of_program(run: BatchedTimes, program: str) -> BatchedTimes | None:
    """The ops of one program by its own runs, in the steps that it ran in; None where it ran in none."""
    run = run.every or run
    runs, run_ps = run.runs.get(program, (np.zeros(0), np.zeros(0)))
    ran = np.flatnonzero(runs > 0)
    if not len(ran):
        return None
    rows = [row for row, op in enumerate(run.ops) if op.program == program]
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
    """The times of a whole capture, divided by the number of units."""
    ops, of_row = listed_ops(page)
    share = float(max(1, units * page.core_count))
    time = sum_by_key(of_row, page.table.self_ps, len(ops))[:, None].astype(np.float64)
    count = sum_by_key(of_row, page.table.occurrences, len(ops)) / share
    runs: dict[str, tuple[Floats, Floats]] = {}
    for summary in summaries:
        _add_runs(runs, summary, lambda middle: np.zeros(len(middle), np.int64), 1)
    return BatchedTimes(ops, time, count, np.array([float(page.total_ps)]), np.array([share]), runs)


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
    page: OpsPage,
    summaries: Sequence[HostSummary],
    files: Mapping[str, HostFile],
    bounds: Bounds,
    meter: Meter,
    workers: int = 1,
    cache: HostCache | None = None,
) -> BatchedTimes:
    """The times of a run by typical step.

    Args:
        summaries: the run's hosts; those without steps take no part.
        files: the hosts' files, by the host's name.
        bounds: how long a typical step takes on its slowest core.
        meter: receives the progress on the files of the hosts that take part, in their order.
        cache: where the times of a host are kept from one comparison to the next.

    Raises:
        ProfileError: a file can't be read any more.
        Cancelled: as `meter` says.
    """
    ops, of_row = listed_ops(page)
    known = {key: int(of_row[row]) for row, key in enumerate(_keys(page.table))}
    hosts = [(summary.host, summary.steps) for summary in summaries if summary.steps is not None]
    chosen = [np.flatnonzero(within(grid.longest_ps.astype(np.float64), bounds)) for _, grid in hosts]
    number = max(1, min((min(len(steps), MOST_BATCHES) for steps in chosen if len(steps)), default=1))
    wide = 2 * number  # batches of typical steps, then those of the odd ones
    time, count = np.zeros((len(ops), wide)), np.zeros((len(ops), wide))
    whole, units = np.zeros(wide), np.zeros(wide)
    runs: dict[str, tuple[Floats, Floats]] = {}
    of_host = {summary.host: summary for summary in summaries}
    for number_of_host, ((name, grid), typical) in enumerate(zip(hosts, chosen, strict=True)):
        parts = _Parts(_batches(len(grid), typical, number), wide)
        units += len(grid.core_names) * np.bincount(parts.batch, minlength=wide)
        whole += np.bincount(parts.batch, grid.duration_ps.sum(axis=0).astype(np.float64), minlength=wide)
        _add_runs(runs, of_host[name], partial(_batch_of, grid, parts.batch), wide)
        meter.begin(number_of_host)
        for keys, core_time, core_count in _kept_cores(files[name], grid, parts, meter, workers, cache):
            rows = [known[key] for key in keys]
            np.add.at(time, rows, core_time)
            np.add.at(count, rows, core_count)
    if cache is not None:
        cache.trim()

    def measured(batches: slice, every: BatchedTimes | None) -> BatchedTimes:
        each = count[:, batches].sum(axis=1) / max(1.0, float(units[batches].sum()))
        by_program = {program: (number[batches], taken[batches]) for program, (number, taken) in runs.items()}
        least = np.maximum(units[batches], 1.0)
        return BatchedTimes(ops, time[:, batches], each, whole[batches], least, by_program, every)

    return measured(slice(number), measured(slice(wide), None))


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
    found: Int64s = of_step[place(moments, grid.start_ps, end)]
    return found


def _keys(table: OpTable) -> tuple[OpKey, ...]:
    columns = zip(table.has_ids.tolist(), table.program_id.tolist(), table.symbol_id.tolist(), table.name, strict=True)
    return tuple(
        (program, symbol, "") if has_ids else (program, -1, name) for has_ids, program, symbol, name in columns
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """The batch of each step of a host's grid, int64, and how many batches there are."""

    batch: Int64s
    number: int


_CoreTimes = tuple[tuple[OpKey, ...], Int64s, Int64s]


def _kept_cores(
    file: HostFile, grid: AlignedSteps, parts: _Parts, meter: Meter, workers: int, cache: HostCache | None
) -> Sequence[_CoreTimes]:
    """`_cores`, from the cache where it has them for these steps and batches."""
    if cache is None:
        return _cores(file, grid, parts, meter, workers)
    slot = cache.slot((file,), f"times of steps {crc32(parts.batch.tobytes()):08x} in {parts.number} batches")
    known = cache.get(slot)
    if isinstance(known, tuple):
        return known
    times = tuple(_cores(file, grid, parts, meter, workers))
    cache.put(slot, times)
    return times


def _cores(file: HostFile, grid: AlignedSteps, parts: _Parts, meter: Meter, workers: int) -> list[_CoreTimes]:
    """For each core of a host's steps its ops, and their time and occurrences by batch, int64[ops, batches]."""
    ordinals = {int(name.rpartition(":")[2]): index for index, name in enumerate(grid.core_names)}
    with closing(opened(file)) as trace:
        every = [plane for plane in trace.planes if is_tensor_core(plane)]
        meter.opened(sum(line.size for plane in every for line in plane.lines if line.name == OPS_LINE))

        def work(index: int) -> _CoreTimes:
            core = ordinals[device_ordinal(every[index])]
            return _core_times(every[index], grid.core_start_ps[core], grid.core_end_ps[core], parts, meter.chunk)

        chosen = [index for index, plane in enumerate(every) if device_ordinal(plane) in ordinals]
        return on_threads(work, chosen, workers)


def _core_times(plane: Plane, begin: Int64s, end: Int64s, parts: _Parts, on_chunk: ChunkDone) -> _CoreTimes:
    ops = core_ops(plane, on_chunk)
    step = place(ops.event_start_ps, begin, end)
    inside = np.flatnonzero(step >= 0)
    cell = ops.events.key[inside].astype(np.int64) * parts.number + parts.batch[step[inside]]
    rows, number = len(ops.table), parts.number
    time = sum_by_key(cell, ops.events.self_ps[inside], rows * number).reshape(rows, number)
    return _keys(ops.table), time, np.bincount(cell, minlength=rows * number).astype(np.int64).reshape(rows, number)
