"""Captures that go well, from a server in this process: what is asked, what lands where, and early ends."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.listening import LONGEST_SECONDS
from tests.support.servers.profiler_server import FakeProfiler, hangs, listener, profile, sends_it, writes_it
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.capture.client import RpcCall
from tpuprof.parsers.capture.model import CaptureOptions, CaptureProgress, CaptureStop
from tpuprof.parsers.capture.session import capture
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.formats.proto.services_pb2 import ProfileRequest, ProfileResponse
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.session import Session

SHORT = CaptureOptions(duration_ms=30)
LONG = CaptureOptions(duration_ms=600_000)


def files(logdir: Path) -> list[str]:
    return sorted(str(path.relative_to(logdir)) for path in logdir.rglob("*") if path.is_file())


def test_a_run_lands_where_xprof_expects_it_and_opens(tmp_path: Path) -> None:
    with FakeProfiler() as server:
        result = capture([server.address], SHORT, str(tmp_path / "logs" / "new"))
    run = Path(result.run_path)
    (tmp_path / "other").write_bytes(b"")
    assert Path(result.files[0].path).stat().st_mode == (tmp_path / "other").stat().st_mode, "others may read it"
    assert run.parent == tmp_path / "logs" / "new" / "plugins" / "profile"
    assert re.fullmatch(r"\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d", run.name)
    assert files(run) == ["worker-0.xplane.pb"]
    assert (run / "worker-0.xplane.pb").read_bytes() == server.profile
    (host,), (file,) = result.hosts, result.files
    assert (file.host, file.size_bytes, host.problem, host.notes) == ("worker-0", len(server.profile), None, ())
    assert file.path == str(run / "worker-0.xplane.pb") and not result.is_stopped
    (found,) = open_logdir(str(tmp_path)).runs
    page = Session(found).page(OVERVIEW)
    assert [host.host for host in found.hosts] == ["worker-0"] and page.steps is not None


def test_what_is_asked(tmp_path: Path) -> None:
    advanced = (("tpu_trace_mode", "TRACE_COMPUTE"), ("on", True), ("off", False), ("count", -5))
    options = CaptureOptions(41, 3, 2, 1, advanced)
    with FakeProfiler() as server:
        capture([server.address], options, str(tmp_path))
        capture([server.address], SHORT, str(tmp_path))
    asked, plain = server.requests
    opts = asked.opts
    assert (opts.version, opts.duration_ms, asked.duration_ms) == (1, 41, 41)
    assert (opts.host_tracer_level, opts.device_tracer_level, opts.python_tracer_level) == (3, 2, 1)
    values = {name: entry.WhichOneof("value") for name, entry in opts.advanced_configuration.items()}
    assert values == {"tpu_trace_mode": "string_value", "on": "bool_value", "off": "bool_value", "count": "int64_value"}
    assert opts.advanced_configuration["count"].int64_value == -5 and opts.advanced_configuration["on"].bool_value
    assert opts.enable_hlo_proto and opts.include_dataset_ops
    assert asked.emit_xspace and not asked.repository_root and asked.host_name == f"127.0.0.1_{server.port}"
    plain_levels = plain.opts
    levels = (plain_levels.host_tracer_level, plain_levels.device_tracer_level, plain_levels.python_tracer_level)
    assert levels == (2, 1, 0)
    assert asked.session_id != plain.session_id and min(len(asked.session_id), len(plain.session_id)) > 12


def test_progress(tmp_path: Path) -> None:
    seen: list[CaptureProgress] = []
    was_told = threading.Event()

    def notes(progress: CaptureProgress) -> None:
        seen.append(progress)
        if sum(each.stage == "tracing" for each in seen) == 3:
            was_told.set()

    def sends_it_then(server: FakeProfiler, request: ProfileRequest, context: Any) -> ProfileResponse:
        assert was_told.wait(LONGEST_SECONDS)
        return ProfileResponse(xspace=server.profile)

    with FakeProfiler(sends_it_then) as server:
        capture([server.address], LONG, str(tmp_path), notes)
    stages = list(dict.fromkeys(progress.stage for progress in seen))
    assert stages == ["connecting", "tracing", "writing", "written"]
    left = [progress.left_ms for progress in seen if progress.stage == "tracing" and progress.left_ms is not None]
    assert len(left) >= 3 and left == sorted(set(left), reverse=True) and max(left) <= LONG.duration_ms
    assert {progress.address for progress in seen} == {server.address} and seen[-1].size_bytes == len(server.profile)


def test_several_servers_are_traced_at_once_and_one_hostname_is_told_apart(tmp_path: Path) -> None:
    both = threading.Barrier(3)

    def together(server: FakeProfiler, request: ProfileRequest, context: Any) -> ProfileResponse:
        both.wait(LONGEST_SECONDS)
        return sends_it(server, request, context)

    seen: list[CaptureProgress] = []
    other = FakeProfiler(together, profile("Worker-0"))
    with FakeProfiler(together) as one, other as two, FakeProfiler(together, profile("worker-1")) as three:
        addresses = [f"{one.address},{two.address}", f"localhost:{three.port}", one.address]
        result = capture(addresses, SHORT, str(tmp_path), seen.append)
    names = [f"worker-0_{one.port}", f"Worker-0_{two.port}", "worker-1"]
    assert [file.host for file in result.files] == names and not result.failed
    assert files(Path(result.run_path)) == sorted(f"{name}.xplane.pb" for name in names)
    assert len(one.requests) == len(two.requests) == len(three.requests) == 1
    assert {progress.address for progress in seen if progress.stage == "written"} == {
        one.address,
        two.address,
        f"localhost:{three.port}",
    }


def test_an_answer_is_not_copied_once_it_has_arrived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What gRPC takes to receive it is not ours; from there on it is looked at and written where it lies."""
    space = XSpace.FromString(profile())
    event = space.planes.add(name=b"/host:CPU").lines.add(name=b"python").events.add(metadata_id=1)
    event.stats.add(metadata_id=1, bytes_value=b"\x5a" * (16 << 20))
    arrived = []
    received = RpcCall.response

    def response(call: RpcCall) -> bytes:
        answer = received(call)
        tracemalloc.reset_peak()
        arrived.append(tracemalloc.get_traced_memory()[0])
        return answer

    monkeypatch.setattr(RpcCall, "response", response)
    tracemalloc.start()
    try:
        with FakeProfiler(data=space.SerializeToString()) as server:
            result = capture([server.address], SHORT, str(tmp_path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.files[0].size_bytes > 16 << 20 and arrived
    assert peak - arrived[0] < 2 << 20


HOSTILE = (
    ("../../../etc/passwd", "etc_passwd"),
    ("/etc/passwd", "etc_passwd"),
    ("..", None),
    (".hidden", "hidden"),
    ("", None),
    ("a\0b\nc\x1b[2J", "a_b_c_2J"),
    ("-rf", "rf"),
    ("host:8471", "host_8471"),
    ("x" * 5000, "x" * 100),
    ("höst", "h_st"),
    ("a\\b", "a_b"),
)


@pytest.mark.parametrize(("hostname", "name"), HOSTILE)
def test_hostile_names_of_hosts(tmp_path: Path, hostname: str, name: str | None) -> None:
    with FakeProfiler(data=profile(hostname)) as server:
        result = capture([server.address], SHORT, str(tmp_path / "a" / "b" / "c" / "d"))
    expected = f"127.0.0.1_{server.port}" if name is None else name
    assert result.files[0].host == expected
    assert files(tmp_path) == [str((Path(result.run_path) / f"{expected}.xplane.pb").relative_to(tmp_path))]


def test_two_runs_of_one_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpuprof.parsers.capture.files.RUN_TIME", "2026_01_02_03_04_05")
    with FakeProfiler() as server:
        first, second = (capture([server.address], SHORT, str(tmp_path)) for _ in range(2))
    assert second.run_path == f"{first.run_path}_2"
    assert len(open_logdir(str(tmp_path)).runs) == 2


def test_notes_on_what_a_profile_lacks(tmp_path: Path) -> None:
    space = XSpace(hostnames=[b"h"], errors=[b"no TPU\x1b driver"], warnings=[b"dropped 5 events"])
    space.planes.add(name=b"/host:CPU")
    with FakeProfiler(data=space.SerializeToString()) as server:
        result = capture([server.address], SHORT, str(tmp_path))
    assert [note for note in result.hosts[0].notes if "no device" in note]
    assert [note for note in result.hosts[0].notes if "no TPU␛ driver, dropped 5 events" in note]


# --- ends before the time


def test_an_early_end_keeps_what_was_traced(tmp_path: Path) -> None:
    stop = CaptureStop()

    seen: list[CaptureProgress] = []

    def at_once(progress: CaptureProgress) -> None:
        seen.append(progress)
        if progress.stage == "tracing" and not stop.is_requested:
            stop.request()

    with FakeProfiler() as server:
        result = capture([server.address], LONG, str(tmp_path), at_once, stop)
    assert server.terminated == [server.requests[0].session_id]
    assert result.is_stopped and Path(result.files[0].path).read_bytes() == server.profile
    assert "stopping" in [progress.stage for progress in seen]


def test_giving_up_leaves_nothing(tmp_path: Path) -> None:
    stop = CaptureStop()

    def twice(progress: CaptureProgress) -> None:
        if progress.stage in ("tracing", "stopping"):
            stop.request()

    with FakeProfiler(hangs) as server, pytest.raises(Cancelled):
        capture([server.address], LONG, str(tmp_path / "new"), twice, stop)
    assert server.terminated == [server.requests[0].session_id]
    assert list(tmp_path.iterdir()) == []


def test_giving_up_keeps_the_servers_that_are_done(tmp_path: Path) -> None:
    stop = CaptureStop()

    def when_one_is_done(progress: CaptureProgress) -> None:
        if progress.stage == "written":
            stop.request()
            stop.request()

    with FakeProfiler(hangs) as stuck, FakeProfiler() as server:
        result = capture([stuck.address, server.address], SHORT, str(tmp_path), when_one_is_done, stop)
    assert [host.problem.code if host.problem else None for host in result.hosts] == ["cancelled", None]


def test_an_end_before_anything_was_traced(tmp_path: Path) -> None:
    for stage in ("connecting", "waiting"):
        stop = CaptureStop()

        def at_stage(progress: CaptureProgress, stage: str = stage, stop: CaptureStop = stop) -> None:
            if progress.stage == stage:
                stop.request()

        options = CaptureOptions(connect_seconds=600, delay_ms=600_000)
        with FakeProfiler() as server, listener(None) as (silent, _), pytest.raises(Cancelled):
            capture([silent if stage == "connecting" else server.address], options, str(tmp_path), at_stage, stop)
        assert not server.requests and files(tmp_path) == []


def test_ctrl_c_in_a_program_that_does_not_ask_to_stop(tmp_path: Path) -> None:
    def interrupt(progress: CaptureProgress) -> None:
        if progress.stage == "tracing":
            raise KeyboardInterrupt

    with FakeProfiler() as server, pytest.raises(KeyboardInterrupt):
        capture([server.address], SHORT, str(tmp_path), interrupt)
    assert files(tmp_path) == []


# --- servers of the past


def test_a_server_that_writes_to_this_disk(tmp_path: Path) -> None:
    seen: list[CaptureProgress] = []
    with FakeProfiler(writes_it()) as server:
        result = capture([server.address], SHORT, str(tmp_path), seen.append)
    first, second = server.requests
    assert first.emit_xspace and not second.emit_xspace
    assert second.repository_root == str(tmp_path / "plugins" / "profile") and first.session_id != second.session_id
    (host,), (file,) = result.hosts, result.files
    name = f"127.0.0.1_{server.port}"
    assert files(tmp_path) == [str((Path(result.run_path) / f"{name}.xplane.pb").relative_to(tmp_path))]
    assert Path(file.path).read_bytes() == server.profile and file.size_bytes == len(server.profile)
    assert any("old server" in progress.sentence for progress in seen) and "traced twice" in host.notes[0]


# --- what is touched at all


def test_no_proxy_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with listener(None) as (proxy, connections), FakeProfiler() as server:
        for name in ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://{proxy}")
        for name in ("no_proxy", "no_grpc_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        result = capture([server.address], SHORT, str(tmp_path))
    assert result.written and connections == []


def test_grpc_is_imported_for_a_call_only() -> None:
    code = (
        "import sys, tpuprof.tui.cli.commands.capture.command, tpuprof.parsers.capture.session; "
        "sys.exit(any(name.split('.')[0] in ('grpc', 'textual', 'rich') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
