"""Device memory profiles as what a path leads to."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.files.pprof import written
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.files.folder_search import sibling_files
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.session.live_arrays import leads_to_arrays, open_arrays, sibling_arrays
from tpuprof.tui.demo import demo_path


def logdir(folder: Path) -> Path:
    """A run; the answer is its folder."""
    run = folder / "plugins" / "profile" / "2026_11_22_10_00_00"
    run.mkdir(parents=True)
    shutil.copy(demo_path(), run)
    return run


def test_a_file_of_any_name_and_a_folder_of_such_files(tmp_path: Path) -> None:
    old, new = written(tmp_path, "a.prof"), written(tmp_path, "b.pprof")
    os.utime(old, (1, 1))
    other = written(tmp_path, "heap_of_step_7")
    assert leads_to_arrays(str(other)) == str(other) and leads_to_arrays(f"file://{old}") == f"file://{old}"
    assert leads_to_arrays(str(tmp_path)) == str(new)
    opened = open_arrays(str(tmp_path))
    assert opened.runs[0].path == str(new) and opened.searched == (f"device memory profile {new}; left out 1 other",)


def test_elsewhere(tmp_path: Path) -> None:
    run = logdir(tmp_path)
    (tmp_path / "empty").mkdir()
    written(tmp_path)
    paths = [str(tmp_path), str(run), demo_path(), str(tmp_path / "empty"), "/nowhere", "", "gs://bucket/run"]
    assert [leads_to_arrays(path) for path in paths] == [None] * len(paths)
    assert leads_to_arrays("gs://bucket/memory.prof") == "gs://bucket/memory.prof"


def test_beside_a_run_and_in_its_logdir(tmp_path: Path) -> None:
    run = logdir(tmp_path)
    assert sibling_arrays(str(run)) == []
    above, beside = written(tmp_path), written(run)
    (run / "notes.prof").write_text("{}")  # of another profiler
    assert sibling_arrays(str(run)) == [str(beside), str(above)]
    assert sibling_arrays(str(next(run.glob("*.xplane.pb.gz")))) == [str(beside), str(above)]
    assert open_arrays(str(run)).runs[0].path == str(beside)
    assert [(files.kind, files.count) for files in sibling_files(str(run))] == [
        ("files named like device memory profiles", 2)
    ]


def test_what_says_that_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"no device memory profile \(\*\.prof\) in ") as caught:
        open_arrays(str(tmp_path))
    assert caught.value.exit_code == 3 and "save_device_memory_profile" in caught.value.hint
    with pytest.raises(ProfileError, match="beside"):
        open_arrays(demo_path())
    (tmp_path / "sub").mkdir()
    path = written(tmp_path)
    with pytest.raises(ProfileError) as caught:
        open_logdir(str(tmp_path))
    assert caught.value.hint == f"{path} is a device memory profile by its name: name it to open it"
