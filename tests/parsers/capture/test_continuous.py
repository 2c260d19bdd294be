"""Servers that keep their last seconds, and snapshots of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc  # type: ignore[import-untyped,unused-ignore]
import pytest

from tests.support.servers.profiler_server import FakeProfiler, free_port
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, ProfileError
from tpuprof.parsers.capture.continuous import switch
from tpuprof.parsers.capture.model import WORKERS_VARIABLE, CaptureOptions, parse_addresses
from tpuprof.parsers.capture.session import capture

SNAPSHOT = CaptureOptions(is_snapshot=True)


def test_on_snapshot_off(tmp_path: Path) -> None:
    with FakeProfiler() as server:
        with pytest.raises(ProfileError) as caught:
            capture([server.address], SNAPSHOT, str(tmp_path))
        assert caught.value.exit_code == EXIT_CAPTURE_FAILED
        assert "--continuous on" in caught.value.hint and not list(tmp_path.iterdir())
        options = CaptureOptions(host_tracer_level=3)
        (done,) = switch([server.address], True, options)
        assert str(done.address) == server.address and done.problem is None and not done.was_so and server.kept
        assert server.requests[-1].opts.host_tracer_level == 3
        assert switch([server.address], True, options)[0].was_so  # it is on: what was wanted
        result = capture([server.address], SNAPSHOT, str(tmp_path))
        assert [file.size_bytes for file in result.files] == [len(server.profile)]
        assert switch([server.address], False, options)[0].problem is None and not server.kept
        assert switch([server.address], False, options)[0].was_so


def test_servers_that_can_not(tmp_path: Path) -> None:
    """One fails, the other does it; something else than a profiler has no snapshots."""
    nobody = f"127.0.0.1:{free_port()}"
    other = grpc.server(ThreadPoolExecutor(1))
    address = f"127.0.0.1:{other.add_insecure_port('127.0.0.1:0')}"
    other.start()
    with FakeProfiler() as server:
        done = switch([server.address, nobody, address], True, CaptureOptions(connect_seconds=20))
    codes = [None if each.problem is None else each.problem.code for each in done]
    assert codes == [None, "no_server", "no_snapshots"]
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
