"""The page of collectives: on two slices whose times are known, on the demo, and where there is nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.build import present, session_at, tpu_plane, write_run
from tests.support.composed import slices
from tests.support.files.reading import reads
from tests.support.made import many_hosts
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.collectives.bandwidth import ABOVE_LINKS
from tpuprof.parsers.pages.collectives.model import CUT, NO_COLLECTIVE, OUTSIDE, CollectivesPage
from tpuprof.parsers.pages.collectives.page import COLLECTIVES
from tpuprof.parsers.pages.collectives.rows import BYS, above_peak, rows_by, single
from tpuprof.parsers.pages.hosts.hosts import HOSTS
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.overview.model import LEDGER, OVERVIEW
from tpuprof.parsers.session.session import Session
from tpuprof.tui.demo import demo_path

US = slices.US


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> CollectivesPage:
    """Two slices."""
    return session_at(slices.write_run(tmp_path_factory.mktemp("slices"))).page(COLLECTIVES)


@pytest.fixture(scope="module")
def demo() -> Session:
    return session_at(demo_path())


@pytest.mark.parametrize("by", BYS[:-1])
def test_groups_add_up_however_they_are_made(page: CollectivesPage, by: str) -> None:
    every, rows = single(page), rows_by(page, by)  # type: ignore[arg-type]
    assert rows.collectives.sum() == len(every) == 5
    for name in ("hidden_ps", "exposed_ps", "stalled_ps", "waiting_ps", "count", "payload"):
        assert getattr(rows, name).sum() == pytest.approx(getattr(every, name).sum())
    assert (every.payload_each * every.count == every.payload).all()


def test_what_is_above_the_peak_of_the_links_has_its_reason(page: CollectivesPage) -> None:
    rows = single(page)
    assert above_peak(replace(rows, peak=rows.bus_rate)) == ()
    (sentence,) = above_peak(replace(rows, peak=rows.bus_rate / 1.49))
    assert "is at 149.0% of the links' peak" in sentence and ABOVE_LINKS in sentence


@settings(max_examples=EXAMPLES // 8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 9), st.integers(10, 40), st.booleans())
def test_stages_that_run_their_own_programs_wait_beyond_the_shortest_transfer(
    tmp_path: Path, moves: int, bubble: int, in_turns: bool
) -> None:
    """Each stage computes while the other one waits for what it sends, in one step or in four turns of it."""
    space, turns = XSpace(), 4 if in_turns else 1
    for stage in range(2):
        received = f"%recv-done.{9 if in_turns else stage} = (f32[8], token[]) recv-done((f32[8], u32[]) %recv.1)"
        ops, steps = list[tuple[str, str, int, int]](), list[tuple[str, int, int]]()
        for step in range(5 * turns):
            at, length = step * 100 * US, (bubble if (step + stage) % 2 or not in_turns else 0) + moves
            ops += [("%fusion.1 = f32[8] fusion()", "loop fusion", at, (90 - length) * US)]
            ops += [(received, "recv-done", at + (90 - length) * US, length * US)]
            sent = f"%send-done.{stage} = token[] send-done((f32[8], u32[], token[]) %send.1)"
            ops += [] if in_turns else [(sent, "send-done", at + 90 * US, moves * US)]
            steps += [(str(step // turns), at, at + turns * 100 * US)] if step % turns == 0 else []
        tpu_plane(space, stage, ops, steps)
    session = session_at(write_run(tmp_path / f"{moves} {bubble} {in_turns}", host0=space))
    of, page = present(session.page(LEDGER)), session.page(COLLECTIVES)
    is_most = 2 * bubble >= 2 * moves + bubble if in_turns else bubble >= moves
    waits = bubble * (2 if in_turns else 1) * US * is_most
    assert of.of("collective_wait").mean() == pytest.approx(waits, abs=2)
    assert page.waiting_ps == pytest.approx(waits, abs=2)


def test_the_last_core_may_be_on_another_host(tmp_path: Path) -> None:
    made = many_hosts.profiles({"host0": [1000] * 4, "host1": [1300] * 4})
    page = session_at(write_run(tmp_path, **made)).page(COLLECTIVES)
    rows = rows_by(page, "all")
    assert rows.waiting_ps.tolist() == [2 * 300 * many_hosts.US / 4]
    assert rows.late_steps.tolist() == [4]
    assert rows.late[0] == "host1:0"
    assert single(page).waiting_ps.tolist() == rows.waiting_ps.tolist()
    assert page.statement.endswith("all-reduce waits for host1, 300 µs late.")


def test_one_host_of_several_and_one_core(tmp_path: Path, page: CollectivesPage) -> None:
    session = session_at(slices.write_run(tmp_path))
    one = session.page(COLLECTIVES, "slice0-host0")
    assert one.cores == ("slice0-host0:0", "slice0-host0:1")
    assert [each.name for each in one.collectives] == [each.name for each in page.collectives]
    core = session.of_core("slice0-host1:1").page(COLLECTIVES)
    assert core.cores == ("slice0-host1:1",)
    assert np.isnan(rows_by(core, "all").waiting_ps).all() and core.waiting_ps is None
    lacking = core.notes[-2]
    assert "collectives run over 2 devices, of which 1 is shown: waiting for the others is an unknown" in lacking
    assert lacking in session.of_core("slice0-host1:1").page(HOSTS).warnings
    assert lacking not in session.page(HOSTS).warnings
    assert rows_by(core, "all").late == (None,) * 5


def test_without_steps_the_whole_time_counts(tmp_path: Path) -> None:
    space = slices.host_space("host0", steps=1)
    for plane in space.planes:
        for line in [line for line in plane.lines if line.name in (b"Steps", b"XLA Modules")]:
            plane.lines.remove(line)
    (tmp_path / "host0.xplane.pb").write_bytes(space.SerializeToString())
    page = session_at(tmp_path / "host0.xplane.pb").page(COLLECTIVES)
    assert not page.has_steps
    assert page.log_line.endswith("% of the time exposed")
    assert rows_by(page, "all").exposed_ps.sum() == pytest.approx(page.exposed_ps)


def test_collectives_outside_of_the_steps_count_by_the_whole_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One host has steps without collectives, the other one none: each file is read once, for other pages too."""
    steps = [(str(number), (number + 1) * 100 * US, (number + 2) * 100 * US) for number in range(4)]
    ops = [
        ("all-reduce.1", "all-reduce", 10 * US, 50 * US),
        *(("fusion.1", "fusion", at, 80 * US) for _, at, _ in steps),
    ]
    for host, having in (("host0", steps), ("host1", [])):
        space = XSpace()
        for core in range(2):
            tpu_plane(space, core, ops, having)
        (tmp_path / f"{host}.xplane.pb").write_bytes(space.SerializeToString())
    done = reads(monkeypatch, lambda reduction, file: f"{reduction.name} {file.host}")
    session = session_at(tmp_path)
    page = session.page(COLLECTIVES)
    assert session.page(OVERVIEW).hosts == session.page(OPS).hosts == page.hosts
    assert not page.has_steps and page.step_names == ("profile",) and page.steps_note.startswith(OUTSIDE)
    assert page.cores == ("host0:0", "host0:1", "host1:0", "host1:1")
    assert rows_by(page, "all").count.tolist() == [1]
    assert page.step_ps.tolist() == [470 * US]
    assert sorted(done) == ["collectives host0", "collectives host1"]


