"""What users change: the theme, the columns of the table of ops. Names alone: nothing heavy is imported."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, get_args

from tpuprof.parsers.base.folders import config_folder
from tpuprof.parsers.base.record import dataclass

Theme = Literal["auto", "dark", "light", "high-contrast", "colour-blind"]
"""`dark` and `light` say what the background is; all others find it out."""

THEMES: tuple[Theme, ...] = get_args(Theme)


@dataclass(frozen=True, slots=True)
class Custom:
    """How a user wants the screen.

    Attributes:
        theme: colours.
        columns: keys of the fields that the table of HLO ops shows beside its first ones; empty for the built-in ones.
    """

    theme: Theme = "auto"
    columns: tuple[str, ...] = ()


UNCHANGED = Custom()

VARIABLE = "TPUPROF_CONFIG"  # names another file


@dataclass(frozen=True, slots=True)
class Config:
    """What the file sets.

    Attributes:
        path: where it is, or would be; empty where there is no home folder.
        custom: theme and columns.
        cache, cache_bytes: whether what was read of profiles is kept, and how much at most; None for as much as usual.
        remote_bytes: how much copies of remote profiles may take; None where the file does not say.
        settings: what the file sets, as names and words.
    """

    path: str
    is_there: bool = False
    custom: Custom = Custom()
    cache: bool = True
    cache_bytes: int | None = None
    remote_bytes: int | None = None
    settings: tuple[tuple[str, str], ...] = ()


def config_path(environ: Mapping[str, str]) -> str:
    """Where the file is looked for: ``$TPUPROF_CONFIG``, else ``config.toml`` in the folder of this program."""
    folder = config_folder()
    return environ.get(VARIABLE) or (os.path.join(folder, "config.toml") if os.path.isabs(folder) else "")
