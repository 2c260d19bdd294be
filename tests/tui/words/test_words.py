"""What users read: no banned words, and help that fits a terminal of 80 columns."""

from __future__ import annotations

import re

import pytest

from tests.support.imports import Source
from tests.tui.words.collect import KINDS, of_markdown, of_source, sentences
from tests.tui.words.style import BANNED, breaches
from tpuprof.tui.cli.table import COMMANDS
from tpuprof.tui.pages import PAGE_NAMES

PLANTED = '''
"""HBM holds up this module."""
class _Hidden:
    """It tells of nothing."""
def public(x: int) -> str:
    """It is told by its name."""
    return f"as large ones {x} can" "; what the better used of both leaves" + "".join(["one"])
_WAY = 1
"""Nobody reads what is under way here."""
WAY = 2
"""What is under way."""
'''


def test_no_sentence_has_a_banned_word() -> None:
    found = sentences()
    assert {each.kind for each in found} == {*KINDS} and len(found) > 5_000
    assert [f"{each.path}:{each.line}: {words!r}: {instead}" for each, words, instead in breaches(found)] == []


def test_a_planted_word_is_found_where_users_read_it() -> None:
    found = [
        *of_source(Source("planted.py", PLANTED)),
        *of_markdown("planted.md", "Fine.\n\n```\nholds up\n```\n| it tells of it |"),
    ]
    wrong = [(each.line, each.kind, words) for each, words, _ in breaches(found)]
    assert wrong == [
        (2, "docstring", "holds up"),
        (6, "docstring", "is told by"),
        (7, "text", "what the better used"),
        (11, "docstring", "under way"),
        (6, "readme", "tells of"),
    ]
    assert len(BANNED) >= 20


def test_help_lists_every_command() -> None:
    listed = COMMANDS[""].parser().format_help().partition("commands:")[2]
    assert all(re.search(rf"\b{command}\b", listed) for command in COMMANDS)


@pytest.mark.parametrize("call", [*COMMANDS, *(f"report {page}" for page in PAGE_NAMES)])
def test_help_fits_one_screen_and_begins_with_examples(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command, *page = call.split() or [""]
    lines = COMMANDS[command].parser(page).format_help().splitlines()
    assert lines[0].startswith("usage: ") and [line for line in lines if len(line) > 80] == []
    assert len(lines) <= 40
    assert any(line.startswith(f"  tpuprof-tui {call}") for line in lines[3:8])
