"""What the environment says: what users set, and what the terminal can do: colours, characters, its connection.

Nothing here reads or changes the process: the environment comes as an argument, and what Textual should read goes
back as a mapping. So a test can stand at any terminal, and importing this costs nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Literal, get_args

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.folders import read_state
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable

Theme = Literal["auto", "dark", "light", "high-contrast", "colour-blind"]
"""`dark` and `light` say what the background is; all others find it out."""

THEMES: tuple[Theme, ...] = get_args(Theme)

THEME_VARIABLE = "TPUPROF_THEME"
CACHE_VARIABLE = "TPUPROF_CACHE"
BACKGROUND_FILE = "background"

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


ColorMode = Literal["truecolor", "256", "16", "mono"]
ColorChoice = Literal["auto", "always", "truecolor", "256", "16", "never"]
COLOR_CHOICES: tuple[ColorChoice, ...] = ("auto", "always", "truecolor", "256", "16", "never")

REMOTE_FRAMES_PER_SECOND = 20

_TRUECOLOR_TERMS = ("direct", "kitty", "alacritty", "ghostty", "wezterm", "foot")
_MONO_TERMS = ("vt1", "vt2", "vt3", "xterm-mono", "ansi-mono")
_COLOR_SYSTEMS: dict[ColorMode, str] = {"truecolor": "truecolor", "256": "256", "16": "standard", "mono": "standard"}
_CHOICES: dict[str, ColorMode] = {"truecolor": "truecolor", "256": "256", "16": "16", "never": "mono"}


@dataclass(frozen=True, slots=True)
class Terminal:
    """What to draw with, and how sparingly.

    Attributes:
        obstacle: why no screen can be drawn here at all, as a sentence; empty where one can.
        color: how many colours; `mono` means none, only bold, reverse and underline.
        light: the background is light; None where nothing says so.
        unicode: block and line characters come out as such.
        remote: reached over SSH, so bytes count and the mouse is left to the terminal.
        mouse: whether to ask the terminal for mouse events.
        multiplexer: `tmux`, `screen` or nothing.
    """

    obstacle: str
    color: ColorMode
    light: bool | None
    unicode: bool
    remote: bool
    mouse: bool
    multiplexer: Literal["", "tmux", "screen"]
    theme: Theme = "auto"


def detect(
    environ: Mapping[str, str],
    *,
    color: str = "auto",
    ascii_only: bool | None = None,
    mouse: bool | None = None,
    is_tty: bool = True,
    theme: Theme = "auto",
    kept: bool | None = None,
) -> Terminal:
    """Reads the terminal off its environment variables; what the user asked for overrides what they say.

    Args:
        color: `auto`, `always`, `truecolor`, `256`, `16` or `never`.
        ascii_only: True or False where the user said so, None to go by the locale.
        mouse: likewise; None means on, but off over SSH and in GNU screen, which then holds Esc back.
        is_tty: whether input and output are a terminal.
        kept: whether the background that the user chose last is light; a theme that is given overrides it.
    """
    term = environ.get("TERM", "")
    remote = any(environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"))
    return Terminal(
        obstacle=_obstacle(term, is_tty),
        color=_CHOICES.get(color) or _color_mode(term, environ),
        light=theme == "light" if theme in ("dark", "light") else _is_light(environ) if kept is None else kept,
        unicode=_is_utf8(term, environ) if ascii_only is None else not ascii_only,
        remote=remote,
        mouse=not remote and not environ.get("STY") if mouse is None else mouse,
        multiplexer="tmux" if environ.get("TMUX") else "screen" if environ.get("STY") else "",
        theme=theme,
    )


def textual_settings(terminal: Terminal, environ: Mapping[str, str]) -> dict[str, str | None]:
    """Environment variables to set (or, where None, to remove) before Textual is imported.

    Animation is off: it costs bytes and time and says nothing. The user's frame rate, key delay and theme stay.
    """
    settings: dict[str, str | None] = {
        "TEXTUAL_COLOR_SYSTEM": _COLOR_SYSTEMS[terminal.color],
        "TEXTUAL_ANIMATIONS": "none",
        "TEXTUAL_SMOOTH_SCROLL": "0",
        "NO_COLOR": "1" if terminal.color == "mono" else None,
    }
    if terminal.remote and "TEXTUAL_FPS" not in environ:
        settings["TEXTUAL_FPS"] = str(REMOTE_FRAMES_PER_SECOND)
    return settings


def _obstacle(term: str, is_tty: bool) -> str:
    if not is_tty:
        return "Input or output is not a terminal."
    if term in ("", "dumb", "unknown"):
        return f"The terminal can't place text (TERM is {term})." if term else "TERM is not set."
    return ""


def _color_mode(term: str, environ: Mapping[str, str]) -> ColorMode:
    """Colours by NO_COLOR (when not empty, as its convention has it), then COLORTERM, then TERM.

    SSH passes TERM on but not COLORTERM, so that most remote terminals say 256.
    """
    if environ.get("NO_COLOR") or term.startswith(_MONO_TERMS):
        return "mono"
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or any(name in term for name in _TRUECOLOR_TERMS):
        return "truecolor"
    return "256" if "256" in term else "16"


def _is_light(environ: Mapping[str, str]) -> bool | None:
    """A light background, by the last number of COLORFGBG (7 and 15 are white); the Linux console has a dark one."""
    ground = environ.get("COLORFGBG", "").rpartition(";")[2]
    return ground in ("7", "15") if ground or environ.get("TERM") == "linux" else None


def kept_background() -> bool | None:
    """Whether the user chose the colours for a light background last; None where the user chose none."""
    return {"light": True, "dark": False}.get(read_state(BACKGROUND_FILE))


def _is_utf8(term: str, environ: Mapping[str, str]) -> bool:
    """Whether the locale is UTF-8. Python's own encoding doesn't show it: under LANG=C it says UTF-8 all the same.

    The Linux console has a font of 256 or 512 characters, without eighth blocks.
    """
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
    return "utf8" in locale.lower().replace("-", "") and term != "linux"


def settle_terminal(color: str, ascii_only: bool | None, mouse: bool | None, theme: Theme = "auto") -> Terminal:
    """What the terminal can do; also sets it up for Textual, which reads its settings when it is imported."""
    _draw_on_standard_output()
    kept = kept_background()
    terminal = detect(os.environ, color=color, ascii_only=ascii_only, mouse=mouse, theme=theme, kept=kept)
    for name, value in textual_settings(terminal, os.environ).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return terminal


def _draw_on_standard_output() -> None:
    """Has the screen drawn on standard output where standard error is not a terminal: closed, or redirected to a file.

    Textual draws on what Python's standard error was when it started. What this program says on standard error goes
    where the user has sent it.
    """
    original = sys.__stderr__
    if original is None or original.closed or not original.isatty():
        sys.__stderr__ = sys.__stdout__  # type: ignore[misc]
