"""The screen of a comparison, key by key, alone and above something else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.parsers.session.diff.build import MS, diff_of, layers
from tests.parsers.session.diff.phased import served
from tests.support.app.scene import after
from tests.support.app.stage import ENVIRONMENT, check_golden
from tests.support.app.stand import COLOURS, frame, on_stand
from tpuprof.parsers.session.diff.model import Diff
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK, plain
from tpuprof.tui.pages.commands.diff.changes import VIEWS
from tpuprof.tui.pages.commands.diff.drawing import DiffView
from tpuprof.tui.pages.commands.diff.screen import DiffScreen
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.widgets.chrome import footer
from tpuprof.tui.widgets.line_canvas import ScreenLook


def screen_of(diff: Diff, environ: Mapping[str, str] | None = None, note: str = "") -> DiffScreen:
    told = {**ENVIRONMENT, **(environ or {})}
    return DiffScreen(diff, ScreenLook.of(detect(told)), environ=told, note=note)


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 50)])
@pytest.mark.parametrize("color", COLOURS)
async def test_every_cell_is_painted(diff: Diff, size: tuple[int, int], color: str) -> None:
    async with on_stand(screen_of(diff, COLOURS[color]), *size) as (_, pilot):
        for key in "12345678":
            await pilot.press(key)
            shown = frame(pilot)
            assert "+18.7 ms a step" in shown and (color != "ascii" or shown.isascii())
        assert "SLOWER" in await after(pilot, "T")


async def test_golden_of_the_whole_screen(diff: Diff) -> None:
    async with on_stand(screen_of(diff)) as (_, pilot):
        check_golden("diff-80x24", frame(pilot))
        await pilot.press("?")
        check_golden("diff-help-80x24", frame(pilot))


def test_the_footer_has_the_keys_of_the_view(diff: Diff, tmp_path: Path) -> None:
    screen = screen_of(diff)
    assert [key for key, _ in footer(screen.keys)] == ["1-8", "Enter", "x", "y", "?", "/", "s", "q"]
    screen.listed.listing = DiffView(name="steps")
    assert [key for key, _ in footer(screen.keys)] == ["1-8", "y", "?", "q"]
    screen.listed.listing = DiffView(name="time")
    assert ("s", "sort") not in footer(screen.keys) and footer(screen.keys)[-1] == ("q", "back")
    of_clones = screen_of(diff_of(tmp_path, layers(4, MS), layers(4, 2 * MS)))
    assert footer(of_clones.keys)[3] == ("b", "clones apart")
    alone = DiffScreen(diff, ScreenLook.of(detect(ENVIRONMENT)), environ=ENVIRONMENT, is_alone=True)
    assert "Quit" in "\n".join(map(plain, alone.help_lines(Pen(80, BLOCK)))) and footer(alone.keys)[-1] == ("q", "quit")


async def test_views_and_cursor(diff: Diff) -> None:
    async with on_stand(screen_of(diff)) as (screen, pilot):
        await pilot.press("tab", "tab")
        assert screen.listed.listing.name == "time"
        await pilot.press("shift+tab", "shift+tab", "shift+tab")
        assert screen.listed.listing.name == VIEWS[-1]
        await pilot.press("1", "j", "j", "j", "j")
        assert (
            screen.listed.listing.cursor == 2
            and screen.listed.row is not None
            and screen.listed.row.name == "fusion.52"
        )
        await pilot.press("home", "end", "k")
        assert screen.listed.row is not None and screen.listed.row.name == "copy.812"
        await pilot.press("4", "G", "g", "pagedown", "j", "enter")
        assert screen.popups.popup is None and "Step times" in frame(pilot)


async def test_the_steps_scroll_on_a_low_screen(diff: Diff) -> None:
    async with on_stand(screen_of(diff), 60, 15) as (_, pilot):
        assert "typical" in await after(pilot, "4")
        await pilot.press("G")
        assert "typical " not in frame(pilot) and "2 above" in frame(pilot)
        await pilot.press("k")
        assert "typical" in await after(pilot, "g")


async def test_clones_together_and_apart(diff: Diff, tmp_path: Path) -> None:
    async with on_stand(screen_of(diff_of(tmp_path, layers(4, MS), layers(4, 2 * MS)))) as (screen, pilot):
        assert [row.name for row in screen.listed.rows] == ["fusion.10 (4 ops)"]
        assert "clones apart" in await after(pilot, "x", "b") and len(screen.listed.rows) == 5
        await pilot.press("home", "j", "j", "b")
        assert screen.listed.row is not None and screen.listed.row.name == "fusion.10 (4 ops)"
        await pilot.press("j", "b")
        assert screen.listed.row is not None and screen.listed.row.name == "copy.900"
        assert "No row here has several ops." in await after(pilot, "2", "b")
    async with on_stand(screen_of(diff)) as (_, pilot):
        assert "No row here has several ops." in await after(pilot, "b")


async def test_programs_apart(tmp_path: Path) -> None:
    async with on_stand(screen_of(served(tmp_path))) as (screen, pilot):
        await pilot.press("7")
        check_golden("diff-phases-80x24", frame(pilot))
        await pilot.press("j", "enter")
        assert screen.listed.listing.phase == "jit_decode"
        check_golden("diff-phase-80x24", frame(pilot))
        assert "All programs, together." in await after(pilot, "]")
        await pilot.press("[", "escape")
        assert screen.listed.listing.phase == "" and screen.listed.listing.name == "ops"
        assert "Programs are shown separately in" in await after(pilot, "6", "]")
        await pilot.press("8")
        check_golden("diff-setup-80x24", frame(pilot))
        await pilot.press("x", "enter")
        assert "not told" not in frame(pilot) and "0.0.25" in frame(pilot)
