"""Capturing from within the app: the question, the count-down, the new run, what goes wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.events import Paste
from textual.geometry import Size
from textual.pilot import Pilot

from tests.support.app.scene import app_over, scene
from tests.support.app.stage import LOOK, check_cells, frame, settled, until
from tests.support.build import write_run
from tests.support.servers.profiler_server import FakeProfiler, profile
from tests.tui.app.test_watching import OLD, shown_run
from tpuprof.parsers.capture.model import CaptureProgress, CaptureStage
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.widgets.asking import PromptPopup
from tpuprof.tui.widgets.popup import meanings


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    """A logdir with an old run."""
    return write_run(tmp_path, OLD, **{"worker-0": profile()})


async def ask(app: TpuprofApp, pilot: Pilot[None], text: str) -> None:
    """Types addresses into the question."""
    if app.main.popups.popup is None:
        await pilot.press("C")
    assert isinstance(app.main.popups.popup, PromptPopup)
    await pilot.press("ctrl+u", *("space" if key == " " else key for key in text), "enter")


async def capture(app: TpuprofApp, pilot: Pilot[None], text: str) -> None:
    """Asks for a capture and waits for its end."""
    await ask(app, pilot, text)
    await until(pilot, lambda: not app.main.captures.is_under_way)
    await settled(pilot)


async def test_a_new_run_is_opened(logdir: Path) -> None:
    async with scene(app_over(logdir)) as (app, pilot):
        with FakeProfiler() as server:
            await capture(app, pilot, f"{server.address} 50")
        assert shown_run(app) not in ("", OLD)
        assert "newest of 2 runs" in frame(app)
        assert "Captured 1 host into " in frame(app) and shown_run(app) in frame(app).splitlines()[-1]
        assert len(list((logdir / "plugins" / "profile").iterdir())) == 2
        await pilot.press("C")
        assert isinstance(app.main.popups.popup, PromptPopup)
        assert app.main.popups.popup.editor.text == f"{server.address} 50", "what was asked last stands there"
        check_cells(app)


async def test_tracer_levels_and_snapshots_in_the_question(logdir: Path) -> None:
    async with scene(app_over(logdir)) as (app, pilot):
        with FakeProfiler() as server:
            await capture(app, pilot, f"{server.address} 50 python=1 host=3")
            options = server.requests[-1].opts
            levels = options.host_tracer_level, options.device_tracer_level, options.python_tracer_level
            assert levels == (3, 1, 1) and options.duration_ms == 50
            server.kept = True
            await ask(app, pilot, f"{server.address} snapshot")
            await until(pilot, lambda: not app.main.captures.is_under_way)
            assert len(server.requests) == 1, "a snapshot traces nothing"
        assert len(list((logdir / "plugins" / "profile").iterdir())) == 3


async def test_a_count_down_that_is_ended_early_keeps_what_was_traced(logdir: Path) -> None:
    async with scene(app_over(logdir)) as (app, pilot):
        with FakeProfiler() as server:
            await ask(app, pilot, f"{server.address} 600000")
            await until(pilot, lambda: "s left; Esc ends it and keeps the profile so far" in frame(app))
            await pilot.press("q")
            assert app.is_running and "q again leaves without it, Esc ends and keeps it" in frame(app)
            await pilot.press("C")
            assert app.main.popups.popup is None, "one at a time"
            await pilot.press("escape")
            await until(pilot, lambda: not app.main.captures.is_under_way)
            await settled(pilot)
        assert shown_run(app) not in ("", OLD)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("localhost", "it has no port. Try host:port, such as localhost:9012."),
        ("localhost 9012", "it has no port. Try host:port, such as localhost:9012."),
        ("9012", "9012 is not an address of a profiler server: it is only a port. Try localhost:9012."),
        ("", "No address is given. Try host:port, such as localhost:9012."),
        ("a:1 9999999", "A duration is 1 to 600,000 ms; this is 9999999."),
        ("a:1 0", "A duration is 1 to 600,000 ms; this is 0."),
        ("a:1 python=x", "python=x is not a tracer level. Try host=2, device=1 or python=1."),
        ("a:1 cpu=1", "cpu=1 is not a tracer level. Try host=2, device=1 or python=1."),
    ],
)
async def test_a_wrong_address_is_said_in_the_question(logdir: Path, text: str, said: str) -> None:
    async with scene(app_over(logdir)) as (app, pilot):
        await ask(app, pilot, text)
        await settled(pilot)
        assert isinstance(app.main.popups.popup, PromptPopup)
        assert said in " ".join(line.strip(" │") for line in frame(app).splitlines()).replace("  ", " ")
        check_cells(app)
        await pilot.press("escape")
        assert app.main.popups.popup is None
        assert not app.main.captures.is_under_way


async def test_no_server_is_said_with_how_to_start_one(logdir: Path) -> None:
    async with scene(app_over(logdir)) as (app, pilot):
        await capture(app, pilot, "localhost:1 10")
        assert "No profiler server listens at localhost:1." in frame(app)
        assert "jax.profiler.start_server(1)" in frame(app)
        assert shown_run(app) == OLD


@pytest.mark.parametrize("has_room", [True, False])
async def test_the_second_q_leaves_a_capture_and_one_does_where_there_is_no_room_to_ask(
    logdir: Path, has_room: bool
) -> None:
    with FakeProfiler() as server:
        async with scene(app_over(logdir)) as (app, pilot):
            await ask(app, pilot, f"{server.address} 600000")
            await until(pilot, lambda: "s left" in frame(app))
            if has_room:
                await pilot.press("q", "j")
                assert app.is_running and "s left" in frame(app)
            else:
                await pilot.resize_terminal(40, 10)
            await pilot.press("q")
            await until(pilot, lambda: not app.is_running)
        # the server must not stop before the threads that a capture waits on have let go of it
        await asyncio.get_running_loop().shutdown_default_executor()
    assert len(list((logdir / "plugins" / "profile").iterdir())) == 1


async def test_the_line_is_edited(logdir: Path) -> None:
    async with scene(app_over(logdir), ["C", "ctrl+u"]) as (app, pilot):
        popup = app.main.popups.popup
        assert isinstance(popup, PromptPopup)
        app.post_message(Paste("tpu-7:9012\r\n"))
        await until(pilot, lambda: "> tpu-7:9012_" in frame(app))
        await pilot.press("left", "backspace", "home", "x", "right", "delete", "end", "left", "left", "9")
        assert (popup.editor.text, popup.editor.cursor) == ("xtu-7:9902", 8)
        assert "> xtu-7:9902" in frame(app)
        await pilot.press("escape")
        app.post_message(Paste("lost"))
        await pilot.press("C")
        assert isinstance(app.main.popups.popup, PromptPopup)
        assert "lost" not in app.main.popups.popup.editor.text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (".", "Writes to {logdir}/plugins/profile."),
        ("plugins/profile/2020_01_01_00_00_00", "Writes to {logdir}/plugins/profile."),
        ("lone.xplane.pb", "Writes to {logdir}/plugins/profile, where lone.xplane.pb is."),
        ("", "Writes to {here}/plugins/profile, in the working folder, and shows that folder instead of the demo."),
        (
            "memory://tpuprof-none/x",
            "Writes to {here}/plugins/profile, in the working folder, and shows that folder: memory://tpuprof-none/x "
            "is not a local one.",
        ),
    ],
)
async def test_the_question_says_where_the_run_will_lie(
    logdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, said: str
) -> None:
    old = logdir / "plugins" / "profile" / OLD
    if given.startswith("lone"):
        (logdir / given).write_bytes(profile())
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", "/nowhere")
    path = given if "://" in given else str(logdir / given)
    async with scene(app_over(path, AppOptions(demo=not given)), ["C"]) as (app, pilot):
        asker = app.main.popups.popup
        assert isinstance(asker, PromptPopup)
        lines = ["".join(text for text, _ in line).strip() for line in asker.rows(0, 40, 400)]
        assert said.format(logdir=logdir, here=here) in lines
        shown = "".join(frame(app).replace("│", " ").split())
        assert "Writesto" in shown and "/plugins/profile" in shown  # a long path takes two lines
        with FakeProfiler() as server:
            await capture(app, pilot, f"{server.address} 50")
        folder = logdir if "{logdir}" in said else here
        (written,) = (path for path in folder.glob("plugins/profile/*") if path != old)
        assert shown_run(app).endswith(written.name)
        assert written.name in frame(app).splitlines()[-1]


async def test_the_words_of_each_stage(logdir: Path) -> None:
    async with scene(app_over(logdir)) as (app, _):

        def words(*stages: CaptureStage) -> str:
            app.main.captures._captured = {
                str(at): CaptureProgress(str(at), stage, 1500 if stage == "tracing" else None, 2000)
                for at, stage in enumerate(stages)
            }
            return app.main.captures.words

        assert words() == "Connecting; Esc discards it"
        assert words("tracing") == "Tracing, 1.5 s left; Esc ends it and keeps the profile so far"
        assert words("failed", "tracing") == "Tracing 2 addresses, 1.5 s left; Esc ends it and keeps the profile so far"
        assert words("receiving") == "Receiving; Esc twice discards it"
        assert words("written", "receiving") == "Receiving 2 addresses; Esc twice discards it"


def test_the_line_is_in_sight_on_the_smallest_screen() -> None:
    popup = PromptPopup(LOOK, "Asks", ["long " * 200], "typed", lambda _: "Not that. " * 30, meanings())
    popup.press("enter", None)
    place = popup.place(Size(60, 15))
    lines = ["".join(text for text, _ in line) for line in popup.draw(place.width, place.height)]
    assert len(lines) == place.height <= 15 and {len(line) for line in lines} == {place.width}
    assert any("> typed_" in line for line in lines) and "Not that." in lines[-2]
