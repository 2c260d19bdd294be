"""Scenes: the app on a stage after some keys, for tests that go on from there or compare what they see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from textual.pilot import Pilot

from tests.support.app.stage import ENVIRONMENT, check_cells, frame, make_app, on_stage, settled
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.loader import find_hlo, open_hlo_session
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.widgets.lists.popup import ListPopup, PanelList

ShownList = TypeVar("ShownList", bound=PanelList[Any])

Scene = AbstractAsyncContextManager[tuple[TpuprofApp, Pilot[None]]]
"""What `async with` opens: the app and who presses its keys."""


def app_over(path: Path | str, options: AppOptions | None = None) -> TpuprofApp:
    """The app over what lies on this machine, as the command line opens it."""
    options = options or AppOptions()
    terminal = detect(ENVIRONMENT, color=options.color, ascii_only=options.ascii, theme=options.theme)
    find = partial(find_hlo, as_text=options.shows_program)
    of_hlo = {"find": find, "open_session": partial(open_hlo_session, device=options.device)}
    ways: dict[str, Any] = of_hlo if options.only_hlo else {}
    return TpuprofApp(str(path), options, terminal, environ=ENVIRONMENT, **ways)


def list_above(app: TpuprofApp, kind: type[ShownList]) -> ShownList:
    """The list in the popup that is open."""
    popup = app.main.popups.popup
    assert isinstance(popup, ListPopup) and isinstance(popup.listed, kind)
    return popup.listed


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Presses keys; before the next one, the app has done what the last one asked for."""
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


async def after(pilot: Pilot[None], *keys: str) -> str:
    """The screen's text after some keys; every cell is painted."""
    await press(pilot, *keys)
    check_cells(pilot.app)
    return frame(pilot.app)


@asynccontextmanager
async def scene(
    app: TpuprofApp | None = None, keys: Sequence[str] = (), width: int = 80, height: int = 24
) -> AsyncIterator[tuple[TpuprofApp, Pilot[None]]]:
    """The app after some keys; over made-up runs where none is given."""
    app = app or make_app()
    async with on_stage(app, width, height) as pilot:
        await press(pilot, *keys)
        yield app, pilot


def shown(app: TpuprofApp | None = None, keys: Sequence[str] = (), width: int = 80, height: int = 24) -> str:
    """The screen's text after some keys; every cell is painted."""

    async def played() -> str:
        async with scene(app, keys, width, height) as (_, pilot):
            return await after(pilot)

    return asyncio.run(played())
