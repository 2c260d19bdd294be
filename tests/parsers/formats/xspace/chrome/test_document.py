"""The events of a trace come one by one, however it is written and wherever its bytes are parted, cut or damaged."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest

from tpuprof.parsers.formats.xspace.chrome import document
from tpuprof.parsers.formats.xspace.chrome.document import Broken, Document, begins_like_trace

EVENTS = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": 'a "b" {c} ],} \\ \n'}},
    {"ph": "X", "ts": "1.5", "args": {"list": [1, {"x": []}], "unicode": "é€😀"}},
    {},
    {"ph": "X", "ts": 7, "name": "},{"},
]
WAYS = {
    "compact": json.dumps({"metadata": {"a": [1]}, "traceEvents": EVENTS, "z": None}, separators=(",", ":")),
    "python": json.dumps({"traceEvents": EVENTS}),
    "indented": json.dumps({"traceEvents": EVENTS, "more": {"traceEvents": []}}, indent=2),
    "lines": '{"traceEvents":[\n' + ",\n".join(map(json.dumps, EVENTS)) + "\n]}\n",
    "list": json.dumps(EVENTS, ensure_ascii=False),
    "open list": "[\n" + ",\n".join(map(json.dumps, EVENTS)) + ",\n",
    "mark": "\ufeff" + json.dumps({"displayTimeUnit": "ns", "traceEvents": EVENTS}, ensure_ascii=False),
}


def read(data: bytes, size: int = 1 << 20) -> tuple[list[object], str]:
    """The events, from pieces of so many bytes, and what is said of the rest."""
    text = Document(data[at : at + size] for at in range(0, len(data), size))
    return list(text.events()), text.note


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_however_it_is_written(way: str, size: int) -> None:
    events, note = read(WAYS[way].encode(), size)
    assert events == EVENTS
    assert note == ("its list of events ends early, after 4 events" if way == "open list" else "")
    assert begins_like_trace(WAYS[way].encode())


@pytest.mark.parametrize("way", ["compact", "python", "list"])
def test_a_cut_anywhere_leaves_the_events_before_it(way: str) -> None:
    data = WAYS[way].encode()
    counts = []
    for end in range(len(data)):
        try:
            events, note = read(data[:end], 50)
        except Broken:
            events, note = [], "none"
        assert events == EVENTS[: len(events)]
        counts.append(len(events))
        if note not in ("", "none"):
            assert note == f"its list of events ends early, after {len(events)} events"
    assert counts == sorted(counts) and set(counts) == {0, 1, 2, 3, 4}


def test_numbers_keep_their_digits() -> None:
    (event,), _ = read(b'[{"ts": 1760000000123456.123456, "dur": 0.000001, "id": 18446744073709551615}]')
    assert event == {"ts": "1760000000123456.123456", "dur": "0.000001", "id": 18446744073709551615}


@pytest.mark.parametrize(
    "text",
    ["{}", "[1, 2", "null", '{"a": 1}', '{"traceEvents": {}}', '{"traceEvents": 5}', "{,,}", '{"a" 1}', "[}", "{]"],
)
def test_what_is_no_trace(text: str) -> None:
    try:
        events, _ = read(text.encode())
    except Broken:
        events = []
    assert not any(isinstance(event, dict) for event in events)


@pytest.mark.parametrize("first", [b"\x0a\x7b\x08\x01", b"\x0a\x5b\x12\x05", b"\x1f\x8b", b"", b"{x", b"[1", b"\x00"])
def test_other_files_do_not_begin_so(first: bytes) -> None:
    assert not begins_like_trace(first)


def test_a_value_without_an_end_is_not_collected_for_ever() -> None:
    asked = 0

    def endless() -> Iterator[bytes]:
        nonlocal asked
        yield b'[{"ph": "X"}, {"name": "'
        for _ in range(1000):
            asked += 1
            yield b"x" * (1 << 18)

    text = Document(endless())
    tracemalloc.start()
    events = list(text.events())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert events == [{"ph": "X"}]
    assert text.note == "its list of events is damaged after 1 events"
    assert asked < 40 and peak < 16 * document.MOST_VALUE
