"""The server for agents, asked by the SDK's own client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import Mock

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client, types
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests import EXAMPLES
from tests.parsers.hosts.workers.test_pool import is_alive
from tests.support.files.dumps import dumped
from tests.tui.cli.calls import PROGRAM, Call, content
from tests.tui.report.test_hostile_names import hostile  # noqa: F401 - a fixture
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.folders import ONLY_BELOW
from tpuprof.tui.cli.commands.agents import tools, worker
from tpuprof.tui.cli.commands.agents.bounded import bounded
from tpuprof.tui.cli.commands.agents.children import Children
from tpuprof.tui.cli.commands.agents.root import Root
from tpuprof.tui.demo import demo_path

RUNS = ("2026_11_19_03_00_00", "2026_11_20_03_00_00")
NEWEST, OLDEST = (f"plugins/profile/{run}" for run in reversed(RUNS))


class Said(NamedTuple):
    """What a tool has answered."""

    text: str
    is_error: bool

    @property
    def answer(self) -> dict[str, Any]:
        assert not self.is_error, self.text
        value: dict[str, Any] = json.loads(self.text)
        return value


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, a compiled module, and links that lead out."""
    made = tmp_path_factory.mktemp("mcp")
    folder, elsewhere = made / "root", made / "elsewhere"
    for run in RUNS:
        (folder / "plugins" / "profile" / run).mkdir(parents=True)
        shutil.copy(demo_path(), folder / "plugins" / "profile" / run / "host0.xplane.pb.gz")
    dumped(folder / "dump", ".hlo.pb")
    elsewhere.mkdir()
    shutil.copy(demo_path(), elsewhere / "host0.xplane.pb.gz")
    (folder / "folder").symlink_to(elsewhere)
    (folder / "linked").mkdir()
    (folder / "linked" / "host0.xplane.pb.gz").symlink_to(elsewhere / "host0.xplane.pb.gz")
    (folder / "beside").mkdir()
    (folder / "beside" / "host0.xplane.pb").write_bytes(b"")
    (folder / "beside" / "host0.trace.json.gz").symlink_to(elsewhere / "host0.xplane.pb.gz")
    (folder / "within").symlink_to(folder / "plugins")
    return folder


def asked(root: Path, *calls: tuple[str, Mapping[str, Any]]) -> list[Said]:
    """What one server answers to some calls."""
    return asyncio.run(_asked(root, calls))


async def _asked(root: Path, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Said]:
    how = StdioServerParameters(
        command=sys.executable, args=["-c", PROGRAM, "mcp", "--root", str(root)], env={**os.environ}
    )
    said = []
    with tempfile.TemporaryFile("w+") as errors:
        async with Client(stdio_client(how, errlog=errors)) as client:
            for name, arguments in calls:
                if name == "list":
                    listed = [tool.model_dump(mode="json", by_alias=True) for tool in (await client.list_tools()).tools]
                    said.append(Said(json.dumps(listed), False))
                    continue
                result = await client.call_tool(name, dict(arguments))
                (block,) = result.content
                assert isinstance(block, types.TextContent)
                said.append(Said(block.text, bool(result.is_error)))
        errors.seek(0)
        assert errors.read() == ""
    return said


def test_seven_tools_answer_as_the_reports_do(root: Path, call: Call) -> None:
    before = content(root)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list", {}),
        ("runs", {"path": "plugins"}),
        ("why", {"path": "plugins"}),
        ("ops", {"path": NEWEST, "filter": "roofline_efficiency<60% >1%", "sort": "occurrences", "columns": "name"}),
        ("op", {"path": "within", "op": "fusion.397", "core": "/device:TPU:2"}),
        ("query", {"path": "plugins", "page": "collectives", "run": RUNS[0], "limit": 2}),
        ("timeline", {"path": "plugins", "from_ms": 300.5, "to_ms": 400, "track": "XLA Ops", "limit": 3}),
        ("diff", {"before": OLDEST, "after": NEWEST}),
        ("query", {"path": "dump", "page": "memory", "limit": 1}),
    ]
    listed, runs, why, ops, op, query, timeline, diff, memory = asked(root, *calls)
    names = [tool["name"] for tool in json.loads(listed.text)]
    assert names == ["runs", "why", "ops", "op", "query", "timeline", "diff"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in json.loads(listed.text))
    assert [run["path"] for run in runs.answer["runs"]] == [NEWEST, OLDEST]

    findings = call.json("report", "findings", "demo", "--limit", "0", "--format", "json")["findings"]
    reasons = why.answer["reasons"]
    assert [one["title"] for one in reasons] == [one["title"] for one in findings]
    assert reasons[0]["worth_ms"] == pytest.approx(findings[0]["worth_ms"], rel=1e-5)
    assert reasons[-1]["worth_ms"] is None and why.answer["unknown"]["reasons[].worth_ms"]

    words = ("--filter", "roofline_efficiency<60% >1%", "--sort", "occurrences", "--columns", "name", "--limit", "20")
    rows = call.json("report", "ops", "demo", "--format", "json", *words)
    assert ops.answer["rows"] == rows["rows"] and ops.answer["matching_rows"] == rows["matching_rows"]
    assert op.answer["core"] == "host0:2" and op.answer["runs"]["count"] == 60
    assert len(query.answer["rows"]) == 2 and query.answer["cut"]["lists"] == {"rows": "2 of 13"}
    assert [event["start_ps"] >= 0 for event in timeline.answer["events"]] == [True] * 3
    assert diff.answer["verdict"]["mark"] == "same" and "ops" not in diff.answer
    assert len(memory.answer["rows"]) == 1
    assert content(root) == before, "nothing is written"


