"""Counters and units against the XProf that is installed: composed profiles of both generations that it knows.

Skipped where XProf is not installed, as `test_live.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.parity.oracle.fields import Agrees, Comparison, Difference, Value, compare
from tests.parity.oracle.live import ask
from tests.parity.oracle.op_fields import rows_of
from tests.support.build import session_at
from tests.support.files.counters import with_readings
from tpuprof.parsers.pages.counters.page import COUNTERS, CountersPage

TEXTS = "XProf's package has texts by the register's number, which its source has not; ours are the profile's"
TWICE = "XProf lists the chip's links once a core"


@pytest.fixture(scope="module", params=["TPU v6 Lite", "TPU v7x"])
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], CountersPage]:
    """XProf's answers about a profile, and our page."""
    folder = tmp_path_factory.mktemp("counters")
    path = folder / "host0.xplane.pb"
    path.write_bytes(with_readings(request.param))
    answers = ask(path.read_bytes(), folder / "answers", ("perf_counters", "utilization_viewer"))
    return answers, session_at(path).page(COUNTERS)


def unit_name(name: str) -> str:
    """A unit's name: XProf's differ by a blank behind the colon, and give the core of HBM in it."""
    return name.partition(" - core ")[0].replace(": ", ":")


def test_units(case: tuple[dict[str, Any], CountersPage], agrees: Agrees) -> None:
    answers, page = case
    ours: dict[tuple[object, ...], dict[str, Value]] = {}
    for row in page.units:
        use = row.use
        number = use.number if use.group != "memory" or use.is_share else 0
        core = use.number if use.name == "HBM Rd+Wr" else ""
        key = (float(use.plane[-1]), float(use.sample), float(number), unit_name(use.name), core)
        ours[key] = {"achieved": use.achieved, "peak": use.peak, "unit": _measure(use.measure, use.name)}
    result, seen = Comparison(), []
    for theirs in rows_of(answers["utilization_viewer"]):
        core = int(theirs["name"][-1]) if " - core " in theirs["name"] else ""
        key = (theirs["device"], theirs["sample"], theirs["node"], unit_name(theirs["name"]), core)
        assert key in ours
        seen.append(key)
        result.add(compare({name: theirs[name] for name in ("achieved", "peak", "unit")}, ours[key], {}))
    assert set(seen) == set(ours)  # nothing of ours that XProf has not
    repeated = {key[3] for key in seen if seen.count(key) > 1}
    assert repeated <= {"ICI (Read)", "ICI (Write)"}, TWICE
    agrees(result, "units, live composed")


def _measure(measure: str, name: str) -> str:
    """XProf gives the ratios of HBM's traffic, which are bytes of bytes, in percent."""
    return "percent" if name.endswith("Ratio") else measure


def test_raw_counters(case: tuple[dict[str, Any], CountersPage], agrees: Agrees) -> None:
    answers, page = case
    theirs = rows_of(answers["perf_counters"])
    assert len(theirs) == len(page.counters)
    result = Comparison()
    for answer, row in zip(theirs, page.counters, strict=True):
        counter = row.counter
        ours: dict[str, Value] = {
            "Host": row.host,
            "Chip": float(counter.plane[-1]),
            "Kernel": "counters_0",
            "Sample": 1.0,
            "Counter": counter.name,
            "Value": float(counter.value),
            "Description": counter.description,
            "Set": counter.sets,
        }
        texts = {name: Difference(ours[name], TEXTS) for name in ("Description", "Set") if answer[name] != ours[name]}
        result.add(compare(answer, ours, texts))
    agrees(result, "raw counters, live composed")
