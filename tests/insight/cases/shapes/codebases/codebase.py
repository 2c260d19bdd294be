"""Shapes in the spelling of public code bases, which came after the jobs and are scored by themselves."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.case import CODEBASES, Case
from tests.insight.cases.shapes.jobs.job import Job


class Codebase(Job):
    """A job that is scored with its like."""

    def cases(self) -> list[Case]:
        """All its cases, held back."""
        return [replace(case, later=CODEBASES) for case in super().cases()]
