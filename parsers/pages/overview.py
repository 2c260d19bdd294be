"""Computes the overview page from what the hosts of a run add up to.

Formulas are XProf's (`op_stats_to_overview_page.cc`, `op_stats_to_input_pipeline_analysis.cc`) except in these places,
where XProf is wrong or silent:

- An op that starts where a step ends counts for the next step, not for both neighbours' earlier one (`parsers.steps`).
- The share of step time spent waiting for input is of the step time; XProf divides by step time plus all-reduce time.
- FLOPS and bandwidth utilization and roofline efficiency are computed; XProf's overview always prints 0.0 %.
- Without step markers, step time is the period of the busiest module, and says so; XProf has none.
- A figure that the profile cannot tell is `None` with a reason; XProf prints 0.0 % (host idle time: 100.0 %).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.device import DeviceInfo, merge_devices
from tpuprof.parsers.framework_op import UNKNOWN_TYPE, is_gradient, parse_framework_op
from tpuprof.parsers.optable import OpTable, merge_tables
from tpuprof.parsers.pages.overview_page import (
    OP_CLASSES,
    Bottleneck,
    Environment,
    OpClass,
    Overview,
    Performance,
    Share,
    Step,
    StepTime,
    TopOp,
)
from tpuprof.parsers.roofline import WORK, work_of
from tpuprof.parsers.steps import StepGrid, breakdowns
from tpuprof.parsers.summary import HostSummary

TOP_OPS = 10
HIGHLY_INPUT_BOUND = 20.0
MODERATELY_INPUT_BOUND = 5.0
HIGH_IDLE = 3.0
SLOW_STEP = 1.15
FEW_SLOW_STEPS = 0.2
MINIMUM_STEPS_TO_COMPARE = 4

NO_DEVICE = "no device plane in this profile"
NO_OPS = "no XLA Ops line in this profile"


def overview(summaries: Sequence[HostSummary]) -> Overview:
    """The overview over some hosts of a run.

    Args:
        summaries: at least one; each host's own, in the order of the hosts.
    """
    table = merge_tables([summary.table for summary in summaries])
    grid, step_notes = common_steps(summaries)
    unknown: dict[str, str] = {}
    steps = _steps(grid)
    environment = _environment(summaries, table, unknown)
    performance = _performance(summaries, table, grid, step_notes[0], unknown)
    if performance.step_time is None:
        unknown["performance.step_time_ms"] = why_no_ops(summaries) or step_notes[0]
    shares, top_ops = _shares(table, summaries), _top_ops(table)
    bottleneck = _bottleneck(steps, table, shares, top_ops, unknown)
    return Overview(
        hosts=tuple(summary.host for summary in summaries),
        environment=environment,
        performance=performance,
        shares=shares,
        steps=steps,
        top_ops=top_ops,
        bottleneck=_with_slow_steps(bottleneck, steps),
        op_count=len(table),
        op_event_count=sum(summary.op_events for summary in summaries),
        unknown=unknown,
        warnings=warnings_of(summaries, grid, step_notes),
    )


def why_no_ops(summaries: Sequence[HostSummary]) -> str:
    """Why there are no ops, or empty when there are."""
    if any(len(summary.table) for summary in summaries):
        return ""
    if any(summary.core_count for summary in summaries):
        return NO_OPS
    if any(summary.gpu_count for summary in summaries):
        return "GPU planes are not read yet"
    return NO_DEVICE


def _environment(summaries: Sequence[HostSummary], table: OpTable, unknown: dict[str, str]) -> Environment:
    device = device_of(summaries)
    if device is None or device.device_type is None:
        has_cores = any(summary.core_count or summary.gpu_count for summary in summaries)
        unknown["environment.device_type"] = "the device plane does not name its device" if has_cores else NO_DEVICE
    scopes = [parse_framework_op(op).name for op in set(table.framework_op) if op]
    is_training = any(map(is_gradient, scopes)) if scopes else None
    if is_training is None:
        unknown["environment.is_training"] = why_no_ops(summaries) or "no op carries a framework name"
    durations = [s.profile_duration_ps for s in summaries if s.profile_duration_ps is not None]
    if not durations:
        unknown["environment.profile_duration_ms"] = "the profile records neither its start and stop nor device events"
    return Environment(
        host_count=len(summaries),
        task_count=max(1, sum(summary.core_count + summary.gpu_count > 0 for summary in summaries)),
        device_type=device.device_type if device else None,
        device_core_count=sum(summary.core_count + summary.gpu_count for summary in summaries),
        is_training=is_training,
        profile_duration_ps=max(durations) if durations else None,
        simulated=any(summary.simulated for summary in summaries),
    )


# --- steps ---------------------------------------------------------------------------------------------------------


def common_steps(summaries: Sequence[HostSummary]) -> tuple[StepGrid | None, tuple[str, int]]:
    """One grid over the cores of all hosts with steps, matched by name; markers beat inferred steps."""
    grids = [summary.steps for summary in summaries if summary.steps is not None]
    notes = [summary.step_note for summary in summaries if summary.step_note]
    if not grids:
        return None, (notes[0] if notes else "no step", 0)
    source = "steps" if any(grid.source == "steps" for grid in grids) else "modules"
    grids = [grid for grid in grids if grid.source == source]
    notes = [summary.step_note for summary in summaries if summary.steps is not None and summary.step_note]
    note = "" if source == "steps" else next((note for note in notes), "")
    if len(grids) == 1:
        return grids[0], (note, grids[0].dropped)
    shared = set(grids[0].names).intersection(*(grid.names for grid in grids[1:]))
    names = [name for name in grids[0].names if name in shared]
    if not names:
        return grids[0], (note, sum(len(grid) for grid in grids[1:]))
    return _join_grids(grids, names), (note, max(len(grid) for grid in grids) - len(names))


def _join_grids(grids: Sequence[StepGrid], names: Sequence[str]) -> StepGrid:
    places = [{name: at for at, name in reversed(list(enumerate(grid.names)))} for grid in grids]
    index = [np.array([at[name] for name in names], np.int64) for at in places]
    all_reduce = []
    for grid, at in zip(grids, index, strict=True):
        number = np.full(len(grid), -1, np.int64)
        number[at] = np.arange(len(at))
        for step, ids, duration in grid.all_reduce:
            kept = number[step] >= 0
            all_reduce.append((number[step][kept], ids[kept], duration[kept]))
    return StepGrid(
        names=tuple(names),
        source=grids[0].source,
        start_ps=np.min([grid.start_ps[at] for grid, at in zip(grids, index, strict=True)], axis=0),
        duration_ps=np.concatenate([grid.duration_ps[:, at] for grid, at in zip(grids, index, strict=True)]),
        part_ps=np.concatenate([grid.part_ps[:, at] for grid, at in zip(grids, index, strict=True)]),
        work=np.concatenate([grid.work[:, at] for grid, at in zip(grids, index, strict=True)]),
        feed_work=np.concatenate([grid.feed_work[:, at] for grid, at in zip(grids, index, strict=True)]),
        all_reduce=tuple(all_reduce),
        dropped=0,
    )


def _steps(grid: StepGrid | None) -> tuple[Step, ...]:
    if grid is None:
        return ()
    return tuple(
        Step(name=name, group_id=at, start_ps=int(start), duration_ps=int(duration), breakdown=breakdown)
        for at, (name, start, duration, breakdown) in enumerate(
            zip(grid.names, grid.start_ps, grid.longest_ps, breakdowns(grid), strict=True)
        )
    )


def step_time(grid: StepGrid, note: str) -> StepTime:
    """Summary over steps, each with its slowest core (`ComputeStepTimeSummaryInMs`); the deviation is the sample's."""
    durations = grid.longest_ps.astype(np.float64)
    return StepTime(
        average_ps=float(durations.mean()),
        standard_deviation_ps=float(durations.std(ddof=1)) if len(durations) > 1 else 0.0,
        median_ps=_median(durations),
        minimum_ps=float(durations.min()),
        maximum_ps=float(durations.max()),
        count=len(durations),
        source=grid.source,
        note=note,
    )


