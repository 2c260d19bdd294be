"""The op profile by source line: the code where it is on this machine, the calls, the op, searching, idle time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.app.scene import after, press
from tests.support.app.stage import check_golden, frame
from tests.tui.pages.ops.test_view import play, table, tree

PROGRAM = Path(__file__).parents[3] / "demo" / "program"


async def test_source_lines_show_their_code_their_calls_and_their_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROGRAM)
    async with play("b", "b", "b", "j", width=120, height=40) as (app, pilot):
        assert "model.py:62 takes" in frame(app) and ":62  return jax.nn.gelu" in frame(app)
        check_golden("ops-source-code_120x40", frame(app))
        assert tree(app).selection == "model.py:62" and tree(app).op_name == "fusion.397"
        assert "outermost first" in await after(pilot, "enter")
        await press(pilot, "escape", "o")
        assert table(app).selection == "fusion.397"


async def test_searching_finds_files_and_lines() -> None:
    async with play("b", "b", "b", "/", *"train.py:2", "enter") as (app, _):
        row = tree(app).row
        assert row is not None and tree(app).tree.name[row.node] == "train.py:24"


async def test_without_idle_time_lines_are_shares_of_the_ops_time() -> None:
    async with play("b", "b", "b", "j", height=40) as (app, pilot):
        before = frame(app)
        await press(pilot, "x")
        assert "IDLE" in before and "IDLE" not in frame(app) and " 34.0%" in frame(app)
