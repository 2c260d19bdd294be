"""Whole, or counted: what a report leaves out to fit into some bytes, it counts, and it says how to get it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.tui.cli.calls import Call, run
from tpuprof.parsers.base.errors import EXIT_USAGE
from tpuprof.tui.cli import printing
from tpuprof.tui.pages import PAGES
from tpuprof.tui.report.page import FORMATS, PIPE_BYTES
from tpuprof.tui.report.shared.bounded import bounded_json, fitting

NAMES = [page.name for page in PAGES if not page.is_of_arrays]
LEFT_OUT = "note: left out to fit "


def lengths(value: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """How long the lists of objects in a document are, those in others with `[]` behind the outer one's name."""
    if isinstance(value, dict):
        for key, item in value.items():
            place = f"{name}.{key}" if name else key
            if isinstance(item, list) and key != "children":  # a tree counts what it hides itself
                yield place, len(item)
                for each in item:
                    yield from lengths(each, f"{place}[]")
            else:
                yield from lengths(item, place)


def summed(document: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, number in lengths(document):
        found[name] = found.get(name, 0) + number
    return found


@pytest.mark.parametrize("page", NAMES)
def test_every_page_is_whole_or_counted(page: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("report", page, "demo", "--format")
    whole: dict[str, str] = {form: call(*words, form).out for form in FORMATS}
    monkeypatch.setattr(printing, "is_pipe", lambda _: True)
    for form, bound in (("text", ()), ("csv", ()), ("md", ("--max-bytes", "3000")), ("json", ("--max-bytes", "3000"))):
        given, most = call(*words, form, *bound), 3000 if bound else PIPE_BYTES
        if (form == "csv" and not bound) or len(whole[form].encode()) <= most:
            assert given.out == whole[form] and LEFT_OUT not in given.err, form
        else:
            assert len(given.out.encode()) <= most and LEFT_OUT in given.err, form
    every, few = json.loads(whole["json"]), call.json(*words, "json", "--limit", "1")
    here = summed(few)
    shorter = {name: number for name, number in summed(every).items() if here.get(name, 0) < number}
    outer = {name for name in shorter if not any(name.startswith(f"{other}[]") for other in shorter)}
    assert {name: shorter[name] - here.get(name, 0) for name in outer} == few.get("left_out_rows", {})
    assert {name: shorter[name] for name in outer} == few.get("all_rows", {})


def test_rows_of_a_csv_and_of_json_are_counted(call: Call) -> None:
    words = ("report", "ops", "demo", "--columns", "name,self_time_ps", "--format")
    every = list(csv.DictReader(io.StringIO(call(*words, "csv").out)))
    small = call(*words, "csv", "--max-bytes", "1000")
    rows = list(csv.DictReader(io.StringIO(small.out)))
    assert rows == every[: len(rows)] and len(rows) > 0 and f"{len(every) - len(rows)} rows" in small.err
    assert small.err.rstrip().endswith("tpuprof-tui report ops demo --columns name,self_time_ps --format csv")
    found = call.json(*words, "json", "--max-bytes", "2000", "--limit", "100")
    assert found["all_rows"] == found["matching_rows"] == len(every) == len(found["rows"]) + found["left_out_rows"]
    assert found["next"] == "tpuprof-tui report ops demo --columns name,self_time_ps --format json"
    sentence, hint = call.error(EXIT_USAGE, *words[:3], "--max-bytes", "2000", "--format", "html", "--output", "x")
    assert "--max-bytes does not work with --format html" in sentence and "json" in hint


@pytest.mark.parametrize(
    "words",
    ["query --schema", "query demo SELECT\t*\tFROM\tops", "report ops --describe", "report runs demo", "trend demo"],
)
def test_every_command_has_the_bound(words: str, call: Call) -> None:
    given = [word.replace("\t", " ") for word in words.split(" ")]
    for form in ("text", "json"):
        small = call(*given, "--format", form, "--max-bytes", "1500")
        assert len(small.out.encode()) <= 1500
        if form == "json" and LEFT_OUT in small.err:
            assert json.loads(small.out)["left_out_rows"]


def test_a_pipe_is_told_from_a_file(tmp_path: object) -> None:
    done = run("report", "ops", "demo")
    assert len(done.stdout) <= PIPE_BYTES and LEFT_OUT in done.stderr.decode()
    assert len(run("report", "ops", "demo", "--limit", "0").stdout) > PIPE_BYTES
    written = run("report", "ops", "demo", "--output", f"{tmp_path}/ops.txt")
    assert LEFT_OUT not in written.stderr.decode()


def test_as_many_rows_as_fit() -> None:
    for width, rows in ((25, 100_000), (150, 1_000), (3_000, 50), (30_000, 2)):

        def make(limit: int | None, width: int = width, rows: int = rows) -> str:
            return "x" * (width * (rows if limit is None else min(limit, rows)))

        made, is_cut = fitting(make, rows, PIPE_BYTES)
        fits = PIPE_BYTES // width
        assert is_cut and (len(made) == width if not fits else 0.9 * fits * width <= len(made) <= PIPE_BYTES)
    assert fitting(lambda limit: iter(("in ", "pieces")) if limit is None else "", 3, 1000) == ("in pieces", False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=200,
)


@settings(max_examples=EXAMPLES)
@given(answer=st.dictionaries(st.text(min_size=1, max_size=8), JSON, max_size=6), repeat=st.integers(1, 300))
def test_an_object_fits_and_counts_what_it_lacks(answer: dict[str, Any], repeat: int) -> None:
    large = {key: value * repeat if isinstance(value, str | list) else value for key, value in answer.items()}
    before = {name: number for name, number in summed(large).items() if "." not in name and "[]" not in name}
    keys = set(large)
    text = bounded_json(large, 2000, "more")
    found = json.loads(text)
    assert len(text.encode("utf-8", "backslashreplace")) <= 2000
    assert set(found) - {"all_rows", "left_out_rows", "next"} == keys
    for name, number in before.items():
        if name != "children" and isinstance(found[name], list) and len(found[name]) < number:
            assert found["left_out_rows"][name] == number - len(found[name])
