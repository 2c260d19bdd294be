"""What drawing the timeline costs: bytes kept an event, rows drawn a frame, cells repainted a step."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parsers.timeline.build import timeline, track
from tests.support.build import session_at
from tests.support.made.timelines import read_up_to, timeline_keys, two_cores
from tpuprof.parsers.timeline.windows import prepare
from tpuprof.tui.demo import demo_path
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK, plain
from tpuprof.tui.pages.timeline.draw import lanes
from tpuprof.tui.pages.timeline.draw.frame import TimelinePage
from tpuprof.tui.pages.timeline.draw.lanes import lane_line

MOST_BYTES = 32


def test_an_event_takes_at_most_32_bytes_with_all_that_is_kept_to_draw_it() -> None:
    made = session_at(demo_path()).timeline(with_steps=False)
    prepare(made)
    TimelinePage(made).lines(Pen(160, BLOCK), 50)
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

    monkeypatch.setattr(lanes, "lane_line", noted)
    return calls


def test_only_rows_on_the_screen_are_drawn_and_only_when_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch)
    threads = [track([(0, 0, 5000, 0), (0, 6000, 9000, 1)], name=f"thread {at}") for at in range(2000)]
    page = TimelinePage(timeline(threads))
    page.lines(Pen(120, BLOCK), 40)
    assert 0 < len(calls) <= page.view.rows.height
    calls.clear()
    page.view.move_cells(1)
    page.lines(Pen(120, BLOCK), 40)
    assert len(calls) <= 1, "the selected slice's row"
    calls.clear()
    page.view.zoom(2)
    page.lines(Pen(120, BLOCK), 40)
    assert 0 < len(calls) <= page.view.rows.height
    drawn = []
    for typed in ("a", "al", "alp", "b"):
        calls.clear()
        page.view.search(typed)
        page.lines(Pen(120, BLOCK), 40)
        drawn.append(len(calls))
    assert drawn[0] and drawn[1] and not drawn[2] and drawn[3], "a letter draws the rows whose marks it changes"


@pytest.mark.parametrize("keys", ["", "jjl", "jzw", "pj", "Zb"])
def test_a_timeline_shown_section_by_section_is_in_the_end_the_one_shown_at_once(keys: str) -> None:
    made = two_cores()
    parts, at_once = TimelinePage(read_up_to(made, 1)), TimelinePage(made)
    parts.lines(Pen(120, BLOCK), 40)
    at_once.lines(Pen(120, BLOCK), 40)
    for page in (parts, at_once):
        for key in keys:
            timeline_keys(page.view)[key]()
        page.lines(Pen(120, BLOCK), 40)
    for sections in (2, 3):
        parts.extend(read_up_to(made, sections) if sections < 3 else made)
        assert parts.lines(Pen(120, BLOCK), 40) != []
    assert parts.lines(Pen(120, BLOCK), 40) == at_once.lines(Pen(120, BLOCK), 40)
    assert parts.status_line(Pen(120, BLOCK)) == at_once.status_line(Pen(120, BLOCK))


def test_what_is_not_read_yet_says_so() -> None:
    made = two_cores()
    page = TimelinePage(read_up_to(made, 1))
    rows = [plain(line) for line in page.lines(Pen(120, BLOCK), 40)]
    (heading,) = (row for row in rows if "Chip 1" in row)
    assert "reading" in heading and "0 tracks" not in heading
    assert "1 of 3 sections is read" in plain(page.status_line(Pen(120, BLOCK)))
    assert page.view.search("fusion").endswith("1 of 3 sections is read")
    total = page.view.matches.total if page.view.matches else 0
    page.extend(made)
    assert page.view.matches is not None and page.view.matches.total == 2 * total
    assert page.view.so_far == "" and "sections" not in plain(page.status_line(Pen(120, BLOCK)))


def test_of_many_cores_the_first_ones_are_open_whenever_they_come() -> None:
    made = timeline(*([track([(0, 0, 5, 0)])] for _ in range(6)))
    page, at_once = TimelinePage(read_up_to(made, 1)), TimelinePage(made)
    for sections in range(2, 6):
        page.extend(read_up_to(made, sections))
    page.extend(made)
    assert page.view.rows.folding == at_once.view.rows.folding
