"""The card of what is under the cursor: an op, a group of ops, a framework op, an instruction inside a fusion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import factor_text
from tpuprof.parsers.files.source_lines import SourceExcerpt
from tpuprof.parsers.ops.roofline import AT_THE_PEAK, Rates, above_peak
from tpuprof.parsers.ops.streams.attribution import kernel_name
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage, above_peak_of_ops, most_above
from tpuprof.tui.draw.format import UNKNOWN, byte_rate, count, duration, intensity, share, size
from tpuprof.tui.draw.pen import Card, Pen, cut_middle, label_span
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, small_bar
from tpuprof.tui.pages.ops.fields.common import roof_style, short_program
from tpuprof.tui.pages.ops.fields.common import used as used_words
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS
from tpuprof.tui.pages.ops.tree import class_of
from tpuprof.tui.report.fields import row_words
from tpuprof.tui.report.units import GFLOPS

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import Instruction
    from tpuprof.parsers.formats.hlo.shapes import Shape
    from tpuprof.parsers.ops.device import Peaks
    from tpuprof.parsers.pages.ops.details import OpDetails
    from tpuprof.parsers.pages.ops.kernels.call_units import KernelRow
    from tpuprof.parsers.pages.ops.kernels.gpu import KernelsPage
    from tpuprof.parsers.pages.ops.op_profile import OpProfilePage, OpTree
    from tpuprof.parsers.pages.ops.ops import OpsPage
    from tpuprof.parsers.pages.ops.sources import SourcesPage
    from tpuprof.parsers.pages.program.ops import ProgramOp

CARD = (
    ("time", "self time, all occurrences and cores together, and its share of the self time of all ops."),
    ("clock", "how fast the core's clock ran against the nominal one, where the profile says so."),
    ("stalled", "the part of its time in which it waited for a copy by DMA."),
    ("bound by", "which roof of the device limits it, by its FLOPs per byte, and how close it comes to that roof."),
    ("matrix", "the sizes of a matrix product, and the sizes that the matrix unit pads them to."),
    (
        "tiles",
        "how often the compiler's tiles of a product stream its arrays from HBM, and what they are told to take.",
    ),
    ("padding", "shapes that do not fill their tiles: wasted memory and work."),
    ("source, called", "the line of code that made it, and its call stack."),
)
"""What the figures on the card of an op are called and mean."""

LABEL = 9  # cells of a label, with the blank behind it
_IN_HOST_MEMORY = "S(5) is host memory: the host link may bound the op, but its peak is not in the profile"

_MOST_SHAPES, _MOST_STACKS = 4, 8
_SCOPE = 60


def op_card(
    page: OpsPage,
    details: OpDetails,
    pen: Pen,
    excerpt: SourceExcerpt | None = None,
    op_count: int = 1,
    uses: Sequence[KernelRow] = (),
    compiled: ProgramOp | None = None,
) -> list[Line]:
    """Everything about one HLO op, what matters most first; or about a group of ops, with the texts of the longest.

    Of a custom call, `uses` is what it and its scopes use of the units; `compiled` is what its program says of it.
    """
    card, row, table = Card(pen, LABEL), details.row, page.table
    kind, program = page.op_class[row], short_program(page.program[row], pen.glyphs)
    card.head(table.name[row], (table.category[row] or "category unknown", kind, program), kind)
    if op_count > 1:
        card.entry("group", f"{count(op_count)} clones, added up; texts and shapes are those of the longest")
    number, own, total = int(table.occurrences[row]), int(table.self_ps[row]), int(table.total_ps[row])
    time = f"{count(number)} {pen.glyphs.times} {duration(own / max(1, number))} = {duration(own)}"
    fraction = float(page.self_fraction[row])
    card.entry("time", f"{time}, {share(fraction)} of all" if math.isfinite(fraction) else time)
    if total != own:
        card.entry("", f"{duration(total)} with the ops inside it")
    _resources(card, page.rates, row, page.peaks, kind)
    is_of_host = any(note.shape.is_in_host_memory for note in details.shapes)
    _verdict(card, page, row, is_of_host)
    _units(card, uses)
    if is_of_host:
        card.entry("memory", _IN_HOST_MEMORY)
    if page.time_scale is not None:
        scale = float(table.normalized_ps[row]) / max(1, total)
        card.entry("clock", f"{pen.glyphs.times}{scale:.3f} of nominal (DVFS)")
    stall = float(table.dma_stall_ps[row])
    if math.isfinite(stall):
        card.entry("stalled", f"{share(stall / max(1, total))} waiting for DMA")
    _matrix(card, details)
    _tiles(card, compiled)
    _padding(card, details)
    card.known("op", table.framework_op[row].rstrip(":"))
    _core(card, page, row)
    _source(card, details, excerpt)
    if not details.expression:
        card.entry("HLO", "the profile has no text for this op", "dim")
        return card.lines
    card.entry("HLO", details.expression)
    if details.is_cut:
        card.entry("", "cut here; the text is longer", "warn")
    return card.lines


def group_card(page: OpProfilePage, tree: OpTree, node: int, pen: Pen) -> list[Line]:
    """A program, category, scope or group of duplicates: its time, its rates, and what of it takes longest."""
    card = Card(pen, LABEL)
    kind = {"root": "all ops", "duplicates": "copies of one op"}.get(tree.kind[node], tree.kind[node])
    inside = [f"{count(tree.child_count(node))} inside"] if tree.child_count(node) else []
    card.head(tree.name[node], (kind, *inside))
    card.entry("time", f"{duration(int(tree.time_ps[node]))}, {share(float(tree.time_fraction[node]))} of all")
    if tree.kind[node] == "idle":
        place = page.ops.runs_on
        summed = f"summed over {counted(page.ops.core_count, place)}, gaps between steps included"
        card.entry("idle", f"no op ran on {'any' if place == 'host thread' else 'a'} {place}; {summed}")
        return card.lines
    _resources(card, tree.rates, node, page.ops.peaks, class_of(page, tree, node))
    if float(np.nan_to_num(tree.rates.efficiency[node])) > 1:
        _above(card, most_above(page.ops, tree.ops_under(node)))
    wasted = share(float(tree.wasted_fraction[node]))
    card.entry("wasted", f"{wasted} of all time: lost against the nearer roof, FLOPS or HBM")
    for index, child in enumerate(tree.children(node)[:3].tolist()):
        card.entry("" if index else "longest", f"{share(float(tree.time_fraction[child]))} {tree.name[child]}")
    return card.lines


def line_card(page: SourcesPage, row: int, excerpt: SourceExcerpt | None, pen: Pen) -> list[Line]:
    """What the card of a line of code has beside that of any group: the code, and the calls that led there."""
    card = Card(pen, LABEL)
    reached = float(page.rates.efficiency[row])
    if math.isfinite(reached):
        card.entry("roof", f"{used_words(reached)} of {page.rates.peak_name(row)}")
    ops, runs = counted(int(page.op_count[row]), "op"), counted(int(page.occurrences[row]), "run")
    card.entry("ops", f"{ops}, {runs}; {share(float(page.op_fraction[row]))} of the op time")
    card.known("in", page.function[row] or page.scope[row])
    if not page.source[row]:
        card.entry("source", "the compiler added these ops itself, or the profile has lost their source")
    if excerpt is not None:
        card.lines += pen.excerpt(excerpt)
    card.known("own line", page.caller[row])
    everything = int(page.self_ps[row]) or 1
    for stack in page.stacks[row][:_MOST_STACKS]:
        part = f", {share(stack.self_ps / everything)} of it" if len(page.stacks[row]) > 1 else ""
        card.entry("called", f"from, outermost first{part}:", "dim")
        for call in stack.calls:
            card.entry("", call)
    left = len(page.stacks[row]) - _MOST_STACKS
    if left > 0:
        card.entry("", f"and {counted(left, 'more call stack')}", "dim")
    return card.lines


def instruction_card(instruction: Instruction, pen: Pen) -> list[Line]:
    """An instruction inside a fusion, which has no time of its own."""
    card = Card(pen, LABEL)
    card.head(instruction.name, (instruction.opcode,))
    card.entry("time", "part of the fusion's time: the profile times only whole fusions")
    card.known("op", instruction.framework_op)
    card.known("source", instruction.source)
    card.entry("HLO", instruction.expression)
    return card.lines


def framework_card(page: FrameworkOpsPage, ops: OpsPage, row: int, pen: Pen, op_count: int = 1) -> list[Line]:
    """A framework op, or a type of so many: its time, its rates, and the HLO op that takes most of it."""
    card, side = Card(pen, LABEL), "host" if page.is_host[row] or ops.runs_on == "host thread" else "device"
    card.head(page.name[row], (page.type[row] or "type unknown", side), page.op_class[row])
    time = f"{duration(int(page.self_ps[row]))} self, {share(float(page.self_fraction[row]))} of the {side}"
    card.entry("time", f"{time}; {count(int(page.occurrences[row]))} occurrences")
    if op_count > 1:
        card.entry("type", f"of {count(op_count)} framework ops, added up; Enter shows them")
    if page.is_host[row]:
        return card.lines
    _resources(card, page.rates, row, ops.peaks, page.op_class[row])
    if op_count == 1:
        _above(card, above_peak_of_ops(page, ops, np.array([row]))[0])
    main = int(page.main_op[row])
    if main >= 0:
        of_all = share(float(ops.self_fraction[main]))
        card.entry("longest", f"{ops.table.name[main]}, {of_all} of all time  (o: go there)")
    return card.lines


def kernel_card(page: KernelsPage, row: int, pen: Pen) -> list[Line]:
    """A GPU kernel: its time, what launched it and how."""
    card, kernel = Card(pen, LABEL), page.kernels[row]
    card.head(cut_middle(kernel_name(kernel.name), pen.width, pen.glyphs), ("kernel",))
    number, total = kernel.occurrences, kernel.total_ps
    time = f"{count(number)} {pen.glyphs.times} {duration(total / number)} = {duration(total)}"
    card.entry("time", f"{time}, {share(float(page.fraction[row]))} of all kernels")
    if number > 1:
        card.entry("", f"from {duration(kernel.minimum_ps)} to {duration(kernel.maximum_ps)}")
    words = "used, by its name" if kernel.uses_tensor_cores else "not used, by its name"
    if not kernel.uses_tensor_cores and kernel.is_eligible:
        words += ", although its framework op could use them"
    card.entry("tensor", words, "good" if kernel.uses_tensor_cores else "warn" if kernel.is_eligible else "text")
    card.known("op", kernel.framework_op)
    if kernel.op and kernel.op != kernel.framework_op:
        card.entry("part of", f"{kernel.op}  (o: go there)")
    card.entry("launch", f"grid {kernel.grid or UNKNOWN}, block {kernel.block or UNKNOWN}")
    registers = count(kernel.registers)
    shared = UNKNOWN if kernel.shared_bytes is None else size(kernel.shared_bytes)
    card.entry("", f"{registers} registers a thread, {shared} of shared memory a block")
    card.entry("", f"theoretical occupancy {share(kernel.occupancy)}")
    card.entry("name", kernel.name, "dim")
    return card.lines


def _units(card: Card, uses: Sequence[KernelRow]) -> None:
    """What a custom call uses of the units by the compiler's count, as a whole, then by scope: the most used first."""
    for scope, of_scope in groupby(uses, lambda row: row.use.scope):
        rows = sorted(of_scope, key=lambda row: -(row.share or 0.0))
        words = ", ".join(f"{row.use.unit} {share(row.share)}" for row in rows)
        if scope:
            time = duration(rows[0].use.time_ps)
            card.entry("", f"in {scope[:_SCOPE]}, {time}: {words}", "dim")
        else:
            card.entry("units", f"{words} (LLO: the compiler's count, over measured time)")