def test_reasons_are_named_first_and_told_by_name(root: Path) -> None:
    (first,) = asked(root, ("why", {"path": "plugins"}))
    names = [reason["reason"] for reason in first.answer["reasons"]]
    assert len(set(names)) == len(names) > 2 and len(first.text) < 2500
    calls = [("why", {"path": "plugins", "reason": name}) for name in (names[0], names[-1], "unfusd")]
    *told, wrong = asked(root, *calls)
    for one, reason in zip(told, (first.answer["reasons"][0], first.answer["reasons"][-1]), strict=True):
        assert one.answer["finding"]["title"] == reason["title"] and one.answer["finding"]["evidence"]
    assert wrong == Said("There is no reason unfusd. Try: one of: unfused", True)


def test_what_does_not_fit_is_cut_and_named(root: Path) -> None:
    call = {"path": "plugins", "from_ms": 0, "to_ms": 5000, "limit": 0}
    small, usual, large = asked(
        root, ("timeline", {**call, "max_bytes": 1}), ("timeline", call), ("timeline", {**call, "max_bytes": 50_000})
    )
    assert len(small.text.encode()) <= tools.LEAST_BYTES < len(usual.text.encode()) <= tools.MOST_BYTES
    assert tools.MOST_BYTES < len(large.text.encode()) <= 50_000
    for said in (usual, large):
        shown, _, whole = said.answer["cut"]["lists"]["events"].split()
        assert int(shown) == len(said.answer["events"]) < int(whole) and "max_bytes" in said.answer["cut"]["more"]
    assert small.answer["events"].startswith("left out: ") or len(small.answer["events"]) == 1


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("..", ".. is outside the folder"),
        ("/etc", "/etc is outside the folder"),
        ("plugins/../../elsewhere", "is outside the folder"),
        ("folder", "folder is outside the folder"),
        ("linked", "it lies outside the folder"),
        ("beside", "holds 0 bytes"),
        ("https://example.invalid/logs", "is outside the folder"),
        ("file:///etc", "is outside the folder"),
        ("\ud800", "is outside the folder"),
        ("~", "does not exist"),
        ("demo", "does not exist"),
    ],
)
def test_nothing_outside_of_the_root_is_read(
    path: str, sentence: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Root.of(str(root))
    monkeypatch.setenv(ONLY_BELOW, place.path)
    for tool, arguments in (("why", {"path": path}), ("query", {"page": "memory", "path": path})):
        (found,) = (each for each in tools.TOOLS if each.name == tool)
        with pytest.raises(ProfileError) as error:
            found.answer(arguments, place, 60)
        assert sentence in error.value.sentence


def test_runs_that_lie_outside_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ONLY_BELOW, str(tmp_path / "root"))
    for where in ("root/plugins/profile/a", "elsewhere/b"):
        (tmp_path / where).mkdir(parents=True)
        shutil.copy(demo_path(), tmp_path / where / "host0.xplane.pb.gz")
    (tmp_path / "root" / "plugins" / "profile" / "b").symlink_to(tmp_path / "elsewhere" / "b")
    (found,) = (each for each in tools.TOOLS if each.name == "runs")
    rows = json.loads(found.answer({}, Root.of(str(tmp_path / "root")), 60))["runs"]
    assert [row["path"] for row in rows] == ["plugins/profile/a"]


