"""The answer of a query, and the schema that queries are written against, in every format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Run
from tpuprof.tui.api.sql.query import NO_VALUE, Answer
from tpuprof.tui.api.sql.tables import TABLES
from tpuprof.tui.draw.format import UNKNOWN
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, Span
from tpuprof.tui.draw.table import Column
from tpuprof.tui.report import csv, json, markdown
from tpuprof.tui.report.choice import asked_rows, text_column
from tpuprof.tui.report.page import TextLook
from tpuprof.tui.report.shared.columns import NUMBERS
from tpuprof.tui.report.shared.columns import Column as OfTable
from tpuprof.tui.report.text import page_text, titled_text

MORE = "--limit 0 has all rows"
_FEW_ROWS = 3
_WIDEST, _WIDEST_OF_MANY = 4000, 160
"""Cells of a text where no terminal bounds a line: the stats of an event have hundreds, and would pad all rows."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A query, its answer, and of which run and hosts that is."""

    sql: str
    answer: Answer
    run: Run
    hosts: Sequence[str]

    @property
    def extent(self) -> str:
        rows = counted(len(self.answer.rows), "row")
        return f"the first {rows}, and there are more: {MORE}" if self.answer.has_more else rows


def plain(value: object) -> Any:  # noqa: ANN401 - what JSON has
    """A value of an answer as JSON has it; bytes as text."""
    return str(value) if isinstance(value, bytes) else value


def _json(made: QueryResult, _: TextLook) -> str:
    answer = made.answer
    body = {
        "sql": made.sql,
        "tables": list(answer.tables),
        "columns": [{"name": name, "type": kind} for name, kind in zip(answer.names, answer.types, strict=True)],
        "row_count": len(answer.rows),
        "has_more": answer.has_more,
        "more": MORE if answer.has_more else "",
        "rows": [dict(zip(answer.names, map(plain, row), strict=True)) for row in answer.rows],
    }
    head = json.head("query", made.run, made.hosts, answer.warnings)
    return json.document(head, body, {f"rows[].{name}": NO_VALUE for name in answer.names})


def _markdown(made: QueryResult, _: TextLook) -> str:
    answer = made.answer
    sides = "".join("r" if kind in NUMBERS else "l" for kind in answer.types)
    head = [markdown.escaped(name) for name in answer.names]
    lines = markdown.page_head(made.extent, made.hosts, warnings=answer.warnings)
    return markdown.joined([*lines, "", *markdown.table(head, sides, [list(map(words, row)) for row in answer.rows])])


def _text(made: QueryResult, look: TextLook) -> str:
    answer = made.answer

    def lines(pen: Pen) -> list[Line]:
        drawn, notes = list[Column](), list(answer.warnings)
        for place, (name, kind) in enumerate(zip(map(pen.text, answer.names), answer.types, strict=True)):
            texts = {number: pen.text(words(row[place])) for number, row in enumerate(answer.rows)}
            right, is_first = kind in NUMBERS, not place
            most = _WIDEST if len(answer.rows) <= _FEW_ROWS else _WIDEST_OF_MANY
            room = {} if look.is_bounded else {"most": most}
            if not look.is_bounded and max(map(len, texts.values()), default=0) > most:
                notes.append(f"{name} is cut at {most} characters: --format csv has it whole")
            grows = is_first and not right
            drawn.append(text_column(name, name, texts, right=right, is_first=is_first, grows=grows, **room))
        if not answer.rows:
            return [pen.fit([(" no row", "dim")]), *pen.notes(notes, ())]
        rows = asked_rows(drawn, range(len(answer.rows)), 0, pen, look.is_bounded)
        return [*rows, *pen.notes(notes, ())]

    return titled_text(made.extent, made.run.name, lines, look)


def words(value: object) -> str:
    """A value as a person reads it."""
    made = plain(value)
    if made is None:
        return UNKNOWN
    if isinstance(made, float):
        return f"{made:.10g}"
    return "; ".join(map(words, made)) if isinstance(made, list) else str(made)


ANSWERS: Mapping[str, Callable[[QueryResult, TextLook], str]] = {
    "text": _text,
    "json": _json,
    "csv": lambda made, _: csv.table(made.answer.names, [list(map(plain, row)) for row in made.answer.rows]),
    "md": _markdown,
}


# --- the schema

_HEAD = ("table", "column", "type", "unit", "meaning", "null_when")


def _facts(column: OfTable) -> tuple[str, ...]:
    return column.name, column.type, column.unit, column.meaning, column.unknown_when


def _schema_json(_: TextLook) -> str:
    tables = [
        {
            "name": table.name,
            "meaning": table.meaning,
            "columns": [dict(zip(("name", *_HEAD[2:]), _facts(column), strict=True)) for column in table.columns],
        }
        for table in TABLES
    ]
    return json.document({"schema": json.schema("query-schema")}, {"tables": tables}, {})


def _schema_markdown(_: TextLook) -> str:
    lines: list[str] = []
    for table in TABLES:
        rows = [_facts(column)[:4] for column in table.columns]
        lines += ["", f"## {table.name}", "", markdown.escaped(f"{table.meaning}."), ""]
        lines += markdown.table(("column", "type", "unit", "meaning"), "llll", rows)
    return markdown.joined(lines)


def _schema_lines(pen: Pen) -> list[Line]:
    lines: list[Line] = []
    for table in TABLES:
        lines += [pen.rule(table.name), *pen.wrap(f"A row is {table.meaning}.", "text", [(" ", "text")])]
        for column in table.columns:
            unit = "" if column.unit == "text" else f"  {column.unit}"
            spans: list[Span] = [(f" {column.name}", "strong"), (f"  {column.type}", "key"), (unit, "dim")]
            lines.append(pen.fit(spans))
            lines += pen.wrap(column.meaning, "text", [("    ", "text")])
            lines += pen.wrap(f"NULL: {column.unknown_when}", "dim", [("    ", "text")]) if column.unknown_when else []
    return lines


SCHEMAS: Mapping[str, Callable[[TextLook], str]] = {
    "text": lambda look: page_text(_schema_lines, look),
    "json": _schema_json,
    "csv": lambda _: csv.table(_HEAD, [(of.name, *_facts(column)) for of in TABLES for column in of.columns]),
    "md": _schema_markdown,
}
