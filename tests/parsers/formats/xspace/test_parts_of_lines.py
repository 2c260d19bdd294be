"""The events of a line that start in some intervals, with the bytes of the others left unread."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.build import PlaneBuilder
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.xspace.parts_of_lines import keep_started
from tpuprof.parsers.formats.xspace.trace import Plane

NS = 1000


def _plane(starts: list[int]) -> Plane:
    """A line with a text of its own on each event, on a clock that begins at 5 ns."""
    made = PlaneBuilder.alone("/device:TPU:0")
    line = made.line("XLA Ops", timestamp_ns=5)
    for start in starts:
        made.event(line, made.event_id("op"), start, 10, text=f"at {start}")
    line.display_name = b"shown"
    return made.read()


def _texts(plane: Plane, *spans: tuple[int, int]) -> list[str | None]:
    keep_started(plane, [(5 * NS + start, 5 * NS + end) for start, end in spans])
    events = plane.lines[0].events(("text",))
    return plane.texts(events.stats["text"])


def test_events_that_start_in_an_interval_stay() -> None:
    assert _texts(_plane([0, 10, 20, 30, 40]), (10, 40)) == ["at 10", "at 20", "at 30"]


def test_intervals_may_lie_apart() -> None:
    plane = _plane([0, 10, 20, 30, 40])
    assert _texts(plane, (0, 1), (30, 35), (36, 99)) == ["at 0", "at 30", "at 40"]
    assert (plane.lines[0].name, plane.lines[0].header.display_name) == ("XLA Ops", "shown")
    assert plane.lines[0].tail(plane.lines[0].end).display_name == "shown"


def test_blocks_are_those_events_too() -> None:
    plane = _plane([0, 10, 20, 30])
    keep_started(plane, [(5 * NS, 5 * NS + 5), (5 * NS + 25, 6 * NS)])
    starts = [room.columns.offset_ps[: room.count].copy() for room in plane.lines[0].blocks()]
    assert np.concatenate(starts).tolist() == [0, 30]


@pytest.mark.parametrize("spans", [[], [(6 * NS, 7 * NS)]])
def test_no_event_may_stay(spans: list[tuple[int, int]]) -> None:
    plane = _plane([0, 10])
    keep_started(plane, spans)
    assert len(plane.lines[0].events()) == 0 and plane.lines[0].size == 0


def test_sums_of_events_have_no_place_in_time() -> None:
    made = PlaneBuilder.alone("/device:TPU:0")
    made.line("sums").events.add(metadata_id=made.event_id("op"), num_occurrences=4, duration_ps=10)
    plane = made.read()
    keep_started(plane, [(-NS, NS)])
    assert len(plane.lines[0].events()) == 0


def test_a_line_out_of_order_is_refused() -> None:
    with pytest.raises(ProfileError, match="XLA Ops are not in the order of time"):
        _texts(_plane([10, 0]), (0, 5))


def test_an_event_that_others_begin_in_after_the_interval_is_left_out() -> None:
    made = PlaneBuilder.alone("/device:TPU:0")
    made.spans("XLA Ops", [("while", 0, 100), ("inside", 10, 20), ("behind", 60, 70), ("alone", 150, 190)])
    plane = made.read()
    keep_started(plane, [(0, 50), (140, 160)])
    line = plane.lines[0]
    names = [plane.event_metadata.label(number) for number in line.events().metadata_id.tolist()]
    assert names == ["inside", "alone"], "what ends beyond an interval stays as long as it holds nothing there"