def test_an_error_is_one_sentence_with_what_to_try(root: Path) -> None:
    said = asked(
        root,
        ("nope", {}),
        ("why", {"pth": "plugins"}),
        ("why", {"max_bytes": "many"}),
        ("why", {"max_bytes": True}),
        ("op", {"path": "plugins"}),
        ("op", {"path": "plugins", "op": "fusion.39777"}),
        ("ops", {"path": "plugins", "columns": "name,self_time"}),
        ("query", {"path": "plugins", "page": "colectives"}),
        ("query", {"path": "plugins", "page": "live-arrays"}),
        ("why", {"path": "plugins", "run": "1999"}),
        ("ops", {"path": "plugins", "filter": "--output=/tmp/x"}),
        ("timeline", {"path": "plugins", "from_ms": 400, "to_ms": 300}),
        ("diff", {"before": NEWEST, "after": NEWEST}),
    )
    assert [each.is_error for each in said] == [True] * 10 + [False] + [True] * 2
    assert all("\n" not in each.text and len(each.text) < 400 for each in said if each.is_error)
    assert said[1].text == "why takes no pth. Try: one of: path"
    assert "self_time_ps" in said[6].text and "collectives" in said[7].text
    assert said[10].answer["matching_rows"] == 0, "a value is no option"


def test_query_takes_sql_with_its_locks(root: Path, call: Call) -> None:
    """The engine of `query`: bounded in rows, bytes and time, read-only, below the root."""
    text = "SELECT name, self_time_ps FROM ops ORDER BY 2 DESC"
    calls: list[tuple[str, dict[str, Any]]] = [
        ("query", {"path": NEWEST, "sql": text, "limit": 3}),
        ("query", {"path": NEWEST, "sql": "SELECT count(*) AS n FROM events", "from_ms": 300, "to_ms": 400.5}),
        ("query", {"path": NEWEST, "sql": "schema"}),
        ("query", {"path": NEWEST, "sql": f"{text} -- all", "limit": 0, "max_bytes": 1000}),
        ("query", {"path": NEWEST, "sql": "SELECT nme FROM ops"}),
        ("query", {"path": NEWEST, "sql": "SELECT * FROM op"}),
        ("query", {"path": NEWEST, "sql": "SELECT * FROM read_text('/etc/passwd')"}),
        ("query", {"path": NEWEST, "sql": "COPY ops TO '/tmp/x'"}),
        ("query", {"path": NEWEST, "sql": "--output=/tmp/x"}),
        ("query", {"path": "folder", "sql": text}),
        ("query", {"path": "linked", "sql": text}),
        ("query", {"path": NEWEST, "sql": text, "page": "ops"}),
        ("query", {"path": NEWEST}),
        ("query", {"path": NEWEST, "page": "runs", "from_ms": 300}),
    ]
    before = content(root)
    few, events, schema, cut, *refused = asked(root, *calls)
    rows = call.json("query", "demo", text, "--limit", "3", "--format", "json")["rows"]
    assert [row["name"] for row in few.answer["rows"]] == [row["name"] for row in rows] and "more" in few.answer
    assert few.answer["path"] == NEWEST and few.answer["tables"] == ["ops"]
    inside = call.json("query", "demo", "SELECT count(*) AS n FROM events", "--from=300", "--to=400.5", "--format=json")
    assert events.answer["rows"] == inside["rows"] and "more" not in events.answer
    assert "roofline_efficiency" in schema.answer["tables"]["ops"] and "findings" in schema.answer["tables"]
    assert len(cut.text.encode()) <= 1000 and cut.answer["cut"]["lists"]["rows"].endswith(" of 50")
    assert all(each.is_error and "\n" not in each.text for each in refused)
    assert "one of: name" in refused[0].text and "one of: ops" in refused[1].text
    assert "is outside the folder" in refused[5].text and "outside the folder that may be read" in refused[6].text
    assert "sql: schema lists tables" in refused[2].text, "the hint names what the tool takes"
    assert "takes no page" in refused[7].text and "page or sql" in refused[8].text and "timeline" in refused[9].text
    assert content(root) == before, "nothing is written"


