"""A TPU's kernel in cells: its card, one grid step over time, and the page as text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.formats.llo.stored import FLAG
from tpuprof.parsers.ops.core.calls import SpanKind, StepSpan, span_kind
from tpuprof.parsers.pages.ops.kernels.call_units import TRACE_KERNELS
from tpuprof.parsers.pages.ops.kernels.tpu import TpuKernel, TpuKernelsPage
from tpuprof.parsers.pages.ops.kernels.variants import Variant
from tpuprof.parsers.pages.ops.kernels.witnesses import Figure
from tpuprof.tui.draw.format import UNKNOWN, binary_size, byte_rate, count, duration, share, size
from tpuprof.tui.draw.pen import Card, Pen, cut_middle
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey
from tpuprof.tui.draw.table import first_rows
from tpuprof.tui.pages.ops.fields.common import short_program
from tpuprof.tui.pages.ops.kernels.fields import CALLS, VARIANTS, by_witness, wait_style
from tpuprof.tui.report.fields import screen_columns
from tpuprof.tui.report.units import GFLOPS

LABEL = 10
_STEP_LABEL = 16
_MOST_NAMES = 12
_KINDS: dict[SpanKind, tuple[str, str, StyleKey]] = {
    "wait in": ("░", ".", "bad"),
    "wait out": ("░", ".", "warn"),
    "body": ("█", "#", "class.compute"),
    "scope": ("▓", "=", "class.compute"),
    "copies": ("▒", "-", "class.copy"),
}
"""What the cells of a span look like, in any characters and in ASCII; the shape says the same as the colour."""


def kernel_card(kernel: TpuKernel, pen: Pen) -> list[Line]:
    """All about one kernel: what it takes, what it waits for, its work by witness, and a step of its grid."""
    card = Card(pen, LABEL)
    calls = f"{kernel.op} and {counted(len(kernel.ops) - 1, 'more call')}" if len(kernel.ops) > 1 else kernel.op
    card.head(kernel.kernel, ("kernel", calls, short_program(kernel.program, pen.glyphs)))
    _times(card, kernel)
    _waits(card, kernel)
    if kernel.step:
        card.lines += [*step_lines(kernel.step, pen), pen.fit([])]
    elif kernel.waits is None:
        card.entry("spans", NO_SPANS, "dim")
    _work(card, kernel)
    for words in kernel.refusals:
        card.entry("", words, "warn")
    _blocks(card, kernel)
    _schedule(card, kernel)
    card.known("metadata", kernel.parameters)
    card.known("op", kernel.framework_op)
    card.known("source", kernel.source)
    _scopes(card, kernel)
    return card.lines


NO_SPANS = f"n/a: {TRACE_KERNELS} records what a kernel waits for"


def _times(card: Card, kernel: TpuKernel) -> None:
    runs, ascii_only, times = kernel.runs, card.pen.glyphs.is_ascii, card.pen.glyphs.times
    mean, total = duration(kernel.mean_ps, ascii_only), duration(runs.total_ps, ascii_only)
    card.entry("time", f"{count(runs.runs)} {times} {mean} = {total}, {share(kernel.fraction)} of all")
    spread = (("least", runs.minimum_ps), ("median", runs.median_ps), ("p90", runs.p90_ps), ("most", runs.maximum_ps))
    card.entry("runs", ", ".join(f"{name} {duration(value, ascii_only)}" for name, value in spread))


def _waits(card: Card, kernel: TpuKernel) -> None:
    """What bounds it, and what it waits for: measured."""
    bound = kernel.bound or _why_unbound(kernel)
    card.entry("bound by", bound, "bad" if kernel.bound == "waiting for copies" else "text")
    if kernel.waits is None:
        return
    parts = [f"copies in {share(kernel.wait_in)}", f"copies out {share(kernel.wait_out)}"]
    parts += [f"body {share(kernel.body)}"] if kernel.body is not None else []
    card.entry("waits for", f"{', '.join(parts)} of a run, measured", wait_style(kernel.waits))
    if kernel.waited_for:
        each = ", ".join(f"{row.name} {share(part)}" for row, part in kernel.waited_for)
        card.entry("", f"of the waits for copies in: {each}")
    if kernel.wait_words:
        card.entry("", f"{kernel.wait_words}", "warn")


def _why_unbound(kernel: TpuKernel) -> str:
    known = (("FLOP/s", kernel.flops_use), ("HBM's peak", kernel.bytes_use))
    used = " and ".join(f"{share(part)} of {what}" for what, part in known if part is not None)
    if not used:
        return "unknown: nobody counted its work, and no span says what it waits for"
    return f"unknown: it uses {used}, and {'its FLOPs are' if kernel.flops_use is None else 'its bytes are'} unknown"


def _blocks(card: Card, kernel: TpuKernel) -> None:
    """Grid, blocks and memory, as the kernel's module has them."""
    spec = kernel.spec
    if spec is None:
        card.entry("grid", "n/a: the profile has no module of this kernel", "dim")
        return
    if spec.reason:
        card.entry("grid", f"n/a: {spec.reason}", "dim")
        return
    card.entry("grid", _grid(kernel, card.pen.glyphs))
    for row in kernel.blocks:
        moved = f", {count(row.buffer.fetches)} copied" if row.buffer.fetches is not None else ""
        card.entry("", f"{row.role} {row.name}: {row.words}{moved}".replace(" :", ":"))
    vmem = binary_size(kernel.vmem_bytes)
    what = "set aside by the compiler" if spec.used_vmem_bytes else "in buffers of blocks"
    limit = f", of {binary_size(spec.vmem_limit_bytes)} that it may take" if spec.vmem_limit_bytes else ""
    smem = f"; SMEM {binary_size(kernel.smem_bytes)}" if kernel.smem_bytes else ""
    card.entry("VMEM", f"{vmem} {what}{limit}{smem}, static")


