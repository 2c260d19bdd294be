"""All programs of labs and products."""

from __future__ import annotations

from tests.insight.cases.shapes.labs import agents, fleets, language, media, science, serving

LABS = (*language.LABS, *serving.LABS, *media.LABS, *science.LABS, *agents.LABS, *fleets.LABS)
"""Programs of labs and products, written by someone who had not read the findings; they are scored by themselves."""
