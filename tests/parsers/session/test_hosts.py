"""Steps over several hosts: matched by name or by time, with hosts that are late, broken, or have no device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import present, session_at, tpu_plane, write_run
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.parsers.pages.shared.steps import common_steps

US = 1_000_000
STEP = 50_000 * US
"""More than clocks of hosts are apart (`parsers.steps.boundaries.matching.CLOCKS_APART_PS`)."""


def host_bytes(first: int, count: int, slower: int = 0, shift: int = 0, name_from: int | None = None) -> bytes:
    """A host with one core and steps first, first + 1, ...; each begins at its number times a millisecond.

    Args:
        slower: by how much its steps are longer than 900 us; shift: of all its times.
        name_from: what the first step is called, its number unless given.
    """
    space = XSpace()
    names = range(first if name_from is None else name_from, 10**6)
    spans = [(number * STEP + shift, (900 * US) + slower) for number in range(first, first + count)]
    steps = [(str(name), begin, begin + length) for name, (begin, length) in zip(names, spans, strict=False)]
    ops = [("fusion.1", "loop fusion", begin, length - 100 * US) for begin, length in spans]
    tpu_plane(space, 0, ops, steps=steps)
    return space.SerializeToString()


def page(folder: Path, **hosts: bytes) -> Overview:
    return session_at(write_run(folder, **hosts)).page(OVERVIEW)


def test_clocks_that_have_nothing_in_common_leave_the_names(tmp_path: Path) -> None:
    found = page(tmp_path, a=host_bytes(10, 5), b=host_bytes(10, 5, shift=10**6 * STEP))
    assert [step.name for step in found.steps] == ["10", "11", "12", "13", "14"]


@pytest.mark.parametrize("count", [2, 16])
def test_many_hosts_one_broken_one_late_one_without_a_device(tmp_path: Path, count: int) -> None:
    hosts = {f"host{number:02}": host_bytes(0, 8, slower=number * US) for number in range(count)}
    hosts["late"] = host_bytes(3, 8)
    hosts["broken"] = b"\x0a\xff\xff\xff"
    no_device = XSpace()
    no_device.planes.add(name=b"/host:CPU").lines.add(name=b"main")
    hosts["idle"] = no_device.SerializeToString()
    found = page(tmp_path, **hosts)
    assert [step.name for step in found.steps] == ["3", "4", "5", "6", "7"]
    assert found.environment.host_count == count + 2 and found.environment.task_count == count + 1
    assert found.environment.device_core_count == count + 1
    assert {step.duration_ps for step in found.steps} == {900 * US + (count - 1) * US}
    notes = " ".join(found.warnings)
    assert "no device plane on idle" in notes and "broken" in notes and "left out" in notes


@given(st.integers(0, 6), st.integers(1, 8), st.integers(1, 8), st.integers(-90, 90))
def test_hosts_that_count_for_themselves_share_what_runs_at_the_same_time(
    late: int, first: int, second: int, skew: int
) -> None:
    grids = [
        summarise(Trace.from_bytes(host_bytes(0, first, name_from=1000)), "a"),
        summarise(Trace.from_bytes(host_bytes(late, second, shift=skew * US)), "b"),
    ]
    grid = present(common_steps(grids).grid)
    shared = sorted({*range(first)} & {*range(late, late + second)})
    if shared:
        assert len(grid) == len(shared)
        assert grid.duration_ps.shape == (2, len(shared))
        assert bool((np.abs(grid.start_ps - np.array(shared) * STEP) <= abs(min(skew, 0)) * US).all())
    else:
        assert grid.core_names == ("a:0",)
