"""Fields: a quantity of a page, written once.

A field knows its key in JSON, its headings, its unit, where its values come from, why one may be unknown, how it sorts
and what it means. The keys of JSON, the columns of CSV, Markdown and the screen, the order of rows, the reasons for
what is null, the help and `report PAGE --describe` all come from it.

A page has figures, of which there is one each, and tables, whose fields have a value a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from tpuprof.parsers.base.record import dataclass, field, known_attribute, replace
from tpuprof.tui.draw.pen import cut_middle
from tpuprof.tui.draw.spans import Glyphs, Key, Span
from tpuprof.tui.draw.table import Cells, Column, Listing
from tpuprof.tui.report.units import FLAG, Unit, Value, words_of_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Rows: TypeAlias = "Sequence[int] | NDArray[np.integer[Any]]"
Source = TypeVar("Source")  # what fields read: a page, or the part of it that a table is of
Item = TypeVar("Item")  # the object that a row of a table is made from
Reader = Callable[[Source, Rows], "Sequence[Any] | NDArray[Any]"]
"""Reads the stored values of some rows, in their order."""

RowColumns = Mapping[str, Sequence[Value]]  # columns of a table by key, as JSON and CSV hold them
NO_REASON = "the profile does not say"
ALL_FIELDS = ("*",)


@dataclass(frozen=True)
class ColumnSpec(Generic[Source]):
    """How a field looks as a column on the screen.

    Attributes:
        title: its head, by which orders, filters and ctrl+p call it; empty for a picture of another column.
        width: cells, without the blank that stands before it.
        words: writes a stored value, where the unit's words are not it.
        cells: draws the rows that show, where words and style alone do not.
        cut: shortens a text that is longer than its column.
        fixed, grows, keeps_style: see `tui.draw.table.Column`.
        note: what its colours say, a sentence for the help.
    """

    title: str
    width: int
    style: Callable[[Any], Key] = lambda _: "text"
    words: Callable[[Any, bool], str] | None = None
    cells: Callable[[Source, Glyphs], Cells] | None = None
    cut: Callable[[str, int, Glyphs], str] = cut_middle
    is_left: bool = False
    fixed: bool = False
    grows: bool = False
    keeps_style: bool = False
    note: str = ""


@dataclass(frozen=True)
class Field(Generic[Source]):
    """One quantity of a table.

    Attributes:
        key: in JSON and CSV; a dot makes an object within the row.
        unit: how its values are written.
        read: the stored values of some rows, in their order.
        meaning: what it says, in a sentence; with a formula and its source where it is computed.
        null: why a value may be unknown; empty where it never is.
        heading: of its column in Markdown.
        screen: how it looks as a column on the screen; None where it is none.
        sort: what all rows are sorted by, where that is not the stored values.
        filter: what a filter calls it; empty where it can't look at it.
        filter_unknown: what a filter reads where it is unknown.
    """

    key: str
    unit: Unit
    read: Reader[Source]
    meaning: str
    null: str = ""
    heading: str = ""
    screen: ColumnSpec[Source] | None = None
    sort: Callable[[Source], Sequence[Any] | NDArray[Any]] | None = None
    filter: tuple[str, ...] = ()
    filter_unknown: str = ""


@dataclass(frozen=True)
class Table(Generic[Source]):
    """The fields of a table, and which of them each format shows, in which order.

    Attributes:
        key: of its list in JSON.
        json, csv, markdown, screen: keys of the fields that each shows; `csv` is as `json` where it is empty, which has
            all fields in their order unless it is given.
        length: how many rows there are.
        adds: keys of the fields whose values add up over rows.
        places: where its rows stand in JSON, where that is not ``key[]`` alone; `[]` is any element of a list.
    """

    key: str
    fields: tuple[Field[Source], ...]
    length: Callable[[Source], int]
    json: tuple[str, ...] = ALL_FIELDS
    csv: tuple[str, ...] = ()
    markdown: tuple[str, ...] = ()
    screen: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()
    by_key: Mapping[str, Field[Source]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_key", {quantity.key: quantity for quantity in self.fields})
        if self.json == ALL_FIELDS:
            object.__setattr__(self, "json", tuple(self.by_key))

    def chosen(self, keys: Sequence[str]) -> list[Field[Source]]:
        return [self.by_key[key] for key in keys]

    @property
    def sorted_by(self) -> dict[str, Field[Source]]:
        """The fields that the rows can be sorted by on the screen, by the titles of their columns."""
        shown = self.chosen(self.screen)
        return {each.screen.title: each for each in shown if each.screen is not None and each.screen.title}

    def is_down(self, listing: Listing) -> bool:
        """Whether the largest row of a list is first: texts and ranks go up by nature, and a list without order."""
        field = self.sorted_by[listing.sort] if listing.sort else None
        return field is not None and (field.unit.is_text or listing.sort == "#") == listing.is_reversed

    @property
    def titles(self) -> dict[str, str]:
        """The keys of these by what a filter calls them: their titles, one word each: ``of_roof``."""
        return {title.replace(" ", "_"): quantity.key for title, quantity in self.sorted_by.items()}


@dataclass(frozen=True)
class Metric(Generic[Source]):
    """A quantity of which a page has one.

    Attributes:
        key: in JSON, dotted for an object within an object; empty where JSON has it not.
        unit: how it is written.
        read: its stored value, None where it is unknown.
        meaning, null: as of a `Field`.
        heading: how Markdown and text call it; empty where they leave it out.
        short: how the notes of a screen call it, which say why it is unknown.
        words: what people read, where it is more than the unit's words; None leaves the figure out.
    """

    key: str
    unit: Unit
    read: Callable[[Source], Any]
    meaning: str
    null: str = ""
    heading: str = ""
    short: str = ""
    words: Callable[[Source], str | None] | None = None

    @property
    def name(self) -> str:
        return self.short or self.heading or words_of_key(self.key)


def attribute(
    key: str,
    unit: Unit,
    meaning: str,
    heading: str = "",
    *,
    null: str = "",
    short: str = "",
    name: str = "",
    words: Callable[[Any], str | None] | None = None,
) -> Metric[Any]:
    """A figure that is an attribute of its source, with the dotted name `name`, else with that of its key.

    It is None where an object on the way is None. What has ``_ms`` in its key is stored in ``_ps``, an object of
    several such figures without either.
    """
    stored = key.removesuffix("_ms") if unit.parts else f"{key[:-2]}ps" if key.endswith("_ms") else key
    return Metric(key, unit, known_attribute(name or stored), meaning, null, heading, short, words)


def named(
    key: str,
    unit: Unit,
    read: Reader[Any],
    meaning: str,
    heading: str = "",
    width: int = 0,
    *,
    null: str = "",
    filter: tuple[str, ...] = (),
    **look: Any,  # noqa: ANN401 - of `ColumnSpec`
) -> Field[Any]:
    """A field of which Markdown, its column on the screen and the order by that column have the same name, its heading.

    Its column has that width, none for 0, and the `look` of a `ColumnSpec` besides.
    """
    screen = ColumnSpec(**{"title": heading, "width": width, **look}) if width else None
    return Field(key, unit, read, meaning, null, heading, screen, filter=filter)


def of_each(read: str | Callable[[Any], Any], within: str = "") -> Reader[Any]:
    """Reads what each item has under a dotted name (`known_attribute`), or what a function makes of it.

    The items are those of the source, or of the sequence that it has under the dotted name `within`.
    """
    value = known_attribute(read) if isinstance(read, str) else read

    def values(source: Any, rows: Rows) -> list[Any]:  # noqa: ANN401 - any table's source
        items = attrgetter(within)(source) if within else source
        return [value(items[row]) for row in rows]

    return values


def of_each_row(method: str) -> Reader[Any]:
    """Reads what a method of the source, or of what it has, with a dotted name, says of each row."""
    bound = attrgetter(method)
    return lambda source, rows: [bound(source)(int(row)) for row in rows]


def column(name: str, index: int | None = None) -> Reader[Any]:
    """Reads a column of the source with a dotted name: an array or a sequence, or the one at an index of an array."""
    whole = attrgetter(name)
    if index is not None:
        return lambda source, rows: whole(source)[rows, index]
    return lambda source, rows: take(whole(source), rows)


def take(values: Sequence[Any] | NDArray[Any], rows: Rows) -> Sequence[Any] | NDArray[Any]:
    """Some entries of a column, in the order of the rows; the column itself where these are all rows."""
    if isinstance(rows, range) and rows == range(len(values)):
        return values
    return [values[row] for row in rows] if isinstance(values, Sequence) else values[rows]


def in_order(*keys: str | Sequence[str]) -> tuple[str, ...]:
    """Keys of fields in their order: texts of keys with blanks between them, and sequences of keys."""
    return tuple(key for part in keys for key in (part.split() if isinstance(part, str) else part))


def object_table(
    key: str,
    metrics: Iterable[Metric[Item]],
    others: Iterable[Metric[Item] | Field[Sequence[Item]]] = (),
    csv: tuple[str, ...] = (),
    markdown: tuple[str, ...] = (),
) -> Table[Sequence[Item]]:
    """A table whose source is a sequence, an object a row: JSON has all `metrics`, CSV and Markdown `others` too."""

    def field(figure: Metric[Item]) -> Field[Sequence[Item]]:
        return Field(figure.key, figure.unit, of_each(figure.read), figure.meaning, figure.null, figure.heading)

    fields = tuple(map(field, metrics))
    more = (field(quantity) if isinstance(quantity, Metric) else quantity for quantity in others)
    return Table(key, (*fields, *more), len, tuple(quantity.key for quantity in fields), csv, markdown)


def nested(metrics: Sequence[Metric[Any]], *others: tuple[type, Sequence[Metric[Any]]]) -> Unit:
    """The unit of an object within an object of JSON; null where there is none.

    Args:
        metrics: that it has.
        others: figures of objects of other types.
    """
    by_type = dict(others)
    parts = (*metrics, *(figure for more in by_type.values() for figure in more))

    def machine(values: Sequence[Any] | NDArray[Any]) -> list[Any]:
        known = [value for value in values if value is not None]
        of_kind = {kind: [value for value in known if type(value) is kind] for kind in set(map(type, known))}
        made = {kind: iter(metric_objects(by_type.get(kind, metrics), some)) for kind, some in of_kind.items()}
        return [None if value is None else next(made[type(value)]) for value in values]

    return Unit("object", machine, lambda value, _: str(value), parts=parts)


def listed(table: Table[Any]) -> Unit:
    """The unit of a table within an object of JSON."""

    def machine(values: Sequence[Any] | NDArray[Any]) -> list[Any]:
        return [table_records(table, value, range(table.length(value))) for value in values]

    parts = tuple(table.chosen(table.json))
    return Unit("list of objects", machine, lambda value, _: str(value), parts=parts, is_list=True)


def first(number: int, limit: int) -> range:
    """The first `limit` of so many rows, all of them for 0."""
    return range(min(number, limit) if limit else number)


# --- for machines


def columns(table: Table[Source], source: Source, rows: Rows, keys: Sequence[str] = ()) -> dict[str, list[Value]]:
    """The values of some rows by key, as JSON and CSV hold them; of all keys of JSON where none are given."""
    chosen = table.chosen(keys or table.json)
    return {quantity.key: quantity.unit.machine(_stored(quantity, source, rows)) for quantity in chosen}


def records(columns: RowColumns) -> list[dict[str, object]]:
    """The rows as objects; keys with a dot make objects within them, at the place of the first such key."""
    groups: dict[str, list[str]] = {}
    for key in columns:
        group, _, name = key.partition(".")
        groups.setdefault(group, []).append(name)
    values: list[Iterable[object]] = []
    for group, names in groups.items():
        if names == [""]:
            values.append(columns[group])
        else:
            parts = zip(*(columns[f"{group}.{name}"] for name in names), strict=True)
            values.append([dict(zip(names, part, strict=True)) for part in parts])
    return [dict(zip(groups, row, strict=True)) for row in zip(*values, strict=True)]


def table_records(
    table: Table[Source], source: Source, rows: Rows, keys: Sequence[str] = ()
) -> list[dict[str, object]]:
    """Some rows of a table as JSON holds them, with all its keys of JSON where no others are given."""
    return records(columns(table, source, rows, keys))


def metric_values(metrics: Sequence[Metric[Source]], source: Source) -> dict[str, object]:
    """Figures by key, as JSON holds them, objects within objects by the dots of the keys."""
    return metric_objects(metrics, [source])[0]


def metric_objects(metrics: Sequence[Metric[Source]], sources: Sequence[Source]) -> list[dict[str, object]]:
    """The same of many objects: each figure is read of all of them at once."""
    out: list[dict[str, object]] = [{} for _ in sources]
    for figure in metrics:
        (*groups, name), inner = figure.key.split("."), out
        for group in groups:
            inner = [each.setdefault(group, {}) for each in inner]  # type: ignore[misc]
        column = figure.unit.machine([figure.read(source) for source in sources]) if name else []
        for each, value in zip(inner, column, strict=False):
            each[name] = value
    return out


def reasons(fields: Iterable[Field[Any]], prefix: str, unknown: Mapping[str, str], rows: str = "") -> dict[str, str]:
    """Why values of rows are null, by dotted key with the rows' prefix, ``ops[].flops``.

    Args:
        prefix: of the rows in the document, ``ops[]``.
        unknown: what the page says, which goes before what the fields say; its keys of rows begin with `rows`.
        rows: the prefix in `unknown`, where it is another one.
    """
    start = f"{rows or prefix}."
    return {
        **{f"{prefix}.{quantity.key}": quantity.null for quantity in fields if quantity.null},
        **{f"{prefix}.{key[len(start) :]}": why for key, why in unknown.items() if key.startswith(start)},
    }


def metric_reasons(metrics: Iterable[Metric[Any] | Field[Any]]) -> dict[str, str]:
    """Why figures are null, by dotted key, and those of objects and lists within them."""
    return {key: figure.null for key, figure in _with_parts(metrics) if figure.null}


def short_names(metrics: Iterable[Metric[Any] | Field[Any]]) -> dict[str, str]:
    """How the notes of a screen call figures, by dotted key."""
    return {key: figure.short for key, figure in _with_parts(metrics) if isinstance(figure, Metric) and figure.short}


def _with_parts(
    metrics: Iterable[Metric[Any] | Field[Any]], prefix: str = ""
) -> Iterator[tuple[str, Metric[Any] | Field[Any]]]:
    """Figures that JSON has with their dotted keys, and what is within them; ``[]`` is any index."""
    for figure in metrics:
        if figure.key:
            key = prefix + figure.key
            yield key, figure
            yield from _with_parts(figure.unit.parts, f"{key}{'[]' * figure.unit.is_list}.")


# --- for people


def markdown_rows(table: Table[Source], source: Source, rows: Rows, keys: Sequence[str] = ()) -> list[list[str]]:
    """Some rows of a table as people read them, a text a column of Markdown."""
    cells = (_words(quantity, source, rows, False) for quantity in table.chosen(keys or table.markdown))
    return [list(row) for row in zip(*cells, strict=True)]


def row_words(table: Table[Source], keys: Sequence[str], source: Source, row: int, ascii_only: bool) -> list[str]:
    """Some fields of one row as people read them on the screen."""
    return [_words(quantity, source, [row], ascii_only)[0] for quantity in table.chosen(keys)]


def _words(quantity: Field[Source], source: Source, rows: Rows, ascii_only: bool) -> list[str]:
    return [quantity.unit.words(value, ascii_only) for value in _values(quantity, source, rows)]


def metric_rows(metrics: Iterable[Metric[Source]], source: Source) -> list[tuple[str, str]]:
    """Headings and figures as people read them."""
    rows = []
    for figure in metrics:
        if figure.heading:
            words = figure.words(source) if figure.words else figure.unit.words(figure.read(source), False)
            rows += [(figure.heading, words)] if words is not None else []
    return rows


def screen_columns(
    table: Table[Source], source: Source, glyphs: Glyphs, looks: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Column]:
    """The columns of a table on the screen, the most important first.

    They are the table's own, or of the keys in `looks`, each with what of its `ColumnSpec` is other here, such as a
    width that depends on that of the screen.
    """
    drawn = []
    for key, other in ({key: {} for key in table.screen} if looks is None else looks).items():
        quantity = table.by_key[key]
        if quantity.screen is None:
            continue
        look = replace(quantity.screen, **other)
        cells = look.cells(source, glyphs) if look.cells else partial(_cells, quantity, look, source, glyphs)
        right = not (quantity.unit.is_text or look.is_left)
        order = quantity.screen.title
        drawn.append(Column(order, look.title, look.width, cells, right, look.fixed, look.grows, look.keeps_style))
    return drawn


def _cells(
    quantity: Field[Source], look: ColumnSpec[Source], source: Source, glyphs: Glyphs, rows: Sequence[int]
) -> list[Span]:
    ascii_only = glyphs.is_ascii
    words, style = look.words or quantity.unit.words, look.style
    values = _values(quantity, source, rows)
    texts = [words(value, ascii_only) for value in values]
    if quantity.unit.is_text and not (look.grows and look.cut is cut_middle):  # else the table cuts it to its room
        texts = [look.cut(text, look.width, glyphs) for text in texts]
    return [(text, style(value)) for text, value in zip(texts, values, strict=True)]


def _stored(quantity: Field[Source], source: Source, rows: Rows) -> Sequence[Any] | NDArray[Any]:
    """The stored values of some rows; an array takes no empty range for an index."""
    return quantity.read(source, rows) if len(rows) else ()


def _values(quantity: Field[Source], source: Source, rows: Rows) -> Sequence[Any]:
    stored = _stored(quantity, source, rows)
    return stored if isinstance(stored, Sequence) else stored.tolist()


def help_rows(table: Table[Any], sorted_by: str = "") -> list[tuple[str, str]]:
    """What the columns on the screen mean: titles and sentences, the column that the rows are sorted by first."""
    rows = []
    for title, quantity in sorted(table.sorted_by.items(), key=lambda of: of[0] != sorted_by):
        key = f" ({quantity.key} in JSON)" if quantity.key in table.json else ""
        note = "" if quantity.screen is None else quantity.screen.note
        sentences = [f"{quantity.meaning}{key}.", note, f"n/a: {quantity.null}." if quantity.null else ""]
        rows.append((title, " ".join(filter(None, sentences))))
    return rows


# --- order


def order(table: Table[Source], source: Source, name: str, descending: bool) -> NDArray[np.int64]:
    """All rows in the order of a column of the screen: unknown ones last, ties as they are.

    Raises:
        KeyError: there is no such column.
    """
    import numpy  # noqa: PLC0415 - not needed to print a list of runs

    quantity = table.sorted_by[name]
    values = quantity.sort(source) if quantity.sort else _stored(quantity, source, range(table.length(source)))
    if isinstance(values, Sequence) and (quantity.unit.is_text or any(isinstance(value, str) for value in values)):
        texts = [str(text or "") for text in values]  # a flag is a text too
        rank = {text: place for place, text in enumerate(sorted(set(texts)))}
        values = [rank[text] for text in texts]
    elif isinstance(values, Sequence):
        values = [numpy.nan if value is None else value for value in values]
    # Doubles resolve picoseconds for two hours.
    numbers = numpy.asarray(values).astype(numpy.float64)
    numbers = numpy.where(numpy.isnan(numbers), numpy.inf, -numbers if descending else numbers)
    return numpy.argsort(numbers, kind="stable").astype(numpy.int64)


def filter_texts(table: Table[Source], source: Source, names: Sequence[str]) -> dict[str, Sequence[str]]:
    """What a filter reads of all rows, by the names that it has for fields; blank where the table has no such field."""
    rows = range(table.length(source))
    by_name: dict[str, Sequence[str]] = dict.fromkeys(names, [""] * len(rows))
    for quantity in table.fields:
        wanted = [name for name in quantity.filter if name in by_name]
        if wanted:
            values = _stored(quantity, source, rows)
            texts: Sequence[str] = values  # type: ignore[assignment]
            if quantity.unit is FLAG:
                texts = ["yes" if value else "no" for value in values]
            if None in values:
                texts = [value or quantity.filter_unknown for value in values]
            by_name.update(dict.fromkeys(wanted, texts))
    return by_name


def searched_texts(table: Table[Source], source: Source) -> list[str]:
    """What a filter for words in any column reads of each row, in lower case: the fields that a filter looks at."""
    rows, parts = range(table.length(source)), list[list[str]]()
    for quantity in table.fields:
        if quantity.filter:
            words = (quantity.screen and quantity.screen.words) or quantity.unit.words
            values = _values(quantity, source, rows)
            parts.append([quantity.filter_unknown if value is None else words(value, True) for value in values])
    return ["\n".join(texts).casefold() for texts in zip(*parts, strict=True)] if parts else [""] * len(rows)
