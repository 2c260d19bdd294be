"""Programs of other domains: science, media, search, generation and the upkeep of large runs."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.case import DOMAINS, Case
from tests.insight.cases.shapes.jobs.job import Job


class Domain(Job):
    """A program of a domain that no other set has, which is scored with its like."""

    def cases(self) -> list[Case]:
        """All its cases, held back."""
        return [replace(case, later=DOMAINS) for case in super().cases()]
