"""All trials."""

from __future__ import annotations

from tests.insight.cases.shapes.labs.domains.trials import hosts, steps, work

TRIALS = (*steps.TRIALS, *hosts.TRIALS, *work.TRIALS)
"""Programs whose faults are easily mistaken for others; they are scored by themselves."""
