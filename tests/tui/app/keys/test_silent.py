"""Every key of the grammar on every page, popup and screen: something changes, or the last line says why not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.app import App

from tests.parsers.session.diff.phased import served
from tests.support.app.stage import ENVIRONMENT, make_app, make_demo_app, settled, strips
from tests.tui.app.test_popups import arrays_app, oom_app
from tpuprof.tui.pages.commands.diff.screen import APP as DIFF_APP
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.terminal.grammar import READING, VERBS

LEFT_OUT = ("leave", "suspend", "repaint", "quit", "background", "edit", "capture", "reload")
"""Verbs that leave, lend the terminal away, change its colours, or read again what is made up here."""
KEYS = [verb.typed[0] for verb in VERBS if verb not in READING and verb.name not in LEFT_OUT]

PAGES: dict[str, list[str]] = {
    "overview": ["1"],
    "steps": ["1", "l"],
    "input": ["2"],
    "tree": ["3"],
    "ops": ["3", "v"],
    "framework ops": ["3", "v", "v"],
    "roofline": ["3", "v", "v", "v"],
    "timeline": ["4"],
    "event": ["4", "j", "j", "full_stop"],
    "memory": ["5"],
    "allocators": ["5", "v"],
    "map": ["5", "v", "v"],
    "runs": ["R"],
    "hosts": ["H"],
    "card": ["1", "enter"],
    "help": ["question_mark"],
    "notes": ["W"],
    "measured": ["4", "i"],
    "found": ["4", "/", *"fusion", "enter"],
    "modules": ["5", "m"],
    "graph": ["3", "v", "u"],
    "program": ["3", "v", "P"],
}

OF_THE_DEMO = ("overview", "steps", "graph", "program")
"""What needs more than pages that are made up."""


def looks(app: App[Any]) -> str:
    """All that stands on the screen, and which screen that is."""
    return "\n".join([strip.text.rstrip() for strip in strips(app)] + [str(app.screen)])


def place(app: App[Any]) -> tuple[object, ...]:
    """Where keys go: a screen, its popup or prompt, and the view of its tab, wherever its cursor is."""
    screen: Any = app.screen
    popup = getattr(getattr(screen, "popups", None), "popup", None)
    tab = getattr(screen, "tab", None)
    return (
        screen,
        popup,
        getattr(screen, "prompt", None),
        getattr(screen, "tab_name", ""),
        getattr(tab, "view_name", ""),
    )


async def silent_keys(app: App[Any], opening: Sequence[str]) -> list[str]:
    """The keys after which everything looks as before."""
    silent = []
    async with app.run_test(size=(80, 24)) as pilot:

        async def press(*keys: str) -> None:
            for key in keys:
                await pilot.press(key)
                await pilot.pause()
                if any(worker.is_running for worker in app.workers):
                    await settled(pilot)

        async def home() -> None:
            for _ in range(9):
                before = looks(app)
                await press("escape")
                if looks(app) == before:
                    break
            await press(*opening)

        await settled(pilot)
        await press(*opening)
        start = place(app)
        for key in KEYS:
            app.screen.flash = ""  # type: ignore[attr-defined]
            app.screen.redraw()  # type: ignore[attr-defined]
            before = looks(app)
            await press(key)
            if looks(app) == before:
                silent.append(key)
            if place(app) != start:
                await home()
                start = place(app)
    return silent


@pytest.mark.parametrize("page", PAGES)
def test_no_key_is_silent_on_a_tab_or_popup(page: str) -> None:
    app = make_demo_app() if page in OF_THE_DEMO else make_app()
    assert asyncio.run(silent_keys(app, PAGES[page])) == []


@pytest.mark.parametrize("make", [oom_app, arrays_app])
def test_no_key_is_silent_on_a_screen(make: Callable[[], App[Any]]) -> None:
    assert asyncio.run(silent_keys(make(), [])) == []


@pytest.mark.parametrize("view", ["1", "4"], ids=["ops", "steps"])
def test_no_key_is_silent_in_a_comparison(view: str, tmp_path: Path) -> None:
    diff = served(tmp_path)
    assert asyncio.run(silent_keys(DIFF_APP(diff, detect(ENVIRONMENT), environ=ENVIRONMENT), [view])) == []
