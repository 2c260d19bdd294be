"""Profiles that are damaged, hostile or of absurd size, through everything that reads and draws a timeline."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pytest
from textual.geometry import Size

from tests.support.build import PlaneBuilder, StatInput
from tests.support.made.timelines import timeline_keys
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.core.ops import FAR_PS, MOST_PS
from tpuprof.parsers.timeline.details import EventStats, metadata_stats, own_stats
from tpuprof.parsers.timeline.measure import mean_use, measure
from tpuprof.parsers.timeline.model import StepSpan, Timeline, Track
from tpuprof.parsers.timeline.read.flows import Flow, read_flows
from tpuprof.parsers.timeline.read.timeline import read_timeline
from tpuprof.parsers.timeline.search import find
from tpuprof.parsers.timeline.windows import prepare
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs, plain
from tpuprof.tui.pages.timeline.draw.event_details import event_lines
from tpuprof.tui.pages.timeline.draw.frame import TimelinePage
from tpuprof.tui.pages.timeline.popup import measured_list
from tpuprof.tui.pages.timeline.state import TimelineView
from tpuprof.tui.terminal.theme import AnyLine, palette
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.lists.popup import ListPopup

HUGE = 2**63 - 1
LEAST = -(2**63)
ALL_GLYPHS = (BLOCK, PLAIN, ASCII)

NASTY = (
    "\x1b[31mred\x1b]0;title\x07",
    "a\r\nb\tc\x00d\x7f\x9be",
    "\u202egnp.exe\u2066\u200f",
    "zero\u200bwidth\u200d\ufeff\u00ad",
    "e\u0301\u0301\u0301 combining",
    "שלום العربية",
    "日本語の名前 한국어",
    "👩‍👩‍👧 \U000e0041",
    "\ud7ff\ufffd\ufffe",
    "   ",
    "",
    "ｆｕｌｌ\u2028\u2029",
)
"""Names that would ruin a screen if they got there as they are."""


def load(space: XSpace | bytes) -> tuple[Timeline, Trace]:
    trace = Trace.from_bytes(space if isinstance(space, bytes) else space.SerializeToString())
    return read_timeline(trace, NASTY[0], "host0.xplane.pb", (StepSpan(NASTY[2], 0, 100),)), trace


@cache
def takes_one_cell(character: str) -> bool:
    """Whether a terminal shows a character in one cell, in its place, and obeys nothing in it."""
    return (
        character.isprintable()
        and unicodedata.east_asian_width(character) not in "WF"
        and unicodedata.category(character) not in ("Mn", "Me", "Cf")
        and unicodedata.bidirectional(character) not in ("R", "AL")
    )


def check(lines: Sequence[AnyLine], width: int, glyphs: Glyphs) -> None:
    """Every line has its exact width in characters that take one cell each, and nothing that a terminal obeys."""
    for line in lines:
        text = "".join(span[0] for span in line)
        assert len(text) == width, text
        if text.isascii():
            assert text.isprintable(), text
            continue
        assert glyphs.name == "block", text
        for character in set(text):
            assert takes_one_cell(character), repr(character)


def press_all(found: Timeline, trace: Trace, seed: int = 0, times: int = 25) -> TimelinePage:
    """Presses every key, then some at random, and draws."""
    rng = random.Random(seed)
    prepare(found)
    page = TimelinePage(found)
    page.view.flows = read_flows(trace, found)
    does = timeline_keys(page.view)
    for key in (*does, *rng.choices(list(does), k=times)):
        does[key]()
        width, height, glyphs = rng.randint(60, 90), rng.randint(15, 20), rng.choice(ALL_GLYPHS)
        lines = page.lines(Pen(width, glyphs), height)
        assert len(lines) == height
        check(lines, width, glyphs)
        check([page.status_line(Pen(width, glyphs))], width, glyphs)
        view = page.view
        assert view.window.span_ps >= view.window.cells and 0 <= view.rows.cursor < max(1, len(view.rows.all))
        assert view.event is None or view.event[2] < len(found.sections[view.event[0]].tracks[view.event[1]])
    return page


def draw_all(found: Timeline, trace: Trace) -> None:
    """Draws the details of some events of each track, and what ran in all."""
    flows = read_flows(trace, found)
    for at, section in enumerate(found.sections):
        for number, track in enumerate(section.tracks[:6]):
            for index in {0, len(track) // 2, len(track) - 1}:
                event = at, number, index
                stats = EventStats(own_stats(trace, track, index), metadata_stats(trace, track, index))
                for glyphs, width in zip(ALL_GLYPHS, (100, 60, 30), strict=True):
                    check(event_lines(found, event, stats, flows.of(*event), None, Pen(width, glyphs)), width, glyphs)
    for popup in popups(found):
        for key in ("", "s", "s", "s", "s", "S", "t", "S", "t"):
            popup.press(key, None)
            for width in (60, 80, 200):
                place = popup.place(Size(width, 30))
                check(popup.draw(place.width, place.height), place.width, popup.look.glyphs)
        popup.press("enter", None)


def popups(found: Timeline) -> Iterator[ListPopup]:
    """What ran in the whole trace, with each set of characters."""
    span = found.first_ps, found.last_ps
    measured = measure(found, *span)
    view = TimelineView(found)
    for glyphs in ALL_GLYPHS:
        shown = measured_list(found, measured, mean_use(found, *span), view.select)
        yield ListPopup(ScreenLook(palette("mono", False), glyphs), "What ran", shown)


def one_line(*spans: tuple[int, int], line: str = "python", plane: str = "/host:CPU", timestamp_ns: int = 0) -> XSpace:
    """A line with events of some offsets and durations."""
    builder = PlaneBuilder.alone(plane)
    events = builder.line(line, timestamp_ns)
    for at, (offset, duration) in enumerate(spans):
        builder.event(events, builder.event_id(f"a{at % 5}"), offset, duration)
    return builder.space


def sound(track: Track) -> None:
    """No event ends before it begins, and none overlaps the next one of its lane."""
    assert (track.lasting[:] >= 0).all()
    assert track.lanes[0] == 0 and track.lanes[-1] == len(track) and (np.diff(track.lanes) > 0).all()
    for number in range(track.depth):
        lane = track.lane(number)
        assert (track.start_ps[lane][1:] >= track.end_ps[lane][:-1]).all()
        assert (np.diff(track.start_ps[lane]) > 0).all()


# --- times


@pytest.mark.parametrize("line", ["python", "XLA Ops", "Steps"])
@pytest.mark.parametrize(
    "spans",
    [
        [(0, 0)],
        [(5, 0), (5, 0), (5, 0)],
        [(0, -5), (10, 5)],
        [(-50, 20), (0, 10)],
        [(0, HUGE), (5, HUGE)],
        [(HUGE, HUGE), (LEAST, LEAST), (0, 1)],
        [(LEAST, HUGE), (HUGE, 1)],
        [(0, 100), (50, 100), (50, 10), (60, 100)],
        [(at, 1000) for at in range(100)],
        [(7, 10)] * 70,
        [(at, 1000 - 2 * at) for at in range(500)],
        [(2**53 + at, 1) for at in range(50)],
    ],
)
def test_odd_times_are_drawn(spans: list[tuple[int, int]], line: str) -> None:
    plane = "/host:CPU" if line == "python" else "/device:TPU:0"
    found, trace = load(one_line(*spans, line=line, plane=plane))
    (track,) = [one for one in found.sections[0].tracks if not one.is_derived]
    assert len(track) == len(spans)
    sound(track)
    assert -FAR_PS <= found.first_ps <= found.last_ps <= FAR_PS + MOST_PS
    press_all(found, trace)
    draw_all(found, trace)


# --- names


@pytest.mark.parametrize("plane", ["/host:CPU", "/device:TPU:0", "/device:GPU:0", "/device:CUSTOM:"])
def test_names_of_any_kind_never_reach_the_screen_as_they_are(plane: str) -> None:
    space = XSpace()
    for number, name in enumerate(NASTY):
        builder = PlaneBuilder(space, plane + name, number)
        builder.plane.stats.add(metadata_id=builder.stat_id(name), str_value=name.encode("utf-8", "replace"))
        ops = builder.line("XLA Ops" if number % 2 else name)
        op = builder.event_id(
            f"%{name} = {name}",
            name,
            hlo_category=name or "x",
            tf_op=f"jit({name})/{name}/{name}:{name}",
            source=name,
            flops=3,
        )
        stats: dict[str, StatInput] = {name or "x": name, "_ps": 5, "bytes": 7, "float": 0.5, "raw": name.encode()}
        builder.event(ops, op, 0, 50, **stats)
        builder.event(ops, builder.event_id(name + "1"), 60, 40)
        counters = builder.line("_counters_")
        for at in range(5):
            builder.event(counters, builder.event_id(f"power({name})"), 10 * at, 0, **{name or "x": float(at)})
    space.errors.extend(f"failed: {name}".encode() for name in NASTY)
    found, trace = load(space)
    press_all(found, trace)
    draw_all(found, trace)


def test_names_of_a_megabyte_are_cut() -> None:
    space = XSpace()
    for name in ("x" * 1_000_000, "\x1b" * 500_000, "語" * 300_000):
        builder = PlaneBuilder(space, f"/device:TPU:{len(space.planes)}", 1)
        line = builder.line("XLA Ops")
        op = builder.event_id(f"%{name}", name, tf_op=f"a/{name}/b:c", source=name, hlo_category=name)
        stats: dict[str, StatInput] = {"text": name, name: 5}
        builder.event(line, op, 0, 100, **stats)
        other = PlaneBuilder(space, f"/device:CUSTOM:{name}", 1)
        other.event(other.line(name), other.event_id(name), 0, 50)
    space.warnings.append(b"dropped " + b"y" * 1_000_000)
    found, trace = load(space)
    assert max(map(len, found.lost)) <= 1000
    press_all(found, trace, times=0)
    draw_all(found, trace)


def test_details_have_an_end() -> None:
    space = one_line((0, 10), (20, 10))
    for number in range(3000):
        space.planes[0].stat_metadata[number + 1].name = b"s" * (number % 300)
        space.planes[0].lines[0].events[0].stats.add(metadata_id=number + 1, int64_value=number)
    found, trace = load(space)
    flows = [Flow("out", "flow", 0, 0, 1)] * 5000
    stats = EventStats(own_stats(trace, found.sections[0].tracks[0], 0), ())
    assert len(stats.of_event) == 3000
    lines = event_lines(found, (0, 0, 0), stats, flows, None, Pen(80, ASCII))
    check(lines, 80, ASCII)
    assert len(lines) < 1000
    texts = [plain(line).rstrip() for line in lines]
    assert "and 4,960 more" in texts and "and 2,600 more" in texts
    longest = next(line for line in texts if line.startswith("s" * 10) and line.endswith("299"))
    assert "~" in longest  # a long name leaves room for the value


# --- metadata, sizes


def test_2000_tracks() -> None:
    builder = PlaneBuilder.alone("/host:CPU")
    for number in range(2_000):
        line = builder.line(f"thread {number}")
        for at in range(2):
            builder.event(line, builder.event_id(f"a{(number + at) % 50}"), 10 * number + 5 * at, 4)
    found, trace = load(builder.space)
    assert len(found.sections[0].tracks) == 2_000 and found.event_count == 4_000
    matches = find(found, "a7")
    assert (matches.total, matches.names) == (80, 1)
    press_all(found, trace, times=5)
    page = TimelinePage(found)
    view = page.view
    assert view.filter("thread 199") == "11 tracks"
    view.filter("")
    view.sort()
    view.move_rows(10**9)
    check(page.lines(Pen(100, BLOCK), 40), 100, BLOCK)
    assert next(popups(found)).row_count() == 4_002
    draw_all(found, trace)


# --- next to nothing


def test_without_any_event_the_timeline_is_empty_and_every_key_does_nothing() -> None:
    space = XSpace()
    space.planes.add(name=b"/host:CPU").lines.add(name=b"python")
    for one in (XSpace(hostnames=[b"h"]), space):
        found, trace = load(one)
        assert (found.sections, found.first_ps, found.last_ps, found.event_count) == ((), 0, 0, 0)
        page = press_all(found, trace)
        assert page.view.event is None and page.view.rows.all == []
        draw_all(found, trace)
