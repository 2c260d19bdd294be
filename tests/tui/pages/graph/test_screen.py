"""The screen of the graph, key by key: walking, in and out, finding, the text, files; and who opens it."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.app import scene as scenes
from tests.support.app.scene import after, press
from tests.support.app.stage import ENVIRONMENT, check_golden, demo_session, make_demo_app, on_stage, until
from tests.support.app.stage import frame as app_frame
from tests.support.app.stand import COLOURS, frame, on_stand
from tests.support.build import present
from tests.support.files.dumps import TEXTS, dumped
from tests.support.files.hlo_graphs import programs_of, small_programs
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.pages.graph.programs import GRAPHS, Programs
from tpuprof.parsers.pages.memory.compiled import CompiledModules, ModuleSource
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.pages import TAB_NAMES
from tpuprof.tui.pages.graph.screen import GraphScreen
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.widgets.asking import PromptPopup
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.lists.popup import ListPopup
from tpuprof.tui.widgets.tab import Jump


@cache
def demo() -> Programs:
    return demo_session().page(GRAPHS)


class Graphs:
    """A screen, what its keys make of it, and where it went."""

    def __init__(
        self, name: str, programs: Programs | None = None, look: str = "truecolor", run: Run | None = None
    ) -> None:
        self.jumps: list[Jump] = []
        environ = {**ENVIRONMENT, **COLOURS[look]}
        content = (programs or small_programs(), Jump("graph", "op", name), run)
        self.screen = GraphScreen(content, ScreenLook.of(detect(environ)), environ=environ)
        self.screen.lead = self.jumps.append

    @asynccontextmanager
    async def played(self, *keys: str, width: int = 80, height: int = 24) -> AsyncIterator[tuple[Graphs, Pilot[None]]]:
        """It and who presses its keys, once the screen has its page and after some keys."""
        async with on_stand(self.screen, width, height) as (_, pilot):
            await ready(self.screen, pilot)
            await press(pilot, *keys)
            yield self, pilot

    @property
    def at(self) -> str:
        """The op in the middle."""
        return present(self.screen.here).op.name


async def ready(screen: GraphScreen, pilot: Pilot[None]) -> None:
    while screen.here is None and screen.problem is None:
        await asyncio.sleep(0.005)
        await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


GOLDEN_FRAMES: dict[str, Sequence[str]] = {
    "graph": "",
    "graph-walked": ("l", "j", "enter"),
    "graph-direct": "xX",
    "graph-text": "v",
}
"""What is shown after some keys, each frame after those of the frame before it."""


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.parametrize("look", ["truecolor", "16", "ascii"])
async def test_golden_frames(size: tuple[int, int], look: str) -> None:
    async with Graphs("fusion.397", demo(), look).played(width=size[0], height=size[1]) as (_, pilot):
        for name, keys in GOLDEN_FRAMES.items():
            await press(pilot, *keys)
            assert look != "ascii" or frame(pilot).isascii()
            if look == "truecolor" and size == (80, 24):
                check_golden(f"{name}-80x24", frame(pilot))
        await press(pilot, "v", "i")
        assert look != "ascii" or frame(pilot).isascii()


async def test_golden_help() -> None:
    async with Graphs("copy.7").played("?", height=48) as (_, pilot):
        check_golden("graph-help-80x40", frame(pilot))


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 60)])
async def test_every_op_can_be_stood_on(size: tuple[int, int]) -> None:
    async with Graphs("copy.7").played(width=size[0], height=size[1]) as (scene, pilot):
        program = present(scene.screen.here).program
        for row in range(len(program.graph)):
            scene.screen.walk(row)
            for key in ("p", "v"):
                assert program.graph.name(row) in await after(pilot, key)


async def test_walking_and_the_way_back() -> None:
    async with Graphs("fusion.3").played("j", "enter") as (scene, pilot):
        assert scene.at == "copy.7" and "been  fusion.3 ▸ copy.7" in frame(pilot)
        await press(pilot, "left")
        assert scene.at == "copy-done", "left again goes there: what makes the operand, before the loop"
        await press(pilot, "l")
        assert scene.at == "copy-done"
        await press(pilot, "l")
        assert scene.at == "copy.7"
        await press(pilot, "escape", "escape")
        assert scene.at == "copy.7" and scene.screen.view.side == "operands"
        await press(pilot, "escape")
        assert scene.at == "fusion.3" and scene.screen.view.operands.cursor == 1, "the cursor is where it was"
        await press(pilot, "x", "end", "enter")
        assert scene.at == "next", "an operand that only has to run before"
        await press(pilot, "home", "G", "g", "pagedown", "pageup", "escape", "escape")
        assert not scene.screen.is_current, "at last to the tab"


async def test_an_end_says_so() -> None:
    async with Graphs("arg").played() as (scene, pilot):
        assert "It has no operands." in await after(pilot, "enter")
        assert "It calls no computation" in await after(pilot, ">")
        assert "entry computation" in await after(pilot, "<")
        assert "No tab has its time" in await after(pilot, "o") and scene.screen.is_current


async def test_into_computations_and_out() -> None:
    async with Graphs("while.1").played(">") as (scene, pilot):
        assert isinstance(scene.screen.popup, ListPopup)
        await press(pilot, "j", "enter")
        assert scene.at == "less" and "path  main ▸ while.1/condition ▸ less" in frame(pilot)
        await press(pilot, "<")
        assert scene.at == "while.1"
        await press(pilot, "/", *"fusion.3", "enter", ">")
        assert scene.at == "add.1" and "while.1/body ▸ fusion.3/calls ▸ add.1" in frame(pilot)
        await press(pilot, "<")
        assert scene.at == "fusion.3"


async def test_find() -> None:
    async with Graphs("arg").played() as (scene, pilot):
        assert "There is no search yet" in await after(pilot, "n")
        assert "3 found" in await after(pilot, "/", *"copy") and scene.at == "arg"
        await press(pilot, "enter")
        first = scene.at
        await press(pilot, "n", "n", "n")
        assert scene.at == first, "round the module"
        await press(pilot, "N")
        assert scene.at != first and "of 3 with copy" in frame(pilot)
        await press(pilot, "/", *"nosuch", "enter")
        assert scene.screen.prompt is not None
        await press(pilot, "escape")
        assert scene.screen.prompt is None


async def test_the_text_and_back() -> None:
    async with Graphs("copy.7").played("v") as (scene, pilot):
        text = frame(pilot)
        assert "▸  %copy.7 = f32[8,128]{0,1:T(8,128)} copy(%w)" in text and "line 9 of 13" in text
        assert "line 11 of 13" in await after(pilot, "j", "j", "l")
        await press(pilot, "h", "enter")
        assert scene.at == "fusion.3" and not scene.screen.view.is_text
        await press(pilot, "v", "home", "enter")
        assert scene.screen.view.is_text, "the head is no op"
        assert "There is no op on this line" in frame(pilot)
        await press(pilot, "escape", "escape")
        assert scene.at == "copy.7"


async def test_mouse() -> None:
    async with Graphs("fusion.3").played() as (scene, pilot):
        made = present(scene.screen.drawn)
        left, right = (3, 1 + made.first_row_line), (made.widths[0] + made.widths[1] + 9, 1 + made.first_row_line)
        await pilot.click(offset=right)
        assert scene.screen.view.side == "users" and scene.at == "fusion.3"
        await pilot.click(offset=left)
        await pilot.click(offset=left)
        assert scene.at == "all-reduce-done"


@pytest.mark.parametrize(("ending", "begin"), [("txt", b"%body"), ("hlo", b"HloModule jit_step")])
async def test_written_files(ending: str, begin: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with Graphs("copy.7").played("E") as (scene, pilot):
        asker = scene.screen.popup
        assert isinstance(asker, PromptPopup) and asker.editor.text == str(
            tmp_path / "state/tpuprof-tui/graph/copy.7.csv"
        )
        asker.editor.text = asker.editor.text.replace("csv", ending)
        await press(pilot, "enter")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert "Wrote " in frame(pilot)
    (path,) = (tmp_path / "state" / "tpuprof-tui" / "graph").iterdir()
    assert path.read_bytes().startswith(begin) and stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_what_may_not_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    (tmp_path / "there.csv").write_text("mine")
    async with Graphs("copy.7", run=Run("run", str(folder), (), ())).played("E") as (scene, pilot):
        asker = scene.screen.popup
        assert isinstance(asker, PromptPopup)
        for text, why in (
            ("graph.png", "The name must end in"),
            (str(folder / "x.csv"), "lies in a folder of profiles"),
            (str(tmp_path / "there.csv"), "there.csv exists: give another name"),
            (str(tmp_path / "no" / "x.csv"), "does not exist"),
        ):
            asker.editor.text = text
            await press(pilot, "enter")
            assert why in " ".join(frame(pilot).replace("│", " ").split()), frame(pilot)
        await press(pilot, "escape")
    assert (tmp_path / "there.csv").read_text() == "mine" and not list(folder.iterdir())


@pytest.mark.parametrize(
    ("programs", "name", "words"),
    [
        (Programs(CompiledModules([]), None), "x", "This profile holds no compiled HLO"),
        (
            Programs(
                CompiledModules([ModuleSource("host0", HloModules({1: ("jit_a", lambda _: "It is damaged.")}))]), None
            ),
            "x",
            "It is damaged.",
        ),
        (programs_of(hlo_pb2.HloProto()), "x", "holds no instructions"),
        (small_programs(), "nosuch", "has no instruction nosuch"),
    ],
)
async def test_why_there_is_no_graph(programs: Programs, name: str, words: str) -> None:
    async with Graphs(name, programs).played() as (scene, pilot):
        assert words in " ".join(frame(pilot).split()) and "try:" in frame(pilot)
        await press(
            pilot, "j", "enter", "h", "x", "v", ">", "<", "i", "E", "y", "n", "o", "pagedown", "?", "escape", "escape"
        )
        assert not scene.screen.is_current


# --- from the tabs


def on_app(keys: Sequence[str]) -> scenes.Scene:
    return scenes.scene(make_demo_app(), keys)


async def graph_of(app: TpuprofApp, pilot: Pilot[None]) -> GraphScreen:
    await until(pilot, lambda: isinstance(app.screen, GraphScreen))
    screen = app.screen
    assert isinstance(screen, GraphScreen)
    await ready(screen, pilot)
    return screen


async def test_compiled_modules_alone_have_graphs(tmp_path: Path) -> None:
    options = AppOptions(tab=TAB_NAMES.index("memory"), only_hlo=True)
    app = scenes.app_over(dumped(tmp_path / "dump", *TEXTS), options)
    async with on_stage(app) as pilot:
        await pilot.press("u")
        screen = await graph_of(app, pilot)
        assert screen.here is not None and "n/a: compiled" in app_frame(app)
        check_golden("graph-dump-80x24", app_frame(app))
        await press(pilot, "escape")
        assert app.main.tab.has_page, "the memory tab is as it was"
