"""Servers that keep their last seconds, and snapshots of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc  # type: ignore[import-untyped,unused-ignore]
import pytest

from tests.support.servers.profiler_server import FakeProfiler, free_port
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, ProfileError
from tpuprof.parsers.capture.model import WORKERS_VARIABLE, CaptureOptions, parse_addresses
from tpuprof.parsers.capture.session import capture, switch

SNAPSHOT = CaptureOptions(is_snapshot=True)


def problems(addresses: list[str], is_on: bool, options: CaptureOptions) -> list[str | None]:
    """The code of each server's problem."""
    return [None if problem is None else problem.code for _, problem in switch(addresses, is_on, options)]


def test_on_snapshot_off(tmp_path: Path) -> None:
    with FakeProfiler() as server:
        with pytest.raises(ProfileError) as caught:
            capture([server.address], SNAPSHOT, str(tmp_path))
        assert caught.value.exit_code == EXIT_CAPTURE_FAILED
        assert "--continuous on" in caught.value.hint and not list(tmp_path.iterdir())
        options = CaptureOptions(host_tracer_level=3)
        ((address, problem),) = switch([server.address], True, options)
        assert str(address) == server.address and problem is None and server.kept
        assert server.requests[-1].opts.host_tracer_level == 3
        assert problems([server.address], True, options) == [None] and server.kept, "it is on: what was wanted"
        result = capture([server.address], SNAPSHOT, str(tmp_path))
        assert [file.size_bytes for file in result.files] == [len(server.profile)]
        for _ in range(2):
            assert problems([server.address], False, options) == [None] and not server.kept


def test_the_programs_own_trace_goes_on(tmp_path: Path) -> None:
    with FakeProfiler() as server, server.own_trace():
        assert problems([server.address], True, CaptureOptions()) == ["another_session"]
        with pytest.raises(ProfileError) as caught:
            capture([server.address], CaptureOptions(duration_ms=10), str(tmp_path))
        assert caught.value.code == "another_session"
        assert server.is_tracing and not server.terminated and not server.kept


def test_servers_that_can_not(tmp_path: Path) -> None:
    """One fails, the other does it; something else than a profiler has no snapshots."""
    nobody = f"127.0.0.1:{free_port()}"
    other = grpc.server(ThreadPoolExecutor(1))
    address = f"127.0.0.1:{other.add_insecure_port('127.0.0.1:0')}"
    other.start()
    with FakeProfiler() as server:
        done = problems([server.address, nobody, address], True, CaptureOptions(connect_seconds=20))
    assert done == [None, "no_server", "no_snapshots"]
    with pytest.raises(ProfileError) as caught:
        capture([address], SNAPSHOT, str(tmp_path))
    assert caught.value.code == "no_snapshots"
    other.stop(None).wait(5)


def test_the_workers_of_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WORKERS_VARIABLE, "t1v-0, t1v-1,fe80::1")
    found = [str(address) for address in parse_addresses(["@workers:9012,other:1"])]
    assert found == ["t1v-0:9012", "t1v-1:9012", "[fe80::1]:9012", "other:1"]
    monkeypatch.delenv(WORKERS_VARIABLE)
    with pytest.raises(ProfileError, match=WORKERS_VARIABLE):
        parse_addresses(["@workers:9012"])
    with pytest.raises(ProfileError):
        parse_addresses(["@workers"])
