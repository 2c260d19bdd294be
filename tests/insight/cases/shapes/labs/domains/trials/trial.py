"""Trials: programs that were written to prove the findings wrong, by someone who had not read them."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.case import TRIALS, Case
from tests.insight.cases.shapes.jobs.job import Job


class Trial(Job):
    """A program with faults that are easily mistaken for others, which is scored with its like."""

    def cases(self) -> list[Case]:
        """All its cases, held back."""
        return [replace(case, later=TRIALS) for case in super().cases()]
