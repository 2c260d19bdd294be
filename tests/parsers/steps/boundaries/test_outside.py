"""What lies before the first whole step and after the last: how long, and what the host and the device did then."""

from __future__ import annotations

import pytest

from tests.support.build import PlaneBuilder, summary_of, tpu_plane
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.findings.finding import Finding
from tpuprof.parsers.pages.overview.overview import overview

MS = 10**9
HostEvent = tuple[str, int, int]


def started_late(first_ms: int, *did: HostEvent, after_ms: int = 0) -> tuple[list[str], list[Finding]]:
    """Notes and findings of eight steps of 100 ms, before which the host did something, and after which it saves."""
    space = XSpace()
    steps = [(str(at), (first_ms + 100 * at) * MS, (first_ms + 100 * at + 90) * MS) for at in range(8)]
    tpu_plane(space, 0, [("f", "loop fusion", start, end - start) for _, start, end in steps], steps, steps)
    launches = [("PjitFunction(step)", first_ms + 100 * at, first_ms + 100 * at + 1) for at in range(8)]
    last = [("save", first_ms + 795, first_ms + 795 + after_ms)] if after_ms else []
    PlaneBuilder(space, "/host:CPU", 9).threads([[*did, *launches, *last]], MS)
    page = overview([summary_of(space)])
    notes = [note for note in page.warnings if "whole step" in note]
    return notes, [finding for finding in page.findings if "whole step" in finding.title or finding.kind == "silence"]


COMPILES, RESTORES = ("backend_compile", 0, 1500), ("restore", 1500, 2400)


@pytest.mark.parametrize(
    ("first_ms", "did", "after_ms", "notes", "found"),
    [
        (
            150,
            (("load", 0, 140),),
            0,
            [],
            [("silence", "No op for 150 ms of 940 ms captured while the host runs load")],
        ),
        (
            2400,
            (COMPILES, RESTORES),
            0,
            [
                "The first whole step starts 2.40 s into 3.19 s: compiling takes 1.50 s, "
                "thread 0 spends 900 ms in restore"
            ],
            [("compilation", "75.2% of the profile lies before the first whole step, mostly compiling")],
        ),
        (
            0,
            (),
            400,
            ["The last whole step ends 405 ms before the end of 1.20 s: thread 0 spends 400 ms in save"],
            [("silence", "No op for 405 ms of 1.20 s captured while the host runs save")],
        ),
        (
            400,
            (("main_loop", 0, 1190),),
            0,
            ["The first whole step starts 400 ms into 1.19 s: what the host did then was not traced"],
            [("idle", "33.6% of the profile lies before the first whole step")],
        ),
    ],
    ids=["short", "compiling", "after", "untraced"],
)
def test_what_lies_outside_of_the_steps_is_told_where_it_matters(
    first_ms: int, did: tuple[HostEvent, ...], after_ms: int, notes: list[str], found: list[tuple[str, str]]
) -> None:
    told, findings = started_late(first_ms, *did, after_ms=after_ms)
    assert told == notes
    assert [(finding.kind, finding.title) for finding in findings] == found
    assert all(finding.worth_ps is None and finding.per == "step" for finding in findings)
