"""The server for agents, asked by the SDK's own client over standard input and output."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import Mock, patch

import anyio
import jsonschema
import pytest
from mcp import Client, types
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.parsers.hosts.workers.test_pool import is_alive
from tests.support.files.dumps import dumped
from tests.support.files.pprof import written
from tests.support.made.oom import MESSAGE
from tests.tui.cli.calls import PROGRAM, Call, content
from tests.tui.report.test_hostile_names import hostile  # noqa: F401 - a fixture
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, FAILED, ProfileError, could_not
from tpuprof.parsers.base.folders import ONLY_BELOW
from tpuprof.tui.cli.commands.agents import tools, worker
from tpuprof.tui.cli.commands.agents.children import Children
from tpuprof.tui.cli.commands.agents.root import Root
from tpuprof.tui.demo import demo_path
from tpuprof.tui.report.json import COUNTS
from tpuprof.tui.report.output import LEAST_BYTES

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
    (folder / "damaged").mkdir()
    whole = gzip.decompress(Path(demo_path()).read_bytes())
    (folder / "damaged" / "host0.xplane.pb").write_bytes(whole[: len(whole) // 2])
    written(folder)
    (folder / "train.log").write_text(f"{MESSAGE}\nXLA_FLAGS=--xla_dump_to={elsewhere}\n")
    return folder


def asked(root: Path, *calls: tuple[str, Mapping[str, Any]]) -> list[Said]:
    """What calls are answered, in this process."""
    with patch.dict(os.environ, {ONLY_BELOW: os.path.realpath(root)}):
        said = [worker.answered(worker.Call(name, dict(arguments), 60, 4096)) for name, arguments in calls]
    return [Said(each.text, each.is_error) for each in said]


def in_runs(call: tuple[str, Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]]:
    """The call, about both runs where it names no path."""
    name, arguments = call
    return name, arguments if {"path", "before"} & set(arguments) else {"path": "plugins", **arguments}


def test_a_client_lists_the_tools_and_calls_them(root: Path) -> None:
    """The SDK's client, which holds answers against their schemas."""

    async def served() -> tuple[list[types.Tool], list[types.CallToolResult]]:
        how = StdioServerParameters(command=sys.executable, args=["-c", PROGRAM, "mcp", "--root", str(root)])
        how.env = {**os.environ}
        with tempfile.TemporaryFile("w+") as errors:
            async with Client(stdio_client(how, errlog=errors)) as client:
                listed = (await client.list_tools()).tools
                said = [await client.call_tool(name, {"path": "plugins"}) for name in ("why", "op")]
            errors.seek(0)
            assert errors.read() == ""
        return listed, said

    listed, (why, wrong) = asyncio.run(served())
    names = [tool.name for tool in listed]
    assert names == [tool.name for tool in tools.TOOLS] and {"oom", "doctor", "verify", "live_arrays"} <= set(names)
    assert all(tool.annotations and tool.annotations.read_only_hint and tool.output_schema for tool in listed)
    (text,) = why.content
    assert isinstance(text, types.TextContent) and json.loads(text.text) == why.structured_content
    assert asked(root, ("why", {"path": "plugins"}))[0].answer == why.structured_content
    assert wrong.is_error and wrong.structured_content is None


