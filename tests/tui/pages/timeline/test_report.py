"""Timeline reports: golden texts of the demo, the contract's keys, which events an interval has, hostile names.

`UPDATE_GOLDEN=1` in the environment writes the golden files anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, tpu_plane
from tests.support.documents import parsed
from tests.support.reports import LOOK, asked_of
from tests.tui.report.test_reports import run_of
from tpuprof.parsers.base.errors import Problem
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.details import metadata_stats, own_stats
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.parsers.timeline.part import Interval, argument_reader, part_of, plain_value, select, time_decimals
from tpuprof.parsers.timeline.read.timeline import read_timeline
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages.timeline.report.fields import at_ms
from tpuprof.tui.pages.timeline.report.report import REPORT
from tpuprof.tui.report.page import FORMATS, Format

US, MS = 10**6, 10**9
INTERVAL = Interval(600 * MS, 600 * MS + 700 * US)
EVERYTHING = Interval()
BREAKDOWN = b"\n\x07\x08\x01\x10\x01\x18\xf4\x03"


def small_profile() -> XSpace:
    """A core with two ops under steps and a counter, another one without a known peak, and a host thread that nests."""
    space = XSpace()
    ops = [(f"fusion.{n % 2}", "loop fusion", n * 100 * US, 60 * US) for n in range(4)]
    steps = [(str(n), n * 100 * US, (n + 1) * 100 * US) for n in range(4)]
    core = tpu_plane(space, 0, ops, steps)
    line = core.line("_counters_")
    counter = core.event_id("power(W)")
    for at, value in ((0, 100.0), (100, 300.0), (350, 60.0)):
        core.event(line, counter, at * US, 0, power=value)
    bare = PlaneBuilder(space, "/device:TPU:1", 2)
    line = bare.line("XLA Ops")
    metadata = bare.event_id("dot", hlo_category="convolution fusion", flops=10**6)
    bare.event(line, metadata, 10 * US, 50 * US)
    host = PlaneBuilder(space, "/host:CPU", 9)
    line = host.line("main/77")
    outer, inner = host.event_id("outer", long="yes"), host.event_id("inner")
    host.event(line, outer, 5 * US, 300 * US, bytes=b"12345", text="a", number=-3, ratio=0.5)
    host.event(line, inner, 20 * US, 30 * US, nan=float("nan"))
    host.event(line, inner, 400 * US, 0)
    return space


def written(space: XSpace, folder: Path) -> Timeline:
    path = folder / "host0.xplane.pb"
    path.write_bytes(space.SerializeToString())
    return read(str(path), "host0")


def read(path: str, host: str) -> Timeline:
    trace = Trace.open(path)
    return read_timeline(trace, host, path)


@pytest.fixture(scope="module")
def demo() -> Timeline:
    return read(demo_path(), "demo")


@pytest.fixture
def small(tmp_path: Path) -> Timeline:
    return written(small_profile(), tmp_path)


class OneTimeline:
    """A session that holds nothing but a timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def timeline(self, host: str | None, with_steps: bool) -> Timeline:
        assert not with_steps
        return self._timeline


def timeline_report(
    timeline: Timeline, run: Run, asked: Interval, form: Format, limit: int | None = None
) -> tuple[Iterable[str], tuple[str, ...]]:
    options = {"from_ps": asked.from_ps, "to_ps": asked.to_ps, "track": asked.track}
    call = asked_of(run, form, LOOK, limit, None, lambda _: OneTimeline(timeline), **options)
    content = REPORT.read(call)
    made = REPORT.writers[form](content, call)
    assert not callable(made)
    return made, tuple(content.warnings)


def text_of(timeline: Timeline, asked: Interval, form: Format, limit: int | None = None) -> str:
    return "".join(timeline_report(timeline, run_of(("demo",)), asked, form, limit)[0])


def document(timeline: Timeline, asked: Interval = EVERYTHING, limit: int | None = None) -> dict[str, Any]:
    return parsed(text_of(timeline, asked, "json", limit=limit))


def args_of(timeline: Timeline, name: str) -> list[dict[str, Any]]:
    """The arguments of all events of a name."""
    events = document(timeline, Interval(0))["events"]
    return [event["args"] for event in events if event["name"] == name]


# --- tracks


def test_use_is_unknown_without_a_peak(small: Timeline) -> None:
    rates = {(rate["plane"], rate["name"]): rate for rate in document(small)["rates"]}
    known, bare = rates["/device:TPU:0", "FLOPS"], rates["/device:TPU:1", "FLOPS"]
    assert known["per_second"] == pytest.approx(4 * 1000 / 400e-6)
    assert known["use_fraction"] == pytest.approx(known["per_second"] / 100e12)
    assert bare["per_second"] == pytest.approx(10**6 / 400e-6) and bare["peak_per_second"] is None
    assert "the peak of this core" in document(small)["unknown"]["rates[].use_fraction"]