def test_a_lost_half_is_left_out_and_said(tmp_path: Path) -> None:
    space = slices.host_space("host0")
    for plane in space.planes:
        dones = {key for key, of in plane.event_metadata.items() if of.display_name == b"all-gather-done.1"}
        for line in plane.lines:
            if line.name == b"XLA Ops":
                line.events.remove(next(event for event in line.events if event.metadata_id in dones))
    (tmp_path / "host0.xplane.pb").write_bytes(space.SerializeToString())
    page = session_at(tmp_path / "host0.xplane.pb").page(COLLECTIVES)
    assert "2 halves of asynchronous collectives left out: the other half is missing" in page.notes
    counts = dict(zip(rows_by(page, "all").kind, rows_by(page, "all").count.tolist(), strict=True))
    assert counts["reduce-scatter"] == 1


def test_why_there_are_none(tmp_path: Path) -> None:
    space = slices.host_space("host0")
    for plane in space.planes:
        for line in plane.lines:
            kept = [event for event in line.events if not _is_collective(plane.event_metadata[event.metadata_id].name)]
            del line.events[:]
            line.events.extend(kept)
    (tmp_path / "host0.xplane.pb").write_bytes(space.SerializeToString())
    page = session_at(tmp_path / "host0.xplane.pb").page(COLLECTIVES)
    assert page.why_none == NO_COLLECTIVE
    assert page.exposed_ps is None and page.hidden_share is None and page.waiting_ps is None
    assert page.statement == f"No collectives: {NO_COLLECTIVE}."
    assert page.log_line == f"no collectives: {NO_COLLECTIVE}"
    (tmp_path / "host0.xplane.pb").write_bytes(space.SerializeToString()[:-9])
    assert session_at(tmp_path / "host0.xplane.pb").page(COLLECTIVES).why_none == NO_COLLECTIVE + CUT


def _is_collective(name: bytes) -> bool:
    return any(word in name for word in (b"all-", b"reduce-", b"send", b"recv"))
