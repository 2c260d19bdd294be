"""A bare path opens as what it is: a dump, a log with an error, an archive; or is named with what would help."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

from tests.parsers.pages.program.test_fingerprint import PROGRAM
from tests.support.build import host_bytes
from tests.support.files.dumps import DUMP, STEM, TEXTS, dumped
from tests.support.files.pprof import pprof, training
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_OK, EXIT_UNREADABLE
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.cli import main as cli

ERROR = "Ran out of memory in memory space hbm. Used 20.00G of 15.75G hbm. Exceeded hbm capacity by 4.25G.\n"


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_dump_of_texts_opens_its_memory(tmp_path: Path, opened: list[tuple[str, AppOptions]]) -> None:
    folder = dumped(tmp_path / "dump", *TEXTS)
    (tmp_path / "step.txt").write_text(PROGRAM)  # as `compiled.as_text()` prints it
    (tmp_path / "cut.hlo.gz").write_bytes(gzip.compress(PROGRAM.encode())[:-9])
    alone = dumped(tmp_path / "alone", "-buffer-assignment.txt")
    files = folder / f"{STEM}-buffer-assignment.txt", DUMP, tmp_path / "step.txt", tmp_path / "cut.hlo.gz", alone
    for path in (folder, *files):
        assert cli.main([str(path), "--device", "v6e"]) == EXIT_OK
    assert {(options.tab, options.only_hlo, options.device) for _, options in opened} == {(4, True, "TPU v6e")}
    assert [options.shows_program for _, options in opened] == [True] * 5 + [False], "one has buffers alone"
    assert opened[0][0] == str(folder)


def test_a_logdir_and_an_archive_of_one_open_as_ever(tmp_path: Path, opened: list[tuple[str, AppOptions]]) -> None:
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("run/host0.xplane.pb", host_bytes())
    (tmp_path / "host0.xplane.pb").write_bytes(host_bytes())
    for path in (tmp_path, tmp_path / "logs.zip", tmp_path / "host0.xplane.pb"):
        assert cli.main([str(path)]) == EXIT_OK
    assert [(options.tab, options.only_hlo) for _, options in opened] == [(0, False)] * 3


def test_without_a_terminal_the_page_of_what_it_is_is_printed(call: Call, tmp_path: Path) -> None:
    folder = dumped(tmp_path / "dump", *TEXTS)
    (tmp_path / "train.log").write_text(ERROR)
    with zipfile.ZipFile(tmp_path / "arrays.zip", "w") as archive:
        archive.writestr("memory.prof", pprof(training()))
    (tmp_path / "step.txt").write_text(PROGRAM)
    heads = {
        "dump": "─ Memory of dump",
        "step.txt": "─ Program jit_f",
        "train.log": "─ train.log:1: out of memory",
        "arrays.zip": "─ Live arrays",
    }
    for name, head in heads.items():
        assert call(tmp_path / name).out.startswith(head), name
    assert "jit_train_step" in call("doctor", folder).out
    assert "1 compiled module, 1 with its buffers" in call("doctor", folder).out
    report = call("report", "memory", folder, "--format", "json").out
    assert '"peak_bytes": {"HBM": 278604}' in report
    assert "built from texts of the dump" in report


def test_other_pages_of_a_dump_say_which_page_it_has(call: Call, tmp_path: Path) -> None:
    folder = dumped(tmp_path / "dump", *TEXTS)
    for path in (folder, DUMP):
        sentence, hint = call.error(EXIT_NOT_FOUND, "report", "overview", path)
        assert sentence.endswith("not a profile: they have the pages memory, graph and program, not overview.")
        assert hint.startswith("try: tpuprof-tui report memory ")


def test_what_nothing_reads_is_named(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "trace.pftrace"
    path.write_bytes(b"\x0a\x02\x50\x01")
    for words in ([str(path)], ["report", "overview", str(path)]):
        sentence, hint = call.error(EXIT_UNREADABLE, *words)
        assert sentence.endswith("trace.pftrace is a trace in Perfetto's binary format, not a profile.")
        assert "ui.perfetto.dev" in hint
    (tmp_path / "train.log").write_text("step 1\n")
    sentence, _ = call.error(EXIT_NOT_FOUND, tmp_path / "train.log")
    assert "holds no out-of-memory error" in sentence
    (tmp_path / "train.txt").write_text("step 1\n")
    for words, name in ((["report", "ops"], "train.log"), (["memory"], "train.txt")):
        sentence, hint = call.error(EXIT_NOT_FOUND, *words, tmp_path / name)
        assert f"{name} is a text, not a profile." in sentence and "tpuprof-tui oom" in hint


def test_the_command_memory_prints_the_largest_batch(call: Call) -> None:
    asked, report = call("memory", "demo", "--fit"), call("report", "memory", "demo", "--fit")
    assert asked.out == report.out
    assert "up to 12 fits" in asked.out and "Buffers at the peak" not in asked.out
