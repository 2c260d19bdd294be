"""The report on counters in every format: golden texts, reasons for all that is null, and a limit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.documents import nulls
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


@pytest.mark.parametrize("name", ["periodic", "instructions"])
def test_text(name: str, printed: Print) -> None:
    check_golden(GOLDEN / f"{name}-100.txt", printed(name, "--width", "100", "--limit", "30"))


@pytest.mark.parametrize("name", MADE)
def test_what_is_null_has_its_reason(name: str, printed: Print) -> None:
    document = json.loads(printed(name, "--format", "json"))
    assert {path for path in nulls(document)} <= set(document["unknown"])
