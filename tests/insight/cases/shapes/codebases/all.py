"""All shapes in the spelling of public code bases."""

from __future__ import annotations

from tests.insight.cases.shapes.codebases import fleets, others, serves, trains

CODEBASES = (*trains.CODEBASES, *serves.CODEBASES, *others.CODEBASES, *fleets.CODEBASES)
