"""Where a copied name goes: the terminal's clipboard, tmux's buffer, and a file that is always there.

What is copied is one line that a shell or terminal does not obey when it is pasted: `AppScreen.copy` sees to that.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tpuprof.parsers.base.folders import state_folder

FILE_NAME = "yank.txt"
_TMUX_SECONDS = 2.0
_FOR_ME = 0o600


def yank_file() -> Path:
    """``$XDG_STATE_HOME/tpuprof-tui/yank.txt``, by default below ``~/.local/state``."""
    return Path(state_folder(), FILE_NAME)


def write_yank_file(text: str) -> str:
    """Writes the text to the file, for this user's eyes; returns its path, or why it could not be written.

    Whatever has the file's name is replaced in one move: a link or a pipe there is not written into.
    """
    path = yank_file()
    if not path.is_absolute():
        return "not to a file (there is no home folder)"
    partial = path.with_name(f"{FILE_NAME}.{os.urandom(8).hex()}.part")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FOR_ME)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            os.replace(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        return f"not to a file ({error.strerror})"
    return str(path)


def load_tmux_buffer(text: str, environ: Mapping[str, str]) -> bool:
    """Gives the text to tmux, which passes it on to the terminal; False where there is no tmux to take it.

    tmux by default ignores the escape sequence that sets a terminal's clipboard.
    """
    if not environ.get("TMUX"):
        return False
    command, data = ["tmux", "load-buffer", "-w", "-"], text.encode()
    try:  # a fixed command
        done = subprocess.run(command, input=data, capture_output=True, timeout=_TMUX_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
