"""SparseCores in cells: the sentence, a step as a strip, and tables of what they ran and of who waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tpuprof.parsers.pages.sparse_core.page import SparseCorePage
from tpuprof.tui.draw.format import count, duration, percent
from tpuprof.tui.draw.pen import Pen, cut_middle, joined, label_span
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey
from tpuprof.tui.draw.table import first_rows, more_lines
from tpuprof.tui.pages.sparse_core.fields import CORES, OPS, SPLIT, WAITS
from tpuprof.tui.report.fields import Table, in_order, row_words, screen_columns
from tpuprof.tui.report.units import words_of_key

_SIGNS: dict[str, StyleKey] = {"bottleneck": "bad", "not_bottleneck": "good", "idle": "warn", "unknown": "warn"}

_LABEL = 12  # cells before a strip
_LEAST_NAME = 16

MOST_OBJECTS = 32  # Rows of a table of SparseCores, or of ops that wait; JSON and Markdown have them all.
_SEEN = 25  # percent of a cell's time from which on waiting shows, whatever else there is


def headline(page: SparseCorePage, pen: Pen) -> list[Line]:
    """The answer in a sentence or two."""
    key = _SIGNS.get(page.verdict or "", "dim")
    sign = "!" if key == "bad" else "?" if key == "warn" else " "
    return pen.wrap(page.statement, "text", [(f"{sign} " if sign != " " else " ", key)], indent=1)


def worst_step(page: SparseCorePage) -> int:
    """The step in which the TensorCores are delayed longest; the first one where none is."""
    return max(range(len(page.steps)), key=lambda index: page.steps[index].split.held_ps or 0.0, default=0)


def strip_lines(page: SparseCorePage, index: int, pen: Pen) -> list[Line]:
    """A step over time: what the TensorCore does, and below it the SparseCore; and a line on it in figures."""
    if not page.steps:
        return []
    step = page.steps[index]
    lines = [_step_line(page, index, pen)]
    if step.strip is None:
        return [*lines, pen.fit([(" only the first 2,000 steps of one host are drawn", "dim")])]
    room = max(8, pen.width - _LABEL - 3)
    work, wait, sparse = (_resampled(part, room) for part in step.strip)
    has_tensor = step.split.tensor_ps is not None
    signs = _signs(pen.glyphs)
    upper = [_upper(*both, signs) for both in zip(work, wait, strict=True)]
    lower = [
        signs["none" if of < 1 else "alone" if on < 50 and has_tensor else "both"]
        for of, on in zip(sparse, work, strict=True)
    ]
    unknown: list[Span] = [(" unknown: no ops of it in this profile", "dim")]
    for name, cells in (("TensorCore", upper if has_tensor else unknown), ("SparseCore", lower)):
        side: Span = (pen.glyphs.vertical, "rule")
        lines.append(pen.fit([(f" {name:<{_LABEL - 1}}", "dim"), side, *joined(cells), side]))
    return lines


def _signs(glyphs: Glyphs) -> dict[str, Span]:
    """What a cell looks like: the shape says the same as the colour."""
    keys: tuple[StyleKey, ...] = ("class.compute", "bad", "rule", "class.vector", "bad")
    signs = zip("#w.=!" if glyphs.is_ascii else "█░ ▄▒", keys, strict=True)
    return dict(zip(("work", "wait", "none", "both", "alone"), signs, strict=True))


def legend(page: SparseCorePage, pen: Pen) -> Line:
    """What the strip's characters stand for, and which core is drawn where there are several."""
    signs = _signs(pen.glyphs)
    words = (("work", "works"), ("wait", "waits for SC"), ("both", "SC beside"), ("alone", "SC alone"))
    spans: list[Span] = [(" ", "dim")]
    for key, meaning in words:
        spans += [signs[key], (f" {meaning}  ", "dim")]
    spans += [(page.strip_core, "dim")] if page.cores > 1 else []
    return pen.fit(spans)


def _upper(work: float, wait: float, signs: dict[str, Span]) -> Span:
    return signs["wait" if wait >= _SEEN or (wait > 0 and wait >= work) else "work" if work > 0 else "none"]


def _resampled(percents: Any, cells: int) -> list[float]:  # noqa: ANN401 - numpy's array
    """Percent of each of so many cells."""
    sums = np.concatenate([[0.0], np.cumsum(percents, dtype=np.float64)])
    edges = np.linspace(0, len(percents), cells + 1)
    means: list[float] = (np.diff(np.interp(edges, np.arange(len(sums)), sums)) * cells / len(percents)).tolist()
    return means


def _step_line(page: SparseCorePage, index: int, pen: Pen) -> Line:
    step, split = page.steps[index], page.steps[index].split
    place = f", {index + 1} of {count(len(page.steps))}"
    time = f"  {duration(split.step_ps, pen.glyphs.is_ascii)}"
    spans: list[Span] = [(" step ", "dim"), (step.name, "strong"), (place, "dim"), (time, "strong")]
    for label, part in (("SC works", "sparse"), ("beside", "both"), ("waits", "wait"), ("idle", "idle_beside")):
        value = split.percent(part)
        if value is not None and (part != "idle_beside" or round(value, 1)):
            key: StyleKey = "bad" if part in ("wait", "idle_beside") and value >= 10 else "text"
            spans += [(f"  {label} ", "dim"), (percent(value), key)]
    return pen.fit(spans)


