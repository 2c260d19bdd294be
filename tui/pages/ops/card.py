"""The card of what is under the cursor: an op, a group of ops, a framework op, an instruction inside a fusion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tpuprof.tui.draw.bars import CLASS_STYLE, small_bar
from tpuprof.tui.draw.format import byte_rate, count, duration, flop_rate, intensity, percent, share, size
from tpuprof.tui.draw.layout import clean, fit, wrap
from tpuprof.tui.draw.source_lines import excerpt_lines
from tpuprof.tui.draw.spans import CLASS_LETTER, Glyphs, Line, Span, StyleKey
from tpuprof.tui.pages.ops.fields.common import IMPLAUSIBLE, bandwidth_style, flops_style, short_program
from tpuprof.tui.pages.ops.fields.common import used as used_words

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import Instruction
    from tpuprof.parsers.ops.device import Peaks
    from tpuprof.parsers.ops.roofline import Rates
    from tpuprof.parsers.pages.ops.details import OpDetails, ShapeNote
    from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
    from tpuprof.parsers.pages.ops.op_profile import OpProfilePage, OpTree
    from tpuprof.parsers.pages.ops.ops import OpsPage
    from tpuprof.tui.draw.source_lines import SourceExcerpt

LABEL = 9
"""Cells of a label, with the blank behind it."""

HOST_MEMORY = 5
"""Memory space of arrays that lie in the host's memory."""

_HBM, _CHIP_READ, _CHIP_WRITE = 0, 1, 2
_MOST_SHAPES = 4


def op_card(
    page: OpsPage, details: OpDetails, width: int, glyphs: Glyphs, excerpt: SourceExcerpt | None = None
) -> list[Line]:
    """Everything about one HLO op, what matters most first."""
    ascii_only, row, table = glyphs.name == "ascii", details.row, page.table
    kind = page.op_class[row]
    lines = wrap(table.name[row], width, "strong", glyphs)
    category = clean(table.category[row] or "category unknown", ascii_only)
    words = f"{category} {glyphs.dot} {kind} {glyphs.dot} {clean(short_program(page.program[row], glyphs), ascii_only)}"
    lines.append(fit([(f"{CLASS_LETTER[kind]} ", CLASS_STYLE[kind]), (words, "dim")], width, glyphs))
    number = int(table.occurrences[row])
    average = duration(int(table.self_ps[row]) / max(1, number), ascii_only)
    time = f"{count(number)} {glyphs.times} {average} = {duration(int(table.self_ps[row]), ascii_only)}"
    time += f", {share(float(page.self_fraction[row]))} of all"
    lines += _entry("time", time, width, glyphs)
    if int(table.total_ps[row]) != int(table.self_ps[row]):
        total = f"{duration(int(table.total_ps[row]), ascii_only)} with the ops inside it"
        lines += _entry("", total, width, glyphs)
    lines += _resources(page.rates, row, page.peaks, width, glyphs)
    lines += _verdict(page, row, width, glyphs)
    if any(note.shape.memory_space == HOST_MEMORY for note in details.shapes):
        words = "S(5) is host memory: the link to the host may bound it, whose peak the profile does not give"
        lines += _entry("memory", words, width, glyphs)
    if page.time_scale is not None:
        scale = float(table.normalized_ps[row]) / max(1, int(table.total_ps[row]))
        lines += _entry("clock", f"{glyphs.times}{scale:.3f} of nominal (DVFS)", width, glyphs)
    stall = float(table.dma_stall_ps[row])
    if math.isfinite(stall):
        lines += _entry("stalled", f"{share(stall / max(1, int(table.total_ps[row])))} waiting for DMA", width, glyphs)
    lines += _matrix(details, width, glyphs) + _padding(details, width, glyphs)
    if table.framework_op[row]:
        lines += _entry("op", clean(table.framework_op[row].rstrip(":"), ascii_only), width, glyphs)
    lines += _source(details, excerpt, width, glyphs)
    return lines + _expression(details, width, glyphs)


