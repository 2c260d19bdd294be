"""Tests of `tpuprof.parsers.session.run_facts`: what a list of runs says of a run, without decoding its files."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.build import PlaneBuilder, present, tpu_plane, write_run
from tests.support.gpus import cpu_profile
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.files.folder_search import sibling_files
from tpuprof.parsers.files.logdir import HostFile, Run, open_logdir
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Line, Trace
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.parsers.pages.input.input import INPUT
from tpuprof.parsers.pages.memory.key import MEMORY_PROFILE
from tpuprof.parsers.pages.ops.framework_ops import FRAMEWORK_OPS
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session import run_facts as module
from tpuprof.parsers.session.known_runs import KnownRuns
from tpuprof.parsers.session.run_facts import HOSTS_TRIED, METRICS, RunFacts, nothing_known, run_facts
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.session.software import VERSIONS_NOT_RECORDED

MS = 10**9


def steps(count: int, length: int = 10 * MS) -> list[tuple[str, int, int]]:
    return [(str(at), at * length, (at + 1) * length - MS) for at in range(count)]


def modules(count: int, period: int = 10 * MS, name: str = "jit_step(7)") -> list[tuple[str, int, int]]:
    return [(name, at * period, at * period + period // 2) for at in range(count)]


def add_hlo(metadata: PlaneBuilder, module: str, stat: str) -> None:
    """A module's HLO as it stands in the metadata plane."""
    metadata.fill(metadata.plane.event_metadata[metadata.event_id(module)].stats.add(), stat, b"\n\x00")


def training(step_count: int = 5, cores: int = 2) -> XSpace:
    """A host with cores that run steps, HLO, host events and the times of the capture."""
    space = XSpace()
    for ordinal in range(cores):
        tpu_plane(space, ordinal, [("dot.1", "convolution", 0, MS)], steps(step_count), modules(step_count))
    add_hlo(PlaneBuilder(space, "/host:metadata"), "jit_step(7)", "Hlo Proto")
    host = PlaneBuilder(space, "/host:CPU")
    host.event(host.line("python"), host.event_id("train"), 0, MS)
    environment = PlaneBuilder(space, "Task Environment")
    environment.stat("profile_start_time", 1_000_000_000)
    environment.stat("profile_stop_time", 3_000_000_000)
    return space


def written(path: Path, **files: XSpace | bytes) -> Run:
    """A run with these host files."""
    return open_logdir(str(write_run(path, "2026_11_20_18_04_33", **files))).runs[0]


def check(facts: RunFacts) -> RunFacts:
    """What is unknown says why, and what is known does not."""
    for name in METRICS:
        assert (getattr(facts, name) is None) == (name in facts.unknown), name
        assert facts.unknown.get(name, "reason")
    return facts


def of(path: Path, space: XSpace) -> RunFacts:
    return check(run_facts(written(path, host0=space)))


# --- what is there


def test_a_training_run(tmp_path: Path) -> None:
    facts = of(tmp_path, training())
    assert facts == RunFacts(
        host="host0",
        device_type="TPU test",
        core_count=2,
        modules=("jit_step",),
        module_count=1,
        core_step_ps=9 * MS,
        step_source="steps",
        step_count=5,
        duration_ps=2000 * MS,
        has_hlo=True,
        host_tracing="annotations",
        unknown={"versions": VERSIONS_NOT_RECORDED},
    )


def test_versions_of_the_software(tmp_path: Path) -> None:
    """And no flags, which may be long."""
    space = tpu_plane(XSpace(), 0, [("dot.1", "convolution", 0, MS)], steps(5), modules(5)).space
    environment = PlaneBuilder(space, "Task Environment")
    environment.stat("libtpu_version", "0.0.21")
    environment.stat("xla_flags", "--xla_dump_to=/x")
    assert of(tmp_path, space).versions == ("libtpu_version 0.0.21",)
    assert check(run_facts(written(tmp_path, host0=space), budget_bytes=0)).versions is None


def test_without_markers_the_period_of_a_cycle_counts(tmp_path: Path) -> None:
    space = XSpace()
    small = [("jit_small(1)", at * 10 * MS + 6 * MS, at * 10 * MS + 7 * MS) for at in range(8)]
    tpu_plane(space, 0, [], (), [*modules(6), *small])
    facts = of(tmp_path, space)
    assert (facts.core_step_ps, facts.step_count, facts.step_source) == (10 * MS, 5, "cycle")
    assert facts.modules == ("jit_step", "jit_small")


