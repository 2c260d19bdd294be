"""What a profile's planes and lines become: sections, tracks, names, classes, lanes, rates and sentences."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.support.build import PlaneBuilder, tpu_plane, trace_of
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.formats.proto.xplane_pb2 import CoreDetails, XLine, XSpace
from tpuprof.parsers.formats.xspace.trace import HEAD, Line, Trace
from tpuprof.parsers.timeline.details import own_stats
from tpuprof.parsers.timeline.model import Section, StepSpan, Timeline, Track
from tpuprof.parsers.timeline.read import timeline as read_module
from tpuprof.parsers.timeline.read.timeline import needed_bytes, read_timeline

HBM_READ = b"\n\x07\x08\x01\x10\x01\x18\xf4\x03"
"""A `memory_access_breakdown` of 500 bytes read from HBM."""


def read(space: XSpace | bytes, threads: int = 1) -> Timeline:
    data = space if isinstance(space, bytes) else space.SerializeToString()
    return read_timeline(Trace.from_bytes(data), "host0", "host0.xplane.pb", threads=threads)


def plane(space: XSpace, name: str, *lines: str) -> PlaneBuilder:
    """A plane with one event in each of some lines."""
    builder = PlaneBuilder(space, name, len(space.planes) + 1)
    for line in lines:
        builder.event(builder.line(line), builder.event_id(f"event of {line}"), 0, 10)
    return builder


def section(space: XSpace) -> Section:
    """The only section."""
    (found,) = read(space).sections
    return found


def tracks(found: Section) -> dict[str, Track]:
    return {track.name: track for track in found.tracks}


def events(track: Track) -> list[tuple[int, int, int, str]]:
    """Lane, start, end and name of all events."""
    return [
        (track.lane_of(at), int(track.start_ps[at]), int(track.end_ps[at]), track.label(at)) for at in range(len(track))
    ]


# --- sections


@pytest.mark.parametrize(
    ("name", "details", "title"),
    [
        ("/device:TPU:3", None, "TPU 3"),
        ("/device:TPU:3", CoreDetails(global_chip_id=2, core_num=1), "Chip 2: TPU core 1"),
        ("/device:TPU:3", CoreDetails(local_chip_id=5), "Chip 5: TPU core 0"),
        ("/device:TPU:3", b"\xff\xff\xff", "TPU 3"),
        ("/device:TPU:0 SparseCore 1", None, "TPU:0 SparseCore 1"),
        ("/device:TPU:0 SparseCore 1", CoreDetails(global_chip_id=4, core_num=3), "Chip 4: SparseCore 3"),
        ("/device:GPU:1", None, "/device:GPU:1"),
        ("/host:CPU", None, "Host threads"),
        ("/device:CUSTOM:Megascale Trace", None, "/device:CUSTOM:Megascale Trace"),
    ],
)
def test_a_section_is_called_after_its_core(name: str, details: CoreDetails | bytes | None, title: str) -> None:
    builder = plane(XSpace(), name, "XLA Ops")
    if details is not None:
        builder.stat("core_details", details if isinstance(details, bytes) else details.SerializeToString())
    assert section(builder.space).title == title
    assert section(builder.space).plane == name


def test_cores_come_first_then_sparse_cores_gpus_and_the_host() -> None:
    space = XSpace()
    for name in ("/device:CUSTOM:a", "/host:CPU", "/device:GPU:0", "/device:TPU:0 SparseCore 0", "/device:TPU:1"):
        plane(space, name, "line")
    plane(space, "/device:TPU:0", "line")
    plane(space, "/host:metadata")  # without lines it is not shown
    kinds = [(one.kind, one.plane) for one in read(space).sections]
    assert kinds == [
        ("core", "/device:TPU:1"),
        ("core", "/device:TPU:0"),
        ("sparse_core", "/device:TPU:0 SparseCore 0"),
        ("gpu", "/device:GPU:0"),
        ("host", "/host:CPU"),
        ("other", "/device:CUSTOM:a"),
    ]


# --- tracks


def test_tracks_of_a_core_are_in_the_order_of_the_screen() -> None:
    space = XSpace()
    lines = ("Async XLA Ops", "XLA TraceMe", "XLA Ops", "something", "XLA Modules", "Steps")
    builder = plane(space, "/device:TPU:0", *lines)
    text = "%fusion.1 = f32[8] fusion()"
    op = builder.event_id(text, "fusion.1", tf_op="jit(f)/layer/dot_general:", source="model.py:7")
    builder.plane.lines[2].events[0].metadata_id = op
    assert [(track.kind, track.name, track.is_derived) for track in section(space).tracks] == [
        ("steps", "Steps", False),
        ("modules", "XLA Modules", False),
        ("scopes", "Framework Name Scope", True),
        ("framework_ops", "Framework Ops", True),
        ("source", "Source code", True),
        ("ops", "XLA Ops", False),
        ("async", "Async XLA Ops", False),
        ("traceme", "XLA TraceMe", False),
        ("other", "something", False),
    ]


def test_sparse_cores_have_steps_modules_and_ops_but_nothing_derived() -> None:
    space = XSpace()
    plane(space, "/device:TPU:0 SparseCore 0", "Sparse Core Ops", "Sparse Core Modules", "Sparse Core Steps")
    assert [track.kind for track in section(space).tracks] == ["steps", "modules", "ops"]


@pytest.mark.parametrize(
    ("name", "kind"), [("/host:CPU", "thread"), ("/device:GPU:0", "ops"), ("/device:CUSTOM:a", "other")]
)
def test_lines_of_other_planes_are_threads_and_streams(name: str, kind: str) -> None:
    space = XSpace()
    plane(space, name, "XLA Ops")  # the name of a line says what it is only on a device
    assert [track.kind for track in section(space).tracks] == [kind]


def test_threads_are_in_the_order_of_their_display_ids() -> None:
    builder = plane(XSpace(), "/host:CPU", "c", "a", "b", "a")
    for line, display_id in zip(builder.plane.lines, (30, 0, 20, 4), strict=True):
        line.display_id = display_id  # 0 for none: then it is the line's id, which is 2
    assert [(track.name, track.sort_id) for track in section(builder.space).tracks] == [
        ("a", 2),
        ("a", 4),
        ("b", 20),
        ("c", 30),
    ]


def test_a_display_name_and_id_behind_the_events_are_found() -> None:
    builder = plane(XSpace(), "/host:CPU")
    line = builder.spans("short", (("call", 10 * at, 10 * at + 5) for at in range(3000)))
    body = line.SerializeToString() + XLine(display_name=b"shown", display_id=7).SerializeToString()
    assert len(body) > 2 * HEAD  # they do not stand in the bytes that a line's own name is read from
    del builder.plane.lines[:]
    raw = builder.plane.SerializeToString() + _field(3, body)
    (track,) = read(_field(1, raw)).sections[0].tracks
    assert (track.name, track.sort_id, len(track)) == ("shown", 7, 3000)


def _field(number: int, body: bytes) -> bytes:
    """A field of bytes as it stands in a message."""
    out, size = bytearray([number << 3 | 2]), len(body)
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes([*out, size]) + body


def test_lines_without_events_and_counters_are_no_tracks() -> None:
    builder = plane(XSpace(), "/device:TPU:0", "XLA Ops")
    builder.line("XLA Modules")
    builder.event(builder.line("_counters_"), builder.event_id("power"), 5, 0, watts=1.5)
    found = section(builder.space)
    assert [track.name for track in found.tracks] == ["XLA Ops"]
    assert [counter.name for counter in found.counters] == ["power"]


def test_each_of_several_lines_of_ops_has_its_own_derived_tracks() -> None:
    builder = plane(XSpace(), "/device:TPU:0")
    op = builder.event_id("%a = f32[] add()", "a", hlo_category="loop fusion", tf_op="jit(f)/add:")
    for at in range(2):
        builder.event(builder.line("XLA Ops"), op, 100 * at, 10)
    for _ in range(20):
        builder.event(builder.line("XLA Ops"), op, 0, 10)
    kinds = [track.kind for track in section(builder.space).tracks]
    assert kinds.count("ops") == 22
    assert kinds.count("framework_ops") == 8  # a damaged profile with thousands of such lines has no end otherwise


def test_sections_come_one_after_the_other_cores_first() -> None:
    space = XSpace()
    plane(space, "/host:CPU", "python")
    plane(space, "/host:metadata")
    for number in range(3):
        tpu_plane(space, number, [(f"fusion.{at}", "loop fusion", 10 * at, 5) for at in range(number + 2)])
    empty = PlaneBuilder(space, "/device:GPU:0", 9)
    empty.line("Stream #1")
    for threads in (1, 3):
        parts: list[Timeline] = []
        whole = read_timeline(trace_of(space), "host0", "p", threads=threads, on_part=parts.append)
        titles = [one.title for one in whole.sections]
        assert titles == ["TPU 0", "TPU 1", "TPU 2", "Host threads"] and whole.unread == 0
        assert (
            [[one.title for one in part.sections if one.is_read] for part in parts]
            == [
                titles[:1],
                titles[:2],
                titles[:3],
                titles,  # the stream turns out to be empty
            ][: len(parts)]
        )
        assert len(parts) >= 3 and all(part.unread for part in parts)
        for part in parts:
            read_of = part.sections[: len(part.sections) - part.unread]
            assert all(one is other for one, other in zip(read_of, whole.sections, strict=False))
            assert part.last_ps == max(track.span[1] for one in read_of for track in one.tracks)
            assert not any(one.tracks for one in part.sections if not one.is_read)
        assert [one.title for one in parts[0].sections[1:3]] == ["TPU 1", "TPU 2"]


def test_who_gives_up_gets_no_further_part(monkeypatch: pytest.MonkeyPatch) -> None:
    space = XSpace()
    for number in range(5):
        tpu_plane(space, number, [("fusion.1", "loop fusion", 0, 5)])
    parts: list[Timeline] = []

    def on_chunk(size: int, _: int) -> None:
        if parts:
            raise Cancelled

    def on_part(part: Timeline) -> None:
        parts.append(part)
        go_on.set()

    go_on = threading.Event()
    trace = trace_of(space)
    scan, waited = Line.scan, []

    def late(line: Line, *arguments: object) -> object:
        if line.plane.index:
            waited.append(go_on.wait(60))  # until the first section is shown
        return scan(line, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Line, "scan", late)
    with pytest.raises(Cancelled):
        read_timeline(trace, "host0", "p", on_chunk=on_chunk, on_part=on_part)
    assert [part.unread for part in parts] == [4]
    assert waited and all(waited)


# --- events


def test_events_are_in_lanes_by_their_nesting() -> None:
    builder = plane(XSpace(), "/host:CPU")
    line = builder.line("python", timestamp_ns=1)
    spans = [(50, 10), (0, 40), (10, 20), (10, 5), (60, 0), (30, 40), (100, 0)]
    for number, (offset, duration) in enumerate(spans):
        builder.event(line, builder.event_id(f"e{number}"), offset, duration)
    found = section(builder.space)
    assert events(tracks(found)["python"]) == [
        (0, 1000, 1040, "e1"),
        (0, 1050, 1060, "e0"),
        (0, 1060, 1060, "e4"),
        (0, 1100, 1100, "e6"),
        (1, 1010, 1030, "e2"),
        (1, 1030, 1070, "e5"),  # overlaps the one above in part
        (2, 1010, 1015, "e3"),
    ]
    assert read(builder.space).first_ps == 1000 and read(builder.space).last_ps == 1100


def test_lines_are_read_alike_by_one_thread_and_by_several() -> None:
    builder = plane(XSpace(), "/host:CPU")
    for number in range(300):
        builder.spans(f"thread {number}", ((f"e{at}", 10 * at, 10 * at + 12) for at in range(number % 7 + 1)))
    one, four = section(builder.space), read(builder.space, threads=4).sections[0]
    assert [events(track) for track in one.tracks] == [events(track) for track in four.tracks]
    assert [track.name for track in four.tracks] == [f"thread {number}" for number in range(300)]


def test_an_event_without_metadata_is_called_by_its_id() -> None:
    builder = plane(XSpace(), "/host:CPU")
    line = builder.line("python")
    for at, number in enumerate((builder.event_id("known"), 0, -5, 2**62, 0, 900)):
        builder.event(line, number, 10 * at, 5)
    (track,) = section(builder.space).tracks
    labels = [track.label(at) for at in range(6)]
    assert labels == ["known", "event 0", "event -5", f"event {2**62}", "event 0", "event 900"]
    assert track.counts.tolist() == [1, 1, 2, 1, 1]


@pytest.mark.parametrize("far", [3, 10_000, 2**40])
@pytest.mark.parametrize("n", [5, 3000])
def test_ids_of_any_size_find_their_metadata(n: int, far: int) -> None:
    builder = plane(XSpace(), "/host:CPU")
    for number in (1, 2, far):
        builder.plane.event_metadata[number].id = number
        builder.plane.event_metadata[number].name = f"name {number}".encode()
    line = builder.line("python")
    ids = [(1, 2, far, far + 1, -1)[at % 5] for at in range(n)]
    for at, number in enumerate(ids):
        builder.event(line, number, 10 * at, 5)
    (track,) = section(builder.space).tracks
    known = {1, 2, far}
    assert [track.label(at) for at in range(n)] == [f"name {one}" if one in known else f"event {one}" for one in ids]


def test_aggregated_events_are_left_out_and_that_is_said() -> None:
    builder = plane(XSpace(), "/host:CPU")
    line = builder.spans("python", ((f"e{at}", 10 * at, 10 * at + 5) for at in range(4)))
    for at in (1, 3):
        line.events[at].ClearField("offset_ps")
        line.events[at].num_occurrences = 7
    found = read(builder.space)
    assert [name for *_, name in events(found.sections[0].tracks[0])] == ["e0", "e2"]
    assert found.warnings == ("2 aggregated events have no place in time and are left out",)
    assert found.event_count == 2


# --- classes


@pytest.mark.parametrize(
    ("name", "stats", "expected"),
    [
        ("fusion.1", {"hlo_category": "convolution fusion"}, "compute"),
        ("fusion.2", {"hlo_category": "loop fusion"}, "vector"),
        ("copy.3", {"hlo_category": "copy"}, "copy"),
        ("all-reduce.4", {"hlo_category": "all-reduce"}, "collective"),
        ("infeed.5", {"hlo_category": "infeed"}, "host"),
        ("all-gather-start.6", {"hlo_category": "async-start"}, "collective"),
        ("copy-done.7", {"hlo_category": "copy-done"}, "copy"),
        ("fusion.8", {"hlo_category": "unknown"}, "unknown"),
        ("fusion.9", {}, "unknown"),
        ("barrier-cores", {}, "idle"),
    ],
)
def test_ops_are_of_the_class_of_their_category(name: str, stats: dict[str, str], expected: str) -> None:
    builder = plane(XSpace(), "/device:TPU:0")
    builder.event(builder.line("XLA Ops"), builder.event_id(f"%{name} = f32[8] f()", name, **stats), 0, 10)
    assert tracks(section(builder.space))["XLA Ops"].event_class(0) == expected


@pytest.mark.parametrize(
    ("device", "name", "expected"),
    [
        ("/host:CPU", "PjitFunction(f)", "host"),
        ("/host:CPU", "WaitForEvent", "idle"),
        ("/host:CPU", "BlockUntilReady", "idle"),
        ("/host:CPU", "ThreadPool: wait for work", "idle"),
        ("/host:CPU", "TransferToDevice", "copy"),
        ("/host:CPU", "", "host"),
        ("/device:GPU:0", "ncclDevKernel_AllReduce_Sum", "collective"),
        ("/device:GPU:0", "MemcpyD2H", "copy"),
        ("/device:GPU:0", "volta_sgemm_128x64_nn", "compute"),
        ("/device:GPU:0", "loop_add_fusion", "vector"),
    ],
)
def test_calls_and_kernels_are_of_the_class_that_their_name_tells(device: str, name: str, expected: str) -> None:
    builder = plane(XSpace(), device)
    builder.spans("a line", [(name, 0, 10)])
    assert section(builder.space).tracks[0].event_class(0) == expected


def test_ids_without_metadata_are_host_calls_on_the_host_and_else_unknown() -> None:
    space = XSpace()
    for name in ("/host:CPU", "/device:TPU:0", "/device:GPU:0"):
        builder = plane(space, name)
        builder.event(builder.line("XLA Ops"), 99, 0, 10)
    found = {one.kind: one.tracks[0].event_class(0) for one in read(space).sections}
    assert found == {"core": "unknown", "gpu": "unknown", "host": "host"}


# --- rates


def test_rates_come_from_what_the_ops_ask_for() -> None:
    space = XSpace()
    tpu_plane(space, 0, [("fusion.1", "loop fusion", 0, 10), ("while.2", "while", 20, 10)])
    found = section(space)
    assert [(rate.name, rate.peak) for rate in found.rates] == [("FLOPS", 100e12), ("HBM", 1000e9)]
    ops = tracks(found)["XLA Ops"]
    assert all(rate.ops is ops for rate in found.rates)
    work = {ops.label(at): [float(rate.work[ops.key[at]]) for rate in found.rates] for at in range(2)}
    assert work == {"fusion.1": [1000.0, 500.0], "while.2": [0.0, 0.0]}  # an op that holds others does nothing itself


def test_without_peaks_rates_have_none_and_without_counts_there_are_no_rates() -> None:
    builder = plane(XSpace(), "/device:TPU:0")
    op = builder.event_id("%a = f32[] a()", "a", hlo_category="loop fusion", flops=10, memory_access_breakdown=HBM_READ)
    builder.event(builder.line("XLA Ops"), op, 0, 10)
    assert [(rate.name, rate.peak) for rate in section(builder.space).rates] == [("FLOPS", None), ("HBM", None)]
    bare = XSpace()
    plane(bare, "/device:TPU:0", "XLA Ops")
    assert section(bare).rates == ()


# --- sentences


def test_what_the_profiler_lost_comes_apart_from_what_else_it_says() -> None:
    space = XSpace()
    plane(space, "/host:CPU", "python")
    space.errors.append(b"failed to stop \x1b[31mthe tracer")
    space.warnings.extend((b"no device was traced", b"dropped 5 events"))
    found = read(space)
    assert found.lost == ("failed to stop ␛[31mthe tracer", "dropped 5 events")
    assert found.warnings == ("no device was traced",)


def test_sentences_without_end_end() -> None:
    space = XSpace()
    plane(space, "/host:CPU", "python")
    space.warnings.extend(b"dropped %d events" % at for at in range(1000))
    space.errors.append(b"x" * 1_000_000)
    found = read(space)
    assert len(found.lost) == 51 and found.lost[-1] == "the profiler reports more than is listed here"
    assert [len(text) for text in found.warnings] == [1000]


def test_damaged_events_are_counted() -> None:
    builder = plane(XSpace(), "/host:CPU")
    line = builder.line("python")
    for at in range(3):
        builder.event(line, builder.event_id("call"), 10 * at, 5, number=123456)
    data = builder.space.SerializeToString()
    # the second event's stat of six bytes says that it has more
    at = data.index(line.events[1].SerializeToString()) + len(line.events[1].SerializeToString())
    stat = line.events[1].stats[0].SerializeToString()
    begin = at - len(stat) - 1
    assert data[begin] == len(stat)
    broken = data[:begin] + bytes([len(stat) + 40]) + data[begin + 1 :]
    found = read(broken)
    assert found.lost[-1] == "1 events are damaged; the readable parts are shown"
    assert found.sections[0].tracks[0].malformed == 1


def test_a_cut_file_says_what_it_lacks_and_where_its_tracks_end() -> None:
    builder = plane(XSpace(), "/host:CPU", "whole")
    for at in range(50):
        builder.event(builder.plane.lines[0], 1, 20 + 10 * at, 5)
    last = builder.line("cut")
    for at in range(50):
        builder.event(last, 1, 10 * at, 5)
    data = builder.space.SerializeToString()
    found = read(data[: data.rindex(last.events[30].SerializeToString())])
    lost = {track.name: track.lost_bytes for track in found.sections[0].tracks}
    assert lost["whole"] == 0 and lost["cut"] > 20
    assert "is cut off" in found.lost[0]
    assert len(tracks(found.sections[0])["cut"]) == 30


def test_steps_and_host_are_passed_on() -> None:
    space = XSpace()
    plane(space, "/host:CPU", "python")
    found = read_timeline(trace_of(space), "h", "p", [StepSpan("1", 0, 5)], steps_are_inferred=True)
    assert (found.host, found.path, found.steps, found.steps_are_inferred) == ("h", "p", (StepSpan("1", 0, 5),), True)


def test_progress_covers_all_that_is_needed() -> None:
    space = XSpace()
    tpu_plane(space, 0, [(f"fusion.{at}", "loop fusion", 10 * at, 5) for at in range(100)])
    trace = trace_of(space)
    done: list[tuple[int, int]] = []
    read_timeline(trace, "h", "p", on_chunk=lambda size, count: done.append((size, count)))
    assert sum(size for size, _ in done) <= needed_bytes(trace)
    assert sum(count for _, count in done) == 100


@pytest.mark.parametrize(
    ("names", "text", "size"), [(1, 0, 18), (1 << 16, 0, 18), ((1 << 16) + 1, 0, 20), (1, 66_000, 18)]
)
def test_columns_take_18_bytes_an_event_where_names_are_few(names: int, text: int, size: int) -> None:
    space, count = XSpace(), max(names, 1000)
    built = plane(space, "/host:CPU")
    line = built.spans("python", ((f"call {at % names}", 10 * at, 10 * at + 5) for at in range(count)))
    built.event(line, built.event_id("call 0"), 10 * count, 5, what="x" * text)
    (track,) = section(space).tracks
    columns = (track.start_ps, track.lasting.column, track.key, track.place)
    assert sum(column.nbytes for column in columns) == size * len(track)
    assert names > 1 or all(_owner(column).nbytes == column.nbytes for column in columns)
    assert track.label(count - 1) == f"call {(count - 1) % names}"
    trace = trace_of(space)
    assert dict(own_stats(trace, track, count)) == {"what": "x" * text}


def _owner(
    column: np.ndarray[tuple[int, ...], np.dtype[np.generic]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """The array that a view keeps in memory."""
    base = column.base
    return column if not isinstance(base, np.ndarray) else base


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_section_is_read_before_any_other_begins(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    space = XSpace()
    for number in range(3):
        plane(space, f"/device:TPU:{number}", "XLA Ops", "Steps", "XLA Modules")
    began: list[int] = []
    original = read_module._read_line

    def noted(of: Line, *given: object) -> object:
        began.append(of.plane.index)
        return original(of, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(read_module, "_read_line", noted)
    found = read(space, threads)
    assert began[:3] == [0, 0, 0] and sorted(began) == sorted([0, 1, 2] * 3)
    assert [each.plane for each in found.sections] == [f"/device:TPU:{number}" for number in range(3)]