# --- parts ---------------------------------------------------------------------------------------------------------


def _resources(card: Card, rates: Rates, row: int, peaks: Peaks, kind: OpClass | None) -> None:
    """FLOP/s, HBM and on-chip bandwidth against their peaks, a bar each."""
    flops, top = (GFLOPS.words(rate, False) for rate in (float(rates.flops_per_second[row]), peaks.flops_per_second))
    used = float(rates.flops_utilization[row])
    card.lines.append(_meter(card, "FLOP/s", f"{flops:>6} of {top}", used, roof_style(rates, row, "compute", kind)))
    memories = (("HBM", peaks.hbm), ("chip rd", peaks.on_chip_read), ("chip wr", peaks.on_chip_write))
    for index, (label, peak) in enumerate(memories):  # as the first columns of `TRAFFIC`
        moved, used = float(rates.bandwidth[row, index]), float(rates.bandwidth_utilization[row, index])
        if index == 0 or moved > 0:
            words = f"{byte_rate(moved):>6} of {byte_rate(peak)}{' B/s' if peak is not None else ''}"
            key = roof_style(rates, row, "HBM", kind) if index == 0 else "text"
            card.lines.append(_meter(card, label, words, used, key))


def _meter(card: Card, label: str, words: str, used: float, key: StyleKey) -> Line:
    shown = used_words(used).rstrip("!")
    spans: list[Span] = [label_span(label, LABEL), (f"{words:<19}", "text"), (f"{shown:>6} ", key)]
    room = min(12, card.pen.width - sum(len(text) for text, _ in spans) - 1)
    if math.isfinite(used) and room >= 3:
        filled, empty = small_bar(min(1.0, used), room, card.pen.glyphs)
        spans += [(filled, key), (empty, "rule")]
    return card.pen.fit(spans)


