"""Jobs of labs and products, in the spelling of their own code bases."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.case import LABS, Case
from tests.insight.cases.shapes.jobs.job import Job


class Lab(Job):
    """A job of a lab's own code base, which is scored with its like."""

    def cases(self) -> list[Case]:
        """All its cases, held back."""
        return [replace(case, later=LABS) for case in super().cases()]