def test_a_profile_without_events(tmp_path: Path) -> None:
    space = XSpace()
    PlaneBuilder(space, "/host:CPU", 1).line("main")
    empty = written(space, tmp_path)
    for asked in (Interval(), Interval(0), Interval(None, 5)):
        assert document(empty, asked)["event_count"] == 0
        assert all(text_of(empty, asked, form) for form in FORMATS)


# --- events


def test_open_intervals_reach_to_the_ends(small: Timeline) -> None:
    everything = document(small)["event_count"]
    assert document(small, Interval(0))["event_count"] == everything  # the event without duration at the end too
    assert document(small, Interval(None, 401 * US))["event_count"] == everything
    assert document(small, Interval(None, 400 * US))["event_count"] == everything - 1
    assert document(small, Interval(400 * US))["event_count"] == 1
    late = document(small, Interval(9 * MS))
    assert late["event_count"] == 0 and any("outside of the trace" in warning for warning in late["warnings"])


def test_bulk_arguments_are_those_of_single_events(demo: Timeline) -> None:
    part = part_of(demo, INTERVAL)
    selection = select(part)
    tracks = [part.timeline.track(place) for place in part.places]
    trace = Trace.open(demo.path)
    read_args = argument_reader(trace, tracks)
    for number, index in zip(selection.of_track.tolist(), selection.index.tolist(), strict=True):
        stats = (*metadata_stats(trace, tracks[number], index), *own_stats(trace, tracks[number], index))
        expected = {name: plain_value(name, value) for name, value in stats}
        found = read_args(number, index)
        assert {name: value for name, value in found.items() if name != "long_name"} == expected


def test_stats_of_one_name_are_both_kept(tmp_path: Path) -> None:
    space = XSpace()
    host = PlaneBuilder(space, "/host:CPU", 1)
    host.event(host.line("main"), host.event_id("f", size=1, same=2), 0, 10, size=5, same=2)
    assert args_of(written(space, tmp_path), "f") == [{"size": 5, "same": 2, "size (2)": 1}]


def test_values_of_bytes() -> None:
    assert plain_value("memory_access_breakdown", BREAKDOWN) == [{"operation": "read", "memory": "hbm", "bytes": 500}]
    assert plain_value("memory_access_breakdown", b"\n\xff") == "2 damaged bytes"
    assert plain_value("hlo_proto", b"123") == "3 bytes"
    assert plain_value("x", float("inf")) is None and plain_value("x", 2**64 - 1) == 2**64 - 1


# --- limits, hosts, losses


def test_no_more_events_than_asked_for_and_never_silently(small: Timeline) -> None:
    cut, whole = document(small, Interval(0), limit=5), document(small, Interval(0))
    assert cut["events"] == whole["events"][:5] and len(whole["events"]) == 12 and "all_rows" not in whole
    assert (cut["all_rows"], cut["left_out_rows"]) == ({"events": 12}, {"events": 7})
    assert "+ 7 more" in text_of(small, Interval(0), "text", 5)
    assert "Not shown: 7 more." in text_of(small, Interval(0), "md", 5)
    assert len(text_of(small, Interval(0), "csv", 5).splitlines()) == 6


def test_events_come_one_by_one(small: Timeline) -> None:
    for form in FORMATS:
        pieces, _ = timeline_report(small, run_of(("host0",)), Interval(0), form)
        assert not isinstance(pieces, str | Sequence) and isinstance(pieces, Iterator)
        assert sum(1 for _ in pieces) >= 13


def test_what_is_wrong_with_the_runs_files_is_said(small: Timeline) -> None:
    run = replace(run_of(("host0",)), problems=(Problem("empty_file", "q", "q.xplane.pb holds 0 bytes."),))
    _, warnings = timeline_report(small, run, Interval(), "text")
    assert warnings == ("q.xplane.pb holds 0 bytes.",)


# --- hostile input


@given(st.integers(-(2**62), 2**62), st.integers(0, 10**16))
def test_instants_are_written_as_they_are_read(start: int, size: int) -> None:
    decimals = time_decimals(start, start + size)
    shown = at_ms(start, decimals)
    assert 3 <= decimals <= 9 and len(shown.partition(".")[2]) == decimals
    whole, _, part = shown.lstrip("-").partition(".")
    value = int(whole) * MS + int(part.ljust(9, "0"))
    assert abs(start) - 10 ** (9 - decimals) < value <= abs(start) and shown.startswith("-") == (start < 0)
