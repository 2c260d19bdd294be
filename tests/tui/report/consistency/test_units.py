"""No use of a unit contradicts what the work needs, on any profile at hand.

The FLOPs of products say what was used of the matrix units at least; those of other ops run on vector units. A counter,
or the compiler's count of instructions, that says less, or more than all of it, is not shown as a use.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui.report.consistency.documents import MADE, REAL, Documents, documents, made_documents

LEAST = 90.0
"""Percent of what the FLOPs need that a use has at least: counters and times are rounded."""

PLACES = {**REAL, "vllm": "files/vllm-decode-trace"}


def contradictions(shown: Documents) -> Iterator[str]:
    """What can't be, a line each."""
    performance = shown.get("overview", {}).get("performance", {})
    counter, idle = performance.get("mxu_utilization_percent"), performance.get("device_idle_percent") or 0.0
    ops = shown.get("ops", {}).get("ops", ())
    products = [row for row in ops if row["class"] == "compute"]
    flops = sum((row["flops_utilization"] or 0.0) * row["self_time_percent"] for row in products) * (1 - idle / 100)
    if counter is not None and not flops * LEAST / 100 <= counter <= 100:
        yield f"the counter says {counter} % of the matrix units, and the FLOPs of products need {flops} %"
    need = {row["name"]: (row["flops_utilization"] or 0.0) * 100 for row in ops}
    for row in shown.get("counters", {}).get("kernels") or ():
        used, at_least = row["use_percent"], need.get(row["op"]) or 0.0
        is_whole = row["unit"].startswith("MXU") and not row["scope"] and used is not None
        if is_whole and not at_least * LEAST / 100 <= used <= 100 + 1e-6:
            yield f"{row['op']}: {used} % of {row['unit']}, and its FLOPs need {at_least} %"
    for row in shown.get("kernels", {}).get("calls", ()):
        for key in ("matrix_percent", "flops_utilization_percent", "hbm_utilization_percent", "roof_percent"):
            if row[key] is not None and not 0 < row[key] <= 105:
                yield f"{row['op']}: {key} is {row[key]}"
        waits = [row[f"wait_{way}_percent"] or 0.0 for way in ("in", "out")]
        if sum(waits) + (row["body_percent"] or 0.0) > 100 + 1e-6:
            yield f"{row['op']}: it waits and computes for more than its time"


@pytest.mark.parametrize("profile", MADE)
def test_made_profiles(profile: str) -> None:
    assert not list(contradictions(made_documents(profile)))


@pytest.mark.shared
@pytest.mark.parametrize("profile", PLACES)
def test_real_profiles(profile: str, shared: Path) -> None:
    assert not list(contradictions(documents(str(shared / PLACES[profile]))))


def test_what_contradicts_is_seen() -> None:
    shown = {
        "overview": {"performance": {"mxu_utilization_percent": 0.0, "device_idle_percent": 50.0}},
        "ops": {"ops": [{"name": "mm.1", "class": "compute", "flops_utilization": 0.12, "self_time_percent": 90.0}]},
        "counters": {"kernels": [{"op": "mm.1", "unit": "MXU", "scope": None, "use_percent": 0.3}]},
        "kernels": {"calls": []},
    }
    assert len(list(contradictions(shown))) == 2
