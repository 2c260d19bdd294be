"""The screen of compiled programs: who opens it, that it shows what the report has, and where its keys lead."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from tests.parsers.pages.program.test_fingerprint import PROGRAM
from tests.support.app.scene import after, app_over, press, scene
from tests.support.app.stage import frame, make_demo_app, on_stage, until
from tests.tui.cli.calls import Call
from tests.tui.pages.commands.test_programs import TILED
from tpuprof.parsers.pages.program.changes import CHANGED, VERDICTS
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.pages.graph.program_view import ProgramScreen
from tpuprof.tui.pages.graph.screen import GraphScreen
from tpuprof.tui.widgets.tab import Jump

OF_FILES = AppOptions(tab=4, only_hlo=True, shows_program=True, device="TPU v6e")
TEXT = TILED.replace("TILES", "4")
OTHER = PROGRAM.replace("jit_f", "jit_g").replace("multiply(%s, %k)", "subtract(%s, %k)")


async def program_of(app: TpuprofApp, pilot: Pilot[None]) -> ProgramScreen:
    await until(pilot, lambda: isinstance(app.screen, ProgramScreen) and not app.screen.awaited)
    screen = app.screen
    assert isinstance(screen, ProgramScreen)
    return screen


def shown(app: TpuprofApp) -> Screen[Any]:
    return app.screen


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 60)])
@pytest.mark.parametrize("is_ascii", [False, True])
async def test_every_view_is_drawn_sorted_and_has_cards(size: tuple[int, int], is_ascii: bool) -> None:
    async with scene(make_demo_app(ascii=is_ascii or None), ["1", "P"], *size) as (app, pilot):
        screen = await program_of(app, pilot)
        assert [*screen.views] == ["ops", "arrays", "modules"]
        for key, view in screen.views.items():
            table, source = view.table()
            for order, field in table.sorted_by.items():
                view.sort_by(order)
                is_known = [value is not None for value in field.read(source, view.rows.tolist())]
                is_known = [True] if field.unit.is_text else is_known
                assert is_known == sorted(is_known, reverse=True), "what is unknown is last, whatever the order"
            text = await after(pilot, "G")
            assert is_ascii <= text.isascii()
            if key != "modules":
                assert str(view.name)[:8] in await after(pilot, "enter") and screen.card is None
                await press(pilot, "escape")
            await press(pilot, "v")
        assert screen.at == "ops", "the last view is before the first"
        for key, title in (("arrays", "Arrays"), ("modules", "Programs"), ("ops", "Ops")):
            line = next(at for at, text in enumerate(frame(app).splitlines()) if " v " in text and title in text)
            await pilot.click(offset=(frame(app).splitlines()[line].index(title), line))
            assert screen.at == key
        assert "SIMULATED" in frame(app).splitlines()[0], "its times were composed"


async def test_an_op_leads_to_its_program_and_on_to_its_graph() -> None:
    async with scene(make_demo_app(), ["3", "v", "j", "j"]) as (app, pilot):
        op = app.main.tab.selection
        await press(pilot, "P")
        screen = await program_of(app, pilot)
        assert screen.listed.name == op
        await press(pilot, "u")
        assert isinstance(shown(app), GraphScreen)
        await press(pilot, "P")
        assert (await program_of(app, pilot)).listed.name == op and shown(app) is not screen
        await press(pilot, *["escape"] * 3)
        assert shown(app) is app.main and app.main.tab.selection == op
        app.main.jumps.follow(Jump("program", "op", "nothing"))
        await until(pilot, lambda: "nothing is none of its ops" in frame(app))


async def test_another_program_and_back() -> None:
    async with scene(make_demo_app(), ["1", "P"]) as (app, pilot):
        screen = await program_of(app, pilot)
        first = screen.declared.statement
        await press(pilot, "ctrl+p", *"traffic", "enter")
        assert screen.at == "arrays"
        await press(pilot, "v", "G", "enter")
        await until(pilot, lambda: not screen.awaited)
        assert "jit_eval_step" in await after(pilot) and screen.declared.statement != first and screen.at == "ops"
        await press(pilot, "escape")
        await until(pilot, lambda: not screen.awaited)
        assert screen.declared.statement == first and app.screen is screen


async def test_the_rows_are_those_of_the_report(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file, under the filter of the screen."""
    (tmp_path / "p.hlo").write_text(TEXT)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    app = app_over(tmp_path / "p.hlo", OF_FILES)
    async with on_stage(app) as pilot:
        await program_of(app, pilot)
        assert "Wrote 1 row to program-ops.csv" in await after(pilot, "/", *"multiply", "enter", "E", "enter")
    how = ("--device", "v6e", "--format", "csv", "--filter", "multiply")
    assert Path("program-ops.csv").read_text() == call("report", "program", tmp_path / "p.hlo", *how).out


@pytest.mark.parametrize("name", ["p.hlo", "p.hlo.gz", "module_0001.jit_f.cl_9.after_codegen.txt", ""])
async def test_files_open_with_their_program(tmp_path: Path, name: str) -> None:
    """Escape leads to their memory; the other pages say which key shows what there is."""
    path = tmp_path / (name or "module_0001.jit_f.cl_9.after_codegen.txt")
    path.write_bytes(gzip.compress(TEXT.encode()) if name.endswith(".gz") else TEXT.encode())
    app = app_over(tmp_path / name, OF_FILES)
    async with on_stage(app) as pilot:
        screen = await program_of(app, pilot)
        assert "at least" in await after(pilot) and "TPU v6e" in await after(pilot)
        await press(pilot, "u")
        assert isinstance(shown(app), GraphScreen)
        await press(pilot, "escape")
        assert shown(app) is screen
        await press(pilot, "escape")
        assert shown(app) is app.main and app.main.tab_name == "memory"
        for key in "124":
            assert "P shows what each takes" in " ".join((await after(pilot, key)).split())
        await press(pilot, "P")
        assert await program_of(app, pilot)


async def test_what_lies_beside_is_listed_and_compared(call: Call, tmp_path: Path) -> None:
    """Wherever it is called from."""
    for name, text in (("a.hlo", PROGRAM), ("b.hlo", OTHER)):
        (tmp_path / name).write_text(text)
    told = call("diff", tmp_path / "b.hlo", tmp_path / "a.hlo", code=VERDICTS[CHANGED][0]).out
    verdict = told.splitlines()[1].split(".")[0]
    app = app_over(tmp_path / "a.hlo", OF_FILES)
    async with on_stage(app) as pilot:
        await program_of(app, pilot)
        assert "b.hlo" in await after(pilot, "D")
        await press(pilot, "enter")
        assert verdict == "CHANGED" and verdict in await after(pilot)
        await press(pilot, "escape", "escape")
        assert "jit_f" in (await program_of(app, pilot)).declared.head.title, "back to where the key was pressed"
        await press(pilot, "R", "enter")
        assert "jit_g" in (await program_of(app, pilot)).declared.head.title
    app = app_over(tmp_path, OF_FILES)
    async with on_stage(app) as pilot:
        screen = await program_of(app, pilot)
        assert len(screen.listed.table()[1]) and verdict in await after(pilot, "D", "enter"), "two of one folder"


async def test_a_text_that_holds_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "cut.hlo").write_text("HloModule jit_f\n")
    app = app_over(tmp_path / "cut.hlo", OF_FILES)
    async with on_stage(app) as pilot:
        assert "cut.hlo holds no program" in await after(pilot, "P")
        assert app.screen is app.main
