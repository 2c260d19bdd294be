"""Every reduction runs in this process and in several, and what it gives comes out of the cache as it was."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.parsers.hosts.test_codec import assert_same
from tests.parsers.memory.allocators.made import training_space
from tests.support.build import session_at, trace_of, write_run
from tests.support.composed import slices
from tests.support.composed.sparse_cores import BOUND, HEALTHY, sparse_profile
from tests.support.files.counters import with_custom_calls, with_readings
from tests.support.files.kernels import with_kernels
from tests.support.files.reading import later, own_cache
from tests.support.gpus import gpu_profile
from tests.support.imports import program
from tests.support.made.many_hosts import profiles, steady
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.files.logdir import HostFile, open_logdir
from tpuprof.parsers.hosts import reader as reader_module
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.parsers.hosts.plan import WORKERS_VARIABLE
from tpuprof.parsers.hosts.reader import HostReader
from tpuprof.parsers.hosts.reduction import Reduced, Reduction
from tpuprof.parsers.pages.collectives.page import COLLECTIVES
from tpuprof.parsers.pages.counters.page import COUNTERS
from tpuprof.parsers.pages.memory.key import MEMORY_PROFILE
from tpuprof.parsers.pages.ops.framework_ops import FRAMEWORK_OPS
from tpuprof.parsers.pages.ops.kernels.page import TPU_KERNELS
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.shared.key import SUMMARIES, Later, PageKey, named_in
from tpuprof.parsers.pages.sparse_core.page import SPARSE_CORE
from tpuprof.parsers.session.diff.measure import STEPS_OF_HOST

PAGE_MODULES = [import_module(f"tpuprof.{name}") for name in program() if name.startswith("parsers.pages.")]
KEYS = {name: key for module in PAGE_MODULES for name, key in vars(module).items() if isinstance(key, PageKey)}
REDUCTIONS = {
    made.name: made for module in PAGE_MODULES for made in vars(module).values() if isinstance(made, Reduction)
}
"""All that a module of a page defines or imports."""


def steps(folder: Path) -> Path:
    """Two hosts with ops in steps."""
    return write_run(folder, **profiles({f"host{at}": steady(1000 + at) for at in range(2)}))


def files(*contents: bytes) -> Callable[[Path], Path]:
    """A run of hosts with these profiles."""
    return lambda folder: write_run(folder, **{f"host{at}": content for at, content in enumerate(contents)})


PAGES: Mapping[str, tuple[PageKey[Any], Callable[[Path], Path]]] = {
    "ops": (OPS, steps),
    "framework-ops": (FRAMEWORK_OPS, steps),
    "kernel-calls": (TPU_KERNELS, files(with_kernels(), with_kernels(cores=2))),
    "summary": (OVERVIEW, steps),
    "collectives": (COLLECTIVES, slices.write_run),
    "call-units": (TPU_KERNELS, files(with_custom_calls(), with_custom_calls())),
    "counters": (COUNTERS, files(with_readings("TPU v6 Lite"), with_custom_calls())),
    "sparse_core": (
        SPARSE_CORE,
        files(*(sparse_profile((shape,), chips=2).SerializeToString() for shape in (BOUND, HEALTHY))),
    ),
    "memory": (MEMORY_PROFILE, files(training_space().SerializeToString(), training_space().SerializeToString())),
}
"""By reduction, a page that asks for it, and two hosts that have something for it."""


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Reduced[Any]]]:
    """What was read by each reduction."""
    found: dict[str, list[Reduced[Any]]] = {}
    whole = HostReader.read

    def noted(self: HostReader[Any, Any], *rest: Any) -> Reduced[Any]:
        made = whole(self, *rest)
        found.setdefault(self.reduction.name, []).append(made)
        return made

    monkeypatch.setattr(HostReader, "read", noted)
    return found


def test_every_reduction_has_a_run_here() -> None:
    assert REDUCTIONS.keys() == PAGES.keys()


@pytest.mark.parametrize("name", PAGES)
def test_a_reduction_gives_the_same_in_processes_and_out_of_the_cache(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: dict[str, list[Reduced[Any]]]
) -> None:
    own_cache(monkeypatch, tmp_path)
    key, write = PAGES[name]
    folder = write(tmp_path / "log")
    monkeypatch.setenv(WORKERS_VARIABLE, "1")
    alone = session_at(folder).page(key)
    here = runs.pop(name)[-1]
    assert len(here.read) >= 2 and not here.failed and all(isinstance(one, REDUCTIONS[name].kind) for _, one in here)
    monkeypatch.setenv(WORKERS_VARIABLE, "2")
    pooled = session_at(folder, cache=HostCache(later)).page(key)
    there = runs.pop(name)[-1]
    monkeypatch.setattr(reader_module, "reduce_host", None)
    again = session_at(folder, cache=HostCache(later))
    monkeypatch.setattr(again, "_kept", lambda key, host, make: make())  # no page, but its summaries
    recalled = again.page(key)
    for other in (there, runs.pop(name)[-1]):
        assert other.files == here.files
        for mine, its in zip(here.summaries, other.summaries, strict=True):
            assert_same(mine, its)
    for page in (pooled, recalled):
        assert repr(page) == repr(alone)


@pytest.mark.parametrize("name", ["ops", "summary", "collectives"])
def test_a_reduction_needs_the_bytes_that_it_decodes(name: str) -> None:
    for space in (gpu_profile(), sparse_profile((BOUND,), chips=2), slices.host_space("host0")):
        done, trace, file = list[int](), trace_of(space), HostFile("host0", "", 1, 0.0, False)
        REDUCTIONS[name].reduce(trace, file, None, lambda size, _, done=done: done.append(size), 1)  # type: ignore[misc]
        assert sum(done) == REDUCTIONS[name].needed_bytes(trace)


def test_a_reduction_knows_which_others_include_it() -> None:
    every = (*REDUCTIONS.values(), STEPS_OF_HOST)
    for reduction in every:
        including = {other.name for other in every if other is not reduction and other.gives(reduction)}
        assert set(reduction.given_by) == including


@pytest.mark.parametrize("key", [OPS, FRAMEWORK_OPS])
def test_what_the_overview_left_in_the_cache_is_not_read_again(
    key: PageKey[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_cache(monkeypatch, tmp_path)
    folder = steps(tmp_path / "log")
    alone = shown(session_at(folder).page(key))
    session_at(folder, cache=HostCache(later)).page(OVERVIEW)
    monkeypatch.setattr(reader_module, "reduce_host", None)
    assert shown(session_at(folder, cache=HostCache(later)).page(key)) == alone


def shown(page: Any) -> str:
    """A page of ops without the time by step, which no page of ops shows."""
    table = getattr(page, "table", None)
    return repr(
        page if table is None else dataclasses.replace(page, table=dataclasses.replace(table, in_steps_ps=None))
    )


def test_a_reduction_with_other_steps_is_another_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The collectives of a host alone are over its own steps, and those of all hosts over the steps that they share."""
    own_cache(monkeypatch, tmp_path)
    cache = HostCache(later)
    folder = steps(tmp_path / "log")
    (file, _) = open_logdir(str(folder)).find_run(None).hosts
    grids = [summary.steps for summary in session_at(folder).page(SUMMARIES)]
    slots = [cache.slot((file,), "collectives", given) for given in (None, *grids)]
    assert len({slot.key for slot in slots if slot is not None}) == 3
    assert slots[1] == cache.slot((file,), "collectives", dataclasses.replace(grids[0]) if grids[0] else None)


