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
from tests.support.app.stage import (
    ENVIRONMENT,
    check_cells,
    check_golden,
    demo_session,
    make_demo_app,
    on_stage,
    settled,
    until,
)
from tests.support.app.stage import frame as app_frame
from tests.support.app.stand import frame, on_stand
from tests.support.files.dumps import TEXTS, dumped
from tests.support.files.hlo_graphs import programs_of, small_programs
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.pages.graph.programs import Programs
from tpuprof.parsers.pages.memory import CompiledModules, ModuleSource
from tpuprof.parsers.session.pages import GRAPHS
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.loader import find_hlo, open_hlo_session
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.pages import TAB_NAMES
from tpuprof.tui.pages.graph.screen import GraphScreen
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.widgets.asking import PromptPopup
from tpuprof.tui.widgets.choosing import ChoicePopup
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.tab import Jump

NAMES = {"/": "slash", "?": "question_mark", "Enter": "enter", "Esc": "escape", ">": "greater_than_sign"}
ENVIRONS = {
    "": {"COLORTERM": "truecolor"},
    "16": {"TERM": "screen"},
    "ascii": {"LANG": "C"},
}


@cache
def demo() -> Programs:
    return demo_session().page(GRAPHS)


class Graphs:
    """A screen, what its keys make of it, and where it went."""

    def __init__(self, name: str, programs: Programs | None = None, look: str = "", run: Run | None = None) -> None:
        self.jumps: list[Jump] = []
        environ = {**ENVIRONMENT, **ENVIRONS[look]}
        content = (programs or small_programs(), Jump("graph", "op", name), run, self.jumps.append)
        self.screen = GraphScreen(content, ScreenLook.of(detect(environ)), environ=environ)

    @asynccontextmanager
    async def played(self, width: int = 80, height: int = 24) -> AsyncIterator[Pilot[None]]:
        """The screen once it has its page."""
        async with on_stand(self.screen, width, height) as pilot:
            await ready(self.screen, pilot)
            yield pilot

    @property
    def at(self) -> str:
        """The op in the middle."""
        assert self.screen.here is not None
        return self.screen.here.op.name


async def ready(screen: GraphScreen, pilot: Pilot[None]) -> None:
    while screen.here is None and screen.problem is None:
        await asyncio.sleep(0.005)
        await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def press(pilot: Pilot[None], keys: Sequence[str]) -> None:
    await pilot.press(*(NAMES.get(key, key) for key in keys))
    await pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.parametrize("look", ENVIRONS)
async def test_golden_frames(size: tuple[int, int], look: str) -> None:
    scene = Graphs("fusion.397", demo(), look)
    suffix = f"{size[0]}x{size[1]}{'-' * bool(look)}{look}"
    async with scene.played(*size) as pilot:
        assert look != "ascii" or frame(pilot).isascii()
        if look != "16":
            check_golden(f"graph-{suffix}", frame(pilot))
        await press(pilot, ["l", "j", "Enter"])
        if look == "":
            check_golden(f"graph-walked-{suffix}", frame(pilot))
        await press(pilot, ["p"])
        await press(pilot, ["x"])
        assert "operands " in frame(pilot)
        if look == "":
            check_golden(f"graph-direct-{suffix}", frame(pilot))
        await press(pilot, ["v"])
        if look != "16":
            check_golden(f"graph-text-{suffix}", frame(pilot))
        await press(pilot, ["v", "i"])
        assert frame(pilot).isascii() or look != "ascii"


async def test_golden_help() -> None:
    async with Graphs("copy.7").played(80, 48) as pilot:
        await press(pilot, ["?"])
        check_golden("graph-help-80x40", frame(pilot))


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 60)])
async def test_every_op_can_be_stood_on(size: tuple[int, int]) -> None:
    scene = Graphs("copy.7")
    async with scene.played(*size) as pilot:
        assert scene.screen.here is not None
        program = scene.screen.here.program
        for row in range(len(program.graph)):
            scene.screen.walk(row)
            for key in ("p", "v"):
                await press(pilot, [key])
                assert program.graph.name(row) in frame(pilot)


