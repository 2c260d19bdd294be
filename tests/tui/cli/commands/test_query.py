"""SQL over a profile: the figures of reports, nothing written, nothing opened, and within its limits."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tpuprof
from tests.parsers.pages.shared.test_split_runs import split
from tests.support.build import host_bytes, write_run
from tests.support.documents import EVIL
from tests.tui.api.test_profile import made_logdirs  # noqa: F401 - a fixture
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.tui.api.sql import tables
from tpuprof.tui.api.sql.printing import ANSWERS, QueryResult
from tpuprof.tui.api.sql.query import Answer, Database
from tpuprof.tui.api.sql.tables import BY_NAME, TABLES
from tpuprof.tui.cli.arguments.query import example_queries
from tpuprof.tui.demo import demo_path
from tpuprof.tui.report.page import FORMATS, TextLook

SAME = {
    "ops": ("ops", "ops"),
    "cores": ("cores", "cores"),
    "hosts": ("hosts", "hosts"),
    "modules": ("inference", "modules"),
    "allocators": ("memory-profile", "allocators"),
    "collectives": ("collectives", "collectives"),
    "collective_groups": ("collectives", "collective_groups"),
    "copies": ("collectives", "copies"),
    "findings": ("findings", "findings"),
}
"""Tables that are one of a page, and the key of that in JSON."""


def flat(row: dict[str, object]) -> dict[str, object]:
    """A row of JSON with the names of SQL for what is in objects."""
    made: dict[str, object] = {}
    for key, value in row.items():
        made |= {f"{key}_{name}": item for name, item in value.items()} if isinstance(value, dict) else {key: value}
    return made


@pytest.mark.parametrize("name", ["demo", "gpus", "serving", "hosts"])
def test_tables_have_the_figures_of_pages(name: str, logdirs: dict[str, str], call: Call) -> None:
    for table, (page, key) in SAME.items():
        document = call.json("report", page, logdirs[name], "--limit", "0", "--format", "json")
        answer = call.json("query", logdirs[name], f"SELECT * FROM {table}", "--limit=0", "--format=json")
        assert len(answer["rows"]) == len(document[key]), table
        for row, expected in zip(answer["rows"], map(flat, document[key]), strict=True):
            assert row == {column: expected.get(column) for column in row}, table
    allocators = call.json("report", "memory-profile", logdirs[name], "--limit", "0", "--format", "json")["allocators"]
    for table, key in (("memory_events", "timeline"), ("memory_at_peak", "at_peak")):
        of_page = [{"host": of["host"], "allocator": of["id"], **row} for of in allocators for row in of[key]]
        answer = call.json("query", logdirs[name], f"SELECT * FROM {table}", "--format=json")
        assert answer["rows"] == of_page and (allocators or answer["warnings"]), "why there is none is said"


@pytest.mark.parametrize("name", ["demo", "gpus", "cpu", "serving", "hosts"])
def test_steps_have_their_cores_and_owners(name: str, logdirs: dict[str, str], call: Call) -> None:
    """Steps and cores are those of the pages; over cores the owners are those of the ledger."""
    rows = call.json("query", logdirs[name], "SELECT * FROM steps", "--limit=0", "--format=json")["rows"]
    hosts = call.json("report", "hosts", logdirs[name], "--format=json", "--limit=0")["steps"]
    assert {(row["name"], row["core"]) for row in rows} == {
        (step["name"], core["core"]) for step in hosts for core in step["cores"]
    }
    for step in hosts:
        assert max(row["duration_ms"] for row in rows if row["name"] == step["name"]) == step["duration_ms"]
    for step in tpuprof.open(logdirs[name]).table("ledger", "steps").to_dicts() if rows else ():
        known = [row for row in rows if row["name"] == step["name"] and row["time_ms"] is not None]
        assert {row["time_ms"] for row in known} == {step["time_ms"]}
        owners = [sum(row[key] for row in known) / len(known) for key in step if key.endswith("_ms")]
        assert owners == pytest.approx([value for key, value in step.items() if key.endswith("_ms")])


@pytest.fixture(scope="module", name="theirs")
def duckdb_of_tables() -> Iterator[duckdb.DuckDBPyConnection]:
    profile = tpuprof.open("demo")
    with duckdb.connect() as connection:
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for name in BY_NAME:
            connection.register(name, profile.query(f"SELECT * FROM {name}").to_arrow())
        yield connection


def same(value: Any) -> Any:
    """A value as it may differ in its last digits."""
    return pytest.approx(value) if isinstance(value, float) else value


@pytest.mark.parametrize(
    "sql",
    [
        *example_queries().values(),
        "SELECT name, a.occurrences / 7 AS n, 7 // 2 AS half, '1/2' AS x /* a / b */ FROM ops a ORDER BY 1, 2 -- 1/2",
        "WITH few AS (SELECT * FROM events) SELECT count(*) AS n, max(depth) AS deepest FROM few",
        "SELECT count(*) AS n FROM ops NATURAL JOIN modules",
        "SELECT count(*) AS n FROM cores JOIN steps USING (core)",
        "SELECT max(n) AS n FROM (SELECT step, count(DISTINCT name) AS n FROM events GROUP BY step)",
        "SELECT name FROM ops WHERE remat UNION SELECT name FROM collectives WHERE NOT is_async ORDER BY name",
        "SELECT DISTINCT program_id, program FROM ops ORDER BY program",
        "SELECT name FROM ops WHERE name LIKE 'Fusion%' OR bound_by IS NULL ORDER BY name",
        "SELECT name, flops FROM ops ORDER BY flops, name LIMIT 5",
        "SELECT core, stddev(duration_ms) AS s, stddev_pop(own_time_ms) AS p FROM steps GROUP BY core ORDER BY core",
        "SELECT median(duration_ms) OVER (ORDER BY name, core ROWS 3 PRECEDING) AS m FROM steps ORDER BY name, core",
        "SELECT greatest(1, NULL, 3) AS a, least(2, 5) AS b, starts_with('ab', 'a') AS c, contains('ab', 'c') AS d",
        "SELECT evidence, is_estimate FROM findings ORDER BY name",
        "SELECT arg_max(name, flops) AS a, min_by(name, flops) AS b, quantile(flops, 0.3) AS q FROM ops",
        "SELECT name, regexp_extract(name, '(.)[.](.*)', 2) AS n, regexp_matches(name, '^f') AS f FROM ops ORDER BY 1",
        "SELECT split_part(name, '.', 2) AS p, strpos(name, '.') AS s, concat('-', name) AS c FROM ops ORDER BY c",
        "SELECT regexp_replace(name, '[0-9]', '#') AS r FROM ops WHERE NOT name ILIKE '%FUSION%' ORDER BY name",
    ],
)
def test_duckdb_has_the_same_answers(sql: str, call: Call, theirs: duckdb.DuckDBPyConnection) -> None:
    """Of the tables of Python."""
    ours = call.json("query", "demo", sql, "--limit=0", "--format=json")["rows"]
    result = theirs.execute(sql.replace(" LIKE ", " ILIKE "))
    names = [str(column[0]) for column in result.description or ()]
    assert [{name: same(value) for name, value in zip(names, row, strict=True)} for row in result.fetchall()] == ours
    assert ours


def test_events_know_their_step_and_both_clocks(call: Call) -> None:
    sql = """SELECT e.step, s.name, e.start_unix_ns, e.start_ps FROM events e LEFT JOIN events s ON s.core = e.core
        AND s.track = 'Steps' AND e.start_ps >= s.start_ps AND e.start_ps < s.start_ps + s.duration_ps
        WHERE e.track IN ('XLA Ops', 'python/4211')"""
    rows = call.json("query", "demo", sql, "--to=800", "--limit=0", "--format=json")["rows"]
    assert all(row["step"] == row["name"] for row in rows) and {None, "100", "101"} <= {row["step"] for row in rows}
    with closing(Trace.open(demo_path())) as trace:
        began = trace.planes[-1].stats["profile_start_time"]
    assert all(row["start_unix_ns"] == began + row["start_ps"] // 1000 for row in rows)


def test_buffers_are_those_of_every_module(call: Call) -> None:
    sql = "SELECT module, count(*) AS n, sum(size_bytes) AS size FROM buffers GROUP BY module"
    for row in call.json("query", "demo", sql, "--format", "json")["rows"]:
        buffers = call.json("report", "memory", "demo", "--module", row["module"], "--format", "json")["buffers"]
        assert (row["n"], row["size"]) == (len(buffers), sum(buffer["size_bytes"] for buffer in buffers))


def test_events_are_those_of_the_interval(call: Call) -> None:
    interval = ("--from", "300", "--to", "352.5")
    document = call.json("report", "timeline", "demo", *interval, "--limit", "0", "--format", "json")
    sql = "SELECT track, count(*) AS n, sum(duration_ps) AS ps FROM events GROUP BY track"
    expected: dict[str, list[int]] = {}
    for event in document["events"]:
        expected.setdefault(event["track"], []).append(event["duration_ps"])
    rows = call.json("query", "demo", sql, *interval, "--format", "json")["rows"]
    assert {row["track"]: (row["n"], row["ps"]) for row in rows} == {
        track: (len(times), sum(times)) for track, times in expected.items()
    }
    sql = "SELECT args FROM events ORDER BY start_ps, section, track, depth"
    args = call.json("query", "demo", sql, *interval, "--limit=0", "--format", "json")["rows"]
    order = itemgetter("start_ps", "section", "track", "depth")
    assert [json.loads(row["args"]) for row in args] == [of["args"] for of in sorted(document["events"], key=order)]
    narrowed = call.json(
        "query", "demo", "SELECT DISTINCT core FROM events", *interval, "--core", "2", "--format", "json"
    )
    assert {row["core"] for row in narrowed["rows"]} <= {"demo:2", None}


def test_too_many_events_are_none(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_EVENTS", 1000)
    sentence, hint = call.error(EXIT_USAGE, "query", "demo", "SELECT count(*) FROM events")
    assert sentence == "These are 69,007 events, more than the 1,000 that such a query reads."
    assert hint.startswith("try: --from MS --to MS, or --track") and "--format parquet" in hint


def test_only_tables_that_are_named_are_read(call: Call) -> None:
    answer = call.json("query", "demo", "SELECT 'events' AS word, count(*) AS n FROM ops", "--format", "json")
    assert answer["tables"] == ["ops"] and answer["rows"] == [{"word": "events", "n": 490}]
    call("query", "nowhere", "SELECT 1", code=EXIT_NOT_FOUND)


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT count(*) FROM ops", set()),
        ("SELECT o.name FROM ops o WHERE flops > 1", {"name", "flops"}),
        ("SELECT 1 FROM ops NATURAL JOIN buffers", {column.name for column in BY_NAME["ops"].columns}),
        ("WITH few AS (SELECT name FROM ops) SELECT count(*) FROM few", {"name"}),
        ("SELECT * FROM ops", {column.name for column in BY_NAME["ops"].columns}),
        ("SELECT 1 FROM steps WHERE name IN (SELECT source FROM ops)", {"source"}),
    ],
)
def test_only_columns_that_are_named_are_read(sql: str, columns: set[str]) -> None:
    with closing(Database()) as database:
        for table in BY_NAME.values():
            database.create(table.name, table.columns)
        assert set(database.needed(sql)["ops"]) - {""} == columns


@pytest.mark.parametrize(
    ("sql", "sentence", "hint"),
    [
        ("SELECT o.nam FROM ops o", "nam", "try: one of: name"),
        ("SELEC 1", "syntax error", "try: tpuprof-tui query --schema"),
        ("SELECT levensthein(name, 'a') FROM ops", "levensthein", "try: "),
        ("SELECT median(name) FROM ops WHERE 1 = 1 GROUP BY foo", "foo", "try: "),
        ("SELECT 1; SELECT 2", "this is several statements", "try: SELECT"),
        ("", "No query is given", "try: tpuprof-tui query demo"),
        ("-- nothing", "this is none", "try: SELECT"),
        ("SELECT TOP 5 name FROM ops", "syntax error", "try: LIMIT 5"),
        ("@a.sql", "syntax error", 'try: "$(cat a.sql)"'),
        ("SELECT foo FROM ops", "foo", "try: tpuprof-tui query --schema"),
    ],
)
def test_what_is_wrong_is_a_sentence(sql: str, sentence: str, hint: str, call: Call) -> None:
    said, tried = call.error(EXIT_USAGE, "query", "demo", sql or ".")
    assert sentence in said and tried.startswith(hint)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM '{file}'",
        "COPY (SELECT 1) TO '{file}.csv'",
        "ATTACH '{file}.db'",
        "CREATE TABLE mine AS SELECT 1",
        "INSERT INTO ops (name) VALUES ('a')",
        "DROP TABLE ops",
        "WITH new AS (INSERT INTO ops (name) VALUES ('a') RETURNING name) SELECT * FROM new",
        "PRAGMA database_list",
        "EXPLAIN SELECT nam FROM ops",
        "VACUUM INTO '{file}.db'",
        "EXPLAIN VACUUM INTO '{file}.db'",
        "SELECT load_extension('{file}')",
        "PRAGMA hard_heap_limit = 1",
        "DETACH main",
        "REINDEX",
        "BEGIN",
    ],
)
def test_nothing_is_written_or_opened(sql: str, tmp_path: Path, call: Call) -> None:
    file = tmp_path / "secret.txt"
    file.write_text("nobody's business")
    printed = call("query", "demo", sql.format(file=file), code=EXIT_USAGE)
    assert "nobody" not in printed.out + printed.err and [*tmp_path.iterdir()] == [file]


ENDLESS = "SELECT 1 AS a UNION ALL SELECT a + 1 FROM t"
LONG = f"WITH RECURSIVE t AS ({ENDLESS}) SELECT max(a) FROM t"


def test_a_query_without_end_is_stopped(call: Call) -> None:
    sentence, hint = call.error(EXIT_USAGE, "query", "demo", LONG, "--time-limit", "1")
    assert sentence == "The query was stopped after 1 second." and "--time-limit" in hint


@pytest.mark.skipif(sys.platform != "linux", reason="the system bounds the memory of a process there")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT hex(zeroblob(900000000))",
        f"WITH RECURSIVE t AS ({ENDLESS}) SELECT hex(zeroblob(100000)) FROM t",
        f"WITH RECURSIVE t AS ({ENDLESS}) SELECT a, hex(zeroblob(100000)) FROM t ORDER BY a",
    ],
)
def test_a_query_that_is_too_large_is_stopped(sql: str, call: Call) -> None:
    limits = ("--memory-limit=16", "--time-limit=300")
    sentence, hint = call.error(EXIT_USAGE, "query", "demo", sql, *limits)
    assert sentence == "The query needs more memory than the 16 MiB that it may use." and "--memory-limit" in hint


def test_a_limit_is_said_in_every_format(call: Call) -> None:
    sql = "SELECT name FROM ops"
    said = "the first 3 rows, and there are more: --limit 0 has all rows"
    for form in FORMATS:
        printed = call("query", "demo", sql, "--limit", "3", "--format", form)
        if form == "json":
            document = json.loads(printed.out)
            assert document["has_more"] and document["row_count"] == 3 and "--limit 0" in document["more"]
        else:
            assert said in (printed.err if form == "csv" else printed.out.replace("\\", "")), form
    whole = call.json("query", "demo", sql, "--limit", "490", "--format", "json")
    assert not whole["has_more"] and whole["row_count"] == 490 and whole["more"] == ""


def test_columns_that_do_not_fit_are_said(call: Call) -> None:
    assert "columns did not fit: --width" in call("query", "demo", "SELECT * FROM ops", "--width", "80").out
    assert "did not fit" not in call("query", "demo", "SELECT name FROM ops", "--width", "80").out
    assert "no row" in call("query", "demo", "SELECT name FROM ops WHERE false").out


def test_events_warn_of_what_ops_lack(logdirs: dict[str, str], call: Call) -> None:
    of_events, of_ops = (
        call.json("query", logdirs["cpu"], f"SELECT count(*) FROM {table}", "--json") for table in ("events", "ops")
    )
    assert {*of_events["warnings"]} >= {*of_ops["warnings"]} != set()


def test_the_query_may_come_first_and_must_come(call: Call) -> None:
    sql = "SELECT count(*) FROM ops"
    assert call("query", sql, "demo").out == call("query", "demo", sql).out
    said, tried = call.error(EXIT_USAGE, "query", "demo")
    assert said == "No query is given." and "SELECT name" in tried and "query --schema" in tried
    assert call("query", "demo", "--sql", sql).out == call("query", "demo", sql).out


def test_a_core_has_all_its_names_and_one_that_is_not_there_is_answered_with_those_that_are(call: Call) -> None:
    sql = "SELECT core FROM cores WHERE core = '{}'"
    for name in ("2", "TPU:2", "/device:TPU:2", "demo:2"):
        assert call.json("query", "demo", sql.format(name), "--format=json")["rows"] == [{"core": "demo:2"}], name
    for name in ("9", "other:2"):
        warnings = call.json("query", "demo", sql.format(name), "--format=json")["warnings"]
        assert "cores.core is one of: demo:0, demo:1, demo:2, demo:3" in warnings


def test_names_that_are_written_differently_are_answered_with_those_that_are_there(call: Call) -> None:
    sql = "SELECT * FROM ops WHERE name LIKE '%AllReduce%'"
    assert "ops.name has all-reduce" in " ".join(call.json("query", "demo", sql, "--format=json")["warnings"])


def test_several_runs_together_have_the_events_of_all(tmp_path: Path, call: Call) -> None:
    name = "+".join(run.name for run in split(tmp_path, 36, 38).runs)
    rows = call.json("query", str(tmp_path), "SELECT DISTINCT core FROM events", "--run", name, "--format=json")["rows"]
    assert {row["core"] for row in rows} == {"node-0:0", "node-0:1", "node-1:0", "node-1:1"}


def test_a_place_in_the_source_is_never_cut(call: Call) -> None:
    place = f"{'folder/' * 8}model.py:62"
    printed = call("query", "demo", f"SELECT name || '{'x' * 60}' AS name, '{place}' AS source FROM ops LIMIT 1").out
    assert place in printed and "x" * 60 in printed


def test_names_of_a_profile_are_no_sql(tmp_path: Path, call: Call) -> None:
    evil = b"';DROP--"
    logdir = write_run(tmp_path, host0=host_bytes().replace(b"fusion.1", evil))
    for table in ("ops", "events"):
        rows = call.json("query", str(logdir), f"SELECT name FROM {table}", "--limit=0", "--format=json")["rows"]
        assert any(row["name"] == evil.decode() for row in rows), (table, rows)


def test_tables_are_listed_and_described(call: Call) -> None:
    assert call("query", "demo", "show tables", "--format", "csv").out.split()[1:] == list(BY_NAME)
    (row,) = call.json("query", "demo", "DESCRIBE ops;", "--format", "json")["rows"]
    assert all(f'"{column.name}" ' in row["sql"] for column in BY_NAME["ops"].columns)


def test_values_of_every_kind(call: Call) -> None:
    sql = "SELECT 1.5 AS a, x'41' AS b, 9e999 AS c, 1 / 0 AS e, 'n' AS name, 'm' AS name"
    document = call.json("query", "demo", f"{sql}, 7 / 2", "--format", "json")
    assert document["rows"] == [{"7 / 2": 3.5, "a": 1.5, "b": "b'A'", "c": None, "e": None, "name": "n", "name_1": "m"}]
    assert set(document["unknown"]) == {"rows[].c", "rows[].e"}


def test_hostile_values_are_harmless() -> None:
    answer = Answer((EVIL,), ("VARCHAR",), [(EVIL,), (f"=1+1{EVIL}",), (None,)], False, ())
    result, look = QueryResult(EVIL, answer, Run("run", "run", (), ()), ()), TextLook(80, True, False)
    for form in FORMATS:
        text = ANSWERS[form](result, look)
        assert "\x1b" not in text and (form != "md" or "<b>" not in text.replace("\\<b\\>", ""))
    rows = list(csv.reader(io.StringIO(ANSWERS["csv"](result, look))))
    assert rows[2][0].startswith("'=1+1")


def test_the_schema_has_every_column(call: Call) -> None:
    document = call.json("query", "--schema", "--format", "json")
    assert [table["name"] for table in document["tables"]] == [table.name for table in TABLES]
    for table in document["tables"]:
        sql = f"SELECT * FROM {table['name']} -- with args"
        names = call.json("query", "demo", sql, "--to=300", "--limit=1", "--format=json")["columns"]
        assert [(column["name"], column["type"]) for column in table["columns"]] == [
            (of["name"], of["type"]) for of in names
        ]
        assert all(column["unit"] and column["meaning"] for column in table["columns"])
    for form in ("text", "md", "csv"):
        assert "roofline_efficiency" in call("query", "--schema", "--format", form).out


def test_without_pyarrow_parquet_says_what_to_install(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    words = ("report", "ops", "demo", "--format", "parquet", "--output", str(tmp_path / "a.parquet"))
    sentence, hint = call.error(EXIT_USAGE, *words)
    assert (
        "PyArrow, which is not installed" in sentence
        and hint == f"try: {sys.executable} -m pip install 'tpuprof-tui[parquet]'"
    )
    assert not [*tmp_path.iterdir()]


def read_parquet(file: Path) -> list[dict[str, object]]:
    with duckdb.connect() as connection:
        rows = connection.execute(f"FROM '{file}'").fetchall()
        return [dict(zip([str(each[0]) for each in connection.description or ()], row, strict=True)) for row in rows]


def test_parquet_has_the_rows_of_csv(call: Call, tmp_path: Path) -> None:
    for page in ("ops", "findings", "inference", "timeline", "hosts", "op-profile"):
        file, compared = tmp_path / f"{page}.parquet", 0
        call("report", page, "demo", "--format", "parquet", "--output", str(file))
        rows = read_parquet(file)
        lines = list(csv.DictReader(io.StringIO(call("report", page, "demo", "--format", "csv", "--limit", "0").out)))
        assert len(rows) == len(lines), page
        for key in (
            {"occurrences", "self_time_ps", "worth_ms", "total_ms", "events", "cost_ms"} & {*rows[0]} & {*lines[0]}
        ):
            assert [row[key] for row in rows] == [None if line[key] == "" else float(line[key]) for line in lines]
            compared += 1
        assert compared or page == "op-profile"


def test_parquet_has_chosen_rows_and_needs_a_file(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "few.parquet"
    chosen = ("--filter", "occurrences>60", "--columns", "name,occurrences", "--limit", "3")
    call("report", "ops", "demo", *chosen, "--format", "parquet", "--output", str(file))
    few = read_parquet(file)
    assert list(few[0]) == ["name", "occurrences"] and len(few) == 3
    sentence, hint = call.error(EXIT_USAGE, "report", "ops", "demo", "--format", "parquet")
    assert sentence == "A Parquet file can't be printed." and "--output" in hint
    call("report", "memory-profile", "demo", "--columns", "label", "--format", "parquet", "--output", str(file))
    assert [row["label"] for row in read_parquet(file)] == [f"HBM of device {core}" for core in range(4)]
