"""The app in a real pseudo-terminal: what it writes, how it ends, how many bytes it sends."""

from __future__ import annotations

import fcntl
import os
import pty
import random
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.tui.terminal.pty.pty_app import DEADLINE_SECONDS, START, PtyApp, demo

SIZES = ((80, 24), (120, 40))
"""What an app of the usual size is resized to, one after the other."""
LEAVES_SCREEN = b"\x1b[?1049l"
SHOWS_CURSOR = b"\x1b[?25h"

START_BYTES = 40_000
FRAME_BYTES = 6
"""A cell of a frame in which everything changed: each change of colour takes some twenty."""
MOVE_BYTES = 1_500
ROW_BYTES = 600
CARD_BYTES = 4000
TAB_BYTES = 30_000


def leave(app: PtyApp, key: str) -> None:
    """Leaves the app by a key; the terminal is then as it was."""
    assert not app.is_restored
    app.press(key)
    assert app.wait_for_exit() == 0
    assert LEAVES_SCREEN in app.written and app.is_restored
    assert app.written.rindex(SHOWS_CURSOR) > app.written.index(b"\x1b[?25l")


@pytest.mark.parametrize("seed", range(int(os.environ.get("TPUPROF_KILLS", "4"))))
def test_a_signal_at_any_moment_leaves_the_terminal_as_it_was(seed: int) -> None:
    moment = random.Random(seed)
    number = moment.choice((signal.SIGTERM, signal.SIGHUP, signal.SIGINT))
    program = (sys.executable, "-c", f"print('begun', flush=True); {START}")
    with PtyApp("demo", width=80, height=24, program=program) as app:
        app.wait_for(lambda at: b"begun" in at.written)  # before that Python itself is starting
        end = time.monotonic() + moment.uniform(0, 2)
        while (rest := end - time.monotonic()) > 0:
            app.read(rest)
        os.kill(app.process, number)
        code = app.wait_for_exit()
        assert abs(code) in (number, 128 + number)
        assert app.is_restored, app.written
        assert LEAVES_SCREEN not in app.written or signal.Signals(number).name.encode() in app.written


WITHOUT_ERRORS = {
    "closed": "import os; os.close(2); os.execv(sys.executable, [sys.executable, '-c', START, *sys.argv[1:]])",
    "in a file": "import os; os.dup2(os.open('errors.txt', os.O_CREAT | os.O_WRONLY), 2); "
    "os.execv(sys.executable, [sys.executable, '-c', START, *sys.argv[1:]])",
}


