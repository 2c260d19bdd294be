"""What an event of a Chrome trace says besides its place: its stats as arguments, and the ends of its arrows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.formats.xspace.chrome.threads import CATEGORIES
from tpuprof.parsers.formats.xspace.metadata import KIND_DOUBLE, KIND_INT64, KIND_REF, KIND_STR, KIND_UINT64
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.timeline.read.stat_chunks import StatChunk

LONGEST_TEXT = 10_000  # characters after which a text is cut; XProf cuts an op's long name there, and lets others grow
PRODUCER, CONSUMER, FLOW, IS_ASYNC, STEP_NAME = ("_pt", "_p"), ("_ct", "_c"), "flow", "_a", "step_name"
_CORRELATION = "correlation_id"
_HIDDEN = frozenset({*PRODUCER, *CONSUMER, "_r", "flops", "program_id", "symbol_id"})
_EXACT = 1 << 53
_FLOW_BITS, _CATEGORY_BITS = 56, 6
_GPU_LAUNCH = 9
_TEXTS_KEPT = 1 << 14


def json_text(value: str) -> str:
    """A JSON string in ASCII: no byte of it can end the string, whatever the text. Long texts are cut."""
    return json.dumps(value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}...<truncated>")


def json_number(value: float) -> str:
    """An integer, or a double; as text where JSON or a reader's double has no room for it."""
    if isinstance(value, int):
        return str(value) if -_EXACT <= value <= _EXACT else f'"{value}"'
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


class PerfettoFlow(NamedTuple):
    """One end of an arrow, or an asynchronous event.

    Attributes:
        id: the same at both ends, no larger than a double holds.
        category: of XProf's contexts, such as ``tpu_launch``; may be empty.
        begins, ends: which end it is, or both.
    """

    id: int
    category: str
    begins: bool
    ends: bool


def stat_flow(value: int) -> PerfettoFlow:
    """The flow that a stat `flow` packs: two bits of direction, 56 of id, six of category."""
    value &= (1 << 64) - 1
    number = (value >> 2) & ((1 << _FLOW_BITS) - 1)
    number = number if number < _EXACT else mixed_id(-1, number)
    return PerfettoFlow(number, _category(value >> (64 - _CATEGORY_BITS)), bool(value & 2), bool(value & 1))


def _category(kind: int) -> str:
    return CATEGORIES[kind] if 0 <= kind < len(CATEGORIES) else ""


def mixed_id(kind: int, number: int) -> int:
    """A number below 2^53 for the type of a link, or a host's number, and an id; as good as never the same for two."""
    mask = (1 << 64) - 1
    mixed = (number ^ (kind * 0x9E3779B97F4A7C15)) & mask
    for multiplier in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        mixed = ((mixed ^ (mixed >> 30)) * multiplier) & mask
    return (mixed ^ (mixed >> 31)) >> 11


@dataclass(slots=True)
class ChunkArgs:
    """The arguments of a chunk's events.

    Attributes:
        texts: of each event: ``,"name":value`` one after the other.
        flows: by place in the chunk.
        is_async: places of the asynchronous events.
        names: by place: names that take the place of the event's own.
    """

    texts: list[str]
    flows: dict[int, PerfettoFlow] = field(default_factory=dict)
    is_async: set[int] = field(default_factory=set)
    names: dict[int, str] = field(default_factory=dict)


