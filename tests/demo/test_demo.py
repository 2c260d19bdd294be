"""The demo profile is what its script makes, small, of any size and number of cores, and names no path."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from tests.demo.make_profile import DEMO_PATH, chunks, compose, parse_size, sized, write_profile
from tests.demo.profile.schedule import Template
from tests.demo.profile.timeline import DemoSpec, programs
from tpuprof.parsers.formats.proto.xplane_pb2 import XLine, XPlane, XSpace

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def demo() -> XSpace:
    return XSpace.FromString(gzip.decompress(DEMO_PATH.read_bytes()))


@pytest.fixture(scope="module")
def plans() -> tuple[Template, ...]:
    return programs()


def line_of(plane: XPlane, name: str) -> XLine:
    (found,) = (line for line in plane.lines if line.name == name.encode())
    return found


def cores(space: XSpace) -> list[XPlane]:
    return [plane for plane in space.planes if plane.name.startswith(b"/device:TPU:")]


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


def test_no_path_of_the_machine_that_made_it_is_inside(demo: XSpace) -> None:
    data = demo.SerializeToString()
    for forbidden in (b"/work", b"/root", b"/home", b"/tmp", b"site-packages", b"libtpu"):
        assert forbidden not in data


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