async def test_walking_and_the_way_back() -> None:
    scene = Graphs("fusion.3")
    async with scene.played() as pilot:
        await press(pilot, ["j", "Enter"])
        assert scene.at == "copy.7" and "been  fusion.3 ▸ copy.7" in frame(pilot)
        await press(pilot, ["left"])
        assert scene.at == "copy-done", "left again goes there: what makes the operand, before the loop"
        await press(pilot, ["l"])
        assert scene.at == "copy-done"
        await press(pilot, ["l"])
        assert scene.at == "copy.7"
        await press(pilot, ["Esc", "Esc"])
        assert scene.at == "copy.7" and scene.screen.view.side == "operands"
        await press(pilot, ["Esc"])
        assert scene.at == "fusion.3" and scene.screen.view.operands.cursor == 1, "the cursor is where it was"
        await press(pilot, ["p", "end", "Enter"])
        assert scene.at == "next", "an operand that only has to run before"
        await press(pilot, ["home", "G", "g", "pagedown", "pageup"])
        await press(pilot, ["Esc", "Esc"])
        assert not scene.screen.is_current, "at last to the tab"


async def test_an_end_says_so() -> None:
    scene = Graphs("arg")
    async with scene.played() as pilot:
        await press(pilot, ["Enter"])
        assert "It has no operands." in frame(pilot)
        await press(pilot, ["f"])
        assert "It calls no computation" in frame(pilot)
        await press(pilot, ["F"])
        assert "nothing calls that" in frame(pilot)
        await press(pilot, ["o"])
        assert "No tab has its time" in frame(pilot) and scene.screen.is_current


async def test_into_computations_and_out() -> None:
    scene = Graphs("while.1")
    async with scene.played() as pilot:
        await press(pilot, ["f"])
        assert isinstance(scene.screen.popup, ChoicePopup)
        await press(pilot, ["j", "Enter"])
        assert scene.at == "less" and "path  main ▸ while.1/condition ▸ less" in frame(pilot)
        await press(pilot, ["F"])
        assert scene.at == "while.1"
        await press(pilot, ["/", *"fusion.3", "Enter", "f"])
        assert scene.at == "add.1" and "while.1/body ▸ fusion.3/calls ▸ add.1" in frame(pilot)
        await press(pilot, ["F"])
        assert scene.at == "fusion.3"


async def test_find() -> None:
    scene = Graphs("arg")
    async with scene.played() as pilot:
        await press(pilot, ["n"])
        assert "Nothing is searched for" in frame(pilot)
        await press(pilot, ["/", *"copy"])
        assert "3 found" in frame(pilot) and scene.at == "arg"
        await press(pilot, ["Enter"])
        first = scene.at
        await press(pilot, ["n", "n", "n"])
        assert scene.at == first, "round the module"
        await press(pilot, ["N"])
        assert scene.at != first and "of 3 with copy" in frame(pilot)
        await press(pilot, ["/", *"nosuch", "Enter"])
        assert scene.screen.prompt is not None
        await press(pilot, ["Esc"])
        assert scene.screen.prompt is None


async def test_the_text_and_back() -> None:
    scene = Graphs("copy.7")
    async with scene.played() as pilot:
        await press(pilot, ["v"])
        text = frame(pilot)
        assert "▸  %copy.7 = f32[8,128]{0,1:T(8,128)} copy(%w)" in text and "line 9 of 13" in text
        await press(pilot, ["j", "j", "l"])
        assert "line 11 of 13" in frame(pilot)
        await press(pilot, ["h", "Enter"])
        assert scene.at == "fusion.3" and not scene.screen.view.is_text
        await press(pilot, ["v", "home", "Enter"])
        assert scene.screen.view.is_text, "the head is no op"
        assert "No op stands on this line" in frame(pilot)
        await press(pilot, ["Esc", "Esc"])
        assert scene.at == "copy.7"


async def test_mouse() -> None:
    scene = Graphs("fusion.3")
    async with scene.played() as pilot:
        made = scene.screen.drawn
        assert made is not None
        left, right = (3, 1 + made.first_row_line), (made.widths[0] + made.widths[1] + 9, 1 + made.first_row_line)
        await pilot.click(offset=right)
        assert scene.screen.view.side == "users" and scene.at == "fusion.3"
        await pilot.click(offset=left)
        await pilot.click(offset=left)
        assert scene.at == "all-reduce-done"