class PlaneArgs:
    """Renders the stats of one plane's events and event metadata."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._is_device = plane.name.startswith("/device:")
        self._labels: dict[int, str] = {}
        self._references: dict[int, str | None] = {}
        self._texts: dict[bytes, str] = {}

    def of_metadata(self, row: int) -> tuple[str, str | None, bool]:
        """Arguments that all events of a metadata row share, the name that replaces it, whether they are async."""
        try:
            message = self._plane.event_metadata.message(row)
        except DecodeError:
            return "", None, False
        texts, step_name, is_async = [], None, False
        for stat in message.stats:
            name, value = self._plane.stat_name(stat.metadata_id), self._plane.stat_value(stat)
            if name == STEP_NAME and isinstance(value, str) and value:
                step_name = value
            is_async |= name == IS_ASYNC
            if name not in (*_HIDDEN, IS_ASYNC, FLOW) and value is not None and not isinstance(value, bytes):
                shown = json_text(value) if isinstance(value, str) else json_number(value)
                texts.append(f",{json_text(name)}:{shown}")
        return "".join(texts), step_name, is_async

    def of_events(self, chunk: StatChunk) -> ChunkArgs:
        count = len(chunk.events)
        out = ChunkArgs([""] * count)
        links: dict[str, dict[int, int]] = {}
        for index, number in enumerate(chunk.ids.tolist()):
            name = self._plane.stat_name(number)
            if name in (*PRODUCER, *CONSUMER, FLOW, IS_ASYNC, _CORRELATION):
                links[name] = _integers(chunk, index)
            if name in _HIDDEN or name in (FLOW, IS_ASYNC):
                continue
            label = self._labels.setdefault(number, f",{json_text(name)}:")
            texts = out.texts
            for place, shown in self._shown(chunk, index):
                texts[place] += label + shown
                if name == STEP_NAME:
                    out.names[place] = shown
        out.is_async |= links.get(IS_ASYNC, {}).keys()
        self._add_flows(out, links)
        return out

    def _shown(self, chunk: StatChunk, index: int) -> Iterator[tuple[int, str]]:
        kind = chunk.stats.kind[index]
        for code in np.unique(kind).tolist():
            rows = np.flatnonzero(kind == code)
            places, raw = rows.tolist(), chunk.stats.value[index][rows]
            if code in (KIND_INT64, KIND_UINT64, KIND_DOUBLE):
                values = raw.view({KIND_UINT64: np.uint64, KIND_DOUBLE: np.float64}.get(code, np.int64)).tolist()
                is_plain = code != KIND_DOUBLE and all(-_EXACT <= value <= _EXACT for value in values)
                yield from zip(places, map(str if is_plain else json_number, values), strict=True)
            elif code == KIND_REF:
                for place, reference in zip(places, raw.tolist(), strict=True):
                    shown = self._reference(reference)
                    if shown is not None:
                        yield place, shown
            elif code == KIND_STR:
                lengths = chunk.stats.length[index][rows].tolist()
                for place, begin, length in zip(places, raw.tolist(), lengths, strict=True):
                    yield place, self._text(chunk.body[begin : begin + length])

    def _reference(self, number: int) -> str | None:
        if number not in self._references:
            row = self._plane.stat_metadata.row(number)
            self._references[number] = None if row is None else json_text(self._plane.stat_metadata.name(row))
        return self._references[number]

    def _text(self, raw: bytes) -> str:
        found = self._texts.get(raw)
        if found is None:
            found = json_text(text(raw))
            if len(raw) < LONGEST_TEXT and len(self._texts) < _TEXTS_KEPT:
                self._texts[raw] = found
        return found

    def _add_flows(self, out: ChunkArgs, links: dict[str, dict[int, int]]) -> None:
        """Finds the flows of a chunk's events. Of several that an event has, the last in XProf's order counts."""
        for place, packed in links.get(FLOW, {}).items():
            out.flows[place] = stat_flow(packed)
        for place, number in links.get(_CORRELATION, {}).items():
            begins = not self._is_device
            out.flows[place] = PerfettoFlow(mixed_id(-2, number), _category(_GPU_LAUNCH), begins, not begins)
        for (kind_name, id_name), begins in ((PRODUCER, True), (CONSUMER, False)):
            kinds = links.get(kind_name, {})
            for place, number in links.get(id_name, {}).items():
                if place in kinds:
                    kind = kinds[place]
                    out.flows[place] = PerfettoFlow(mixed_id(kind, number), _category(kind), begins, not begins)


def _integers(chunk: StatChunk, index: int) -> dict[int, int]:
    kind = chunk.stats.kind[index]
    places = np.flatnonzero((kind == KIND_INT64) | (kind == KIND_UINT64))
    values: Sequence[int] = chunk.stats.value[index][places].tolist()
    return dict(zip(places.tolist(), values, strict=True))
