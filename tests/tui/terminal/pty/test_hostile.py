"""A terminal that sends anything, comes and goes at any moment: the app stays, and leaves it as it was."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.made.oom import MESSAGE
from tests.tui.terminal.pty.hostile import PIECES
from tests.tui.terminal.pty.pty_app import START, PtyApp, demo

KEYS = b"jkGghl12345v/fu\r\t\x1b?bsdw[]nNxm \x7f\x0c"
SESSIONS = int(os.environ.get("TPUPROF_SESSIONS", "2"))
ENDS = b"\x1b[201~\x1b\\\x1b[A"


@pytest.mark.parametrize("seed", range(SESSIONS))
def test_an_app_answers_after_any_bytes(seed: int) -> None:
    """`TPUPROF_SESSIONS=300` runs more; a seed is a session."""
    chance = random.Random(seed)
    with demo(80, 24) as app:
        for _ in range(chance.randint(1, 12)):
            keys = bytes(chance.choice(KEYS) for _ in range(chance.randint(0, 6)))
            app.send(keys + chance.choice((*PIECES, chance.randbytes(chance.randint(1, 40)))))
            if chance.random() < 0.5:
                app.read(0.05)
        app.send(ENDS)
        app.settle()
        if app.has_ended():  # a random byte may be a key that ends it
            assert app.exit_code == 0
        else:
            app.send(b"\x11")
        assert app.wait_for_exit() == 0
        assert app.is_restored and b"Traceback" not in app.written


def test_what_was_typed_before_survives_a_paste_in_another_encoding() -> None:
    with demo(80, 24) as app:
        app.press("3")
        app.wait_for_text("[Profile]").settle()
        app.press("/fusi")
        app.wait_for(lambda at: "/fusi" in at.lines[-1])
        app.send(b"\x1b[200~\xe9\x1bQ\x1b[201~\x1b[M#\xff\xff\x1b[1:2;3u\xe9" + "é".encode())
        app.wait_for(lambda at: "é" in at.lines[-1])
        assert app.lines[-1].startswith(" /fusi? Q?é_")
        app.press("\x11")
        assert app.wait_for_exit() == 0 and app.is_restored


ELSEWHERE = """import signal, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT, signal.SIGTSTP})
"""
"""The system gives these signals to a thread that runs no handlers."""


def _key(app: PtyApp) -> None:
    app.press("\x1a")
    app.wait_for(PtyApp.is_stopped).clear()
    os.kill(app.process, signal.SIGCONT)


def _key_and_size(app: PtyApp) -> None:
    app.press("\x1a")
    app.wait_for(PtyApp.is_stopped).resize(100, 30)
    app.clear()
    os.kill(app.process, signal.SIGCONT)
    app.wait_for(lambda at: at.lines[-1].rstrip().endswith("q quit"))
    app.resize(80, 24)


def _from_outside(app: PtyApp) -> None:
    os.kill(app.process, signal.SIGSTOP)
    app.wait_for(PtyApp.is_stopped).clear()
    os.kill(app.process, signal.SIGCONT)


def _back_before_it_stops(app: PtyApp) -> None:
    app.clear()
    os.kill(app.process, signal.SIGTSTP)
    os.kill(app.process, signal.SIGCONT)
    if app.is_stopped():
        os.kill(app.process, signal.SIGCONT)


@pytest.mark.parametrize("elsewhere", ["", ELSEWHERE], ids=["main thread", "another thread"])
@pytest.mark.parametrize("goes", [_key, _key_and_size, _from_outside, _back_before_it_stops])
def test_a_terminal_that_comes_back_gets_the_whole_screen(goes: Callable[[PtyApp], None], elsewhere: str) -> None:
    with demo(80, 24, (sys.executable, "-c", elsewhere + START)) as app:
        app.press("3")
        app.wait_for_text("[Profile]").settle()
        text = app.text
        for _ in range(2):
            goes(app)
            app.wait_for(lambda at: at.text == text).settle()
        app.press("q")
        assert app.wait_for_exit() == 0 and app.is_restored


EDITORS = {
    "takes a line": 'echo "$@" > called',
    "can't be run": None,
    "is killed": r"stty raw; printf '\033[5;10r\033[4h'; kill -9 $$",
    "stops itself": "kill -STOP $$",
    "is interrupted": "trap 'exit 0' INT; echo up; while :; do sleep 0.1; done",
}


@pytest.mark.parametrize("how", EDITORS)
def test_the_app_comes_back_from_an_editor_that(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "models.py").write_text("pass\n" * 90)
    (tmp_path / "log").write_text(MESSAGE)
    monkeypatch.chdir(tmp_path)
    if (code := EDITORS[how]) is not None:
        (tmp_path / "editor").write_text(f"#!/bin/sh\n{code}\n")
        (tmp_path / "editor").chmod(0o755)
    with PtyApp("oom", "log", width=80, height=24, environ={"EDITOR": "./editor -w"}) as app:
        app.wait_for_text("models.py:53")
        app.press("j")
        app.settle()
        app.clear()
        app.press("e")
        if how == "stops itself":
            app.wait_for(PtyApp.is_stopped)
            os.killpg(app.process, signal.SIGCONT)
        if how == "is interrupted":
            app.wait_for_text("up").press("\x03")
        app.wait_for_text("can't be run" if code is None else "in your editor").wait_for_text("OVER BY")
        app.press("q")
        assert app.wait_for_exit() == 0 and app.is_restored
    if how == "takes a line":
        assert (tmp_path / "called").read_text() == f"-w +53 {tmp_path}/train/models.py\n"
