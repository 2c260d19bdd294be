"""One op or one step in full: the line below the page, and what Enter opens. Pure drawing."""

from __future__ import annotations

from tpuprof.parsers.pages.overview.model import Overview, Step, TopOp
from tpuprof.parsers.steps.model import GenericBreakdown
from tpuprof.tui.draw.format import count, duration, flop_rate, percent
from tpuprof.tui.draw.layout import cut_middle
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import CLASS_LETTER, Line, Span
from tpuprof.tui.pages.overview.steps import median_ps


def op_line(op: TopOp, pen: Pen) -> Line:
    """An op's full name in one line, as far as it fits, and what kind of op it is."""
    kind = pen.text(op.hlo_category or "category unknown")
    head: list[Span] = [(" op ", "dim")]
    room = pen.width - 4 - len(kind) - 4
    if room < 24:
        return pen.fit([*head, (cut_middle(op.name, pen.width - 5, pen.glyphs), "strong")])
    name = cut_middle(op.name, room, pen.glyphs)
    return pen.fit([*head, (name, "strong"), (f"  {pen.glyphs.dot} {kind}", "dim")])


def step_line(step: Step, page: Overview, pen: Pen) -> Line:
    """When a step began and how its cores waited for input, as far as that is known."""
    spans: list[Span] = [(" step ", "dim"), (step.name, "strong"), ("  starts at ", "dim")]
    spans.append((duration(step.start_ps, pen.glyphs.is_ascii), "text"))
    parts = step.breakdown
    if isinstance(parts, GenericBreakdown):
        spans.append((f"  other time {percent(100 * parts.all_other_ps / max(1, step.duration_ps))}", "dim"))
    elif parts is not None and page.bottleneck.input_percent is None:
        spans.append((f"  idle {percent(100 * parts.idle_ps / step.duration_ps)}, waiting for input unknown", "dim"))
    elif parts is not None:
        least, most = percent(parts.infeed_percent_minimum), percent(parts.infeed_percent_maximum)
        spans += [("  waits for input ", "dim"), (percent(parts.infeed_percent_average), "text")]
        spans += [(" of its time, by core ", "dim"), (f"{least} {pen.glyphs.dash} {most}", "text")]
    return pen.fit(spans)


def op_details(op: TopOp, page: Overview, pen: Pen) -> list[Line]:
    """All that the overview knows of an op."""
    rows = [
        ("rank", f"{page.top_ops.index(op) + 1} of the top {len(page.top_ops)}, by self time"),
        ("class", f"{CLASS_LETTER[op.op_class]} {op.op_class}"),
        ("HLO category", op.hlo_category or "not in the profile"),
        ("framework op type", op.category),
        ("self time", f"{duration(op.self_time_ps, pen.glyphs.is_ascii)}, over all cores"),
        ("share of op time", f"{percent(op.self_time_percent)}, with all above it {percent(op.cumulative_percent)}"),
        ("occurrences", count(op.occurrences)),
        ("rate", _rate(op.gflops_per_second)),
    ]
    blank = pen.fit([])
    in_ops = pen.fit([("o ", "key"), ("shows it in tab 3, ops", "text")])
    on_timeline = pen.fit([("O ", "key"), ("shows its longest run in tab 4, timeline", "text")])
    return [*pen.wrap(op.name, "strong"), blank, *pen.labelled(rows), blank, in_ops, on_timeline]


