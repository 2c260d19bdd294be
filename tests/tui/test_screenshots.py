"""The pictures of the README: real screens over the demo profile, kept up to date by this test."""

from __future__ import annotations

import asyncio
import html
import os
import re
from pathlib import Path

import pytest

from tests.tui.stage import ENVIRONMENT, on_stage, settled
from tpuprof.tui.demo import demo_path
from tpuprof.tui.options import AppOptions
from tpuprof.tui.shell import TpuprofApp
from tpuprof.tui.terminal import detect

SCREENSHOTS = Path(__file__).parents[2] / "screenshots"
KEYS = {
    "overview": [],
    "step": ["l", "enter"],
    "finding": ["enter"],
    "input-pipeline": ["2", "h"],
    "op-profile": ["3", "j", "l", "j", "j", "j"],
    "roofline": ["3", "V", "j"],
    "timeline": ["4", *["right_square_bracket"] * 2, *"jjjjjj", *["full_stop"] * 2, *"wwww", *["full_stop"] * 13],
}


def picture(keys: list[str]) -> str:
    """The screen after some keys as SVG, without the fonts that the exporter would load from elsewhere."""
    options = AppOptions(demo=True)
    environ = {**ENVIRONMENT, "COLORTERM": "truecolor"}
    app = TpuprofApp(demo_path(), options, detect(environ), environ=environ)

    async def stage() -> str:
        async with on_stage(app, 120, 40) as pilot:
            for key in keys:
                await pilot.press(key)
                await settled(pilot)
            return app.export_screenshot()

    return re.sub(r"@font-face \{.*?\}\s*", "", asyncio.run(stage()), flags=re.DOTALL)


def words(svg: str) -> str:
    """What a picture says, without how it looks: that depends on the versions of Textual and Rich."""
    return html.unescape("\n".join(re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL))).replace("\xa0", " ")


@pytest.mark.parametrize("name", KEYS)
def test_pictures_show_what_the_screen_shows(name: str) -> None:
    svg, path = picture(KEYS[name]), SCREENSHOTS / f"{name}.svg"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(svg, encoding="utf-8")
    assert "SIMULATED" in words(svg)
    assert words(svg) == words(path.read_text(encoding="utf-8")), f"{path.name} is old: UPDATE_GOLDEN=1 renews it"
