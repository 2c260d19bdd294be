"""Tables as columns: which kind of array each becomes, what is unknown in it, and how a notebook shows it."""

from __future__ import annotations

import sys
from typing import Any

import pandas
import polars
import pyarrow
import pytest

from tests.support.documents import EVIL
from tpuprof import Column, ProfileError, Table


def table(**values: Any) -> Table:
    return Table("rows", [Column(key, "count", f"what {key} is") for key in values], values)


def test_a_table_is_read_by_key() -> None:
    rows = table(name=["a", "b"], time=[1, None])
    assert len(rows) == 2 and [*rows.keys()] == ["name", "time"] and "time" in rows and "times" not in rows
    assert rows["time"] is rows["time"] and rows.values("time") == [1, None]
    assert [(row.name, row.time) for row in rows] == [("a", 1), ("b", None)] == [*rows] == rows[:] and rows[-1] == rows[
        1
    ]
    for key, hint in (("tine", "one of: time"), (["name"], "table[0] is a row")):
        with pytest.raises(ProfileError) as raised:
            rows[key]  # type: ignore[index]
        assert raised.value.hint.startswith(hint)
    assert len(table()) == 0 and not [*table()]
    assert table(**{"a.b": [1], "a.c": [2]}).to_dicts() == [{"a": {"b": 1, "c": 2}}]


MIXED: dict[str, Any] = {
    "name": ["a", None],
    "time": [1, None],
    "share": [0.5, 2],
    "list": [["x"], []],
    "flag": [True, None],
}


def test_data_frames_have_the_same_values() -> None:
    rows = table(**MIXED)
    assert rows.to_polars().to_dict(as_series=False) == MIXED
    assert rows.to_arrow().to_pydict() == MIXED
    for frame in (rows.to_pandas(), pandas.DataFrame(rows)):
        assert list(frame.columns) == list(MIXED) and frame["share"].tolist() == [0.5, 2.0]
        assert frame["time"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("key", "unit", "values", "kind"),
    [
        ("step", "count", [None], "int64"),
        ("share", "percent", [None], "double"),
        ("share", "percent", [100], "double"),
        ("program_id", "number", [7], "uint64"),
        ("name", "text", [], "string"),
        ("problems", "list of problems", [[]], "list<item: string>"),
        ("made", "", [2**63, 1], "uint64"),
        ("made", "", [2**64], "string"),
        ("made", "", [{"a": 1}, 5], "string"),
        ("made", "", [1, 2.5], "double"),
        ("made", "", ["\udc80"], "string"),
    ],
)
def test_a_column_has_the_type_of_its_unit(key: str, unit: str, values: list[object], kind: str) -> None:
    rows = Table("rows", [Column(key, unit, "")], {key: values})
    made = rows.to_arrow()
    assert str(made.schema.types[0]) == kind
    assert polars.DataFrame(rows).equals(rows.to_polars()) and pyarrow.table(rows).equals(made)


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_a_package_that_is_missing_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    convert = {"pandas": Table.to_pandas, "polars": Table.to_polars, "pyarrow": Table.to_arrow}[name]
    with pytest.raises(ProfileError, match="which is not installed here") as raised:
        convert(table(name=["a"]))
    assert raised.value.hint == f"pip install {name}"
    assert polars.DataFrame(table(name=["a"])).height == 1  # by Polars where PyArrow is missing


def test_a_notebook_gets_the_first_rows_with_names_as_text() -> None:
    evil = f'{EVIL}<script>alert("1")</script>'
    html = Table(evil, [Column("<b>", '"x"', "<i>")], {"<b>": [evil, 3, None, 1234.5]}, left_out=2)._repr_html_()
    assert "<script" not in html and "<b>" not in html and "<i>" not in html and "\x1b" not in html
    assert "&lt;script&gt;" in html and "<td align=right>1,234.5</td>" in html and "<td>n/a</td>" in html
    assert "2 more rows not shown" in html
    html = table(number=list(range(1000)))._repr_html_()
    assert html.count("<tr>") == 51 and "1,000 rows, 950 more rows not shown" in html
