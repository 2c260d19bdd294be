"""The folders that this program keeps files of its own in: XDG's on every system, Macs included."""

from __future__ import annotations

import os

NAME = "tpuprof-tui"


def cache_folder() -> str:
    """``$XDG_CACHE_HOME/tpuprof-tui``, by default below ``~/.cache``: what can be had again."""
    return _own("user_cache_dir")


def state_folder() -> str:
    """``$XDG_STATE_HOME/tpuprof-tui``, by default below ``~/.local/state``: what is kept between runs."""
    return _own("user_state_dir")


def _own(kind: str) -> str:
    """Never below the current folder, which may be a logdir: platformdirs before 4.12 takes relative variables."""
    from platformdirs.unix import Unix  # noqa: PLC0415 - takes 10 ms, and most commands keep nothing

    return os.path.join(os.path.expanduser("~"), getattr(Unix(NAME, appauthor=False), kind))
