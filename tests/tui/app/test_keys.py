"""What keys do."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot

from tests.support.app.scene import after, list_above, press, scene
from tests.support.app.stage import (
    ENVIRONMENT,
    ReadyPages,
    frame,
    make_app,
    overview_tab,
    settled,
    until,
)
from tests.support.made.pages import training_overview
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.draw.columns import PanelItem
from tpuprof.tui.pages import TAB_NAMES
from tpuprof.tui.pages.hosts.popup import HostsList
from tpuprof.tui.terminal.detect import ColorChoice, detect, kept_background
from tpuprof.tui.widgets.driver import Background


async def place_after(app: TpuprofApp, pilot: Pilot[None], *keys: str) -> PanelItem | None:
    """Where the cursor of the overview is after some keys."""
    await pilot.press(*keys)
    return overview_tab(app).place


@pytest.mark.parametrize("keys", ["q", "Q", "ctrl+c", "ctrl+q", "? Q", "? ctrl+c", "? ctrl+q"])
async def test_keys_that_leave_the_page_or_a_popup(keys: str) -> None:
    async with scene() as (app, pilot):
        await pilot.press(*keys.split())
        await pilot.pause()
        assert app._exit
    assert not app.is_running
    assert app.return_code == 0


@pytest.mark.parametrize(
    ("keys", "tab"),
    [
        (("3", "tab"), 3),
        (("tab", "tab", "shift+tab"), 1),
        (("question_mark", "tab", "escape"), 0),
        (("R", "shift+tab", "escape"), 0),
        (("slash", "tab", "x", "escape"), 0),
        (("slash", "tab", "escape", "tab"), 1),
    ],
)
async def test_tab_waits_its_turn_and_leaves_what_is_open_alone(keys: tuple[str, ...], tab: int) -> None:
    async with scene() as (app, pilot):
        for key in keys:  # in one go, as a terminal hands on what was typed fast
            app.post_message(Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        assert app.main.tab_name == TAB_NAMES[tab]
        assert app.focused is None


async def test_cursor_over_ops_and_steps() -> None:
    async with scene() as (app, pilot):
        at = partial(place_after, app, pilot)
        assert await at() == PanelItem("findings", 0), "the answer first"
        assert await at("j", "down") == PanelItem("owners", 0)
        assert await at("j", "j", "k") == PanelItem("owners", 1)
        assert await at("up", "up") == PanelItem("findings", 1)
        assert await at("up", "up", "up") == PanelItem("findings", 0)
        assert await at("G") == PanelItem("ops", 9)
        assert await at("j") == PanelItem("ops", 9)
        assert await at("l") == PanelItem("steps", 3), "the slowest step first"
        assert await at("right") == PanelItem("steps", 4)
        assert await at("h", "left") == PanelItem("steps", 2)
        assert await at("g") == PanelItem("steps", 0)
        assert await at("h") == PanelItem("steps", 0)
        assert await at("end") == PanelItem("steps", 5)
        assert await at("j") == PanelItem("ops", 9), "the other panel's cursor has stayed where it was"


async def test_what_is_selected_is_always_in_sight() -> None:
    async with scene() as (app, pilot):
        mark = app.main.look.glyphs.mark
        for _ in range(18):
            await pilot.press("j")
            assert sum(mark in line for line in frame(app).splitlines()) == 1
        await pilot.press("pagedown", "k")
        assert sum(mark in line for line in frame(app).splitlines()) == 1


async def test_detail_line_names_the_op_in_full() -> None:
    async with scene(width=120, height=40) as (app, pilot):
        assert "→ " in frame(app).splitlines()[-2], "what to try"
        await pilot.press(*"jjjjjjjjjjj")
        assert "op jit(train_step)/transpose(jvp(Model))/layer_0/mlp/dot_general" in frame(app).splitlines()[-2]
        assert "step 103  starts at 546 ms  input wait 49.9%" in (await after(pilot, "l")).splitlines()[-2]


async def test_resize_keeps_cursor_and_popup() -> None:
    async with scene(keys=["G", "W"]) as (app, pilot):
        for width, height in ((120, 40), (40, 10), (70, 20)):
            await pilot.resize_terminal(width, height)
            await until(pilot, lambda size=(width, height): app.screen.size == size)  # type: ignore[misc]
            await pilot.pause()
        assert overview_tab(app).place == PanelItem("ops", 9)
        assert "Verdict and notes" in frame(app)
        assert all(len(line) <= 70 for line in frame(app).splitlines())
        assert app.main.look.glyphs.mark in await after(pilot, "escape")


# --- search


async def test_search_counts_while_typing_and_moves() -> None:
    async with scene() as (app, pilot):
        at = partial(place_after, app, pilot)

        def footer() -> str:
            return frame(app).splitlines()[-1]

        assert await at("/", "1", "0") == PanelItem("steps", 0)
        assert "6 steps" in footer()
        assert await at("3") == PanelItem("steps", 3)
        assert "1 step " in footer()
        await pilot.press("backspace", "backspace", "backspace", "a", "l", "l", "-")
        assert "2 ops" in footer()
        assert await at("enter") == PanelItem("ops", 2)
        assert await at("n") == PanelItem("ops", 7)
        assert "match 2 of 2" in footer()
        assert await at("n") == PanelItem("ops", 2)
        assert await at("N") == PanelItem("ops", 7)
        assert await at("escape", "n") == PanelItem("ops", 7), "the search has ended"


async def test_backspace_in_an_empty_prompt_leaves_it() -> None:
    async with scene(keys=["R", "/", "backspace", "escape", "/", "backspace", "2"]) as (app, _):
        assert app.main.tab_name == "input"


# --- popups


async def test_choosing_a_host_reads_that_one_only() -> None:
    pages = ReadyPages(training_overview())
    async with scene(make_app(pages)) as (app, pilot):
        assert "STRAGGLER" in await after(pilot, "H")
        assert list_above(app, HostsList).cursor == 4, "the cursor is on the host that delays the others"
        await press(pilot, "S", "S", "l", "escape", "k", "b", "G", "enter")
        assert app.main.current_run.host == "host1"
        assert "host host1" in frame(app)
        await press(pilot, "H")
        await pilot.press("q")
        assert app.main.current_run.host == "host1"
        await press(pilot, "H", "0")
        assert app.main.current_run.host is None
    assert pages.asked == [None, "host1", None]


# --- copying


async def test_what_is_copied_is_one_line_that_no_shell_obeys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may hold the end of a bracketed paste and a newline: pasted as it is, what follows would be run."""
    (tmp_path / "bin").mkdir()
    tmux = tmp_path / "bin" / "tmux"
    tmux.write_text(f"#!/bin/sh\ncat > {tmp_path}/tmux.txt\n")
    tmux.chmod(0o700)
    file = tmp_path / "tpuprof-tui" / "yank.txt"
    file.parent.mkdir()
    file.write_text("of an earlier version")
    file.chmod(0o644)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    async with scene(make_app(), width=160, height=40) as (app, pilot):
        app.main.environ = {"TMUX": "socket,1,0"}
        app.main.copy("\x1b[201~\nrm -rf ~\r\x9b\u202e\udcff")
        await settled(pilot)
        assert app.clipboard == "␛[201~␊rm -rf ~␍\\x9b\\u202e\\xff"
    for copy, ending in ((file, "\n"), (tmp_path / "tmux.txt", "")):
        assert copy.read_text() == "␛[201~␊rm -rf ~␍\\x9b\\u202e\\xff" + ending
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("color", ["16", "256"])
async def test_colours_follow_the_terminal(color: ColorChoice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it answers, and then the key, which is kept but for the few that are on the terminal's own background."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with scene(make_app(options=AppOptions(color=color, theme="colour-blind"))) as (app, pilot):
        assert app.main.look.palette.light is (None if color == "16" else False)
        for answered in (True, False):
            app.post_message(Background(*[b"ff" if answered else b"00"] * 3))
            await settled(pilot)
            assert app.main.look.palette.light is answered
        await pilot.press("T")
        now = overview_tab(app).look.palette
        assert now.light and now.theme == app.main.look.palette.theme == "colour-blind"
        app.post_message(Background(b"00", b"00", b"00"))
        await settled(pilot)
        assert app.main.look.palette.light is (color == "256")
    assert kept_background() and detect(ENVIRONMENT, kept=True).light
