"""`report kernels --dump`: the schedules of a compiler's dump beside the runs of a profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parsers.formats.mosaic.compiled import archive
from tests.parsers.pages.ops.kernels.test_compiled import profile
from tests.support.build import write_run
from tests.support.files.wire import field
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, EXIT_USAGE
from tpuprof.tui.demo import demo_path

SCHEDULE = archive.stored("v6e-matmul.llo_module.pb").replace(field(10, b"jit_matmul"), field(10, b"jit_step"))
"""The schedule of the kernel, of the program that the profile ran."""


@pytest.fixture
def run(tmp_path: Path) -> str:
    """A profile with a compiled kernel, and no schedule of it."""
    write_run(tmp_path / "run", host0=profile(with_schedule=False))
    return str(tmp_path / "run")


def dump(folder: Path, name: str, data: bytes) -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    return str(folder)


def test_a_dump_gives_the_schedule_that_the_profile_lacks(call: Call, run: str, tmp_path: Path) -> None:
    folder = dump(tmp_path / "dump", "20-mm.1-70-llo_module.pb", SCHEDULE)
    assert "436 bundles" not in call("report", "kernels", run).out
    assert "436 bundles" in call("report", "kernels", run, "--dump", folder).out


def test_a_schedule_of_another_program_is_not_taken(call: Call, run: str, tmp_path: Path) -> None:
    other = archive.stored("v6e-matmul.llo_module.pb")
    folder = dump(tmp_path / "dump", "30-mm.1-70-llo_module.pb", other)
    call("report", "kernels", run, "--dump", folder, code=EXIT_UNREADABLE)
    dump(tmp_path / "dump", "20-mm.1-70-llo_module.pb", SCHEDULE)
    assert "436 bundles" in call("report", "kernels", run, "--dump", folder).out


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("20-other.1-70-llo_module.pb", b"", "has no schedule of this run's kernels, only of other.1."),
        ("20-mm.1-70-llo_module.pb", b"\xff", "could not read the schedule in 20-mm.1-70-llo_module.pb: a message in"),
        ("notes.txt", b"", "holds no dump of a TPU compiler."),
    ],
)
def test_a_dump_of_something_else_is_refused(
    call: Call, run: str, tmp_path: Path, name: str, data: bytes, sentence: str
) -> None:
    found = call("report", "kernels", run, "--dump", dump(tmp_path / "dump", name, data), code=EXIT_UNREADABLE)
    assert sentence in found.err and not found.out


def test_a_dump_needs_a_folder_and_kernels(call: Call, run: str, tmp_path: Path) -> None:
    call("report", "kernels", run, "--dump", str(tmp_path / "nowhere"), code=EXIT_NOT_FOUND)
    found = call("report", "ops", str(demo_path()), "--dump", str(tmp_path), code=EXIT_USAGE)
    assert "--dump" in found.err
