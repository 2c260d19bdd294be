"""All jobs."""

from __future__ import annotations

from tests.insight.cases.shapes.jobs import fleets, others, trains

JOBS = (*trains.JOBS, *others.JOBS, *fleets.JOBS)