def _grid(kernel: TpuKernel, glyphs: Glyphs) -> str:
    """Bounds of its grid and how many steps that makes; what is measured beside it."""
    words = kernel.grid.replace(",", glyphs.times) or "none of its own"
    if kernel.grid and kernel.spec is not None:
        steps = kernel.spec.steps
        words += ", known at run time" if steps is None else f" = {counted(steps, 'step')}"
    return words + (f"; {counted(kernel.grid_steps, 'body', 'bodies')} a run, measured" if kernel.grid_steps else "")


def _work(card: Card, kernel: TpuKernel) -> None:
    peaks = kernel.peaks
    card.entry("MXU", by_witness(kernel.matrix))
    flops, top = (GFLOPS.words(value, False) for value in (kernel.flops_per_second, peaks.flops_per_second))
    card.entry("FLOP/s", _rate(flops, top, kernel.flops_use, kernel.flops))
    card.entry("HBM", _rate(byte_rate(kernel.bytes_per_second), byte_rate(peaks.hbm), kernel.bytes_use, kernel.bytes))
    if kernel.bytes.value is not None:
        card.entry("", f"{size(round(kernel.bytes.value))} a run")
    if kernel.roof is not None:
        took = duration(kernel.roof_ps, card.pen.glyphs.is_ascii)
        card.entry("roof", f"{took} a run at its roof, {share(kernel.roof)} of what it takes")


def _schedule(card: Card, kernel: TpuKernel) -> None:
    """What the compiler's schedule holds, region by region: static, but for how often the spans say that one runs."""
    static = kernel.static
    if static is None:
        card.entry("schedule", NO_SCHEDULE, "dim")
        return
    runs = "" if static.run_bundles is None else f", {count(round(static.run_bundles))} run"
    spilled = f"{count(static.spills)} spills, {count(static.fills)} fills"
    spilled += f", {binary_size(static.spill_bytes)} of VMEM for them" if static.spill_bytes else ""
    card.entry(
        "schedule", f"{count(static.bundles)} bundles{runs}; {spilled}; static", "warn" if static.spills else "text"
    )
    for region in static.regions[:_MOST_REGIONS]:
        place = region.place.rpartition("/")[2] or region.kind
        scope = f" {region.scope}" if region.scope else ""
        used = sorted(region.shares.items(), key=lambda pair: -pair[1])[:_MOST_UNITS]
        words = (
            f"{share(region.fraction)}: {count(region.bundles)} bundles {card.pen.glyphs.times} {_often(region.runs)}"
        )
        words += "".join(f", {unit} {share(part)}" for unit, part in used if part)
        card.entry("", f"{place}{scope} {words}")


def _often(runs: float) -> str:
    return f"{runs:,.0f}" if runs == round(runs) or runs >= _MANY else f"{runs:.3g}"


