"""The themes can be read: contrast as WCAG measures it, and classes of ops that colour-blind people can distinguish."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.color import Color, ColorType
from rich.style import Style
from rich.terminal_theme import TerminalTheme

from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.tui.draw.spans import CLASS_STYLE, ON_CLASS_STYLE, Fill, Key
from tpuprof.tui.terminal.detect import ColorMode, Theme
from tpuprof.tui.terminal.theme import KEYS, _area_key, palette
from tpuprof.tui.widgets.popup import on_panel

Floats = NDArray[np.float64]

LEAST: dict[Theme, float] = {"auto": 4.5, "high-contrast": 7.0, "colour-blind": 4.5}
"""WCAG 2.2, success criteria 1.4.3 (level AA) and 1.4.6 (level AAA)."""

LEAST_DISTANCE = 18.0
"""CIE 1976 distance of any two classes, to anybody; 2.3 is a just noticeable difference."""

SIGHTS: dict[str, Floats] = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
"""On linear RGB. Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision Deficiency,
IEEE Transactions on Visualization and Computer Graphics 15 (6), 2009; severity 1.0."""

TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
"""Linear sRGB (IEC 61966-2-1), white at D65."""


XTERM = TerminalTheme(
    *((255, 255, 255), (0, 0, 0)),
    [(0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)],
    [(127,) * 3, (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255), (255,) * 3],
)
"""What xterm makes of 16 colours, by default on white."""

GROUNDS = [*product(("truecolor", "256", "16"), (False, True)), ("16", None)]


def linear(style: Style, *, ground: bool, light: bool = True, brightens: bool = False) -> Floats:
    """float64[3]; ink or ground of a style, linear, from 0 to 1.

    Args:
        light, brightens: of a terminal that has colours of its own: on white, not black; bold words are brighter.
    """
    color = style.bgcolor if ground != bool(style.reverse) else style.color
    assert color is not None
    if brightens and style.bold and not ground and color.number is not None and color.number < 8:
        color = Color.from_ansi(color.number + 8)
    encoded = np.array(color.get_truecolor(XTERM, ground == (not light))) / 255
    encoded = encoded * 2 / 3 if style.dim and not ground else encoded
    decoded: Floats = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return decoded


def contrast(style: Style, light: bool = True, brightens: bool = False) -> float:
    """WCAG 2.2's contrast ratio of a style's ink and ground, by relative luminance."""
    both = [linear(style, ground=ground, light=light, brightens=brightens) for ground in (False, True)]
    dark, bright = sorted(float(TO_XYZ[1] @ color) for color in both)
    return (bright + 0.05) / (dark + 0.05)


def lab(color: Floats) -> Floats:
    """float64[3]; CIE 1976 L*, a*, b* of a linear colour."""
    part = TO_XYZ @ np.clip(color, 0, 1) / TO_XYZ.sum(axis=1)
    x, y, z = np.where(part > (6 / 29) ** 3, np.cbrt(part), part / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_the_formulas_give_the_known_figures() -> None:
    assert contrast(Style.parse("#ffffff on #000000")) == pytest.approx(21)
    assert contrast(Style.parse("#777777 on #ffffff")) == pytest.approx(4.48, abs=0.01)
    assert lab(linear(Style.parse("#ff0000"), ground=False)) == pytest.approx([53.24, 80.09, 67.20], abs=0.02)


@pytest.mark.parametrize(("color", "light"), GROUNDS)
@pytest.mark.parametrize("theme", LEAST)
def test_words_and_marks_can_be_read(theme: Theme, color: ColorMode, light: bool | None) -> None:
    """On a background that is not known too: on black and on white; words have no colour there."""
    of = palette(color, light, theme)
    assert set(of.styles) == set(KEYS)
    lines = ("rule", "panel.rule")  # between parts
    marks = dict.fromkeys(lines, 1.0) if color != "16" else dict.fromkeys((*lines, *CLASS_STYLE.values()), 3.0)
    on_panels = {CLASS_STYLE[name]: of.style((name, "panel")) for name in OP_CLASSES}
    for key, style in (*of.styles.items(), *on_panels.items()):
        for white, brightens in product((False, True) if light is None else (light,), (False, True)):
            least = marks.get(key, LEAST[theme] if color != "16" else 4.5)
            assert contrast(style, white, brightens) >= least, key
        parts = [part for part in (style.color, style.bgcolor) if part]
        assert color != "16" or {part.type for part in parts} <= {ColorType.DEFAULT, ColorType.STANDARD}
        assert light is not None or key in marks or parts[0].is_default or not parts[1].is_default, key


@pytest.mark.parametrize(("color", "light"), GROUNDS)
@pytest.mark.parametrize("theme", LEAST)
def test_no_colour_says_two_things(theme: Theme, color: ColorMode, light: bool | None) -> None:
    """Among many, colour-blind people tell classes from classes in their theme, and verdicts from verdicts."""
    styles = palette(color, light, theme).styles
    told = {key: styles[key] for key in ("good", "warn", "bad", "key") if styles[key].color != Color.default()}
    inks: dict[str, Floats] = {key: linear(style, ground=False) for key, style in told.items()}
    areas: dict[str, Floats] = {name: linear(styles[ON_CLASS_STYLE[name]], ground=True) for name in OP_CLASSES}
    is_strict = theme == "colour-blind" and color != "16"
    alike = () if is_strict else ({"idle", "unknown"}, {"warn", "bad"})  # nothing that is known; trouble
    for sight, group in product(SIGHTS, (inks, areas)) if is_strict else ():
        seen = [lab(SIGHTS[sight] @ colour) for key, colour in group.items() if key != "key"]
        assert min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)) >= LEAST_DISTANCE
    of = {**inks, **areas, "match": linear(styles["on.match"], ground=True)}
    pairs = [(a, b) for a, b in combinations(of, 2) if {a, b} not in alike]
    near = {(a, b): float(np.linalg.norm(lab(of[a]) - lab(of[b]))) for a, b in pairs}
    assert min(near.values()) >= LEAST_DISTANCE, min(near, key=lambda pair: near[pair])


@pytest.mark.parametrize(("theme", "color", "light"), list(product(LEAST, ("truecolor", "256", "16"), (False, True))))
def test_two_fills_that_share_a_cell_have_their_own_colours_there(theme: Theme, color: ColorMode, light: bool) -> None:
    of, mono = palette(color, light, theme), palette("mono", light, theme)
    fills: list[Fill] = ["page", *OP_CLASSES]
    for ink, ground in product(fills, repeat=2):
        style, both = of.style((ink, ground)), [of.styles[_area_key(fill)].bgcolor for fill in (ink, ground)]
        assert [style.color, style.bgcolor][:: -1 if style.reverse else 1] == both or ink == ground == "page"
        assert mono.style((ink, ground)) in mono.styles.values()
    assert all(style.color and style.color.is_default for style in mono.styles.values())


@pytest.mark.parametrize(("theme", "color", "light"), list(product(LEAST, ("truecolor", "256", "16"), (False, True))))
def test_a_popup_has_the_colours_of_its_page(theme: Theme, color: ColorMode, light: bool) -> None:
    of = palette(color, light, theme)
    kept: list[Key] = [*CLASS_STYLE.values(), *ON_CLASS_STYLE.values(), "good", "bad", "busy", "badge"]
    for key in (*kept, (OP_CLASSES[0], OP_CLASSES[1]), ("words", OP_CLASSES[0])):
        ((text, shown),) = on_panel((("x", key),))
        page, popup = of.style(key), of.style(shown)
        assert (text, bool(page.bold), page.color) == ("x", bool(popup.bold), popup.color)
    for ink, ground in ((OP_CLASSES[0], "page"), ("page", OP_CLASSES[0])):
        ((_, shown),) = on_panel((("x", (ink, ground)),))  # type: ignore[arg-type]
        style, plain = of.style(shown), of.style("panel")
        assert plain.bgcolor in (style.bgcolor, style.color) and of.style((ink, ground)) != of.style("text")  # type: ignore[arg-type]
