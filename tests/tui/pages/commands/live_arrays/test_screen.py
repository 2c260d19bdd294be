"""The screen of live arrays, key by key: of one file, and of two that are compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.app.stage import ENVIRONMENT, check_golden
from tests.support.app.stand import COLOURS, frame, on_stand
from tests.support.files.pprof import pprof, training
from tpuprof.parsers.formats.pprof.messages import read_messages
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.memory.live_arrays import LiveArrays, live_arrays
from tpuprof.parsers.session.diff.live_arrays import LiveArraysDiff
from tpuprof.tui.pages.commands.live_arrays.changes import ArraysOrDiff
from tpuprof.tui.pages.commands.live_arrays.screen import APP as LIVE_ARRAYS_APP
from tpuprof.tui.pages.commands.live_arrays.screen import LiveArraysScreen
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.widgets.line_canvas import ScreenLook


def page_of(step: int, name: str) -> LiveArrays:
    return live_arrays(read_messages(MemorySource(pprof(training(step))), name), name, f"/runs/{name}")


ONE = page_of(12, "after.prof")
TWO = LiveArraysDiff(page_of(2, "before.prof"), ONE)


def screen_of(content: ArraysOrDiff, environ: Mapping[str, str] | None = None) -> LiveArraysScreen:
    told = {**ENVIRONMENT, **(environ or {})}
    return LiveArraysScreen(content, ScreenLook.of(detect(told)), environ=told)


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 50)])
@pytest.mark.parametrize("color", COLOURS)
@pytest.mark.parametrize("content", [ONE, TWO], ids=["one", "two"])
async def test_every_cell_is_painted(content: ArraysOrDiff, size: tuple[int, int], color: str) -> None:
    async with on_stand(screen_of(content, COLOURS[color]), *size) as (_, pilot):
        for key in ("b", "b", "b", "b", "b", "v", "v", "v", "d", "d", "d", "i", "s", "T"):
            await pilot.press(key)
            shown = frame(pilot)
            assert "LIVE ARRAYS" in shown and (color != "ascii" or shown.isascii())


@pytest.mark.parametrize("content", [ONE, TWO], ids=["one", "two"])
async def test_golden_frames(content: ArraysOrDiff) -> None:
    name = "live-arrays" if isinstance(content, LiveArrays) else "live-arrays-diff"
    async with on_stand(screen_of(content)) as (_, pilot):
        check_golden(f"{name}-80x24", frame(pilot))
        await pilot.press("enter")
        check_golden(f"{name}-stack-80x24", frame(pilot))
        await pilot.press("escape", "?")
        check_golden(f"{name}-help-80x24", frame(pilot))


async def test_the_stack_shows_code_that_is_here(tmp_path: Path) -> None:
    source = tmp_path / "keep.py"
    source.write_text("kept = []\ndef keep(x):\n    kept.append(x)\n")
    made = [training()[2]._replace(stack=(("keep", str(source), 3), ("<module>", str(source), 9)))]
    page = live_arrays(read_messages(MemorySource(pprof(made)), "x.prof"), "x.prof", "x.prof")
    async with on_stand(screen_of(page, {"EDITOR": "true"}), 120, 40) as (screen, pilot):
        await pilot.press("enter")
        assert "kept.append(x)" in frame(pilot) and "kept = []" in frame(pilot)
        await pilot.press("escape", "e")
        assert screen.flash == "This terminal can't run an editor."


async def test_what_is_the_same_is_hidden_until_it_is_asked_for() -> None:
    async with on_stand(screen_of(TWO)) as (screen, pilot):
        assert len(screen.listed.rows) == 1 and "Live memory grew by 40.0 MiB" in frame(pilot)
        await pilot.press("x")
        assert len(screen.listed.rows) == 6
        await pilot.press("y")
        await pilot.pause()
        await pilot.press("q")


async def test_the_app_is_left_with_q() -> None:
    app = LIVE_ARRAYS_APP(ONE, detect(ENVIRONMENT), environ=ENVIRONMENT)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("x", "escape", "q")
    assert app.return_code == 0
