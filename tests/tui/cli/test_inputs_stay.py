"""No report is written over a file that it is made from, whatever that file is and whichever name leads to it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.demo.profile.hlo_module import Module
from tests.parsers.memory.oom.read.texts import HBM
from tests.support.build import host_bytes
from tests.support.files.dumps import STEM, TEXTS, dumped
from tests.support.files.pprof import written
from tests.tui.cli.calls import RUN, Call, content
from tpuprof.parsers.base.errors import EXIT_USAGE

MEMBER = f"logs/plugins/profile/{RUN}/host0.xplane.pb"


def _profile(folder: Path) -> Path:
    file = folder / MEMBER
    file.parent.mkdir(parents=True)
    file.write_bytes(host_bytes())
    return file


def _archive(folder: Path, end: str) -> tuple[list[str], Path]:
    archive, profile = folder / f"logs{end}", _profile(folder / "packed")
    if end == ".zip":
        with zipfile.ZipFile(archive, "w") as packed:
            packed.write(profile, MEMBER)
    else:
        with tarfile.open(archive, "w:gz" if "gz" in end else "w") as tar:
            tar.add(profile, MEMBER)
    return ["report", "overview", str(archive)], archive


def _module(folder: Path) -> tuple[list[str], Path]:
    file = folder / "jit_eval_step.hlo_proto.pb"
    file.write_bytes(Module("jit_eval_step").proto_bytes)
    return ["report", "memory", str(file)], file


def _dump(folder: Path) -> tuple[list[str], Path]:
    dumped(folder / "dump", *TEXTS)
    return ["report", "memory", str(folder / "dump")], folder / "dump" / f"{STEM}-live-range.txt"


def _arrays(folder: Path) -> tuple[list[str], Path]:
    file = written(folder)
    return ["report", "live-arrays", str(file)], file


def _arrays_in_folder(folder: Path) -> tuple[list[str], Path]:
    return ["report", "live-arrays", str(folder)], written(folder)


def _arrays_of_an_error(folder: Path) -> tuple[list[str], Path]:
    log, arrays = folder / "train.log", written(folder, "arrays.bin")
    log.write_text("RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm.")
    return ["oom", str(log), "--arrays", str(arrays)], arrays


def _text_beside(folder: Path) -> tuple[list[str], Path]:
    dumped(folder / "dump", *TEXTS)
    return ["report", "memory", str(folder / "dump" / f"{STEM}-buffer-assignment.txt")], folder / "dump" / f"{STEM}.txt"


def _dump_of_an_error(folder: Path) -> tuple[list[str], Path]:
    dumped(folder / "dump", *TEXTS)
    (folder / "train.log").write_text(HBM.text())
    return ["oom", str(folder / "train.log"), str(folder / "dump")], folder / "dump" / f"{STEM}-buffer-assignment.txt"


def _dump_that_a_log_names(folder: Path) -> tuple[list[str], Path]:
    dumped(folder / "dump", *TEXTS)
    (folder / "train.log").write_text(f"XLA_FLAGS=--xla_dump_to={folder / 'dump'}\n{HBM.text()}")
    return ["oom", str(folder / "train.log")], folder / "dump" / f"{STEM}-live-range.txt"


MAKERS: dict[str, Callable[[Path], tuple[list[str], Path]]] = {
    **{end: partial(_archive, end=end) for end in (".tar", ".tgz", ".tar.gz", ".zip")},
    "module": _module,
    "dump": _dump,
    "arrays": _arrays,
    "arrays in a folder": _arrays_in_folder,
    "arrays of an error": _arrays_of_an_error,
    "text beside": _text_beside,
    "dump of an error": _dump_of_an_error,
    "dump that a log names": _dump_that_a_log_names,
}


@pytest.mark.parametrize("way", ["itself", "symbolic link", "hard link"])
@pytest.mark.parametrize("kind", MAKERS)
def test_an_input_stays_as_it_is(kind: str, way: str, tmp_path: Path, call: Call) -> None:
    words, read = MAKERS[kind](tmp_path)
    out = read if way == "itself" else tmp_path / "elsewhere" / "report.txt"
    out.parent.mkdir(exist_ok=True)
    if way == "symbolic link":
        out.symlink_to(read)
    elif way == "hard link":
        os.link(read, out)
    before = content(tmp_path)
    sentence, hint = call.error(EXIT_USAGE, *words, "--output", out)
    assert "never overwrites it" in sentence and hint.endswith("give the report another name")
    assert content(tmp_path) == before


def test_standard_input_stays_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(HBM.text())
    with log.open() as opened:
        command = [sys.executable, "-m", "tpuprof.tui", "oom", "-", "--output", str(log)]
        done = subprocess.run(command, stdin=opened, capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_USAGE and "never overwrites it" in done.stderr
    assert log.read_text() == HBM.text()


def test_what_keys_mean_is_not_written_over_a_profile(tmp_path: Path, call: Call) -> None:
    profile = _profile(tmp_path)
    sentence, _ = call.error(EXIT_USAGE, "report", "ops", "--describe", "--output", profile)
    assert "never overwrites it" in sentence and profile.read_bytes() == host_bytes()