def _median(values: NDArray[np.float64]) -> float:
    """The median of at least one value; numpy's own imports its masked arrays for it, 6 ms."""
    ordered = np.sort(values)
    middle = len(ordered) // 2
    return float(ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2)


# --- figures -------------------------------------------------------------------------------------------------------


def _performance(
    summaries: Sequence[HostSummary], table: OpTable, grid: StepGrid | None, note: str, unknown: dict[str, str]
) -> Performance:
    why = why_no_ops(summaries)
    total = sum(summary.total_ps for summary in summaries)
    busy = sum(summary.self_ps for summary in summaries)
    watched = sum(chip.total_ps for summary in summaries for chip in summary.duty)
    active = sum(chip.active_ps for summary in summaries for chip in summary.duty)

    def known(key: str, value: float | None, reason: str) -> float | None:
        if value is None:
            unknown[f"performance.{key}"] = why or reason
        return value

    flops, bandwidth, roofline = _roofline(summaries, table, total)
    no_counters = "the host recorded no {} counters (hardware counters are off by default)"
    host_ops = "the overview does not read the host's events yet; the page framework-ops does"
    return Performance(
        step_time=None if grid is None else step_time(grid, note if grid.source == "modules" else ""),
        device_duty_cycle_percent=known("device_duty_cycle_percent", _ratio(active, watched), "no device events"),
        device_idle_percent=known("device_idle_percent", _ratio(total - busy, total), "no device events"),
        host_idle_percent=known("host_idle_percent", None, host_ops),
        mxu_utilization_percent=known(
            "mxu_utilization_percent", _mean([s.mxu_percent for s in summaries]), no_counters.format("matrix unit")
        ),
        hbm_utilization_percent=known(
            "hbm_utilization_percent", _mean([s.hbm_percent for s in summaries]), no_counters.format("HBM")
        ),
        flops_utilization_percent=known("flops_utilization_percent", flops[0], flops[1]),
        roofline_efficiency_percent=known("roofline_efficiency_percent", roofline[0], roofline[1]),
        memory_bandwidth_utilization_percent=known("memory_bandwidth_utilization_percent", bandwidth[0], bandwidth[1]),
        host_op_percent=known("op_placement.host_percent", None, host_ops),
        device_op_percent=known("op_placement.device_percent", None, host_ops),
        eager_host_percent=known("eager_percent.host", None, host_ops),
        eager_device_percent=known("eager_percent.device", None, host_ops),
        bits16_percent=known(
            "compute_precision.bits16_percent", None, "the overview does not weigh the shapes of ops yet"
        ),
        bits32_percent=known(
            "compute_precision.bits32_percent", None, "the overview does not weigh the shapes of ops yet"
        ),
    )