def _verdict(card: Card, page: OpsPage, row: int, is_of_host: bool) -> None:
    """What bounds the op, and how much of its time is below the roof."""
    bound, efficiency = page.rates.bound_name(row), float(page.rates.efficiency[row])
    if bound == "unknown" or (bound == "HBM" and is_of_host):
        words = "unknown: no FLOPs or bytes are counted for it, or no peaks are known"
    elif efficiency > AT_THE_PEAK:
        words = f"unknown: its work would take {efficiency:.3g} times the peak of {bound}"
    else:
        words, value = f"{bound}, {share(efficiency)} of the roof", float(page.rates.operational_intensity[row])
        words += f"; {intensity(value)} FLOP/byte" if math.isfinite(value) and value > 0 else ""
    card.entry("bound by", words)
    _above(card, above_peak(page.table, page.rates, [row])[0])


def _above(card: Card, why: str | None) -> None:
    if why is not None:
        card.entry(">100%", why, "warn")


def _core(card: Card, page: OpsPage, row: int) -> None:
    """What ran the op and for whom, and the flags and the energy that HLO stats have of it."""
    keys = ("core_type", "remat", "outside_compilation", "autotuned", "energy_joules")
    core, remat, outside, tuned, energy = row_words(HLO_OPS, keys, page, row, card.pen.glyphs.is_ascii)
    parent = page.table.parent[row]
    words = f"{core}, for {parent} of the TensorCore" if parent else core
    words += f"; remat {remat}; outside compilation {outside}; autotuned {tuned}; energy {energy}"
    card.entry("core", words)


