"""Device memory profiles on the command line: opened by their bare names, and beside a log."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.support.files.pprof import BATCH, Made, pprof, written
from tests.support.made.oom import MESSAGE
from tests.tui.cli.calls import Call, write_logdir
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_OK, EXIT_UNREADABLE, EXIT_USAGE
from tpuprof.parsers.memory.live_arrays import LiveArrays
from tpuprof.tui.cli import common
from tpuprof.tui.cli.main import main

LOAD = (
    "RESOURCE_EXHAUSTED: Error loading program 'jit_step': Attempting to reserve 13.50G at the bottom of memory. That "
    "was not possible. There are 7.48G free, 0B reserved, and 7.48G reservable.\n"
)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the screen would show, where there is one."""
    shown: list[object] = []
    monkeypatch.setattr(common, "why_no_screen", lambda: "")

    def show(_: object, page: str, content: object) -> int:
        assert page == "live-arrays"
        shown.append(content)
        return EXIT_OK

    monkeypatch.setattr(common, "show", show)
    return shown


@pytest.mark.parametrize("words", [(), ("memory",)], ids=["bare", "memory"])
def test_the_bare_name_opens_the_screen(words: tuple[str, ...], tmp_path: Path, opened: list[object]) -> None:
    path = written(tmp_path)
    for name in (str(path), str(tmp_path)):
        assert main([*words, name]) == EXIT_OK
    assert [type(content) for content in opened] == [LiveArrays] * 2


def test_the_page_is_printed_where_there_is_no_screen(tmp_path: Path, call: Call) -> None:
    shown = call(str(written(tmp_path)), "--ascii")
    assert "train.py:91 init_state" in shown.out and "Printing the live arrays instead" in shown.err
    assert shown.out.isascii()


def test_what_does_not_go_together(tmp_path: Path, call: Call) -> None:
    path, logdir = str(written(tmp_path, "a.prof")), str(write_logdir(tmp_path / "logs"))
    other = str(written(tmp_path, "b.prof"))
    (tmp_path / "folder").mkdir()
    written(tmp_path / "folder")
    for words in ([path], [path, other], [logdir, path], [str(tmp_path / "folder")]):
        for command in ("diff", "verify"):
            sentence, hint = call.error(EXIT_NOT_FOUND, command, *words)
            assert "is a device memory profile" in sentence and "pprof -diff_base before.prof after.prof" in hint
    _, hint = call.error(EXIT_NOT_FOUND, "report", "overview", path)
    assert f"report live-arrays {path}" in hint
    call.error(EXIT_NOT_FOUND, "report", "live-arrays", logdir)
    call.error(EXIT_USAGE, "report", "live-arrays", path, "--host", "a")
    call.error(EXIT_USAGE, "report", "memory", logdir, "--by", "stack")


def test_a_profile_of_time_is_named_as_such(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "cpu.prof"
    path.write_bytes(gzip.compress(pprof([Made((1, 2), BATCH)], (("samples", "count"), ("cpu", "nanoseconds")))))
    sentence, _ = call.error(EXIT_UNREADABLE, "report", "live-arrays", path)
    assert sentence.startswith("cpu.prof is a pprof profile of time on a processor")


def test_doctor_says_what_it_is_and_what_lies_beside(
    tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path)
    shown = call("doctor", path).out
    assert "a device memory profile, memory.prof" in shown and "TPU_1(process=0,(1,0,0,0)): 5.53 GiB" in shown
    folder = next((write_logdir(tmp_path / "logs") / "plugins" / "profile").iterdir())
    written(folder)
    assert main(["doctor", str(folder)]) == EXIT_OK
    assert "files named like device memory profiles: 1, such as memory.prof" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize("order", ["log first", "log last", "option"])
def test_a_log_beside_it_says_who_holds_the_memory(order: str, tmp_path: Path, call: Call) -> None:
    log, path = tmp_path / "train.log", str(written(tmp_path, step=3))
    log.write_text(LOAD)
    words = {"log first": [str(log), path], "log last": [path, str(log)], "option": [str(log), "--arrays", path]}[order]
    shown = " ".join(call("oom", *words).out.split())
    assert (
        "5.54 GiB live on TPU_0 in 79 buffers. The error at train.log:1: 13.50 GiB asked for, 7.48 GiB free." in shown
    )
    assert "3.00 GiB 54% train.py:91 init_state (48)" in shown
    live = call.json("oom", *words, "--json", "--limit", "2")["live_arrays"]
    assert (live["device"], live["count"], len(live["groups"])) == ("TPU_0(process=0,(0,0,0,0))", 79, 2)
    assert "### Who holds it: memory.prof" in call("oom", *words, "--md").out


def test_an_error_of_the_compiler_counts_the_program_alone(tmp_path: Path, call: Call) -> None:
    log = tmp_path / "train.log"
    log.write_text(MESSAGE)
    assert "The compiler counts only this program" in " ".join(call("oom", log, str(written(tmp_path))).out.split())
    words = ["oom", str(log), str(written(tmp_path)), "--arrays", str(written(tmp_path))]
    call.error(EXIT_USAGE, *words)
    _, hint = call.error(EXIT_NOT_FOUND, "oom", str(written(tmp_path)))
    assert hint.endswith("memory.prof")
