"""What users set by environment variables: theme, columns of the table of ops, cache. Nothing heavy is imported."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Literal, get_args

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import nearest_hint, printable

Theme = Literal["auto", "dark", "light", "high-contrast", "colour-blind"]
"""`dark` and `light` say what the background is; all others find it out."""

THEMES: tuple[Theme, ...] = get_args(Theme)

THEME_VARIABLE = "TPUPROF_THEME"
COLUMNS_VARIABLE = "TPUPROF_COLUMNS"
CACHE_VARIABLE = "TPUPROF_CACHE"

_SIZE = pattern(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?([kMGT]B)")
_UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


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


@dataclass(frozen=True, slots=True)
class Config:
    """What the environment sets.

    Attributes:
        custom: theme and columns.
        cache, cache_bytes: whether what was read of profiles is kept, and how much at most; None for as much as usual.
    """

    custom: Custom = UNCHANGED
    cache: bool = True
    cache_bytes: int | None = None


def read_config(environ: Mapping[str, str], theme: Theme | None = None) -> Config:
    """What the environment sets; a variable that is empty sets nothing.

    Args:
        theme: the theme that the command line asks for; the variable is not looked at then.

    Raises:
        ProfileError: a variable has a value that is not understood; exit code 2.
    """
    custom = Custom(theme or _theme(environ), _columns(environ))
    cache_bytes = _cache_bytes(environ)
    return Config(custom, cache_bytes != 0, cache_bytes)


def _theme(environ: Mapping[str, str]) -> Theme:
    text = environ.get(THEME_VARIABLE, "").strip() or "auto"
    for theme in THEMES:
        if text == theme:
            return theme
    raise _refused(THEME_VARIABLE, text, f"one of {', '.join(THEMES)}", "auto")


def _columns(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The columns in the order of the variable, each once."""
    names = tuple(dict.fromkeys(name.strip() for name in environ.get(COLUMNS_VARIABLE, "").split(",") if name.strip()))
    known: tuple[str, ...] = import_module("tpuprof.tui.pages").op_columns() if names else ()
    for name in names:
        if name not in known:
            sentence = (
                f"{COLUMNS_VARIABLE} names {printable(name[:40])}, which is not a column of the table of HLO ops."
            )
            hint = nearest_hint(name, known, f"one of: {', '.join(known)}")
            raise ProfileError("usage", sentence, hint, EXIT_USAGE)
    return names


def _cache_bytes(environ: Mapping[str, str]) -> int | None:
    """A number of bytes, 0 for ``off``; None where the variable sets nothing."""
    text = environ.get(CACHE_VARIABLE, "").strip()
    if not text:
        return None
    if text == "off":
        return 0
    size = _SIZE.fullmatch(text)
    if size is None or not float(size[1]):
        raise _refused(CACHE_VARIABLE, text, "a size such as 500 MB, or off", "'1 GB'")
    return round(float(size[1]) * _UNITS[size[2]])


def _refused(variable: str, text: str, wanted: str, default: str) -> ProfileError:
    sentence = f"{variable} is {printable(text[:40])} and should be {wanted}."
    return ProfileError("usage", sentence, f"{variable}={default} is the default", EXIT_USAGE)
