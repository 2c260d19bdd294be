"""Two device memory profiles compared: what leaks, what moved, and how much is too much."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.parsers.memory.test_live_arrays import page_of
from tests.support.files.pprof import BATCH, METRICS, MIB, PARAMETERS, buffer, training
from tpuprof.parsers.memory.live_arrays import BY, By
from tpuprof.parsers.session.diff.live_arrays import LiveArraysDiff, changes, growth


def diff_of(before: int, after: int) -> LiveArraysDiff:
    return LiveArraysDiff(page_of(training(before)), page_of(training(after)))


def test_what_grows_with_the_steps_stands_first() -> None:
    diff = diff_of(2, 12)
    first, *others = changes(diff)
    assert (first.mark, first.group.function, first.group.kind) == ("more", "log_metrics", "buffer")
    assert (first.count_change, first.size_change) == (20, 40 * MIB)
    assert {one.mark for one in others} == {"same"} and diff.size_change == 40 * MIB
    assert changes(diff, device="TPU_1(process=0,(1,0,0,0))")[0].size_change == 20 * MIB


def test_new_and_gone() -> None:
    assert changes(diff_of(0, 3))[0].mark == "new" and changes(diff_of(3, 0))[-1].mark == "gone"
    assert changes(diff_of(3, 0))[-1].size_change == -12 * MIB


@pytest.mark.parametrize("by", BY)
def test_the_changes_add_up(by: By) -> None:
    diff = diff_of(1, 4)
    assert sum(one.size_change for one in changes(diff, by)) == diff.size_change
    assert sum(one.count_change for one in changes(diff, by)) == diff.count_change


def test_more_of_no_size_is_more() -> None:
    diff = LiveArraysDiff(page_of([buffer(1, 0, BATCH)]), page_of([buffer(3, 0, BATCH)]))
    (change,) = changes(diff)
    assert (change.mark, change.count_change, diff.fraction) == ("more", 2, None)


@pytest.mark.parametrize("by", ["source", "stack"])
def test_a_line_that_moved_in_an_edited_file_is_the_same(by: By) -> None:
    moved = tuple((function, file, line + 4) for function, file, line in PARAMETERS)
    diff = LiveArraysDiff(page_of([buffer(2, 8, PARAMETERS)]), page_of([buffer(2, 8, moved)]))
    assert [one.mark for one in changes(diff, by)] == ["same"]
    larger = LiveArraysDiff(diff.before, page_of([buffer(3, 8, moved)]))
    assert [one.mark for one in changes(larger, by)] == ["new", "gone"], "what else differs is not taken for the same"


def test_two_lines_that_could_be_one_that_moved_are_left_apart() -> None:
    lines = [tuple((f, file, line + by) for f, file, line in METRICS) for by in (0, 1, 2)]
    diff = LiveArraysDiff(page_of([buffer(1, 8, lines[0])]), page_of([buffer(1, 8, line) for line in lines[1:]]))
    assert sorted(one.mark for one in changes(diff)) == ["gone", "new", "new"]


def test_growth_beyond_what_is_allowed() -> None:
    diff = diff_of(0, 100)
    whole = 100 * diff.size_change / diff.before.total.size_bytes
    assert 3 < whole < 4 and not growth(diff, 0.04).is_beyond and growth(diff, 0.04).sentence == ""
    judged = growth(diff, 0.01)
    assert judged.is_beyond and judged.sentence == f"Live memory grew by {whole:.1f}%, more than the 1% allowed."
    assert not growth(replace(diff, before=diff.after, after=diff.before), 0.0).is_beyond
    from_nothing = growth(LiveArraysDiff(page_of([]), diff.after), 0.5)
    assert from_nothing.is_beyond and "grew from nothing" in from_nothing.sentence
