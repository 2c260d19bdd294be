"""A stand for a screen of its own: an app with nothing else, and what the screen shows as text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen


class Stand(App[None]):
    """An app with something below the screen."""

    def __init__(self, screen: Screen[None]) -> None:
        super().__init__(ansi_color=True)
        self.shown = screen

    def on_mount(self) -> None:
        """Opens the screen."""
        self.push_screen(self.shown)


@asynccontextmanager
async def on_stand(screen: Screen[None], width: int = 80, height: int = 24) -> AsyncIterator[Pilot[None]]:
    """The screen, drawn."""
    async with Stand(screen).run_test(size=(width, height)) as pilot:
        await pilot.pause()
        await pilot.pause()
        yield pilot


def frame(pilot: Pilot[Any]) -> str:
    """The screen's text; every line has its width, every cell a style with a background."""
    lines = []
    for strip in pilot.app.screen._compositor.render_strips():
        assert strip.cell_length == pilot.app.size.width, strip.text
        assert all(segment.style is not None and segment.style.bgcolor is not None for segment in strip)
        lines.append(strip.text.rstrip())
    return "\n".join(lines) + "\n"
