"""All programs of other domains."""

from __future__ import annotations

from tests.insight.cases.shapes.labs.domains import fields, generation, retrieval, upkeep

DOMAINS = (*fields.DOMAINS, *generation.DOMAINS, *retrieval.DOMAINS, *upkeep.DOMAINS)
"""Programs written by another person who had not read the findings; they are scored by themselves."""
