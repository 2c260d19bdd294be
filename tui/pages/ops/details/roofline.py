"""The roofline page in cells: the plot, and a line of figures on the device and the program."""

from __future__ import annotations

import math

from tpuprof.parsers.pages.ops.roofline import RooflinePage, RooflinePoints
from tpuprof.tui.draw.format import byte_rate, count, intensity, share, with_unit
from tpuprof.tui.draw.loglog import roofline_plot
from tpuprof.tui.draw.loglog_scene import Point, Roof
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import CLASS_LETTER, CLASS_STYLE, Line, Span
from tpuprof.tui.report.units import GFLOPS

DECADES_BELOW_PEAK = 6

MOST_POINTS = 2000  # ops with a point of their own in the plot: those with most self time


def roofline_chart(page: RooflinePage, pen: Pen, height: int, row: int | None = None) -> list[Line]:
    """Lines of figures and the plot below them; `row` is the op under the cursor, in the ops page."""
    above = metrics(page, pen)
    return [*above, *plot(page, pen, height - len(above), row)]


def metrics(page: RooflinePage, pen: Pen) -> list[Line]:
    """The peaks, and how near program and steps come to the roof."""
    peaks = page.ops.peaks
    device = page.ops.device_type or "device unknown"
    spans: list[Span] = [(f" {device}", "strong")]
    if peaks.flops_per_second is None and peaks.hbm is None:
        return [pen.fit([*spans, ("  its peaks are not in this profile: there is no roof", "dim")])]
    spans += [("  peak ", "dim"), (with_unit(GFLOPS.words(peaks.flops_per_second, False), "FLOP/s"), "text")]
    spans += [("  HBM ", "dim"), (with_unit(byte_rate(peaks.hbm), "B/s"), "text")]
    if peaks.vmem_read is not None and pen.width >= 100:
        spans += [("  VMEM read ", "dim"), (with_unit(byte_rate(peaks.vmem_read), "B/s"), "text")]
        spans += [(" write ", "dim"), (with_unit(byte_rate(peaks.vmem_write), "B/s"), "text")]
    spans += [("  ridge ", "dim"), (f"{intensity(peaks.ridge_point)} FLOP/B", "text")]
    program: list[Span] = [(" P", "strong"), (" program ", "dim"), *_reached(page.program)]
    if len(page.average_step):
        steps = len(page.steps)
        reached = share(float(page.average_step.rates.efficiency[0]))
        program += [("  s", "strong"), (f" {steps} step{'s' * (steps != 1)} ", "dim"), (reached, "strong")]
    missing = _not_drawn(page)
    if sum(len(text) for text, _ in (*program, *missing)) + 1 > pen.width:
        return [pen.fit(spans), pen.fit(program), pen.fit(missing)]
    return [pen.fit(spans), pen.fit([*program, (" ", "text"), *missing])]


def _not_drawn(page: RooflinePage) -> list[Span]:
    """How many ops have no point: without FLOPs or bytes there is no place for them on logarithmic axes."""
    rates = page.ops.rates
    has_flops, has_bytes = rates.flops_per_second > 0, rates.bounding_intensity > 0
    slow = page.counts & has_flops & has_bytes & (rates.flops_per_second <= _floor(page))
    groups = (
        (page.counts & ~has_flops, "without FLOPs"),
        (page.counts & has_flops & ~has_bytes, "without bytes"),
        (slow, f"below {with_unit(GFLOPS.words(_floor(page), False), 'FLOP/s')}"),
    )
    parts = [
        f"{count(int(rows.sum()))} {words} ({share(float(page.ops.self_fraction[rows].sum()))})"
        for rows, words in groups
        if rows.any()
    ]
    return [(f" not plotted: {', '.join(parts)}", "dim")] if parts else []


def _floor(page: RooflinePage) -> float:
    """FLOP/s below which an op has no point: it would make the plot so high that no one sees the roof."""
    return (page.ops.peaks.flops_per_second or 0.0) * 10.0**-DECADES_BELOW_PEAK


def _reached(points: RooflinePoints) -> list[Span]:
    """How near the first point is to the roof, and to which part of it."""
    rates = points.rates
    bound, efficiency = rates.bound_name(0), float(rates.efficiency[0])
    if bound == "unknown":
        return [("unknown", "dim")]
    words = f" of roof, {bound}-bound, {intensity(float(rates.operational_intensity[0]))} FLOP/B"
    return [(share(efficiency), "strong"), (words, "text")]


def plot(page: RooflinePage, pen: Pen, height: int, row: int | None = None) -> list[Line]:
    """The ops, coloured by class, the steps and the program under the roof."""
    rates, fraction = page.ops.rates, page.ops.self_fraction
    intensities = rates.bounding_intensity
    points: list[Point] = []
    cursor, floor = None, _floor(page)
    shown = [index for index in range(min(len(page.ops), MOST_POINTS)) if page.counts[index]]
    if row is not None and row >= MOST_POINTS and page.counts[row]:
        shown.append(row)
    for index in shown:
        x, y = float(intensities[index]), float(rates.flops_per_second[index])
        if not (math.isfinite(x) and math.isfinite(y) and x > 0 and y > floor):
            continue
        if index == row:
            cursor = len(points)
        kind = page.ops.op_class[index]
        weight = float(fraction[index]) if math.isfinite(float(fraction[index])) else 0.0
        points.append(Point(x, y, CLASS_STYLE[kind], CLASS_LETTER[kind], weight))
    points += _whole(page.steps, "s") + _whole(page.program, "P")
    return roofline_plot(points, _roofs(page), page.ops.peaks.flops_per_second, pen, height, cursor)


def _whole(points: RooflinePoints, letter: str) -> list[Point]:
    """Steps or the program: they stand before the ops that share their cell."""
    rates = points.rates
    pairs = zip(rates.bounding_intensity.tolist(), rates.flops_per_second.tolist(), strict=True)
    weight = 1.0 if letter == "P" else 0.5
    return [Point(x, y, "strong", letter, weight, is_spelt=True) for x, y in pairs if x > 0 and y > 0]


def _roofs(page: RooflinePage) -> list[Roof]:
    peaks = page.ops.peaks
    rates = peaks.hbm, peaks.cmem_read, peaks.cmem_write, peaks.vmem_read, peaks.vmem_write
    names = "HBM", "CMEM rd", "CMEM wr", "VMEM rd", "VMEM wr"
    return [Roof(name, rate) for name, rate in zip(names, rates, strict=True) if rate is not None]