def group_card(page: OpProfilePage, tree: OpTree, node: int, width: int, glyphs: Glyphs) -> list[Line]:
    """A program, category, scope or group of duplicates: its time, its rates, and what of it takes longest."""
    ascii_only = glyphs.name == "ascii"
    lines = wrap(tree.name[node], width, "strong", glyphs)
    kind = {"root": "all ops", "duplicates": "copies of one op"}.get(tree.kind[node], tree.kind[node])
    inside = tree.child_count(node)
    lines.append(fit([(f"{kind} {glyphs.dot} {count(inside)} inside", "dim")], width, glyphs))
    time = f"{duration(int(tree.time_ps[node]), ascii_only)}, {share(float(tree.time_fraction[node]))} of all"
    lines += _entry("time", time, width, glyphs)
    if tree.kind[node] == "idle":
        cores = page.ops.core_count
        note = f"no op ran on a core; summed over {cores} core{'s' * (cores != 1)}, gaps between steps included"
        return lines + _entry("idle", note, width, glyphs)
    lines += _resources(tree.rates, node, page.ops.peaks, width, glyphs)
    wasted = f"{share(float(tree.wasted_fraction[node]))} of all time: what the better used of FLOPS and HBM leaves"
    lines += _entry("wasted", wasted, width, glyphs)
    for index, child in enumerate(tree.children(node)[:3].tolist()):
        words = f"{share(float(tree.time_fraction[child]))} {clean(tree.name[child], ascii_only)}"
        lines += _entry("" if index else "longest", words, width, glyphs)
    return lines


def instruction_card(instruction: Instruction, width: int, glyphs: Glyphs) -> list[Line]:
    """An instruction inside a fusion, which has no time of its own."""
    ascii_only = glyphs.name == "ascii"
    lines = wrap(instruction.name, width, "strong", glyphs)
    lines.append(fit([(clean(instruction.opcode, ascii_only), "dim")], width, glyphs))
    lines += _entry("time", "part of the fusion's; the profile times fusions whole", width, glyphs)
    for label, text in (("op", instruction.framework_op), ("source", instruction.source)):
        if text:
            lines += _entry(label, clean(text, ascii_only), width, glyphs)
    return lines + _entry("HLO", clean(instruction.expression, ascii_only), width, glyphs)


def framework_card(page: FrameworkOpsPage, ops: OpsPage, row: int, width: int, glyphs: Glyphs) -> list[Line]:
    """A framework op: its time, its rates, and the HLO op that takes most of it."""
    ascii_only = glyphs.name == "ascii"
    lines = wrap(page.name[row], width, "strong", glyphs)
    side = "host" if page.is_host[row] else "device"
    kind = page.op_class[row]
    words = f"{clean(page.type[row] or 'type unknown', ascii_only)} {glyphs.dot} {side}"
    lines.append(fit([(f"{CLASS_LETTER[kind]} ", CLASS_STYLE[kind]), (words, "dim")], width, glyphs))
    number = int(page.occurrences[row])
    time = f"{duration(int(page.self_ps[row]), ascii_only)} self, {share(float(page.self_fraction[row]))} of the {side}"
    lines += _entry("time", f"{time}; {count(number)} occurrences", width, glyphs)
    if page.is_host[row]:
        return lines
    lines += _resources(page.rates, row, ops.peaks, width, glyphs)
    main = int(page.main_op[row])
    if main >= 0:
        longest = f"{clean(ops.table.name[main], ascii_only)}, {share(float(ops.self_fraction[main]))} of all time"
        lines += _entry("longest", f"{longest}  (o: go there)", width, glyphs)
    return lines


# --- parts ---------------------------------------------------------------------------------------------------------


def _entry(label: str, text: str, width: int, glyphs: Glyphs, key: StyleKey = "text") -> list[Line]:
    return wrap(text, width, key, glyphs, [(f"{label:<{LABEL}}", "dim")])


