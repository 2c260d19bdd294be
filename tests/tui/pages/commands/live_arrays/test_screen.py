"""The screen of live arrays, key by key: of one file, and of two that are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.app.scene import after
from tests.support.app.stage import ENVIRONMENT, check_golden
from tests.support.app.stand import COLOURS, frame, on_stand
from tests.support.files.pprof import pprof, training
from tpuprof.parsers.formats.pprof.messages import read_messages
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.memory.live_arrays import BY, LiveArrays, live_arrays
from tpuprof.parsers.session.diff.live_arrays import LiveArraysDiff
from tpuprof.tui.pages.commands.live_arrays.changes import Content
from tpuprof.tui.pages.commands.live_arrays.drawing import LiveArraysView
from tpuprof.tui.pages.commands.live_arrays.screen import APP as LIVE_ARRAYS_APP
from tpuprof.tui.pages.commands.live_arrays.screen import LiveArraysScreen
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.widgets.line_canvas import ScreenLook


def page_of(step: int, name: str) -> LiveArrays:
    return live_arrays(read_messages(MemorySource(pprof(training(step))), name), name, f"/runs/{name}")


ONE = page_of(12, "after.prof")
TWO = LiveArraysDiff(page_of(2, "before.prof"), ONE)


def screen_of(content: Content, environ: Mapping[str, str] | None = None) -> LiveArraysScreen:
    told = {**ENVIRONMENT, **(environ or {})}
    return LiveArraysScreen(content, ScreenLook.of(detect(told)), environ=told)


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 50)])
@pytest.mark.parametrize("color", COLOURS)
@pytest.mark.parametrize("content", [ONE, TWO], ids=["one", "two"])
async def test_every_cell_is_painted(content: Content, size: tuple[int, int], color: str) -> None:
    async with on_stand(screen_of(content, COLOURS[color]), *size) as (_, pilot):
        for key in ("b", "b", "b", "b", "b", "v", "v", "v", "d", "d", "d", "i", "s", "T"):
            await pilot.press(key)
            shown = frame(pilot)
            assert "LIVE ARRAYS" in shown and (color != "ascii" or shown.isascii())


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48)])
@pytest.mark.parametrize("content", [ONE, TWO], ids=["one", "two"])
async def test_golden_frames(content: Content, size: tuple[int, int]) -> None:
    name = "live-arrays" if isinstance(content, LiveArrays) else "live-arrays-diff"
    async with on_stand(screen_of(content), *size) as (_, pilot):
        check_golden(f"{name}-{size[0]}x{size[1]}", frame(pilot))
        if size[0] == 80:
            await pilot.press("enter")
            check_golden(f"{name}-stack-80x24", frame(pilot))
            await pilot.press("escape", "?")
            check_golden(f"{name}-help-80x24", frame(pilot))


async def test_golden_frame_in_ascii() -> None:
    async with on_stand(screen_of(ONE, {"LANG": "C"})) as (_, pilot):
        await pilot.press("b", "b", "j")
        check_golden("live-arrays-stacks-80x24-ascii", frame(pilot))


async def test_grouping_sorting_and_going_back() -> None:
    async with on_stand(screen_of(ONE)) as (screen, pilot):
        for by in (*BY[1:], BY[0]):
            await pilot.press("b")
            assert screen.view.by == by
        await pilot.press(*"b" * (len(BY) - 2), "s")
        assert (screen.view.by, screen.view.sort) == ("device", "count") and "Sorted by count." in frame(pilot)
        few = screen.rows[-1]
        assert "Sorted by count, reversed." in await after(pilot, "S") and screen.rows[0] == few
        await pilot.press("S", "b", "b", "v")
        assert screen.view.kind == "buffer" and all(row.kind == "buffer" for row in screen.rows)  # type: ignore[union-attr]
        await pilot.press("]", "]")
        assert screen.view.device == "TPU_1(process=0,(1,0,0,0))" and "buffers only, TPU_1" in frame(pilot)
        await pilot.press("/", *"optax", "enter")
        assert [row.function for row in screen.rows] == ["init_state"]  # type: ignore[union-attr]
        await pilot.press("escape")
        assert screen.view.words == "" and screen.view.device is not None, "one thing at a time"
        await pilot.press("escape", "escape")
        assert replace(screen.view, by="source", sort="") == LiveArraysView()
        await pilot.press("end", "k", "k")
        assert screen.view.cursor == len(screen.rows) - 3


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
        assert len(screen.rows) == 1 and "Live memory grew by 40.0 MiB" in frame(pilot)
        await pilot.press("x")
        assert len(screen.rows) == 6
        await pilot.press("y")
        await pilot.pause()
        await pilot.press("q")


async def test_the_app_is_left_with_q() -> None:
    app = LIVE_ARRAYS_APP(ONE, detect(ENVIRONMENT), environ=ENVIRONMENT)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("x", "escape", "q")
    assert app.return_code == 0