def test_query_without_duckdb_has_no_sql(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra `sql` is not installed: the tool neither offers it nor takes it."""
    (query,) = (tool for tool in tools.TOOLS if tool.name == "query")
    assert "sql" in query.schema["properties"]
    monkeypatch.setattr(tools, "find_spec", lambda name: None)
    assert "sql" not in query.schema["properties"] and query.schema["properties"]["page"]["enum"]
    with pytest.raises(ProfileError, match="query takes no sql"):
        query.answer({"sql": "SELECT 1"}, Root(str(root)), 60)


def test_hostile_names_are_data(hostile: Path) -> None:  # noqa: F811
    said = asked(hostile, *((name, {}) for name in ("runs", "why", "ops", "timeline")))
    for each in said:
        assert each.text.isprintable() and "owned" in each.text
        assert each.answer


def test_without_the_sdk_it_says_what_to_install(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not a folder" in call.error(EXIT_NOT_FOUND, "mcp", "--root", tmp_path / "none")[0]
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "tpuprof.tui.cli.commands.agents.server", raising=False)
    sentence, hint = call.error(EXIT_USAGE, "mcp", "--root", tmp_path)
    assert "needs the package mcp" in sentence and hint == "try: pip install 'tpuprof-tui[mcp]'"


LONG_QUERY = {"sql": "SELECT levenshtein(repeat('a', 400000), repeat('b', 400000))"}
"""A query of minutes."""


def children_of(pid: int) -> set[int]:
    """The processes of tools that a process has started, and that are still there."""
    listed = subprocess.run(["ps", "-Aww", "-o", "pid=,ppid=,stat=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 3) for line in listed.stdout.splitlines() if "agents.worker" in line]
    return {int(row[0]) for row in rows if int(row[1]) == pid and not row[2].startswith("Z")}


def test_a_call_is_ended_by_its_limit_a_cancel_or_the_system_and_holds_up_no_other(root: Path) -> None:
    async def calls(seconds: int) -> tuple[list[str], set[int]]:
        children, said = Children(Root.of(str(root)), seconds, 4096, debug=False), list[str]()

        async def ask(tool: str, arguments: dict[str, Any]) -> None:
            said.append((await children.answer(tool, arguments)).text)

        async with children.open():
            (ready,) = children_of(os.getpid())
            async with anyio.create_task_group() as group:
                group.start_soon(ask, "query", LONG_QUERY)
                await anyio.sleep(0)
                os.kill(ready, signal.SIGSTOP)  # it stops at no time of its own
                group.start_soon(ask, "nope", {})
            with anyio.move_on_after(0.5):
                await ask("query", LONG_QUERY)
            (ready,) = children_of(os.getpid())
            async with anyio.create_task_group() as group:
                group.start_soon(ask, "query", LONG_QUERY)
                await anyio.sleep(0)
                os.kill(ready, signal.SIGKILL)
        return said, children_of(os.getpid())

    said, left = asyncio.run(calls(10))
    assert said[0] == "There is no tool nope." and "ended after 10 s, the time limit" in said[1] and len(said) == 3
    assert "ended from outside" in said[2] and not left
    assert all("Try: the same tool" in text and "--" not in text for text in said[1:])


@pytest.mark.parametrize("end", ["killed", "closed"])
def test_no_process_outlives_the_server(end: str, root: Path) -> None:
    words = [sys.executable, "-c", PROGRAM, "mcp", "--root", str(root), "--time-limit", "600"]
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None

        def send(number: int, method: str, params: object) -> None:
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            print(json.dumps(message), file=server.stdin, flush=True)

        send(1, "initialize", first)
        send(2, "tools/call", {"name": "why", "arguments": {"path": "\ud800"}})
        answers = [json.loads(server.stdout.readline())["id"], server.stdout.readline()]
        assert answers[0] == 1 and "does not exist" in answers[1], "half a pair of UTF-16 gets an answer"
        send(3, "tools/call", {"name": "query", "arguments": LONG_QUERY})
        children = children_of(server.pid)
        server.kill() if end == "killed" else server.stdin.close()
        server.wait(60)
    assert children
    deadline = time.monotonic() + 60
    while any(map(is_alive, children)):
        assert time.monotonic() < deadline, "a process is left"
        time.sleep(0.02)


def test_what_fails_is_a_sentence_with_a_number(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ONLY_BELOW, str(root))
    for error, words in (
        (KeyError("secret"), "internal error"),
        (MemoryError(), "4,096 MiB"),
        (OSError("x"), "system"),
    ):
        monkeypatch.setattr(worker, "TOOLS", [SimpleNamespace(name="why", answer=Mock(side_effect=error))])
        said = worker.answered(worker.Call("why", {}, 60, 4096))
        assert said.is_error and words in said.text and "secret" not in said.text and "\n" not in said.text
    monkeypatch.setattr(worker, "TOOLS", [SimpleNamespace(name="why", answer=lambda *_: "\ud800")])
    assert worker.answered(worker.Call("why", {}, 60, 4096)).text == "?"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=200,
)


@settings(max_examples=EXAMPLES)
@given(answer=st.dictionaries(st.text(min_size=1, max_size=8), JSON, max_size=6), repeat=st.integers(1, 300))
def test_an_answer_fits_and_is_json(answer: dict[str, Any], repeat: int) -> None:
    large = {key: value * repeat if isinstance(value, str | list) else value for key, value in answer.items()}
    text = bounded(large, 2000, "more")
    assert len(text.encode("utf-8", "backslashreplace")) <= 2000
    assert set(json.loads(text)) - {"cut"} == set(large) - {"cut"}
