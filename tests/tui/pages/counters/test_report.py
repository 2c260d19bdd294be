"""The report on counters in every format: golden texts, reasons for all that is null, and a limit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.documents import csv_rows, nulls
from tests.support.files.counters import with_custom_calls, with_instructions, with_periodic, with_readings
from tests.support.golden import check_golden
from tests.tui.cli.calls import Call

GOLDEN = Path(__file__).parent / "golden"
Print = Callable[..., str]

MADE = {
    "v7x": with_readings("TPU v7x"),
    "calls": with_custom_calls(),
    "periodic": with_periodic(),
    "instructions": with_instructions(),
}


@pytest.fixture
def printed(tmp_path: Path, call: Call) -> Print:
    def report(name: str, *arguments: str) -> str:
        path = tmp_path / name / "host0.xplane.pb"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(MADE[name])
        return call("report", "counters", path, "--no-cache", *arguments).out.replace(str(tmp_path), "/logs")

    return report


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("look", [("--width", "100"), ("--width", "80", "--ascii")], ids=["wide", "ascii"])
def test_text(name: str, look: tuple[str, ...], printed: Print) -> None:
    check_golden(GOLDEN / f"{name}-{look[1]}.txt", printed(name, *look, "--limit", "30"))


@pytest.mark.parametrize("form", ["json", "csv", "md"])
def test_for_machines(form: str, printed: Print) -> None:
    check_golden(GOLDEN / f"calls.{form}", printed("calls", "--format", form))


@pytest.mark.parametrize("name", MADE)
def test_what_is_null_has_its_reason(name: str, printed: Print) -> None:
    document = json.loads(printed(name, "--format", "json"))
    assert {path for path in nulls(document)} <= set(document["unknown"])


def test_all_registers_are_rows(printed: Print) -> None:
    document = json.loads(printed("v7x", "--format", "json"))
    first = document["counters"][0]
    assert (len(document["counters"]), first["register"], first["value"]) == (3368, "TC 0 CYCLES", 2_280_000_000)
    assert first["value_hex"] == "0x87e60a00" and len(document["units"]) == 236
    rows = csv_rows(printed("v7x", "--format", "csv"))
    busy = next(row for row in rows if row["unit"] == "Avg MXU Busy")
    assert float(busy["use_percent"]) == pytest.approx(41, abs=1e-4)
    assert float(busy["achieved"]) / float(busy["peak"]) == pytest.approx(0.41, abs=1e-6)
    assert len(json.loads(printed("v7x", "--format", "json", "--limit", "5"))["counters"]) == 5
