"""A stand for a screen of its own: an app with nothing else, and what the screen shows as text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

from tests.support.app.stage import check_cells
from tests.support.app.stage import frame as text_of

S = TypeVar("S", bound=Screen[None])

COLOURS = {
    "truecolor": {"COLORTERM": "truecolor"},
    "16": {"TERM": "screen"},
    "mono": {"NO_COLOR": "1"},
    "ascii": {"LANG": "C"},
}
"""What the environment holds of terminals with so many colours, and of one without Unicode."""


class Stand(App[None]):
    """An app with something below the screen."""

    def __init__(self, screen: Screen[None]) -> None:
        super().__init__(ansi_color=True)
        self.shown = screen

    def on_mount(self) -> None:
        self.push_screen(self.shown)


@asynccontextmanager
async def on_stand(screen: S, width: int = 80, height: int = 24) -> AsyncIterator[tuple[S, Pilot[None]]]:
    """The screen, drawn, and who presses its keys."""
    async with Stand(screen).run_test(size=(width, height)) as pilot:
        await pilot.pause()
        await pilot.pause()
        yield screen, pilot


def frame(pilot: Pilot[Any]) -> str:
    """The screen's text; every line has its width, every cell a style with a background."""
    check_cells(pilot.app)
    return text_of(pilot.app)
