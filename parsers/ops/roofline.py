"""How fast work is done, against what the device can do at most: the roofline model, for ops, steps and programs alike.

Formulas are XProf's (`op_metrics_to_record.h`, `op_stats_to_roofline_model.cc`), in bytes (not GiB) and fractions. Two
things differ. FLOPS utilization is at the device's nominal clock wherever the profile has a time scale (XProf does so
on its op profile page, and on its roofline page on demand). And every peak in the profile bounds an op; XProf's
efficiency leaves out VMEM on devices whose VMEM is not merged with CMEM, although its `bound by` may name it there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.base.words import share
from tpuprof.parsers.ops.device import CUSTOM_CALL, HOLDS_OPS, Peaks
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.table import OpTable

WORK = ("flops", "model_flops", "bytes_accessed", *TRAFFIC)
"""Columns of an array of work: FLOPs and bytes; NaN where unknown."""

WORK_COUNT = len(WORK)

INFEED_AND_OUTFEED = frozenset({"infeed", "outfeed"})
"""HLO categories that the roofline may leave out."""

BOUNDS = ("compute", "HBM", "CMEM read", "CMEM write", "VMEM read", "VMEM write")
"""What can bound an op; the index in `Rates.bound_by`."""

UNKNOWN_BOUND = -1

AT_THE_PEAK = 1.05
"""Utilization up to which an op may be at its peak; the work of one with more can't have been done in its time."""

STARTED = "the event lasts until the transfer is in flight; its bytes are those of the whole transfer"
AWAITED = "the event is the wait for the rest of a transfer; its bytes are those of the whole transfer"
ESTIMATED = "a kernel's work is its own cost estimate, not a count; work that it skips is included"
ALL_IN_HBM = "the profile does not break its bytes down by memory, so that those of on-chip memories count as HBM's"
NEARLY = "at its peak: peaks are nominal, and times are rounded"
UNEXPLAINED = "more work is counted for it than the device can do in its time; the profile does not show why"
"""Why the utilization of an op can be above 1. The first three are what real profiles have: of a v6e and a v5p the
starts of copies (up to 1.9 million times HBM's peak), the ends of collectives (8 times), attention kernels (twice)."""

_STARTS = pattern(r"-start(\.\d+|\.clone|\.remat\d*)*\Z")
_ENDS = pattern(r"-done(\.\d+|\.clone|\.remat\d*)*\Z")

_MUCH_TIME = 0.01
"""An op whose work is above a peak is told of from this share of the ops' time on."""

_BOUND_NAMES = {UNKNOWN_BOUND: "unknown", **dict(enumerate(BOUNDS))}
_MEMORY_BOUNDS = ("hbm", "cmem_read", "cmem_write", "vmem_read", "vmem_write")


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates and utilizations, one row an op (or step, or program); NaN where they cannot be computed.

    Attributes:
        flops_per_second, model_flops_per_second: float64[n]; FLOPs over the total time of all occurrences.
        bytes_per_second: float64[n]; all memories together, by the compiler's count.
        bandwidth: float64[n, len(TRAFFIC)]; bytes/s by memory.
        flops_utilization: float64[n]; fraction of the peak at the nominal clock, not capped: above 1 where work and
            time do not belong together, as for asynchronous ops.
        bandwidth_utilization: float64[n, len(TRAFFIC)]; fraction of each memory's peak, not capped.
        operational_intensity, hbm_intensity: float64[n]; FLOPs per byte of all memory traffic, and of HBM traffic.
        bound_by: int64[n]; index into BOUNDS of the resource used most; UNKNOWN_BOUND where none is known to be used.
        efficiency: float64[n]; utilization of that resource: how near the op is to the roof.
    """

    flops_per_second: Floats
    model_flops_per_second: Floats
    bytes_per_second: Floats
    bandwidth: Floats
    flops_utilization: Floats
    bandwidth_utilization: Floats
    operational_intensity: Floats
    hbm_intensity: Floats
    bound_by: Int64s
    efficiency: Floats

    def bound_name(self, row: int) -> str:
        """What bounds a row; ``unknown`` where the profile does not show it."""
        return _BOUND_NAMES[int(self.bound_by[row])]

    def peak_name(self, row: int) -> str:
        """The peak that bounds a row, as sentences name it: ``peak FLOP/s``, ``HBM's peak``; its roof where unknown."""
        name = self.bound_name(row)
        return {"compute": "peak FLOP/s", "unknown": "its roof"}.get(name, f"{name}'s peak")

    @property
    def bounding_intensity(self) -> Floats:
        """float64[n]: FLOPs per byte of the memory that bounds an op, of all memories for one that compute bounds.

        So a point stands below the roof that it is measured against (XProf's bottleneck operational intensity).
        """
        found = self.operational_intensity.copy()
        for index, name in enumerate(_MEMORY_BOUNDS, 1):
            column = TRAFFIC.index(name)
            rows = np.flatnonzero((self.bound_by == index) & (self.bandwidth[:, column] > 0))
            found[rows] = self.flops_per_second[rows] / self.bandwidth[rows, column]
        return found