def test_markers_that_are_modules_in_turn_are_no_steps(tmp_path: Path) -> None:
    """Two modules a step, a marker for each: a cycle of them is the step."""
    space = XSpace()
    runs = [
        span
        for at in range(6)
        for span in (("jit_a(1)", at * 20, at * 20 + 12), ("jit_b(2)", at * 20 + 12, at * 20 + 19))
    ]
    spans = [(name, begin * MS, end * MS) for name, begin, end in runs]
    tpu_plane(space, 0, [], [(str(at), begin, end) for at, (_, begin, end) in enumerate(spans)], spans)
    facts = of(tmp_path, space)
    assert (facts.core_step_ps, facts.step_source) == (20 * MS, "cycle")


def test_a_rare_module_leaves_the_markers_alone(tmp_path: Path) -> None:
    space = XSpace()
    spans = [(("jit_eval(2)" if at == 4 else "jit_step(1)"), at * 10 * MS, at * 10 * MS + 9 * MS) for at in range(10)]
    tpu_plane(space, 0, [], [(str(at), begin, end) for at, (_, begin, end) in enumerate(spans)], spans)
    facts = of(tmp_path, space)
    assert (facts.core_step_ps, facts.step_source, facts.step_count) == (9 * MS, "steps", 10)


def test_the_core_that_works_is_read(tmp_path: Path) -> None:
    space = tpu_plane(XSpace(), 0, []).space
    tpu_plane(space, 1, [("dot.1", "convolution", 0, MS)], steps(4))
    facts = of(tmp_path, space)
    assert (facts.core_count, facts.step_count, facts.modules) == (2, 4, None)


@pytest.mark.parametrize(("names", "tracing"), [((), "off"), (("train",), "annotations"), (("$a.py:3 f",), "python")])
def test_the_host_s_tracing(tmp_path: Path, names: tuple[str, ...], tracing: str) -> None:
    space = tpu_plane(XSpace(), 0, [], steps(3)).space
    if names:
        host = PlaneBuilder(space, "/host:CPU")
        line = host.line("python")
        for name in names:
            host.event(line, host.event_id(name), 0, MS)
    assert of(tmp_path, space).host_tracing == tracing


def test_a_host_without_a_device(tmp_path: Path) -> None:
    host = PlaneBuilder.alone("/host:CPU")
    host.event(host.line("python"), host.event_id("train"), 0, MS)
    facts = of(tmp_path, host.space)
    assert (facts.core_count, facts.device_type, facts.core_step_ps) == (0, None, None)
    assert "only the host was traced" in facts.unknown["device_type"]


# --- which host is read


