"""Colours: what each style key looks like, for every number of colours a terminal may have.

The classes of ops keep the colours of Okabe and Ito, which colour-blind people can tell apart and which survive 256
colours almost unchanged; the other keys are greys and one accent. With 16 colours a table of the terminal's own colours
stands in, and without colours bold, reverse and underline do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from rich.color import Color
from rich.style import Style

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

Shade = tuple[str, int]
"""One colour twice: as ``#rrggbb``, and as the index that stands for it among 256."""


@dataclass(frozen=True, slots=True)
class Palette:
    """A style for every key.

    Attributes:
        name: such as ``dark 256``.
        color: the number of colours it is made for.
        light: made for a light background.
        styles: every key of `KEYS`; each has a background, so that no cell is left unpainted.
    """

    name: str
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


@dataclass(frozen=True, slots=True)
class _Shades:
    """The colours of one background, dark or light."""

    page: Shade
    bar: Shade
    panel: Shade
    cursor: Shade
    text: Shade
    dim: Shade
    strong: Shade
    rule: Shade
    accent: Shade
    good: Shade
    warn: Shade
    bad: Shade
    ink: Shade  # words on a coloured field
    compute: Shade
    vector: Shade
    copy: Shade
    collective: Shade
    host: Shade
    idle: Shade
    unknown: Shade
    ink_light: Shade  # words on a dark coloured field
    on_accent: Shade  # words on the accent
    step: Shade
    module: Shade
    match: Shade


_DARK = _Shades(
    page=("#13161b", 233),
    bar=("#22272f", 235),
    panel=("#1c2027", 234),
    cursor=("#363e4b", 237),
    text=("#cdd2da", 252),
    dim=("#8a919e", 245),
    strong=("#ffffff", 231),
    rule=("#3c434f", 238),
    accent=("#e3b45c", 179),
    good=("#5fc9a0", 79),
    warn=("#ffaf00", 214),
    bad=("#ff7a66", 209),
    ink=("#13161b", 233),
    compute=("#56b4e9", 74),
    vector=("#009e73", 36),
    copy=("#f0e442", 221),
    collective=("#cc79a7", 175),
    host=("#d55e00", 166),
    idle=("#6b7280", 242),
    unknown=("#999999", 246),
    ink_light=("#ffffff", 231),
    on_accent=("#13161b", 233),
    step=("#39465a", 238),
    module=("#566274", 241),
    match=("#ff5fff", 207),
)

_LIGHT = _Shades(
    page=("#fbfaf7", 231),
    bar=("#e9e6df", 254),
    panel=("#f3f1ec", 255),
    cursor=("#d6dfec", 189),
    text=("#2b2f36", 236),
    dim=("#6a6f78", 242),
    strong=("#000000", 16),
    rule=("#c9c5bc", 251),
    accent=("#8a5a00", 94),
    good=("#00734f", 29),
    warn=("#a85400", 130),
    bad=("#c0281c", 124),
    ink=("#000000", 16),
    compute=("#0072b2", 25),
    vector=("#009e73", 36),
    copy=("#c9a400", 178),
    collective=("#b8558c", 132),
    host=("#d55e00", 166),
    idle=("#8f8f8f", 245),
    unknown=("#808080", 244),
    ink_light=("#ffffff", 231),
    on_accent=("#ffffff", 231),
    step=("#c3cddd", 252),
    module=("#a3b0c4", 248),
    match=("#d000d0", 164),
)

_CLASSES = ("compute", "vector", "copy", "collective", "host", "idle", "unknown")

# Numbers of the sixteen colours that every terminal has, in its owner's choice of shades.
_RED, _GREEN, _YELLOW, _BLUE, _MAGENTA, _CYAN, _WHITE = range(1, 8)
_CLASSES_16 = dict(zip(_CLASSES, (_CYAN, _GREEN, _YELLOW, _MAGENTA, _RED, 8, _WHITE), strict=True))
_CLASSES_16_LIGHT = _CLASSES_16 | {"compute": _BLUE, "copy": _CYAN, "unknown": 8, "idle": _WHITE}


def palette(color: ColorMode, light: bool = False) -> Palette:
    """The palette for that many colours on a dark or a light background."""
    if color == "mono":
        styles = _mono()
    elif color == "16":
        styles = _sixteen(light)
    else:
        styles = _shaded(_LIGHT if light else _DARK, color)
    return Palette(f"{'light' if light else 'dark'} {color}", color, light, styles)


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
    return _ansi(underline=True) if ink == "words.odd" else styles["text"]


