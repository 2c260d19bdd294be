"""What stands on the screen: frames at the sizes and in the character sets that matter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.support.app.stage import ReadyPages, check_cells, check_golden, frame, make_app, on_stage
from tests.support.made import pages
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.terminal.detect import ColorChoice

PAGES: dict[str, Overview] = {
    "training": pages.training_overview(),
    "inference": pages.inference_overview(),
    "device-less": pages.device_less_overview(),
    "serving": pages.serving_overview(),
    "requests": pages.requests_overview(),
}


def shown(
    page: str = "training",
    width: int = 80,
    height: int = 24,
    keys: Sequence[str] = (),
    options: AppOptions | None = None,
) -> str:
    (text,) = all_shown([keys], page, width, height, options)
    return text


def all_shown(
    sequences: Sequence[Sequence[str]],
    page: str = "training",
    width: int = 80,
    height: int = 24,
    options: AppOptions | None = None,
) -> list[str]:
    """The frames after some keys, each time from the overview."""

    async def run() -> list[str]:
        app = make_app(ReadyPages(PAGES[page]), options=options)
        frames = []
        async with on_stage(app, width, height) as pilot:
            for keys in sequences:
                await pilot.press(*keys)
                await pilot.pause()
                check_cells(app)
                frames.append(frame(app))
                await pilot.press("escape", "escape")
        return frames

    return asyncio.run(run())


FRAMES: dict[str, tuple[str, Sequence[str]]] = {
    **{f"overview-{page}": (page, "") for page in PAGES},
    "latencies-serving": ("serving", "v"),
    "latencies-requests": ("requests", "v"),
    "figures-overview": ("training", "i"),
    "figures-overview-more": ("training", ("i", "pagedown")),
    "figures-input": ("training", "2i"),
    "input": ("training", "2"),
}
"""What stands on the screen of a page after some keys, at both sizes."""

SMALL: dict[str, tuple[str, Sequence[str]]] = {
    "latencies-module": ("serving", ("v", "j", "enter")),
    "latencies-help": ("serving", "vvv?"),
    "help": ("training", "?"),
    "palette": ("training", ["ctrl+p"]),
    "palette-filtered": ("training", ["ctrl+p", *"run"]),
    "runs": ("training", "R"),
    "hosts": ("training", "H"),
    "notes": ("training", "W"),
    "finding-details": ("training", ["enter"]),
    "op-details": ("training", ["G", *"kkkkkkkkk", "enter"]),
    "owner-details": ("training", ["j", "j", "j", "enter"]),
    "step-details": ("training", ["l", "enter"]),
    "search": ("training", "/dot"),
}
"""At the smaller size alone: most is what opens above a page."""


@pytest.mark.parametrize("name", [*FRAMES, *SMALL])
def test_frames(name: str) -> None:
    page, keys = (FRAMES | SMALL)[name]
    for width, height in ((80, 24), (120, 40)) if name in FRAMES else ((80, 24),):
        check_golden(f"{name}-{width}x{height}", shown(page, width, height, keys))


@pytest.mark.parametrize(("name", "keys"), [("latencies-requests", "v"), ("overview-training", "")])
def test_frames_in_ascii(name: str, keys: str) -> None:
    text = shown(name.partition("-")[2], keys=keys, options=AppOptions(ascii=True))
    assert text.isascii()
    check_golden(f"{name}-80x24-ascii", text)


def test_everything_is_ascii_where_that_is_asked_for() -> None:
    sequences = ("?", ["ctrl+p"], "R", "H", "W", ["j", "enter"], ["l", "enter"], "i", "/x", "3")
    for keys, text in zip(sequences, all_shown(sequences, options=AppOptions(ascii=True)), strict=True):
        assert text.isascii(), keys


@pytest.mark.parametrize("color", ["truecolor", "256", "16", "never"])
def test_every_number_of_colours_paints_every_cell(color: ColorChoice) -> None:
    sequences = ("", "?", "R", "T", "3")
    for keys, text in zip(sequences, all_shown(sequences, options=AppOptions(color=color)), strict=True):
        assert "1 Overview" in text or "?" in keys


def test_too_small_a_terminal_gets_a_sentence() -> None:
    for width, height in ((59, 24), (80, 14), (20, 5)):
        text = " ".join(shown(width=width, height=height).split())
        assert f"needs 60x15 cells; this terminal has {width}x{height}. q quits." in text


def test_simulated_times_are_marked_on_every_tab() -> None:
    for text in all_shown("12345"):
        assert "SIMULATED TIMES" in text
    assert "SIMULATED" not in shown("inference")
