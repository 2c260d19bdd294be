"""The reader against protobuf's own parse, on whole, cut and broken files."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.build import PlaneBuilder, event_message, trace_of
from tpuprof.parsers.base.errors import EXIT_UNREADABLE, Cancelled, ProfileError
from tpuprof.parsers.formats.proto.xplane_pb2 import XPlane, XSpace
from tpuprof.parsers.formats.xspace import trace as trace_module
from tpuprof.parsers.formats.xspace.events import LineHeader, StatColumn
from tpuprof.parsers.formats.xspace.trace import Trace

INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.binary(max_size=12)
KINDS = st.sampled_from(["double", "uint64", "int64", "str", "bytes", "none"])


@st.composite
def spaces(draw: st.DrawFn) -> XSpace:
    """XSpaces with every field of every message."""
    space = XSpace(errors=draw(st.lists(NAMES, max_size=2)), hostnames=draw(st.lists(NAMES, max_size=2)))
    for number in range(draw(st.integers(0, 3))):
        plane = space.planes.add(id=draw(INT64), name=b"/device:TPU:%d" % number)
        for stat_id in draw(st.lists(st.integers(0, 6), max_size=4)):
            plane.stat_metadata[stat_id].id = stat_id
            plane.stat_metadata[stat_id].name = b"stat%d" % stat_id
            plane.stat_metadata[stat_id].description = draw(NAMES)
        for event_id in draw(st.lists(st.integers(-2, 2**40), max_size=4)):
            entry = plane.event_metadata[event_id]
            entry.id, entry.name, entry.display_name = event_id, draw(NAMES), draw(NAMES)
            entry.metadata = draw(NAMES)
            entry.child_id.extend(draw(st.lists(INT64, max_size=3)))
        for _ in range(draw(st.integers(0, 3))):
            line = plane.lines.add(
                id=draw(INT64),
                display_id=draw(INT64),
                name=draw(NAMES),
                display_name=draw(NAMES),
                timestamp_ns=draw(INT64),
                duration_ps=draw(INT64),
            )
            for _ in range(draw(st.integers(0, 5))):
                event = line.events.add(metadata_id=draw(INT64), duration_ps=draw(INT64))
                if draw(st.booleans()):
                    event.offset_ps = draw(INT64)
                else:
                    event.num_occurrences = draw(INT64)
                for stat_id in draw(st.lists(st.integers(0, 6), max_size=3)):
                    stat = event.stats.add(metadata_id=stat_id)
                    kind = draw(KINDS)
                    if kind == "double":
                        stat.double_value = draw(st.floats(allow_nan=False))
                    elif kind == "uint64":
                        stat.uint64_value = draw(st.integers(0, 2**64 - 1))
                    elif kind == "int64":
                        stat.int64_value = draw(INT64)
                    elif kind == "str":
                        stat.str_value = draw(NAMES)
                    elif kind == "bytes":
                        stat.bytes_value = draw(NAMES)
    return space


def decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


@given(spaces())
@settings(max_examples=2 * EXAMPLES)
def test_every_field_is_what_protobuf_reads(space: XSpace) -> None:
    data = space.SerializeToString()
    if not data:
        return
    trace = Trace.from_bytes(data)
    assert trace.problems == ()
    assert trace.errors == tuple(map(decoded, space.errors))
    assert trace.hostnames == tuple(map(decoded, space.hostnames))
    assert [(p.id, p.name) for p in trace.planes] == [(p.id, decoded(p.name)) for p in space.planes]
    for plane, expected in zip(trace.planes, space.planes, strict=True):
        check_metadata(plane, expected)
        assert len(plane.lines) == len(expected.lines)
        for line, truth in zip(plane.lines, expected.lines, strict=True):
            assert line.header == LineHeader(
                id=truth.id,
                display_id=truth.display_id,
                name=decoded(truth.name),
                display_name=decoded(truth.display_name),
                timestamp_ns=truth.timestamp_ns,
                duration_ps=truth.duration_ps,
            )
            events = line.events(stats=[f"stat{n}" for n in range(7)])
            assert events.metadata_id.tolist() == [e.metadata_id for e in truth.events]
            assert events.offset_ps.tolist() == [e.offset_ps for e in truth.events]
            assert events.duration_ps.tolist() == [e.duration_ps for e in truth.events]
            occurrences = [e.num_occurrences for e in truth.events]
            assert (events.num_occurrences is None and not any(occurrences)) or (
                events.num_occurrences is not None and events.num_occurrences.tolist() == occurrences
            )
            for at, event in enumerate(truth.events):
                assert event_message(plane, events, at) == event
                first: dict[int, object] = {}
                for stat in event.stats:
                    first.setdefault(stat.metadata_id, stat)
                for name, column in events.stats.items():
                    check_stat(plane, column, at, first.get(int(name[4:])))


def check_metadata(plane: trace_module.Plane, expected: XPlane) -> None:
    assert plane.event_metadata.ids.tolist() == sorted(expected.event_metadata)
    assert plane.stat_metadata.ids.tolist() == sorted(expected.stat_metadata)
    for row, metadata_id in enumerate(plane.event_metadata.ids.tolist()):
        truth = expected.event_metadata[metadata_id]
        assert plane.event_metadata.name(row) == decoded(truth.name)
        assert plane.event_metadata.display_name(row) == decoded(truth.display_name)
        assert plane.event_metadata.message(row) == truth
    for row, metadata_id in enumerate(plane.stat_metadata.ids.tolist()):
        truth_stat = expected.stat_metadata[metadata_id]
        assert plane.stat_metadata.name(row) == decoded(truth_stat.name)
        assert plane.stat_metadata.display_name(row) == decoded(truth_stat.description)


def check_stat(plane: trace_module.Plane, column: StatColumn, at: int, stat: object) -> None:
    kind = int(column.kind[at])
    if stat is None:
        assert kind == 0
        return
    which = stat.WhichOneof("value")  # type: ignore[attr-defined]
    expected = getattr(stat, which) if which else None
    if which is None:
        assert kind == 1
    elif which == "double_value":
        assert struct.pack("<q", int(column.value[at])) == struct.pack("<d", expected)
    elif which in ("uint64_value", "int64_value"):
        assert isinstance(expected, int)
        assert int(column.value[at]) % 2**64 == expected % 2**64
    else:
        begin, length = int(column.value[at]), int(column.length[at])
        assert plane.source.read(begin, length) == expected


def sample(events: int = 40) -> bytes:
    """Two planes; the first with two lines of events that have stats."""
    space = XSpace(hostnames=[b"host0"])
    for ordinal in range(2):
        plane = PlaneBuilder(space, f"/device:TPU:{ordinal}")
        for name in ("Steps", "XLA Ops"):
            line = plane.line(name, timestamp_ns=3)
            for at in range(events):
                metadata = plane.event_id(f"op{at % 5}", "", hlo_category="fusion", flops=at)
                plane.event(
                    line, metadata, at * 100, 90, device_offset_ps=at * 100 + 1, device_duration_ps=80, note="x"
                )
    return space.SerializeToString()


def test_a_file_cut_at_any_byte_keeps_every_complete_line_and_says_what_is_lost() -> None:
    data = sample(events=6)
    whole = Trace.from_bytes(data)
    ends = [(plane.index, line.name, line.end, len(line.events())) for plane in whole.planes for line in plane.lines]
    opened = 0
    for cut in range(1, len(data)):
        try:
            trace = Trace.from_bytes(data[:cut])
        except ProfileError as error:
            assert error.exit_code == EXIT_UNREADABLE
            assert cut <= whole.planes[0].lines[0].begin
            continue
        opened += 1
        found = [
            (plane.index, line.name, line.end, len(line.events()))
            for plane in trace.planes
            for line in plane.lines
            if not line.lost_bytes
        ]
        complete = [entry for entry in ends if entry[2] <= cut]
        assert [entry for entry in found if entry in complete] == complete
        at_a_border = cut in {plane.end for plane in whole.planes}
        assert at_a_border or trace.problems, cut
        for problem in trace.problems:
            assert problem.code == "truncated"
            assert f"{cut:,} bytes" in problem.sentence or "ends in the middle" in problem.sentence
        for plane in trace.planes:
            for line in plane.lines:
                events = line.events()
                full = whole.planes[plane.index].lines[plane.lines.index(line)].events()
                assert events.offset_ps.tolist() == full.offset_ps.tolist()[: len(events)]
    assert opened > len(data) * 0.9


def test_chunks_join_to_the_same_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Trace.from_bytes(sample(events=300)).planes[1].lines[1]
    whole = line.events(stats=("device_offset_ps", "note"))
    seen: list[int] = []
    monkeypatch.setattr(trace_module, "CHUNK", 257)
    parts = line.events(stats=("device_offset_ps", "note"), on_chunk=lambda size, events: seen.append(events))
    assert len(seen) > 20
    assert sum(seen) == 300
    for name in ("metadata_id", "offset_ps", "duration_ps", "begin", "length"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name)), name
    for name, column in whole.stats.items():
        assert np.array_equal(column.kind, parts.stats[name].kind)
        assert np.array_equal(column.value, parts.stats[name].value)
    assert line.plane.texts(parts.stats["note"]) == ["x"] * 300


def test_an_event_larger_than_a_chunk_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = PlaneBuilder.alone("/host:CPU")
    line = plane.line("python")
    for at in range(3):
        plane.event(line, plane.event_id("big"), at, 1, text="y" * 5000)
    monkeypatch.setattr(trace_module, "CHUNK", 100)
    events = plane.read().lines[0].events(stats=("text",))
    assert events.offset_ps.tolist() == [0, 1, 2]
    assert events.stats["text"].length.tolist() == [5000, 5000, 5000]


def test_cancelling_stops_between_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "CHUNK", 200)
    line = Trace.from_bytes(sample(events=300)).planes[0].lines[0]
    calls = 0

    def stop(size: int, events: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        line.events(on_chunk=stop)
    assert calls == 3


def read_everything(trace: Trace) -> int:
    """Touches all that the library can give; returns the number of events."""
    total = 0
    for plane in trace.planes:
        assert len(plane.event_metadata) >= 0
        assert isinstance(plane.stats, dict)
        for line in plane.lines:
            assert isinstance(line.header.name, str)
            total += len(line.events(stats=("device_offset_ps", "note")))
    assert isinstance(trace.problems, tuple)
    return total


def test_a_length_beyond_any_file_is_damage_not_a_cut() -> None:
    data = b"\x0a\xff\xff\xff\xff\xff\xff\x7f" + b"\x12\x05/host"
    with pytest.raises(ProfileError) as caught:
        Trace.from_bytes(data)
    assert caught.value.code == "corrupt"


def test_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb"
    path.touch()
    with pytest.raises(ProfileError) as caught:
        Trace.open(str(path))
    assert caught.value.code == "empty_file"
    assert "0 bytes" in caught.value.sentence


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as caught:
        Trace.open(str(tmp_path / "none.xplane.pb"))
    assert (caught.value.code, caught.value.exit_code) == ("not_found", 3)
    with pytest.raises(ProfileError) as caught:
        Trace.open(str(tmp_path))
    assert caught.value.exit_code == EXIT_UNREADABLE


def test_gzip_is_recognised_by_content_and_a_cut_stream_is_salvaged(tmp_path: Path) -> None:
    data = sample(events=200)
    packed = gzip.compress(data, mtime=0)
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(packed)
    assert read_everything(Trace.open(str(path))) == 800
    path.write_bytes(gzip.compress(data[:500], mtime=0) + gzip.compress(data[500:], mtime=0))
    assert read_everything(Trace.open(str(path))) == 800
    path.write_bytes(packed[: len(packed) * 2 // 3])
    trace = Trace.open(str(path))
    assert 0 < read_everything(trace) < 800
    assert "gzip stream ends early" in trace.problems[0].sentence


@given(st.lists(st.lists(st.sampled_from([0, 1, 5]), min_size=1, max_size=3, unique=True), min_size=1, max_size=4))
def test_devices_of_profiles_joined_into_one_file_have_numbers_of_their_own(ranks: list[list[int]]) -> None:
    """Joining profiles as bytes is joining their planes: none of one name may stand for another."""
    data = b""
    for numbers in ranks:
        space = XSpace()
        for name in ("/host:CPU", *(f"/device:TPU:{number}{of}" for number in numbers for of in ("", " SparseCore 1"))):
            space.planes.add(name=name.encode())
        data += space.SerializeToString()
    trace = Trace.from_bytes(data)
    devices = [plane.name for plane in trace.planes if plane.name != "/host:CPU"]
    assert len(set(devices)) == len(devices) == 2 * sum(map(len, ranks))
    assert {f"{name} SparseCore 1" for name in devices[::2]} == set(devices[1::2])
    assert devices[: 2 * len(ranks[0])] == [
        f"/device:TPU:{number}{of}" for number in ranks[0] for of in ("", " SparseCore 1")
    ]
    every = [number for numbers in ranks for number in numbers]
    is_joined = len(set(every)) < len(every)
    assert [problem.code for problem in trace.problems] == ["joined_profiles"] * is_joined


@given(st.lists(st.integers(1, 1 << 40), min_size=1, max_size=4), st.sampled_from([None, 0, 5]))
def test_clocks_since_1970_count_from_the_profiles_start(later: list[int], before: int | None) -> None:
    """From the earliest line where nobody noted the start."""
    space, began = XSpace(), 1_741_722_099 * 10**9
    for number, ns in enumerate(later):
        PlaneBuilder(space, f"/device:TPU:{number}").line("XLA Ops", timestamp_ns=began + ns)
    if before is not None:
        PlaneBuilder(space, "Task Environment").stat("profile_start_time", began - before)
    first = min(later) if before is None else -before
    assert [plane.lines[0].timestamp_ns for plane in trace_of(space).planes[: len(later)]] == [
        ns - first for ns in later
    ]
