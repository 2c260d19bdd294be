"""The chips right now: the screen's frames, the lines for logs, and the app against a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from tests.support.golden import check_golden
from tests.support.servers.profiler_server import FakeProfiler, free_port
from tests.support.servers.runtime_server import FOUR_CHIPS, FakeRuntime
from tests.tui.cli.calls import Call
from tests.tui.terminal.pty.pty_app import PtyApp
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, EXIT_OK
from tpuprof.parsers.capture.runtime_metrics import DUTY, HBM_USED, Collectives, Device, Reading
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, Glyphs
from tpuprof.tui.pages.commands.live.drawing import LiveView, compose, head_line, meaning_lines, sparkline
from tpuprof.tui.pages.commands.live.report import REPORT
from tpuprof.tui.report.page import TextLook

GIB = 1 << 30


@pytest.fixture
def server() -> Iterator[FakeRuntime]:
    with FakeRuntime({name: list(values) for name, values in FOUR_CHIPS.items()}) as made:
        yield made


def readings(count: int = 30) -> list[Reading]:
    """Four chips, one of which falls behind; the bandwidth of the last is not reported."""
    made = []
    for n in range(count):
        devices = [
            Device("localhost:8431", chip, chip, 95.0 - chip, int((20 + chip) * GIB), 32 * GIB, 30.0 + n % 5, 0.0, 2)
            for chip in range(4)
        ]
        devices[2] = replace(devices[2], duty_percent=max(55.0, 93.0 - 2 * n), idle_seconds=0.25, queued_programs=0)
        devices[3] = replace(devices[3], bandwidth_percent=None, hbm_used_bytes=31 * GIB)
        made.append(Reading(1_795_000_000.0 + n, tuple(devices), Collectives(10 * n, 12_000.0 * n), {}, {}))
    return made


def frame(width: int, height: int, glyphs: Glyphs, view: LiveView, problem: str = "", made: int = 30) -> str:
    shown = readings(made)
    head = head_line(["localhost:8431"], 1.0, view, Pen(width, glyphs))
    page = compose(shown, problem, view, Pen(width, glyphs), height - 2)
    lines = [head, *page.lines]
    assert len(lines) <= height - 1
    assert all(sum(len(text) for text, _ in line) == width for line in lines)
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines) + "\n"


def test_frame() -> None:
    text = frame(80, 24, BLOCK, LiveView(cursor=2))
    check_golden(Path(__file__).parent / "golden" / "live-80-block.txt", text)
    assert frame(80, 24, ASCII, LiveView(cursor=2)).isascii()


def test_frame_while_nobody_answers() -> None:
    assert "No newer figures: no answer within 2 s" in frame(80, 24, BLOCK, LiveView(), "no answer within 2 s")


def test_before_the_first_answer() -> None:
    page = compose([], "", LiveView(), Pen(80, BLOCK), 20)
    assert "asking the runtime" in page.lines[0][1][0] and page.first_row_line == -1
    page = compose([], "nothing listens there", LiveView(), Pen(80, BLOCK), 20)
    assert any("nothing listens there" in text for text, _ in page.lines[0])


def test_a_sparkline_shows_what_is_not_zero_and_leaves_out_what_is_unknown() -> None:
    assert sparkline([0.0, 0.5, 50.0, None, 100.0], 6, BLOCK) == "  ▁▄ █"


def test_help_says_what_is_unknown() -> None:
    lines = meaning_lines({"idle_seconds": "it does not tell"}, Pen(80, BLOCK))
    words = " ".join(" ".join("".join(part for part, _ in line) for line in lines).split())
    assert "idle_seconds it does not tell" in words


def test_a_line_of_json_a_reading(server: FakeRuntime, call: Call) -> None:
    server.collectives = (10, 1500.0)
    told = call.json("live", server.address, "--format", "json", "--count", "1")
    assert told["schema"] == "tpuprof.live/1"
    assert [device["duty_percent"] for device in told["devices"]] == [95.0, 94.2, 61.0, 94.0]
    assert told["collectives"] is None and set(told["unknown"]) == {"collectives"}
    before, after = readings(2)
    told = json.loads(REPORT.writers["json"](REPORT.read(after, before), TextLook(80, False, False), 0))
    assert told["collectives"] == {"count": 10, "mean_latency_us": 1200.0}


def test_a_line_of_text_a_reading(server: FakeRuntime, call: Call) -> None:
    assert call("live", server.address, "--count", "1").out.endswith(
        " Chip 2 is less busy than the others: 61% duty, 94% median.\n"
    )


def test_markdown_and_what_is_unknown() -> None:
    after, before = readings(2)[1], None
    text = REPORT.writers["md"](REPORT.read(after, before), TextLook(80, False, False), 0)
    assert "| n/a |" in text and "| 29.0 GiB |" not in text and "31.0 GiB" in text
    untold = replace(after, devices=tuple(replace(device, bandwidth_percent=None) for device in after.devices))
    untold = replace(untold, unknown={"bandwidth_percent": "it has no such metric"})
    told = json.loads(REPORT.writers["json"](REPORT.read(untold, before), TextLook(80, False, False), 0))
    assert told["unknown"]["devices[].bandwidth_percent"] == "it has no such metric"


@pytest.mark.parametrize(
    ("broken", "why"),
    [("refuses", "the chips are being reset"), ("garbled", "the answer does not come from a TPU runtime")],
)
def test_a_runtime_that_gives_no_figures_is_not_one_without_chips(
    broken: Literal["refuses", "garbled"], why: str, server: FakeRuntime, call: Call
) -> None:
    server.is_broken = broken
    reading = json.loads(call("live", server.address, "--format", "json", "--count", 1)[0])
    assert reading["headline"] == "No figures of any chip: the runtime did not answer."
    assert reading["devices"] == [] and reading["silent"] == [f"{server.address}: {why}"]
    text = call("live", server.address, "--format", "md", "--count", 1)[0]
    assert f"{server.address}: {why}." in text and "no program" not in text


def test_values_that_can_not_be_are_unknown(server: FakeRuntime, call: Call) -> None:
    server.values |= {DUTY: [-5.0, 250.0, 61.0, 94.0], HBM_USED: [99.0 * GIB, *FOUR_CHIPS[HBM_USED][1:]]}
    devices = json.loads(call("live", server.address, "--format", "json", "--count", 1)[0])["devices"]
    assert [device["duty_percent"] for device in devices] == [None, None, 61.0, 94.0]
    assert [device["hbm_used_bytes"] is None for device in devices] == [True, False, False, False]


def test_nobody_there_is_a_sentence(call: Call) -> None:
    out, errors = call("live", "127.0.0.1:1", code=EXIT_CAPTURE_FAILED)
    assert out == "" and "No TPU runtime reports its metrics at 127.0.0.1:1" in errors


def test_the_app(server: FakeRuntime) -> None:
    """It shows what the server reports now, pauses, helps, and says when the server falls silent."""
    with PtyApp("live", server.address, width=80, height=24) as app:
        app.wait_for_text("Chip 2 is less busy")
        server.values = {name: [90.0] * 4 if "duty" in name else values for name, values in server.values.items()}
        app.wait_for_text("All 4 chips are equally busy: 90% duty.")
        app.press("p")
        app.wait_for_text("paused")
        app.press("p?")
        app.wait_for_text("Capture a profile")
        app.wait_for_text("peak bandwidth in use")
        app.press("\x1b")
        server.is_silent = True
        app.wait_for_text("no answer within 2 s")
        app.press("q")
        assert app.wait_for_exit() == EXIT_OK
        assert app.is_restored


def test_a_capture_opens_and_leaving_it_comes_back(server: FakeRuntime, tmp_path: Path) -> None:
    with (
        FakeProfiler() as profiler,
        PtyApp("live", server.address, "--server", profiler.address, "--logdir", str(tmp_path), width=80) as app,
    ):
        app.wait_for_text("Chip 2 is less busy")
        app.press("C")
        app.wait_for_text("STEP TIME")
        assert len(list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))) == 1
        app.press("q")
        app.wait_for_text("Chip 2 is less busy")
        app.wait_for_text("mean duty")
        app.press("q")
        assert app.wait_for_exit() == EXIT_OK
        assert app.is_restored


def test_a_capture_that_fails_says_why_and_comes_back(server: FakeRuntime, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    with PtyApp("live", server.address, "--server", address, "--logdir", str(tmp_path), width=80) as app:
        app.wait_for_text("Chip 2 is less busy")
        app.press("C")
        app.wait_for_text("Enter goes back")
        assert "No profiler server listens" in app.text
        app.press("\r")
        app.wait_for_text("Chip 2 is less busy")
        app.press("q")
        assert app.wait_for_exit() == EXIT_OK
