"""The command ``oom`` without a screen: what it answers, what it refuses, and what it does not import."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.parsers.memory.oom.test_dumps import DATA, dump_of
from tests.support.made.oom import MESSAGE
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_OK, EXIT_UNREADABLE, EXIT_USAGE, ProfileError
from tpuprof.parsers.memory.oom import files
from tpuprof.tui.cli.arguments.app import oom_parser
from tpuprof.tui.cli.commands.oom import command
from tpuprof.tui.cli.commands.oom.command import run_oom
from tpuprof.tui.cli.main import main


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text(MESSAGE)
    return path


def refused(*arguments: str) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        run_oom(oom_parser().parse_args(arguments))
    return caught.value


def test_text_where_there_is_no_terminal(log: Path, call: Call) -> None:
    shown = call("oom", log)
    assert "train.log:2: out of memory, compile time" in shown.out and "OVER BY 12.06 GiB (+77%)" in shown.out
    assert "Printing the report instead of opening the screen." in shown.err


def test_standard_input(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MESSAGE.encode())))
    assert call("oom", "-", "--md").out.startswith("### Out of memory: `jit_train_step`, compile time")


def test_a_pipe_that_nothing_comes_from_is_named(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a file that would wait for more, as /proc/kmsg, is read as far as it goes."""
    monkeypatch.setattr(command, "WORD_SECONDS", 0.05)
    os.mkfifo(pipe := tmp_path / "pipe")
    told = threading.Event()
    monkeypatch.setattr(f"{command.__name__}.note", said := Mock(side_effect=lambda _: told.set()))
    writer = threading.Thread(target=lambda: told.wait(60) and pipe.write_text(MESSAGE))
    writer.start()
    shown = call("oom", pipe, "--md")
    writer.join()
    assert "Nothing has come from pipe for 0.05 s" in said.call_args[0][0] and shown.out.startswith("### Out of memory")
    pipe.with_name("log").write_text(MESSAGE)
    with files.opened_log(str(pipe.with_name("log"))) as file:
        assert not os.get_blocking(file.fileno())


def test_a_report_goes_to_a_file(log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    assert main(["oom", str(log), "--output", str(folder / "oom.txt"), "--width", "80", "--ascii"]) == EXIT_OK
    text = (folder / "oom.txt").read_text()
    assert text.isascii() and max(map(len, text.splitlines())) <= 80
    assert refused(str(log), "--output", str(log)).exit_code == EXIT_USAGE
    assert log.read_text() == MESSAGE


def test_what_is_no_log(log: Path, tmp_path: Path) -> None:
    assert refused(str(tmp_path / "none.log")).exit_code == EXIT_NOT_FOUND
    assert refused(str(log / "below")).exit_code == EXIT_NOT_FOUND
    assert refused("a\0b").exit_code == EXIT_UNREADABLE


def test_a_compressed_log_is_read_as_it_is(tmp_path: Path, call: Call) -> None:
    (tmp_path / "log.gz").write_bytes(gzip.compress(MESSAGE.encode()))
    assert "OVER BY 12.06 GiB" in call("oom", tmp_path / "log.gz", "--md").out


def test_a_log_without_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(b"\0\xff\n" * 5)
    error = refused(str(path), "--json")
    assert error.exit_code == EXIT_NOT_FOUND and "(5 lines read)" in error.sentence
    assert error.hint == f"tpuprof-tui {path}"
    path.write_bytes(b"")
    assert "(0 lines read)" in refused(str(path)).sentence


@pytest.mark.parametrize("arguments", [["oom", "x", "--json", "--md"], ["oom", "x", "--format", "text", "--json"]])
def test_usage(arguments: list[str], call: Call) -> None:
    assert "try: tpuprof-tui oom --help" in call(*arguments, code=EXIT_USAGE).err


# --- with the compiler's dump beside a log


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
