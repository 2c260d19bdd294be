"""Block sizes over the runs of a folder: one table by device time, runs without a kernel in it, nothing read twice."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.support.documents import EVIL
from tests.support.files.kernels import US, KernelRun, with_kernels
from tests.support.reports import check_harmless, check_report
from tests.tui.cli.calls import Call
from tests.tui.pages.ops.kernels.test_tpu_kernels import PAGED, tuned
from tests.tui.report.test_reports import LOOK, run_of
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, EXIT_USAGE
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.pages.ops.kernels import over_runs as maker
from tpuprof.parsers.session.session import Session
from tpuprof.tui.pages.ops.kernels.over_runs import Sweep
from tpuprof.tui.pages.ops.kernels.report import REPORT
from tpuprof.tui.report.page import TextLook

GOLDEN = Path(__file__).parent / "golden"
SIZES = {"a": (128, 5 * US), "b": (512, 1 * US), "c": (256, 3 * US)}
NARROW = TextLook(80, False, False)


def add(folder: Path, name: str, *kernels: KernelRun) -> Path:
    run = folder / "plugins" / "profile" / name
    run.mkdir(parents=True)
    (run / "host0.xplane.pb").write_bytes(with_kernels(kernels))
    return run / "host0.xplane.pb"


def logdir(folder: Path) -> Path:
    """A run for each block size; one that is no profile, one with another kernel, and one without any."""
    for name, size in SIZES.items():
        add(folder, name, tuned(*size))
    add(folder, "damaged").write_bytes(b"no profile")
    add(folder, "other", PAGED)
    add(folder, "none")
    return folder


def swept(folder: Path) -> Sweep:
    runs = sorted(open_logdir(logdir(folder)).runs, key=lambda run: run.name)
    rows = maker.variants_of_runs(runs, "logs", None, Session)
    shown = [
        maker.RunVariant(row.run, row.variant, row.why_not.replace(str(folder), "logs"), row.is_unread) for row in rows
    ]
    return Sweep("logs", runs, tuple(shown))


def test_the_report_is_as_it_was_and_keeps_the_contract(tmp_path: Path) -> None:
    looks = {"": LOOK, "-80": NARROW}
    check_report(REPORT, "kernels", swept(tmp_path), run_of(()), GOLDEN / "kernels-over-runs", looks)


def test_hostile_names_do_no_harm(tmp_path: Path) -> None:
    add(tmp_path, "none")
    runs = open_logdir(tmp_path).runs
    check_harmless(REPORT, Sweep("logs", runs, (maker.RunVariant(EVIL, None, EVIL, is_unread=True),)), run_of(()))


def test_the_fastest_block_size_comes_first_whatever_run_it_is_in(tmp_path: Path, call: Call) -> None:
    found = call("report", "kernels", logdir(tmp_path), "--by", "blocks", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(found.out)))
    assert [(row["run"], row["place"], row["block_sizes"]) for row in rows[:3]] == [
        ("b", "1", "bm 512, bk 512"),
        ("c", "2", "bm 256, bk 512"),
        ("a", "3", "bm 128, bk 512"),
    ]
    assert rows[0]["why"] == "" and rows[1]["why"] == "waits for copies in 32.0 µs longer"
    times = [call.json("report", "kernels", tmp_path, "--run", name, "--format", "json")["calls"] for name in "bca"]
    assert [int(row["median_time_ps"]) for row in rows[:3]] == [calls[0]["median_time_ps"] for calls in times]


def test_a_run_that_is_not_compared_is_a_row_with_its_reason(tmp_path: Path, call: Call) -> None:
    document = call.json("report", "kernels", logdir(tmp_path), "--by", "blocks", "--format", "json")
    why = {row["run"]: row["why"] for row in document["variants_of_runs"] if row["place"] is None}
    assert "is not a profile" in why.pop("damaged")
    assert why == {"other": maker.NOT_COMPARED, "none": "no custom call of a TPU that is a kernel ran in this profile"}
    assert [text.partition(":")[0] for text in document["warnings"]] == ["damaged"]
    assert document["compared_runs"] == 6


def test_where_no_run_can_be_read_the_code_says_so(tmp_path: Path, call: Call) -> None:
    for name in "ab":
        add(tmp_path, name).write_bytes(b"no profile")
    found = call("report", "kernels", tmp_path, "--by", "blocks", "--format", "csv", code=EXIT_UNREADABLE)
    assert len(found.out.splitlines()) == 3


def test_a_named_run_is_compared_in_itself(tmp_path: Path, call: Call) -> None:
    add(tmp_path, "a", tuned(128, 5 * US), tuned(256, 3 * US))
    add(tmp_path, "b", tuned(512, 1 * US))
    found = call("report", "kernels", tmp_path, "--by", "blocks", "--run", "a", "--format", "csv").out
    assert found.startswith("place,") and len(found.splitlines()) == 3
    assert len(call("report", "kernels", tmp_path, "--by", "blocks", "--format", "csv").out.splitlines()) == 4


def test_one_kernel_of_all_runs(tmp_path: Path, call: Call) -> None:
    add(tmp_path, "a", tuned(128, 5 * US), PAGED)
    add(tmp_path, "b", tuned(512, 1 * US), PAGED)
    document = call.json("report", "kernels", tmp_path, "--by", "blocks", "--op", "mm", "--format", "json")
    assert [(row["run"], row["kernel"]) for row in document["variants_of_runs"]] == [("b", "mm"), ("a", "mm")]
    refused = call("report", "kernels", tmp_path, "--by", "blocks", "--op", "gmm", code=EXIT_NOT_FOUND)
    assert "No kernel gmm" in refused.err


@pytest.mark.parametrize("option", [["--host", "host0"], ["--core", "0"], ["--dump", "dump"]])
def test_what_is_of_one_run_needs_its_name(option: list[str], tmp_path: Path, call: Call) -> None:
    for name in "ab":
        add(tmp_path, name, tuned(*SIZES[name]))
    error = call("report", "kernels", tmp_path, "--by", "blocks", *option, code=EXIT_USAGE).err
    assert f"{option[0]} is for one" in error and "--run" in error


def test_the_second_look_reads_no_profile(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = tmp_path / "logs"
    for name in "ab":
        add(logs, name, tuned(*SIZES[name]))
    monkeypatch.setattr("tpuprof.parsers.hosts.cache.HostCache.is_settled", lambda *_: True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked: list[str] = []
    made = maker.compared_kernels

    def noted(session: Session) -> maker.KernelsOfRun:
        asked.append(session.run.name)
        return made(session)

    monkeypatch.setattr(maker, "compared_kernels", noted)
    words = ("report", "kernels", logs, "--by", "blocks", "--format", "json")
    first = call(*words).out
    assert sorted(asked) == ["a", "b"] and call(*words).out == first and len(asked) == 2
    add(logs, "c", tuned(*SIZES["c"]))
    assert call(*words).out != first and asked[2:] == ["c"]
