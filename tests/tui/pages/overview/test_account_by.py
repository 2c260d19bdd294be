"""`report ledger`: the account of the step by each thing, in every format."""

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
from tpuprof.tui.pages.overview.ledger.report import By


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
