"""One core of a host: every page is of it alone, figures add up to the whole's, and none is taken for the whole's."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.build import PlaneBuilder, bare_host, session_at, tpu_plane, write_run
from tests.support.files.reading import later, own_cache, reads
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.formats.proto.xplane_pb2 import CoreDetails, XSpace
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.hosts.hosts import HOSTS
from tpuprof.parsers.pages.input.input import INPUT
from tpuprof.parsers.pages.memory.key import MEMORY, MEMORY_PROFILE
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.ops.op_profile import OP_PROFILE
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.overview.inference import INFERENCE
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.shared.key import SUMMARIES
from tpuprof.parsers.session.one_core import narrowed
from tpuprof.parsers.session.session import Session
from tpuprof.tui.demo import demo_path

US = 1_000_000


def host_bytes(cores: int, seed: int = 1, chips: int = 0, steps: int = 5) -> bytes:
    """A host whose cores run some of six ops for times of their own; a thread of the host, and allocators.

    Args:
        chips: how many chips the cores share; 0 for a profile that records none.
    """
    rng, space = random.Random(seed), XSpace()
    for core in range(cores):
        ops, marks, at = [], [], 0
        for number in range(steps):
            begin = at
            for op in sorted(rng.sample(range(6), 4)):
                length = rng.randrange(1, 50) * US
                ops.append((f"fusion.{op}", "convolution fusion" if op else "all-reduce", at, length))
                at += length + rng.randrange(3) * US
            at = max(at, (number + 1) * 400 * US)
            marks.append((str(number), begin, at))
        plane = tpu_plane(space, core, ops, steps=marks, modules=[(f"jit_f({7})", b, e) for _, b, e in marks])
        if chips:
            chip = 3 + core * chips // cores
            details = CoreDetails(device_ordinal=core, core_num=core % 2, local_chip_id=chip, global_core_id=9 + core)
            plane.stat("core_details", details.SerializeToString())
        sparse = PlaneBuilder(space, f"/device:TPU:{core} SparseCore 0", 100 + core)
        line = sparse.line("XLA Ops")
        sparse.event(line, sparse.event_id("sparse"), 0, (core + 1) * US)
    host = PlaneBuilder(space, "/host:CPU", 200)
    line = host.line("main")
    host.event(line, host.event_id("wait"), 0, 9 * US)
    for device in range(cores):
        stats = {"device_ordinal": device, "bytes_allocated": 1000 * (device + 1), "bytes_available": 10}
        host.event(line, host.event_id("MemoryAllocation"), 10 * US + device, 0, **stats)
    return space.SerializeToString()


def by_op(table: OpTable) -> dict[tuple[int, str], tuple[float, ...]]:
    """What adds up, by program and op."""
    columns = table.occurrences, table.total_ps, table.self_ps, table.flops, table.bytes_accessed
    keys = zip(table.program_id.tolist(), table.name, strict=True)
    return dict(zip(keys, zip(*(np.nan_to_num(column).tolist() for column in columns), strict=True), strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_cores_add_up_to_the_whole(tmp_path: Path, seed: int) -> None:
    cores = 1 + seed % 4
    whole = session_at(write_run(tmp_path, vm=host_bytes(cores, seed)))
    parts = [whole.of_core(str(core)).page(OPS) for core in range(cores)]
    sums: dict[tuple[int, str], np.ndarray] = {}
    for part in parts:
        for key, values in by_op(part.table).items():
            sums[key] = sums.get(key, np.zeros(len(values))) + values
    expected = by_op(whole.page(OPS).table)
    assert sums.keys() == expected.keys()
    for key, values in expected.items():
        np.testing.assert_allclose(sums[key], values, rtol=1e-12)
    for name in ("total_ps", "idle_ps", "core_count"):
        assert sum(getattr(part, name) for part in parts) == getattr(whole.page(OPS), name), name
    assert [part.core_count for part in parts] == [1] * cores
    overviews = [whole.of_core(str(core)).page(OVERVIEW) for core in range(cores)]
    assert sum(page.op_event_count for page in overviews) == whole.page(OVERVIEW).op_event_count


def unnamed(page: object) -> str:
    """A page without its hosts and remarks, in which one core of one differs from the whole; so have its latencies."""
    latencies = getattr(page, "inference", None)
    within = {} if latencies is None else {"inference": replace(latencies, hosts=(), warnings=())}
    return repr(replace(page, hosts=(), warnings=(), **within))  # type: ignore[type-var]


def test_the_only_core_is_the_whole(tmp_path: Path) -> None:
    whole = session_at(write_run(tmp_path, vm=host_bytes(1)))
    one = whole.of_core("vm:0")
    assert unnamed(one.page(OVERVIEW)) == unnamed(whole.page(OVERVIEW))
    assert one.page(OVERVIEW).hosts == ("vm:0",) and whole.page(OVERVIEW).hosts == ("vm",)
    assert unnamed(one.page(OPS)) == unnamed(whole.page(OPS))
    assert repr(replace(one.page(OP_PROFILE), ops=whole.page(OPS))) == repr(
        replace(whole.page(OP_PROFILE), ops=whole.page(OPS))
    )
    assert unnamed(one.page(INFERENCE)) == unnamed(whole.page(INFERENCE))
    assert unnamed(one.page(INPUT)) == unnamed(whole.page(INPUT))
    assert [track.key.tolist() for *_, track in one.timeline().tracks()] == [
        track.key.tolist() for *_, track in whole.timeline().tracks()
    ]


def test_what_is_not_of_the_core_is_said() -> None:
    one = session_at(demo_path()).of_core("2")
    only = "only demo:2 is shown; host threads and compiled modules are those of the whole host"
    for page in (one.page(OVERVIEW), one.page(OPS), one.timeline(), one.page(MEMORY).page(), one.page(MEMORY_PROFILE)):
        assert only in page.warnings


def test_a_timeline_has_the_cores_tracks_and_those_of_the_host(tmp_path: Path) -> None:
    whole = session_at(write_run(tmp_path, vm=host_bytes(3)))
    everything, one = whole.timeline(), whole.of_core("1").timeline()
    planes = [section.plane for section in one.sections]
    assert planes == ["/device:TPU:1", "/device:TPU:1 SparseCore 0", "/host:CPU"]
    assert len(everything.sections) == 7
    place = {section.plane: section for section in everything.sections}
    for section in one.sections:  # details of events are looked up in the whole file, by the same numbers
        assert [track.plane_index for track in section.tracks] == [
            track.plane_index for track in place[section.plane].tracks
        ]
    assert len(whole.of_core("1").flows(one).source) == 0
    assert whole.timeline().sections != one.sections


def test_allocators_of_the_core_are_shown_and_those_of_the_host(tmp_path: Path) -> None:
    whole = session_at(write_run(tmp_path, vm=host_bytes(3)))
    assert [one.id for one in whole.page(MEMORY_PROFILE).allocators] == ["0", "1", "2"]
    assert [(one.id, one.peak_bytes) for one in whole.of_core("1").page(MEMORY_PROFILE).allocators] == [("1", 2000)]


def test_a_chip_is_its_cores(tmp_path: Path) -> None:
    whole = session_at(write_run(tmp_path, vm=host_bytes(4, chips=2)))
    assert [core.chip for core in whole.page(HOSTS).cores] == [3, 3, 4, 4]
    assert whole.of_core("vm:chip4").page(OPS).core_count == 2
    assert whole.of_core("chip4").page(OVERVIEW).hosts == ("vm:chip4",)
    planes = [section.plane for section in whole.of_core("chip3").timeline().sections]
    assert [plane for plane in planes if "Sparse" not in plane] == ["/device:TPU:0", "/device:TPU:1", "/host:CPU"]
    # cores of one chip share its duty cycle
    (summary,) = whole.page(SUMMARIES)
    assert len(summary.duty) == 2


def test_gpus_are_told_apart(tmp_path: Path) -> None:
    space = XSpace()
    for gpu, length in ((0, 30), (1, 60)):
        plane = PlaneBuilder(space, f"/device:GPU:{gpu}", gpu + 1)
        stream = plane.line("Stream #7(Compute)")
        for at in (0, 100 - length):
            plane.event(stream, plane.event_id("kernel"), at * US, length * US)
    whole = session_at(write_run(tmp_path, vm=space.SerializeToString()))
    assert [(row.label, row.noun, row.busy_percent) for row in whole.page(HOSTS).cores] == [
        ("vm:0", "GPU", 60.0),
        ("vm:1", "GPU", 100.0),
    ]
    one = whole.of_core("1")
    assert one.page(OVERVIEW).environment.device_core_count == 1
    assert [section.plane for section in one.timeline().sections] == ["/device:GPU:1"]


# --- what was read before


def test_no_kept_page_of_a_core_is_taken_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_cache(monkeypatch, tmp_path)
    logdir, done = write_run(tmp_path / "log", vm=host_bytes(3)), reads(monkeypatch, lambda _, file: file.core)
    orders: tuple[tuple[str, ...], ...] = (("", "0", "1", "chip0", "2"), ("2", "1", "", "0"), ("0", "", "1", "2"))
    expected = {core: _pages(session_at(logdir), core) for core in ("", "0", "1", "2")}
    assert len(set(expected.values())) == 4
    done.clear()
    for order in orders:
        for core in order:
            if not core.startswith("chip"):
                assert _pages(session_at(logdir, cache=HostCache(later)), core) == expected[core]
    assert sorted(done) == ["", "0", "1", "2"]  # each once


def _pages(whole: Session, core: str) -> str:
    one = whole.of_core(core) if core else whole
    return repr((one.page(OVERVIEW), one.page(OPS), one.page(INFERENCE), one.page(SUMMARIES)))


def test_the_whole_and_its_core_are_kept_side_by_side(tmp_path: Path) -> None:
    whole = session_at(write_run(tmp_path, vm=host_bytes(2)))
    assert whole.of_core("1") is whole.of_core("vm:1")
    page: OpsPage = whole.page(OPS)
    assert whole.of_core("0").page(OPS).total_ps < page.total_ps
    assert whole.page(OPS) is page


# --- what is asked for


@pytest.mark.parametrize(
    ("core", "host", "code", "exit_code", "words"),
    [
        ("a:9", None, "unknown_core", EXIT_NOT_FOUND, "Host a has no core 9: its cores are 0, 1, its chips chip3."),
        ("a:chip8", None, "unknown_core", EXIT_NOT_FOUND, "Host a has no chip8: its cores are 0, 1, its chips chip3."),
        ("b:0", None, "unknown_core", EXIT_NOT_FOUND, "Host b has no core 0: its profile holds no device."),
        ("c:0", None, "unknown_host", EXIT_NOT_FOUND, "Run run has no host c."),
        ("0", None, "usage", EXIT_USAGE, "Run run has 2 hosts: it is unclear which host's core 0 is meant."),
        ("a:0", "b", "usage", EXIT_USAGE, "'a:0' is not a core of host b."),
        ("first", None, "usage", EXIT_USAGE, "'first' is not a core."),
        ("a:-1", None, "usage", EXIT_USAGE, "'a:-1' is not a core."),
        ("", None, "usage", EXIT_USAGE, "'' is not a core."),
    ],
)
def test_a_core_that_is_not_there(
    tmp_path: Path, core: str, host: str | None, code: str, exit_code: int, words: str
) -> None:
    empty = bare_host()
    whole = session_at(write_run(tmp_path, a=host_bytes(2, chips=1), b=empty.SerializeToString()))
    with pytest.raises(ProfileError) as raised:
        whole.of_core(core, host).timeline()
    errors = [raised.value]
    for key in (OVERVIEW, OPS, MEMORY):
        with pytest.raises(ProfileError) as raised:
            whole.of_core(core, host).page(key)
        errors.append(raised.value)
    for error in errors:
        assert (error.code, error.exit_code) == (code, exit_code)
        assert error.sentence == words and error.hint


def test_a_core_is_named_in_several_ways(tmp_path: Path) -> None:
    run = session_at(write_run(tmp_path, a=host_bytes(2), b=host_bytes(2))).run
    assert run.of_core("a:1").core == run.of_core("1", "a").core == run.of_core("a:01", "a").core == "a:1"
    assert run.of_core("b:chip 7").core == "b:chip7" and not run.core
    assert [file.host for file in run.of_core("b:1").hosts] == ["b"]


@pytest.mark.parametrize(
    "name",
    [
        *("a:1", "/device:TPU:1", "a /device:TPU:1", "a:/device:TPU:1", "TPU 1", "a / TPU 1"),
        *("Chip 3: TPU core 1", "a / Chip 3: TPU core 1", "a Chip 3: TPU core 1", " chip 3: tpu core 1 "),
    ],
)
def test_every_name_of_a_core_leads_to_the_one_that_answers_have(tmp_path: Path, name: str) -> None:
    run = session_at(write_run(tmp_path, a=host_bytes(4, chips=2), b=host_bytes(4))).run
    assert narrowed(run, name, "a").core == "a:1"
    if name.startswith("a"):
        assert narrowed(run, name).core == "a:1"
    one = Session(run).of_core(name, "a")
    assert one.run.core == "a:1" and one.page(OPS).core_count == 1
    assert [section.core for section in one.timeline().sections if section.kind == "core"] == ["a:1"]


def test_a_title_that_no_core_or_that_several_have(tmp_path: Path) -> None:
    run = session_at(write_run(tmp_path, a=host_bytes(2, chips=1), b=host_bytes(2, chips=1), c=host_bytes(1))).run
    for name, host, exit_code, words, hint in (
        ("Chip 3: TPU core 1", None, EXIT_USAGE, "has several cores Chip 3: TPU core 1", "a:1, b:1"),
        ("Chip 4: TPU core 0", "a", EXIT_NOT_FOUND, "has no core Chip 4: TPU core 0", "Chip 3: TPU core 1"),
        ("Chip 3: TPU core 0", "c", EXIT_NOT_FOUND, "has no core Chip 3: TPU core 0", "does not name the chips"),
        ("a / Chip 3: TPU core 0", "b", EXIT_USAGE, "is not a core of host b", "--core HOST:2"),
    ):
        with pytest.raises(ProfileError) as raised:
            narrowed(run, name, host)
        assert raised.value.exit_code == exit_code
        assert words in raised.value.sentence and hint in raised.value.hint


def test_a_file_that_is_cut_says_so_of_a_core_too(tmp_path: Path) -> None:
    data = host_bytes(3)
    whole = session_at(write_run(tmp_path, vm=data[: len(data) * 2 // 3]))
    assert any("cut off" in text for text in whole.of_core("0").page(OVERVIEW).warnings)


def test_a_host_of_a_pod_is_narrowed_alone(tmp_path: Path) -> None:
    whole = session_at(write_run(tmp_path, a=host_bytes(2, 1), b=host_bytes(2, 2)))
    one = whole.of_core("b:1")
    assert one.page(OVERVIEW).hosts == ("b:1",) and one.page(OVERVIEW).environment.host_count == 1
    parts = [whole.of_core(f"{host}:{core}").page(OPS).total_ps for host in "ab" for core in range(2)]
    assert sum(parts) == whole.page(OPS).total_ps
    assert [row.label for row in whole.page(HOSTS).cores] == ["a:0", "a:1", "b:0", "b:1"]
