"""Whether a profiler server listens: one that does, and what else may listen."""

from __future__ import annotations

import pytest

from tests.support.servers.profiler_server import FakeProfiler, free_port, listener
from tests.support.servers.runtime_server import FakeRuntime
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, ProfileError
from tpuprof.parsers.capture.model import parse_address
from tpuprof.parsers.capture.reach import reach


def code_of(address: str, seconds: float = 10.0) -> str:
    with pytest.raises(ProfileError) as caught:
        reach(parse_address(address), seconds)
    assert caught.value.exit_code == EXIT_CAPTURE_FAILED
    return caught.value.code


def test_a_profiler_is_asked_for_nothing() -> None:
    with FakeProfiler() as server:
        assert reach(parse_address(server.address)) > 0
        assert not server.requests and not server.is_tracing


def test_a_trace_that_is_under_way_goes_on() -> None:
    """Ending a session that is not there ends no other one."""
    with FakeProfiler() as server:
        reach(parse_address(server.address))
        (session,) = server.terminated
        assert session == "tpuprof-reach"


def test_what_is_no_profiler() -> None:
    with FakeRuntime({}) as runtime:
        assert code_of(runtime.address) == "not_a_profiler"
    with listener(b"220 mail\r\n") as (mail, _):
        assert code_of(mail) == "not_a_profiler"
    with listener(None) as (silent, _):
        assert code_of(silent, 0.3) == "no_answer"
    assert code_of(f"localhost:{free_port()}") == "no_server"
    assert code_of("no-such-machine.invalid:9012") == "unknown_host"
