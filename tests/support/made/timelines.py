"""A made-up timeline: two cores and a host thread, six steps, one of them slow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.parsers.timeline.build import names, timeline, track
from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.timeline.model import CLASSES, EventNames, RateTrack, Section, StepSpan, Timeline, Track
from tpuprof.parsers.timeline.read.flows import Flows
from tpuprof.tui.pages.timeline.state import TimelineView

MS = 10**9
STARTS = (0, 120, 240, 360, 600, 720)
"""When the steps begin, in milliseconds; each lasts until the next one."""

OPS = ("fusion.0", "fusion.1", "all-reduce.2", "while.3", "copy.4")


def two_cores() -> Timeline:
    """Steps 100 to 105; a loop with fusions in it, an all-reduce and a gap in each."""
    spans = [StepSpan(str(100 + at), start * MS, end * MS) for at, (start, end) in enumerate(_steps())]
    cores = [_core(number) for number in range(2)]
    host = [track([(0, start * MS, (start + 2) * MS, 0) for start in STARTS], ("Execute",), "thread", "python/1")]
    made = timeline(*(core.tracks for core in cores), host, steps=spans)
    sections = (*cores, replace(made.sections[2], title="Host threads", plane="/host:CPU", kind="host"))
    return replace(made, sections=sections)


def read_up_to(made: Timeline, sections: int) -> Timeline:
    """A timeline of which only so many sections are read."""
    read, yet = made.sections[:sections], made.sections[sections:]
    spans = [one.span for section in read for one in section.tracks]
    unread = tuple(Section(one.title, one.plane, one.kind, (), is_read=False) for one in yet)
    return replace(
        made,
        sections=(*read, *unread),
        first_ps=min(first for first, _ in spans),
        last_ps=max(last for _, last in spans),
    )


def _steps() -> list[tuple[int, int]]:
    return list(zip(STARTS, (*STARTS[1:], 840), strict=True))


def _core(number: int) -> Section:
    modules = track([(0, a * MS, (b - 4) * MS, 0) for a, b in _steps()], ("jit_step(7)",), "modules", "XLA Modules")
    steps = track(
        [(0, a * MS, b * MS, at) for at, (a, b) in enumerate(_steps())],
        [str(100 + at) for at in range(6)],
        "steps",
        "Steps",
    )
    ops = _ops(number)
    rate = RateTrack("FLOPS", ops, np.array([0.0, 8e12, 0.0, 0.0, 0.0]), 200e12)
    return Section(f"Chip {number}: TPU core 0", f"/device:TPU:{number}", "core", (steps, modules, ops), (rate,))


def _ops(number: int) -> Track:
    """The ops of a core; the second core's all-reduce waits less."""
    events = []
    for a, b in _steps():
        events += [
            (0, a * MS, (a + 70) * MS, 3),
            (1, (a + 2) * MS, (a + 30) * MS, 0),
            (1, (a + 30) * MS, (a + 66) * MS, 1),
        ]
        events += [(0, (a + 80 + 4 * number) * MS, (a + 100) * MS, 2), (0, (a + 100) * MS, (a + 110) * MS, 4)]
        if b - a > 200:
            events.append((0, (a + 130) * MS, (a + 132) * MS, 4))
    kinds = ("vector", "compute", "collective", "vector", "copy")
    classes = np.array([CLASSES.index(kind) for kind in kinds], np.uint8)
    return track(events, kind="ops", name="XLA Ops", of=EventNames(None, names(OPS).texts, classes))


def launches(made: Timeline) -> Flows:
    """An arrow from each call of the host to the module that it launches on the first core."""
    n = len(STARTS)
    ends: Int64s = np.tile(np.arange(n, dtype=np.int64), 2)
    return Flows(
        places=((0, 1), (2, 0)),
        first=np.array([0, n, 2 * n], np.int64),
        events=ends,
        source=np.arange(n, 2 * n, dtype=np.int32),
        target=np.arange(n, dtype=np.int32),
        kind=np.zeros(n, np.uint8),
        by_target=np.arange(n, dtype=np.int32),
    )


def timeline_keys(view: TimelineView) -> dict[str, Callable[[], object]]:
    return {
        "w": lambda: view.zoom(2),
        "s": lambda: view.zoom(-2),
        "a": lambda: view.pan(-1),
        "d": lambda: view.pan(1),
        "f": view.fit,
        "0": view.show_all,
        "[": lambda: view.next_step(-1),
        "]": lambda: view.next_step(1),
        "{": lambda: view.next_gap(-1),
        "}": lambda: view.next_gap(1),
        ".": lambda: view.next_event(1),
        ",": lambda: view.next_event(-1),
        "<": lambda: view.follow(-1),
        ">": lambda: view.follow(1),
        "m": view.mark,
        "t": view.next_base,
        "z": view.fold,
        "Z": view.fold_all,
        "p": view.pin,
        "b": view.sort,
        "g": lambda: view.first_or_last(-1),
        "G": lambda: view.first_or_last(1),
        "h": lambda: view.move_cells(-1),
        "l": lambda: view.move_cells(7),
        "j": lambda: view.move_rows(1),
        "k": lambda: view.move_rows(-1),
        "/": lambda: view.search("a"),
        "n": lambda: view.next_match(1),
        "N": lambda: view.next_match(-1),
        "o": lambda: view.show_op("a"),
        "F": lambda: view.filter("XLA"),
        "esc": view.clear_marks,
    }