@pytest.mark.parametrize("name", [name for name, key in KEYS.items() if isinstance(key.make, Later)])
def test_a_key_has_the_type_of_what_its_maker_makes(name: str) -> None:
    """Which no type checker sees, where the maker is named in a string."""
    for make in (KEYS[name].make, KEYS[name].make_as_read):
        if isinstance(make, Later):
            made = named_in(make.place).__annotations__["return"]
            assert f"PageKey[{made}]" in {vars(module).get("__annotations__", {}).get(name) for module in PAGE_MODULES}


def test_memory_over_time_says_which_hosts_are_left_out(tmp_path: Path) -> None:
    page = session_at(files(slices.host_bytes("host0"), b"\xff" * 300)(tmp_path)).page(MEMORY_PROFILE)
    assert page.hosts == ("host0",) and any("host1" in text and "left out" in text for text in page.warnings)


@pytest.mark.parametrize("name", ["collectives", "sparse_core"])
def test_a_host_that_breaks_after_its_summary_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, write = PAGES[name]
    folder = write(tmp_path / "log")
    broken = ["another broken one"]
    whole = reader_module.__dict__["reduce_host"]

    def breaks(reduction: Reduction[Any, Any], file: HostFile, *rest: Any) -> object:
        if reduction.name == name and file.host in broken:
            raise ProfileError("unreadable", f"{file.host} can't be read any more.", "")
        return whole(reduction, file, *rest)

    monkeypatch.setattr(reader_module, "reduce_host", breaks)
    every = session_at(folder).page(key)
    broken += every.hosts[:1]
    page = session_at(folder).page(key)
    assert page.hosts == every.hosts[1:]
    sentence = f"{every.hosts[0]} can't be read any more; this host is left out"
    assert sentence not in every.warnings and page.warnings.count(sentence) == 1
    broken += every.hosts
    with pytest.raises(ProfileError, match="can't be read any more"):
        session_at(folder).page(key)
