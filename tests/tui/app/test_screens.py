"""What stands on the screen: frames at the sizes and in the character sets that matter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.support.app.stage import ReadyPages, check_cells, check_golden, frame, make_app, on_stage
from tests.support.made.pages import (
    device_less_overview,
    inference_overview,
    requests_overview,
    serving_overview,
    training_overview,
)
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.app.options import AppOptions, ColorChoice

PAGES: dict[str, Overview] = {
    "training": training_overview(),
    "inference": inference_overview(),
    "device-less": device_less_overview(),
    "serving": serving_overview(),
    "requests": requests_overview(),
}


def shown(
    page: str = "training",
    width: int = 80,
    height: int = 24,
    keys: Sequence[str] = (),
    options: AppOptions | None = None,
) -> str:
    """The frame after some keys."""
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


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_overview(page: str, width: int, height: int) -> None:
    check_golden(f"overview-{page}-{width}x{height}", shown(page, width, height))


@pytest.mark.parametrize("page", ["serving", "requests"])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_latencies(page: str, width: int, height: int) -> None:
    check_golden(f"latencies-{page}-{width}x{height}", shown(page, width, height, keys=["v"]))


def test_latencies_in_ascii() -> None:
    text = shown("requests", keys=["v"], options=AppOptions(ascii=True))
    assert text.isascii()
    check_golden("latencies-requests-80x24-ascii", text)


def test_what_opens_above_the_latencies() -> None:
    details, help_text = all_shown([["v", "j", "enter"], ["v", "v", "v", "question_mark"]], "serving")
    check_golden("latencies-module-80x24", details)
    check_golden("latencies-help-80x24", help_text)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_all_figures(width: int, height: int) -> None:
    of_overview, its_end, of_input = all_shown([["i"], ["i", "pagedown"], ["2", "i"]], "training", width, height)
    check_golden(f"figures-overview-{width}x{height}", of_overview)
    check_golden(f"figures-overview-more-{width}x{height}", its_end)
    check_golden(f"figures-input-{width}x{height}", of_input)


def test_overview_in_ascii() -> None:
    text = shown(options=AppOptions(ascii=True))
    assert text.isascii()
    check_golden("overview-training-80x24-ascii", text)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_input_pipeline(width: int, height: int) -> None:
    check_golden(f"input-{width}x{height}", shown(width=width, height=height, keys=["2"]))


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("help", ["question_mark"]),
        ("palette", ["ctrl+p"]),
        ("palette-filtered", ["ctrl+p", "r", "u", "n"]),
        ("runs", ["R"]),
        ("hosts", ["H"]),
        ("notes", ["w"]),
        ("finding-details", ["enter"]),
        ("op-details", ["j", "j", "enter"]),
        ("step-details", ["l", "enter"]),
        ("search", ["slash", "d", "o", "t"]),
    ],
)
def test_what_opens_above_the_page(name: str, keys: list[str]) -> None:
    check_golden(f"{name}-80x24", shown(keys=keys))


def test_everything_is_ascii_where_that_is_asked_for() -> None:
    sequences = (
        ["question_mark"],
        ["ctrl+p"],
        ["R"],
        ["H"],
        ["w"],
        ["j", "enter"],
        ["l", "enter"],
        ["i"],
        ["slash", "x"],
        ["3"],
    )
    for keys, text in zip(sequences, all_shown(sequences, options=AppOptions(ascii=True)), strict=True):
        assert text.isascii(), keys


@pytest.mark.parametrize("color", ["truecolor", "256", "16", "never"])
def test_every_number_of_colours_paints_every_cell(color: ColorChoice) -> None:
    sequences: list[list[str]] = [[], ["question_mark"], ["R"], ["T"], ["3"]]
    for keys, text in zip(sequences, all_shown(sequences, options=AppOptions(color=color)), strict=True):
        assert "1 Overview" in text or "question_mark" in keys


def test_too_small_a_terminal_gets_a_sentence() -> None:
    for width, height in ((59, 24), (80, 14), (20, 5)):
        text = " ".join(shown(width=width, height=height).split())
        assert f"needs 60x15 cells; this terminal has {width}x{height}. q quits." in text


def test_smallest_size_shows_the_page() -> None:
    text = shown(width=60, height=15)
    assert "1 Overview" in text
    assert "STEP TIME" in text


def test_simulated_times_are_marked_on_every_tab() -> None:
    for text in all_shown([[key] for key in "12345"]):
        assert "SIMULATED TIMES" in text
    assert "SIMULATED" not in shown("inference")


def test_escapes_in_names_come_out_visible() -> None:
    text = shown(width=120, height=40, keys=["G"])
    assert "\x1b" not in text
    assert "␛[31mred" in text
