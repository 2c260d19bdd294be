"""A detector that fails costs one sentence, and nothing else on any page; `--debug` prints its traceback."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import INTERNAL, Cancelled, Damaged
from tpuprof.parsers.pages.findings import why_slow
from tpuprof.parsers.pages.findings.budget import Budget, Claimed, Detector
from tpuprof.parsers.pages.findings.ops.products import PRECISION

SENTENCE = f"could not look for needless precision: {INTERNAL}"
PAGES = ("overview", "findings", "ledger", "model", "input")


def _failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fails(budget: Budget) -> Claimed:
        raise type(error)(*error.args)

    failing = Detector((PRECISION,), fails)
    detectors = tuple(failing if PRECISION in each.kinds else each for each in why_slow.DETECTORS)
    monkeypatch.setattr(why_slow, "DETECTORS", detectors)


def _page(call: Call, page: str) -> Any:
    return json.loads(call("report", page, "demo", "--format", "json").out)


def test_a_detector_that_fails_costs_one_sentence(monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    before = {page: _page(call, page) for page in PAGES}
    for kind in before["findings"]["kinds"]:
        kind["untold"] = INTERNAL if kind["kind"] == PRECISION.name else kind["untold"]
    _failing(monkeypatch, IndexError("list index out of range"))
    for page in PAGES:
        after = _page(call, page)
        after["warnings"].remove(SENTENCE)
        assert after == before[page]
    printed = call("report", "findings", "demo")
    assert f"Not checked: {PRECISION.title}, as {INTERNAL}." in printed.out and f" ! {SENTENCE}" in printed.out
    assert printed.err == ""
    debugged = call("report", "findings", "demo", "--debug")
    assert debugged.out == printed.out and debugged.err.count("Traceback") == 1
    assert SENTENCE in debugged.err and "IndexError: list index out of range" in debugged.err


@pytest.mark.parametrize("error", [KeyError(1), OSError(5, "Input/output error"), Damaged("it ends early")])
def test_whatever_a_detector_fails_with_is_known(error: Exception) -> None:
    (first, second, *_), failed = why_slow.DETECTORS, list[str]()
    assert replace(first, detect=Mock(side_effect=error)).claims(Mock(), failed) == []
    assert first.has_failed(failed) and not second.has_failed(failed)


@pytest.mark.parametrize(("error", "code"), [(Cancelled(), 130), (MemoryError(), 4)])
def test_nothing_hides_that_the_work_was_stopped(
    monkeypatch: pytest.MonkeyPatch, call: Call, error: BaseException, code: int
) -> None:
    _failing(monkeypatch, error)
    assert call("report", "findings", "demo", code=code).out == ""


@pytest.mark.shared
def test_programs_that_hand_arrays_on_in_odd_ways_need_no_wall(call: Call, shared: Path) -> None:
    """Ops of several outputs, and arrays that an op reads although others need them too."""
    cases = shared / "cases" / "crash"
    runs = [cases / "kept", cases / "sliced"]
    said = [call("report", page, run).out for page in (*PAGES, "ops", "collectives", "cores", "memory") for run in runs]
    said += [call("trend", cases).out, call("diff", *runs).out, call("verify", *runs, code=6).out]
    assert not any("internal error" in each for each in said)
