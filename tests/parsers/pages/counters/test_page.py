"""The page of counters: the answer in a sentence, and why there is none."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.support.build import PlaneBuilder, session_at
from tests.support.files import counters
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.pages.counters.page import COUNTERS, CountersPage, counters_page, host_counters
from tpuprof.parsers.pages.ops.kernels.call_units import HAS_COUNTERS


def page_of(*files: bytes) -> CountersPage:
    """The page of some hosts."""
    parts = []
    for number, data in enumerate(files):
        with closing(Trace(MemorySource(data, "test"))) as trace:
            parts.append(host_counters(trace, f"host{number}"))
    return counters_page(parts)


def test_the_core_whose_matrix_units_worked_most_is_told_of() -> None:
    busier = counters.with_readings("TPU v7x", busy=lambda core: (0.5, 1.2)[core])
    assert "matrix units worked 49.2%" in page_of(busier).statement
    assert page_of(busier).statement.endswith("(TPU 1 core 0).")


def test_hosts_follow_each_other() -> None:
    page = page_of(counters.with_readings("TPU v6 Lite"), counters.with_custom_calls())
    assert page.hosts == ("host0", "host1") and page.captured_ps == 3_000_000 * counters.US
    assert {row.host for row in page.units} == {"host0", "host1"}
    assert len(page.notes) == 2  # registers and the compiler's count


def test_cores_of_one_call_are_added_up() -> None:
    data = XSpace.FromString(counters.with_custom_calls())
    twice = XSpace.FromString(counters.with_custom_calls())
    twice.planes[0].name = b"/device:TPU:1"
    data.planes.add().CopyFrom(twice.planes[0])
    whole = next(row for row in page_of(data.SerializeToString()).kernels if not row.use.scope)
    assert (whole.use.runs, whole.use.time_ps) == (6, 240 * counters.US) and whole.share == pytest.approx(0.72)


def test_why_there_are_none() -> None:
    empty, gpu, unknown = XSpace(hostnames=[b"host0"]), XSpace(), XSpace()
    assert page_of(empty.SerializeToString()).statement == "No counters: no device plane in this profile."
    PlaneBuilder(gpu, "/device:GPU:0")
    assert "only TPUs have counters of units" in page_of(gpu.SerializeToString()).statement
    sampled = PlaneBuilder(gpu, "/device:GPU:1")
    sampled.event(sampled.line("_counters_"), sampled.event_id("sm_active"), 5, 0, value=3)
    of_gpu = page_of(gpu.SerializeToString())
    assert [row.name for row in of_gpu.counters] == ["sm_active"] and "counters" not in of_gpu.unknown
    cut = page_of(counters.with_custom_calls()[:2000])
    assert "The readable part of this profile has no counters" in cut.statement and cut.warnings
    counters.device(unknown, 0, "TPU v5p")
    none = page_of(unknown.SerializeToString())
    assert "tpu_perf_counters" in none.unknown["counters"] and "LIBTPU_INIT_ARGS" in none.unknown["kernels"]
    counters.add_reading(counters.device(unknown, 1, "TPU v5p"), {77: 3})
    page = page_of(unknown.SerializeToString())
    assert len(page.counters) == 1 and not page.units
    assert page.unknown["units"].startswith("what the registers of TPU v5p say about units is unknown")


def test_a_session_reads_it_once(tmp_path: Path) -> None:
    (tmp_path / "host0.xplane.pb").write_bytes(counters.with_custom_calls())
    session = session_at(tmp_path)
    assert session.page(HAS_COUNTERS) and session.page(COUNTERS) is session.page(COUNTERS)
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "host0.xplane.pb").write_bytes(XSpace(hostnames=[b"host0"]).SerializeToString())
    assert not session_at(tmp_path / "none").page(HAS_COUNTERS)
