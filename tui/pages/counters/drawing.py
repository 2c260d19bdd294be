"""The page of counters as text: the answer, units by core with bars, the counters, and what custom calls use."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.counters.page import CounterRow, CountersPage, UnitRow, core_of
from tpuprof.parsers.pages.ops.kernels.call_units import KernelRow
from tpuprof.tui.draw.format import UNKNOWN, duration, share
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.draw.table import first_rows
from tpuprof.tui.pages.counters.fields import SOURCES, UNITS, amount_words, on_screen, value_words
from tpuprof.tui.report.fields import Source, Table, screen_columns

LABEL = 10  # cells of a label on a card


def text_lines(page: CountersPage, pen: Pen, most: int) -> list[Line]:
    """The whole page; at most `most` rows of each table, 0 for all."""
    lines = pen.wrap(page.statement, "strong", [(" ", "text")])
    for _, rows in groupby(enumerate(page.units), lambda item: core_of(item[1])):
        numbers = [number for number, _ in rows]
        lines.append(pen.rule(core_title(page.units[numbers[0]], pen.glyphs)))
        lines += table_lines(UNITS, page.units, numbers, ("core", "source", "sampled_ms"), pen, most)
    for kernel, rows_of in groupby(page.kernels, lambda row: (row.host, row.use.name, row.use.program_id)):
        lines.append(pen.rule(f"custom call {kernel[1]}"))
        lines += kernel_lines(list(rows_of), pen)
    if page.counters:
        lines.append(pen.rule(counted(len(page.counters), "counter")))
        lines += table_lines(on_screen(page.counters), page.counters, range(len(page.counters)), (), pen, most)
    reasons = [(key, why) for key, why in page.unknown.items() if why[1:] not in page.statement]
    return [*lines, *pen.notes((*page.warnings, *page.notes), reasons)]


def core_title(row: UnitRow, glyphs: Glyphs) -> str:
    """Which core's units these are, how they are known, and for how long they were sampled."""
    use = row.use
    parts = [row.host, row.core, SOURCES[use.source]]
    if use.source == "reading":
        parts += [f"kernel {use.kernel}"] if use.kernel else []
        parts.append(f"reading {use.sample}")
    parts += [f"{duration(use.sampled_ps, glyphs.is_ascii)} sampled"] if use.sampled_ps else []
    return ", ".join(parts)


def table_lines(
    table: Table[Source], source: Source, rows: Sequence[int], without: Sequence[str], pen: Pen, most: int
) -> list[Line]:
    """Some rows of a table as far as its columns fit, with how many more there are."""
    looks: dict[str, dict[str, Any]] = {key: {} for key in table.screen if key not in without}
    return first_rows(screen_columns(table, source, pen.glyphs, looks), rows, most, pen, "")


def kernel_lines(rows: Sequence[KernelRow], pen: Pen) -> list[Line]:
    """What one custom call uses, as a whole and then by scope: a line each."""
    lines: list[Line] = []
    for scope, of_scope in groupby(rows, lambda row: row.use.scope):
        uses = list(of_scope)
        first = uses[0].use
        largest = sorted(uses, key=lambda row: -(row.share or 0.0))
        words = ", ".join(f"{row.use.unit} {share(row.share)}" for row in largest)
        name = pen.text(scope) or f"{counted(first.runs, 'run')}, whole"
        head = f" {name[:28]:<28} {duration(first.time_ps, pen.glyphs.is_ascii):>9}  "
        lines += pen.wrap(words, "text", [(head, "dim")])
    return lines


def _card(title: str, entries: Sequence[tuple[str, str]], pen: Pen) -> list[Line]:
    return [*pen.wrap(title, "strong"), *pen.labelled(entries, LABEL)]


def unit_card(page: CountersPage, row: UnitRow, pen: Pen) -> list[Line]:
    """What a unit's figure means, and how it is known."""
    use = row.use
    card = [("use", share(use.use) if use.use is not None else UNKNOWN)]
    achieved, peak = (amount_words(value, use.measure) for value in (use.achieved, use.peak))
    measure = "" if use.measure == "ps" else f" {use.measure}"
    card.append(("achieved", f"{achieved}{measure} of {peak}" if use.peak is not None else f"{achieved}{measure}"))
    if use.use is None:
        card.append(("", "none of its counters was sampled" if use.achieved is None else "its cycles were not sampled"))
    card.append(("means", use.meaning))
    card.append(("core", f"{row.core} of {row.host}"))
    card.append(("sampled", _sampled_words(use.sampled_ps, page.captured_ps)))
    card.append(("known by", SOURCES[use.source] + (f", reading {use.sample}" if use.source == "reading" else "")))
    if use.kernel:
        card.append(("kernel", use.kernel))
    return _card(use.name, card, pen)


def _sampled_words(sampled: int | None, captured: int | None) -> str:
    words = duration(sampled) if sampled is not None else "its clock was not sampled"
    return f"{words} of {duration(captured)}" if sampled is not None and captured is not None else words


def counter_card(page: CountersPage, row: CounterRow, pen: Pen) -> list[Line]:
    """All about one counter."""
    counter = row.counter
    card = [("value", value_words(counter.value, counter.unit))]
    if counter.is_reading and isinstance(counter.value, int):
        card.append(("", hex(counter.value)))
    if counter.samples > 1:
        low, mean, high = (value_words(value) for value in (counter.minimum, counter.mean, counter.maximum))
        card.append(("least", f"{low}, mean {mean}, greatest {high} {counter.unit}".rstrip()))
    card.append(("samples", counted(counter.samples, "value")))
    at = duration(counter.first_ps)
    card.append(("when", at if counter.samples == 1 else f"{at} to {duration(counter.last_ps)} on the trace's clock"))
    words = "since the capture began" if counter.is_reading else _sampled_words(counter.sampled_ps, page.captured_ps)
    if counter.is_reading or counter.sampled_ps is not None:
        card.append(("sampled", words))
    for label, text in (("means", counter.description), ("set", counter.sets), ("kernel", counter.kernel)):
        if text:
            card.append((label, text))
    if counter.number is not None:
        card.append(("register", f"{counter.register or 'unknown'}, number {counter.number} ({counter.number:#x})"))
    card.append(("device", f"{row.device} of {row.host}"))
    return _card(counter.name, card, pen)
