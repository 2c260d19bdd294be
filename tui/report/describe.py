"""`report PAGE --describe`: what a page's JSON and CSV hold; and, for a screen, all figures of a page.

Both are written from the fields themselves.

A key is described by its unit, what it means and why it may be null. `[]` stands for every element of a list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tpuprof.parsers.base.record import asdict, dataclass
from tpuprof.tui.draw.format import UNKNOWN
from tpuprof.tui.draw.pen import Pen, cut
from tpuprof.tui.draw.spans import Line, Span
from tpuprof.tui.report.fields import NO_REASON, Field, Metric
from tpuprof.tui.report.page import CommandReport, Report, TextLook
from tpuprof.tui.report.text import page_text
from tpuprof.tui.report.units import TEXT


@dataclass(frozen=True, slots=True)
class Described:
    """One key of a page.

    Attributes:
        key: dotted, ``ops[].self_time_ps``.
        null_when: why it may be null; None where it never is.
        json: whether JSON has it.
        csv_column: the heading of its column in CSV; None where CSV has it not.
    """

    key: str
    unit: str
    meaning: str
    null_when: str | None
    json: bool = True
    csv_column: str | None = None


def _head(key: str, meaning: str) -> Metric[Any]:
    return Metric(key, TEXT, lambda _: None, meaning)


HEAD: tuple[Metric[Any], ...] = (
    _head("schema", "the format's name and version; keys may be added to a version, none is renamed"),
    _head("run.name", "the run's name"),
    _head("run.path", "where the run lies"),
    _head("run.hosts[]", "the hosts that the figures cover"),
    _head("run.core", "with --core only: the core or chip that the figures cover, host:2"),
    _head("warnings[]", "what is wrong with the profile, one sentence each"),
    _head("unknown", "for each key that is null somewhere, why"),
)
"""What every page's JSON begins and ends with."""


def described(report: Report[Any] | CommandReport[Any]) -> list[Described]:
    """Every key of a page, in the order of JSON: figures, then table by table."""
    tables = {table.key for table in report.tables}
    metrics = (quantity for quantity in report.metrics if quantity.key and quantity.key not in tables)
    return [*_figures((*HEAD[:-1], *metrics)), *_fields(report), *_figures(HEAD[-1:])]


def _figures(metrics: Iterable[Metric[Any] | Field[Any]], prefix: str = "", null: str = "") -> Iterator[Described]:
    """Figures, and instead of objects what is within them, null where these are."""
    for quantity in metrics:
        key, why = prefix + quantity.key, quantity.null or null
        if quantity.unit.parts:
            yield from _figures(quantity.unit.parts, f"{key}{'[]' * quantity.unit.is_list}.", why)
        else:
            yield Described(key, quantity.unit.name, quantity.meaning, why or None)


def _fields(report: Report[Any] | CommandReport[Any]) -> Iterator[Described]:
    for table in report.tables:
        csv = (table.csv or table.json) if table is report.csv_table else ()
        places = table.places or (f"{table.key}[]",)
        of_csv = next((place for place in places if place.endswith("[]")), "") if csv else ""
        for place in places:
            csv_only = (key for key in csv if key not in table.json and place == of_csv)
            for quantity in table.chosen((*table.json, *csv_only)):
                if quantity.unit.parts:
                    yield from _figures([quantity], f"{place}.")
                    continue
                key, in_json = f"{place}.{quantity.key}", quantity.key in table.json
                heading = quantity.key if place == of_csv and quantity.key in csv else None
                yield Described(key, quantity.unit.name, quantity.meaning, quantity.null or None, in_json, heading)


def describe_json(page: str, report: Report[Any]) -> str:
    """The description as JSON."""
    figures = ",\n    ".join(json.dumps(asdict(each), ensure_ascii=False) for each in described(report))
    head = f'"schema": "tpuprof.describe/1",\n  "page": {json.dumps(page)}'
    return f'{{\n  {head},\n  "keys": [\n    {figures}\n  ]\n}}\n'


def describe_text(page: str, report: Report[Any], look: TextLook) -> str:
    """The description as text: a key and its unit, and below it what it means."""
    title = f"Keys of the page {page}, in JSON; those of CSV's columns are marked"
    return page_text(lambda pen: [pen.fit([(title, "title")]), *_key_lines(described(report), pen)], look)


def _key_lines(keys: Sequence[Described], pen: Pen) -> list[Line]:
    lines: list[Line] = []
    for quantity in keys:
        where = "" if quantity.csv_column is None else "csv" if quantity.json else "csv only"
        spans: list[Span] = [(quantity.key, "strong"), (f"  {quantity.unit}", "key"), (f"  {where}", "dim")]
        lines.append(pen.fit(spans))
        lines += pen.wrap(quantity.meaning, "text", [("    ", "text")])
        if quantity.null_when:
            lines += pen.wrap(f"null: {quantity.null_when}", "dim", [("    ", "text")])
    return lines


Section = tuple[str, "Iterable[tuple[Metric[Any], Any]]"]  # a title, and figures with what each is read from


def metric_lines(sections: Iterable[Section], unknown: Mapping[str, str], pen: Pen) -> list[Line]:
    """All figures of a page: names, values with units, meanings, and why, by key in JSON, they are `unknown`."""
    lines: list[Line] = []
    for title, metrics in sections:
        lines += [*([pen.fit([])] if lines else []), pen.fit([(title, "title")])]
        for figure, source in metrics:
            value = figure.read(source)
            words = UNKNOWN if value is None else pen.text(figure.unit.words(value, pen.glyphs.is_ascii))
            known: Span = (f"{words:>{_VALUE}}  ", "dim" if value is None else "strong")
            why = "" if value is not None else f" Unknown: {unknown.get(figure.key) or figure.null or NO_REASON}."
            name = f"{cut(figure.name, _NAME - 1, pen.glyphs):<{_NAME}}"
            meaning = f"{figure.meaning[:1].upper()}{figure.meaning[1:]}.{why}"
            lines += pen.wrap(meaning, "dim", [(name, "text"), known], _NAME + _VALUE + 2)
    return lines


_NAME, _VALUE = 23, 11  # cells of the names and values
