"""The overview of profiles with GPUs: XProf 2.24.2's answers for two real ones, and the verdict's thresholds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.build import trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.overview.generic_overview import generic_overview
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.steps.boundaries.observed import Ran
from tpuprof.parsers.steps.generic.step_events import DeviceBusy, GenericStep, GenericSummary
from tpuprof.parsers.steps.model import GenericBreakdown

MS = 1_000_000_000


def page_of(*, compute: int, input_: int = 0, other: int = 0, collectives: int = 0, steps: int = 1) -> Overview:
    """A page whose steps have these parts, in percent."""
    each = [
        GenericStep(
            name=str(at),
            group_id=at,
            start_ps=at * 100 * MS,
            duration_ps=100 * MS,
            breakdown=GenericBreakdown(compute * MS, 0, collectives * MS, input_ * MS, 0, other * MS),
        )
        for at in range(steps)
    ]
    return page_with(GenericSummary(2, "GPU", tuple(each), 0, 0, compute * MS, None))


def page_with(gpu: GenericSummary) -> Overview:
    """A page of one host."""
    empty = XSpace()
    empty.planes.add(name=b"/host:CPU").lines.add(name=b"main")
    summary = summarise(trace_of(empty), "host0")
    return generic_overview([replace(summary, generic=gpu)])


def test_which_gpus_worked() -> None:
    step = GenericStep("0", 0, 0, 100 * MS, GenericBreakdown(60 * MS, 0, 0, 11 * MS, 0, 0))
    ran = Ran((0, 90 * MS), (0, 0))
    busy = (DeviceBusy(0, 0, None, 0), DeviceBusy(1, 5 * MS, ran, 0), DeviceBusy(4, 60 * MS, ran, 0))
    warnings = page_with(GenericSummary(3, "GPU", (step,), 0, 0, 0, None, busy)).warnings
    assert any(
        "2 of 3 GPUs ran something: host0:4, host0:1, the one with most time first" in words for words in warnings
    )
    warnings = page_with(GenericSummary(2, "GPU", (), 0, 0, 0, None, busy[1:])).warnings
    assert not any("GPU" in words for words in warnings)


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ({"compute": 80, "input_": 20}, "host"),
        ({"compute": 95, "input_": 5}, "both"),
        ({"compute": 92, "input_": 4, "other": 4}, "device"),
        ({"compute": 20, "other": 80}, "host"),
        ({"compute": 90, "collectives": 10}, "device"),
    ],
)
def test_the_bottleneck_is_told_as_the_verdict(parts: dict[str, int], kind: str) -> None:
    page = page_of(**parts)
    assert page.bottleneck.classification == kind
    assert page.account is not None and page.bottleneck.statement == page.account.verdict.statement
    assert page.bottleneck.input_percent == parts.get("input_", 0)