@pytest.mark.parametrize(
    ("ending", "begin"), [("dot", b"// jit_step"), ("txt", b"%body"), ("hlo", b"HloModule jit_step")]
)
async def test_written_files(ending: str, begin: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    scene = Graphs("copy.7")
    async with scene.played() as pilot:
        await press(pilot, ["W"])
        asker = scene.screen.popup
        assert isinstance(asker, PromptPopup) and asker.editor.text == str(
            tmp_path / "state/tpuprof-tui/graph/copy.7.dot"
        )
        asker.editor.text = asker.editor.text.replace("dot", ending)
        await press(pilot, ["Enter"])
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert "Written to" in frame(pilot)
    (path,) = (tmp_path / "state" / "tpuprof-tui" / "graph").iterdir()
    assert path.read_bytes().startswith(begin) and stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_what_may_not_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    (tmp_path / "there.dot").write_text("mine")
    scene = Graphs("copy.7", run=Run("run", str(folder), (), ()))
    async with scene.played() as pilot:
        await press(pilot, ["W"])
        asker = scene.screen.popup
        assert isinstance(asker, PromptPopup)
        for text, why in (
            ("graph.png", "The name must end in"),
            (str(folder / "x.dot"), "lies in a folder of profiles"),
            (str(tmp_path / "there.dot"), "There is such a file already"),
            (str(tmp_path / "no" / "x.dot"), "is not there"),
        ):
            asker.editor.text = text
            await press(pilot, ["Enter"])
            assert why in " ".join(frame(pilot).replace("│", " ").split()), frame(pilot)
        await press(pilot, ["Esc"])
    assert (tmp_path / "there.dot").read_text() == "mine" and not list(folder.iterdir())


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
    scene = Graphs(name, programs)
    async with scene.played() as pilot:
        assert words in " ".join(frame(pilot).split()) and "try:" in frame(pilot)
        await press(pilot, ["j", "Enter", "h", "p", "v", "f", "F", "i", "W", "y", "n", "o", "pagedown", "?"])
        await press(pilot, ["Esc", "Esc"])
        assert not scene.screen.is_current


# --- from the tabs


def on_app(keys: Sequence[str]) -> scenes.Scene:
    return scenes.scene(make_demo_app(AppOptions()), [NAMES.get(key, key) for key in keys])


async def graph_of(app: TpuprofApp, pilot: Pilot[None]) -> GraphScreen:
    await until(pilot, lambda: isinstance(app.screen, GraphScreen))
    screen = app.screen
    assert isinstance(screen, GraphScreen)
    await ready(screen, pilot)
    return screen


@pytest.mark.parametrize(
    "keys",
    [
        ("j", "g"),
        ("3", "v", "g"),
        ("3", "l", "j", "l", "j", "g"),
        ("3", "v", "v", "g"),
        ("3", "v", "v", "v", "g"),
        ("5", "g"),
    ],
    ids=["overview", "hlo ops", "tree", "framework ops", "roofline", "memory"],
)
async def test_g_opens_the_graph_of_the_op_under_the_cursor(keys: Sequence[str]) -> None:
    async with on_app(keys) as (app, pilot):
        screen = await graph_of(app, pilot)
        assert screen.problem is None and screen.here is not None
        check_cells(app)
        await pilot.press("escape")
        await settled(pilot)
        assert app.screen is app.main


async def test_from_the_timeline_and_to_other_tabs() -> None:
    async with on_app(["4", "/", *"fusion.397", "Enter", "g"]) as (app, pilot):
        screen = await graph_of(app, pilot)
        assert screen.here is not None and screen.here.op.name == "fusion.397"
        for key, tab in (("o", "op-profile"), ("O", "timeline"), ("B", "memory")):
            await pilot.press(key)
            await settled(pilot)
            assert app.screen is app.main and app.main.tab_name == tab
            await pilot.press("g")
            await graph_of(app, pilot)
        await pilot.press("q")


async def test_g_is_first_where_no_op_can_be() -> None:
    async with on_app(["2"]) as (app, pilot):
        assert "graph" not in app.main.situation.commands
        await pilot.press("g")
        await settled(pilot)
        assert app.screen is app.main


async def test_help_names_the_key() -> None:
    async with on_app(["3", "v", "?"]) as (app, pilot):
        text = app_frame(app)
        assert "Home G, End" in text and "g G, Home End" not in text
        await pilot.press("G")
        await settled(pilot)


async def test_compiled_modules_alone_have_graphs(tmp_path: Path) -> None:
    folder = dumped(tmp_path / "dump", *TEXTS)
    options = AppOptions(tab=TAB_NAMES.index("memory"), only_hlo=True)
    app = TpuprofApp(
        str(folder), options, detect(ENVIRONMENT), find=find_hlo, open_session=open_hlo_session, environ=ENVIRONMENT
    )
    async with on_stage(app) as pilot:
        await pilot.press("g")
        screen = await graph_of(app, pilot)
        assert screen.here is not None and "n/a: compiled" in app_frame(app)
        check_golden("graph-dump-80x24", app_frame(app))
        await pilot.press("escape")
        await settled(pilot)
        assert app.main.tab.has_page, "the memory tab is as it was"
