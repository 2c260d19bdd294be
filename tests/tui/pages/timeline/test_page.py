"""What drawing the timeline costs: bytes kept an event, rows drawn a frame, cells repainted a step."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parsers.timeline.build import timeline, track
from tests.support.made.timelines import two_cores
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.timeline.windows import prepare
from tpuprof.tui.demo import demo_path
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.pages.timeline.draw import frame as timeline_frame
from tpuprof.tui.pages.timeline.draw.frame import TimelinePage
from tpuprof.tui.pages.timeline.draw.lanes import lane_line

MOST_BYTES = 32


def test_an_event_takes_at_most_32_bytes_with_all_that_is_kept_to_draw_it() -> None:
    made = Session(open_logdir(demo_path()).find_run(None)).timeline(with_steps=False)
    prepare(made)
    TimelinePage(made).lines(160, 50, BLOCK)
    tracks = [one for section in made.sections for one in section.tracks if not one.is_derived and len(one) > 10_000]
    assert len(tracks) == 4
    for one in tracks:
        kept = sum(value.nbytes for value in vars(one).values() if isinstance(value, np.ndarray))
        by_name = one.counts.nbytes  # of the metadata's size, not of the events'
        assert kept - by_name <= MOST_BYTES * len(one)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes each row that is computed anew."""
    calls: list[str] = []

    def noted(*args: object, **words: object) -> object:
        calls.append("row")
        return lane_line(*args, **words)  # type: ignore[arg-type]

    monkeypatch.setattr(timeline_frame, "lane_line", noted)
    return calls


def test_only_rows_on_the_screen_are_drawn_and_only_when_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch)
    threads = [track([(0, 0, 5000, 0), (0, 6000, 9000, 1)], name=f"thread {at}") for at in range(2000)]
    page = TimelinePage(timeline(threads))
    page.lines(120, 40, BLOCK)
    assert 0 < len(calls) <= page.view.rows.height
    calls.clear()
    page.view.move_cells(1)
    page.lines(120, 40, BLOCK)
    assert len(calls) <= 1, "the selected slice's row"
    calls.clear()
    page.view.zoom(2)
    page.lines(120, 40, BLOCK)
    assert 0 < len(calls) <= page.view.rows.height


def test_a_cursors_step_changes_few_lines() -> None:
    page = TimelinePage(two_cores())
    page.view.move_rows(2)
    before = page.lines(120, 40, BLOCK)
    page.view.move_cells(1)
    after = page.lines(120, 40, BLOCK)
    changed = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert 0 < len(changed) <= 6, "the axis, the row, and the pane"