def _shaded(shades: _Shades, color: ColorMode) -> dict[AnyKey, Style]:
    """All keys from the shades of one background."""

    def style(ink: Shade, ground: Shade, bold: bool = False, underline: bool = False) -> Style:
        return Style(color=_color(ink, color), bgcolor=_color(ground, color), bold=bold, underline=underline)

    page, bar, panel, cursor = shades.page, shades.bar, shades.panel, shades.cursor
    styles: dict[AnyKey, Style] = {
        "text": style(shades.text, page),
        "dim": style(shades.dim, page),
        "strong": style(shades.strong, page, bold=True),
        "title": style(shades.accent, page, bold=True),
        "rule": style(shades.rule, page),
        "good": style(shades.good, page),
        "warn": style(shades.warn, page),
        "bad": style(shades.bad, page, bold=True),
        "key": style(shades.accent, page, bold=True),
        "cursor": style(shades.strong, cursor),
        "mark": style(shades.accent, page, bold=True),
        "badge": style(shades.on_accent, shades.warn, bold=True),
        "busy": style(shades.compute, page),
        "bar": style(shades.text, bar),
        "bar.dim": style(shades.dim, bar),
        "bar.strong": style(shades.strong, bar, bold=True),
        "bar.key": style(shades.accent, bar, bold=True),
        "tab": style(shades.dim, page),
        "tab.key": style(shades.text, page),
        "tab.active": style(shades.on_accent, shades.accent, bold=True),
        "panel": style(shades.text, panel),
        "panel.dim": style(shades.dim, panel),
        "panel.strong": style(shades.strong, panel, bold=True),
        "panel.title": style(shades.accent, panel, bold=True),
        "panel.frame": style(shades.rule, panel),
        "panel.key": style(shades.accent, panel, bold=True),
        "panel.warn": style(shades.warn, panel),
        "panel.cursor": style(shades.strong, cursor, bold=True),
        "input": style(shades.strong, bar, bold=True),
        "on.step": style(shades.strong, shades.step),
        "on.module": style(shades.strong, shades.module),
        "on.selected": style(page, shades.strong, bold=True),
        "on.match": style(
            shades.ink_light if shades is _LIGHT else shades.ink, shades.match, bold=True, underline=True
        ),
        "on.view": style(shades.strong, cursor),
    }
    for name in _CLASSES:
        shade: Shade = getattr(shades, name)
        light_ink = name == ("compute" if shades is _LIGHT else "idle")
        styles[f"class.{name}"] = style(shade, page)  # type: ignore[index]
        styles[f"on.{name}"] = style(shades.ink_light if light_ink else shades.ink, shade)  # type: ignore[index]
    return styles


def _color(shade: Shade, color: ColorMode) -> Color:
    return Color.parse(shade[0]) if color == "truecolor" else Color.from_ansi(shade[1])


def _sixteen(light: bool) -> dict[AnyKey, Style]:
    """The terminal's own colours, on its own background: it may be any, so nothing depends on it but contrast."""
    classes = _CLASSES_16_LIGHT if light else _CLASSES_16
    accent = _BLUE if light else 11
    ink = 15 if light else 0
    plain, bold = _ansi(), _ansi(bold=True)
    dim = _ansi(8) if light else _ansi(dim=True)
    key, reverse = _ansi(accent, bold=True), _ansi(reverse=True)
    styles = _by_role(plain, dim, bold, key, reverse)
    styles |= {
        "rule": dim,
        "good": _ansi(_GREEN),
        "warn": _ansi(_YELLOW if not light else _MAGENTA, bold=True),
        "bad": _ansi(_RED, bold=True),
        "badge": _ansi(0, _YELLOW),
        "busy": _ansi(classes["compute"]),
        "panel.warn": _ansi(_YELLOW if not light else _MAGENTA, bold=True),
        "tab.active": _ansi(ink, accent, bold=True),
        "on.step": _ansi(0, _WHITE) if light else _ansi(15, 8),
        "on.module": _ansi(15, 8) if light else _ansi(0, _WHITE),
        "on.selected": _ansi(15, 0, bold=True) if light else _ansi(0, 15, bold=True),
        "on.match": _ansi(0, _YELLOW, bold=True, underline=True) if light else _ansi(15, 12, bold=True, underline=True),
        "on.view": _ansi(underline=True),
    }
    for name, number in classes.items():
        styles[f"class.{name}"] = _ansi(number)  # type: ignore[index]
        styles[f"on.{name}"] = _ansi(15 if number in (8, _BLUE) or (number == _RED) else 0, number)  # type: ignore[index]
    return styles


def _mono() -> dict[AnyKey, Style]:
    """No colours at all; areas are told apart by the letters that fill them."""
    plain, bold, reverse = _ansi(), _ansi(bold=True), _ansi(reverse=True)
    styles = _by_role(plain, plain, bold, bold, reverse)
    styles |= {
        "title": _ansi(bold=True, underline=True),
        "rule": plain,
        "good": plain,
        "warn": bold,
        "bad": bold,
        "badge": _ansi(reverse=True, bold=True),
        "busy": plain,
        "panel.warn": bold,
        "tab.active": _ansi(reverse=True, bold=True),
        "on.step": plain,
        "on.module": plain,
        "on.selected": _ansi(reverse=True, bold=True, underline=True),
        "on.match": reverse,
        "on.view": _ansi(underline=True),
    }
    for name in _CLASSES:
        styles[f"class.{name}"] = plain  # type: ignore[index]
        styles[f"on.{name}"] = reverse  # type: ignore[index]
    return styles


def _by_role(plain: Style, dim: Style, bold: Style, key: Style, reverse: Style) -> dict[AnyKey, Style]:
    """What the two poor palettes have in common: one background, and few ways to stand out from it."""
    return {
        "text": plain,
        "dim": dim,
        "strong": bold,
        "title": key,
        "key": key,
        "cursor": reverse,
        "mark": bold,
        "bar": plain,
        "bar.dim": dim,
        "bar.strong": bold,
        "bar.key": key,
        "tab": plain,
        "tab.key": bold,
        "panel": plain,
        "panel.dim": dim,
        "panel.strong": bold,
        "panel.title": key,
        "panel.frame": dim,
        "panel.key": key,
        "panel.cursor": reverse,
        "input": bold,
    }


def _ansi(
    ink: int | None = None,
    ground: int | None = None,
    *,
    bold: bool | None = None,
    dim: bool | None = None,
    reverse: bool | None = None,
    underline: bool | None = None,
) -> Style:
    """A style of the terminal's own colours; None leaves its default, said explicitly."""
    return Style(
        color=Color.default() if ink is None else Color.from_ansi(ink),
        bgcolor=Color.default() if ground is None else Color.from_ansi(ground),
        bold=bold,
        dim=dim,
        reverse=reverse,
        underline=underline,
    )
