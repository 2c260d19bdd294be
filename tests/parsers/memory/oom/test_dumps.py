"""Errors with the compiler's dump beside them: real texts and modules, made by the bench of out-of-memory advice."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.support.imports import ROOT
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.memory.oom.dumps import read_dumps, with_dumps
from tpuprof.parsers.memory.oom.model import OomLog
from tpuprof.parsers.memory.oom.read.scan import joined, scan_log
from tpuprof.parsers.memory.oom.triage import triage_of_report

DATA = ROOT / "tests/bench/oom_proof/data"
V6E = bytes.fromhex("12040a00180118012000322508051801220764656661756c742a060802100218013206080110021801")


def dump_of(name: str, folder: Path, chip: bytes = V6E) -> Path:
    """A folder as the compiler leaves it where a compile fails."""
    folder.mkdir(exist_ok=True)
    stem = str(folder / "module_0000.jit_step.cl_1014260217")
    Path(f"{stem}.after_optimizations.hlo.pb").write_bytes(gzip.decompress((DATA / f"{name}.pb.gz").read_bytes()))
    Path(f"{stem}.oom_intermediate_module.hlo.pb").write_bytes(b"")
    Path(f"{stem}.target_arguments.pb").write_bytes(chip)
    return folder


def log_of(name: str) -> OomLog:
    with (DATA / f"{name}.txt").open("rb") as file:
        return scan_log(file)


def test_what_it_calls_temporaries_are_arguments_mostly(tmp_path: Path) -> None:
    log = with_dumps(log_of("Adam_state_too_large"), read_dumps([str(dump_of("Adam_state_too_large", tmp_path))]))
    (report,) = log.reports
    assert report.used_bytes == 63_048_914_976  # with gaps between buffers
    assert report.arguments_bytes is not None and report.hlo_temp_bytes is not None
    assert report.arguments_bytes > 0.6 * report.used_bytes > report.hlo_temp_bytes
    assert report.capacity_bytes == (32 * 1024 - 512 - 260) << 20  # of the chip that the dump names, not rounded
    triage = triage_of_report(report, "train.log")
    assert {part.name for part in triage.parts} >= {"arguments", "temporaries"}
    assert triage.need.is_whole and not triage.notes


def test_every_buffer_of_a_failed_compile(tmp_path: Path) -> None:
    folder = dump_of("decoder_scan", tmp_path)
    alone = with_dumps(OomLog((), (), 0, 0), read_dumps([str(folder)]))
    (report,) = alone.reports
    assert (report.program, report.at_line) == ("jit_step", 0) and "its compile failed" in report.sentence
    total = sum(buffer.size_bytes for buffer in report.buffers)
    assert total + (report.fragmentation_bytes or 0) == report.used_bytes
    marker = next(folder.glob("*.oom_intermediate_module.hlo.pb"))
    assert [dumped.memory.needed_bytes for dumped in read_dumps([str(marker)])] == [report.used_bytes]


def test_a_dump_of_another_program_is_named_and_left_out(tmp_path: Path) -> None:
    log = log_of("Adam_state_too_large")
    whole = with_dumps(log, read_dumps([str(dump_of("decoder_scan", tmp_path))]))
    assert whole.reports == log.reports
    (note,) = whole.notes
    assert "different programs" in note and "jit_step (30.21 GiB)" in note


def test_an_empty_folder_is_no_dump(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="holds no compiled module"):
        read_dumps([str(tmp_path)])


def test_the_logs_of_several_hosts_are_one_error() -> None:
    log = log_of("decoder_scan")
    both = joined(["host0.log", "host1.log"], [log, log])
    (report,) = both.reports
    assert (report.count, report.log) == (2, "host0.log")
    assert triage_of_report(report, "").where == "host0.log:1"
