"""The grammar: one key a verb, one verb a key, and all tables of keys are made of its verbs."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from textual.keys import _character_to_key

from tests.support.app.scene import after, press, scene
from tests.support.app.stage import ReadyPages, make_app, make_demo_app
from tests.support.made.pages import serving_overview
from tests.tui.words.collect import sentences
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK, plain
from tpuprof.tui.terminal.grammar import BY_NAME, MOTIONS, VERBS, typed_name
from tpuprof.tui.widgets.lists.popup import CommandList, ListPopup

PROGRAM = Path(__file__).parents[4] / "tui"
AS_THEY_STAND = {"mouse", "1-5,", "Tab", "ctrl+a", "ctrl+e", "ctrl+w", "ctrl+u", "ctrl+k", "Up", "Down"}
"""Words of tables that are no verbs: the mouse, and the keys of any line that is typed."""
OWN_KEYS = {"escape", "q", "Q", "space", "tab", "question_mark", "enter", "backspace", "slash"}
"""Keys that widgets compare with, all for what the grammar says of them or for a line that is typed."""


def test_a_verb_has_one_key_unless_there_is_a_reason() -> None:
    assert [verb.name for verb in VERBS if len(verb.keys) > 1 and not verb.why_keys] == []
    assert [verb.name for verb in VERBS if len(verb.keys) == 1 and verb.why_keys] == []
    assert len(BY_NAME) == len(VERBS)


def test_a_key_has_one_verb_unless_there_is_a_reason() -> None:
    verbs = defaultdict(list)
    for verb in VERBS:
        for key in verb.keys:
            verbs[key].append(verb)
    shared = {key: of for key, of in verbs.items() if len(of) > 1}
    for key, of in shared.items():
        assert sum(not verb.why_shared for verb in of) == 1, f"{key}: all its verbs but one say why they share it"
        assert all(verb.page for verb in of if verb.why_shared), f"{key}: they are of one page"
    assert set(shared) == {"s", "a", "space", "ctrl+p"}, "each new one needs a reason"


def test_every_verb_has_a_sentence_for_where_it_does_nothing() -> None:
    silent = {verb.name for verb in VERBS if not verb.absent}
    assert silent == {"leave", "suspend", "repaint", "pan_left"}, "these work everywhere, or share a key that says it"
    assert all(verb.absent.endswith(".") for verb in VERBS if verb.absent)


def test_sentences_name_the_key_of_the_notes() -> None:
    """The key that most sentences name: it was another once, and is another page's still."""
    named = [key for each in sentences() for key in re.findall(r"\bnotes \((\S)\)", each.text)]
    assert len(named) >= 3 and set(named) == {*BY_NAME["notes"].keys}


def _rows(tree: ast.AST) -> list[ast.Call]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("KeyRow", "verb_row")]


def test_tables_of_keys_are_made_of_verbs() -> None:
    """Of every page, screen and popup, as their source has them: what they show and what they do."""
    known, found = {*BY_NAME, *AS_THEY_STAND}, set()
    for path in PROGRAM.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for call in _rows(tree):
            if isinstance(call.args[0], ast.Constant):
                words = set(str(call.args[0].value).split(" "))
                assert words <= known, f"{path}, line {call.lineno}: {words - known} is no verb"
                found |= words
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and function.name.endswith(("keys", "_key")) and _rows(function):
                dicts = [each for each in ast.walk(function) if isinstance(each, ast.Dict)]
                keys = {str(key.value) for each in dicts for key in each.keys if isinstance(key, ast.Constant)}
                assert keys <= known, f"{path}, {function.name}: {keys - known} is no verb"
                found |= keys
    assert len(found) > 40


def test_nothing_but_the_grammar_names_a_letter() -> None:
    for path in PROGRAM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == "key":
                named = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
                letters = {name for name in named if isinstance(name, str) and len(name) == 1}
                assert letters <= OWN_KEYS, f"{path}, line {node.lineno}: {letters}"


VIEWS = {"1": 1, "2": 0, "3": 3, "4": 0, "5": 2}
"""How often the key of views is pressed on each tab."""


@pytest.mark.parametrize("is_demo", [True, False])
async def test_a_key_does_one_thing_which_ctrl_p_and_help_name_and_nothing_else(is_demo: bool) -> None:
    app = make_demo_app() if is_demo else make_app(ReadyPages(serving_overview()))
    async with scene(app) as (_, pilot):
        for number, presses in ((number, presses) for number, most in VIEWS.items() for presses in range(most + 1)):
            await press(pilot, number, *["v"] * presses)
            main = app.main
            rows = (*main.tab.keys, *main.keys)
            can = [verb for row in rows for verb in row.acts]
            by_key = Counter(BY_NAME[verb].key for verb in {*can})
            assert {*by_key.values()} == {1} and len(can) == len({*can})
            named = {word for row in rows for word in row.verbs.split(" ")} & BY_NAME.keys() - {"pick", "open"}
            moves = {verb.name for verb in MOTIONS}
            assert named <= {*can, *moves}, "a key that footer or help names does something"
            await press(pilot, "ctrl+p")
            assert isinstance(main.popup, ListPopup) and isinstance(main.popup.listed, CommandList)
            listed = Counter(key for _, key in (row.cells for row in main.popup.listed.rows) if " v" not in key)
            wanted = ({*can, *moves} - {"palette"}) | {"next_tab", "previous_tab", "open"}
            assert {*listed} == {BY_NAME[verb].key for verb in wanted} | {*"12345"} and {*listed.values()} == {1}
            helped = "\n".join(map(plain, main._help_lines(Pen(100, BLOCK))))
            assert all(f"{row.shown} " in helped for row in rows if row.title)
            await press(pilot, *["escape"] * 3)


@pytest.mark.parametrize("keys", [["l"], ["3", "j"], ["5", "j"]], ids=["overview", "ops", "memory"])
async def test_the_key_of_the_previous_view_undoes_that_of_the_next(keys: list[str]) -> None:
    async with scene(make_app(ReadyPages(serving_overview())), keys) as (_, pilot):
        first = await after(pilot, "v", "V")
        assert await after(pilot, "v") != first and await after(pilot, "V") == first
        assert await after(pilot, "V") != first and await after(pilot, "v") == first, "the last one is before the first"


def test_signs_are_called_as_textual_calls_them() -> None:
    for key in (key for verb in VERBS for key in verb.keys if len(key) == 1):
        assert typed_name(key) == _character_to_key(key), key
