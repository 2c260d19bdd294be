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
    """As XDG has it, a relative path counts as none: it would lead below the current folder, which may be a logdir."""
    given = os.environ.get(variable, "")
    return os.path.join(given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), default), NAME)