def step_details(step: Step, page: Overview, pen: Pen) -> list[Line]:
    """A step's time by part, and how it compares with the others."""
    rows = [
        ("duration", f"{duration(step.duration_ps, pen.glyphs.is_ascii)}, of its {_measured_by(page, step)}"),
        ("median of all steps", duration(median_ps(page.steps), pen.glyphs.is_ascii)),
        ("starts at", f"{duration(step.start_ps, pen.glyphs.is_ascii)} in the profile"),
    ]
    time = page.performance.step_time
    if time is not None and time.source == "modules":
        rows.append(("inferred", time.note))
    parts = step.breakdown
    if parts is None:
        rows.append(("where its time went", "the profile does not tell"))
    elif isinstance(parts, GenericBreakdown):
        rows += _generic_rows(parts, pen.glyphs.is_ascii)
    else:
        least, most = percent(parts.infeed_percent_minimum), percent(parts.infeed_percent_maximum)
        waiting = f"{duration(parts.infeed_ps, pen.glyphs.is_ascii)}; by core {least} {pen.glyphs.dash} {most}"
        if page.bottleneck.input_percent is None:
            waiting = f"unknown: {page.unknown.get('bottleneck.input_percent', 'no infeed ops')}"
        rows += [
            ("compute", f"{duration(parts.compute_ps, pen.glyphs.is_ascii)} on the least busy core"),
            ("all-reduce, computing", duration(parts.all_reduce_compute_ps, pen.glyphs.is_ascii)),
            ("all-reduce, waiting", duration(parts.all_reduce_sync_ps, pen.glyphs.is_ascii)),
            ("waiting for input", waiting),
            ("output", duration(parts.outfeed_ps, pen.glyphs.is_ascii)),
            ("waiting for SparseCore", duration(parts.sparse_core_ps, pen.glyphs.is_ascii)),
            ("host transfers", duration(parts.host_transfer_ps, pen.glyphs.is_ascii)),
            ("idle", duration(parts.idle_ps, pen.glyphs.is_ascii)),
        ]
    if step.sparse_core is not None:
        times = (duration(ps, pen.glyphs.is_ascii) for ps in (step.sparse_core.compute_ps, step.sparse_core.idle_ps))
        rows.append(("SparseCores beside", "{} compute, {} idle".format(*times)))
    head = pen.fit([("Step ", "dim"), (step.name, "strong")])
    jump = [pen.fit([]), pen.fit([("o ", "key"), ("shows it in tab 4, timeline", "text")])]
    return [head, pen.fit([]), *pen.labelled(rows), *jump]


def _measured_by(page: Overview, step: Step) -> str:
    """What a step is as long as."""
    if not isinstance(step.breakdown, GenericBreakdown):
        return "slowest core"
    return "slowest GPU" if page.environment.device_core_count else "annotation on the host"


def _generic_rows(parts: GenericBreakdown, ascii_only: bool) -> list[tuple[str, str]]:
    """The parts of a step on GPUs, or on the host's CPU, which has no device's."""
    in_16_bits = f", {duration(parts.device_compute_16bit_ps, ascii_only)} in 16 bits"
    rows = (
        ("device compute", parts.device_compute_ps, in_16_bits),
        ("device to device", parts.device_to_device_ps, ""),
        ("collectives", parts.device_collectives_ps, ""),
        ("input", parts.input_ps, " copying to the device, or waiting for input"),
        ("output", parts.output_ps, " copying to the host"),
        ("kernel launch", parts.kernel_launch_ps, " in which no GPU did anything"),
    )
    of_host = (
        ("ops on the CPU", parts.host_ops_ps, " in which XLA ran some"),
        ("waiting for input", parts.input_ps, ""),
    )
    both = (
        ("compilation", parts.compile_ps, ""),
        ("host compute", parts.host_compute_ps, " of what else the host traced in the step"),
        ("all other", parts.all_other_ps, " in which nothing was traced"),
    )
    chosen = (*(of_host if parts.host_ops_ps and not parts.device_compute_ps else rows), *both)
    return [(label, f"{duration(time, ascii_only)}{words if time else ''}") for label, time, words in chosen]


def _rate(gflops_per_second: float | None) -> str:
    text = flop_rate(gflops_per_second)
    if gflops_per_second is None:
        return "the profile has no FLOPs for it"
    return f"{text[:-1]} {text[-1]}FLOP/s" if text[-1:].isalpha() else "no FLOPs"
