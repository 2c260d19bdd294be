"""Timeline reports: golden texts of the demo, the contract's keys, which events an interval has, hostile names.

`UPDATE_GOLDEN=1` in the environment writes the golden files anew.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, tpu_plane
from tests.support.documents import EVIL, csv_rows, nulls, parsed
from tests.support.golden import check_golden
from tests.support.reports import asked_of
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, Problem, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import HostFile, Run
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Line, Trace
from tpuprof.parsers.timeline.details import event_stats
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.parsers.timeline.part import (
    Interval,
    argument_reader,
    counter_ranges,
    mean_rates,
    part_of,
    plain_value,
    select,
    time_decimals,
)
from tpuprof.parsers.timeline.read.timeline import read_timeline
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages.timeline.report import read as read_module
from tpuprof.tui.pages.timeline.report.fields import at_ms
from tpuprof.tui.pages.timeline.report.report import REPORT
from tpuprof.tui.report.page import FORMATS, Format, TextLook

GOLDEN = Path(__file__).parent / "golden"
US, MS = 10**6, 10**9
LOOKS = {
    "110-block": TextLook(110, ascii_only=False, color=False),
    "80-ascii": TextLook(80, ascii_only=True, color=False),
}
LOOK = LOOKS["110-block"]
INTERVAL = Interval(600 * MS, 600 * MS + 700 * US)
EVERYTHING = Interval()
BREAKDOWN = b"\n\x07\x08\x01\x10\x01\x18\xf4\x03"


def run_of(*hosts: str) -> Run:
    files = tuple(HostFile(host, f"/logs/{host}.xplane.pb", 100, 1_795_230_000.0, False) for host in hosts)
    return Run("2026_11_21_03_00_00", "/logs", files, ())


def small_profile(name: str = "") -> XSpace:
    """A core with two ops under steps and a counter, another one without a known peak, and a host thread that nests."""
    space = XSpace()
    ops = [(f"fusion.{n % 2}{name}", "loop fusion", n * 100 * US, 60 * US) for n in range(4)]
    steps = [(f"{n}{name}", n * 100 * US, (n + 1) * 100 * US) for n in range(4)]
    core = tpu_plane(space, 0, ops, steps)
    line = core.line("_counters_")
    counter = core.event_id(f"power(W){name}")
    for at, value in ((0, 100.0), (100, 300.0), (350, 60.0)):
        core.event(line, counter, at * US, 0, power=value)
    bare = PlaneBuilder(space, "/device:TPU:1", 2)
    line = bare.line("XLA Ops")
    metadata = bare.event_id(f"dot{name}", hlo_category="convolution fusion", flops=10**6)
    bare.event(line, metadata, 10 * US, 50 * US)
    host = PlaneBuilder(space, "/host:CPU", 9)
    line = host.line(f"main{name}/77")
    outer, inner = host.event_id(f"outer{name}", long="yes"), host.event_id("inner")
    host.event(line, outer, 5 * US, 300 * US, bytes=b"12345", text=f"a{name}", number=-3, ratio=0.5)
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
    timeline: Timeline,
    run: Run,
    asked: Interval,
    form: Format,
    look: TextLook,
    limit: int | None = None,
    host: str | None = None,
) -> tuple[Iterable[str], tuple[str, ...]]:
    options = {"from_ps": asked.from_ps, "to_ps": asked.to_ps, "track": asked.track}
    call = asked_of(run, form, look, limit, host, lambda _: OneTimeline(timeline), **options)
    content = REPORT.read(call)
    made = REPORT.writers[form](content, call)
    assert not callable(made)
    return made, tuple(content.warnings)


def text_of(timeline: Timeline, asked: Interval, form: Format, look: TextLook = LOOK, limit: int | None = None) -> str:
    return "".join(timeline_report(timeline, run_of("demo"), asked, form, look, limit)[0])


def document(timeline: Timeline, asked: Interval = EVERYTHING, limit: int | None = None) -> dict[str, Any]:
    return parsed(text_of(timeline, asked, "json", limit=limit))


def args_of(timeline: Timeline, name: str) -> list[dict[str, Any]]:
    """The arguments of all events of a name."""
    events = document(timeline, Interval(0))["events"]
    return [event["args"] for event in events if event["name"] == name]


# --- golden texts


@pytest.mark.parametrize("name", ["tracks", "events"])
@pytest.mark.parametrize("form", ["csv", "md"])
def test_reports_are_as_they_were(demo: Timeline, name: str, form: Format) -> None:
    asked = INTERVAL if name == "events" else Interval()
    check_golden(GOLDEN / f"timeline_{name}.{form}", text_of(demo, asked, form))


@pytest.mark.parametrize("name", ["tracks", "events"])
@pytest.mark.parametrize("look", LOOKS)
def test_texts_are_as_they_were(demo: Timeline, name: str, look: str) -> None:
    text = text_of(demo, INTERVAL if name == "events" else Interval(), "text", LOOKS[look])
    check_golden(GOLDEN / f"timeline_{name}-{look}.txt", text)
    assert all(len(line) <= LOOKS[look].width for line in text.splitlines())
    assert LOOKS[look].ascii_only == text.isascii()


# --- tracks


def test_tracks_have_the_keys_of_the_contract(demo: Timeline) -> None:
    found = document(demo)
    assert list(found)[:3] == ["schema", "run", "warnings"]
    assert found["schema"] == "tpuprof.timeline/1" and found["run"]["hosts"] == ["demo"]
    wanted = {"plane", "section", "line", "kind", "events", "first_ps", "last_ps", "busy_ps", "depth", "is_derived"}
    assert all(wanted <= set(track) for track in found["tracks"])
    assert sum(track["events"] for track in found["tracks"] if not track["is_derived"]) == found["event_count"]
    for track in found["tracks"]:
        assert found["first_ps"] <= track["first_ps"] <= track["last_ps"] <= found["last_ps"]
        assert 0 <= track["busy_ps"] <= track["last_ps"] - track["first_ps"] and 0 <= track["busy_fraction"] <= 1
        assert (track["depth"] >= 1) == (track["events"] > 0)
    assert {rate["name"] for rate in found["rates"]} == {"FLOPS", "HBM"}
    assert all(0 < rate["use_fraction"] < 1 for rate in found["rates"])


@pytest.mark.parametrize("asked", [Interval(), Interval(0), Interval(track="host")])
def test_every_null_has_a_reason(small: Timeline, asked: Interval) -> None:
    found = document(small, asked)
    assert set(nulls(found)) == set(found["unknown"])


def test_use_is_unknown_without_a_peak(small: Timeline) -> None:
    rates = {(rate["plane"], rate["name"]): rate for rate in document(small)["rates"]}
    known, bare = rates["/device:TPU:0", "FLOPS"], rates["/device:TPU:1", "FLOPS"]
    assert known["per_second"] == pytest.approx(4 * 1000 / 400e-6)
    assert known["use_fraction"] == pytest.approx(known["per_second"] / 100e12)
    assert bare["per_second"] == pytest.approx(10**6 / 400e-6) and bare["peak_per_second"] is None
    assert "the peak of this core" in document(small)["unknown"]["rates[].use_fraction"]


def test_a_counters_value_counts_as_long_as_it_holds(small: Timeline) -> None:
    counter = document(small)["counters"][0]
    assert (counter["samples"], counter["minimum"], counter["maximum"], counter["unit"]) == (3, 60.0, 300.0, "W")
    assert counter["mean"] == pytest.approx((100 * 100 + 300 * 250 + 60 * 50) / 400)
    held = counter_ranges(part_of(small, Interval(200 * US, 300 * US)))[0]  # the value from before the interval
    assert (held.samples, held.first_ps, held.mean, held.minimum) == (0, None, 300.0, 300.0)
    cut = counter_ranges(part_of(small, Interval(50 * US, 150 * US)))[0]
    assert cut.samples == 1 and cut.mean == pytest.approx(200.0)


def test_a_limit_is_one_of_tracks(small: Timeline) -> None:
    tracks = document(small)["track_count"]
    assert len(document(small)["tracks"]) == len(document(small, limit=0)["tracks"]) == tracks
    assert len(document(small, limit=2)["tracks"]) == 2 and document(small, limit=2)["track_count"] == tracks
    assert "more" in text_of(small, Interval(), "text", limit=2)
    assert f"Not shown: {tracks - 2} more." in text_of(small, Interval(), "md", limit=2)
    assert len(list(csv.reader(io.StringIO(text_of(small, Interval(), "csv", limit=2))))) == 3


def test_a_profile_without_events(tmp_path: Path) -> None:
    space = XSpace()
    PlaneBuilder(space, "/host:CPU", 1).line("main")
    empty = written(space, tmp_path)
    for asked in (Interval(), Interval(0), Interval(None, 5)):
        assert document(empty, asked)["event_count"] == 0
        assert all(text_of(empty, asked, form) for form in FORMATS)


# --- events


def overlapping(timeline: Timeline, start: int, end: int, derived: bool = False) -> list[tuple[int, str, int]]:
    """Start, name and lane of what an interval without its end holds, event by event."""
    found = []
    for section in timeline.sections:
        for track in section.tracks:
            for index in range(len(track) if derived or not track.is_derived else 0):
                a, b = int(track.start_ps[index]), int(track.end_ps[index])
                if a < end and (b > start or a == b == start):
                    found.append((a, track.label(index), track.lane_of(index)))
    return sorted(found)


@given(st.integers(0, 450), st.integers(1, 450))
def test_the_events_of_an_interval(tmp_path_factory: pytest.TempPathFactory, begin: int, size: int) -> None:
    timeline = written(small_profile(), tmp_path_factory.mktemp("one"))
    start, end = begin * US, (begin + size) * US
    part = part_of(timeline, Interval(start, end))
    found = select(part)
    tracks = [part.timeline.track(part.places[number]) for number in found.of_track.tolist()]
    triples = [
        (int(track.start_ps[at]), track.label(at), lane)
        for track, at, lane in zip(tracks, found.index.tolist(), found.lane.tolist(), strict=True)
    ]
    assert sorted(triples) == overlapping(timeline, start, end)
    assert [triple[0] for triple in triples] == sorted(triple[0] for triple in triples)
    assert sum(one["events"] for one in document(timeline, Interval(start, end))["summary"]) == len(found)


def test_events_have_the_keys_of_the_contract(demo: Timeline) -> None:
    found = document(demo, INTERVAL)
    keys = {"name", "section", "core", "plane", "track", "start_ps", "duration_ps", "depth", "class", "args"}
    assert all(set(event) == keys for event in found["events"])
    assert len(found["events"]) == found["event_count"] == found["shown_count"] > 20
    assert found["interval"] == {"from_ps": 600 * MS, "to_ps": 600 * MS + 700 * US, "duration_ps": 700 * US}
    starts = [event["start_ps"] for event in found["events"]]
    assert starts == sorted(starts)
    for one in found["summary"]:
        assert 0 <= one["busy_ps"] <= 700 * US
        assert len(one["top_ops"]) == len({op["name"] for op in one["top_ops"]}) <= 10
    ops = next(one for one in found["summary"] if one["track"] == "XLA Ops")
    assert sum(op["self_time_ps"] for op in ops["top_ops"]) == ops["busy_ps"] > 0


def test_open_intervals_reach_to_the_ends(small: Timeline) -> None:
    everything = document(small)["event_count"]
    assert document(small, Interval(0))["event_count"] == everything  # the event without duration at the end too
    assert document(small, Interval(None, 401 * US))["event_count"] == everything
    assert document(small, Interval(None, 400 * US))["event_count"] == everything - 1
    assert document(small, Interval(400 * US))["event_count"] == 1
    late = document(small, Interval(9 * MS))
    assert late["event_count"] == 0 and any("outside of the trace" in warning for warning in late["warnings"])


def test_arguments_are_all_stats_of_event_and_metadata(small: Timeline) -> None:
    (outer,) = args_of(small, "outer")
    assert outer == {"bytes": "5 bytes", "text": "a", "number": -3, "ratio": 0.5, "long": "yes"}
    inner = args_of(small, "inner")
    assert inner == [{"nan": None}, {}]
    assert "number" in document(small, Interval(0))["unknown"]["events[].args.nan"]
    assert len(args_of(small, "fusion.1")) == 2
    for args in args_of(small, "fusion.1"):
        assert args["memory_access_breakdown"] == [{"operation": "read", "memory": "hbm", "bytes": 500}]
        assert args["flops"] == 1000 and args["long_name"] == "%fusion.1 = f32[8] fusion.1()"
    rows = csv_rows(text_of(small, Interval(0), "csv"))
    assert json.loads(next(row["args"] for row in rows if row["name"] == "outer")) == outer


def test_bulk_arguments_are_those_of_single_events(demo: Timeline) -> None:
    part = part_of(demo, INTERVAL)
    selection = select(part)
    tracks = [part.timeline.track(place) for place in part.places]
    trace = Trace.open(demo.path)
    read_args = argument_reader(trace, tracks)
    for number, index in zip(selection.of_track.tolist(), selection.index.tolist(), strict=True):
        stats = event_stats(trace, tracks[number], index)
        expected = {name: plain_value(name, value) for name, value in [*stats.of_metadata, *stats.of_event]}
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


# --- tracks by name


def test_tracks_are_found_by_a_part_of_their_name(small: Timeline) -> None:
    assert {event["track"] for event in document(small, Interval(track="xla OPS"))["events"]} == {"XLA Ops"}
    assert {event["plane"] for event in document(small, Interval(track="TPU 0 / steps"))["events"]} == {"/device:TPU:0"}
    found = document(small, Interval(250 * US, track="main/77"))
    assert [event["name"] for event in found["events"]] == ["outer", "inner"] and found["rates"] == []
    power = document(small, Interval(track="power"))  # counters have names too
    assert power["events"] == [] and [counter["unit"] for counter in power["counters"]] == ["W"]


def test_derived_tracks_only_where_they_are_asked_for(demo: Timeline) -> None:
    assert not any(one["is_derived"] for one in document(demo, INTERVAL)["summary"])
    scopes = document(demo, replace(INTERVAL, track="name scope"))
    assert scopes["summary"] and all(one["is_derived"] for one in scopes["summary"])
    assert scopes["events"] and all(set(event["args"]) <= {"long_name"} for event in scopes["events"])


@pytest.mark.parametrize("form", FORMATS)
def test_no_such_track(demo: Timeline, form: Format) -> None:
    with pytest.raises(ProfileError) as caught:
        timeline_report(demo, run_of("demo"), Interval(track="xla opz"), form, LOOK)
    assert caught.value.exit_code == EXIT_NOT_FOUND
    assert caught.value.sentence == "No track of demo has xla opz in its name."
    assert "TPU core 0 / XLA Ops" in caught.value.hint


# --- limits, hosts, losses


def test_no_more_events_than_asked_for_and_never_silently(monkeypatch: pytest.MonkeyPatch, small: Timeline) -> None:
    monkeypatch.setattr(read_module, "MOST_EVENTS", 5)
    cut = document(small, Interval(0))
    assert (len(cut["events"]), cut["event_count"], cut["shown_count"]) == (5, 12, 5)
    assert cut["warnings"] == ["5 of 12 events are shown, the first ones; --limit 0 shows all"]
    assert (
        len(document(small, Interval(0), limit=0)["events"]) == 12 and not document(small, Interval(0), 0)["warnings"]
    )
    assert len(document(small, Interval(0), limit=7)["events"]) == 7
    assert "+ 7 more" in text_of(small, Interval(0), "text") and "Not shown: 7 more." in text_of(
        small, Interval(0), "md"
    )
    assert len(text_of(small, Interval(0), "csv").splitlines()) == 6


def test_events_come_one_by_one(small: Timeline) -> None:
    for form in FORMATS:
        pieces, _ = timeline_report(small, run_of("host0"), Interval(0), form, LOOK)
        assert not isinstance(pieces, str | Sequence) and isinstance(pieces, Iterator)
        assert sum(1 for _ in pieces) >= 13


def test_what_is_wrong_with_the_runs_files_is_said(small: Timeline) -> None:
    run = replace(run_of("host0"), problems=(Problem("empty_file", "q", "q.xplane.pb holds 0 bytes."),))
    _, warnings = timeline_report(small, run, Interval(), "text", LOOK)
    assert warnings == ("q.xplane.pb holds 0 bytes.",)


@pytest.mark.parametrize("asked", [Interval(), Interval(0)])
def test_what_the_file_lacks_is_told(tmp_path: Path, asked: Interval) -> None:
    data = small_profile().SerializeToString()
    path = tmp_path / "cut.xplane.pb"
    path.write_bytes(data[: len(data) * 2 // 3])
    timeline = read(str(path), "cut")
    found = document(timeline, asked)
    assert found["lost"] == list(timeline.lost) and any("cut off" in sentence for sentence in found["lost"])
    assert set(found["lost"]) <= set(found["warnings"])
    assert "cut off" in " ".join(text_of(timeline, asked, "text").split())
    assert "cut off" in text_of(timeline, asked, "md")


# --- hostile input


@pytest.mark.parametrize("asked", [Interval(), Interval(0)])
@pytest.mark.parametrize("form", FORMATS)
def test_hostile_names_come_out_harmless(tmp_path: Path, form: Format, asked: Interval) -> None:
    timeline = replace(written(small_profile(EVIL.replace("\udcff", "")), tmp_path), host=EVIL, lost=(EVIL,))
    run = replace(run_of("demo"), name=EVIL, path=EVIL)
    pieces, _ = timeline_report(timeline, run, asked, form, LOOKS["80-ascii"])
    text = "".join(pieces)
    assert all(printable(line) == line for line in text.split("\n"))
    text.encode("utf-8")
    if form == "md":
        assert "<b>" not in text.replace("\\<b\\>", "")
    if form == "text":
        assert text.isascii() and all(len(line) <= 80 for line in text.splitlines())


def test_odd_numbers_survive(tmp_path: Path) -> None:
    space = XSpace()
    host = PlaneBuilder(space, "/host:CPU", 1)
    line = host.line("main")
    big = 2**63 - 1
    for offset, duration in ((-5, -5), (big, big), (-big, 3), (0, big), (7, 0)):
        host.event(line, host.event_id("f"), offset, duration)
    timeline = written(space, tmp_path)
    for asked in (Interval(), Interval(0), Interval(0, 10), Interval(None, 10**18), Interval(10**18)):
        for form in FORMATS:
            assert text_of(timeline, asked, form)
    assert document(timeline, Interval(None, 10**18))["event_count"] >= 4


@given(st.integers(-(2**62), 2**62), st.integers(0, 10**16))
def test_instants_are_written_as_they_are_read(start: int, size: int) -> None:
    decimals = time_decimals(start, start + size)
    shown = at_ms(start, decimals)
    assert 3 <= decimals <= 9 and len(shown.partition(".")[2]) == decimals
    whole, _, part = shown.lstrip("-").partition(".")
    value = int(whole) * MS + int(part.ljust(9, "0"))
    assert abs(start) - 10 ** (9 - decimals) < value <= abs(start) and shown.startswith("-") == (start < 0)


# --- real profiles


@pytest.mark.shared
def test_a_real_profile(shared: Path) -> None:
    path = next((shared / "profiles" / "tpu-v6e-inference").rglob("*.xplane.pb*"))
    timeline = read(str(path), "v6e")
    found = document(timeline)
    trace = Trace.open(str(path))
    lines = [line for plane in trace.planes for line in plane.lines if not line.name.strip("_").startswith("counters")]
    assert found["event_count"] == sum(_events_in_time(line) for line in lines) > 10_000
    half = (timeline.first_ps + timeline.last_ps) // 2
    cut = document(timeline, Interval(half, half + MS), limit=0)
    assert cut["event_count"] == len(cut["events"]) == len(overlapping(timeline, half, half + MS))
    assert any(event["args"] for event in cut["events"])
    assert len(mean_rates(part_of(timeline, Interval()))) == len(found["rates"])
    rows = csv_rows(text_of(timeline, Interval(half, half + MS), "csv", limit=0))
    assert [row["name"] for row in rows] == [event["name"] for event in cut["events"]]


def _events_in_time(line: Line) -> int:
    events = line.events()
    return len(events) - (0 if events.num_occurrences is None else int(np.count_nonzero(events.num_occurrences)))
