"""Colours: what each style key looks like, for every number of colours a terminal may have.

The classes of ops keep the colours of Okabe and Ito, which colour-blind people can tell apart and which survive 256
colours almost unchanged; the other keys are greys and one accent. With 16 colours the terminal's own stand in, and
without colours bold, reverse and underline do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, get_args

from rich.color import Color
from rich.style import Style

from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.draw.bars import CLASS_STYLE, ON_CLASS_STYLE
from tpuprof.tui.draw.spans import Fill, Pair, StyleKey
from tpuprof.tui.terminal.detect import ColorMode

ChromeKey = Literal[
    "bar",  # the header line and the footer
    "bar.dim",
    "bar.strong",  # the run's name
    "bar.key",
    "tab",  # the tab that is not shown
    "tab.key",
    "tab.active",
    "panel",  # lists and help above the screen
    "panel.dim",
    "panel.strong",
    "panel.title",
    "panel.frame",
    "panel.key",
    "panel.warn",
    "panel.cursor",
    "input",  # what is being typed
]
"""Styles of what surrounds a page; drawing functions know nothing of them."""

AnyKey = StyleKey | ChromeKey
AnySpan = tuple[str, AnyKey | Pair]
AnyLine = tuple[AnySpan, ...]

KEYS: tuple[AnyKey, ...] = (*get_args(StyleKey), *get_args(ChromeKey))

_Shade = tuple[str, int]
"""One colour twice: as ``#rrggbb``, and as the index that stands for it among 256."""

_SHADES: dict[str, tuple[_Shade, _Shade]] = {
    "page": (("#13161b", 233), ("#fbfaf7", 231)),
    "bar": (("#22272f", 235), ("#e9e6df", 254)),
    "panel": (("#1c2027", 234), ("#f3f1ec", 255)),
    "cursor": (("#363e4b", 237), ("#d6dfec", 189)),
    "text": (("#cdd2da", 252), ("#2b2f36", 236)),
    "dim": (("#8a919e", 245), ("#6a6f78", 242)),
    "strong": (("#ffffff", 231), ("#000000", 16)),
    "rule": (("#3c434f", 238), ("#c9c5bc", 251)),
    "accent": (("#e3b45c", 179), ("#8a5a00", 94)),
    "on accent": (("#13161b", 233), ("#ffffff", 231)),
    "good": (("#5fc9a0", 79), ("#00734f", 29)),
    "warn": (("#ffaf00", 214), ("#a85400", 130)),
    "bad": (("#ff7a66", 209), ("#c0281c", 124)),
    "ink": (("#13161b", 233), ("#000000", 16)),  # words on a coloured field
    "light ink": (("#ffffff", 231), ("#ffffff", 231)),  # words on a dark coloured field
    "match ink": (("#13161b", 233), ("#ffffff", 231)),
    "compute": (("#56b4e9", 74), ("#0072b2", 25)),
    "vector": (("#009e73", 36), ("#009e73", 36)),
    "copy": (("#f0e442", 221), ("#c9a400", 178)),
    "collective": (("#cc79a7", 175), ("#b8558c", 132)),
    "host": (("#d55e00", 166), ("#d55e00", 166)),
    "idle": (("#6b7280", 242), ("#8f8f8f", 245)),
    "unknown": (("#999999", 246), ("#808080", 244)),
    "step": (("#39465a", 238), ("#c3cddd", 252)),
    "module": (("#566274", 241), ("#a3b0c4", 248)),
    "match": (("#ff5fff", 207), ("#d000d0", 164)),
}
"""Each colour on a dark background, and on a light one."""

_Poor = tuple[str, str, str]
"""A style where colours are few, in rich's words: with 16 colours on dark and on light, and without colours."""

_PLAIN: _Poor = ("", "", "")
_DIM: _Poor = ("dim", "bright_black", "")
_BOLD: _Poor = ("bold", "bold", "bold")
_KEY: _Poor = ("bold bright_yellow", "bold blue", "bold")
_WARN: _Poor = ("bold yellow", "bold magenta", "bold")
_REVERSE: _Poor = ("reverse", "reverse", "reverse")
_CYAN: _Poor = ("cyan", "blue", "")
_BADGE: _Poor = ("black on yellow", "black on yellow", "reverse bold")
_ACTIVE: _Poor = ("bold black on bright_yellow", "bold bright_white on blue", "reverse bold")
_SELECTED: _Poor = ("bold black on bright_white", "bold bright_white on black", "reverse bold underline")
_MATCH: _Poor = ("bold underline bright_white on bright_blue", "bold underline black on yellow", "reverse")
_ON_DARK, _ON_LIGHT = "bright_white on bright_black", "black on white"