def _ratio(part: float, whole: float) -> float | None:
    return 100.0 * part / whole if whole > 0 else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _roofline(
    summaries: Sequence[HostSummary], table: OpTable, total_ps: int
) -> tuple[tuple[float | None, str], tuple[float | None, str], tuple[float | None, str]]:
    """FLOPS utilization, HBM bandwidth utilization and roofline efficiency of the program, in percent, or why not.

    Work is that of all ops without the ops that hold others (their work is their contents'), time the cores' whole time
    with idle, as in the `Program` row of XProf's roofline page; the efficiency is the larger of the two utilizations.
    FLOPs are the model's (the roofline page takes the compiler's, which count rematerialization too).
    """
    device = device_of(summaries)
    work = work_of(table)
    seconds = total_ps / 1e12

    def share(work: np.ndarray, peak: float | None, what: str) -> tuple[float | None, str]:
        if peak is None:
            return None, f"the device plane gives no peak {what}"
        if not seconds or not np.isfinite(work).any():
            return None, f"no op carries its {what}"
        return 100.0 * float(np.nansum(work)) / seconds / peak, ""

    flops = share(work[:, WORK.index("model_flops")], device.peaks.flops_per_second if device else None, "FLOPS")
    bandwidth = share(work[:, WORK.index("hbm")], device.peaks.hbm if device else None, "HBM bandwidth")
    if flops[0] is None or bandwidth[0] is None:
        return flops, bandwidth, (None, flops[1] or bandwidth[1])
    return flops, bandwidth, (max(flops[0], bandwidth[0]), "")


def _shares(table: OpTable, summaries: Sequence[HostSummary]) -> tuple[Share, ...]:
    total = sum(summary.total_ps for summary in summaries)
    if not total or not len(table):
        return ()
    times: dict[OpClass, int] = dict.fromkeys(OP_CLASSES, 0)
    for op_class, self_ps in zip(table.classes(), table.self_ps.tolist(), strict=True):
        times[op_class] += self_ps
    times["idle"] = total - sum(summary.self_ps for summary in summaries)
    return tuple(Share(kind, times[kind], times[kind] / total) for kind in OP_CLASSES if times[kind] > 0)


