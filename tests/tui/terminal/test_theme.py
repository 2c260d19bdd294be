"""The themes can be read: contrast as WCAG measures it, and classes of ops that colour-blind people can distinguish."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.style import Style

from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.tui.draw.spans import CLASS_STYLE, ON_CLASS_STYLE, Fill, Key
from tpuprof.tui.terminal.detect import THEMES, ColorMode, Theme
from tpuprof.tui.terminal.theme import KEYS, _area_key, palette
from tpuprof.tui.widgets.popup import on_panel

Floats = NDArray[np.float64]

LEAST: dict[Theme, float] = {"auto": 4.5, "high-contrast": 7.0, "colour-blind": 4.5}
"""WCAG 2.2, success criteria 1.4.3 (level AA) and 1.4.6 (level AAA)."""

LINES = ("rule", "panel.frame")
"""What is no text: lines between parts."""

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


def linear(style: Style, *, ground: bool) -> Floats:
    """float64[3]; ink or ground of a style, linear, from 0 to 1."""
    color = style.bgcolor if ground else style.color
    assert color is not None
    encoded = np.array(color.get_truecolor()) / 255
    decoded: Floats = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return decoded


def contrast(style: Style) -> float:
    """WCAG 2.2's contrast ratio of a style's ink and ground, by relative luminance."""
    dark, light = sorted(float(TO_XYZ[1] @ linear(style, ground=ground)) for ground in (False, True))
    return (light + 0.05) / (dark + 0.05)


def lab(color: Floats) -> Floats:
    """float64[3]; CIE 1976 L*, a*, b* of a linear colour."""
    part = TO_XYZ @ np.clip(color, 0, 1) / TO_XYZ.sum(axis=1)
    x, y, z = np.where(part > (6 / 29) ** 3, np.cbrt(part), part / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_the_formulas_give_the_known_figures() -> None:
    assert contrast(Style.parse("#ffffff on #000000")) == pytest.approx(21)
    assert contrast(Style.parse("#777777 on #ffffff")) == pytest.approx(4.48, abs=0.01)
    assert lab(linear(Style.parse("#ff0000"), ground=False)) == pytest.approx([53.24, 80.09, 67.20], abs=0.02)


@pytest.mark.parametrize(("theme", "color", "light"), list(product(LEAST, ("truecolor", "256"), (False, True))))
def test_all_words_can_be_read(theme: Theme, color: ColorMode, light: bool) -> None:
    styles = palette(color, light, theme).styles
    assert set(styles) == set(KEYS)
    low = {key: contrast(style) for key, style in styles.items() if contrast(style) < LEAST[theme]}
    assert not low.keys() - set(LINES), low


@pytest.mark.parametrize(("color", "light"), list(product(("truecolor", "256"), (False, True))))
@pytest.mark.parametrize("sight", SIGHTS)
def test_colour_blind_people_tell_classes_and_verdicts_apart(sight: str, color: ColorMode, light: bool) -> None:
    styles = palette(color, light, "colour-blind").styles
    seen = {name: lab(SIGHTS[sight] @ linear(styles[ON_CLASS_STYLE[name]], ground=True)) for name in OP_CLASSES}
    told = {key: lab(SIGHTS[sight] @ linear(styles[key], ground=False)) for key in ("good", "warn", "bad")}
    groups: tuple[dict[Any, Floats], ...] = (seen, told)
    for group in groups:
        near = {(a, b): float(np.linalg.norm(group[a] - group[b])) for a, b in combinations(group, 2)}
        assert min(near.values()) >= LEAST_DISTANCE, sorted(near.items(), key=lambda pair: pair[1])[:3]


@pytest.mark.parametrize(("theme", "color", "light"), list(product(LEAST, ("16", "mono"), (False, True))))
def test_few_colours_are_the_terminals_own(theme: Theme, color: ColorMode, light: bool) -> None:
    styles = palette(color, light, theme).styles
    for key, style in styles.items():
        for part in (style.color, style.bgcolor):
            assert part is not None and (part.is_default or (color == "16" and part.number is not None)), key
    assert color != "mono" or all(style.color is not None and style.color.is_default for style in styles.values())
    if theme == "high-contrast":
        assert not styles["dim"].dim and styles["dim"] == styles["text"]
    names = [styles[CLASS_STYLE[name]] for name in OP_CLASSES if name not in ("idle", "unknown")]
    assert len(set(map(str, names))) == (5 if color == "16" else 1)


@pytest.mark.parametrize(("theme", "color", "light"), list(product(LEAST, ("truecolor", "256", "16"), (False, True))))
def test_two_fills_that_share_a_cell_have_their_own_colours_there(theme: Theme, color: ColorMode, light: bool) -> None:
    of, mono = palette(color, light, theme), palette("mono", light, theme)
    fills: list[Fill] = ["page", *OP_CLASSES]
    for ink, ground in product(fills, repeat=2):
        style, both = of.style((ink, ground)), [of.styles[_area_key(fill)].bgcolor for fill in (ink, ground)]
        assert [style.color, style.bgcolor][:: -1 if style.reverse else 1] == both or ink == ground == "page"
        assert mono.style((ink, ground)) in mono.styles.values()


def test_dark_and_light_are_no_colours_of_their_own() -> None:
    usual = [palette("truecolor", theme=theme).styles == palette("truecolor").styles for theme in THEMES]
    assert usual == [True] * 3 + [False] * 2


@pytest.mark.parametrize(("theme", "color", "light"), list(product(LEAST, ("truecolor", "256", "16"), (False, True))))
def test_a_popup_has_the_colours_of_its_page(theme: Theme, color: ColorMode, light: bool) -> None:
    of = palette(color, light, theme)
    kept: list[Key] = [*CLASS_STYLE.values(), *ON_CLASS_STYLE.values(), "good", "bad", "busy", "badge"]
    kept += [(OP_CLASSES[0], OP_CLASSES[1]), ("words", OP_CLASSES[0])]
    for key in kept:
        ((text, shown),) = on_panel((("x", key),))
        page, popup = of.style(key), of.style(shown)
        assert text == "x" and page.bold == popup.bold
        if color == "16" or f"{key}".partition(".")[0] != "class":
            assert page.color == popup.color
        else:  # perhaps a shade of it
            shown_as = lab(linear(popup, ground=False))
            away = {
                other: float(np.linalg.norm(lab(linear(of.style(other), ground=False)) - shown_as))
                for other in CLASS_STYLE.values()
            }
            assert min(away, key=lambda other: away[other]) == key
    for ink, ground in ((OP_CLASSES[0], "page"), ("page", OP_CLASSES[0])):
        ((_, shown),) = on_panel((("x", (ink, ground)),))  # type: ignore[arg-type]
        style, plain = of.style(shown), of.style("panel")
        assert plain.bgcolor in (style.bgcolor, style.color) and of.style((ink, ground)) != of.style("text")  # type: ignore[arg-type]
