"""Variants that a compiler judges, with a shell script in the place of the compiler."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from tests.parsers.memory.oom.test_dumps import DATA, V6E
from tpuprof.parsers.pages.program import trials
from tpuprof.tui.cli.main import main

SCRIPT = """
folder=${XLA_FLAGS##*--xla_dump_to=}; folder=${folder%% *}; stem=$folder/module_0000.jit_step.cl_1
echo "$1 $LIBTPU_INIT_ARGS" >> HERE/ran
cp HERE/module.pb $stem.after_optimizations.hlo.pb; cp HERE/chip.pb $stem.target_arguments.pb
if [ $1 -le 11 ]; then cp HERE/module.pb $folder/part; mv $folder/part $stem.after_codegen.hlo.pb
elif [ $1 -le 90 ]; then touch $stem.oom_intermediate_module.hlo.pb
else echo no such batch; exit 1; fi
sleep 60 & echo $! >> HERE/running
sleep 60
"""


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(trials, "_QUIET_SECONDS", 0.0)
    monkeypatch.setattr(trials, "_POLL_SECONDS", 0.02)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--mine=1")
    (tmp_path / "module.pb").write_bytes(gzip.decompress((DATA / "decoder_scan.pb.gz").read_bytes()))
    (tmp_path / "chip.pb").write_bytes(V6E)
    (tmp_path / "script").write_text(SCRIPT.replace("HERE", str(tmp_path)))
    return f"sh {tmp_path}/script {{batch}}"


def is_running(pid: str) -> bool:
    """Whether a process is there, and is not one that ended and was not waited for."""
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_the_largest_value_is_found_and_nothing_stays(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {*os.listdir(tmp_path), "ran", "running"}
    assert main(["try", command, "--set", "batch=1..90", "--module", "jit_step", "--yes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["largest"] == "11"
    tried = {int(row["label"].partition("=")[2]): row for row in found["trials"]}
    assert {batch for batch, row in tried.items() if row["verdict"] == "fits"} == {
        batch for batch in tried if batch < 12
    }
    assert {1, 11, 12, 90} <= {*tried} and len(tried) < 12 and [*tried] == sorted(tried)
    assert (tried[12]["needed_bytes"], tried[12]["there_bytes"]) == (32_439_114_240, 33_550_237_696)
    assert (tried[1]["change"], tried[11]["change"]) == (None, "same program")
    assert {*os.listdir(tmp_path)} == before
    assert not [pid for pid in (tmp_path / "running").read_text().split() if is_running(pid)]


def test_flags_are_added_and_what_fails_says_why(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--set", "batch=1,99", "--flag", "xla_tpu_x=2,3", "--module", "jit_step", "--keep", str(tmp_path / "kept")]
    assert main(["try", command, *words, "--yes"]) == 4
    said = capsys.readouterr().out
    assert "fits 2 of 4 variants" in said and "no such batch" in said
    assert (tmp_path / "ran").read_text().splitlines() == [
        f"{batch} --mine=1 --xla_tpu_x={flag}" for batch in (1, 99) for flag in (2, 3)
    ]
    assert sorted(os.listdir(tmp_path / "kept")) == ["00", "01", "02", "03"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--set", "batch=1"], "no terminal to ask"),
        (["--set", "size=1", "--yes"], "{size} is not in the command"),
        (["--set", "batch=8..4", "--yes"], "A range is searched"),
        (["--set", "batch=1..4", "--flag", "a=1,2", "--yes"], "A range is searched"),
        (["--set", "batch", "--yes"], "is not NAME=VALUES"),
        (["--flag", f"a={','.join(map(str, range(65)))}", "--yes"], "65 variants"),
    ],
)
def test_nothing_runs_unasked(
    command: str, words: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["try", command, *words]) == 2
    assert why in capsys.readouterr().err and not (tmp_path / "ran").exists()
