"""The shapes of all dialects."""

from __future__ import annotations

from tests.insight.cases.shapes.dialects import hosts, others, trains

SHAPES = (*trains.SHAPES, *others.SHAPES, *hosts.SHAPES)
