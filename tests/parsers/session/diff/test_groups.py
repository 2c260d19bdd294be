"""Ops with their clones: which are one change, and what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parsers.session.diff.build import MS, US, Program, diff_of, example, layers, op


def test_clones_that_each_get_slower_within_their_noise_are_one_change(tmp_path: Path) -> None:
    diff = diff_of(tmp_path, layers(60, 1000 * US), layers(60, 1010 * US))
    assert len(diff.ops) == 61
    assert {item.time.mark for item in diff.ops} == {"same"}
    group, single = diff.groups
    assert group.change.name.endswith(" (60 ops)")
    assert (group.change.time.mark, len(group.members)) == ("more", 60)
    of_group = [diff.ops[number] for number in group.members]
    for side in ("before", "after", "delta"):
        assert getattr(group.change.time, side) == pytest.approx(sum(getattr(item.time, side) for item in of_group))
    assert (group.change.count.before, group.change.count.after) == pytest.approx((60, 60))
    assert single.change == op(diff, "copy.900")


def test_a_layer_more_is_a_change_of_the_group(tmp_path: Path) -> None:
    diff = diff_of(tmp_path, layers(4, MS), layers(5, MS))
    group = next(group for group in diff.groups if len(group.members) > 1)
    assert sorted(diff.ops[number].time.mark for number in group.members) == ["new", "same", "same", "same", "same"]
    assert group.change.time.mark == "more"
    assert group.change.count.after == pytest.approx(5)
    gone = diff_of(tmp_path / "other", layers(4, MS), layers(0, MS))
    change = next(group.change for group in gone.groups if len(group.members) == 4)
    assert (change.time.mark, change.time.after, change.count.mark, change.count.after) == ("gone", None, "gone", None)


def test_ops_without_clones_are_groups_of_their_own(tmp_path: Path) -> None:
    diff = example(tmp_path)
    assert [group.change for group in diff.groups] == list(diff.ops)
    assert [group.members for group in diff.groups] == [(number,) for number in range(len(diff.ops))]


def test_copies_of_one_name_in_both_runs_are_no_clones_without_a_framework_op(tmp_path: Path) -> None:
    duplicates = {"fusion.7": "fusion.5", "fusion.8": "fusion.5", "fusion.9": "fusion.5"}
    before, after = (
        Program(
            steps=[[(name, MS) for name in names]] * 4,
            texts={name: f"f32[{size}] fusion()" for name in names},
            duplicates=duplicates,
        )
        for names, size in ((("fusion.7",), 8), (("fusion.8", "fusion.9"), 9))
    )
    diff = diff_of(tmp_path, before, after)
    marks = {group.change.name: group.change.time.mark for group in diff.groups}
    assert marks == {"fusion.7": "gone", "fusion.8 (2 ops)": "new"}
