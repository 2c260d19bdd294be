"""A run with several hosts, some of them broken; progress and cancelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.build import PlaneBuilder, host_bytes, session_at, tpu_plane, write_run
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, Cancelled, ProfileError
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace import trace as trace_module
from tpuprof.parsers.hosts.progress import Progress
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.ops.op_profile import OP_PROFILE
from tpuprof.parsers.pages.ops.roofline import ROOFLINE
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.tui.demo import demo_path


def test_hosts_are_merged_and_each_can_be_asked_for(tmp_path: Path) -> None:
    logdir = write_run(tmp_path, host0=host_bytes(100), host1=host_bytes(200))
    both = session_at(logdir).page(OVERVIEW)
    assert both.hosts == ("host0", "host1")
    assert (both.environment.host_count, both.environment.device_core_count) == (2, 2)
    assert [step.duration_ps for step in both.steps] == [200] * 4  # the slower host
    assert both.performance.device_idle_percent == pytest.approx(50.0, abs=20)
    one = session_at(logdir).page(OVERVIEW, "host0")
    assert [step.duration_ps for step in one.steps] == [100] * 4
    assert one.op_event_count * 2 == both.op_event_count


def test_a_run_without_any_readable_host_is_one_plain_error(tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as caught:
        session_at(write_run(tmp_path, host0=b"\xff" * 300)).page(OVERVIEW)
    assert caught.value.exit_code == EXIT_UNREADABLE
    assert "not a profile" in caught.value.sentence


def test_an_unknown_host_is_an_error_that_lists_the_hosts(tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as caught:
        session_at(write_run(tmp_path, host0=host_bytes(100))).page(OVERVIEW, "host7")
    assert caught.value.exit_code == EXIT_NOT_FOUND
    assert "host0" in caught.value.hint


def test_progress_grows_to_the_whole_and_a_second_page_decodes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "CHUNK", 200)
    logdir = write_run(tmp_path, host0=host_bytes(100, 50), host1=host_bytes(100, 50))
    seen: list[Progress] = []
    opened = session_at(logdir, on_progress=seen.append)
    opened.page(OVERVIEW)
    assert [p.host_index for p in seen] == sorted(p.host_index for p in seen)
    assert {p.host for p in seen} == {"host0", "host1"}
    assert seen[-1].bytes_done == seen[-1].bytes_total
    assert seen[-1].events_done == 100
    assert all(p.bytes_done <= p.bytes_total for p in seen)
    decoded = len(seen)
    opened.page(OVERVIEW)
    assert len(seen) == decoded
    opened.page(OPS)
    assert len(seen) == decoded


def test_cancelling_ends_the_work_between_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "CHUNK", 200)
    logdir = write_run(tmp_path, host0=host_bytes(100, 500))
    calls = 0

    def is_cancelled() -> bool:
        nonlocal calls
        calls += 1
        return calls > 5

    with pytest.raises(Cancelled):
        session_at(logdir, is_cancelled=is_cancelled).page(OVERVIEW)
    assert calls == 6


def test_a_timeline_with_steps_is_not_the_one_without() -> None:
    session = session_at(demo_path())
    without = session.timeline(with_steps=False)
    assert without.steps == () and session.timeline(with_steps=False) is without
    assert len(session.timeline().steps) == 20
    assert session.timeline() is session.timeline()


def test_a_page_of_ops_alone_reads_the_ops_alone(tmp_path: Path) -> None:
    space = tpu_plane(XSpace(), 0, [("fusion.1", "loop fusion", n * 10, 5) for n in range(50)]).space
    host = PlaneBuilder(space, "/host:CPU", 9)
    host.spans("python", (("work", n * 10, n * 10 + 5) for n in range(200)))
    logdir = write_run(tmp_path, host0=space.SerializeToString())
    seen: list[Progress] = []
    opened = session_at(logdir, on_progress=seen.append)
    ops = opened.page(OPS)
    assert seen[-1].events_done == 50
    opened.page(OP_PROFILE)
    assert seen[-1].events_done == 50
    opened.page(OVERVIEW)
    assert seen[-1].events_done == 250
    assert opened.page(OPS) is ops


def test_a_host_that_breaks_between_two_pages_is_in_neither_half_of_the_second(tmp_path: Path) -> None:
    logdir = write_run(tmp_path, host0=host_bytes(100), host1=host_bytes(200))
    opened = session_at(logdir)
    assert opened.page(OPS).hosts == ("host0", "host1")
    next(logdir.rglob("host1.xplane.pb")).write_bytes(b"\xff" * 300)
    assert (
        opened.page(ROOFLINE).program.total_ps.tolist() == session_at(logdir).page(ROOFLINE).program.total_ps.tolist()
    )
    assert opened.page(OPS).hosts == ("host0",)
    assert any("host1" in warning and "left out" in warning for warning in opened.page(OPS).warnings)
