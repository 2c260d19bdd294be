"""The characters of the timeline, and what colour a track's slices are."""

from __future__ import annotations

from tpuprof.parsers.timeline.model import CLASSES, TrackKind
from tpuprof.tui.draw.spans import CLASS_LETTER, FILLS, Fill, Glyphs

SIGNS = " ▏▎▍▌▋▊▉█│┃▕░▒▓"
"""Signs of a cell of slices: eighths from the left, thin lines in the middle and at the right, shades."""

FULL = 8
THIN, THICK, RIGHT = 9, 10, 11
SHADES = (0, 12, 13, 14, FULL)
"""The sign for each quarter of a cell that is covered."""

SELECTED, MATCH, VIEW, PAGE = (FILLS.index(fill) for fill in ("selected", "match", "view", "page"))
assert FILLS[: len(CLASSES)] == CLASSES, "a class's code is its fill's"

_NEUTRAL: dict[TrackKind, tuple[Fill, Fill]] = {
    "steps": ("step", "module"),
    "modules": ("module", "step"),
    "scopes": ("step", "module"),
    "source": ("module", "step"),
}


def fill_of(kind: TrackKind, lane: int = 0) -> Fill | None:
    """The neutral tone of a lane whose events are of no class of their own, by turns; None for slices by class."""
    tones = _NEUTRAL.get(kind)
    return None if tones is None else tones[lane % 2]


def hatch(glyphs: Glyphs) -> str:
    """Fills what the profile lost."""
    return "/" if glyphs.name == "ascii" else "╱"


def letter(fill: int) -> str:
    """The letter of a class's fill, ``=`` for the others."""
    return CLASS_LETTER[CLASSES[fill]] if fill < len(CLASSES) else "="


def crowd_letter(fill: int, share: float) -> str:
    """A class's letter, small where less than half of the cell is busy; ``#`` and ``-`` for what is of no class."""
    sign = letter(fill).replace("=", "#")
    return sign if share >= 0.5 else sign.lower().replace("#", "-")
