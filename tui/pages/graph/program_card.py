"""The card of a row of a report's table: every figure of it, and the lists and objects within it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpuprof.tui.draw.pen import Card, Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.report.fields import Field, Metric, Table
from tpuprof.tui.report.units import words_of_key

LABEL = 16


def label(of: Field[Any] | Metric[Any]) -> str:
    """What people call a figure."""
    return of.heading or words_of_key(of.key)


def card_lines(table: Table[Any], source: Any, row: int, pen: Pen) -> list[Line]:  # noqa: ANN401 - any table's source
    """All figures of a row; what is unknown with its reason."""
    card, ascii_only = Card(pen, LABEL), pen.glyphs.is_ascii
    first, *others = table.chosen(table.json)
    card.head(first.unit.words(first.read(source, [row])[0], ascii_only))
    inner: list[tuple[Field[Any], Any]] = []
    unknown: list[tuple[str, str]] = []
    for field in others:
        value = field.read(source, [row])[0]
        words = field.unit.words(value, ascii_only)
        if value is not None and field.unit.parts and words == str(value):  # an object that has no words of its own
            inner.append((field, value))
        elif value is None:
            unknown.append((label(field), field.null))
        elif value != "":
            card.entry(label(field), words)
    for field, value in inner:
        card.title(label(field).capitalize())
        if field.unit.is_list:
            card.lines += _rows(field.unit.parts, value, pen)
            continue
        for part in field.unit.parts:
            known = part.read(value)
            card.entry(f" {label(part)}", part.unit.words(known, ascii_only) if known is not None else part.null)
    return [*card.lines, *pen.notes((), unknown)]


def _rows(fields: Sequence[Field[Any]], source: Any, pen: Pen) -> list[Line]:  # noqa: ANN401 - any list's source
    """A list within a row as a small table."""
    rows = range(len(source))
    cells = [[each.unit.words(value, pen.glyphs.is_ascii) for value in each.read(source, rows)] for each in fields]
    titles = [label(each) for each in fields]
    widths = [max(map(len, (title, *column))) for title, column in zip(titles, cells, strict=True)]

    def line(texts: Sequence[str]) -> str:
        first, *others = zip(texts, widths, strict=True)
        return "  ".join((f" {first[0]:<{first[1]}}", *(f"{text:>{width}}" for text, width in others)))

    return [pen.fit([(line(titles), "dim")]), *(pen.fit([(line(texts), "text")]) for texts in zip(*cells, strict=True))]
