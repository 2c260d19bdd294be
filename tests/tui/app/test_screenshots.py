"""The pictures of the README: real screens over the demo profile, kept up to date by this test."""

from __future__ import annotations

import asyncio
import html
import os
import re
from pathlib import Path

import pytest

from tests.support.app.stage import ENVIRONMENT, make_demo_app, on_stage, settled
from tests.support.made.oom import REPORT
from tpuprof.parsers.memory.oom.model import OomLog
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.pages.commands.oom.app import OomApp
from tpuprof.tui.terminal.detect import detect

SCREENSHOTS = Path(__file__).parents[3] / "screenshots"
KEYS = {
    "overview": [],
    "step": ["l", "enter"],
    "finding": ["enter"],
    "input-pipeline": ["2", "h"],
    "op-profile": ["3", "j", "l", "j", "j", "j"],
    "roofline": ["3", "V", "j"],
    "memory": ["5", "j"],
    "memory-map": ["5", "a", *"jj"],
    "timeline": ["4", *["right_square_bracket"] * 2, *"jjjjjj", *["full_stop"] * 2, *"wwww", *["full_stop"] * 13],
}


def picture(keys: list[str]) -> str:
    """The screen after some keys as SVG, without the fonts that the exporter would load from elsewhere."""
    options = AppOptions(demo=True)
    app = make_demo_app(options, {**ENVIRONMENT, "COLORTERM": "truecolor"})

    async def stage() -> str:
        async with on_stage(app, 120, 40) as pilot:
            for key in keys:
                await pilot.press(key)
                await settled(pilot)
            return app.export_screenshot()

    return without_fonts(asyncio.run(stage()))


def oom_picture() -> str:
    """The screen over a log with an error, on its second advice."""
    environ = {**ENVIRONMENT, "COLORTERM": "truecolor"}
    app = OomApp("train.log", detect(environ), log=OomLog((REPORT,), (), 50_000, 4_000_000), environ=environ)

    async def stage() -> str:
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            await pilot.press("2")
            await pilot.pause()
            return app.export_screenshot()

    return without_fonts(asyncio.run(stage()))


def without_fonts(svg: str) -> str:
    """The picture without what it would load from elsewhere."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def words(svg: str) -> str:
    """What a picture says, without how it looks: that depends on the versions of Textual and Rich."""
    return html.unescape("\n".join(re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL))).replace("\xa0", " ")


def check_picture(name: str, svg: str) -> None:
    """Compares with the stored picture, or stores it."""
    path = SCREENSHOTS / f"{name}.svg"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(svg, encoding="utf-8")
    assert words(svg) == words(path.read_text(encoding="utf-8")), f"{path.name} is old: UPDATE_GOLDEN=1 renews it"


@pytest.mark.parametrize("name", KEYS)
def test_pictures_show_what_the_screen_shows(name: str) -> None:
    svg = picture(KEYS[name])
    assert "SIMULATED" in words(svg)
    check_picture(name, svg)


def test_the_picture_of_an_error() -> None:
    svg = oom_picture()
    assert "OVER BY" in words(svg)
    check_picture("oom", svg)
