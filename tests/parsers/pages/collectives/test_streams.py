"""Collectives of GPUs and of the host's CPU, from kernels and from ops on threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.gpus import US, cpu_profile, gpu_profile, session_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.collectives.model import ON_CPU, ON_GPUS, CollectivesPage
from tpuprof.parsers.pages.collectives.page import COLLECTIVES, HAS_COLLECTIVES


def page_of(space: XSpace, folder: Path) -> CollectivesPage:
    return session_of(space, folder).page(COLLECTIVES)


def test_what_another_stream_computes_meanwhile_hides_a_kernel(tmp_path: Path) -> None:
    space = gpu_profile(steps=1, gpus=1)
    plane = next(plane for plane in space.planes if plane.name == b"/device:GPU:0")
    line = plane.lines.add(id=20, name=b"Stream #20(Compute)", timestamp_ns=plane.lines[0].timestamp_ns)
    event = line.events.add()
    event.metadata_id = plane.lines[0].events[1].metadata_id
    event.offset_ps, event.duration_ps = 150 * US, 50 * US
    page = page_of(space, tmp_path)
    assert (page.hidden_ps, page.exposed_ps) == (10 * US, 9 * US)


def test_a_loop_on_a_thread_does_not_hide_the_collective_in_it(tmp_path: Path) -> None:
    space = cpu_profile(3, [], [("while.1", 0, 90), ("dot.1", 0, 30), ("all-reduce.3", 30, 80)], hlo=True)
    page = page_of(space, tmp_path)
    assert (page.hidden_ps, page.exposed_ps) == (0, 3 * 50 * US)
    assert page.statement.startswith("39.5% ")


@pytest.mark.parametrize("is_gpu", [False, True])
def test_none_is_said_of_what_was_looked_at(is_gpu: bool, tmp_path: Path) -> None:
    space = gpu_profile(steps=1) if is_gpu else cpu_profile(2, [], [("dot.1", 0, 30)], hlo=True)
    for plane in space.planes:
        for line in plane.lines if plane.name.startswith(b"/device") else ():
            del line.events[4]
    session = session_of(space, tmp_path)
    page = session.page(COLLECTIVES)
    assert page.why_none == (ON_GPUS if is_gpu else ON_CPU) and page.waiting_ps is None
    assert not session.page(HAS_COLLECTIVES)
