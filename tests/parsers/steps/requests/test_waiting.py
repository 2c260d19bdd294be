"""The time in which a server waits for requests is in no step: the steps are the same however long it is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.build import PlaneBuilder, present, summary_of, tpu_plane
from tpuprof.parsers.base.words import time
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.overview.overview import overview

MS = 10**9


@given(st.lists(st.integers(1, 900), min_size=4, max_size=8), st.sampled_from(["ServeRequest", "get_next_request"]))
@settings(max_examples=EXAMPLES)
def test_a_server_without_requests_is_not_idle(pauses: list[int], told: str) -> None:
    space, at, runs, events = XSpace(), 0, list[tuple[str, int, int]](), list[tuple[str, int, int]]()
    for pause in pauses:
        events.append((told, at + pause, at + pause + 40) if told == "ServeRequest" else (told, at, at + pause))
        runs += [("jit_decode(7)", (at + pause + run) * MS, (at + pause + run + 8) * MS) for run in (2, 12, 22, 32)]
        at += pause + 40
    tpu_plane(space, 0, [("f", "loop fusion", start, end - start) for _, start, end in runs], (), runs)
    PlaneBuilder(space, "/host:CPU", 9).threads([events], MS)
    page = overview([summary_of(space)])
    assert present(page.account).period_ps == pytest.approx(10 * MS)
    waited = time(sum(pauses[1:]) * MS)
    assert f"without the {waited} in which it waits for requests" in present(page.performance.step_time).note
