"""Where a copied name goes: the terminal's clipboard, tmux's buffer, and a file that is always there.

What is copied is one line that a shell or terminal does not obey when it is pasted: `AppScreen.copy` sees to that.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

YANK_FILE = "yank.txt"  # in `state_folder`
_TMUX_SECONDS = 2.0


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
