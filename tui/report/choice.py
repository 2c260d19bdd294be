"""Which rows and columns of its table a call of `report` asks for, and that table alone in every format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted, nearest
from tpuprof.parsers.ops.filtering.field_term import meant_columns
from tpuprof.parsers.ops.filtering.filter import FilterError, OpColumns, parse_filter
from tpuprof.tui.draw.format import count
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import PLACES, Column, chosen_columns, first_rows, uncut
from tpuprof.tui.report import json, markdown
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import Field, Table, columns, filter_texts, markdown_rows, reasons, table_records
from tpuprof.tui.report.page import Head, Listed, ReportRequest, TableOptions, TextLook
from tpuprof.tui.report.text import titled_text
from tpuprof.tui.report.units import plain

TIMES = ("self_time_ps", "self_time_percent")
"""Keys of the fields that a filter by time and share looks at, where the view has no others."""

SAVINGS = ("worth_ms", "worth_fraction")
"""The same of findings."""

ASCENDING, DESCENDING = "asc", "desc"

SCHEMA = "rows"
"""The name of the JSON that holds chosen rows, as of a page."""

_WIDEST = 60  # cells of a column of text


@dataclass(frozen=True)
class Chosen:
    """The rows of a table that a call asks for.

    Attributes:
        matching: all rows that the filter keeps, in order; shown: those within the limit.
        whole: how many rows the table has.
        keys: of the columns.
        rest: how to get the rows that a limit leaves out.
        why_none: why the table has no rows at all; empty where it has.
    """

    choice: TableOptions
    listed: Listed
    matching: Sequence[int]
    shown: Sequence[int]
    whole: int
    keys: tuple[str, ...]
    rest: str = ""
    why_none: str = ""

    @property
    def table(self) -> Table[Any]:
        return self.listed.table

    @property
    def fields(self) -> list[Field[Any]]:
        return self.table.chosen(self.keys)

    @property
    def totals(self) -> dict[str, Any]:
        """The sums of what is known in the rows that the filter keeps, by key, as they are stored."""
        fields = self.table.chosen(self.table.adds) if len(self.matching) else []
        stored = {field.key: plain(field.read(self.listed.source, self.matching)) for field in fields}
        return {key: sum(value for value in values if value is not None) for key, values in stored.items()}

    @property
    def in_all(self) -> str:
        """The same in words, of a filter's rows: ``In all: self time 13.9 ms, count 128.``; empty for those of none."""
        totals = self.totals if self.choice.filter else {}
        fields = self.table.chosen([*totals])
        words = [f"{_title(field)} {field.unit.words(totals[field.key], False)}" for field in fields]
        return f"In all: {', '.join(words)}." if words else ""

    @property
    def extent(self) -> str:
        """How many rows there are of how many: ``12 of 490 rows``."""
        return f"{count(len(self.matching))} of {counted(self.whole, 'row')}"


def choose(listed: Listed, choice: TableOptions, limit: int, keys: Sequence[str]) -> Chosen:
    """Finds the rows.

    Args:
        limit: the most rows to show, 0 for all.
        keys: of the columns where the choice names none.

    Raises:
        ProfileError: a column that is not there, a text that is no filter.
    """
    table, source = listed.table, listed.source
    if not {*choice.columns} <= {*table.by_key}:
        known = list(table.by_key)
        meant = dict.fromkeys(key if key in known else nearest_or_first(key, known)[0] for key in choice.columns)
        wrong = " or ".join(key for key in choice.columns if key not in known)
        raise ProfileError("usage", f"There is no column {wrong}.", f"--columns {','.join(meant)}", EXIT_USAGE)
    rows: Sequence[int] = range(table.length(source)) if listed.rows is None else list(listed.rows)
    kept = filtered(table, source, rows, choice.filter) if choice.filter else rows
    ordered = _sorted(table, source, kept, choice.sort) if choice.sort else kept
    shown = ordered[:limit] if limit else ordered
    return Chosen(choice, listed, ordered, shown, len(rows), choice.columns or tuple(keys))


def _known(table: Table[Any], key: str, option: str) -> Field[Any]:
    if key in table.by_key:
        return table.by_key[key]
    near = " or ".join(nearest_or_first(key, list(table.by_key)))
    raise ProfileError("usage", f"There is no column {key}.", f"{option} {near}", EXIT_USAGE)


def nearest_or_first(name: str, known: Sequence[str]) -> Sequence[str]:
    """The names that come nearest to one that is not known; the first ones where none is like it."""
    return meant_columns(name, known) or nearest(name, known) or known[:3]


def filtered(table: Table[Any], source: object, rows: Sequence[int], text: str, option: str = "--filter") -> list[int]:
    """The rows that a filter keeps.

    Raises:
        ProfileError: the text is no filter; the option is named in it.
    """
    looked_at = op_columns(table, source)
    if not any(field.filter for field in table.fields):  # words are looked for in every column of text
        looked_at = replace(looked_at, name=row_texts(table, source))
    with filter_of(option):
        titles = {title: key for title, key in table.titles.items() if title not in table.by_key}  # those go first here
        mask = parse_filter(text, table.by_key, titles).mask(looked_at).tolist()
    return [row for row in rows if mask[row]]