def test_tools_answer_as_the_reports_do(root: Path, call: Call) -> None:
    before = content(root)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("runs", {"path": "plugins"}),
        ("why", {"path": "plugins"}),
        ("ops", {"path": NEWEST, "filter": "roofline_efficiency<60% >1%", "sort": "occurrences", "columns": "name"}),
        ("op", {"path": "within", "op": "fusion.397", "core": "/device:TPU:2"}),
        ("query", {"path": "plugins", "page": "collectives", "run": RUNS[0], "limit": 2}),
        ("timeline", {"path": "plugins", "from_ms": 300.5, "to_ms": 400, "track": "XLA Ops", "limit": 3}),
        ("diff", {"before": OLDEST, "after": NEWEST}),
        ("query", {"path": "dump", "page": "memory", "limit": 1}),
        ("verify", {"before": OLDEST, "after": NEWEST, "claim": "collective"}),
        ("oom", {"path": "train.log", "limit": 1}),
        ("live_arrays", {"path": "memory.prof", "by": "kind"}),
        ("doctor", {"path": "plugins", "require": "steps,python"}),
    ]
    runs, why, ops, op, query, timeline, diff, memory, verify, oom, arrays, doctor = asked(root, *calls)
    assert [run["path"] for run in runs.answer["runs"]] == [NEWEST, OLDEST]

    findings = call.json("report", "findings", "demo", "--limit", "0", "--format", "json")["findings"]
    reasons = why.answer["reasons"]
    assert [one["title"] for one in reasons] == [one["title"] for one in findings]
    assert reasons[0]["worth_ms"] == pytest.approx(findings[0]["worth_ms"], rel=1e-5)
    assert reasons[-1]["worth_ms"] is None and why.answer["unknown"]["reasons[].worth_ms"]

    words = ("--filter", "roofline_efficiency<60% >1%", "--sort", "occurrences", "--columns", "name")
    rows = call.json("report", "ops", "demo", "--format", "json", *words)
    assert ops.answer["rows"] == rows["rows"] and ops.answer["matching_rows"] == rows["matching_rows"]
    assert op.answer["core"] == "host0:2" and op.answer["runs"]["count"] == 60
    assert len(query.answer["rows"]) == 2 and (query.answer["matching_rows"], query.answer["left_out_rows"]) == (13, 11)
    assert [event["start_ps"] >= 0 for event in timeline.answer["events"]] == [True] * 3
    assert diff.answer["verdict"]["mark"] == "same" and "ops" not in diff.answer
    assert len(memory.answer["rows"]) == 1
    assert verify.answer["outcome"] == "not kept" and "collective promised" in verify.answer["sentence"]
    errors = call.json("oom", root / "train.log", "--format", "json", "--limit", "1")["reports"]
    assert oom.answer["reports"][0]["advice"] == errors[0]["advice"] and len(oom.answer["reports"][0]["buffers"]) == 1
    groups = call.json("report", "live-arrays", root / "memory.prof", "--by", "kind", "--format", "json")["groups"]
    assert [each["size_bytes"] for each in arrays.answer["groups"]] == [each["size_bytes"] for each in groups]
    assert doctor.answer["require"]["run"] == RUNS[1]
    assert [each["name"] for each in doctor.answer["require"]["missing"]] == ["python"]
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
    assert len(small.text.encode()) <= LEAST_BYTES < len(usual.text.encode()) <= tools.MOST_BYTES
    assert tools.MOST_BYTES < len(large.text.encode()) <= 50_000
    for said in (usual, large):
        left, every = (said.answer[key]["events"] for key in ("left_out_rows", "all_rows"))
        assert 0 < len(said.answer["events"]) == every - left and "max_bytes" in said.answer["next"]
    assert len(small.answer["events"]) <= 1


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


WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("nope", {}, "no tool nope"),
    ("why", {"pth": "plugins"}, "why takes no pth. Try: one of: path"),
    ("why", {"max_bytes": "many"}, "integer"),
    ("why", {"max_bytes": True}, "integer"),
    ("why", {"run": "1999"}, RUNS[0]),
    ("why", {"path": "memory.prof"}, 'Try: live_arrays {"path": "memory.prof"}'),
    ("why", {"path": "beside"}, "0 bytes"),
    ("op", {}, "needs the argument op"),
    ("op", {"op": "fusion.39777"}, "fusion.397"),
    ("ops", {"columns": "name,self_time"}, "columns name,self_time_ps"),
    ("ops", {"step": "1"}, "step 100"),
    ("ops", {"core": "7"}, "core host0:3"),
    ("ops", {"filter": "self_time_ps>x"}, 'Try: ops {"filter"'),
    ("query", {"page": "colectives"}, "collectives"),
    ("query", {"page": "live-arrays"}, "no page live-arrays"),
    ("query", {"page": "runs", "from_ms": 300}, "Try: timeline or ops with from_ms MS to_ms MS"),
    ("query", {"page": "ledger", "step": "104", "by": "op"}, "leave out by or step"),
    ("query", {"page": "inference", "requests": "x"}, "Try: query with page inference without requests lists them"),
    ("query", {"page": "trend", "run": RUNS[0]}, "leave run out"),
    ("query", {"sql": "SELECT nme FROM ops"}, "one of: name"),
    ("query", {"sql": "SELECT * FROM op"}, "one of: ops"),
    ("query", {"sql": "SELECT * FROM read_text('/etc/passwd')"}, "no table read_text"),
    ("query", {"sql": "COPY ops TO '/tmp/x'"}, "sql: schema lists tables"),
    ("query", {"sql": "--output=/tmp/x"}, "Try: "),
    ("query", {"sql": "SELECT 1 FROM ops", "path": "folder"}, "is outside the folder"),
    ("query", {"sql": "SELECT 1 FROM ops", "path": "linked"}, "outside the folder that may be read"),
    ("query", {"sql": "SELECT 1", "page": "ops"}, "takes no page"),
    ("query", {}, "page or sql"),
    ("timeline", {"from_ms": 400, "to_ms": 300}, "to_ms must be later than from_ms"),
    ("timeline", {"track": "nope"}, "track with a part of"),
    ("diff", {"before": NEWEST, "after": NEWEST}, "before and after"),
    ("diff", {"before": OLDEST}, "Try: diff BEFORE AFTER"),
    ("diff", {"before": "memory.prof"}, "pprof"),
    ("verify", {"before": OLDEST, "after": NEWEST, "claim": "x"}, "one of: collective"),
    ("oom", {"path": "memory.prof"}, 'Try: oom {"path": "train.log"}'),
    ("oom", {"path": "plugins"}, "--xla_dump_to=FOLDER"),
    ("oom", {"path": "../elsewhere"}, "outside the folder"),
    ("live_arrays", {"path": "plugins"}, "no device memory profile"),
    ("live_arrays", {"path": "memory.prof", "by": "kin"}, "by kind"),
    ("doctor", {"require": "hlo,stps"}, "Try: require steps"),
)
"""Calls that can't be answered, and what their sentence has; without a path they are about both runs."""

COMMAND_LINE = re.compile(r"tpuprof-tui|(?<![\w-])--[a-z]+(?:-[a-z]+)*(?![\w-])")


def test_an_error_is_one_sentence_with_what_to_try_in_words_of_tools(root: Path) -> None:
    said_of = asked(root, *(in_runs(call[:2]) for call in WRONG))
    for said, (name, arguments, words) in zip(said_of, WRONG, strict=True):
        assert said.is_error and "\n" not in said.text and len(said.text) < 450, (name, arguments)
        assert words in said.text and not COMMAND_LINE.search(said.text), said.text
    assert asked(root, ("ops", {"path": "plugins", "filter": "--output=/tmp/x"}))[0].answer["matching_rows"] == 0


def unlisted(value: object, schema: Mapping[str, Any], place: str = "") -> set[str]:
    """Keys of an answer that its schema lacks, where that lists keys at all."""
    if isinstance(value, list):
        return {key for each in value for key in unlisted(each, schema.get("items", {}), f"{place}[]")}
    if not isinstance(value, dict) or "properties" not in schema:
        return set()
    known = {key: item for key, item in value.items() if key in schema["properties"]}
    inner = {key for name in known for key in unlisted(known[name], schema["properties"][name], f"{place}.{name}")}
    return inner | {f"{place}.{key}" for key in value if key not in known}


OF_TOOLS = {f".{key}" for key in (*COUNTS, "reason", "cannot_tell", "reasons[].reason", "page", "filter")}
OF_TOOLS |= {".matching_rows", ".rows", ".totals"}
"""Keys that tools add to those of pages."""


