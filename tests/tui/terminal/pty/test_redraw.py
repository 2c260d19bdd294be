"""The app draws the cells that changed: the screen is never another than whole frames draw."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pyte
import pytest

from tests.tui.terminal.pty.pty_app import PtyApp, demo

WALK = "jkjjgG12345v1v3vjjs/\x1b?\x1bwdsallhjn\tjjbbv\r\x1bGg 4]dws[jjl5jjm\x1bjx\x1b"
_ROUNDS = int(os.environ.get("TPUPROF_WALKS", "2"))


def seen(screen: pyte.Screen) -> list[list[tuple[object, ...]]]:
    """Each cell as it looks: the ink of a blank is not seen."""
    return [[_cell(screen.buffer[y][x]) for x in range(screen.columns)] for y in range(screen.lines)]


def _cell(cell: pyte.screens.Char) -> tuple[object, ...]:
    plain = cell.data == " " and not (cell.reverse or cell.underscore or cell.strikethrough)
    return (" ", cell.bg) if plain else tuple(cell)


def hold_whole(app: PtyApp, keys: Sequence[str]) -> None:
    """What stands on the screen is what a whole frame draws on one that was cleared."""
    app.settle()
    before, text = seen(app.screen), app.text
    app.clear()
    app.press("\x0c")
    app.settle()
    assert app.text == text, keys
    assert seen(app.screen) == before, keys


@pytest.mark.parametrize("seed", range(_ROUNDS))
def test_changes_draw_what_whole_frames_draw(seed: int) -> None:
    chance = random.Random(seed)
    width, height = chance.choice(((80, 24), (120, 40), (100, 30)))
    with demo(width, height, COLORTERM=chance.choice(("", "truecolor"))) as app:
        pressed: list[str] = []
        for _ in range(6):
            keys = "".join(chance.choice(WALK) for _ in range(chance.randint(1, 8)))
            pressed.append(keys)
            app.press(keys)
            hold_whole(app, pressed)
            if chance.random() < 0.3:
                app.resize(*chance.choice(((100, 30), (80, 24), (130, 45))))
                hold_whole(app, pressed)
