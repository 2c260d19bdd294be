"""The memory tab on a screen: its frames, and what its keys do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.demo.profile.hlo_module import Module
from tests.support.app.scene import Scene, after, app_over, press, scene, shown
from tests.support.app.stage import ReadyPages, answer, check_golden, frame, make_app, memory_tab, settled, space_of
from tests.support.files.dumps import TEXTS, dumped
from tests.support.files.pprof import written
from tests.support.made.pages import training_overview
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.memory.allocators.model import MemoryProfilePage
from tpuprof.parsers.pages.memory.compiled import CompiledModules, ModuleSource
from tpuprof.parsers.pages.memory.key import MEMORY, MEMORY_PROFILE
from tpuprof.parsers.session.session import Session
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages.commands.live_arrays.screen import LiveArraysScreen
from tpuprof.tui.pages.commands.oom.screen import TriageScreen
from tpuprof.tui.pages.memory.load import SiblingArrays, load
from tpuprof.tui.widgets.lists.popup import ListPopup
from tpuprof.tui.widgets.popup import TextPopup


def seen(keys: Sequence[str] = (), options: AppOptions | None = None) -> str:
    return shown(make_app(options=options), ("5", *keys), 80, 24)


def on_memory(*keys: str, width: int = 80, height: int = 24, pages: ReadyPages | None = None) -> Scene:
    return scene(make_app(pages), ("5", *keys), width, height)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("buffers", ""),
        ("scopes", "bb"),
        ("group", ("b", "b", "enter")),
        ("point", "hhjj"),
        ("map", "a"),
        ("vmem", "t"),
        ("modules", "m"),
        ("card", ("enter",)),
        ("allocators", "v"),
        ("triage", "x"),
    ],
)
def test_frames(name: str, keys: Sequence[str]) -> None:
    check_golden(f"memory-{name}-80x24", seen(keys))


async def test_another_module() -> None:
    async with on_memory() as (app, pilot):
        assert "jit_train_step(1)" in frame(app)
        await press(pilot, "m")
        assert isinstance(app.main.popups.popup, ListPopup)
        await press(pilot, "j", "enter")
        assert str(space_of(app).module) == "jit_eval_step(2)"
        assert "number 2 by peak of 2" in frame(app)


async def test_other_spaces_and_back_to_the_first() -> None:
    async with on_memory() as (app, pilot):
        names = []
        for _ in range(5):
            names.append(space_of(app).space)
            await press(pilot, "]")
        assert names == [0, 1, 2, 4, 6]
        assert space_of(app).space == 0


async def test_points_of_the_program() -> None:
    async with on_memory() as (app, pilot):
        space = space_of(app)
        text = await after(pilot, "h")
        assert f"at point {_point(app):,}" in text
        assert _point(app) < space.peak_position
        await press(pilot, "0")
        assert _point(app) == space.peak_position
        await press(pilot, "{")
        earlier = _point(app)
        assert earlier < space.peak_position
        await press(pilot, "}")
        assert _point(app) == space.peak_position
        assert "no later peak" in await after(pilot, "}", "}", "}", "}", "}")
        await pilot.press(*"h" * 70)
        assert _point(app) == 0
        await pilot.press(*"l" * 90)
        assert _point(app) == space.points - 1
        await pilot.click(offset=(12, 10))
        assert 0 < _point(app) < 60


def _point(app: TpuprofApp) -> int:
    view = memory_tab(app).view
    assert view is not None
    return int(view.listing.point)  # type: ignore[union-attr]


async def test_the_cursor_stays_with_its_buffer_at_another_point_and_while_another_tab_is_shown() -> None:
    async with on_memory("j", "j", "j", width=120, height=40) as (app, pilot):
        chosen = memory_tab(app).selection
        for keys in ("l", "15"):
            await press(pilot, *keys)
            assert memory_tab(app).selection == chosen
        await press(pilot, "/", *"adam", "escape")
        assert memory_tab(app).selection != ""


async def test_a_filter() -> None:
    async with on_memory() as (app, pilot):
        assert " of 107, " in await after(pilot, "/", *"params")
        assert "no row; params has some" in await after(pilot, "ctrl+u", *"parmas")
        assert "Buffers at the peak (107)" in await after(pilot, "escape")
        assert "no row" in await after(pilot, "/", *"nothing has this", "enter") and "Buffers" in frame(app)


async def test_what_to_do_opens_and_closes() -> None:
    async with on_memory("a") as (app, pilot):
        assert isinstance(app.screen, TriageScreen)
        assert "What to do first" in frame(app)
        await press(pilot, "q")
        assert not isinstance(app.screen, TriageScreen)
        assert app.is_running
        assert "at the peak" in frame(app)


async def test_allocators() -> None:
    async with on_memory() as (app, pilot):
        assert "peak 6.00 GiB" in await after(pilot, "v")
        assert memory_tab(app).selection == "batched_device_put"
        await press(pilot, "j", "j", "enter")
        assert "1023 MiB" in frame(app) or "1.00 GiB" in frame(app)
        assert "peak 6.00 GiB" in await after(pilot, "escape", "m", "enter", "h")
        await press(pilot, "/", *"stack", "enter")
        assert memory_tab(app).selection == "stack"
        assert "jit_train_step" in await after(pilot, "v")


async def test_from_an_op_to_its_buffers() -> None:
    async with on_memory() as (app, _):
        assert memory_tab(app).go_to("op", "fusion.397") == ""
        assert memory_tab(app).op_name == "fusion.397"
        assert memory_tab(app).go_to("op", "no_op") == "no_op defines no buffer in HBM of jit_train_step(1)"


async def test_an_op_that_is_not_in_the_profile_is_said_to_be_missing() -> None:
    async with on_memory() as (app, pilot):
        assert memory_tab(app).op_name == "custom-call.15"
        assert "no op custom-call.15 ran in this profile" in await after(pilot, "o")


async def test_all_figures_and_the_notes() -> None:
    async with on_memory("i") as (app, pilot):
        assert isinstance(app.main.popups.popup, TextPopup)
        text = frame(app)
        assert all(words in text for words in ("unpadded peak", "fragmentation", "constants", "15.75 GiB (TPU v5e"))
        assert "TPU v5e has no SparseCore" in await after(pilot, "escape", "]", "]", "]", "]", "W")


async def test_from_an_op_of_another_module() -> None:
    async with on_memory() as (app, pilot):
        assert memory_tab(app).go_to("op", "fusion.128", 2) == "Reading jit_eval_step"
        await settled(pilot)
        assert space_of(app).module.name == "jit_eval_step"
        assert memory_tab(app).op_name == "fusion.128"
        memory_tab(app).go_to("op", "no_op", 1)
        await settled(pilot)
        assert "no_op defines no buffer in HBM of jit_train_step(1)" in frame(app)


async def test_an_op_is_gone_to_once_the_tab_is_loaded() -> None:
    async with scene() as (app, pilot):
        memory_tab(app).go_to("op", "fusion.397", 1)
        await press(pilot, "5")
        assert memory_tab(app).op_name == "fusion.397"


def no_modules() -> ReadyPages:
    """A session whose profile holds no HLO."""
    made = ReadyPages(training_overview())
    source = ModuleSource("host0", HloModules({}, {}), ((1, "jit_f"),), "TPU v5e", "TPU")
    made.made[MEMORY] = lambda host: CompiledModules([source])
    return made


def nothing() -> ReadyPages:
    """A session without allocators either."""
    made = no_modules()
    made.made[MEMORY_PROFILE] = lambda host: MemoryProfilePage(("host0",), (), "This profile has no allocator events.")
    return made


async def test_without_hlo_the_allocators_are_shown() -> None:
    async with on_memory(pages=no_modules()) as (app, pilot):
        assert "HBM of device 0" in frame(app)
        assert "holds no compiled HLO" in await after(pilot, "v")
        check_golden("memory-no-hlo-80x24", frame(app))


async def test_with_neither_the_page_says_why() -> None:
    async with on_memory(pages=nothing()) as (app, pilot):
        assert "holds no compiled HLO" in frame(app)
        assert "no allocator events" in await after(pilot, *"jkhlGgsbtpaxm{}", "enter", "v")
        await after(pilot, *"jkhlGgpm", "enter")


async def test_compiled_modules_without_a_profile(tmp_path: Path) -> None:
    (tmp_path / "jit_eval_step.hlo_proto.pb").write_bytes(Module("jit_eval_step").proto_bytes)
    options = AppOptions(tab=4, only_hlo=True, device="TPU v5e")
    async with scene(app_over(tmp_path, options)) as (app, pilot):
        assert "jit_eval_step" in frame(app)
        assert "compiled HLO" in frame(app)
        for key in "1234":
            assert "compiled programs that have not run" in await after(pilot, key)
        assert "peak 1.80 GiB" in await after(pilot, "5", "r")


@pytest.mark.parametrize(("width", "height", "ascii_only"), [(80, 24, False), (120, 40, False), (80, 24, True)])
def test_a_dump_of_texts(tmp_path: Path, width: int, height: int, ascii_only: bool) -> None:
    options = AppOptions(tab=4, only_hlo=True, ascii=ascii_only or None)
    app = app_over(dumped(tmp_path / "dump", *TEXTS), options)
    text = shown(app, (), width, height)
    assert not ascii_only or text.isascii()
    if not ascii_only and width == 80:
        check_golden("memory-dump-80x24", text)


async def test_a_space_of_another_run_is_not_shown() -> None:
    async with on_memory() as (app, pilot):
        pages = memory_tab(app)._pages
        await pilot.press("]")
        memory_tab(app).show_state(memory_tab(app)._state)
        await settled(pilot)
        assert memory_tab(app).space_shown is None
        assert pages is not None


async def test_a_device_memory_profile_beside_is_said_and_opened(tmp_path: Path) -> None:
    path = written(tmp_path, step=3)
    async with on_memory() as (app, pilot):
        assert answer(memory_tab(app), "L") is None
        memory_tab(app).show("arrays", SiblingArrays.of(str(tmp_path)))
        await settled(pilot)
        check_golden("memory-arrays-beside-80x24", frame(app))
        await press(pilot, "L")
        assert isinstance(app.screen, LiveArraysScreen)
        assert "LIVE ARRAYS" not in await after(pilot, "escape")
        path.write_bytes(b"no profile any more")
        memory_tab(app).show("arrays", SiblingArrays("memory.prof", None, "memory.prof can't be read."))
        await settled(pilot)
        assert "memory.prof beside: memory.prof can't be read." in frame(app)
        assert answer(memory_tab(app), "L") is None
    assert SiblingArrays.of(str(tmp_path)) is None


def test_the_load_reads_the_file_beside(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb.gz").write_bytes(Path(demo_path()).read_bytes())
    written(tmp_path)
    run = open_logdir(str(folder)).find_run()
    told: dict[str, object] = {}
    load(Session(run), run, None, told.__setitem__)
    beside = told["arrays"]
    assert isinstance(beside, SiblingArrays) and beside.page is not None and beside.page.executables.count == 2
    assert list(told) == ["modules", "summary", "allocators", "arrays"]