def work_of(table: OpTable) -> Floats:
    """float64[n, WORK_COUNT]: each op's work over all its occurrences, NaN for ops that only hold others.

    A `while` or `call` does what the ops inside it do; counting both would count that work twice.
    """
    work = _counted(table)
    work[holds_ops(table)] = np.nan
    return work


def _counted(table: OpTable) -> Floats:
    """The counts of each op. HBM's bytes are per op too, so that the work of several ops is the sum of theirs."""
    columns = (table.flops, table.model_flops, table.bytes_accessed)
    work = np.concatenate([np.stack(columns, axis=1), table.traffic], axis=1)
    work[:, WORK.index("hbm")] = table.hbm_bytes
    return work


def summed_rows(values: Floats, group: Int64s, count: int) -> Floats:
    """float64[count, k]: sums of each group's rows [n, k], column by column; NaN where no row has a value."""
    out = np.full((count, values.shape[1]), np.nan)
    for column in range(values.shape[1]):
        known = np.isfinite(values[:, column])
        if known.any():
            sums = np.bincount(group[known], values[known, column], minlength=count)
            out[:, column] = np.where(np.bincount(group[known], minlength=count) > 0, sums, np.nan)
    return out


def uncounted(table: OpTable) -> Bools:
    """bool[n]: which ops are kernels (custom calls) whose work nobody counted: neither FLOPs nor bytes."""
    calls = np.array([category == CUSTOM_CALL for category in table.category], np.bool_)
    return calls & np.isnan(table.flops) & np.isnan(table.hbm_bytes)


def feeds(table: OpTable) -> Bools:
    """bool[n]: which ops bring input from the host or send output to it."""
    return np.array([category in INFEED_AND_OUTFEED for category in table.category], np.bool_)


def holds_ops(table: OpTable) -> Bools:
    """bool[n]: which ops contain others, by their category."""
    return np.array([category in HOLDS_OPS for category in table.category], np.bool_)


