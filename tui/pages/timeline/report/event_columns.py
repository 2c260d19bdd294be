"""The events of a part of the timeline as columns: nothing of them is made one by one but for their names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.timeline.model import CLASSES
from tpuprof.parsers.timeline.part import TimelineContent, summaries, track_rows
from tpuprof.parsers.timeline.read.device_clock import durations_of
from tpuprof.tui.pages.timeline.report import fields
from tpuprof.tui.pages.timeline.report.read import Traces
from tpuprof.tui.report.declared import Section
from tpuprof.tui.report.fields import Field, Table, column
from tpuprof.tui.report.page import Listed, ReportRequest
from tpuprof.tui.report.units import COUNT, TEXT, TIME_PS, VERBATIM

Texts = NDArray[np.object_]

_UNITS = {"start_ps": TIME_PS, "duration_ps": TIME_PS, "device_duration_ps": TIME_PS, "depth": COUNT, "core": TEXT}
_KEYS = tuple(key for key in fields.EVENTS.json if key != "args")


@dataclass(frozen=True, slots=True, eq=False)
class EventColumns:
    """Events by their begin; each column has an entry an event.

    Attributes:
        name, section, core, plane, track, op_class: texts; the core of a section without one is empty.
        start_ps, duration_ps: int64[n], on the trace's clock.
        device_duration_ps: by the device's clock; None where that is not known.
        depth: int64[n], in how many events each nests.
    """

    name: Texts
    section: Texts
    core: Texts
    plane: Texts
    track: Texts
    start_ps: Int64s
    duration_ps: Int64s
    device_duration_ps: list[int | None]
    depth: Int64s
    op_class: Texts

    def __len__(self) -> int:
        return len(self.start_ps)


def _of_columns(key: str) -> Field[EventColumns]:
    of_rows, read = fields.EVENTS.by_key[key], column("op_class" if key == "class" else key)
    return Field(key, _UNITS.get(key, VERBATIM), read, of_rows.meaning, of_rows.null, of_rows.heading)


EVENTS: Table[EventColumns] = Table("events", tuple(map(_of_columns, _KEYS)), len, json=_KEYS)
"""The same quantities as of `fields.EVENTS`, without the arguments."""


def sections(content: TimelineContent, request: ReportRequest) -> list[Listed]:
    """The tables of the page: its tracks, or the events of an interval and what ran on each track in it."""
    part = content.part
    rows: Section[Any] = Section(fields.TRACKS, track_rows(part.timeline, request.most_rows))
    if content.selection is not None:
        rows = Section(EVENTS, event_columns(content))
    others = () if content.selection is None else (Section(fields.SUMMARY, summaries(part)),)
    return [rows, *others]


def event_columns(content: TimelineContent) -> EventColumns:
    """The events that the report shows."""
    part, selection = content.part, content.selection
    assert selection is not None, "the report is of events"
    of_track, index = selection.of_track[: content.shown], selection.index[: content.shown]
    begin, end = (np.zeros(content.shown, np.int64) for _ in range(2))
    texts = [np.full(content.shown, "", object) for _ in range(6)]
    name, section, core, plane, track_name, op_class = texts
    for number, place in enumerate(part.places):
        mine = np.flatnonzero(of_track == number)
        if not len(mine):
            continue
        of, track = part.timeline.sections[place[0]], part.timeline.track(place)
        events = index[mine]
        begin[mine], end[mine] = track.start_ps[events], track.end_ps[events]
        section[mine], core[mine], plane[mine], track_name[mine] = of.label, of.core, of.plane, track.name
        keys, which = np.unique(track.key[events], return_inverse=True)
        name[mine] = np.array([track.names.name(key) for key in keys.tolist()], object)[which]
        op_class[mine] = np.array([CLASSES[place] for place in track.names.classes[keys].tolist()], object)[which]
    depth = selection.lane[: content.shown].astype(np.int64)
    with Traces() as traces:
        device = durations_of(part.timeline, part.places, of_track, index, traces.at)
    return EventColumns(name, section, core, plane, track_name, begin, end - begin, device, depth, op_class)
