"""`report ledger`: the step as it is and as it would be, and its account by each thing, in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import get_args

import pytest

from tests.support.build import tpu_plane
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_USAGE
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.steps.accounts import owners
from tpuprof.tui.cli.arguments.report import OWNER_GROUPS
from tpuprof.tui.pages import page_named
from tpuprof.tui.pages.overview.ledger.fields import By


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Steps of 1000 on two cores, one step right after the other: 300 of copies on one of them, 200 on the other."""
    space = XSpace()
    for core, copy in enumerate((300, 200)):
        ops = [
            op
            for step in range(6)
            for op in (
                ("copy.1", "copy", step * 1000, copy),
                ("fusion.1", "loop fusion", step * 1000 + copy, 500),
                ("outfeed.1", "outfeed", step * 1000 + copy + 500, 500 - copy),
            )
        ]
        steps = [(str(step), step * 1000, (step + 1) * 1000) for step in range(6)]
        tpu_plane(space, core, ops, steps=steps)
    path = tmp_path / "host0.xplane.pb"
    path.write_bytes(space.SerializeToString())
    return path


def test_the_command_line_names_the_groups_of_owners() -> None:
    assert set(OWNER_GROUPS) == set(owners.OWNER_GROUPS)


def test_the_command_line_takes_what_the_account_is_divided_by() -> None:
    page = page_named("ledger")
    assert page is not None and page.other_groups == get_args(By)


@pytest.mark.parametrize("by", get_args(By))
def test_every_format_has_the_account_by_what_is_asked_for(by: str, profile: Path, call: Call) -> None:
    asked = ("report", "ledger", profile, "--by", by)
    page = json.loads(call(*asked, "--format", "json").out)
    assert page["by"] == by and sum(owner["time_ms"] for owner in page["owners"]) == pytest.approx(page["step_time_ms"])
    rows = page["accounts"]
    times = [row["time_ms"] for row in rows]
    whole = len(rows) * page["step_time_ms"] if by in ("step", "core", "host") else page["step_time_ms"]
    assert sum(times) == pytest.approx(whole)
    assert sum(row["copy_ms"] for row in rows) * page["step_time_ms"] / whole == pytest.approx(0.25e-6)
    in_csv = list(csv.DictReader(io.StringIO(call(*asked, "--format", "csv").out)))
    assert [row["name"] for row in in_csv] == [row["name"] for row in rows]
    assert f"## By {by}" in call(*asked, "--format", "md").out
    text = call(*asked, "--width", "80").out
    assert f"─ By {by} ─" in text and "─ Below the roof" not in text
    assert all(row["name"] in text for row in rows)


def test_the_account_by_op_is_cut_to_the_limit(profile: Path, call: Call) -> None:
    asked = ("report", "ledger", profile, "--by", "op", "--limit", "1")
    assert [row["name"] for row in json.loads(call(*asked, "--format", "json").out)["accounts"]] == ["fusion.1"]
    assert "and 2 more" in call(*asked).out and "Not shown: 2 more" in call(*asked, "--format", "md").out


def test_what_the_account_is_not_divided_by_is_a_usage_error(tmp_path: Path, call: Call) -> None:
    said = call("report", "ledger", tmp_path / "nothing", "--by", "stack", code=EXIT_USAGE).err
    assert "ledger can't be grouped by stack: there is step, core, host, module, scope, op." in said
    said = call("report", "live-arrays", tmp_path / "nothing", "--by", "op", code=EXIT_USAGE).err
    assert "live-arrays can't be grouped by op: there is source, " in said


def test_json_has_both_steps_and_owners_add_up(profile: Path, call: Call) -> None:
    page = json.loads(call("report", "ledger", profile, "--without", "copy,compile", "--format", "json").out)
    without = page["without"]
    assert without["owners"] == ["compile", "copy"]
    assert page["step_time_ms"] == pytest.approx(1e-6)
    assert without["step_time_ms"] == without["period_ms"] == pytest.approx(0.8e-6)
    assert without["saved_ms"] == pytest.approx(0.2e-6)
    assert without["saved_percent"] == pytest.approx(20)
    left = {row["owner"]: row["without_ms"] for row in page["owners"]}
    assert left["copy"] == 0
    assert left["collective_wait"] == pytest.approx(0.05e-6)  # the core that had more to copy waits for the other
    assert sum(left.values()) == pytest.approx(without["step_time_ms"])


def test_time_between_steps_is_told_where_there_is_some(tmp_path: Path, call: Call) -> None:
    space = XSpace()
    steps = [(str(step), step * 1000, step * 1000 + 600) for step in range(6)]
    tpu_plane(space, 0, [("copy.1", "copy", step * 1000, 600) for step in range(6)], steps=steps)
    path = tmp_path / "host0.xplane.pb"
    path.write_bytes(space.SerializeToString())
    text = " ".join(call("report", "ledger", path, "--without", "copy").out.split())
    assert "a step takes 0 instead of 600 ps and steps start every 400 ps instead of 1.00 ns, 600 ps or 60.0%" in text


def test_owners_that_are_not_there_are_a_usage_error(call: Call) -> None:
    said = call("report", "ledger", "demo", "--without", "inputs", code=EXIT_USAGE).err
    assert "'inputs' is not an owner of a step's time: the owners are barrier, " in said
    said = call("report", "overview", "demo", "--without", "input", code=EXIT_USAGE).err
    assert "--without is for the pages findings, ledger, not overview." in said


def test_findings_take_kinds_that_are_owners(profile: Path, call: Call) -> None:
    asked = ("report", "findings", profile, "--without", "copy-wait,input")
    without = json.loads(call(*asked, "--format", "json").out)["without"]
    assert without["owners"] == ["input", "copy"]
    assert without["step_time_ms"] == pytest.approx(0.8e-6)
    assert "Without input wait, copies: a step takes 800 ps instead of 1.00 ns" in call(*asked, "--width", "100").out
    assert "| mean step without | 800 ps |" in call(*asked, "--format", "md").out
    assert "without" not in json.loads(call("report", "findings", profile, "--format", "json").out)
    said = call("report", "findings", "demo", "--without", "padding", code=EXIT_USAGE).err
    assert "'padding' is not an owner of a step's time: the owners are barrier, collective, " in said


def test_a_name_that_is_not_there_is_told_before_any_work(tmp_path: Path, call: Call) -> None:
    for page in ("ledger", "findings"):
        said = call("report", page, tmp_path / "nothing", "--without", "this", code=EXIT_USAGE).err
        assert "'this' is not an owner" in said


def test_a_profile_without_steps_has_none_without(tmp_path: Path, call: Call) -> None:
    space = XSpace()
    tpu_plane(space, 0, [])
    path = tmp_path / "host0.xplane.pb"
    path.write_bytes(space.SerializeToString())
    page = json.loads(call("report", "ledger", path, "--without", "input", "--format", "json").out)
    assert page["without"] is None and page["unknown"]["without"] == "the profile has no steps with a duration"
    assert "instead of" not in call("report", "ledger", path, "--without", "input").out
