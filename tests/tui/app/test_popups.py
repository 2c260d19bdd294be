"""Every popup of the program: its keys in the footer, its help on `?`, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.app import App

from tests.parsers.session.diff.phased import served
from tests.support.app.scene import press, scene
from tests.support.app.stage import ENVIRONMENT, check_golden, make_app, settled
from tests.support.app.stand import frame
from tests.support.files.pprof import pprof, training
from tests.support.made.oom import REPORT
from tpuprof.parsers.formats.pprof.messages import read_messages
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.memory.live_arrays import LiveArrays, live_arrays
from tpuprof.parsers.memory.oom.model import OomLog
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import plain
from tpuprof.tui.pages import load_above
from tpuprof.tui.pages.commands.diff.screen import APP as DIFF_APP
from tpuprof.tui.pages.commands.live_arrays.screen import APP as LIVE_ARRAYS_APP
from tpuprof.tui.pages.commands.oom.screen import APP as OOM_APP
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.widgets.chrome import footer
from tpuprof.tui.widgets.lists.popup import PanelList
from tpuprof.tui.widgets.popup import Popup
from tpuprof.tui.widgets.screen import AppScreen

MAIN = {
    "help": ["question_mark"],
    "palette": ["ctrl+p"],
    "palette, typed into": ["ctrl+p", "r", "u"],
    "runs": ["R"],
    "runs, filtered": ["R", "slash", "t"],
    "runs, one marked": ["R", "c"],
    "hosts": ["H"],
    "order": ["3", "s"],
    "a step of hosts": ["H", "l"],
    "notes": ["W"],
    "finding": ["enter"],
    "figures": ["i"],
    "step": ["l", "enter"],
    "capture": ["C"],
    "op": ["3", "v", "j", "enter"],
    "event": ["4", "j", "j", "j", "full_stop", "enter"],
    "measured": ["4", "i"],
    "measured, tracks": ["4", "i", "b", "b"],
    "buffer": ["5", "enter"],
    "modules": ["5", "m"],
    "allocators": ["5", "v", "m"],
}
"""Keys that open each popup of the main screen."""

OOM = (["1", "1"], ["enter"], ["question_mark"])  # advice, a buffer of an error, help
DIFF = {"change": ["enter"], "setting": ["8", "enter"], "help of a comparison": ["question_mark"]}


@pytest.fixture(scope="module")
def diff_app(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], App[Any]]:
    diff = served(tmp_path_factory.mktemp("served"))
    return lambda: DIFF_APP(diff, detect(ENVIRONMENT), environ=ENVIRONMENT)


def oom_app() -> App[Any]:
    return OOM_APP(OomLog((REPORT,), (), 50_000, 4_000_000), "train.log", detect(ENVIRONMENT), environ=ENVIRONMENT)


def held_arrays() -> LiveArrays:
    return live_arrays(read_messages(MemorySource(pprof(training(12))), "a.prof"), "a.prof", "/runs/a.prof")


def arrays_app() -> App[Any]:
    return LIVE_ARRAYS_APP(held_arrays(), detect(ENVIRONMENT), environ=ENVIRONMENT)


async def walk(app: App[Any], keys: list[str], golden: str = "") -> None:
    """Opens a popup and its help, and goes back."""
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, *keys)
        screen = app.screen
        assert isinstance(screen, AppScreen)
        popup = screen.popups.popup
        assert popup is not None and popup.about is not None, "nothing has opened"
        foot = frame(pilot).splitlines()[-1]
        assert all(f" {key} {label}" in foot for key, label in footer(popup.keys)), foot
        assert "? help" in foot and foot.endswith(popup.leave_key.short)
        await pilot.press("?")
        await pilot.pause()
        shown = frame(pilot)
        above = screen.popups.popup
        assert above is not None and above is not popup and screen.popup is popup
        assert "Help: " in shown and "Keys" in shown and shown.splitlines()[-1].endswith("Esc back")
        text = "\n".join(map(plain, popup.help_lines(Pen(76, screen.look.glyphs))))
        meaning = text.partition("What this is")[2]
        assert len(meaning.split()) > 10, "no word on what it shows"
        assert all(key.shown in text for key in popup.keys if key.shown != "?")
        if golden:
            check_golden(f"popup-help-{golden}-80x24", shown)
        await pilot.press("?")  # a help has none of its own
        assert screen.popups.popup is above
        await pilot.press("escape")
        await pilot.pause()
        assert screen.popups.popup is popup and foot == frame(pilot).splitlines()[-1]
        for _ in range(3):  # a filter, a mark, a step first
            if screen.popups.popup is not None:
                await pilot.press("escape")
        await settled(pilot)
        assert screen.popups.popup is None


@pytest.mark.parametrize("name", MAIN)
async def test_popups_of_the_pages(name: str) -> None:
    golden = {"hosts": "hosts", "measured": "measured", "op": "op"}.get(name, "")
    await walk(make_app(), MAIN[name], golden)


@pytest.mark.parametrize(
    ("make", "keys"), [*((oom_app, keys) for keys in OOM), (arrays_app, ["enter"]), (arrays_app, ["question_mark"])]
)
async def test_popups_of_a_screen(make: Callable[[], App[Any]], keys: list[str]) -> None:
    await walk(make(), keys)


@pytest.mark.parametrize("name", DIFF)
async def test_popups_of_a_comparison(name: str, diff_app: Callable[[], App[Any]]) -> None:
    await walk(diff_app(), DIFF[name])


def test_every_kind_of_popup_is_walked_through() -> None:
    for name in ("runs", "hosts"):
        load_above(name)

    def kinds(of: type[Any]) -> set[type[Any]]:
        below = of.__subclasses__()
        return {kind for one in below for kind in kinds(one)} | {one for one in below if not one.__subclasses__()}

    names = {kind.__name__ for of in (Popup, PanelList) for kind in kinds(of) if kind.__module__.startswith("tpuprof")}
    lists = {"CommandList", "RunsList", "HostsList", "EventList"}
    assert names == {"TextPopup", "SortPopup", "PromptPopup", *lists}


@pytest.mark.parametrize("name", MAIN)
async def test_a_popup_opens_on_a_screen_of_any_size(name: str) -> None:
    """A terminal may be made so small that nothing fits, and the app goes on."""
    *before, last = MAIN[name]
    async with scene(keys=before) as (app, pilot):
        await pilot.resize_terminal(20, 9)
        await press(pilot, last)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert app.main.popups.popup is not None
