"""Opens a source line in the user's editor while the app steps aside."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from typing import Any

from textual.app import App, SuspendNotSupported


def edit(app: App[Any], path: str, line: int, environ: Mapping[str, str]) -> str:
    """Runs ``$VISUAL``, ``$EDITOR`` or vi on a file and waits for it; says what went wrong, or nothing.

    ``+LINE`` before the name is what vi, nano, emacs and most others understand.
    """
    command = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words or not os.path.isfile(path):
        return f"{command} can't be run." if not words else f"{path} is not there any more."
    try:
        with app.suspend():
            subprocess.run([*words, f"+{line}", os.path.abspath(path)], check=False)  # noqa: S603 - the user's editor
    except SuspendNotSupported:
        return "This terminal can't be lent to an editor."
    except OSError as error:
        return f"{words[0]} can't be run: {error.strerror}."
    return ""
