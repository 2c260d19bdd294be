"""The begin of a large first section is there before the rest, as it will be in the whole."""

from __future__ import annotations

import pytest

from tests.support.build import trace_of
from tests.support.made.timelines import large_cores, read_in_parts
from tpuprof.parsers.timeline.model import Track
from tpuprof.parsers.timeline.read import timeline as read_module
from tpuprof.parsers.timeline.read.timeline import read_timeline


def rows(track: Track) -> list[tuple[int, int, int, str]]:
    lanes = [track.lane_of(at) for at in range(len(track))]
    return sorted(
        (int(track.start_ps[at]), lanes[at], int(track.end_ps[at]), track.label(at)) for at in range(len(track))
    )


def test_each_line_begins_as_in_the_whole() -> None:
    first, *others, whole = read_in_parts(large_cores())
    assert (first.unread, len(first.sections)) == (3, 3) and [part.unread for part in others] == [2, 1]
    begun, core = first.sections[0], whole.sections[0]
    assert (begun.title, begun.plane, begun.is_read) == (core.title, core.plane, False)
    assert [(track.name, track.sort_id) for track in begun.tracks] == [
        (track.name, track.sort_id) for track in core.tracks
    ]
    for part, track in zip(begun.tracks, core.tracks, strict=True):
        if track.is_derived:
            continue
        assert 0 < len(part) < len(track) or len(track) < 100, "short lines are there whole"
        assert rows(part) == rows(track)[: len(part)]
    assert [rate.name for rate in begun.rates] == [rate.name for rate in core.rates]
    assert not any(section.tracks for section in first.sections[1:])


def test_a_small_section_is_read_once() -> None:
    parts = read_in_parts(large_cores(), 1 << 20)
    assert [part.unread for part in parts] == [2, 1, 0]


def test_without_anyone_to_show_it_to_it_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[object] = []
    original = read_module._read_line

    def noted(*given: object) -> object:
        began.append(given[1])
        return original(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(read_module, "_read_line", noted)
    read_timeline(trace_of(large_cores(1)), "host0", "p", first_bytes=1000)
    read_timeline(trace_of(large_cores(1)), "host0", "p", on_part=lambda _: None, first_bytes=0)
    assert began == 2 * [0, 1, 0]