def test_answers_are_as_their_schemas_say_and_name_no_command(root: Path) -> None:
    """Each example, all pages, all reasons, and what is damaged, unknown or cut."""
    calls: list[tuple[str, dict[str, Any]]] = [(tool.name, {**tool.example}) for tool in tools.TOOLS]
    calls += [(name, {**arguments, "max_bytes": 1000}) for name, arguments in calls if name in ("why", "diff", "oom")]
    calls += [("query", {"page": page, "limit": 3}) for page in tools._WITH_ROWS]
    calls += [("why", {"reason": name}) for name in ("unfused", "slow-step", "unexplained-1")]
    calls += [("doctor", {"path": path}) for path in ("beside", "dump", "memory.prof", "damaged")]
    calls += [("query", {"page": "memory", "path": "dump"}), ("why", {"path": "damaged"}), ("timeline", {"limit": 2})]
    schemas = {tool.name: tool.output_schema for tool in tools.TOOLS}
    for said, (name, arguments) in zip(asked(root, *map(in_runs, calls)), calls, strict=True):
        jsonschema.validate(said.answer, schemas[name])
        assert not COMMAND_LINE.search(said.text), (name, arguments, said.text)
        if name not in ("query", "doctor"):
            assert unlisted(said.answer, schemas[name]) <= OF_TOOLS, (name, arguments)
    descriptions = json.dumps([(tool.description, tool.schema, tool.more) for tool in tools.TOOLS])
    assert not COMMAND_LINE.search(descriptions)


def test_query_takes_sql_with_its_locks(root: Path, call: Call) -> None:
    """The engine of `query`: bounded in rows, bytes and time, read-only, below the root."""
    text = "SELECT name, self_time_ps FROM ops ORDER BY 2 DESC"
    calls: list[tuple[str, dict[str, Any]]] = [
        ("query", {"path": NEWEST, "sql": text, "limit": 3}),
        ("query", {"path": NEWEST, "sql": "SELECT count(*) AS n FROM events", "from_ms": 300, "to_ms": 400.5}),
        ("query", {"path": NEWEST, "sql": "schema"}),
        ("query", {"path": NEWEST, "sql": f"{text} -- all", "limit": 0, "max_bytes": 1000}),
    ]
    before = content(root)
    few, events, schema, cut = asked(root, *calls)
    rows = call.json("query", "demo", text, "--limit", "3", "--format", "json")["rows"]
    assert [row["name"] for row in few.answer["rows"]] == [row["name"] for row in rows] and few.answer["has_more"]
    assert few.answer["path"] == NEWEST and few.answer["tables"] == ["ops"]
    inside = call.json("query", "demo", "SELECT count(*) AS n FROM events", "--from=300", "--to=400.5", "--format=json")
    assert events.answer["rows"] == inside["rows"] and "has_more" not in events.answer
    assert "roofline_efficiency" in schema.answer["tables"]["ops"] and "findings" in schema.answer["tables"]
    assert len(cut.text.encode()) <= 1000 and cut.answer["left_out_rows"] == {"rows": 50 - len(cut.answer["rows"])}
    assert content(root) == before, "nothing is written"


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
    assert "needs the package mcp" in sentence and hint == f"try: {sys.executable} -m pip install 'tpuprof-tui[mcp]'"


LONG_QUERY = {"sql": "WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t) SELECT max(a) FROM t"}
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


def test_what_fails_is_a_sentence_with_a_number(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(ONLY_BELOW, str(root))
    part = ProfileError(FAILED, could_not("read host0"), "--debug says where")
    for error, words in (
        (KeyError("secret"), "Internal error"),
        (part, "could not read host0. Please report it"),
        (MemoryError(), "4,096 MiB"),
        (OSError("x"), "system"),
    ):
        monkeypatch.setattr(worker, "TOOLS", [SimpleNamespace(name="why", answer=Mock(side_effect=error))])
        said = worker.answered(worker.Call("why", {}, 60, 4096))
        assert said.is_error and words in said.text and "secret" not in said.text and "\n" not in said.text
        is_logged = capsys.readouterr().err == f"{said.text}\n"
        assert is_logged == said.text.startswith("Internal error") and "--" not in said.text
    monkeypatch.setattr(worker, "TOOLS", [SimpleNamespace(name="why", answer=lambda *_: "\ud800")])
    assert worker.answered(worker.Call("why", {}, 60, 4096)).text == "?"