def _resources(rates: Rates, row: int, peaks: Peaks, width: int, glyphs: Glyphs) -> list[Line]:
    """FLOP/s, HBM and on-chip bandwidth against their peaks, a bar each."""
    flops = flop_rate(float(rates.flops_per_second[row]) / 1e9)
    hbm, read, write = (byte_rate(float(rates.bandwidth[row, index])) for index in (_HBM, _CHIP_READ, _CHIP_WRITE))
    used = rates.bandwidth_utilization[row]
    top = flop_rate(None if peaks.flops_per_second is None else peaks.flops_per_second / 1e9)
    lines = [
        _meter("FLOP/s", flops, top, float(rates.flops_utilization[row]), True, width, glyphs),
        _meter("HBM", hbm, byte_rate(peaks.hbm), float(used[_HBM]), False, width, glyphs),
    ]
    for label, rate, peak, index in (
        ("chip rd", read, peaks.on_chip_read, _CHIP_READ),
        ("chip wr", write, peaks.on_chip_write, _CHIP_WRITE),
    ):
        if float(rates.bandwidth[row, index] or 0) > 0:
            lines.append(_meter(label, rate, byte_rate(peak), float(used[index]), False, width, glyphs))
    return lines


def _meter(label: str, rate: str, peak: str, used: float, is_flops: bool, width: int, glyphs: Glyphs) -> Line:
    key = flops_style(used) if is_flops else bandwidth_style(used)
    unit = "" if is_flops else "B/s"
    known = math.isfinite(used)
    words = f"{rate:>6}{unit if rate[-1:].isalpha() and rate != 'n/a' else ''} of {peak}"
    spans: list[Span] = [(f"{label:<{LABEL}}", "dim"), (f"{words:<18}", "text"), (f"{used_words(used):>6} ", key)]
    room = min(12, width - sum(len(text) for text, _ in spans) - 1)
    if known and room >= 3:
        filled, empty = small_bar(min(1.0, used), room, glyphs)
        spans += [(filled, key), (empty, "rule")]
    return fit(spans, width, glyphs)


def _verdict(page: OpsPage, row: int, width: int, glyphs: Glyphs) -> list[Line]:
    """What bounds the op, and how much of its time is below the roof."""
    bound = page.rates.bound_name(row)
    if bound == "unknown":
        return _entry("bound by", "unknown: no FLOPs or bytes are counted for it, or no peaks are known", width, glyphs)
    efficiency = float(page.rates.efficiency[row])
    if efficiency > IMPLAUSIBLE:
        words = f"unknown: its work would take {efficiency:.3g} times the peak of {bound}. "
        words += "It runs asynchronously, so that its work is not done in its time"
        return _entry("bound by", words, width, glyphs)
    words = f"{bound}, {share(efficiency)} of the roof"
    value = float(page.rates.operational_intensity[row])
    if math.isfinite(value) and value > 0:
        words += f"; {intensity(value)} FLOP/byte"
    return _entry("bound by", words, width, glyphs)


def _matrix(details: OpDetails, width: int, glyphs: Glyphs) -> list[Line]:
    """What share of the matrix unit the op's dots and convolutions can use, the worst one first."""
    known = sorted((work for work in details.matrix if work.share is not None), key=lambda work: work.share or 0.0)
    if not known:
        return []
    work = known[0]
    assert work.share is not None
    sizes = f"m {_padded(work.m, work.padded_m, glyphs)} {glyphs.times} k {_padded(work.k, work.padded_k, glyphs)} "
    sizes += f"{glyphs.times} n {_padded(work.n, work.padded_n, glyphs)}"
    words = f"{share(work.share)} of it can work: {sizes}"
    if work.padded_dimension is not None:
        words += f"; padded most: {work.padded_dimension} ({work.meaning})"
    words += f", estimated for {details.mxu_side}{glyphs.times}{details.mxu_side}"
    if len(known) > 1:
        words += f"; {len(known) - 1} more inside"
    key: StyleKey = "good" if work.share >= 0.9 else "warn" if work.share >= 0.5 else "bad"
    return _entry("matrix", words, width, glyphs, key)