@pytest.mark.parametrize("how", WITHOUT_ERRORS)
def test_an_app_without_standard_error_draws_and_ends(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = (sys.executable, "-c", f"import sys; START = {START!r}; {WITHOUT_ERRORS[how]}")
    with demo(80, 24, program) as app:
        leave(app, "q")
    errors = tmp_path / "errors.txt"
    assert not errors.exists() or not errors.read_bytes()


ENDS = {
    "an error while it ends": (
        "def broken(self): raise AssertionError('late')\nMainScreen._on_unmount = broken\n",
        b"AssertionError: late",
    ),
    "an error that can show itself": (
        "class Own(Exception):\n    def __rich__(self): return ''\n"
        "def broken(self, key): raise Own('own')\nMainScreen.act = broken\n",
        b"Own: own",
    ),
    "an error in a thread": (
        "from tpuprof.tui.app import app\ndef broken(self, key):\n"
        "    self.run_worker(lambda: 1 / 0, thread=True)\nMainScreen.act = broken\n",
        b"ZeroDivisionError",
    ),
    "its loop is cancelled": (
        "import asyncio\ndef broken(self, key):\n"
        "    [task.cancel() for task in asyncio.all_tasks()]\nMainScreen.act = broken\n",
        b"for an unknown reason",
    ),
}
"""How an app may end by itself, and what it says then."""


@pytest.mark.parametrize("how", ENDS)
def test_an_app_that_ends_by_itself_says_why(how: str) -> None:
    code, said = ENDS[how]
    program = f"import sys\nfrom tpuprof.tui.app.app import MainScreen\n{code}{START}"
    with demo(80, 24, (sys.executable, "-c", program)) as app:
        app.press("jq" if "thread" in how else "q" if "ends" in how else "j")
        assert app.wait_for_exit() == 1
        assert app.is_restored and said in app.written and b"Please report it" in app.written


STUCK = """
import os, sys, time
from tpuprof.tui.app.app import MainScreen
from tpuprof.tui.cli.main import main
def act(self, key):
    os.write(1, b"hangs now")
    time.sleep(600)
MainScreen.act = act
sys.exit(main(sys.argv[1:]))
"""


def test_a_signal_ends_an_app_whose_screen_hangs() -> None:
    with demo(80, 24, (sys.executable, "-c", STUCK)) as app:
        app.press("j")
        app.wait_for(lambda at: b"hangs now" in at.written)
        os.kill(app.process, signal.SIGTERM)
        assert app.wait_for_exit() == 128 + signal.SIGTERM
        assert app.is_restored and b"ended by SIGTERM" in app.written


def test_a_pattern_that_never_ends_leaves_the_keys_alive() -> None:
    with demo(80, 24) as app:
        app.press("3")
        app.wait_for_text("[Profile]")
        app.press("v")
        app.wait_for_text("[HLO ops]")
        app.press("/~(.*.*.*.*.*.*)*ZQ")
        app.wait_for_text("searching")
        app.press("\x1b")
        app.wait_for(lambda at: "searching" not in at.text)
        app.press("q")
        assert app.wait_for_exit() == 0
        assert app.is_restored


def test_no_secret_of_an_address_reaches_screen_title_or_disk(tmp_path: Path) -> None:
    """Not what is drawn, nor a title (OSC 0 to 2) or a clipboard (OSC 52), nor a file that is kept or logged to."""
    pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'tpuprof-tui[remote]'")
    url = "http://user:hunter2@127.0.0.1:9/host.xplane.pb?token=hunter2&X-Amz-Signature=hunter2"
    with PtyApp(url, width=80, height=24, environ={"HOME": str(tmp_path), "PYTHONASYNCIODEBUG": "1"}) as app:
        app.wait_for_text("http://127.0.0.1:9/host.xplane.pb?")
        app.wait_for_text("Nothing to show")
        for key in "yr?":
            app.press(key)
            app.settle()
        app.press("Q")
        app.wait_for_exit()
        assert b"hunter2" not in app.written
        assert not re.search(rb"\x1b\][012];", app.written), "no title is set"
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in kept if b"hunter2" in path.read_bytes() or "hunter2" in path.name]


BROKEN = """
import sys
from tpuprof.tui.app.app import MainScreen
from tpuprof.tui.cli.main import main
def broken(self, key):
    address = sys.argv[1]
    raise AssertionError(f"{address} \\x1b[31m")
MainScreen.act = broken
sys.exit(main(sys.argv[1:]))
"""


def test_an_error_in_the_program_is_told_without_secrets() -> None:
    """Its traceback has no values of variables, which may be addresses, and nothing that a terminal obeys."""
    url = "http://user:hunter2@127.0.0.1:9/host.xplane.pb?token=hunter2"
    with PtyApp(url, width=80, height=24, program=(sys.executable, "-c", BROKEN)) as app:
        app.wait_for_text("Nothing to show")
        app.press("j")
        assert app.wait_for_exit() == 1
        assert app.is_restored
        for words in (
            *(b"Traceback (most recent call last)", b"in broken", b"AssertionError: http://127.0.0.1:9/host"),
            b"Please report it",
        ):
            assert words in app.written
        assert b"hunter2" not in app.written and b"\x1b[31m" not in app.written


def test_a_lost_connection_ends_the_app() -> None:
    with demo(80, 24) as app:
        app.hang_up()
        app.wait_for_exit()
        assert app.exit_code is not None


def test_a_terminal_that_controls_nobody_ends_the_app_too() -> None:
    """In a container or under setsid no signal comes when the terminal goes."""
    outside, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "tpuprof.tui", "demo"]
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(
        command, stdin=inside, stdout=inside, stderr=inside, env=environment, start_new_session=True
    ) as app:
        os.close(inside)
        written = b""
        while b"Top ops" not in written:
            written += os.read(outside, 1 << 16)
        os.close(outside)
        try:
            assert app.wait(DEADLINE_SECONDS) == 128 + signal.SIGHUP
        finally:
            app.kill()