def rates(work: Floats, total_ps: Floats, normalized_ps: Floats, peaks: Peaks) -> Rates:
    """Rates of some work done in some time.

    Args:
        work: float64[n, WORK_COUNT].
        total_ps, normalized_ps: float64[n]; the time, and the same at the nominal clock.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        seconds = np.where(total_ps > 0, total_ps / 1e12, np.nan)
        flops, model_flops, everything = work[:, 0], work[:, 1], work[:, 2]
        traffic = work[:, 3:]
        bandwidth = _finite(traffic / seconds[:, None])
        scale = np.where(normalized_ps > 0, total_ps / normalized_ps, 1.0)
        flops_utilization = _finite(flops / seconds * scale / _or_nan(peaks.flops_per_second))
        peak = np.array([_or_nan(getattr(peaks, name)) for name in TRAFFIC])
        bandwidth_utilization = _finite(bandwidth / peak)
        chosen = [flops_utilization, *(bandwidth_utilization[:, TRAFFIC.index(name)] for name in _MEMORY_BOUNDS)]
        used = np.nan_to_num(np.stack(chosen, axis=1))
        most = used.max(axis=1, initial=0)
        # of resources used alike the first: rounding must not choose between them
        first = (used >= most[:, None] * (1 - 1e-12)).argmax(axis=1)
        bound_by = np.where(most > 0, first, UNKNOWN_BOUND)
        intensity = _finite(flops / np.where(everything > 0, everything, np.nan))
        hbm_intensity = _finite(flops / np.where(traffic[:, 0] > 0, traffic[:, 0], np.nan))
    return Rates(
        flops_per_second=_finite(flops / seconds),
        model_flops_per_second=_finite(model_flops / seconds),
        bytes_per_second=_finite(everything / seconds),
        bandwidth=bandwidth,
        flops_utilization=flops_utilization,
        bandwidth_utilization=bandwidth_utilization,
        operational_intensity=intensity,
        hbm_intensity=hbm_intensity,
        bound_by=bound_by.astype(np.int64),
        efficiency=np.where(bound_by >= 0, most, np.nan),
    )


def clock_scale(table: OpTable) -> Floats:
    """float64[n]: time at the nominal clock over time measured, of each op; 1 where it took no time."""
    return np.divide(table.normalized_ps, table.total_ps, out=np.ones(len(table)), where=table.total_ps > 0)


def time_scale(table: OpTable, busy_ps: int) -> float | None:
    """The same of all ops, by their self time, `busy_ps`; None where the profile does not say."""
    return float(table.self_ps @ clock_scale(table)) / busy_ps if table.has_time_scale and busy_ps else None


def added(work: Floats) -> Floats:
    """Sums over the first axis; NaN where no entry has the count."""
    known = np.isfinite(work).any(axis=0)
    return np.where(known, np.nansum(work, axis=0), np.nan)


def rates_of_cores(work: Floats, time_ps: Int64s, whole: tuple[int, int], scale: float | None, peaks: Peaks) -> Rates:
    """Rates of what cores did in some times with idle time in them, the program's or a step's.

    Args:
        work: float64[n, WORK_COUNT]: of ops that hold no others.
        whole: the cores' whole time and the idle time in it: only the rest runs at the clock that is scaled.
        scale: the time scale of all ops.
    """
    total, idle = whole
    of_nominal = 1.0 if not total else (idle + (total - idle) * (scale or 1.0)) / total
    time = time_ps.astype(np.float64)
    return rates(work, time, time * of_nominal, peaks)


def table_rates(table: OpTable, peaks: Peaks) -> Rates:
    """Rates of each op over its total time, which includes the ops inside it, as its counts do."""
    return rates(_counted(table), table.total_ps.astype(np.float64), table.normalized_ps, peaks)


def above_peak(table: OpTable, of: Rates, rows: NDArray[np.integer] | Sequence[int]) -> list[str | None]:
    """Why some rows have more work than a peak allows: a reason from `STARTED` on; None for a row that has not."""
    chosen = np.asarray(rows, np.int64)
    flops, memories = np.nan_to_num(of.flops_utilization[chosen]), np.nan_to_num(of.bandwidth_utilization[chosen])
    most = np.maximum(flops, memories.max(axis=1, initial=0))
    in_hbm = np.isnan(table.traffic[chosen]).all(axis=1) & (memories[:, 0] > 1) & (flops <= 1)
    found: list[str | None] = [None] * len(chosen)
    for place in np.flatnonzero(most > 1).tolist():
        found[place] = _why_above(table, int(chosen[place]), float(most[place]), bool(in_hbm[place]))
    return found


def above_peak_words(table: OpTable, of: Rates) -> tuple[str, ...]:
    """A sentence on the ops of much time that do more than a peak allows; none where these start or end a transfer."""
    used = np.nan_to_num(np.column_stack([of.flops_utilization, of.bandwidth_utilization])).max(axis=1, initial=0)
    rows = np.flatnonzero((used > AT_THE_PEAK) & (table.self_ps >= _MUCH_TIME * table.self_ps.sum()))
    reasons = zip(rows.tolist(), above_peak(table, of, rows), strict=True)
    told = {row: why for row, why in reasons if why not in (None, STARTED, AWAITED)}
    if not told:
        return ()
    worst = max(told, key=lambda row: float(used[row]))
    more = f", and {counted(len(told) - 1, 'other op')} above one" if len(told) > 1 else ""
    return (f"{printable(table.name[worst])} is at {share(float(used[worst]))} of a peak{more}: {told[worst]}",)


def is_start(table: OpTable, row: int) -> bool:
    """Whether an op only starts a transfer: it lasts until that is in flight, and says nothing of how fast it is."""
    return any(_STARTS.search(text) for text in (table.name[row], table.category[row] or ""))


def _why_above(table: OpTable, row: int, used: float, counts_in_hbm: bool) -> str:
    name, category = table.name[row], table.category[row] or ""
    if is_start(table, row):
        return STARTED
    if _ENDS.search(name) or _ENDS.search(category):
        return AWAITED
    if used <= AT_THE_PEAK:
        return NEARLY
    if category == CUSTOM_CALL:
        return ESTIMATED
    return ALL_IN_HBM if counts_in_hbm else UNEXPLAINED


def _finite(values: Floats) -> Floats:
    """Turns rates that no double holds into NaN; absurd peaks and counts make such rates."""
    return np.where(np.isfinite(values), values, np.nan)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value