def _padded(plain: int | None, padded: int | None, glyphs: Glyphs) -> str:
    return count(plain) if plain == padded else f"{count(plain)}{glyphs.arrow}{count(padded)}"


def _padding(details: OpDetails, width: int, glyphs: Glyphs) -> list[Line]:
    """The shapes that tiling makes larger: from what to what, and how much."""
    padded = details.padded
    lines: list[Line] = []
    for index, note in enumerate(padded[:_MOST_SHAPES]):
        lines += _entry("" if index else "padding", _padding_words(note, glyphs), width, glyphs, _padding_style(note))
    if len(padded) > _MOST_SHAPES:
        lines += _entry("", f"and {len(padded) - _MOST_SHAPES} more padded shapes", width, glyphs, "dim")
    if not padded and details.is_padding_known:
        lines += _entry("padding", "none worth naming: its arrays fill their tiles", width, glyphs, "dim")
    return lines


def _padding_words(note: ShapeNote, glyphs: Glyphs) -> str:
    shape = note.shape
    dimensions = shape.padded_dimensions or shape.dimensions
    changed = [_padded(a, b, glyphs) for a, b in zip(shape.dimensions, dimensions, strict=True)]
    sizes = f"{size(shape.unpadded_bytes or 0)} {glyphs.arrow} {size(shape.padded_bytes or 0)}"
    tile = "".join(f"({','.join(map(str, tile))})" for tile in shape.tiles)
    shown = f"{shape.element_type}[{','.join(changed)}]"
    return f"{shape.expansion or 1.0:.2f}{glyphs.times} {shown} tile {tile}: {sizes}"


def _padding_style(note: ShapeNote) -> StyleKey:
    expansion = note.shape.expansion or 1.0
    return "bad" if expansion >= 2 else "warn" if expansion >= 1.1 else "text"


def _source(details: OpDetails, excerpt: SourceExcerpt | None, width: int, glyphs: Glyphs) -> list[Line]:
    ascii_only = glyphs.name == "ascii"
    if not details.source and not details.source_stack:
        return []
    lines = _entry("source", clean(details.source or details.source_stack[-1], ascii_only), width, glyphs)
    if excerpt is not None:
        lines += excerpt_lines(excerpt, width, glyphs)
    callers = [line for line in details.source_stack if line != details.source]
    for index, caller in enumerate(callers[-4:][::-1]):
        lines += _entry("" if index else "called", clean(caller, ascii_only), width, glyphs, "dim")
    return lines


def _expression(details: OpDetails, width: int, glyphs: Glyphs) -> list[Line]:
    """The HLO text; shapes that are padded stand out."""
    if not details.expression:
        return _entry("HLO", "the profile has no text for this op", width, glyphs, "dim")
    text = clean(details.expression, glyphs.name == "ascii")
    lines = _entry("HLO", text, width, glyphs)
    return lines + (_entry("", "cut here; the text is longer", width, glyphs, "warn") if details.is_cut else [])


def machine_line(page: OpsPage, width: int, glyphs: Glyphs) -> Line:
    """What the ops ran on, and the device's peaks."""
    ascii_only = glyphs.name == "ascii"
    peaks = page.peaks
    parts = [clean(page.device_type or "device unknown", ascii_only), f"{page.core_count} cores"]
    if peaks.flops_per_second is not None:
        parts.append(f"{flop_rate(peaks.flops_per_second / 1e9)}FLOP/s")
    if peaks.hbm is not None:
        parts.append(f"HBM {byte_rate(peaks.hbm)}B/s")
    if page.time_scale is not None:
        parts.append(f"clock {percent(100 * page.time_scale)} of nominal")
    return fit([(f" {glyphs.dot} ".join(parts), "dim")], width, glyphs)
