"""The demo profile is what it says: a compiler's ops within a device's peaks, simulated times, one slow step."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from tests.demo.make_profile import DEMO_PATH, WARNING, chunks, compose, parse_size, sized, write_profile
from tests.demo.profile import hlo_cost
from tests.demo.profile.hlo_module import Module
from tests.demo.profile.schedule import Template
from tests.demo.profile.timeline import DemoSpec, programs
from tpuprof.parsers.formats.proto.xplane_pb2 import XLine, XPlane, XSpace, XStat

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def demo() -> XSpace:
    return XSpace.FromString(gzip.decompress(DEMO_PATH.read_bytes()))


@pytest.fixture(scope="module")
def plans() -> tuple[Template, ...]:
    return programs()


def plane_of(space: XSpace, name: str) -> XPlane:
    (found,) = (plane for plane in space.planes if plane.name == name.encode())
    return found


def line_of(plane: XPlane, name: str) -> XLine:
    (found,) = (line for line in plane.lines if line.name == name.encode())
    return found


def cores(space: XSpace) -> list[XPlane]:
    return [plane for plane in space.planes if plane.name.startswith(b"/device:TPU:")]


def stats_of(plane: XPlane, stats: object) -> dict[str, object]:
    out: dict[str, object] = {}
    for stat in stats:  # type: ignore[attr-defined]
        assert isinstance(stat, XStat)
        kind = stat.WhichOneof("value")
        value = getattr(stat, kind) if kind else None
        if kind == "ref_value":
            value = plane.stat_metadata[stat.ref_value].name.decode()
        out[plane.stat_metadata[stat.metadata_id].name.decode()] = value
    return out


# ---- the file -----------------------------------------------------------------------------------------------------


def test_the_committed_demo_is_small_enough_to_ship() -> None:
    assert DEMO_PATH.stat().st_size <= MEGABYTE


def test_the_committed_demo_is_what_the_script_makes(tmp_path: Path) -> None:
    # Compressed bytes depend on the zlib at hand; what is inside does not.
    (made,) = write_profile(tmp_path / "demo.xplane.pb")
    assert made.read_bytes() == gzip.decompress(DEMO_PATH.read_bytes())


def test_two_runs_make_the_same_compressed_bytes_without_a_time_in_them(tmp_path: Path) -> None:
    spec = DemoSpec(steps=2)
    first, second = (write_profile(tmp_path / f"{name}.pb.gz", spec)[0].read_bytes() for name in "ab")
    assert first == second
    assert first[4:8] == bytes(4)


def test_another_seed_makes_another_profile() -> None:
    assert compose(DemoSpec(steps=1)) != compose(DemoSpec(steps=1, seed=1))


def test_the_profile_says_that_its_times_are_simulated(demo: XSpace) -> None:
    assert list(demo.warnings) == [WARNING]
    assert list(demo.hostnames) == [b"demo-vm"]
    environment = plane_of(demo, "Task Environment")
    stats = stats_of(environment, environment.stats)
    assert stats["tpuprof_simulated"] == 1
    start, stop = stats["profile_start_time"], stats["profile_stop_time"]
    assert isinstance(start, int)
    assert isinstance(stop, int)
    assert 5e9 < stop - start < 7e9


def test_no_path_of_the_machine_that_made_it_is_inside(demo: XSpace) -> None:
    data = demo.SerializeToString()
    for forbidden in (b"/work", b"/root", b"/home", b"/tmp", b"site-packages", b"libtpu"):
        assert forbidden not in data


def test_every_reference_resolves(demo: XSpace) -> None:
    for plane in demo.planes:
        stats = list(plane.stats) + [stat for entry in plane.event_metadata.values() for stat in entry.stats]
        for line in plane.lines:
            for event in line.events:
                assert event.metadata_id in plane.event_metadata
                stats.extend(event.stats)
        for stat in stats:
            assert stat.metadata_id in plane.stat_metadata
            assert not stat.HasField("ref_value") or stat.ref_value in plane.stat_metadata
        for entry in plane.event_metadata.values():
            assert set(entry.child_id) <= set(plane.event_metadata)


# ---- ops ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["jit_train_step", "jit_eval_step"])
def test_flops_agree_with_the_compilers_cost_analysis(name: str) -> None:
    module = Module(name)
    # Its figure counts a loop's body once, and so does `flops` of a `while`.
    total = sum(hlo_cost.flops(module, instruction) for instruction in module.entry.instructions)
    assert total == pytest.approx(module.facts["flops"], rel=0.02)


# ---- larger profiles ----------------------------------------------------------------------------------------------


def test_a_size_is_met_within_a_tenth(plans: tuple[Template, ...]) -> None:
    spec = sized(DemoSpec(size_bytes=parse_size("4MB")), plans)
    assert sum(map(len, chunks(spec, plans))) == pytest.approx(4e6, rel=0.1)


def test_a_size_below_one_step_still_gives_one(plans: tuple[Template, ...]) -> None:
    assert sized(DemoSpec(size_bytes=10), plans).steps == 1


@pytest.mark.parametrize(("text", "size"), [("50MB", 50_000_000), ("1gb", 10**9), ("2.5 MB", 2_500_000)])
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("core_count", [1, 2, 8])
def test_other_core_counts_work(core_count: int) -> None:
    space = compose(DemoSpec(steps=2, cores=core_count, slow_step=None))
    assert len(cores(space)) == core_count
    counts = {len(line_of(plane, "XLA Ops").events) for plane in cores(space)}
    assert len(counts) == 1


def test_hosts_get_a_file_each(tmp_path: Path) -> None:
    spec = replace(DemoSpec(), steps=1, hosts=2)
    paths = write_profile(tmp_path / "pod.xplane.pb", spec)
    assert [path.name for path in paths] == ["pod-0.xplane.pb", "pod-1.xplane.pb"]
    spaces = [XSpace.FromString(path.read_bytes()) for path in paths]
    assert [space.hostnames[0] for space in spaces] == [b"demo-vm-0", b"demo-vm-1"]
