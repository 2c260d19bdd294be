"""The overview's headline figures, each known or `None` with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpuprof.parsers.base.record import fields
from tpuprof.parsers.base.words import NO_HOST_OPS, percent_of
from tpuprof.parsers.base.words import share as share_words
from tpuprof.parsers.formats.hlo.matrix import matrix_bits
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.hosts.summary import HostSummary, duty_of_capture
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.host_events.ops import HostOps, merge_host_ops
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import WORK, added, rates_of_cores, time_scale, uncounted, work_of
from tpuprof.parsers.ops.table import OpTable, framework_groups, most_frequent
from tpuprof.parsers.pages.overview.model import PERFORMANCE_KEYS, Environment, Performance, Step, StepPart
from tpuprof.parsers.pages.shared.common import damage_of, device_of, why_no_ops
from tpuprof.parsers.pages.shared.latencies import InferencePage, latencies
from tpuprof.parsers.pages.shared.steps import CommonSteps, mean_and_range, step_time
from tpuprof.parsers.steps.boundaries.observed import WhenRan, idle_percent
from tpuprof.parsers.steps.model import StepTime

Known = tuple[float | None, str]
"""A figure, and why it is unknown where it is."""

NO_OP_RAN = "no op of a core or GPU in this profile"
NOT_RECORDED = "no op of a core was recorded, although programs ran on it"
NO_EAGER = "only TensorFlow's events say whether an op ran eagerly"


def performance_of(
    summaries: Sequence[HostSummary],
    table: OpTable,
    steps: CommonSteps,
    modules: Sequence[HloModules],
    unknown: dict[str, str],
) -> Performance:
    """The figures over some hosts; `unknown` receives the reasons for unknown ones, by JSON key."""
    why, spans = why_no_ops(summaries), steps.spans
    total = sum(summary.total_ps for summary in summaries)
    span = sum(summary.span_ps for summary in summaries)
    busy = sum(summary.ran_ps for summary in summaries)
    watched = sum(chip.total_ps for summary in summaries for chip in summary.duty)
    active = sum(chip.active_ps for summary in summaries for chip in summary.duty)
    observed = [of for summary in summaries for of in summary.observed]
    lost = any(of.lost_ps is None for of in observed)
    host = merge_host_ops([summary.host_ops for summary in summaries])
    flops, bandwidth, roofline = _roofline(summaries, table, total)
    bits16, bits32 = _precision(table, modules)
    device: dict[str, Known] = {
        "device_duty_cycle_percent": (duty_of_capture(summaries), NOT_RECORDED if lost else "no device events"),
        "device_idle_percent": (idle_percent(observed), NOT_RECORDED if lost else "no device events"),
        "xprof_duty_cycle_percent": (percent_of(active, watched), "no device events"),
        "xprof_idle_percent": (percent_of(span - busy, span), "no device events"),
        "mxu_utilization_percent": _matrix_units(summaries, table, total),
        "hbm_utilization_percent": (_mean([s.hbm_percent for s in summaries]), _NO_COUNTERS.format("HBM")),
        "flops_utilization_percent": flops,
        "roofline_efficiency_percent": roofline,
        "memory_bandwidth_utilization_percent": bandwidth,
        "bits16_percent": bits16,
        "bits32_percent": bits32,
    }
    device = {name: (value, why or reason) for name, (value, reason) in device.items()}
    groups = framework_groups(table)
    on_device = int(most_frequent(groups.group, table.occurrences, len(groups.name)).sum())
    time = None if spans is None else step_time(spans.longest_ps.astype(np.float64), spans.source, steps.note)
    return known_figures(time, why or steps.note, {**device, **host_figures(host, on_device)}, unknown)


def known_figures(
    time: StepTime | None, why_no_time: str, figures: Mapping[str, Known], unknown: dict[str, str]
) -> Performance:
    """The figures by their names; `unknown` receives the reasons for those that are not known."""
    for name, (value, why) in figures.items():
        if value is None:
            unknown[f"performance.{PERFORMANCE_KEYS.get(name, name)}"] = why
    if time is None:
        unknown["performance.step_time_ms"] = why_no_time
    return Performance(time, **{name: value for name, (value, _) in figures.items()})


def environment_of(
    summaries: Sequence[HostSummary],
    unknown: dict[str, str],
    no_duration: str,
    tasks: int,
    device: tuple[str | None, int],
    is_training: bool | None,
) -> Environment:
    """Where and how a program ran, and when its ops did; `unknown` receives why any of the times is not known.

    Args:
        device: its type, and the number of cores or GPUs.
    """
    durations = [of.profile_duration_ps for of in summaries if of.profile_duration_ps is not None]
    starts = [of.profile_start_ns for of in summaries if of.profile_start_ns is not None]
    ran = WhenRan.of([of for summary in summaries for of in summary.observed])
    why = NO_OP_RAN if ran.first_op_ps is None else NOT_RECORDED
    for key, value, reason in (
        ("profile_duration_ms", durations or None, no_duration),
        ("first_op_ms", ran.first_op_ps, why),
        ("last_op_ms", ran.last_op_ps, why),
        ("longest_silence_ms", ran.silence_ps, why),
        ("busy_between_percent", ran.busy_between_percent, why),
        ("profile_start_time", starts or None, "the profile does not record it"),
    ):
        if value is None:
            unknown[f"environment.{key}"] = reason
    return Environment(
        host_count=len(summaries),
        task_count=max(1, tasks),
        device_type=device[0],
        device_core_count=device[1],
        is_training=is_training,
        profile_duration_ps=max(durations, default=None),
        simulated=any(summary.simulated for summary in summaries),
        profile_start_ns=min(starts, default=None),
        first_op_ps=ran.first_op_ps,
        last_op_ps=ran.last_op_ps,
        silence_ps=ran.silence_ps,
        busy_between_percent=ran.busy_between_percent,
        damage=tuple(damage for damage in map(damage_of, summaries) if damage is not None),
    )


def latencies_of(
    summaries: Sequence[HostSummary],
    is_training: bool | None,
    programs: Sequence[HloModules] = (),
    without_runs: bool = False,
) -> InferencePage | None:
    """The page of requests over some hosts; None where there are no sessions, and nothing may be taken for them.

    Args:
        without_runs: whether runs of modules are no sessions.
    """
    parts, hosts = [summary.requests for summary in summaries], [summary.host for summary in summaries]
    page = latencies(parts, hosts, is_training, programs=programs)
    has_sessions = page.source is not None and not (without_runs and page.source == "module runs")
    return page if has_sessions or page.offers else None


def step_parts(steps: Sequence[Step]) -> tuple[StepPart, ...]:
    """Mean and deviation of each part over the steps that are broken down, all in the same way."""
    broken = [(step.duration_ps, step.breakdown) for step in steps if step.breakdown is not None]
    whole = sum(duration for duration, _ in broken) / max(1, len(broken))
    names = [of.name for of in fields(broken[0][1]) if of.name.endswith("_ps")] if whole else []
    parts = []
    for name in names:
        if any(getattr(of, name) is None for _, of in broken):
            continue
        average, deviation, *_ = mean_and_range(np.array([getattr(of, name) for _, of in broken], np.float64))
        parts.append(StepPart(name.removesuffix("_ps"), average, deviation, average / whole))
    return tuple(parts)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


_NO_COUNTERS = "the host recorded no {} counters (hardware counters are off by default)"

_LEAST = 0.9
"""A counter of the matrix units contradicts the FLOPs from this part of what they need on downwards."""


def _matrix_units(summaries: Sequence[HostSummary], table: OpTable, total_ps: int) -> Known:
    """Use of the matrix units by the hosts' counters; unknown where it can't be: above 100 %, or less than their ops
    need. Other ops have FLOPs too, which vector units work off.
    """
    counted = _mean([summary.mxu_percent for summary in summaries])
    if counted is None:
        return None, _NO_COUNTERS.format("matrix unit")
    device = device_of(summaries)
    peak = device.peaks.flops_per_second if device else None
    on_them = np.array([kind == "compute" for kind in table.classes()], np.bool_)
    flops = float(np.nansum(work_of(table)[on_them, WORK.index("flops")]))
    needed = min(100.0 * flops / (total_ps / 1e12) / peak, 100.0) if peak and total_ps else 0.0
    if _LEAST * needed <= counted <= 100.0:
        return counted, ""
    why = "" if counted > 100.0 else f", and the FLOPs that ran on them need {share_words(needed / 100)}"
    return None, f"the host's counter of the matrix units says {share_words(counted / 100)}{why}: it is refused"


def host_figures(host: HostOps, on_device: int) -> Mapping[str, Known]:
    """Idle time of the host's threads, where framework ops ran, how much of them eagerly (`ComputeAnalysisResult`).

    Args:
        on_device: occurrences of framework ops on the device.
    """
    if not any(host.type):  # the allocator's placeholders are no ops
        host = merge_host_ops([])
    on_host = int(host.occurrences.sum())
    eager = percent_of(int(host.self_ps[host.is_eager].sum()), int(host.self_ps.sum())) if host.marks_eager else None
    return {
        "host_idle_percent": (percent_of(host.idle_ps, host.whole_ps), NO_HOST_OPS),
        "host_op_percent": (percent_of(on_host, on_host + on_device) if on_host else None, NO_HOST_OPS),
        "device_op_percent": (percent_of(on_device, on_host + on_device) if on_host else None, NO_HOST_OPS),
        "eager_host_percent": (eager, NO_EAGER if len(host) else NO_HOST_OPS),
        "eager_device_percent": (None, NO_EAGER),
    }


def _precision(table: OpTable, modules: Sequence[HloModules]) -> tuple[Known, Known]:
    """Share of matrix ops' self time whose operands have 16 bits, and 32; XProf leaves both empty on TPU.

    The types are those in the compiled program. The op's precision setting decides what the matrix unit does with
    32-bit operands (one bfloat16 pass or several).
    """
    times: dict[int, int] = {}
    products = np.flatnonzero(np.nan_to_num(table.flops) > 0).tolist()
    for row in products:
        module = next(
            (candidate for of in modules if (candidate := of.module(int(table.program_id[row]))) is not None), None
        )
        bits = matrix_bits(module, table.name[row]) if module is not None else None
        if bits is not None:
            times[bits] = times.get(bits, 0) + int(table.self_ps[row])
    everything = sum(times.values())
    reason = "by the profile's HLO, no op that ran is a matrix product"
    if not any(of.names for of in modules):
        reason = "no matrix op's types are known: the profile holds no HLO (enable_hlo_proto may be off)"
    elif not {int(table.program_id[row]) for row in products} & {program for of in modules for program in of.names}:
        reason = "no matrix op's types are known: the profile lacks the HLO of the programs that ran"
    return (percent_of(times.get(16, 0), everything), reason), (percent_of(times.get(32, 0), everything), reason)


def _roofline(summaries: Sequence[HostSummary], table: OpTable, total_ps: int) -> tuple[Known, Known, Known]:
    """FLOPS utilization, HBM bandwidth utilization and roofline efficiency of the program, in percent.

    They are those of the program's point on the roofline page, and of the root of the op profile.
    """
    device = device_of(summaries)
    peaks = device.peaks if device else Peaks()
    busy = sum(summary.self_ps for summary in summaries)
    whole, scale = (total_ps, total_ps - busy), time_scale(table, busy)
    time_ps = np.array([min(total_ps, np.iinfo(np.int64).max)], np.int64)  # hosts of a damaged profile take longer
    of = rates_of_cores(added(work_of(table))[None], time_ps, whole, scale, peaks)

    def share(used: float, peak: float | None, what: str) -> Known:
        if peak is None:
            return None, f"the device plane gives no peak {what}"
        return (100.0 * used, "") if np.isfinite(used) else (None, f"no op has its {what}")

    flops = share(float(of.flops_utilization[0]), peaks.flops_per_second, "FLOPS")
    bandwidth = share(float(of.bandwidth_utilization[0, TRAFFIC.index("hbm")]), peaks.hbm, "HBM bandwidth")
    if flops[0] is None or bandwidth[0] is None:
        return flops, bandwidth, (None, flops[1] or bandwidth[1])
    return flops, bandwidth, (100.0 * float(np.nan_to_num(of.efficiency[0])), "")


_MUCH_UNCOUNTED = 0.01


def counted_words(table: OpTable) -> tuple[str, ...]:
    """A sentence on what the totals of FLOPs and bytes leave out, where kernels come without counts."""
    everything, missing = int(table.self_ps.sum()), int(table.self_ps[uncounted(table)].sum())
    if missing < _MUCH_UNCOUNTED * max(everything, 1):
        return ()
    known = share_words(1 - missing / everything)
    return (
        f"FLOPs and bytes are counted for {known} of the ops' time: kernels (custom calls) that nobody counted are "
        "left out of rates and utilizations, which are lower bounds",
    )
