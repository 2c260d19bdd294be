"""All cases, and which half each is in."""

from __future__ import annotations

from pathlib import Path

from tests.insight.cases.case import LATER, Half, halves
from tests.insight.cases.reader import read_table
from tests.insight.cases.shape import Shape

_FOLDER = Path(__file__).parent / "tables"
_TABLES = (
    ("single", ("waiting", "cores", "matrix", "memory", "healthy", "harder", "needless")),
    ("shapes", ("trains", "others", "rhythms", "fleets")),
    ("dialects", ("trains", "others", "hosts")),
    ("jobs", ("trains", "others", "fleets")),
    ("codebases", ("trains", "serves", "others", "fleets")),
    ("labs", ("language", "serving", "media", "science", "agents", "fleets")),
    ("domains", ("fields", "generation", "retrieval", "upkeep")),
    ("trials", ("steps", "hosts", "work")),
    ("rounds", ("serving", "models", "loops")),
    ("blind", ("programs", "second")),
    ("single", ("kernels",)),
)

SHAPES: tuple[Shape, ...] = tuple(
    shape
    for folder, names in _TABLES
    for name in names
    for shape in read_table(_FOLDER / folder / f"{name}.txt", folder if folder in LATER else "")
)
CASES = tuple(case for shape in SHAPES for case in shape.cases())

SHOWN = frozenset((_FOLDER / "shown.txt").read_text("utf-8").splitlines()[1:])
"""Cases that were held back, and are shown since."""

SPLIT = halves(CASES)
"""The half that each case was in at first."""

HALF_OF: dict[str, Half] = {**SPLIT, **dict.fromkeys(SHOWN, "tuned")}
