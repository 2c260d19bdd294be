"""The hosts of a run on one timeline: which of them are read, which are to be, and which are given up again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from tpuprof.parsers.timeline.hosts.joined import HostRead, first_section, joined
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.parsers.timeline.read.flows import Flow, Flows

How = Literal["timeline-host", "timeline-brief"]
"""The page that reads a host: all of it, or its first section alone, which stands for a folded host."""

ROOM = 768 << 20
"""Bytes of events that are kept; of hosts out of sight those seen longest ago are given up beyond that."""

_EVENT = 18  # bytes that an event takes, see `parsers.timeline.model.Track`


class Hosts:
    """What is read of the hosts of a run."""

    def __init__(self, reads: Sequence[HostRead], room: int = ROOM) -> None:
        self.reads = list(reads)
        self.flows: dict[int, Flows] = {}
        self._room = room
        self._seen: dict[int, None] = {}  # those seen last at the end

    @property
    def timeline(self) -> Timeline:
        return joined(self.reads)

    @property
    def read(self) -> int:
        return sum(each.timeline is not None for each in self.reads)

    def take(self, number: int, read: HostRead) -> None:
        self.reads[number] = read
        self.flows.pop(number, None)
        self._seen.pop(number, None)
        self._seen[number] = None

    def wanted(self, in_sight: Sequence[int], folded: Collection[int]) -> tuple[How, str] | None:
        """The next host to read, and how; None where all that is in sight is read.

        Args:
            in_sight: hosts that have a row on the screen. folded: those that have one row each.
        """
        for number in in_sight:
            self._seen.pop(number, None)
            self._seen[number] = None
        for number in in_sight:
            each = self.reads[number]
            if each.problem:
                continue
            if number not in folded and not each.is_whole:
                return "timeline-host", each.host
            if each.timeline is None:
                return "timeline-brief", each.host
        return None

    def trim(self, in_sight: Collection[int]) -> bool:
        """Gives up hosts that are out of sight where there is too much; whether there was."""
        size = sum(map(_size, self.reads))
        is_less = False
        for number in [number for number in self._seen if number not in in_sight]:
            each = self.reads[number]
            if size <= self._room or each.timeline is None:
                continue
            rest = first_section(each.timeline) if each.is_whole and len(each.timeline.sections) > 1 else None
            self.reads[number] = each._replace(timeline=rest, is_whole=False)
            self.flows.pop(number, None)
            size += _size(self.reads[number]) - _size(each)
            is_less = True
        return is_less

    def flows_of(self, timeline: Timeline, event: tuple[int, int, int], most: int) -> tuple[Flow, ...]:
        """What leads to an event of the joined timeline, or from it."""
        for number, part in enumerate(timeline.hosts):
            if part.first <= event[0] < part.last and number in self.flows:
                found = self.flows[number].of(event[0] - part.first, event[1], event[2], most)
                return tuple(flow._replace(section=flow.section + part.first) for flow in found)
        return ()


def _size(read: HostRead) -> int:
    """Bytes of a host's events."""
    return 0 if read.timeline is None else _EVENT * sum(len(track) for *_, track in read.timeline.tracks())


def section_numbers(before: Timeline, after: Timeline) -> dict[int, int]:
    """The numbers that sections have after hosts were read or given up, by those that they had; without those gone."""
    if not after.hosts:
        return {number: number for number in range(min(len(before.sections), len(after.sections)))}
    out: dict[int, int] = {}
    for old, new in zip(before.hosts, after.hosts, strict=True):
        kept = min(old.last - old.first, new.last - new.first)
        out |= {old.first + place: new.first + place for place in range(kept)}
    return out
