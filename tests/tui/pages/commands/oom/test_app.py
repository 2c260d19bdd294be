"""The screen for memory that is full, key by key, and the app around it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.app.scene import after
from tests.support.app.stage import ENVIRONMENT, check_golden, make_app, on_stage
from tests.support.app.stand import COLOURS, frame, on_stand
from tests.support.files.pprof import written
from tests.support.made.oom import BUFFERS, load_triage, log_of, made_up_triage, made_up_trial
from tpuprof.parsers.base.errors import EXIT_INTERRUPTED, EXIT_UNREADABLE, Cancelled, ProfileError
from tpuprof.parsers.memory.live_arrays import read_live_arrays
from tpuprof.parsers.memory.oom.model import OomLog, OomReport
from tpuprof.parsers.memory.oom.triage import Triage
from tpuprof.tui.pages.commands.live_arrays.screen import LiveArraysScreen
from tpuprof.tui.pages.commands.oom.app import OomApp, ScanScreen
from tpuprof.tui.pages.commands.oom.screen import TriageScreen
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
    screen.view = replace(screen.view, is_trying=True)
    assert [key for key, _ in footer(screen.keys)] == ["space", "j k", "v", "?", "q"]
    bare = screen_of((replace(TRIAGES[0], need=replace(TRIAGES[0].need, buffers=()), advice=(), toggles=()),))
    assert [key for key, _ in footer(bare.keys)] == ["y", "?", "q"]


async def test_numbers_choose_advice_and_open_it() -> None:
    async with on_stand(screen_of()) as (screen, pilot):
        await pilot.press("3")
        assert screen.view.advice == 2 and screen.row is not None and screen.row.buffers == (5,)
        await pilot.press("3")
        assert "2.00 GiB - 64.0 MiB = 1.94 GiB" in frame(pilot) and "Advice 3" in frame(pilot)
        await pilot.press("escape", "escape")
        assert screen.view.advice is None
        assert "There is no advice 9." in await after(pilot, "9")


async def test_the_cursor_moves_and_opens_a_card() -> None:
    async with on_stand(screen_of(), 60, 15) as (screen, pilot):
        await pilot.press("j", "j", "k")
        assert screen.view.cursor == 1
        await pilot.press("end")
        assert screen.view.cursor == len(BUFFERS) - 1
        assert "broadcast.666" in frame(pilot)
        await pilot.press("home", "pagedown", "ctrl+u", "enter")
        assert "advice 1" in frame(pilot) or "temporary" in frame(pilot)
        assert screen.popups.popup is not None


async def test_the_card_shows_the_source_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "train"
    folder.mkdir()
    (folder / "models.py").write_text("".join(f"line {number}\n" for number in range(1, 90)))
    monkeypatch.chdir(tmp_path)
    async with on_stand(screen_of()) as (_, pilot):
        assert "▸    53 line 53" in await after(pilot, "j", "enter")


async def test_sorting_grouping_and_filtering() -> None:
    async with on_stand(screen_of()) as (screen, pilot):
        assert "Sorted by padding." in await after(pilot, "s")
        assert screen.row is not None and screen.row.buffers == (5,)
        assert "Sorted by padding, reversed." in await after(pilot, "S")
        assert screen.row is not None and screen.row.buffers != (5,) and screen.rows[-1].buffers == (5,)
        assert "Source lines (6 of 11 buffers)" in await after(pilot, "b")
        assert "3 found" in await after(pilot, "b", "/", *"attn", "backspace", "backspace", "backspace", *"ttention")
        assert "(3 of 11)" in await after(pilot, "enter")
        await pilot.press("escape")
        assert len(screen.rows) == len(BUFFERS)
        assert "no buffer has these words" in await after(pilot, "/", *"qqq")
        await pilot.press("escape", "j", "enter")
        assert screen.popups.popup is not None


async def test_what_if_adds_up_and_is_an_estimate() -> None:
    async with on_stand(screen_of()) as (screen, pilot):
        await pilot.press("v")
        assert "estimates from the listed buffers" in frame(pilot) and "[ ]" in frame(pilot)
        await pilot.press("space")
        assert "[x]" in frame(pilot) and "estimate 21.90 GiB   STILL OVER BY" in frame(pilot)
        assert "FITS, " in await after(pilot, "4")
        await pilot.press("2", "1")
        assert screen.trial is not None and screen.trial.chosen == {"batch"}
        assert "Advice 1 can't be tried" in frame(pilot)
        assert "There is no change 9." in await after(pilot, "9")
        await pilot.press("k", "enter")
        assert screen.trial.chosen == {"batch", "bf16"}
        await pilot.press("v")
        assert "What to do first" in frame(pilot) and "estimate" in frame(pilot)
        await pilot.press("escape")
        assert screen.trial is None and "needs 31.81 GiB" in frame(pilot)


async def test_a_module_with_nothing_to_try_says_why() -> None:
    triage = made_up_triage()
    need = replace(triage.need, memory_space="sflag")
    async with on_stand(screen_of([replace(triage, kind="module", need=need, toggles=(), advice=())]), 120, 30) as (
        _,
        pilot,
    ):
        await pilot.press("v")
        assert "There is nothing to try: the compiler chooses what a module keeps in SFlag." in frame(pilot)


async def test_other_errors_of_the_log() -> None:
    async with on_stand(screen_of()) as (_, pilot):
        assert "error 1 of 2" in frame(pilot)
        await pilot.press("]")
        assert "error 2 of 2" in frame(pilot) and "SHORT BY 6.02 GiB" in frame(pilot)
        assert "SHORT BY 6.02 GiB" in await after(pilot, "j", "enter", "v", "/", "e", "1", "s", "b")
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
        assert "train/models.py:64 is not on this machine." in await after(pilot, "e")
        assert "It has no known source line." in await after(pilot, "end", "e")


async def test_the_mouse_points() -> None:
    async with on_stand(screen_of()) as (screen, pilot):
        row = next(at for at, line in enumerate(frame(pilot).splitlines()) if line.startswith("  3 "))
        await pilot.click("#body", offset=(5, row - 1))
        assert screen.view.cursor == 2 and screen.popups.popup is None
        await pilot.click("#body", offset=(5, row - 1))
        assert screen.popups.popup is not None


async def test_leaving_goes_back_to_what_was_below() -> None:
    async with on_stand(screen_of()) as (_, pilot):
        await pilot.press("q")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, TriageScreen) and pilot.app.is_running


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


async def test_a_small_terminal_gets_a_sentence_and_a_larger_one_the_page_again() -> None:
    async with on_stand(screen_of(), 50, 12) as (screen, pilot):
        assert "needs 60x15 cells" in frame(pilot)
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert "OVER BY 16.06 GiB" in frame(pilot)
        await pilot.press("end", "enter")
        await pilot.resize_terminal(60, 15)
        await pilot.pause()
        assert screen.view.cursor == len(BUFFERS) - 1 and screen.popups.popup is not None


# --- the app around it


IN_TEXT = OomReport("compile", "hbm", "Ran out of memory in memory space hbm.", 7, used_bytes=2, capacity_bytes=1)


async def test_a_log_that_is_read_opens_at_once() -> None:
    app = OomApp("train.log", terminal(), log=log_of(IN_TEXT), environ=ENVIRONMENT)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert isinstance(app.screen, TriageScreen) and app.screen.triage.where == "train.log:7"
        await pilot.press("escape", "q")
    assert app.return_code == 0


async def test_reading_shows_progress_and_then_the_errors() -> None:
    let_go = threading.Event()

    def scan(on_progress: Callable[[int], None], is_cancelled: Callable[[], bool]) -> OomLog:
        on_progress(40_000_000)
        assert let_go.wait(30) and not is_cancelled()
        return log_of(IN_TEXT)

    app = OomApp("train.log", terminal(), scan=scan, total=100_000_000, environ=ENVIRONMENT)
    async with app.run_test(size=(80, 24)) as pilot:
        while "40.0 MB of 100 MB" not in "".join(s.text for s in app.screen._compositor.render_strips()):
            await pilot.pause(0.01)
        let_go.set()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.pause()
        assert isinstance(app.screen, TriageScreen)


async def test_escape_stops_the_reading() -> None:
    stopped = threading.Event()

    def scan(on_progress: Callable[[int], None], is_cancelled: Callable[[], bool]) -> OomLog:
        while not is_cancelled():
            on_progress(1)
        stopped.set()
        raise Cancelled

    app = OomApp("train.log", terminal(), scan=scan, total=100, environ=ENVIRONMENT)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert isinstance(app.screen, ScanScreen)
        await pilot.press("escape")
        await pilot.pause()
    assert app.return_code == EXIT_INTERRUPTED
    assert stopped.wait(30)


@pytest.mark.parametrize("fails", [True, False])
async def test_a_log_with_nothing_in_it_ends_the_app(fails: bool) -> None:
    def scan(on_progress: Callable[[int], None], is_cancelled: Callable[[], bool]) -> OomLog:
        if fails:
            raise ProfileError("unreadable", "train.log can't be read.", "", EXIT_UNREADABLE)
        return log_of()

    app = OomApp("train.log", terminal(), scan=scan, total=100, environ=ENVIRONMENT)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
    assert (app.problem is not None) == fails
    assert (app.oom_log is not None) != fails
    assert app.return_code == (EXIT_UNREADABLE if fails else 0)


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
