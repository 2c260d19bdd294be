"""What there is to say of a capture without device events."""

from __future__ import annotations

import pytest

from tests.support.build import PlaneBuilder, tpu_plane, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.findings.why_slow import KINDS
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.overview.overview import overview


def traced(has_planes: bool, launches: int) -> Overview:
    space = XSpace()
    if has_planes:
        tpu_plane(space, 0, [])
    host = PlaneBuilder(space, "/host:CPU", 9)
    line = host.line("python/1")
    host.event(line, host.event_id("train"), 0, 1000)
    for launch in range(launches):
        host.event(line, host.event_id("PjitFunction(step)"), launch * 1000, 900)
    return overview([summarise(trace_of(space), "host0")])


def test_programs_that_ran_without_a_recorded_op_are_told() -> None:
    space = XSpace()
    tpu_plane(space, 0, [], modules=[("jit_f(7)", 1000 * run, 1000 * run + 900) for run in range(6)])
    (finding, *_) = overview([summarise(trace_of(space), "host0")]).findings
    assert finding.title == "Programs ran on the device, but no op was recorded"
    assert "6 runs of programs on 1 core" in finding.evidence[0] and "empty" not in " ".join(finding.evidence)


@pytest.mark.parametrize(
    ("has_planes", "launches", "title", "why"),
    [
        (False, 3, "Only the host was traced: no device plane", "The host launched programs 3 times"),
        (False, 0, "Only the host was traced: no device plane", "The host launched no program during the capture"),
        (True, 3, "The device planes hold no events", "its tracer was off, or its events were lost"),
    ],
)
def test_no_device_events_says_why(has_planes: bool, launches: int, title: str, why: str) -> None:
    page = traced(has_planes, launches)
    (finding,) = page.findings
    assert (finding.kind, finding.title, finding.worth_ps) == ("no-device", title, None)
    assert why in finding.evidence[1]
    assert set(page.undetectable) == set(KINDS) - {"no-device", "memory-full", "silence"}
    assert set(page.undetectable.values()) == {"the profile has no device events"}