@contextmanager
def filter_of(option: str) -> Iterator[None]:
    """Says of a text that is no filter which option has it, as a `ProfileError`."""
    try:
        yield
    except FilterError as error:
        end = "" if str(error).endswith("?") else "."
        hint = "report PAGE --help has the columns and the language"
        raise ProfileError("usage", f"{option}: {error}{end}", hint, EXIT_USAGE) from error


def row_texts(table: Table[Any], source: object) -> list[str]:
    """What every column of text says of each row."""
    rows = range(table.length(source))
    of_text = [field.key for field in table.fields if field.unit.is_text]
    found = columns(table, source, rows, of_text).values() if of_text else ()
    return ["\n".join(str(text or "") for text in row) for row in zip(*found, strict=True)] or [""] * len(rows)


def _sorted(table: Table[Any], source: object, rows: Sequence[int], text: str) -> list[int]:
    """Rows by a column: texts from A to Z, others the largest first, unless it says which; unknown ones last."""
    key, _, way = text.partition(":")
    field = _known(table, key, "--sort")
    if way not in ("", ASCENDING, DESCENDING):
        hint = f"--sort {key}:{ASCENDING} or {key}:{DESCENDING}"
        raise ProfileError("usage", f"Rows are sorted {ASCENDING} or {DESCENDING}, not {way}.", hint, EXIT_USAGE)
    descending = way == DESCENDING or (not way and not field.unit.is_text)
    values: list[Any] = columns(table, source, rows, (key,))[key] if rows else []
    known = [place for place, value in enumerate(values) if value is not None]
    unknown = [place for place, value in enumerate(values) if value is None]
    known.sort(key=lambda place: _comparable(values[place]), reverse=descending)
    return [rows[place] for place in (*known, *unknown)]


def _comparable(value: object) -> tuple[bool, Any]:
    """Numbers before texts: a column may have both, such as percentiles and a mean."""
    is_number = isinstance(value, int | float)
    return not is_number, value if is_number else str(value).casefold()


def op_columns(
    table: Table[Any],
    source: object,
    times: tuple[str, str] | None = None,
    later: Callable[[str], Sequence[str]] | None = None,
) -> OpColumns:
    """What a filter looks at in the rows of a table.

    Args:
        times: keys of the fields with the time and the share of a row, by default `TIMES` or `SAVINGS`; no row is above
            a time where there are none.
        later: reads one of the columns that are read when they are asked for; None to read it of the table.
    """
    rows, times = range(table.length(source)), times or (SAVINGS if SAVINGS[0] in table.by_key else TIMES)
    self_ps, self_share = (
        table.by_key[key].read(source, rows) if key in table.by_key else numpy.full(len(rows), unknown)
        for key, unknown in zip(times, (0, numpy.nan), strict=True)
    )
    kind = numpy.float64 if times == SAVINGS else None  # None is NaN then
    return OpColumns(
        **filter_texts(table, source, ("name", "category", "framework_op", "program", "bound_by")),
        later=later or (lambda name: filter_texts(table, source, (name,))[name]),
        self_ps=numpy.asarray(self_ps, kind),
        self_share=numpy.asarray(self_share, kind),
        keys=table.by_key,
        titles=table.titles,
        values=lambda key: columns(table, source, rows, (key,))[key],
    )


# --- in every format


def report_of(
    name: str, head: Head, listed: Listed, choice: TableOptions, request: ReportRequest, why_none: Callable[[], str]
) -> str:
    """The table alone, with the rows and columns that are asked for.

    Args:
        name: of the page.
        why_none: says why the table has no rows.
    """
    table = listed.table
    of_people = listed.keys or table.markdown or table.csv or table.json
    of_machines = {"json": table.json, "csv": listed.keys or table.csv or table.json}
    chosen = choose(listed, choice, request.most_rows, of_machines.get(request.form, of_people))
    chosen = replace(chosen, rest=request.rest, why_none="" if chosen.whole else why_none())
    return _WRITERS[request.form](name, head, chosen, request.look)


def report_of_rows(name: str, head: Head, listed: Listed, choice: TableOptions, form: str, look: TextLook) -> str:
    """A table with the rows that are chosen already (`Listed.rows`), in their order; `choice` says how."""
    table = listed.table
    rows = list(range(table.length(listed.source)) if listed.rows is None else listed.rows)
    of_form = {"json": table.json, "csv": tuple(listed.keys) or table.csv, "md": tuple(listed.keys) or table.markdown}
    keys = choice.columns or of_form.get(form) or table.markdown or table.csv or table.json
    chosen = Chosen(choice, listed, rows, rows, table.length(listed.source), keys)
    return _WRITERS[form](name, head, chosen, look)


