"""Colours: what each style key looks like, for every number of colours a terminal may have.

The classes of ops have the colours of Okabe and Ito, darker on a light background; the other keys are greys and one
accent. Words have a contrast of 4.5 to 1 with what they stand on, of 7 to 1 in the theme of high contrast. That for the
colour-blind trades hues for lightness. With 16 colours the terminal's own stand in: on a background that is not known
they paint areas only. Without colours bold, reverse and underline do. A colour that is good or bad is no class's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from rich.color import Color
from rich.style import Style

from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.tui.draw.spans import CLASS_STYLE, ON_CLASS_STYLE, Fill, Ink, Pair, StyleKey
from tpuprof.tui.terminal.detect import ColorMode, Theme

BarKey = Literal["bar", "bar.dim", "bar.strong", "bar.key"]  # the header line and the footer; the run's name is strong
TabKey = Literal["tab", "tab.key", "tab.active"]  # the names of tabs
PanelWord = Literal["panel", "panel.key", "panel.dim", "panel.strong", "panel.rule", "panel.cursor"]
PanelVerdict = Literal["panel.good", "panel.warn", "panel.bad", "panel.busy"]
PanelKey = Literal[PanelWord, PanelVerdict]  # lists and help above the screen
ChromeKey = Literal[BarKey, TabKey, PanelKey]
"""Styles of what surrounds a page; drawing functions know nothing of them."""

AnyKey = StyleKey | ChromeKey
PanelPair = tuple[Ink | Literal["panel"], Fill | Literal["panel"]]
"""Ink and ground of a cell on a panel, which has the place of the page."""

AnySpan = tuple[str, AnyKey | Pair | PanelPair]
AnyLine = tuple[AnySpan, ...]

KEYS: tuple[AnyKey, ...] = (*get_args(StyleKey), *get_args(ChromeKey))

_Shade = tuple[str, int]  # one colour twice: as ``#rrggbb``, and as the index that stands for it among 256
_Shades = Mapping[str, tuple[_Shade, _Shade]]  # each colour by its name, on a dark background and on a light one

SHADES: _Shades = {
    "page": (("#13161b", 233), ("#fbfaf7", 231)),
    "bar": (("#22272f", 235), ("#e9e6df", 254)),
    "panel": (("#181c22", 234), ("#f8f7f3", 231)),
    "cursor": (("#363e4b", 237), ("#d6dfec", 189)),
    "text": (("#cdd2da", 252), ("#2b2f36", 236)),
    "dim": (("#8a919e", 246), ("#5d626b", 240)),
    "strong": (("#ffffff", 231), ("#000000", 16)),
    "rule": (("#3c434f", 238), ("#c9c5bc", 251)),
    "accent": (("#e3b45c", 179), ("#005f5f", 23)),
    "good": (("#5fc9a0", 79), ("#00734f", 29)),
    "warn": (("#ffaf00", 214), ("#875f00", 94)),
    "bad": (("#ff7a66", 209), ("#c0281c", 124)),
    "ink": (("#13161b", 233), ("#ffffff", 231)),  # words on a coloured field
    "compute": (("#56b4e9", 74), ("#0072b2", 25)),
    "vector": (("#8787ff", 105), ("#5f00af", 55)),
    "copy": (("#f0e442", 221), ("#5f5f00", 58)),
    "collective": (("#cc79a7", 175), ("#a8457c", 125)),
    "host": (("#d9620a", 202), ("#b84f00", 130)),
    "idle": (("#818998", 245), ("#707070", 243)),
    "unknown": (("#999999", 247), ("#5f5f5f", 240)),
    "step": (("#39465a", 238), ("#c3cddd", 252)),
    "module": (("#566274", 241), ("#a3b0c4", 248)),
    "match": (("#ff5fff", 207), ("#c000c0", 127)),
}

_HIGH_CONTRAST: _Shades = {
    "page": (("#000000", 16), ("#ffffff", 231)),
    "bar": (("#000000", 16), ("#ffffff", 231)),
    "panel": (("#000000", 16), ("#ffffff", 231)),
    "cursor": (("#00005f", 17), ("#d7ffff", 195)),
    "text": (("#ffffff", 231), ("#000000", 16)),
    "dim": (("#dadada", 253), ("#303030", 236)),
    "rule": (("#a8a8a8", 248), ("#585858", 240)),
    "accent": (("#ffff5f", 227), ("#000000", 16)),
    "good": (("#5fff87", 84), ("#005f00", 22)),
    "warn": (("#ffd700", 220), ("#870000", 88)),
    "bad": (("#ffafaf", 217), ("#870000", 88)),
    "ink": (("#000000", 16), ("#ffffff", 231)),
    "compute": (("#87d7ff", 117), ("#0000d7", 20)),
    "vector": (("#afafff", 147), ("#5f00af", 55)),
    "copy": (("#ffff00", 226), ("#5f0000", 52)),
    "collective": (("#ff87d7", 212), ("#5f005f", 53)),
    "host": (("#d78700", 172), ("#af005f", 125)),
    "idle": (("#9e9e9e", 247), ("#585858", 240)),
    "unknown": (("#e4e4e4", 254), ("#303030", 236)),
    "step": (("#303030", 236), ("#d0d0d0", 252)),
    "module": (("#4e4e4e", 239), ("#bcbcbc", 250)),
    "match": (("#ff87ff", 213), ("#870087", 90)),
}

_COLOUR_BLIND: _Shades = {
    "good": (("#5fafff", 75), ("#005fd7", 26)),
    "warn": (("#ffff5f", 227), ("#875f00", 94)),
    "bad": (("#ff8700", 208), ("#5f0000", 52)),
    "compute": (("#0087ff", 33), ("#0000ff", 21)),
    "vector": (("#5fff87", 84), ("#007f00", 28)),
    "copy": (("#ffff00", 226), ("#000000", 16)),
    "collective": (("#d7afff", 183), ("#5f00af", 55)),
    "host": (("#ff5f00", 202), ("#af0087", 126)),
    "idle": (("#8a8a8a", 245), ("#6c6c6c", 242)),
    "unknown": (("#e4e4e4", 254), ("#303030", 236)),
}
"""Chosen among the 240 fixed colours so that the two classes nearest to each other are far apart to everybody."""

_OTHERS: dict[Theme, _Shades] = {"high-contrast": _HIGH_CONTRAST, "colour-blind": _COLOUR_BLIND}

_Poor = tuple[str, str, str]
"""A style where colours are few, in rich's words: with 16 colours on dark and on light, and without colours.

