"""The cases of all shapes."""

from __future__ import annotations

from tests.insight.cases.shapes import fleets, others, rhythms, trains
from tests.insight.cases.shapes.codebases import all as codebases
from tests.insight.cases.shapes.dialects import all as dialects
from tests.insight.cases.shapes.jobs import all as jobs
from tests.insight.cases.shapes.labs import all as labs
from tests.insight.cases.shapes.labs.domains import all as domains
from tests.insight.cases.shapes.labs.domains.trials import all as trials

OLDER = (*trains.SHAPES, *others.SHAPES, *rhythms.SHAPES, *fleets.SHAPES, *dialects.SHAPES)
SHAPES = (*OLDER, *jobs.JOBS, *codebases.CODEBASES, *labs.LABS, *domains.DOMAINS, *trials.TRIALS)
CASES = tuple(case for shape in SHAPES for case in shape.cases())