def _top_ops(table: OpTable) -> tuple[TopOp, ...]:
    """The framework ops with the most self time; HLO ops without a framework name stand for themselves.

    As in XProf, occurrences of a framework op are those of its most frequent HLO op, and percentages are of the self
    time of all ops, idle left out. Ties go by name.
    """
    rows: dict[str, list[int]] = {}
    types: dict[str, str] = {}
    for at, full in enumerate(table.framework_op):
        op = parse_framework_op(full) if full else None
        name = op.name if op else table.name[at]
        rows.setdefault(name, []).append(at)
        types.setdefault(name, (op.type if op else "") or UNKNOWN_TYPE)
    self_time = {name: int(table.self_ps[at].sum()) for name, at in rows.items()}
    everything = sum(self_time.values())
    classes = table.classes()
    top = []
    cumulative = 0.0
    for name in sorted(rows, key=lambda name: (-self_time[name], name))[:TOP_OPS]:
        members = np.array(rows[name])
        main = int(members[np.argmax(table.self_ps[members])])
        percent = 100.0 * self_time[name] / everything if everything else 0.0
        cumulative += percent
        nanoseconds = float(table.total_ps[members].sum()) / 1000.0
        flops = table.flops[members]
        rate = float(np.nansum(flops)) / nanoseconds if nanoseconds and np.isfinite(flops).any() else None
        top.append(
            TopOp(
                name=name,
                category=types[name],
                op_class=classes[main],
                hlo_category=table.category[main],
                self_time_percent=percent,
                cumulative_percent=cumulative,
                self_time_ps=self_time[name],
                occurrences=int(table.occurrences[members].max()),
                gflops_per_second=rate,
            )
        )
    return tuple(top)


# --- words ---------------------------------------------------------------------------------------------------------


def _bottleneck(
    steps: Sequence[Step],
    table: OpTable,
    shares: Sequence[Share],
    top_ops: Sequence[TopOp],
    unknown: dict[str, str],
) -> Bottleneck:
    """Whether the steps wait for input, by infeed and outfeed ops; unknown where the program has none of them."""
    parts = [step.breakdown for step in steps if step.breakdown is not None]
    total = math.fsum(step.duration_ps for step in steps)
    if not parts or not total:
        reason = unknown.get("performance.device_duty_cycle_percent") or "no step time"
        return _unknown_bottleneck(reason, unknown, _marking_advice(table))
    idle_percent = 100.0 * math.fsum(part.idle_ps for part in parts) / total
    if not {"infeed", "outfeed"}.intersection(category or "" for category in table.category):
        reason = "the program has no infeed or outfeed ops, so waiting for input shows as idle time"
        unknown.update({"bottleneck.input_percent": reason, "bottleneck.output_percent": reason})
        return Bottleneck("unknown", None, None, idle_percent, *_what_takes_time(shares, top_ops, idle_percent))
    return _input_bottleneck(
        100.0 * math.fsum(part.infeed_ps for part in parts) / total,
        100.0 * math.fsum(part.outfeed_ps for part in parts) / total,
        idle_percent,
    )


def _with_slow_steps(bottleneck: Bottleneck, steps: Sequence[Step]) -> Bottleneck:
    """Adds the advice to look at the slowest step where it stands out and few others do."""
    if len(steps) < MINIMUM_STEPS_TO_COMPARE:
        return bottleneck
    durations = np.array([step.duration_ps for step in steps], np.float64)
    ratio = durations / _median(durations)
    slow = int((ratio >= SLOW_STEP).sum())
    if not 0 < slow <= len(steps) * FEW_SLOW_STEPS:
        return bottleneck
    name = steps[int(ratio.argmax())].name
    others = f" ({slow} steps are slow)" if slow > 1 else ""
    advice = f"Step {name} takes {ratio.max():.2f} times the median step{others}: see what it does more of."
    return replace(bottleneck, next_steps=(*bottleneck.next_steps[:1], advice, *bottleneck.next_steps[1:]))