_STYLES: dict[AnyKey, tuple[str, str, str, _Poor]] = {
    "text": ("text", "page", "", _PLAIN),
    "dim": ("dim", "page", "", _DIM),
    "strong": ("strong", "page", "bold", _BOLD),
    "title": ("accent", "page", "bold", (*_KEY[:2], "bold underline")),
    "rule": ("rule", "page", "", _DIM),
    "good": ("good", "page", "", ("green", "green", "")),
    "warn": ("warn", "page", "", _WARN),
    "bad": ("bad", "page", "bold", ("bold red", "bold red", "bold")),
    "key": ("accent", "page", "bold", _KEY),
    "cursor": ("strong", "cursor", "", _REVERSE),
    "mark": ("accent", "page", "bold", _BOLD),
    "badge": ("on accent", "warn", "bold", _BADGE),
    "busy": ("compute", "page", "", _CYAN),
    "bar": ("text", "bar", "", _PLAIN),
    "bar.dim": ("dim", "bar", "", _DIM),
    "bar.strong": ("strong", "bar", "bold", _BOLD),
    "bar.key": ("accent", "bar", "bold", _KEY),
    "tab": ("dim", "page", "", _PLAIN),
    "tab.key": ("text", "page", "", _BOLD),
    "tab.active": ("on accent", "accent", "bold", _ACTIVE),
    "panel": ("text", "panel", "", _PLAIN),
    "panel.dim": ("dim", "panel", "", _DIM),
    "panel.strong": ("strong", "panel", "bold", _BOLD),
    "panel.title": ("accent", "panel", "bold", _KEY),
    "panel.frame": ("rule", "panel", "", _DIM),
    "panel.key": ("accent", "panel", "bold", _KEY),
    "panel.warn": ("warn", "panel", "", _WARN),
    "panel.cursor": ("strong", "cursor", "bold", _REVERSE),
    "input": ("strong", "bar", "bold", _BOLD),
    "on.step": ("strong", "step", "", (_ON_DARK, _ON_LIGHT, "")),
    "on.module": ("strong", "module", "", (_ON_LIGHT, _ON_DARK, "")),
    "on.selected": ("page", "strong", "bold", _SELECTED),
    "on.match": ("match ink", "match", "bold underline", _MATCH),
    "on.view": ("strong", "cursor", "", ("underline", "underline", "underline")),
}
"""Ink and ground among the shades, attributes, and the style where colours are few. Those of the classes are below."""

_CLASSES_16: dict[str, tuple[str, str]] = {
    "compute": ("cyan", "blue"),
    "vector": ("green", "green"),
    "copy": ("yellow", "cyan"),
    "collective": ("magenta", "magenta"),
    "host": ("red", "red"),
    "idle": ("bright_black", "white"),
    "unknown": ("white", "bright_black"),
}
"""The classes among 16 colours, on dark and on light."""


@dataclass(frozen=True, slots=True)
class Palette:
    """A style for every key.

    Attributes:
        color, light: the number of colours that it is made for; for a light background.
        styles: every key of `KEYS`; each has a background, so that no cell is left unpainted.
    """

    color: ColorMode
    light: bool
    styles: Mapping[AnyKey, Style]
    _pairs: dict[Pair, Style] = field(default_factory=dict, init=False, repr=False, compare=False)

    def style(self, key: AnyKey | Pair) -> Style:
        """The style of a key, or of two fills that share a cell."""
        if isinstance(key, str):
            return self.styles[key]
        style = self._pairs.get(key)
        if style is None:  # few of them are ever needed, none for the first frame
            style = self._pairs[key] = self._pair(*key)
        return style

    def _pair(self, ink: str, ground: Fill) -> Style:
        """A fill's colour on another's, or words on a fill."""
        area = self.styles[_area_key(ground)]
        if self.color == "mono":
            return _mono_pair(self.styles, ink, ground)
        if ink.startswith("words"):
            return area
        if ink == "page":
            # the page may be the terminal's own background, which has no number: paint the ground, and cut the sign out
            over, under = (area.bgcolor, self.styles["text"].bgcolor) if ground != "page" else (None, None)
            return Style(color=over, bgcolor=under, reverse=True) if over is not None else area
        color = self.styles[_area_key(ink)].bgcolor  # type: ignore[arg-type]
        return Style(color=color, bgcolor=area.bgcolor, underline=area.underline)


def palette(color: ColorMode, light: bool = False) -> Palette:
    """The palette for that many colours on a dark or a light background."""
    look = _named if color in ("16", "mono") else _shaded
    styles: dict[AnyKey, Style] = {key: look(*style, color, light) for key, style in _STYLES.items()}
    for name in OP_CLASSES:
        ink = "light ink" if name == ("compute" if light else "idle") else "ink"
        named = _CLASSES_16[name]
        on = [f"{'bright_white' if own in ('bright_black', 'blue', 'red') else 'black'} on {own}" for own in named]
        styles[CLASS_STYLE[name]] = look(name, "page", "", (*named, ""), color, light)
        styles[ON_CLASS_STYLE[name]] = look(ink, name, "", (on[0], on[1], "reverse"), color, light)
    return Palette(color, light, styles)


def _shaded(ink: str, ground: str, attributes: str, _: _Poor, color: ColorMode, light: bool) -> Style:
    """A style of shades."""
    shades = [_SHADES[name][light] for name in (ink, ground)]
    front, back = [Color.parse(code) if color == "truecolor" else Color.from_ansi(index) for code, index in shades]
    return Style(color=front, bgcolor=back, bold="bold" in attributes, underline="underline" in attributes)


def _named(_ink: str, _ground: str, _attributes: str, poor: _Poor, color: ColorMode, light: bool) -> Style:
    """A style of the terminal's own colours, on its own background, which may be any; what has none says so."""
    words = poor[2 if color == "mono" else light]
    return Style(color=Color.default(), bgcolor=Color.default()) + Style.parse(words)


def _area_key(fill: Fill) -> StyleKey:
    """The style of words on a fill; its background is the fill's colour."""
    return "text" if fill == "page" else f"on.{fill}"  # type: ignore[return-value]


def _mono_pair(styles: Mapping[AnyKey, Style], ink: str, ground: Fill) -> Style:
    """Letters stand for colours; what is selected or found is painted, and so is the space beside a slice's edge."""
    if ink in ("selected", "match"):
        return styles["on.selected" if ink == "selected" else "on.match"]
    if ground in ("selected", "match", "view"):
        return styles[_area_key(ground)]
    if ink == "page":
        return styles["text" if ground == "page" else "cursor"]
    return styles["on.view" if ink == "words.odd" else "text"]
