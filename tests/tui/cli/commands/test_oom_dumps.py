"""The command ``oom`` with the compiler's dump beside a log, in any order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parsers.memory.oom.test_dumps import DATA, dump_of
from tests.tui.cli.calls import Call


def test_a_log_names_its_dump(tmp_path: Path, call: Call) -> None:
    dump_of("Adam_state_too_large", tmp_path / "dump")
    log = tmp_path / "train.log"
    text = (DATA / "Adam_state_too_large.txt").read_text()
    log.write_text(f"XLA_FLAGS=--xla_dump_to={tmp_path}/dump --xla_dump_hlo_as_proto\nstep 1\n{text}\n")
    shown = call("oom", log, "--md").out
    assert "All buffers" not in shown and "arguments" in shown and "train.log:3 + dump/module_0000" in shown


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_logs_and_dumps_in_any_order(tmp_path: Path, call: Call, order: tuple[int, int]) -> None:
    log = tmp_path / "train.log"
    log.write_bytes((DATA / "Adam_state_too_large.txt").read_bytes())
    paths = (log, dump_of("Adam_state_too_large", tmp_path / "dump"))
    assert "+ dump/module_0000" in call("oom", *(paths[place] for place in order), "--md").out


def test_a_dump_without_a_failure(tmp_path: Path, call: Call) -> None:
    folder = dump_of("decoder_scan", tmp_path / "dump", b"")
    next(folder.glob("*.oom_intermediate_module.hlo.pb")).unlink()
    assert "No compile of the dump" in call("oom", folder, code=3).err
