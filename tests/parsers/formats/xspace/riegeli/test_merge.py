"""Profiles in records are those that were written in one piece."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.formats.xspace.riegeli.test_records import profile
from tests.support.build import event_stats, trace_of
from tests.support.files.riegeli import BLOCK, Writer, chunked, written
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.proto.xplane_pb2 import XEventMetadata, XSpace
from tpuprof.parsers.formats.xspace.events import Events
from tpuprof.parsers.formats.xspace.riegeli.merge import riegeli_source
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.trace import Plane, Trace

Event = tuple[str, int | None, int, tuple[tuple[str, object], ...]]


def merged(data: bytes | bytearray) -> Trace:
    return Trace(riegeli_source(MemorySource(data, "x.xplane.riegeli")))


def of(*spaces: XSpace) -> Trace:
    return merged(written([space.SerializeToString() for space in spaces]))


def content(trace: Trace) -> dict[str, object]:
    """All that a profile says, without its ids: names, times and stats."""
    planes: dict[str, object] = {"": (trace.hostnames, trace.errors, trace.warnings)}
    for plane in trace.planes:
        lines = {}
        for line in plane.lines:
            events = line.events()
            rows = [_event(plane, events, index, line.header.timestamp_ns) for index in range(len(events))]
            assert line.id not in lines
            lines[line.id] = (line.name, rows)
        table = plane.event_metadata
        names = {table.name(row): _metadata(table.message(row), plane.stat_name) for row in range(len(table))}
        assert plane.name not in planes
        planes[plane.name] = (plane.id, lines, names, plane.stats)
    return planes


def _event(plane: Plane, events: Events, index: int, start: int) -> Event:
    stats = tuple((name, value) for name, value in event_stats(plane, events, index).items())
    begin = None if events.num_occurrences is not None else start * 1000 + int(events.offset_ps[index])
    name = plane.event_metadata.label(int(events.metadata_id[index]))
    return name, begin, int(events.duration_ps[index]), stats


def _metadata(message: XEventMetadata, stat_name: Callable[[int], str]) -> object:
    return message.display_name, [(stat_name(stat.metadata_id), stat.double_value) for stat in message.stats]


@pytest.mark.parametrize("most_events", [1, 7, 1000])
def test_planes_and_lines_in_parts_are_whole_again(most_events: int) -> None:
    space = XSpace.FromString(profile())
    space.errors.append(b"error")
    space.planes[0].stats.add(metadata_id=1, int64_value=5)
    writer = Writer()
    writer.simple([part.SerializeToString() for part in chunked(space, most_events)], "none")
    trace = merged(writer.data)
    assert content(trace) == content(trace_of(space))
    assert trace.problems == ()


def other_ids(space: XSpace, ids: dict[int, int], timestamps: int) -> XSpace:
    """The same content under other ids of metadata, with clocks that begin elsewhere."""
    out = XSpace.FromString(space.SerializeToString())
    for plane, old in zip(out.planes, space.planes, strict=True):
        plane.event_metadata.clear()
        plane.stat_metadata.clear()
        for key, entry in old.event_metadata.items():
            plane.event_metadata[ids[key]].CopyFrom(entry)
            plane.event_metadata[ids[key]].id = ids[key]
        for key, stat_entry in old.stat_metadata.items():
            plane.stat_metadata[ids[key]].CopyFrom(stat_entry)
        stats = [stat for entry in plane.event_metadata.values() for stat in entry.stats]
        stats += [stat for line in plane.lines for event in line.events for stat in event.stats]
        for stat in [*stats, *plane.stats]:
            stat.metadata_id = ids.get(stat.metadata_id, stat.metadata_id)
            if stat.WhichOneof("value") == "ref_value":
                stat.ref_value = ids.get(stat.ref_value, stat.ref_value)
        for line in plane.lines:
            line.timestamp_ns += timestamps
            for event in line.events:
                event.metadata_id = ids.get(event.metadata_id, event.metadata_id)
                event.offset_ps -= timestamps * 1000
    return out


def named(space: XSpace) -> XSpace:
    """With names of its own for each stat, so that ids and names say the same."""
    for plane in space.planes:
        for key, entry in plane.stat_metadata.items():
            entry.name = b"stat %d" % key
    return space


@given(st.permutations(range(5)), st.integers(-3, 3), st.booleans())
def test_ids_and_clocks_of_a_record_are_its_own(order: list[int], timestamps: int, is_free: bool) -> None:
    """Half of the events come under other ids; some that other names have, some that none has."""
    space = named(XSpace.FromString(profile(2, 30)))
    ids = {key: value + (10 if is_free else 0) for key, value in enumerate(order)}
    halves = [XSpace.FromString(space.SerializeToString()) for _ in range(2)]
    for half, keep in zip(halves, (slice(0, 15), slice(15, 30)), strict=True):
        for plane in half.planes:
            for line in plane.lines:
                events = list(line.events)[keep]
                del line.events[:]
                line.events.extend(events)
    assert content(of(halves[0], other_ids(halves[1], ids, timestamps))) == content(trace_of(space))


def test_new_names_get_ids_that_are_free() -> None:
    first, second = XSpace(), XSpace()
    for space, names in ((first, (b"a", b"b")), (second, (b"c", b"b", b"d"))):
        plane = space.planes.add(name=b"p")
        line = plane.lines.add(id=1, name=b"line")
        for key, name in enumerate(names, 1):
            plane.event_metadata[key].name = name
            plane.stat_metadata[key].name = b"stat of " + name
            event = line.events.add(metadata_id=key, offset_ps=key, duration_ps=1)
            event.stats.add(metadata_id=key, ref_value=key)
    (merged_plane,) = of(first, second).planes
    events = merged_plane.lines[0].events()
    labels = [merged_plane.event_metadata.label(int(key)) for key in events.metadata_id]
    assert labels == ["a", "b", "c", "b", "d"]
    stats = [event_stats(merged_plane, events, index) for index in range(5)]
    assert stats == [{f"stat of {name}": f"stat of {name}"} for name in labels]


def test_what_an_entry_lacks_comes_from_later_records() -> None:
    first, second = XSpace(), XSpace()
    for space in (first, second):
        plane = space.planes.add(name=b"p")
        plane.event_metadata[4].name = b"op"
        plane.stats.add(metadata_id=1, int64_value=len(space.planes[0].lines))
    second.planes[0].event_metadata[4].display_name = b"short"
    second.planes[0].event_metadata[4].stats.add(metadata_id=2, int64_value=9)
    second.planes[0].stats[0].int64_value = 8
    (merged_plane,) = of(first, second, first).planes
    message = merged_plane.event_metadata.message(0)
    assert (message.display_name, message.stats[0].int64_value) == (b"short", 9)
    assert merged_plane.stats == {"stat 1": 0}  # the last record's


def test_aggregated_events_have_no_place_to_move() -> None:
    spaces = [XSpace(), XSpace()]
    for number, space in enumerate(spaces):
        line = space.planes.add(name=b"p").lines.add(id=1, timestamp_ns=5 + number)
        line.events.add(metadata_id=1, num_occurrences=7, duration_ps=1)
        line.events.add(metadata_id=1, offset_ps=3, duration_ps=1)
    events = of(*spaces).planes[0].lines[0].events()
    assert events.num_occurrences is not None
    assert events.num_occurrences.tolist() == [7, 0, 7, 0]
    assert events.offset_ps.tolist() == [0, 3, 0, 1003]


def test_lines_without_events_say_nothing_of_the_clock() -> None:
    spaces = [XSpace(), XSpace()]
    spaces[0].planes.add(name=b"p").lines.add(id=1, name=b"line")
    spaces[1].planes.add(name=b"p").lines.add(id=1, name=b"line", timestamp_ns=1 << 60).events.add(offset_ps=2)
    (line,) = of(*spaces).planes[0].lines
    assert (line.header.timestamp_ns, line.events().offset_ps.tolist()) == (1 << 60, [2])


# --- damage


def test_a_record_that_breaks_off_leaves_the_others_alone() -> None:
    trace = merged(written([profile(1)[:-3], profile(2)]))
    assert [plane.name for plane in trace.planes] == ["/device:TPU:0", "/device:TPU:1"]
    assert len(trace.planes[0].lines[0].events()) == 80
    (problem,) = trace.problems
    assert problem.sentence == "x.xplane.riegeli: a record is damaged."


def test_parts_that_do_not_fit_stay_parts() -> None:
    """A clock that would shift events past int64, and metadata that are none."""
    spaces = [XSpace(), XSpace()]
    for number, space in enumerate(spaces):
        line = space.planes.add(name=b"p").lines.add(id=1, timestamp_ns=number << 62)
        line.events.add(metadata_id=1, offset_ps=1)
    trace = of(*spaces)
    assert len(trace.planes) == 2
    assert "a record is damaged" in str(trace.problems)


@pytest.mark.parametrize("data", [bytes(Writer().data), written([b""]), bytes(BLOCK), b"\x83\xaf\x70\xd1"])
def test_a_file_without_records_is_an_error(data: bytes) -> None:
    with pytest.raises(ProfileError) as caught:
        merged(data)
    assert caught.value.code == "corrupt"
    assert caught.value.sentence.startswith("x.xplane.riegeli is a Riegeli file without a profile: ")


def test_records_of_something_else_are_no_profile() -> None:
    with pytest.raises(ProfileError) as caught:
        merged(written([b"text", b"more of it"]))
    assert caught.value.code == "corrupt"


def test_files_are_known_by_their_first_bytes_or_their_name(tmp_path: Path) -> None:
    data = bytearray(written([profile(1), profile(1)]))
    (tmp_path / "any").write_bytes(data)
    assert len(Trace.open(str(tmp_path / "any")).planes) == 1
    data[:8] = bytes(8)
    (tmp_path / "host.xplane.riegeli").write_bytes(data)
    trace = Trace.open(str(tmp_path / "host.xplane.riegeli"))
    assert len(trace.planes[0].lines[0].events()) == 80
    trace.close()
