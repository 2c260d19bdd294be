"""The folders that this program keeps files of its own in: XDG's on every system, Macs included."""

from __future__ import annotations

import os

NAME = "tpuprof-tui"


def cache_folder() -> str:
    """``$XDG_CACHE_HOME/tpuprof-tui``, by default below ``~/.cache``: what can be had again."""
    return _own("XDG_CACHE_HOME", ".cache")


def state_folder() -> str:
    """``$XDG_STATE_HOME/tpuprof-tui``, by default below ``~/.local/state``: what is kept between runs."""
    return _own("XDG_STATE_HOME", ".local/state")


def _own(variable: str, default: str) -> str:
    """Never below the current folder, which may be a logdir: a relative path is one of the home folder."""
    return os.path.join(os.path.expanduser("~"), os.environ.get(variable, "").strip() or default, NAME)
