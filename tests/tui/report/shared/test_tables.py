"""Tables of any values against plain loops: order, filters, columns, cells; and files that a report may go to."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from itertools import product
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.logdir import HostFile, Logdir, Run
from tpuprof.tui.api.table import as_array
from tpuprof.tui.draw.spans import ASCII, BLOCK
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.report.choice import report_of_rows
from tpuprof.tui.report.fields import (
    ColumnSpec,
    Field,
    Table,
    filter_texts,
    of_each,
    order,
    reasons,
    screen_columns,
    searched_texts,
)
from tpuprof.tui.report.page import Head, TableOptions, TextLook
from tpuprof.tui.report.shared.columns import as_text, fitting_type
from tpuprof.tui.report.shared.exporting import Export, ShownTable, default_path, kind_of
from tpuprof.tui.report.shared.target import check_output
from tpuprof.tui.report.text import cut_name
from tpuprof.tui.report.units import COUNT, FLAG, VERBATIM, Unit


@dataclass(frozen=True)
class Row:
    name: str | None
    count: int | None
    is_odd: bool


def field(key: str, unit: Unit, null: str, unknown: str, is_left: bool = False) -> Field[Sequence[Row]]:
    look = ColumnSpec[Sequence[Row]](key, 8, is_left=is_left)
    return Field(key, unit, of_each(attrgetter(key)), "what", null, key, look, None, (key,), unknown)


FIELDS = (
    field("name", VERBATIM, "it has none", "none"),
    field("count", COUNT, "nobody counted", "n/a"),
    field("is_odd", FLAG, "", "?", is_left=True),
)
KEYS = tuple(each.key for each in FIELDS)
TABLE: Table[Sequence[Row]] = Table("rows", FIELDS, len, KEYS, screen=KEYS)
ROWS = st.lists(
    st.builds(Row, st.none() | st.text("abC", max_size=3), st.none() | st.integers(0, 9), st.booleans()), max_size=8
)


@given(ROWS, st.sampled_from(["name", "count"]), st.booleans())
def test_rows_come_in_the_order_of_a_column_unknown_ones_last_and_ties_as_they_are(
    rows: list[Row], name: str, descending: bool
) -> None:
    known = [place for place, row in enumerate(rows) if name == "name" or getattr(row, name) is not None]
    values = {place: getattr(rows[place], name) or (0 if name == "count" else "") for place in known}
    expected = sorted(known, key=lambda place: values[place], reverse=descending)
    if descending:  # a reversed order turns ties around, too
        expected = [
            place for value in sorted(set(values.values()), reverse=True) for place in known if values[place] == value
        ]
    assert order(TABLE, rows, name, descending).tolist() == [*expected, *(set(range(len(rows))) - set(known))]
    assert TABLE.is_down(Listing(sort=name)) == (name == "count")


@given(ROWS)
def test_a_filter_reads_what_a_row_shows(rows: list[Row]) -> None:
    odd = ["yes" if row.is_odd else "no" for row in rows]
    found = filter_texts(TABLE, rows, ("name", "is_odd", "nothing"))
    assert list(found["name"]) == [row.name or ("none" if None in [each.name for each in rows] else "") for row in rows]
    assert list(found["is_odd"]) == odd and list(found["nothing"]) == [""] * len(rows)
    for row, text in zip(rows, searched_texts(TABLE, rows), strict=True):
        words = text.split("\n")
        assert len(words) == 3 and words[0] == ("none" if row.name is None else row.name.lower() or "n/a")
        assert words[1] == ("n/a" if row.count is None else str(row.count))
    assert searched_texts(Table("none", (), len, ()), []) == []


@given(ROWS.filter(bool), st.data())
def test_cells_are_those_of_the_rows_asked_for(rows: list[Row], data: st.DataObject) -> None:
    asked = data.draw(st.lists(st.integers(0, len(rows) - 1)))
    columns = screen_columns(TABLE, rows, BLOCK)
    assert [(column.title, column.right) for column in columns] == [("name", False), ("count", True), ("is_odd", False)]
    whole = [[text for text, _ in column.cells(range(len(rows)))] for column in columns]
    assert [[text for text, _ in column.cells(asked)] for column in columns] == [
        [each[row] for row in asked] for each in whole
    ]


@given(st.dictionaries(st.sampled_from(["rows.name", "rows.count", "page.x", "other.name"]), st.text("ab", min_size=1)))
def test_a_null_has_the_pages_reason_before_that_of_its_field(said: dict[str, str]) -> None:
    own = {f"rows[].{field.key}": field.null for field in TABLE.fields if field.null}
    pages = {f"rows[].{key[5:]}": why for key, why in said.items() if key.startswith("rows.")}
    assert reasons(TABLE.fields, "rows[]", said, "rows") == own | pages
    assert reasons(TABLE.fields, "rows[]", {f"x.{key}": why for key, why in said.items()}) == own


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(),
    st.lists(st.integers(), max_size=2),
)

NUMBERS = st.none() | st.integers(-9, 9) | st.floats(-9, 9)


@given(st.lists(VALUES, max_size=5) | st.lists(NUMBERS, max_size=5) | st.lists(st.booleans()))
def test_an_array_holds_what_the_column_holds(values: list[object]) -> None:
    found = as_array(values, fitting_type(values))
    back = [None if isinstance(each, float) and math.isnan(each) else each for each in found.tolist()]
    assert back == values and found.shape == (len(values),)
    kinds = {type(value) for value in values}
    assert (found.dtype == np.bool_) == (kinds == {bool})
    if kinds == {int} and all(isinstance(value, int) and abs(value) < 2**63 for value in values):
        assert found.dtype == np.int64
    numbers = kinds - {type(None)}
    if (
        kinds != {int}
        and numbers
        and numbers <= {int, float}
        and all(abs(value) < 9 for value in values if isinstance(value, (int, float)))
    ):
        assert found.dtype == np.float64


@given(st.text("abcdef", max_size=20), st.integers(3, 25))
def test_a_name_keeps_both_ends_where_it_is_cut(text: str, cells: int) -> None:
    for glyphs in (BLOCK, ASCII):
        cut = cut_name(text, cells, glyphs)
        assert cut == text if len(text) <= cells else len(cut) == cells and cut.count(glyphs.ellipsis) == 1
        begin, _, end = cut.partition(glyphs.ellipsis)
        assert cut == text or (text.startswith(begin) and text.endswith(end) and abs(len(begin) - len(end)) <= 1)


TEXTS = st.text("ab\x1b\n\u202eñ", max_size=9)


@given(TEXTS | st.dictionaries(TEXTS, st.integers()) | st.lists(TEXTS))
def test_a_database_holds_texts_that_can_be_printed(value: object) -> None:
    text = as_text(value)
    assert text.isprintable()
    if not isinstance(value, str) and json.dumps(value, ensure_ascii=False).isprintable():
        assert json.loads(text) == value
    assert text.count("ñ") == str(value).count("ñ")
    assert text == value or not (isinstance(value, str) and value.isprintable())


RUN = Run("today", "/logs/today", (), ())
HEAD = Head("Rows of today", RUN, ("host0",))


@given(ROWS, st.data(), st.sampled_from(["", "count>1"]), st.sampled_from(["", "count:asc"]))
def test_chosen_rows_stand_in_every_format_in_their_order(
    rows: list[Row], data: st.DataObject, kept: str, by: str
) -> None:
    asked = data.draw(st.lists(st.integers(0, len(rows) - 1), unique=True)) if rows else []
    shown = ShownTable("rows", TABLE, rows, asked, ("name", "count"), kept, by)
    words = ", ".join([f"where {kept}"] * bool(kept) + [f"by {by}"] * bool(by))
    choice = TableOptions(kept, by, ("name", "count"))
    assert choice.words == words
    made = {
        form: report_of_rows("rows", HEAD, shown, choice, form, TextLook(120, False, False))
        for form in ("json", "csv", "md", "text")
    }
    records = json.loads(made["json"])
    assert records["rows"] == [{"name": rows[row].name, "count": rows[row].count} for row in asked]
    assert (records["all_rows"], records["matching_rows"], records["left_out_rows"]) == (len(rows), len(asked), 0)
    cells = [[rows[row].name or "", "" if rows[row].count is None else str(rows[row].count)] for row in asked]
    assert made["csv"].splitlines() == ["name,count", *(",".join(cell) for cell in cells)]
    lines = made["text"].splitlines()
    assert (words in lines[0]) and len(lines[0]) == 120 and f"of {len(rows)} row" in lines[0]
    if asked:
        numbers = [line.split()[-1] for line in lines[-len(asked) :]]
        assert numbers == [cell[1] or "n/a" for cell in cells]
        assert len({len(line.rstrip()) for line in lines[-len(asked) - 1 :]}) == 1  # a number ends where its title does
        narrow = report_of_rows("rows", HEAD, shown, choice, "text", TextLook(24, False, False))
        assert [line.split()[-1] for line in narrow.splitlines()[-len(asked) :]] == numbers
    else:
        assert "no row matches" in lines[-1]
    assert (words or "row") in made["md"].replace("\\", "")


@pytest.mark.parametrize(("link", "known"), list(product(["same", "symbolic", "hard"], ["run", "input", "query"])))
def test_no_name_leads_to_a_file_that_is_read(link: str, known: str, tmp_path: Path) -> None:
    read, target = tmp_path / "data" / "read.bin", tmp_path / "out.json"
    read.parent.mkdir()
    read.write_bytes(b"x")
    if link == "same":
        target = read
    else:
        (target.symlink_to if link == "symbolic" else target.hardlink_to)(read)
    host = HostFile("host0", str(read), 1, 0.0, False)
    run = Run("r", str(tmp_path / "elsewhere"), (host,) if known == "run" else (), ())
    logdir = Logdir(str(read) if known == "query" else "x", (run,), (), ())
    inputs = [str(read)] if known == "input" else []
    with pytest.raises(ProfileError):
        check_output(str(target), logdir, inputs)
    check_output(str(tmp_path / "new.json"), logdir, inputs)
    unrelated = tmp_path / "unrelated.json"
    unrelated.write_text("{}")
    check_output(str(unrelated), logdir, inputs)


@given(st.text("aB /ü.", max_size=70), st.booleans(), st.integers(0, 3))
def test_a_file_that_is_proposed_is_new_and_no_folder_of_a_run(
    tmp_path_factory: pytest.TempPathFactory, name: str, has_table: bool, taken: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        here = tmp_path_factory.mktemp("here")
        patch.chdir(here)
        patch.setenv("XDG_STATE_HOME", str(here / "state"))
        for _ in range(taken):
            Path(default_path(name, has_table, None)).touch()
        path = default_path(name, has_table, RUN)
        assert not os.path.lexists(path) and len(set(os.listdir(here))) == taken and os.sep not in path
        assert path.endswith(".csv" if has_table else ".svg")
        (here / "mine.xplane.pb").touch()
        of_here = Run("r", str(here), (HostFile("h", str(here / "mine.xplane.pb"), 0, 0.0, False),), ())
        assert default_path(name, has_table, of_here).startswith(str(here / "state"))
        with pytest.raises(ProfileError):
            kind_of(str(here / "other.csv"), Export("x.csv", {".csv": lambda: (lambda _: None, "")}, of_here))