def test_bytes_that_are_sent_stay_within_budget() -> None:
    with demo() as app:
        start = app.settle()
        assert start <= START_BYTES
        app.press("j")
        moved = app.settle() - start
        assert 0 < moved <= MOVE_BYTES
        app.press("5")
        app.wait_for_text("at the peak")
        loaded = app.settle() - start - moved
        assert 0 < loaded <= FRAME_BYTES * 120 * 40, "what it waits for, and then the page"
        app.press("1")
        app.wait_for_text("Top ops")
        left = app.settle() - start - moved - loaded
        assert 0 < left <= TAB_BYTES
        app.press("5")
        app.wait_for_text("at the peak")
        assert 0 < app.settle() - start - moved - loaded - left <= TAB_BYTES


def test_a_step_in_a_table_repaints_two_lines_and_the_card_when_the_cursor_rests() -> None:
    with demo() as app:
        app.press("3")
        app.wait_for_text("[Profile]")
        app.press("v")
        app.wait_for_text("[HLO ops]")
        for width, height in SIZES:
            app.resize(width, height)
            app.press("j")
            before = app.settle()
            app.press("jjjjjjjj")  # at once: the card is drawn after the last one
            assert 0 < app.settle() - before <= 8 * ROW_BYTES + CARD_BYTES


def test_the_timeline_repaints_only_what_changes() -> None:
    with demo() as app:
        app.press("4")
        app.wait_for_text("XLA Ops")
        app.wait_for_text("[ ] step")
        for width, height in SIZES:
            app.resize(width, height)
            app.press("j")
            written = app.settle()
            app.press("]")
            stepped = app.settle()
            assert 0 < stepped - written <= FRAME_BYTES * width * height
            app.press("lll")  # the cursor, and what is under it
            moved = app.settle()
            assert 0 < moved - stepped <= 3 * MOVE_BYTES
            app.press("j")
            assert 0 < app.settle() - moved <= 2 * MOVE_BYTES


def test_an_idle_screen_writes_nothing() -> None:
    with demo(80, 24) as app:
        before = app.settle()
        assert app.settle(1.5) == before
        leave(app, "q")


def test_ascii_without_colours_where_the_terminal_has_neither() -> None:
    with demo(80, 24, LANG="C", LC_ALL="C", NO_COLOR="1") as app:
        app.settle()
        colours = (b"\x1b[38;", b"\x1b[48;", b";38;5;", b";48;5;", b";38;2;", b";48;2;", b"\x1b]11;")
        assert app.text.isascii() and not any(code in app.written for code in colours)
        assert "SIMULATED" in app.text and "RRR" in app.text and "LLL" in app.text  # the owners are spelt
        app.press("?")
        app.wait_for_text("Help")
        assert app.text.isascii()
        leave(app, "\x03")


def test_sixteen_colours_are_those_that_are_seen_on_the_background_that_it_answers() -> None:
    with demo(80, 24, TERM="screen") as app:
        app.settle()
        assert b"\x1b]11;?" in app.written and not re.search(rb"[;[](33|93|38;[25])[;m]", app.written)
        app.send(b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\")
        app.wait_for(lambda at: b"[31;" in at.written)
        assert not re.search(rb"[;[](32|33|36|93|38;[25])[;m]", app.written)
        leave(app, "\x11")


def test_a_path_without_profiles_says_what_was_searched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with PtyApp(str(tmp_path), width=80, height=24) as app:
        app.wait_for_text("Nothing to show")
        app.wait_for_text("notes.txt")
        app.press("q")
        assert app.wait_for_exit() == 0


@pytest.mark.shared
def test_the_real_run_is_on_the_screen(shared: Path) -> None:
    with PtyApp(str(shared / "profiles/tpu-v6e-inference")) as app:
        for width, height in SIZES:
            app.resize(width, height)
            app.wait_for_text("copy-done.4")
            app.settle()
            for words in ("TPU v6 Lite", "MODULE RUN", "784.3 ms", "79.9%", "20.1%", "100 runs of jit_f", "24.7%"):
                assert words in app.text
            assert "SIMULATED" not in app.text