# --- an op

_ON_CARD = in_order("self_time_ps self_percent occurrences average_time_ps parent_op category framework_op expression")

_CARD_LABEL = 13


def op_card(page: SparseCorePage, row: int, pen: Pen) -> list[Line]:
    """All about an op: its figures, and who waits for what it was run for."""
    words = row_words(OPS, ("name", *_ON_CARD), page.ops, row, pen.glyphs.is_ascii)
    lines = pen.wrap(words[0], "strong")
    names = [OPS.by_key[key].heading or key.replace("_", " ") for key in _ON_CARD]
    rows = list(zip(names, words[1:], strict=True))
    return [*lines, *pen.labelled(rows, _CARD_LABEL), *_waiting(page, page.ops.parent[row], pen)]


def _waiting(page: SparseCorePage, parent: str, pen: Pen) -> list[Line]:
    lines: list[Line] = []
    for wait in page.waits:
        if parent and wait.started_by == parent:
            times = (duration(ps, pen.glyphs.is_ascii) for ps in (wait.wait_ps, wait.beside_ps))
            text = "{} waits {} for it, {} of that while a SparseCore works".format(wait.op, *times)
            lines += pen.wrap(text, "text", [label_span("who waits", _CARD_LABEL)])
    return lines


def whole_card(page: SparseCorePage, row: int | None, pen: Pen) -> list[Line]:
    """The card of an op, and below it the mean step, the SparseCores and who waits."""
    lines = [*op_card(page, row, pen), pen.fit([])] if row is not None else []
    lines += [pen.rule("A step", f"mean of {count(len(page.steps))}"), *metric_lines(page, pen)]
    lines += [pen.rule("SparseCores"), *object_lines(CORES, page.sparse_cores, pen)]
    if page.waits:
        lines += [pen.rule("Who waits"), *object_lines(WAITS, page.waits, pen)]
    return lines


# --- tables of the report


def metric_lines(page: SparseCorePage, pen: Pen) -> list[Line]:
    """The parts of the mean step, a line each."""
    if page.mean is None:
        return []
    mean = page.mean
    rows = [(f" {figure.heading}", figure.words(mean) or "") for figure in SPLIT if figure.heading and figure.words]
    return pen.labelled([(" step", duration(mean.step_ps, pen.glyphs.is_ascii)), *rows], 24)


def report_lines(page: SparseCorePage, pen: Pen, most: int) -> list[Line]:
    """The whole page; at most `most` ops, 0 for all."""
    lines = headline(page, pen)
    if page.verdict is None:
        return [*lines, *pen.notes(page.warnings, ())]
    number = count(len(page.steps))
    lines += [pen.rule("A step", f"mean of {number}"), *metric_lines(page, pen)]
    if page.steps:
        worst = worst_step(page)
        title = "The step delayed longest" if page.steps[worst].split.held_ps else "A step over time"
        lines += [pen.rule(title), *strip_lines(page, worst, pen), legend(page, pen)]
    lines += [pen.rule("SparseCores", "means over the steps"), *object_lines(CORES, page.sparse_cores, pen)]
    if page.waits:
        lines += [pen.rule("Who waits", "all steps and cores"), *object_lines(WAITS, page.waits, pen)]
    lines += [pen.rule("Ops of the SparseCores", "whole profile"), *op_lines(page, pen, most)]
    told = ((words_of_key(key), why) for key, why in page.unknown.items())
    lines += [pen.rule("Notes"), *pen.notes(page.warnings, told)]
    return [*lines, *pen.wrap_all(page.notes, "dim", [(" ", "dim")])]


def object_lines(table: Table[Any], rows: Sequence[Any], pen: Pen) -> list[Line]:
    """The first rows of a table of objects with those columns of Markdown that fit; the first one gets what is left."""
    fields = table.chosen(table.markdown)
    headings = [field.heading for field in fields]
    words = [
        [pen.text(text) for text in row_words(table, table.markdown, rows, row, pen.glyphs.is_ascii)]
        for row in range(min(len(rows), MOST_OBJECTS))
    ]
    widths = [max(map(len, texts)) for texts in zip(headings, *words, strict=True)]
    while len(widths) > 2 and sum(widths[1:]) + len(widths) + _LEAST_NAME > pen.width:
        widths.pop()
    widths[0] = max(_LEAST_NAME, min(widths[0], pen.width - sum(widths[1:]) - len(widths)))
    lines = []
    for place, line in enumerate([headings, *words]):
        cells = [
            f"{cut_middle(text, room, pen.glyphs):<{room}}" if field.unit.is_text else f"{text:>{room}}"
            for text, room, field in zip(line, widths, fields, strict=False)
        ]
        lines.append(pen.fit([(" " + " ".join(cells), "text" if place else "dim")]))
    return lines + more_lines(len(rows) - len(words), pen)


def op_lines(page: SparseCorePage, pen: Pen, most: int) -> list[Line]:
    """The ops by self time."""
    if not len(page.ops):
        return [pen.fit([(" no SparseCore ran an op", "dim")])]
    return first_rows(screen_columns(OPS, page.ops, pen.glyphs), range(len(page.ops)), most, pen, "self")
