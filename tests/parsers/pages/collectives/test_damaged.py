"""Collectives of profiles that are damaged but can be read, with and without the compiled core."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.build import session_at, write_run
from tests.support.composed import slices
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.core import api
from tpuprof.parsers.ops.core.ops import OPS_LINE
from tpuprof.parsers.pages.collectives.model import CollectivesPage
from tpuprof.parsers.pages.collectives.page import COLLECTIVES
from tpuprof.parsers.session.diff.compare import compare


@pytest.fixture(params=["fallback", "compiled"])
def _core(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the compiled core, and with it."""
    if request.param == "fallback":
        monkeypatch.setattr(api, "CORE", None)


def _page(folder: Path, space: XSpace) -> CollectivesPage:
    return session_at(write_run(folder, host=space)).page(COLLECTIVES)


@pytest.mark.usefixtures("_core")
def test_a_core_whose_ops_lie_on_two_lines(tmp_path: Path) -> None:
    """Every other op on a second line of the same name."""
    whole, parted = slices.host_space("slice0-host0"), slices.host_space("slice0-host0")
    for plane in parted.planes:
        for line in [line for line in plane.lines if line.name == OPS_LINE.encode()]:
            events = list(line.events)
            second = plane.lines.add(name=line.name, id=99, events=events[1::2])
            second.timestamp_ns = line.timestamp_ns
            del line.events[:]
            line.events.extend(events[::2])
    wanted, page = _page(tmp_path / "whole", whole), _page(tmp_path / "parted", parted)
    assert len(page.collectives) == len(wanted.collectives)
    assert np.array_equal(page.sums, wanted.sums) and np.array_equal(page.totals, wanted.totals)


@pytest.mark.usefixtures("_core")
def test_two_planes_of_one_number(tmp_path: Path) -> None:
    """The second one has no steps of its own, and its ops come later."""
    space = slices.host_space("slice0-host0")
    space.planes.add().CopyFrom(space.planes[0])
    del space.planes[-1].lines[0]
    wanted = _page(tmp_path / "whole", slices.host_space("slice0-host0"))
    page = _page(tmp_path / "twice", space)
    assert np.array_equal(page.step_ps, wanted.step_ps)
    assert {of.name for of in page.collectives} == {of.name for of in wanted.collectives}


def test_a_profile_with_two_planes_of_one_number_is_compared(tmp_path: Path) -> None:
    """The ops of its steps are read with its summary, core by core."""
    twice = slices.host_space("slice0-host0")
    twice.planes.add().CopyFrom(twice.planes[0])
    before = session_at(write_run(tmp_path / "before", host=slices.host_space("slice0-host0")))
    after = session_at(write_run(tmp_path / "after", host=twice))
    assert {op.name for op in compare(before, after).ops} and compare(after, before).ops