def test_the_first_whole_host_with_a_device_is_read(tmp_path: Path) -> None:
    whole = training().SerializeToString()
    bare = XSpace(hostnames=[b"bare"]).SerializeToString()
    run = written(tmp_path, a=bare, b=whole[: len(whole) * 2 // 3], c=b"no profile at all", d=whole, e=training(3))
    facts = check(run_facts(run))
    assert (facts.host, facts.step_count) == ("d", 5)
    assert {problem.code for problem in facts.problems} == {"truncated", "corrupt"}


def test_a_damaged_host_is_better_than_none(tmp_path: Path) -> None:
    whole = training().SerializeToString()
    facts = check(run_facts(written(tmp_path, a=XSpace(hostnames=[b"bare"]), b=whole[:-20])))
    assert facts.host == "b" and facts.device_type == "TPU test"


def test_of_many_hosts_one_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = written(tmp_path, **{f"host{at}": training() for at in range(64)})
    opened = opened_by(monkeypatch)
    assert run_facts(run).host == "host0"
    assert opened == ["host0.xplane.pb"]


def test_broken_hosts_are_tried_up_to_a_bound(tmp_path: Path) -> None:
    run = written(tmp_path, **{f"host{at:02}": b"no profile" for at in range(20)}, host99=training())
    facts = check(run_facts(run))
    assert facts.host is None and len(facts.problems) == HOSTS_TRIED
    assert facts.unknown["core_step_ps"].endswith("do not read as an XSpace.")


# --- what is not read


def test_large_lines_are_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = written(tmp_path, host0=training(400))
    decoded: list[str] = []
    decode = Line.events

    def counted(line: Line, *args: object, **kwargs: object) -> object:
        decoded.append(line.name)
        return decode(line, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Line, "events", counted)
    assert run_facts(run).step_count == 400
    assert decoded == ["Steps", "XLA Modules"]
    decoded.clear()
    facts = check(run_facts(run, budget_bytes=12_000))
    assert decoded == [] and facts.core_step_ps is None
    assert (facts.device_type, facts.core_count, facts.has_hlo) == ("TPU test", 2, True)
    assert facts.unknown["core_step_ps"] == module.TOO_LARGE and facts.modules == ("jit_step",)


def test_nothing_but_headers(tmp_path: Path) -> None:
    facts = check(run_facts(written(tmp_path, host0=training()), budget_bytes=0))
    assert (facts.device_type, facts.core_count, facts.has_hlo) == ("TPU test", 2, True)
    assert {facts.core_step_ps, facts.modules, facts.duration_ps, facts.host_tracing} == {None}


def test_gzipped_and_remote_files(tmp_path: Path) -> None:
    run = written(tmp_path, host0=training())
    path = Path(run.hosts[0].path)
    path.with_name("host0.xplane.pb.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    run = open_logdir(str(tmp_path)).runs[0]
    assert check(run_facts(run)).step_count == 5
    assert "too large to unpack" in check(run_facts(run, budget_bytes=10)).unknown["device_type"]
    remote = Run("r", "gs://b/r", (HostFile("h", "gs://b/r/h.xplane.pb", 5, 0.0, False),), ())
    assert "not on this machine" in check(run_facts(remote)).unknown["core_step_ps"]


def test_a_run_without_hosts_says_why(tmp_path: Path) -> None:
    assert "0 bytes" in check(run_facts(written(tmp_path, host0=b""))).unknown["device_type"]
    assert check(run_facts(Run("r", "/nowhere", (), ()))).unknown
    assert set(nothing_known("why").unknown.values()) == {"why"}


def test_a_file_that_goes(tmp_path: Path) -> None:
    run = written(tmp_path, host0=training())
    os.unlink(run.hosts[0].path)
    assert "does not exist" in check(run_facts(run)).unknown["device_type"]


def test_cancelling(tmp_path: Path) -> None:
    run = written(tmp_path, host0=training())
    with pytest.raises(Cancelled):
        run_facts(run, is_cancelled=lambda: True)
    answers = iter([False, False, True])
    with pytest.raises(Cancelled):
        run_facts(run, is_cancelled=lambda: next(answers))


@pytest.mark.parametrize(("start", "stop"), [(5, 5), (7, 3), (0, 2**63 - 1), (-(2**63), 2**63 - 1)])
def test_times_that_are_none(tmp_path: Path, start: int, stop: int) -> None:
    space = training()
    environment = PlaneBuilder(XSpace(), "Task Environment")
    environment.stat("profile_start_time", start)
    environment.stat("profile_stop_time", stop)
    space.planes[-1].CopyFrom(environment.plane)
    assert of(tmp_path, space).duration_ps is None


# --- profiles of TensorFlow 2.3 and its successors


def old_gpu() -> XSpace:
    """A GPU profile in the old form: no metadata plane, no capture times, lines of streams, ids as their stats."""
    gpu = PlaneBuilder.alone("/device:GPU:0")
    gpu.stat("device_id", 0)
    stream = gpu.line("Stream #14(MemcpyH2D,Memset,Compute)")
    gpu.event(stream, gpu.event_id("volta_sgemm_128x64"), 0, MS, correlation_id=3)
    host = PlaneBuilder(gpu.space, "/host:CPU", 0)
    host.event(host.line("tf_Compute/1", timestamp_ns=5), host.event_id("MatMul:MatMul"), 0, MS)
    return gpu.space


def old_tpu() -> XSpace:
    """A TPU profile with HLO under the stat's old name, and lines without a time."""
    space = tpu_plane(XSpace(), 0, [("dot.1", "convolution", 0, MS)], steps(4), modules(4)).space
    add_hlo(PlaneBuilder(space, "/host:metadata"), "cluster_step(7)", "HLO Proto")
    PlaneBuilder(space, "/host:CPU")
    return space


def old_folder(path: Path, space: XSpace) -> Run:
    """What TensorFlow 2.3 wrote for a capture: the profile beside pages of its own and a trace."""
    run = written(path, worker0=space)
    pages = (
        "overview_page.pb",
        "input_pipeline.pb",
        "tensorflow_stats.pb",
        "kernel_stats.pb",
        "memory_profile.json.gz",
    )
    for name in (*pages, "trace.json.gz"):
        (Path(run.path) / f"worker0.{name}").write_bytes(b"\n\x00")
    (path / "events.out.tfevents.1600000000.worker0.profile-empty").write_bytes(b"")
    return open_logdir(str(path)).runs[0]


@pytest.mark.parametrize("space", [old_gpu(), old_tpu()], ids=["gpu", "tpu"])
def test_old_run_folders_are_listed(tmp_path: Path, space: XSpace) -> None:
    run = old_folder(tmp_path, space)
    assert [host.host for host in run.hosts] == ["worker0"] and run.problems == ()
    facts = check(run_facts(run))
    assert facts.device_type in ("GPU", "TPU test") and facts.core_count == 1
    if facts.device_type != "GPU":
        assert facts.has_hlo and facts.modules == ("jit_step",) and facts.step_count == 4
        assert facts.host_tracing == "off"
    assert facts.unknown["duration_ps"] == "the profile does not record its start and stop"
    beside = {files.kind: (files.count, files.example) for files in sibling_files(run.path)}
    assert beside == {
        "pages that TensorFlow computed": (5, "worker0.input_pipeline.pb"),
        "traces for a viewer": (1, "worker0.trace.json.gz"),
    }
    session = Session(run)
    assert session.page(OVERVIEW).environment.device_core_count == 1
    assert session.timeline().sections
    for key in (OPS, FRAMEWORK_OPS, INPUT, MEMORY_PROFILE):
        page: object = session.page(key)
        assert page is not None


def test_files_beside_a_file_or_nothing(tmp_path: Path) -> None:
    assert sibling_files(open_logdir(old_folder(tmp_path, old_gpu()).hosts[0].path).runs[0].path) == ()
    assert sibling_files("/nowhere") == ()


# --- kept from one look to the next


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], KnownRuns]:
    """A list of runs with a cache of its own, whose clock is a minute ahead of all files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return lambda: KnownRuns(HostCache(now=lambda: time.time() + 60), str(tmp_path / "logs"))


def opened_by(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are opened from now on."""
    paths: list[str] = []
    opening = Trace.open

    def noted(path: str) -> Trace:
        paths.append(os.path.basename(path))
        return opening(path)

    monkeypatch.setattr(Trace, "open", noted)
    return paths


def test_a_run_that_was_looked_at_is_not_opened_again(
    tmp_path: Path, kept: Callable[[], KnownRuns], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [written(tmp_path / "logs" / name, **{name: training(count)}) for name, count in (("a", 4), ("b", 6))]
    first = kept()
    facts = [check(first.facts(run)) for run in runs]
    first.keep()
    opened = opened_by(monkeypatch)
    again = kept()
    assert [again.facts(run) for run in runs] == facts and opened == []
    Path(runs[0].hosts[0].path).write_bytes(training(9).SerializeToString())
    changed = kept()
    assert [changed.facts(run).step_count for run in runs] == [9, 6] and opened == ["a.xplane.pb"]


@pytest.mark.parametrize("found", ["facts", (("a",), (), ()), (("a",), ((),), (1,))])
def test_what_is_not_facts_in_the_cache_is_not_used(
    tmp_path: Path, kept: Callable[[], KnownRuns], found: object
) -> None:
    run = written(tmp_path / "logs", a=training(4))
    cache, place = HostCache(), str(tmp_path / "logs")
    cache.put(cache.shelf(f"facts of the runs in {place}"), found)
    known = kept()
    assert not known._entries and known.facts(run).step_count == 4


def test_a_file_that_is_being_written_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = written(tmp_path / "logs", a=training(4))
    known = KnownRuns(HostCache(), str(tmp_path / "logs"))
    known.facts(run)
    known.keep()
    opened = opened_by(monkeypatch)
    assert KnownRuns(HostCache(), str(tmp_path / "logs")).facts(run).step_count == 4 and opened == ["a.xplane.pb"]


def test_a_program_on_the_cpu_has_the_steps_of_its_overview(tmp_path: Path) -> None:
    run = written(tmp_path, host0=cpu_profile(4, [("work", 0, 50)], [("dot.1", 50, 90)]))
    facts = check(run_facts(run))
    time = present(Session(run).page(OVERVIEW).performance.step_time)
    assert facts.device_type == "CPU"
    assert (facts.core_step_ps, facts.step_count, facts.step_source) == (time.median_ps, time.count, "steps")


def test_steps_that_a_cached_overview_knows_are_known(
    tmp_path: Path, kept: Callable[[], KnownRuns], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a large profile that someone has opened."""
    monkeypatch.setattr(module, "SMALL_BYTES", 0)
    monkeypatch.setattr("tpuprof.parsers.hosts.cache.LEAST_BYTES", 0)
    run = written(tmp_path / "logs", host0=cpu_profile(4, [("work", 0, 50)], [("dot.1", 50, 90)]))
    first = kept()
    assert check(first.facts(run)).core_step_ps is None
    first.keep()
    time = present(Session(run, cache=first._cache).page(OVERVIEW).performance.step_time)
    assert check(kept().facts(run)).core_step_ps == time.median_ps
