"""The op pages as GitHub-flavoured Markdown: figures, the main table, and what is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.ops.roofline import Rates
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
from tpuprof.parsers.pages.ops.op_profile import OpProfilePage
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.ops.roofline import RooflinePage, RooflinePoints
from tpuprof.tui.draw.format import UNKNOWN, byte_rate, count, duration, flop_rate, intensity, percent, share
from tpuprof.tui.pages.ops.report.csv import walk
from tpuprof.tui.pages.ops.report.rows import first, framework_rows, roofline_rows
from tpuprof.tui.report.markdown_report import escaped, joined, table

_INDENT = "\u00a0\u00a0"  # what a browser does not fold
_NOT_WORTH_SAYING = frozenset({"time_scale"})  # most devices do not scale their clock
_Figures = list[tuple[str, str]]

_RATE_HEAD = ("FLOPS", "HBM", "FLOP/s", "FLOP/B", "bound by", "of roof")
_RATE_SIDES = "rrrrlr"


def ops_markdown(page: OpsPage, run: Run, limit: int = 0) -> str:
    """HLO ops by self time, at most `limit` of them, 0 for all."""
    head = ("", "op", "category", "class", "self", "self time", "count", "average", *_RATE_HEAD)
    rows = [
        (
            str(row + 1),
            page.table.name[row],
            page.table.category[row] or UNKNOWN,
            page.op_class[row],
            share(float(page.self_fraction[row])),
            duration(int(page.table.self_ps[row])),
            count(int(page.table.occurrences[row])),
            _average(int(page.table.self_ps[row]), int(page.table.occurrences[row])),
            *_rates(page.rates, row),
            page.program[row],
            page.table.framework_op[row] or UNKNOWN,
        )
        for row in first(len(page), limit).tolist()
    ]
    lines = _head("HLO ops", page, run)
    lines += ["", "## Figures", "", *_figures([*_time(page), *_peaks(page)])]
    lines += _main("Ops", (*head, "program", "framework op"), f"rlllrrrr{_RATE_SIDES}ll", rows, len(page))
    return joined([*lines, *_unknown(page.unknown)])


def op_profile_markdown(page: OpProfilePage, run: Run, limit: int = 0) -> str:
    """The op profile by program; at most `limit` children a node, 0 for all."""
    ops, tree = page.ops, page.by_program
    figures = [
        *_time(ops),
        ("FLOPS utilization, of peak", share(float(tree.rates.flops_utilization[0]))),
        ("HBM bandwidth utilization, of peak", share(float(tree.rates.bandwidth_utilization[0, 0]))),
    ]
    rows = []
    left_out = tree.top_children(0, limit=limit)[1]
    for node, depth, _, hidden in walk(tree, limit):
        is_idle = tree.kind[node] == "idle"
        rows.append(
            (
                _INDENT * depth + tree.name[node],
                tree.kind[node],
                share(float(tree.time_fraction[node])),
                duration(int(tree.time_ps[node])),
                "" if is_idle else count(int(tree.occurrences[node])),
                "" if is_idle else share(float(tree.rates.flops_utilization[node])),
                "" if is_idle else share(float(tree.rates.bandwidth_utilization[node, 0])),
                share(float(tree.wasted_fraction[node])),
                f"+ {count(hidden)} more" if hidden else "",
            )
        )
    head = ("by program", "kind", "time", "self time", "count", "FLOPS", "HBM", "wasted", "not shown")
    lines = _head("Op profile", ops, run)
    lines += ["", escaped(page.headline), "", "## Figures", "", *_figures(figures)]
    lines += _main("Op profile by program", head, "llrrrrrrr", rows, len(rows) + left_out)
    return joined([*lines, *_unknown(ops.unknown)])


def framework_ops_markdown(page: FrameworkOpsPage, ops: OpsPage, run: Run, limit: int = 0) -> str:
    """Framework ops on the device and on the host; at most `limit` of each, 0 for all."""
    lines = _head("Framework ops", ops, run)
    figures = []
    for side, whole, idle in (
        ("device", page.device_total_ps, page.device_idle_ps),
        ("host", page.host_total_ps, page.host_idle_ps),
    ):
        figures += [
            (f"{side} time", duration(whole or None)),
            (f"{side} idle, of its time", percent(100 * idle / whole if whole else None)),
        ]
    lines += ["", "## Figures", "", *_figures(figures)]
    head = ("op", "type", "class", "self", "cumulative", "self time", "total time", "count")
    shown = framework_rows(page, limit).tolist()
    for title, is_host in (("On the device", False), ("On the host", True)):
        rows = [
            (
                page.name[row],
                page.type[row] or UNKNOWN,
                page.op_class[row],
                share(float(page.self_fraction[row])),
                share(float(page.cumulative_fraction[row])),
                duration(int(page.self_ps[row])),
                duration(int(page.total_ps[row])),
                count(int(page.occurrences[row])),
                *(() if is_host else _rates(page.rates, row)),
                *(() if is_host else (ops.table.name[int(page.main_op[row])],)),
            )
            for row in shown
            if bool(page.is_host[row]) == is_host
        ]
        more = () if is_host else (*_RATE_HEAD, "longest HLO op")
        sides = "lllrrrrr" if is_host else f"lllrrrrr{_RATE_SIDES}l"
        lines += _main(title, (*head, *more), sides, rows, int((page.is_host == is_host).sum()))
    return joined([*lines, *_unknown(page.unknown)])


def roofline_markdown(page: RooflinePage, run: Run, limit: int = 0) -> str:
    """Peaks, program, steps, and at most `limit` ops, 0 for all."""
    ops = page.ops
    lines = _head("Roofline", ops, run)
    lines += ["", "## Figures", "", *_figures([*_time(ops), *_peaks(ops)])]
    points = (*_points(page.program), *_points(page.average_step), *_points(page.steps, "step "))
    over_all = ("", "time over all cores", *_RATE_HEAD)
    lines += _main("Program and steps", over_all, f"lr{_RATE_SIDES}", points, len(points))
    head = ("op", "category", "class", "self", "self time", *_RATE_HEAD)
    rows = [
        (
            ops.table.name[row],
            ops.table.category[row] or UNKNOWN,
            ops.op_class[row],
            share(float(ops.self_fraction[row])),
            duration(int(ops.table.self_ps[row])),
            *_rates(ops.rates, row),
        )
        for row in roofline_rows(page, limit).tolist()
    ]
    title = "Ops" if page.with_infeed else "Ops without infeed and outfeed"
    lines += _main(title, head, f"lllrr{_RATE_SIDES}", rows, int(page.counts.sum()))
    return joined([*lines, *_unknown(page.unknown)])


def _head(title: str, page: OpsPage, run: Run) -> list[str]:
    machine = f"{page.device_type or 'an unknown device'}, {counted(page.core_count, 'core')}"
    lines = [f"# {title} of {escaped(run.name)}", ""]
    lines += [f"- hosts: {escaped(', '.join(page.hosts))}", f"- ran on: {escaped(machine)}"]
    lines += ["- **the times of this profile are simulated, not measured**"] if page.simulated else []
    return lines + [f"- warning: {escaped(warning)}" for warning in page.warnings]


def _time(page: OpsPage) -> _Figures:
    idle = percent(100 * page.idle_ps / page.total_ps) if page.total_ps else UNKNOWN
    figures = [
        ("HLO ops", count(len(page))),
        ("time over all cores", duration(page.total_ps or None)),
        ("idle, of that time", idle),
    ]
    if page.time_scale is not None:
        figures.append(("time at the nominal clock, of time measured", f"{page.time_scale:.3f}"))
    return figures


def _peaks(page: OpsPage) -> _Figures:
    """What one core can do at most."""
    peaks = page.peaks
    flops = None if peaks.flops_per_second is None else peaks.flops_per_second / 1e9
    figures = [("peak FLOP/s of a core", flop_rate(flops)), ("peak HBM B/s", byte_rate(peaks.hbm))]
    others = (
        ("peak VMEM B/s, read", peaks.vmem_read),
        ("peak VMEM B/s, write", peaks.vmem_write),
        ("peak CMEM B/s, read", peaks.cmem_read),
        ("peak CMEM B/s, write", peaks.cmem_write),
    )
    figures += [(label, byte_rate(value)) for label, value in others if value is not None]
    return [*figures, ("ridge point, FLOP/B", intensity(peaks.ridge_point))]


def _points(points: RooflinePoints, prefix: str = "") -> list[Sequence[str]]:
    times = points.total_ps.tolist()
    return [
        (f"{prefix}{name}", duration(times[row] or None), *_rates(points.rates, row))
        for row, name in enumerate(points.name)
    ]


def _rates(rates: Rates, row: int) -> tuple[str, ...]:
    """The cells under `_RATE_HEAD`."""
    bound = rates.bound_name(row)
    return (
        share(float(rates.flops_utilization[row])),
        share(float(rates.bandwidth_utilization[row, 0])),
        flop_rate(float(rates.flops_per_second[row]) / 1e9),
        intensity(float(rates.operational_intensity[row])),
        UNKNOWN if bound == "unknown" else bound,
        share(float(rates.efficiency[row])),
    )


def _average(self_ps: int, occurrences: int) -> str:
    return duration(self_ps / occurrences if occurrences else None)


def _figures(rows: _Figures) -> list[str]:
    return table(("figure", "value"), "lr", rows)


def _main(title: str, head: Sequence[str], sides: str, rows: Sequence[Sequence[str]], whole: int) -> list[str]:
    """A heading, the table, and how many of its `whole` rows are not in it; nothing for an empty one."""
    if not rows:
        return []
    lines = ["", f"## {title}", "", *table(head, sides, rows)]
    return [*lines, "", f"Not shown: {count(whole - len(rows))} more."] if whole > len(rows) else lines


def _unknown(reasons: Mapping[str, str]) -> list[str]:
    told = [f"- {escaped(key)}: {escaped(why)}" for key, why in reasons.items() if key not in _NOT_WORTH_SAYING]
    return ["", "## Unknown", "", *told] if told else []
