"""What a profile's planes and lines become: sections, tracks, names, classes, lanes, rates and sentences."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, tpu_plane, trace_of
from tests.support.files.wire import field
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.formats.proto.xplane_pb2 import CoreDetails, XLine, XSpace
from tpuprof.parsers.formats.xspace.trace import HEAD, Line, Trace
from tpuprof.parsers.timeline.details import own_stats
from tpuprof.parsers.timeline.model import Section, Timeline, Track
from tpuprof.parsers.timeline.read import classes
from tpuprof.parsers.timeline.read import timeline as read_module
from tpuprof.parsers.timeline.read.classes import PlaneKeys
from tpuprof.parsers.timeline.read.timeline import needed_bytes, read_timeline


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


# --- tracks


def test_a_display_name_and_id_behind_the_events_are_found() -> None:
    builder = plane(XSpace(), "/host:CPU")
    line = builder.spans("short", (("call", 10 * at, 10 * at + 5) for at in range(3000)))
    body = line.SerializeToString() + XLine(display_name=b"shown", display_id=7).SerializeToString()
    assert len(body) > 2 * HEAD  # they do not stand in the bytes that a line's own name is read from
    del builder.plane.lines[:]
    raw = builder.plane.SerializeToString() + field(3, body)
    (track,) = read(field(1, raw)).sections[0].tracks
    assert (track.name, track.sort_id, len(track)) == ("shown", 7, 3000)


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
        assert 3 <= len(parts) <= 4 and all(part.unread for part in parts)  # the stream turns out to be empty
        for count, part in enumerate(parts, 1):
            assert [one.title for one in part.sections if one.is_read] == titles[:count]
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


IDS = st.integers(-3, 12) | st.sampled_from([10_000, 2**40])


@given(st.sets(IDS.filter(lambda number: number >= 0), min_size=1), st.lists(IDS), st.integers(0, 2), st.integers(0, 9))
def test_an_event_has_the_key_of_its_name_and_lost_names_have_one_each(
    known: set[int], ids: list[int], few: int, cut: int
) -> None:
    plane = PlaneBuilder.alone("/host:CPU")
    for number in known:
        plane.plane.event_metadata[number].id = number
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classes, "_FEW", few)
        keys = PlaneKeys(plane.read())
        found = [key for part in (ids[:cut], ids[cut:]) for key in keys.of(np.array(part, np.int64)).tolist()]
    named = [*(f"event {number}" for number in sorted(known)), *keys.lost_names()]
    assert [named[key] for key in found] == [f"event {number}" for number in ids]
    assert len({*named}) == len(named) == len(known | {*ids})


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


# --- sentences


def test_sentences_without_end_end() -> None:
    space = XSpace()
    plane(space, "/host:CPU", "python")
    space.warnings.extend(b"dropped %d events" % at for at in range(1000))
    space.errors.append(b"x" * 1_000_000)
    found = read(space)
    assert len(found.lost) == 51 and found.lost[-1] == "the profiler reports more than is listed here"
    assert [len(text) for text in found.warnings] == [1000]


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
