"""Prints how many fields the parity tests compared."""

from __future__ import annotations

from typing import Any

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Adds up what the tests recorded, on one line a page; works over xdist, where reports carry the properties."""
    totals: dict[str, list[int]] = {}
    reports: list[Any] = terminalreporter.stats.get("passed", [])
    for report in reports:
        for key, value in report.user_properties:
            if key == "parity" and report.when == "call":
                page, *counts = value
                sums = totals.setdefault(page, [0, 0, 0])
                totals[page] = [a + b for a, b in zip(sums, counts, strict=True)]
    for page, (compared, equal, explained) in sorted(totals.items()):
        terminalreporter.write_line(
            f"parity with XProf, {page}: {compared} fields compared, {equal} equal, {explained} differ and say why"
        )
