"""The screen of live arrays, key by key."""

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
from tpuprof.tui.pages.commands.live_arrays.screen import APP as LIVE_ARRAYS_APP
from tpuprof.tui.pages.commands.live_arrays.screen import LiveArraysScreen
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.widgets.line_canvas import ScreenLook

PAGE = live_arrays(read_messages(MemorySource(pprof(training(12))), "after.prof"), "after.prof", "/runs/after.prof")


def screen_of(content: LiveArrays, environ: Mapping[str, str] | None = None) -> LiveArraysScreen:
    told = {**ENVIRONMENT, **(environ or {})}
    return LiveArraysScreen(content, ScreenLook.of(detect(told)), environ=told)


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 50)])
@pytest.mark.parametrize("color", COLOURS)
async def test_every_cell_is_painted(size: tuple[int, int], color: str) -> None:
    async with on_stand(screen_of(PAGE, COLOURS[color]), *size) as (_, pilot):
        for key in ("b", "b", "b", "b", "b", "v", "v", "v", "d", "d", "d", "i", "S", "T"):
            await pilot.press(key)
            shown = frame(pilot)
            assert "LIVE ARRAYS" in shown and (color != "ascii" or shown.isascii())


async def test_golden_frames() -> None:
    async with on_stand(screen_of(PAGE)) as (_, pilot):
        check_golden("live-arrays-80x24", frame(pilot))
        await pilot.press("enter")
        check_golden("live-arrays-stack-80x24", frame(pilot))
        await pilot.press("escape", "?")
        check_golden("live-arrays-help-80x24", frame(pilot))


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


async def test_the_app_is_left_with_q() -> None:
    app = LIVE_ARRAYS_APP(PAGE, detect(ENVIRONMENT), environ=ENVIRONMENT)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("x", "escape", "q")
    assert app.return_code == 0
