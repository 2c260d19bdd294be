"""A row answers the same keys wherever it is shown: on its page, on its card, in a list, a comparison, as a hit."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.support.app.scene import after, app_over, press, scene
from tests.support.app.stage import demo_session, make_demo_app
from tests.tui.app.keys.test_silent import place
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.tui.demo import demo_path
from tpuprof.tui.terminal.grammar import BY_NAME, OF_ROW
from tpuprof.tui.widgets.tab import Jump

FUSION = ["/", *"fusion", "enter"]
ROWS = {
    "finding": (["1"], "enter"),
    "op of the overview": (["1", "G"], "enter"),
    "block of the model": (["1", "v"], "enter"),
    "hit of the overview": (["1", *FUSION], ""),
    "op": (["3", "v"], "enter"),
    "hit": (["3", "v", *FUSION], "enter"),
    "event": (["3", "v", "O"], "enter"),
    "event that was found": (["4", *FUSION, "enter"], ""),
    "events that were found": (["4", *FUSION, "escape"], "/ up enter"),
    "what ran": (["4"], "i j j j"),
    "graph": (["1", "G"], "u"),
    "buffer": (["3", "v", "B"], "enter"),
    "step": (["1", "l"], "enter"),
    "input op": (["2"], "enter"),
    "group of the tree": (["3", "j"], "enter"),
    "runs": (["1"], "R"),
    "hosts": (["1"], "H"),
    "help": (["1"], "?"),
}
"""The keys that lead to a row of each kind, and the key that opens it above the page, if it is shown there."""
OF_OPS = {"there", "timeline", "graph", "program", "buffers"}
OTHERS = {name: OF_OPS - {"graph", "buffers"} for name in ("step", "input op")}
OTHERS |= {name: set() for name in ("runs", "hosts", "help")} | {"group of the tree": {"program"}}
ITSELF = {"event": "timeline", "event that was found": "timeline", "graph": "graph", "buffer": "buffers"}
"""Where a row is already."""


async def check_row(pilot: Pilot[None], name: str, opens: str) -> None:
    """Each of a row's keys leads to what it names, and Escape back, or a sentence says what the row does not have."""
    leads = OTHERS.get(name, OF_OPS) - {ITSELF.get(name)}
    for verb in OF_ROW:
        page = place(pilot.app)
        await press(pilot, *opens.split())
        row = place(pilot.app)
        screen: Any = pilot.app.screen
        screen.flash = ""
        await press(pilot, BY_NAME[verb].key)
        there, said, what = place(pilot.app), screen.flash, (name, verb)
        assert "Not here" not in said and "Esc" not in said, what
        if verb in leads:
            assert there[1] is None and (there != page or name in ("what ran", "events that were found")), what
        elif verb == "export" and there != row:
            await press(pilot, "escape")
            assert place(pilot.app) == row, "what it is of is open again"
        else:
            assert there == row and said.startswith("Copied") == (verb == "copy" and name != "help"), what
            assert verb == "copy" or said.endswith("."), what
        if verb in leads or opens:
            await press(pilot, "escape")
        if name in ("change", "graph") and verb in leads:
            assert place(pilot.app) == row, "the screen that led there is there again"
            await press(pilot, "escape")
        assert place(pilot.app) == page, what


@pytest.mark.parametrize("name", ROWS)
async def test_a_row_answers_the_same_keys_wherever_it_is_shown(name: str) -> None:
    keys, opens = ROWS[name]
    async with scene(make_demo_app(), keys, 100, 40) as (_, pilot):
        await check_row(pilot, name, opens)


async def test_an_op_is_that_of_its_program_where_another_one_has_its_name() -> None:
    async with scene(make_demo_app(), ["3", "v"], 100, 40) as (app, pilot):
        ops = demo_session().page(OPS).table
        programs = (int(ops.program_id[row]) for row, name in enumerate(ops.name) if name == "all-to-all")
        for program, said in zip(programs, ("4 of 20 by start", "its only one"), strict=True):
            app.main.jumps.follow(Jump("op-profile", "op", "all-to-all", program))
            assert f"longest run of all-to-all: {said}" in await after(pilot, "O")


async def test_d_compares_two_runs_at_once_and_a_change_answers_the_keys_of_a_row(tmp_path: Path) -> None:
    for name in ("before", "after"):
        (folder := tmp_path / "plugins" / "profile" / name).mkdir(parents=True)
        shutil.copy(demo_path(), folder)
    async with scene(app_over(tmp_path), ["1"], 100, 40) as (_, pilot):
        await check_row(pilot, "change", "D x")
