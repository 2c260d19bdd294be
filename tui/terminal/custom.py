"""What users set by environment variables: theme, cache. Nothing heavy is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable

Theme = Literal["auto", "dark", "light", "high-contrast", "colour-blind"]
"""`dark` and `light` say what the background is; all others find it out."""

THEMES: tuple[Theme, ...] = get_args(Theme)

THEME_VARIABLE = "TPUPROF_THEME"
CACHE_VARIABLE = "TPUPROF_CACHE"

_SIZE = pattern(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?([kMGT]B)")
_UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


@dataclass(frozen=True, slots=True)
class Config:
    """What the environment sets.

    Attributes:
        cache, cache_bytes: whether what was read of profiles is kept, and how much at most; None for as much as usual.
    """

    theme: Theme = "auto"
    cache: bool = True
    cache_bytes: int | None = None


def read_config(environ: Mapping[str, str], theme: Theme | None = None) -> Config:
    """What the environment sets; a variable that is empty sets nothing.

    Args:
        theme: the theme that the command line asks for; the variable is not looked at then.

    Raises:
        ProfileError: a variable has a value that is not understood; exit code 2.
    """
    cache_bytes = _cache_bytes(environ)
    return Config(theme or _theme(environ), cache_bytes != 0, cache_bytes)


def _theme(environ: Mapping[str, str]) -> Theme:
    text = environ.get(THEME_VARIABLE, "").strip() or "auto"
    for theme in THEMES:
        if text == theme:
            return theme
    raise _refused(THEME_VARIABLE, text, f"one of {', '.join(THEMES)}", "auto")


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
