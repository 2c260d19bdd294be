"""Ops with their clones: which are one change, and what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parsers.session.diff.build import MS, Program, diff_of, layers


def test_a_layer_more_is_a_change_of_the_group(tmp_path: Path) -> None:
    diff = diff_of(tmp_path, layers(4, MS), layers(5, MS))
    group = next(group for group in diff.groups if len(group.members) > 1)
    assert sorted(diff.ops[number].time.mark for number in group.members) == ["new", "same", "same", "same", "same"]
    assert group.change.time.mark == "more"
    assert group.change.count.after == pytest.approx(5)
    gone = diff_of(tmp_path / "other", layers(4, MS), layers(0, MS))
    change = next(group.change for group in gone.groups if len(group.members) == 4)
    assert (change.time.mark, change.time.after, change.count.mark, change.count.after) == ("gone", None, "gone", None)


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