def _matrix(card: Card, details: OpDetails) -> None:
    """What share of the matrix unit the op's dots and convolutions can use, the worst one first."""
    known = [(work.share, work) for work in details.matrix if work.share is not None]
    if not known:
        return
    part, work = min(known, key=lambda pair: pair[0])
    times = card.pen.glyphs.times
    sizes = zip("mkn", (work.m, work.k, work.n), (work.padded_m, work.padded_k, work.padded_n), strict=True)
    shown = f" {times} ".join(f"{name} {_padded(plain, padded, card.pen.glyphs)}" for name, plain, padded in sizes)
    words = f"{share(part)} of {details.mxu_side}{times}{details.mxu_side} filled (estimate): {shown}"
    if work.padded_dimension is not None:
        words += f"; padded most: {work.padded_dimension} ({work.meaning})"
    words += f"; {len(known) - 1} more inside" if len(known) > 1 else ""
    card.entry("matrix", words, "good" if part >= 0.9 else "warn" if part >= 0.5 else "bad")


def _tiles(card: Card, op: ProgramOp | None) -> None:
    """What its tiles stream, and what is told beside what was measured."""
    if op is None or op.bound_ps is None or not op.tile_words:
        return
    card.entry("tiles", op.tile_words)
    if op.told_ps is None:
        card.entry("", f"at least {duration(op.bound_ps)}; no more is claimed: {op.reason}", "dim")
        return
    low, high = map(duration, op.told_ps)
    took = "" if op.times is None else f"; took {factor_text(op.times)} of told"
    card.entry("", f"told {low} to {high}, at least {duration(op.bound_ps)}{took}")


def _padded(plain: int | None, padded: int | None, glyphs: Glyphs) -> str:
    return count(plain) if plain == padded else f"{count(plain)}{glyphs.arrow}{count(padded)}"


def _padding(card: Card, details: OpDetails) -> None:
    """The shapes that tiling makes larger: from what to what, and how much."""
    padded = details.padded
    for index, note in enumerate(padded[:_MOST_SHAPES]):
        expansion = note.shape.expansion or 1.0
        key: StyleKey = "bad" if expansion >= 2 else "warn" if expansion >= 1.1 else "text"
        card.entry("" if index else "padding", _padding_words(note.shape, expansion, card.pen.glyphs), key)
    if len(padded) > _MOST_SHAPES:
        card.entry("", f"and {len(padded) - _MOST_SHAPES} more padded shapes", "dim")
    if not padded and any(note.shape.padded_bytes is not None for note in details.shapes):
        card.entry("padding", "none: its arrays fill their tiles", "dim")


def _padding_words(shape: Shape, expansion: float, glyphs: Glyphs) -> str:
    both = zip(shape.dimensions, shape.padded_dimensions or shape.dimensions, strict=True)
    changed = ",".join(_padded(plain, padded, glyphs) for plain, padded in both)
    sizes = f"{size(shape.unpadded_bytes or 0)} {glyphs.arrow} {size(shape.padded_bytes or 0)}"
    tile = "".join(f"({','.join(map(str, tile))})" for tile in shape.tiles)
    return f"{expansion:.2f}{glyphs.times} {shape.element_type}[{changed}] tile {tile}: {sizes}"


def _source(card: Card, details: OpDetails, excerpt: SourceExcerpt | None) -> None:
    if not details.source and not details.source_stack:
        return
    card.entry("source", details.source or details.source_stack[-1])
    if excerpt is not None:
        card.lines += card.pen.excerpt(excerpt)
    callers = [line for line in details.source_stack if line != details.source]
    for index, caller in enumerate(callers[-4:][::-1]):
        card.entry("" if index else "called", caller, "dim")