def _json(name: str, head: Head, chosen: Chosen, _: TextLook) -> str:
    choice, table = chosen.choice, chosen.table
    left_out = len(chosen.matching) - len(chosen.shown)
    body = {
        "page": name,
        "table": table.key,
        "filter": choice.filter,
        "sort": choice.sort,
        "all_rows": chosen.whole,
        "matching_rows": len(chosen.matching),
        "left_out_rows": left_out,
        "totals": {key: chosen.table.by_key[key].unit.machine([total])[0] for key, total in chosen.totals.items()},
        "next": chosen.rest if left_out else "",
        "rows": table_records(table, chosen.listed.source, chosen.shown, chosen.keys),
        **({"why_none": chosen.why_none} if chosen.why_none else {}),
    }
    why = reasons(chosen.fields, "rows[]", {})
    begins, of_head = head.values or (json.head(SCHEMA, head.run, head.hosts, head.warnings), {})
    return json.document(begins, body, {**of_head, **why})


def _text(_: str, head: Head, chosen: Chosen, look: TextLook) -> str:
    title, words = f"{head.title}: {chosen.extent}", chosen.choice.words
    return titled_text(title, words, lambda pen: _lines(head, chosen, pen, look.is_bounded), look)


def _markdown(_: str, head: Head, chosen: Chosen, __: TextLook) -> str:
    title = f"{chosen.extent}{f', {chosen.choice.words}' if chosen.choice.words else ''}"
    table, source = chosen.table, chosen.listed.source
    named = replace(table, fields=tuple(replace(each, heading=_title(each)) for each in table.fields))
    cells = markdown_rows(named, source, chosen.shown, chosen.keys)
    lines = [*head.markdown(), *markdown.rows_table(title, named, cells, chosen.keys)]
    lines += ["", chosen.in_all] if chosen.in_all else []
    left = len(chosen.matching) - len(chosen.shown)
    none = [title, *([chosen.why_none] if chosen.why_none else [])]
    said = (line for sentence in none for line in ("", markdown.escaped(sentence)))
    return markdown.joined([*lines, *(markdown.not_shown(left) if cells else said)])


def _lines(head: Head, chosen: Chosen, pen: Pen, is_bounded: bool) -> list[Line]:
    """The rows, in the columns that were chosen, and what the page warns of."""
    source, ascii_only = chosen.listed.source, pen.glyphs.is_ascii
    drawn, notes = list[Column](), pen.notes(head.warnings, ())
    for field in chosen.fields:
        stored = field.read(source, chosen.shown) if len(chosen.shown) else ()
        values = stored if isinstance(stored, Sequence) else stored.tolist()
        texts = [pen.text(field.unit.words(value, ascii_only)) for value in values]
        by_row = dict(zip(chosen.shown, texts, strict=True))
        right, is_first = not field.unit.is_text, not drawn
        drawn.append(text_column(field.key, _title(field), by_row, right=right, is_first=is_first, grows=is_first))
    if not drawn or not len(chosen.shown):
        return [*pen.wrap(chosen.why_none or "no row matches", "dim", [(" ", "text")]), *notes]
    most = len(chosen.shown) if len(chosen.shown) < len(chosen.matching) else 0
    in_all = pen.wrap(chosen.in_all, "text", [(" ", "text")]) if chosen.in_all else []
    return [*asked_rows(drawn, chosen.matching, most, pen, is_bounded), *in_all, *notes]


def asked_rows(columns: Sequence[Column], rows: Sequence[int], most: int, pen: Pen, is_bounded: bool) -> list[Line]:
    """Rows in the columns that a call has named: all of them, or those that fit, and how many do not.

    Args:
        most: rows, 0 for all.
        is_bounded: whether lines must not be wider than the pen's.
    """
    if not is_bounded:
        return first_rows(columns, rows, most, pen.at(max(pen.width, 1 + sum(column.width + 1 for column in columns))))
    drawn = uncut(columns, pen.width)
    hidden = len(drawn) - len(chosen_columns(drawn, pen.width))
    wide = [f"{counted(hidden, 'column')} did not fit: --width CELLS, or --format csv"] if hidden else []
    return [*first_rows(drawn, rows, most, pen), *pen.notes(wide, ())]


def text_column(
    key: str, title: str, by_row: Mapping[int, str], *, right: bool, is_first: bool, grows: bool, most: int = _WIDEST
) -> Column:
    """A column of texts by row, as wide as the widest of them, at most so many cells; the first one always shows."""
    width, place = max(map(len, (*by_row.values(), title))), key if key in PLACES else ""
    return Column(
        place,
        title,
        width if place else min(most, width),
        lambda rows: [(by_row[row], "text") for row in rows],
        right,
        is_first,
        grows,
    )


def _title(field: Field[Any]) -> str:
    return field.heading or field.key


_WRITERS: Mapping[str, Callable[[str, Head, Chosen, TextLook], str]] = {
    "json": _json,
    "csv": lambda _, __, chosen, ___: table_csv(chosen.table, chosen.listed.source, chosen.shown, chosen.keys),
    "md": _markdown,
    "text": _text,
}
