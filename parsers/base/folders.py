"""The folders that this program keeps files of its own in: XDG's on every system, Macs included."""

from __future__ import annotations

import os

NAME = "tpuprof-tui"


def cache_folder() -> str:
    """``$XDG_CACHE_HOME/tpuprof-tui``, by default below ``~/.cache``: what can be had again."""
    from platformdirs.unix import Unix  # noqa: PLC0415 - takes 10 ms, and most commands keep nothing

    return _absolute(Unix(NAME, appauthor=False).user_cache_dir)


def state_folder() -> str:
    """``$XDG_STATE_HOME/tpuprof-tui``, by default below ``~/.local/state``: what is kept between runs."""
    from platformdirs.unix import Unix  # noqa: PLC0415 - as above

    return _absolute(Unix(NAME, appauthor=False).user_state_dir)


def _absolute(folder: str) -> str:
    """Never below the current folder, which may be a logdir: platformdirs before 4.12 takes relative variables."""
    return os.path.join(os.path.expanduser("~"), folder)
