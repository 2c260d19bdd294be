"""``tpuprof-tui oom`` in a real pseudo-terminal: from a file, from a pipe, and what it costs on the wire."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.made.oom import MESSAGE
from tests.tui.terminal.pty.pty_app import START, PtyApp

BEGIN_BYTES = 20_000
MOVE_BYTES = 1_000

VERDICT = "OVER BY 12.06 GiB"


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "train.log"
    path.write_text(MESSAGE)
    return str(path)


def test_a_log_opens_on_the_screen_and_leaves_the_terminal_as_it_was(log: str) -> None:
    with PtyApp("oom", log, width=120, height=40) as app:
        before = 0
        for width, height in ((120, 40), (80, 24), (60, 15)):
            if before:
                app.resize(width, height)
            app.wait_for(lambda at: at.lines[-1].rstrip().endswith("q quit"))
            app.wait_for_text(VERDICT).wait_for_text("models.py:53")
            assert app.settle() - before <= BEGIN_BYTES
            app.press("j")
            moved = app.settle()
            app.press("k")
            before = app.settle()
            assert 0 < before - moved <= MOVE_BYTES
        app.press("j")
        app.settle()
        app.press("\r")
        app.wait_for_text("fusion.806")
        app.press("Q")
        assert app.wait_for_exit() == 0
        assert b"\x1b[?1049l" in app.written


def test_where_errors_go_elsewhere_the_screen_stays_on_the_terminal(log: str, tmp_path: Path) -> None:
    with piped(f"{{ run; }} oom {log} 2>{tmp_path / 'errors'}") as app:
        app.wait_for_text(VERDICT)
        app.press("Q")
        assert app.wait_for_exit() == 0
    assert (tmp_path / "errors").read_text() == ""


def test_a_pipe_is_read_to_its_end_and_keys_come_from_the_terminal(log: str) -> None:
    with piped(f"cat {log} | {{ run; }} oom -") as app:
        app.wait_for_text(VERDICT)
        app.press("j")
        app.wait_for(lambda at: any(line.startswith("▸ 2") for line in at.lines))
        app.press("\x03")
        assert app.wait_for_exit() == 0


def test_a_pipe_without_an_error_says_so() -> None:
    with piped("echo fine | { run; } oom -") as app:
        app.wait_for_text("holds no out-of-memory error of a TPU program (1 line read).")
        assert app.wait_for_exit() == 3


def test_ctrl_c_ends_a_pipe_that_does_not_end(log: str) -> None:
    with piped(f"{{ cat {log}; sleep 600; }} | {{ run; }} oom -") as app:
        app.wait_for_text("reading standard input")
        app.press("\x03")
        app.wait_for_text(VERDICT)
        app.press("q")
        app.wait_for_exit()


def piped(command: str) -> PtyApp:
    """A shell's pipe with the command line in it, in a terminal."""
    script = command.replace("{ run; }", '"$0" -c "$1"')
    return PtyApp(script, sys.executable, START, width=80, height=24, program=("/bin/sh", "-c"))
