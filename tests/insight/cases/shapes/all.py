"""The cases of all shapes."""

from __future__ import annotations

from tests.insight.cases.shapes import fleets, others, rhythms, trains

SHAPES = (*trains.SHAPES, *others.SHAPES, *rhythms.SHAPES, *fleets.SHAPES)
CASES = tuple(case for shape in SHAPES for case in shape.cases())
