"""What a timeline shows first: all of it, or the stretch in which devices worked where that is a small part of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.parsers.timeline.build import timeline, track
from tests.support.build import PlaneBuilder
from tests.support.golden import check_golden, frame
from tests.support.made.timelines import read_up_to
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.model import CounterTrack, StepSpan, Timeline
from tpuprof.parsers.timeline.read.timeline import read_timeline
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK, Glyphs
from tpuprof.tui.pages.timeline.draw.frame import TimelinePage
from tpuprof.tui.pages.timeline.state import TimelineView

GOLDEN = Path(__file__).parent / "golden"
US = 10**6
BEGIN, END, LAST = 1_144_996 * US, 1_212_231 * US, 2_317_064 * US
"""As in a real capture of a decoding server: 67 ms of ops in 2.3 s."""


def decode() -> Timeline:
    """Two cores that work for a thirtieth of a trace of host calls."""
    space = XSpace()
    for ordinal in range(2):
        builder = PlaneBuilder(space, f"/device:TPU:{ordinal}", ordinal + 2)
        builder.stat("peak_teraflops_per_second", 100.0)
        modules, ops = builder.line("XLA Modules"), builder.line("XLA Ops")
        builder.event(modules, builder.event_id("jit_step(3)"), BEGIN, END - BEGIN)
        attention = builder.event_id("%attention.1 = f32[8]{0} custom-call()", "attention.1", flops=1_000_000_000)
        matmul = builder.event_id("%fusion.2 = f32[8]{0} fusion()", "fusion.2", flops=40_000_000_000)
        for layer in range(28):
            start = BEGIN + layer * (END - BEGIN) // 28
            builder.event(ops, attention, start, 1_400 * US)
            builder.event(ops, matmul, start + 1_500 * US, 800 * US)
    host = PlaneBuilder(space, "/host:CPU")
    engine = host.line("VLLM::EngineCore")
    call = host.event_id("execute_model")
    for at in range(0, LAST, LAST // 20):
        host.event(engine, call, at, LAST // 20)
    trace = Trace(MemorySource(space.SerializeToString(), "test"))
    made = read_timeline(trace, "host0", "host0.xplane.pb")
    first, *others = made.sections
    power = CounterTrack("Power", np.array([0, BEGIN, END], np.int64), np.array([60.0, 140.0, 61.0]), "W")
    return replace(made, sections=(replace(first, counters=(power,)), *others))


def text(page: TimelinePage, width: int, height: int, glyphs: Glyphs = BLOCK) -> str:
    return frame(page.lines(Pen(width, glyphs), height))


def test_it_opens_on_the_stretch_where_the_devices_worked() -> None:
    check_golden(GOLDEN / "timeline-decode-80-block.txt", text(TimelinePage(decode()), 80, 21))


def test_0_shows_everything_and_its_averages() -> None:
    page = TimelinePage(decode())
    before = text(page, 160, 37)
    assert page.view.is_on_a_part and page.view.cursor_ps == BEGIN
    assert page.view.selected is not None and page.view.selected[0].label(0) == "jit_step(3)"
    assert page.view.window.start_ps < BEGIN < END < page.view.window.end_ps
    assert page.view.window.span_ps * 10 < page.view.timeline.last_ps
    page.view.show_all()
    after = text(page, 160, 37)
    assert not page.view.is_on_a_part
    assert page.view.window.start_ps <= 0 and page.view.window.end_ps >= LAST
    averages = {line[:31].split()[-1] for line in before.splitlines() if "XLA Ops" in line}
    assert averages != {line[:31].split()[-1] for line in after.splitlines() if "XLA Ops" in line}
    assert "Power 133 W of 60–140 W" in " ".join(before.split()) and "62.8 W of 60–140 W" in after


def test_what_is_read_later_moves_the_opening_and_not_who_went_elsewhere() -> None:
    made = decode()
    parts = (read_up_to(made, 1), read_up_to(made, 2), made)
    opened, everywhere, zoomed = (TimelinePage(parts[0]) for _ in range(3))
    for page in (opened, everywhere, zoomed):
        page.lines(Pen(120, BLOCK), 37)
    everywhere.view.show_all()
    zoomed.view.zoom(2)
    window = zoomed.view.window
    for part in parts[1:]:
        for page in (opened, everywhere, zoomed):
            page.extend(part)
            page.lines(Pen(120, BLOCK), 37)
    at_once = TimelinePage(made)
    assert opened.lines(Pen(120, BLOCK), 37) == at_once.lines(Pen(120, BLOCK), 37)
    assert everywhere.view.window == at_once.view.window.whole()
    assert (zoomed.view.window.start_ps, zoomed.view.window.end_ps) == (window.start_ps, window.end_ps)


def test_one_without_devices_opens_on_all_of_it() -> None:
    made = decode()
    only_host = replace(made, sections=made.sections[2:])
    assert only_host.worked_ps is None
    view = TimelinePage(only_host).view
    assert view.window == view.window.whole() and view.cursor_ps == made.first_ps


def test_the_cursor_is_on_the_first_step_with_its_event_selected() -> None:
    steps = track([(0, 40, 60, 0), (0, 60, 80, 1)], ("7", "8"), kind="steps", name="Steps")
    before = track([(0, 30, 90, 0)], name="python")
    spans = (StepSpan("7", 40, 60), StepSpan("8", 60, 80))
    view = TimelineView(timeline([steps], [before], steps=spans))
    assert (view.window.start_ps, view.cursor_ps) == (30, 40)
    assert view.selected is not None and view.selected[0].label(view.selected[1]) == "7"
    assert TimelineView(timeline([before])).cursor_ps == 30, "without steps and work of devices at its begin"


# --- where one is when more sections are read
