"""What reasons of a program that serves are told of: requests, else runs of the program that they belong to."""

from __future__ import annotations

import re

import pytest

from tests.support.build import PlaneBuilder, summary_of, tpu_plane
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.findings.finding import Finding
from tpuprof.parsers.pages.overview.overview import overview

MS = 10**9


def served(requests: int, idle_ms: int) -> tuple[Finding, ...]:
    """Six times a run of prefill, in which nothing but an op of decode's program runs, and eight of decode."""
    space, at = XSpace(), 0
    runs: list[tuple[str, int, int]] = []
    for _ in range(6):
        for name, length in (("jit_prefill(9)", 60), *[("jit_decode(7)", 5)] * 8):
            runs.append((name, at * MS, (at + length) * MS))
            at += length + idle_ms
    tpu_plane(space, 0, [("f", "loop fusion", start, end - start) for _, start, end in runs], (), runs)
    each = at / max(requests, 1)
    spans = [("SessionRun", int(number * each), int((number + 1) * each)) for number in range(requests)]
    PlaneBuilder(space, "/host:CPU", 9).threads([spans], MS)
    return overview([summary_of(space)]).findings


@pytest.mark.parametrize(
    ("requests", "idle_ms", "kind", "name", "per_step"),
    [(18, 2, "idle", "request", 3), (0, 0, "unexplained", "run of jit_decode", 8)],
)
def test_reasons_of_a_server_are_of_requests_or_runs_and_not_of_periods_of_its_largest_program(
    requests: int, idle_ms: int, kind: str, name: str, per_step: float
) -> None:
    finding = next(finding for finding in served(requests, idle_ms) if finding.kind == kind)
    assert finding.unit is not None and finding.unit.name == name
    assert finding.unit.per_step == pytest.approx(per_step, rel=0.1)
    step = 100 + 9 * idle_ms
    told = [re.search(rf"([0-9.]+) ms a {name} \(([0-9.]+)%\)", sentence) for sentence in finding.evidence]
    amounts = [match for match in told if match is not None]
    assert amounts and not any("a step" in sentence for sentence in finding.evidence)
    for match in amounts:
        assert float(match[1]) == pytest.approx(step * float(match[2]) / 100 / finding.unit.per_step, rel=0.01)
        assert any(figure.value == pytest.approx(float(match[1]), rel=0.01) for figure in finding.subject.figures)
    if finding.worth_ps is not None:
        assert finding.told_ps(finding.worth_ps) == pytest.approx(finding.worth_ps / finding.unit.per_step)
