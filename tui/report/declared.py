"""Declared reports: a page says what it holds, and every format is written from that.

A page has a head, a statement, figures, parts one below the other, notes, and reasons for what is unknown. A part is a
list of figures, a table, or a block of the page's own for what is neither. What a format alone needs is a function, so
that the other formats do not compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass, field, replace
from tpuprof.parsers.pages.shared.key import Later
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import first_rows
from tpuprof.tui.report import fields, json, markdown
from tpuprof.tui.report.page import CHECKS, Check, Content, Format, Head, Report, ReportRequest, TableOptions
from tpuprof.tui.report.text import covered, heading, page_text
from tpuprof.tui.report.units import words_of_key

if TYPE_CHECKING:
    from tpuprof.tui.html.picture import Picture


@dataclass(frozen=True)
class Values:
    """What a part puts into JSON.

    Attributes:
        reasons: why something in them is null, by dotted key.
        warnings: what JSON must warn of besides the page's own.
        rows: how many rows lists have in all, and how many of them are here, by key; of whole ones it may be left out.
    """

    values: Mapping[str, object]
    reasons: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    rows: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Metrics(Generic[fields.Source]):
    """Metrics of JSON; `Declared.metrics` has those that Markdown shows."""

    metrics: Sequence[fields.Metric[fields.Source]]
    source: fields.Source

    def json(self) -> Values:
        return Values(fields.metric_values(self.metrics, self.source), fields.metric_reasons(self.metrics))

    def markdown(self) -> Sequence[str]:
        """Nothing."""
        return ()


@dataclass(frozen=True)
class Section(Generic[fields.Source]):
    """A table.

    Attributes:
        source: what its fields read.
        title: of its section in Markdown, which leaves out a table without one.
        limit: the most rows to show, 0 for all.
        keys: of the fields that CSV or Markdown shows, where they are not the table's.
        rows: that it has, in their order, where these are not all of the table.
    """

    table: fields.Table[fields.Source]
    source: fields.Source
    title: str = ""
    limit: int = 0
    keys: Sequence[str] = ()
    rows: fields.Rows | None = None

    @property
    def whole(self) -> int:
        """How many rows it has before a limit."""
        return self.table.length(self.source) if self.rows is None else len(self.rows)

    @property
    def shown(self) -> fields.Rows:
        rows = fields.first(self.whole, self.limit)
        return rows if self.rows is None else self.rows[: len(rows)]

    def json(self) -> Values:
        return self.holding(fields.table_records(self.table, self.source, self.shown))

    def holding(self, rows: object) -> Values:
        key, counts = self.table.key, (self.whole, len(self.shown))
        return Values({key: rows}, fields.reasons(self.table.fields, f"{key}[]", {}), rows={key: counts})

    def markdown(self) -> Sequence[str]:
        """Its section, and how many rows are not in it."""
        if not self.title:
            return ()
        return markdown.main_table(self.title, self.table, self.source, self.shown, self.whole, self.keys)

    def lines(self, pen: Pen, sort: str = "time", looks: Mapping[str, Mapping[str, Any]] | None = None) -> list[Line]:
        """The table as the screen draws it, and how many rows are not in it; sorted by the column of that name.

        Args:
            looks: as of `fields.screen_columns`.
        """
        columns = fields.screen_columns(self.table, self.source, pen.glyphs, looks)
        return first_rows(columns, range(self.table.length(self.source)), self.limit, pen, sort)

    def csv(self) -> str:
        made: str = _table_csv(self.table, self.source, self.shown, self.keys)
        return made


@dataclass(frozen=True)
class Block:
    """What is neither figures nor a table.

    Attributes:
        json: makes what JSON holds.
        markdown: makes lines of Markdown, escaped.
        csv: makes the whole of CSV.
        table: makes the table whose rows and columns a call may choose; None where it is not one table.
    """

    json: Callable[[], Values] = lambda: Values({})
    markdown: Callable[[], Sequence[str]] = tuple
    csv: Callable[[], str] = str
    table: Callable[[], Section[Any]] | None = None


Part = Metrics[Any] | Section[Any] | Block


@dataclass(frozen=True)
class Declared:
    """What a page holds.

    Attributes:
        parts: what is in it, in the order of JSON and Markdown.
        csv: what CSV holds.
        text: draws the page below its title line, in so many cells.
        statement: the page in a sentence.
        metrics: makes the headings and figures that Markdown shows.
        notes: what a reader should know of the figures.
        unknown: why something is unknown, by key, as Markdown says it.
        reasons: the same by the dotted keys of JSON, where these are others.
    """

    head: Head
    parts: Sequence[Part]
    csv: Section[Any] | Block
    text: Callable[[Pen], Sequence[Line]]
    statement: str = ""
    metrics: Callable[[], Sequence[tuple[str, str]]] = tuple
    notes: Sequence[str] = ()
    unknown: Mapping[str, str] | None = None
    reasons: Mapping[str, str] | None = None


def drawn_by(place: str) -> Callable[..., Any]:
    """A function that draws or writes a page, by a module and a name in it; imported when it is called: few need it."""
    return Later(place)


_table_csv = drawn_by("tpuprof.tui.report.csv:table_csv")


def check_writers(name: str, checks: Callable[..., Sequence[Check]]) -> dict[str, Callable[..., str]]:
    """Writers of the formats of `CHECKS`, by a function that makes the checks of what a writer is given."""
    return {form: partial(drawn_by(f"tpuprof.tui.report.shared.checks:{form}"), name, checks) for form in CHECKS}


def declared(
    name: str,
    read: Callable[[ReportRequest], Content],
    declare: Callable[[Content, ReportRequest], Declared],
    tables: tuple[fields.Table[Any], ...],
    metrics: tuple[fields.Metric[Any], ...] = (),
    csv_table: fields.Table[Any] | None = None,
    warnings: Callable[[Content], Sequence[str]] = lambda page: page.warnings,  # type: ignore[attr-defined]
    check: Callable[[Mapping[str, Any], Format, int | None], None] = lambda _, __, ___: None,
    pictures: Callable[[Content], Sequence[Picture]] = lambda _: (),
    checks: Callable[[Content, ReportRequest], Sequence[Check]] = lambda _, __: (),
) -> Report[Content]:
    """A report in every format.

    Args:
        name: of the page, in the schema of its JSON.
        read: reads it from a run.
        declare: says what it holds.
        tables, metrics, csv_table, warnings, check, pictures, checks: as of a `Report`.
    """
    writers = {
        "json": lambda content, asked: _json(name, declare(content, asked), asked),
        "csv": lambda content, asked: declare(content, asked).csv.csv(),
        "md": lambda content, asked: _markdown(declare(content, asked), metrics),
        "text": lambda content, asked: _text(declare(content, asked), asked),
        **check_writers(name, checks),
    }

    def choose(content: Content, asked: ReportRequest, choice: TableOptions) -> str:
        page = declare(content, replace(asked, limit=None))  # its rows are counted before a limit
        table = _main_table(page)
        if table is None:
            sentence = f"The page {name} has no table for --filter, --sort and --columns."
            raise ProfileError("usage", sentence, "--format json has all of it", EXIT_USAGE)
        from tpuprof.tui.report.choice import report_of  # noqa: PLC0415 - for those who choose rows alone

        return report_of(name, page.head, table, choice, asked, lambda: _why_none(page, table.table.key))

    def sections(content: Content, asked: ReportRequest) -> Sequence[Section[Any]]:
        page = declare(content, asked)
        main, parts = _main_table(page), [part for part in page.parts if isinstance(part, Section)]
        rows = {part.table.key: part for part in parts}  # in the order of JSON
        return list(rows.values() if main is None else {main.table.key: main, **rows}.values())

    main = csv_table or tables[0]
    return Report(read, writers, choose, tables, metrics, warnings, main, check, sections, pictures, checks)


def _main_table(page: Declared) -> Section[Any] | None:
    """The table that CSV has; None where CSV is no table."""
    if isinstance(page.csv, Section):
        return page.csv
    return None if page.csv.table is None else page.csv.table()


def _why_none(page: Declared, key: str) -> str:
    """Why a table of a page is empty: what the page says in a sentence, or why its list, or most else, is unknown."""
    known = {**values_of(page.parts).reasons, **((page.unknown or {}) if page.reasons is None else page.reasons)}
    unknown = {**(page.unknown or {}), **(page.reasons or {})}
    return page.statement or known.get(key) or next(iter(unknown.values()), "") or fields.NO_REASON


def _json(name: str, page: Declared, request: ReportRequest) -> str:
    made = values_of(page.parts)
    body, why = made.values, {**made.reasons, **((page.unknown or {}) if page.reasons is None else page.reasons)}
    head = json.head(name, page.head.run, page.head.hosts, [*page.head.warnings, *made.warnings])
    return json.document({**head, **json.left_out(made.rows, request.rest)}, body, why)


def values_of(parts: Sequence[Part]) -> Values:
    """What several parts put into JSON, one after the other."""
    made = [part.json() for part in parts]
    values = {key: value for each in made for key, value in each.values.items()}
    reasons = {key: reason for each in made for key, reason in each.reasons.items()}
    rows = {key: counts for each in made for key, counts in each.rows.items()}
    return Values(values, reasons, [warning for each in made for warning in each.warnings], rows)


def _markdown(page: Declared, known: Sequence[fields.Metric[Any]]) -> str:
    lines = page.head.markdown()
    lines += ["", markdown.escaped(page.statement)] if page.statement else []
    metrics = page.metrics()
    lines += markdown.metrics_table(metrics) if metrics else []
    for part in page.parts:
        lines += part.markdown()
    lines += markdown.notes_block(page.notes)
    names = fields.short_names(known)
    unknown = ((names.get(key) or words_of_key(key), why) for key, why in (page.unknown or {}).items())
    return markdown.joined([*lines, *markdown.unknown_block(unknown)])


def _text(page: Declared, request: ReportRequest) -> str:
    head = page.head

    def lines(pen: Pen) -> list[Line]:
        log_line = [pen.fit([(head.log_line, "strong")])] if head.log_line else []
        title = heading(head.title, head.covers or covered(head.hosts), pen)
        return [*log_line, title, *page.text(pen)]

    return page_text(lines, request.look)