def _what_takes_time(
    shares: Sequence[Share], top_ops: Sequence[TopOp], idle_percent: float
) -> tuple[str, tuple[str, ...]]:
    """Statement and advice for a program whose share of waiting for input can't be told from its ops."""
    idle = f"{idle_percent:.1f}% of step time is idle; how much of that waits for input is unknown."
    busy = [share for share in shares if share.op_class != "idle"]
    if not busy or not top_ops:
        return f"The steps hold no op events. {idle}", ()
    largest = max(busy, key=lambda share: share.time_ps)
    top = top_ops[0]
    name = "/".join(top.name.split("/")[-2:])
    statement = (
        f"{largest.op_class} ops take {100 * largest.fraction:.1f}% of device time; "
        f"the top op, {name}, {top.self_time_percent:.1f}% of op time. {idle}"
    )
    first = f"Look at {name} first."
    if idle_percent >= max(HIGH_IDLE, 100 * largest.fraction):
        return statement, ("Idle time first: see what the host does in the gaps.", first)
    return statement, (first,) if idle_percent < HIGH_IDLE else (first, "Then at the idle time between ops.")


def _unknown_bottleneck(reason: str, unknown: dict[str, str], advice: tuple[str, ...]) -> Bottleneck:
    for key in ("input_percent", "output_percent", "idle_percent"):
        unknown[f"bottleneck.{key}"] = reason
    return Bottleneck("unknown", None, None, None, f"Unknown: {reason}.", advice)


def _marking_advice(table: OpTable) -> tuple[str, ...]:
    if not len(table):
        return ()
    return ("Mark steps with jax.profiler.StepTraceAnnotation, or profile for longer than one step.",)


def _input_bottleneck(infeed: float, outfeed: float, idle: float) -> Bottleneck:
    advice: list[str] = []
    if infeed >= HIGHLY_INPUT_BOUND:
        kind, words = "host", f"The program is highly input-bound: {infeed:.1f}% of step time waits for input."
        advice.append("Reduce the input time first: the device is faster than the data comes.")
    elif infeed >= MODERATELY_INPUT_BOUND:
        kind, words = "both", f"The program is moderately input-bound: {infeed:.1f}% of step time waits for input."
        advice.append("Reduce both input time and device time.")
    else:
        kind, words = "device", f"The program is not input-bound: only {infeed:.1f}% of step time waits for input."
        advice.append("Reduce device time: the top ops are the place to look.")
    if outfeed >= MODERATELY_INPUT_BOUND:
        how = "highly" if outfeed >= HIGHLY_INPUT_BOUND else "moderately"
        words += f" It is {how} output-bound: {outfeed:.1f}% of step time sends results to the host."
    if idle >= HIGH_IDLE:
        words += f" {idle:.1f}% of step time is idle for other reasons than input."
        advice.append("Idle time: look for gaps between ops and what the host does meanwhile.")
    return Bottleneck(kind, infeed, outfeed, idle, words, tuple(advice))  # type: ignore[arg-type]


def device_of(summaries: Sequence[HostSummary]) -> DeviceInfo | None:
    """What the hosts' device planes say of the device, each figure from the first host that has it."""
    return merge_devices([summary.device for summary in summaries if summary.device is not None])[0]


def dropped_steps(grid: StepGrid | None, step_notes: tuple[str, int]) -> list[str]:
    """What to say about steps that not all cores have."""
    if grid is None or not step_notes[1]:
        return []
    return [f"{step_notes[1]} steps were left out: not every core has them"]


def warnings_of(
    summaries: Sequence[HostSummary], grid: StepGrid | None = None, step_notes: tuple[str, int] = ("", 0)
) -> tuple[str, ...]:
    """Plain sentences about the profile itself: what is damaged, left out or missing."""
    found: list[str] = []
    for summary in summaries:
        found += [problem.sentence for problem in summary.problems]
        found += [f"the profiler reports: {text}" for text in summary.warnings]
        found += summary.remarks
    if len(summaries) > 1:
        found += merge_devices([summary.device for summary in summaries if summary.device is not None])[1]
    found += dropped_steps(grid, step_notes)
    without = [summary.host for summary in summaries if not summary.core_count and not summary.gpu_count]
    if without:
        found.append(f"no device plane on {', '.join(without)}: no accelerator there, or the device tracer was off")
    return tuple(dict.fromkeys(found))