_MANY = 100
_MOST_REGIONS, _MOST_UNITS = 4, 3
NO_SCHEDULE = f"n/a: LIBTPU_INIT_ARGS='{FLAG}' puts it into the profile"


def _rate(rate: str, peak: str, used: float | None, figure: Figure) -> str:
    if rate == UNKNOWN:
        return f"{UNKNOWN}: {figure.reason}"
    of_peak = f" of {peak}, {share(used)}" if used is not None else ""
    return f"{rate}{of_peak}, by {figure.witness}"


def _scopes(card: Card, kernel: TpuKernel) -> None:
    """The spans inside by their time, and what the compiler counted of the units in each."""
    units: dict[str, str] = {}
    for scope, of_scope in groupby(kernel.units, lambda row: row.use.scope):
        rows = sorted(of_scope, key=lambda row: -(row.share or 0.0))
        units[scope] = ", ".join(f"{row.use.unit} {share(row.share)}" for row in rows[:3])
    traced = kernel.traced
    if traced is not None and traced.parts:
        card.title("Spans inside, all runs, measured")
        for part in traced.parts:
            words = f"{duration(part.total_ps, card.pen.glyphs.is_ascii)}, {share(part.total_ps / traced.traced_ps)}"
            words += f", {counted(part.count, 'time')}; {part.kind}"
            card.lines += card.pen.entry(part.name, words, "text", _STEP_LABEL)
    if units:
        card.title("Units, the schedule over measured time")
        for scope, words in units.items():
            card.lines += card.pen.entry(scope or "whole", words, "text", _STEP_LABEL)


def step_lines(step: Sequence[StepSpan], pen: Pen) -> list[Line]:
    """One grid step over time: a line a name, with the time that it takes."""
    whole = max(1, *(span.end_ps for span in step))
    names = list(dict.fromkeys(span.name for span in step))
    right = duration(whole, pen.glyphs.is_ascii)
    lines = [pen.rule("One grid step", right)]
    room = max(8, pen.width - _STEP_LABEL - 10)
    for name in names[:_MOST_NAMES]:
        mine = [span for span in step if span.name == name]
        took = duration(sum(span.end_ps - span.start_ps for span in mine), pen.glyphs.is_ascii)
        label = cut_middle(pen.text(name), _STEP_LABEL - 2, pen.glyphs)
        lines.append(
            pen.fit(
                [
                    (f" {label:<{_STEP_LABEL - 1}}", "dim"),
                    *_cells(mine, whole, room, pen.glyphs),
                    (f" {took:>8}", "text"),
                ]
            )
        )
    return lines


def _cells(spans: Sequence[StepSpan], whole: int, room: int, glyphs: Glyphs) -> list[Span]:
    """The cells of the spans of one name; one that is shorter than a cell has one."""
    taken = [False] * room
    for span in spans:
        first = min(room - 1, span.start_ps * room // whole)
        last = max(first + 1, round(span.end_ps * room / whole))
        taken[first:last] = [True] * (min(last, room) - first)
    fancy, plain, style = _KINDS[span_kind(spans[0].name)]
    filled, empty = (plain, " ") if glyphs.is_ascii else (fancy, " ")
    return [
        ((filled if is_in else empty) * len(list(cells)), style if is_in else "text") for is_in, cells in groupby(taken)
    ]


def report_lines(
    page: TpuKernelsPage, several: Sequence[Variant], pen: Pen, most: int, card_of: int | None
) -> list[Line]:
    """The whole page as text: the answer, the table, then the card of the first kernel, or of the one asked for."""
    lines = pen.wrap(page.statement, "strong", [(" ", "text")]) if page.statement else []
    if card_of is None and page.kernels:
        columns = screen_columns(CALLS, page, pen.glyphs)
        lines += first_rows(columns, range(len(page.kernels)), most, pen)
    if several:
        columns = screen_columns(VARIANTS, several, pen.glyphs)
        lines.append(pen.rule("Which block size", "by the device's time of the median run"))
        lines += first_rows(columns, range(len(several)), most, pen, "")
    shown = 0 if card_of is None and page.kernels else card_of
    if shown is not None:
        lines += [pen.rule(page.kernels[shown].op), *kernel_card(page.kernels[shown], pen)]
    return lines