Terminals draw bold words brighter, some in another colour: what is bold has no colour of its own, or a bright one.
"""

_PLAIN: _Poor = ("", "", "")
_DIM: _Poor = ("dim", "dim", "")
_BOLD: _Poor = ("bold", "bold", "bold")
_GOOD: _Poor = ("green", "", "")
_REVERSE: _Poor = ("reverse", "reverse", "reverse")

_Look = tuple[str, str, str, _Poor]
_STYLES: dict[str, _Look] = {
    "text": ("text", "page", "", _PLAIN),
    "dim": ("dim", "page", "", _DIM),
    "strong": ("strong", "page", "bold", _BOLD),
    "title": ("accent", "page", "bold", ("bold", "bold", "bold underline")),
    "rule": ("rule", "page", "", _DIM),
    "good": ("good", "page", "", _GOOD),
    "warn": ("warn", "page", "", ("yellow", "red", "bold")),
    "bad": ("bad", "page", "bold", ("bright_red", "underline red", "bold")),
    "key": ("accent", "page", "bold", _BOLD),
    "cursor": ("strong", "cursor", "", _REVERSE),
    "mark": ("accent", "page", "bold", _BOLD),
    "badge": ("ink", "warn", "bold", ("black on yellow", "bright_white on red", "reverse bold")),
    "busy": ("compute", "page", "", ("cyan", "blue", "")),
    "bar": ("text", "bar", "", _PLAIN),
    "bar.dim": ("dim", "bar", "", _DIM),
    "bar.strong": ("strong", "bar", "bold", _BOLD),
    "bar.key": ("accent", "bar", "bold", _BOLD),
    "tab": ("dim", "page", "", _PLAIN),
    "tab.key": ("text", "page", "", _BOLD),
    "tab.active": ("ink", "accent", "bold", ("reverse bold", "reverse bold", "reverse bold")),
    "panel": ("text", "panel", "", _PLAIN),
    "panel.cursor": ("strong", "cursor", "bold", _REVERSE),
    "on.step": ("strong", "step", "", ("black on bright_black", "black on bright_black", "")),
    "on.module": ("strong", "module", "", ("black on white", "bright_white on black", "")),
    "on.selected": (
        "page",
        "strong",
        "bold",
        ("black on bright_white", "bold bright_white on black", "reverse bold underline"),
    ),
    "on.match": (
        "ink",
        "match",
        "bold underline",
        ("underline black on bright_yellow", "underline black on yellow", "reverse"),
    ),
    "on.view": ("strong", "cursor", "", ("underline", "underline", "underline")),
}
"""Ink and ground among the shades, attributes, and the style where colours are few. Those of the classes are below;
words on a panel have the inks of the page."""

_DARK_16 = ("black", "blue", "red", "magenta", "bright_blue")  # colours that white words are read on
_CLASSES_16: dict[str, _Poor] = {
    "compute": ("cyan", "blue", "bright_blue"),
    "vector": ("bright_blue", "bright_blue", "bright_red"),
    "copy": ("magenta", "magenta", "magenta"),
    "collective": ("bright_magenta", "bright_magenta", "bright_magenta"),
    "host": ("red", "bright_red", "red"),
    "idle": ("bright_black", "bright_black", "bright_black"),
    "unknown": ("white", "black", "bright_black"),
}
"""The classes among 16 colours: on dark, on light, and on either, where words have no colours then."""


@dataclass(frozen=True, slots=True)
class Palette:
    """A style for every key.

    Attributes:
        color, light, theme: how many colours it is made for; for a light background, None for either; of which theme.
        styles: every key of `KEYS`; each has a background, so that no cell is left unpainted.
    """

    color: ColorMode
    light: bool | None
    theme: Theme
    styles: Mapping[AnyKey, Style]
    _pairs: dict[Pair | PanelPair, Style] = field(default_factory=dict, init=False, repr=False, compare=False)

    def style(self, key: AnyKey | Pair | PanelPair) -> Style:
        """The style of a key, or of two fills that share a cell."""
        if isinstance(key, str):
            return self.styles[key]
        if key not in self._pairs:  # few of them are ever needed, none for the first frame
            self._pairs[key] = self._pair(*key)
        return self._pairs[key]

    def _pair(self, ink: str, ground: Fill | Literal["panel"]) -> Style:
        """A fill's colour on another's, or words on a fill."""
        area = self.styles[_area_key(ground)]
        if self.color == "mono":
            return _mono_pair(self.styles, ink, ground)
        if ink.startswith("words"):
            return area
        if ink in ("page", "panel"):
            # the page may be the terminal's own background, which has no number: paint the ground, and cut the sign out
            over, under = (area.bgcolor, self.styles[_area_key(ink)].bgcolor) if ground != ink else (None, None)  # type: ignore[arg-type]
            return Style(color=over, bgcolor=under, reverse=True) if over is not None else area
        color = self.styles[_area_key(ink)].bgcolor  # type: ignore[arg-type]
        return Style(color=color, bgcolor=area.bgcolor, underline=area.underline)


def palette(color: ColorMode, light: bool | None = False, theme: Theme = "auto") -> Palette:
    """The palette for that many colours on a dark or a light background, or (None) on one that is not known.

    Of many colours that is a dark one: they are painted on their own. The theme does not decide the background here.
    """
    light = light if color == "16" else bool(light)
    shades = {**SHADES, **_OTHERS.get(theme, {})}

    def style(ink: str, ground: str, attributes: str, poor: _Poor) -> Style:
        if color in ("16", "mono"):
            # the terminal's own colours, on its own background, which may be any; what has none says so
            own = Style(color=Color.default(), bgcolor=Color.default())
            # what has none of the kind in a theme is told by what stands around it
            fades = poor == {"high-contrast": _DIM, "colour-blind": _GOOD}.get(theme)
            is_any = light is None and " on " not in poor[0]  # words on an area are read wherever it is
            return own + Style.parse("" if fades else poor[2 if color == "mono" or is_any else bool(light)])
        pair = (shades[ink][bool(light)], shades[ground][bool(light)])
        front, back = (Color.parse(code) if color == "truecolor" else Color.from_ansi(index) for code, index in pair)
        return Style(color=front, bgcolor=back, bold="bold" in attributes, underline="underline" in attributes)

    looks: dict[str, _Look] = {**_STYLES}
    for name in OP_CLASSES:
        looks[CLASS_STYLE[name]] = (name, "page", "", _CLASSES_16[name] if color == "16" else _PLAIN)
    for key in get_args(PanelKey):
        if key not in looks:
            ink, _, attributes, poor = looks[key.removeprefix("panel.")]
            looks[key] = (ink, "panel", attributes, poor)
    for name in OP_CLASSES:
        on = [f"{'bright_white' if area in _DARK_16 else 'black'} on {area}" for area in _CLASSES_16[name]]
        looks[ON_CLASS_STYLE[name]] = ("ink", name, "", (on[2 if light is None else 0], on[1], "reverse"))
    return Palette(color, light, theme, {key: style(*looks[key]) for key in KEYS})


def _area_key(fill: Fill | Literal["panel"]) -> AnyKey:
    """The style of words on a fill; its background is the fill's colour."""
    return "text" if fill == "page" else "panel" if fill == "panel" else f"on.{fill}"  # type: ignore[return-value]


def _mono_pair(styles: Mapping[AnyKey, Style], ink: str, ground: Fill | Literal["panel"]) -> Style:
    """Letters stand for colours; what is selected or found is painted, and so is the space beside a slice's edge."""
    if ink in ("selected", "match"):
        return styles["on.selected" if ink == "selected" else "on.match"]
    if ground in ("selected", "match", "view"):
        return styles[_area_key(ground)]
    if ink in ("page", "panel"):
        return styles["text" if ground == ink else "cursor"]
    return styles["on.view" if ink == "words.odd" else "text"]
