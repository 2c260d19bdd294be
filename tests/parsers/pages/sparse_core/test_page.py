"""The page of SparseCores: verdicts, means, and what is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, session_at, trace_of
from tests.support.composed.slices import HOSTS, STEPS, host_space
from tests.support.composed.sparse_cores import BOUND, HEALTHY, UNUSED, Shape, add_beside_all, sparse_profile
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.sparse_core import host as host_module
from tpuprof.parsers.pages.sparse_core import page as sparse_page
from tpuprof.parsers.session.session import Session
from tpuprof.tui.demo import demo_path

US = 1_000_000


def page_of(*spaces: XSpace) -> sparse_page.SparseCorePage:
    names = [f"host{number}" for number in range(len(spaces))]
    traces = [trace_of(space) for space in spaces]
    parts = [host_module.sparse_host(trace, name, None) for name, trace in zip(names, traces, strict=True)]
    return sparse_page.sparse_core_page(parts, names)


def session_of(folder: Path, spaces: Sequence[XSpace]) -> Session:
    for number, space in enumerate(spaces):
        (folder / f"host{number}.xplane.pb").write_bytes(space.SerializeToString())
    return session_at(folder)


def test_idle_while_a_sparse_core_works_counts_as_held_up() -> None:
    shape = Shape(gather=(0, 0), scatter=(600, 300), scatter_done=(899, 1), idle=(700, 200))
    page = page_of(sparse_profile((shape,)))
    assert page.mean is not None and page.verdict == "bottleneck"
    assert (page.mean.idle_beside_ps, page.mean.wait_ps) == (199 * US, 1 * US)
    assert "waits 1.00 µs (0.1%) for it and runs no op in 199 µs (19.9%) of its work" in page.statement


def test_several_idle_sparse_cores_are_told() -> None:
    statement = page_of(sparse_profile((UNUSED, UNUSED))).statement
    assert statement == "The 2 SparseCores are idle: none of them ran an op in any step."


def test_means_are_over_all_hosts() -> None:
    page = page_of(sparse_profile((HEALTHY,)), sparse_profile((BOUND,), step_count=5))
    assert page.mean is not None and page.mean.sparse_ps == (4 * 310 + 5 * 860) / 9 * US
    assert [step.name for step in page.steps] == ["0", "1", "2", "3", "4"]
    assert page.steps[0].split.sparse_ps == (310 + 860) / 2 * US and page.steps[4].split.sparse_ps == 860 * US
    assert page.steps[0].core == "host1:0" and page.strip_core == "host1:0"
    assert sum(wait.occurrences for wait in page.waits) == 2 * 9


def test_what_has_no_tensor_core_is_left_out_of_the_comparison() -> None:
    page = page_of(sparse_profile((BOUND,)), sparse_profile((HEALTHY,), with_tensor_cores=False))
    assert page.mean is not None and page.mean.both_ps == 400 * US and page.mean.sparse_ps == 860 * US
    assert [core.both_ps for core in page.sparse_cores] == [400 * US, None]
    assert set(page.unknown) == {"sparse_cores[].both_ms"}


times = st.integers(0, 10**9).map(float)


@given(times, times, times, times, times)
def test_busy_is_alone_and_beside(both: float, tensor: float, sparse: float, wait: float, wait_beside: float) -> None:
    split = sparse_page.StepSplit(
        step_ps=4e9,
        sparse_ps=both + sparse,
        tensor_ps=both + tensor,
        both_ps=both,
        wait_ps=wait,
        wait_beside_ps=wait_beside,
    )
    assert split.tensor_alone_ps == tensor and split.sparse_alone_ps == sparse
    assert split.held_ps == wait + sparse - wait_beside


def test_the_session_takes_the_steps_of_the_overview(tmp_path: Path) -> None:
    host = XSpace()
    PlaneBuilder(host, "/host:CPU")
    session = session_of(tmp_path, [sparse_profile((BOUND,), chips=2), host])
    page, overview = session.page(sparse_page.SPARSE_CORE), session.page(OVERVIEW)
    assert session.page(sparse_page.HAS_SPARSE_CORES) and page.step_source == "steps" and page.verdict == "bottleneck"
    assert [step.name for step in page.steps] == [step.name for step in overview.steps]
    assert page.hosts == ("host0", "host1") and page.warnings == overview.warnings
    assert (
        not session.page(sparse_page.HAS_SPARSE_CORES, "host1")
        and session.page(sparse_page.SPARSE_CORE, "host1").verdict is None
    )
    one = session.of_core("0", "host0").page(sparse_page.SPARSE_CORE)
    assert [core.name for core in one.sparse_cores] == ["host0:0 SparseCore 0"]


def test_two_slices_with_sparse_cores(tmp_path: Path) -> None:
    """The slices' own ops wait for no SparseCore; each host has two cores, and every other SparseCore does nothing."""
    for host in HOSTS:
        space = host_space(host)
        add_beside_all(space, (HEALTHY, UNUSED))
        (tmp_path / f"{host}.xplane.pb").write_bytes(space.SerializeToString())
    page = session_at(tmp_path).page(sparse_page.SPARSE_CORE)
    assert page.hosts == HOSTS and (page.cores, len(page.sparse_cores)) == (8, 16)
    assert page.verdict == "not_bottleneck" and page.waits == () and len(page.steps) == STEPS
    assert page.statement.endswith("8 of 16 SparseCores ran no op.")
    assert page.mean is not None and page.mean.percent("sparse") == pytest.approx(31.0, abs=0.1)


def test_a_file_cut_before_its_sparse_cores_says_so(tmp_path: Path) -> None:
    content = sparse_profile().SerializeToString()
    (tmp_path / "host0.xplane.pb").write_bytes(content[: len(content) // 3])
    page = session_at(tmp_path).page(sparse_page.SPARSE_CORE)
    assert page.verdict is None and "is cut off after" in " ".join(page.warnings)
    assert page.statement == "The readable part of this profile has no SparseCores."


def test_a_profile_without_sparse_cores_is_only_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(open_logdir(demo_path()).find_run(None))
    monkeypatch.setattr(session, "reduced", None)
    monkeypatch.setattr(session, "reduced_with", None)
    page = session.page(sparse_page.SPARSE_CORE)
    assert page.verdict is None and page.statement == sparse_page.no_sparse_cores(()).statement and page.unknown
