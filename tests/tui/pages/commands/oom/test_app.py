"""The screen for memory that is full, key by key, and the app around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.app.scene import after
from tests.support.app.stage import ENVIRONMENT, check_golden, make_app, on_stage
from tests.support.app.stand import COLOURS, frame, on_stand
from tests.support.files.pprof import written
from tests.support.made.oom import load_triage, log_of, made_up_triage, made_up_trial
from tpuprof.parsers.memory.live_arrays import read_live_arrays
from tpuprof.parsers.memory.oom.model import OomReport
from tpuprof.parsers.memory.oom.triage import Triage
from tpuprof.tui.pages.commands.live_arrays.screen import LiveArraysScreen
from tpuprof.tui.pages.commands.oom.screen import TriageScreen, oom_app
from tpuprof.tui.terminal.detect import Terminal, detect
from tpuprof.tui.widgets.chrome import footer
from tpuprof.tui.widgets.line_canvas import ScreenLook

TRIAGES = (made_up_triage(), load_triage())


def terminal(**environ: str) -> Terminal:
    return detect({**ENVIRONMENT, **environ})


def screen_of(triages: Sequence[Triage] = TRIAGES, environ: Mapping[str, str] | None = None) -> TriageScreen:
    told = {**ENVIRONMENT, **(environ or {})}
    return TriageScreen(triages, ScreenLook.of(detect(told)), environ=told, try_out=made_up_trial)


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 50)])
@pytest.mark.parametrize("color", COLOURS)
async def test_every_cell_is_painted(size: tuple[int, int], color: str) -> None:
    async with on_stand(screen_of(environ=COLOURS[color]), *size) as (_, pilot):
        assert "OVER BY 16.06 GiB" in frame(pilot)
        assert "estimate" in await after(pilot, "1", "v", "space", "T")


async def test_golden_of_the_whole_screen() -> None:
    async with on_stand(screen_of()) as (_, pilot):
        check_golden("oom-80x24", frame(pilot))
        await pilot.press("?")
        check_golden("oom-help-80x24", frame(pilot))


def test_the_footer_has_the_keys_of_what_is_shown() -> None:
    screen = screen_of()
    every = ["1-3", "Enter", "v", "]", "y", "?", "b", "s", "/", "e", "q"]
    assert [key for key, _ in footer(screen.keys)] == every
    screen.listed.listing = replace(screen.listed.listing, is_trying=True)
    assert [key for key, _ in footer(screen.keys)] == ["space", "j k", "v", "?", "q"]
    bare = screen_of((replace(TRIAGES[0], need=replace(TRIAGES[0].need, buffers=()), advice=(), toggles=()),))
    assert [key for key, _ in footer(bare.keys)] == ["y", "?", "q"]


async def test_numbers_choose_advice_and_open_it() -> None:
    async with on_stand(screen_of()) as (screen, pilot):
        await pilot.press("3")
        assert screen.listed.listing.advice == 2 and screen.listed.row is not None and screen.listed.row.buffers == (5,)
        await pilot.press("3")
        assert "2.00 GiB - 64.0 MiB = 1.94 GiB" in frame(pilot) and "Advice 3" in frame(pilot)
        await pilot.press("escape", "escape")
        assert screen.listed.listing.advice is None
        assert "There is no advice 9." in await after(pilot, "9")


async def test_the_card_shows_the_source_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "train"
    folder.mkdir()
    (folder / "models.py").write_text("".join(f"line {number}\n" for number in range(1, 90)))
    monkeypatch.chdir(tmp_path)
    async with on_stand(screen_of()) as (_, pilot):
        assert "▸    53 line 53" in await after(pilot, "j", "enter")


async def test_what_if_adds_up_and_is_an_estimate() -> None:
    async with on_stand(screen_of()) as (screen, pilot):
        await pilot.press("v")
        assert "estimates from the listed buffers" in frame(pilot) and "[ ]" in frame(pilot)
        await pilot.press("space")
        assert "[x]" in frame(pilot) and "estimate 21.90 GiB   STILL OVER BY" in frame(pilot)
        assert "FITS, " in await after(pilot, "4")
        y = next(y for y, line in enumerate(frame(pilot).splitlines()) if line[1:3] == "2 ")
        await pilot.click(offset=(20, y))
        await pilot.press("1")
        assert screen.listed.trial is not None and screen.listed.trial.chosen == {"batch"}
        assert "Advice 1 can't be tried" in frame(pilot)
        assert "There is no change 9." in await after(pilot, "9")
        await pilot.press("k", "enter")
        assert screen.listed.trial.chosen == {"batch", "bf16"}
        await pilot.press("v")
        assert "What to do first" in frame(pilot) and "estimate" in frame(pilot)
        await pilot.press("escape")
        assert screen.listed.trial is None and "needs 31.81 GiB" in frame(pilot)


async def test_other_errors_of_the_log() -> None:
    async with on_stand(screen_of()) as (_, pilot):
        assert "error 1 of 2" in frame(pilot)
        await pilot.press("]")
        assert "error 2 of 2" in frame(pilot) and "SHORT BY 6.02 GiB" in frame(pilot)
        assert "SHORT BY 6.02 GiB" in await after(pilot, "j", "enter", "v", "/", "e", "1", "S", "b")
        assert "error 1 of 2" in await after(pilot, "]")
        assert "error 1 of 2" in await after(pilot, "[", "[")


async def test_copying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME")
    async with on_stand(screen_of(), 120, 30) as (_, pilot):
        await pilot.press("y")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert "Copied to the terminal" in frame(pilot)
        assert pilot.app.clipboard.startswith("OOM jit_train_step, compile time (train.log:41822)")
    text = (tmp_path / ".local/state/tpuprof-tui/yank.txt").read_text()
    assert "OVER BY 16.06 GiB" in text


async def test_the_editor_needs_the_file() -> None:
    async with on_stand(screen_of()) as (_, pilot):
        assert "train/models.py:64 is not below this folder: start tpuprof-tui where" in await after(pilot, "e")
        assert "It has no known source line." in await after(pilot, "end", "e")


async def test_it_opens_above_the_main_app() -> None:
    app = make_app()
    async with on_stage(app, 100, 30) as pilot:
        await app.push_screen(screen_of())
        await pilot.pause()
        assert "OVER BY 16.06 GiB" in frame(pilot)
        await pilot.press("2", "j", "tab", "R", "3")
        assert app.main.tab_name == "overview" and app.main.popups.popup is None
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "OVER BY 16.06 GiB" in frame(pilot)
        assert "Top ops" in await after(pilot, "escape", "escape")


# --- the app around it


IN_TEXT = OomReport("compile", "hbm", "Ran out of memory in memory space hbm.", 7, used_bytes=2, capacity_bytes=1)


async def test_the_errors_of_a_log() -> None:
    app = oom_app(log_of(IN_TEXT), "train.log", terminal(), environ=ENVIRONMENT)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert isinstance(app.screen, TriageScreen) and app.screen.listed.triage.where == "train.log:7"
        await pilot.press("escape", "q")
    assert app.return_code == 0


async def test_who_holds_the_memory_is_said_and_opened(tmp_path: Path) -> None:
    arrays = read_live_arrays(str(written(tmp_path, step=3)))
    async with on_stand(
        TriageScreen((load_triage(),), ScreenLook.of(terminal()), environ=ENVIRONMENT, arrays=arrays)
    ) as (_, pilot):
        check_golden("oom-arrays-80x24", frame(pilot))
        assert "Who holds the memory" in await after(pilot, "?")
        await pilot.press("escape", "L")
        assert isinstance(pilot.app.screen, LiveArraysScreen) and "LIVE ARRAYS" in frame(pilot)
        await pilot.press("q")
        assert "LIVE ARRAYS" not in frame(pilot) and "SHORT BY" in frame(pilot)


async def test_without_a_device_memory_profile_the_key_says_how_to_bring_one() -> None:
    async with on_stand(screen_of()) as (screen, pilot):
        await pilot.press("L")
        assert screen.flash == "There is no device memory profile: tpuprof-tui oom LOG memory.prof"
