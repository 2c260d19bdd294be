"""The comparison as text, JSON, CSV and Markdown, and the command that writes it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.parsers.session.diff.build import MS, US, Program, diff_of, layers, space_of, written
from tests.parsers.session.diff.test_compare import BASE, steady
from tests.parsers.session.diff.test_kinship import INFERENCE, TRAINING
from tests.support.documents import csv_rows, nulls, parsed
from tests.support.golden import check_golden
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_REGRESSION, EXIT_UNREADABLE, EXIT_USAGE
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.parsers.session.diff.model import Diff
from tpuprof.parsers.session.diff.regression import Regression, regression
from tpuprof.parsers.session.session import Session
from tpuprof.tui.pages import command_named
from tpuprof.tui.report.page import Format, TextLook

LOOK = TextLook(80, False, False)
GOLDEN = Path(__file__).parent / "golden"
SLOWER = replace(BASE, steps=steady(("fusion.1", 60 * MS), ("copy.2", 17 * MS), ("all-reduce.3", 20 * MS)))


def report(diff: Diff, form: Format, limit: int = 0, judged: Regression | None = None, look: TextLook = LOOK) -> str:
    page = command_named("diff").load_report()
    return page.writers[form](page.read(diff, judged), look, limit)


def test_golden_markdown(diff: Diff) -> None:
    check_golden(GOLDEN / "diff.md", report(diff, "md", judged=regression(diff, 0.05)))


def test_clones_are_one_row_of_people_and_a_list_of_machines(tmp_path: Path) -> None:
    found = diff_of(tmp_path, layers(60, MS), layers(60, 1010 * US))
    for form in ("text", "md"):
        (line,) = (line for line in report(found, form).splitlines() if "fusion." in line)
        assert "+600 µs" in line and "(60 ops)" in line
    document = parsed(report(found, "json"))
    assert [group["op_count"] for group in document["groups"]] == [60, 1]
    assert (document["groups"][0]["mark"], document["ops"][0]["mark"]) == ("more", "same")
    assert len(parsed(report(found, "json", 1))["groups"]) == 1
    assert len(csv_rows(report(found, "csv"))) == 61


def test_every_null_has_a_reason(diff: Diff, tmp_path: Path) -> None:
    bare = replace(BASE, marked=False, runs=False, steps=BASE.steps[:1])
    for found in (
        diff,
        diff_of(tmp_path / "bare", bare, SLOWER),
        diff_of(tmp_path / "none", replace(bare, steps=[]), BASE),
    ):
        document = parsed(report(found, "json"))
        unknown = document.pop("unknown")
        assert set(nulls(document)) <= unknown.keys()
        assert "the profile does not say" not in unknown.values()


# --- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    """Two runs in one logdir, the slower one newer."""
    for number, (name, program) in enumerate((("2026_11_19_10_00_00", BASE), ("2026_11_20_10_00_00", SLOWER))):
        folder = tmp_path / "logs" / "plugins" / "profile" / name
        folder.mkdir(parents=True)
        file = folder / "host0.xplane.pb"
        file.write_bytes(space_of(program).SerializeToString())
        os.utime(file, (1e9 + number, 1e9 + number))
    return tmp_path / "logs"


def test_patterns_and_lists_are_several_launches(tmp_path: Path, call: Call) -> None:
    for number in range(3):
        times = ("fusion.1", (60 + number) * MS), ("copy.2", 10 * MS), ("all-reduce.3", 20 * MS)
        written(tmp_path / "before", f"a{number}", replace(BASE, steps=steady(*times)))
        written(tmp_path / "after", f"b{number}", replace(BASE, steps=steady(*times, ("dot.4", 9 * MS))))
    before, after = (
        [str(tmp_path / side / f"{name}{at}") for at in range(3)] for side, name in (("before", "a"), ("after", "b"))
    )
    patterns = [f"{tmp_path}/before/*", f"{tmp_path}/after/*"]
    check = ("--fail-on-regression", "5%", "--json")
    shown = call("diff", *patterns, *check, code=EXIT_REGRESSION).out
    document = parsed(shown)
    found = document["launches"]
    assert [launch["name"] for launch in found["before"]] == ["a0", "a1", "a2"] and found["detect_fraction"] == 0.05
    assert found["mean_ms"] == {"before": 101, "after": 110} and found["spread_ms"] == {"before": 1, "after": 1}
    assert found["interval_ms"]["low"] == pytest.approx(18 - found["interval_ms"]["high"])
    assert set(nulls(document)) <= {*document["unknown"], "unknown"}
    assert call("diff", "--before", *before, "--after", *after, *check, code=EXIT_REGRESSION).out == shown
    words = call("diff", *patterns, "--format", "text", "--width", "200").out
    assert "SLOWER" in words and "Launches (3 before, 3 after) differ by 0.99% among themselves" in words
    assert "(median of 3) → b0" in call("diff", patterns[0], after[0], "--detect", "0.5%", "--md").out
    call.error(EXIT_NOT_FOUND, "diff", *patterns, "--before", "a9")
    assert call.error(EXIT_USAGE, "diff", patterns[0], before[1])[0] == "a1 is a launch of both A and B."
    assert call.error(EXIT_USAGE, "diff", "--json")[0] == "There is nothing to compare."


def test_ops_are_chosen(tmp_path: Path, call: Call) -> None:
    paths = written(tmp_path, "a", BASE), written(tmp_path, "b", SLOWER)
    every, options = (
        parsed(call("diff", *paths, "--json").out),
        ("--filter", "before_ms>=15", "--sort", "change_ms:asc"),
    )
    found = parsed(call("diff", *paths, *options, "--columns", "name,change_ms", "--json").out)
    expected = sorted((op["change_ms"], op["name"]) for op in every["ops"] if op["before_ms"] >= 15)
    assert [(row["change_ms"], row["name"]) for row in found["rows"]] == expected and expected
    assert found["all_rows"] == len(every["ops"]) > len(expected) and found["after"] == every["after"]
    assert len(csv_rows(call("diff", *paths, *options, "--format", "csv").out)) == len(expected)
    assert "no rows to choose" in call.error(EXIT_USAGE, "diff", *paths, *options, "--format", "junit")[0]


def test_two_paths(tmp_path: Path, call: Call) -> None:
    paths = written(tmp_path, "a", BASE), written(tmp_path, "b", SLOWER)
    shown = call("diff", *paths, "--json")
    assert parsed(shown.out)["steps"]["typical"]["change_ms"] == 7 and shown.err == ""
    shown = call("diff", *paths)
    assert "SLOWER +7.00 ms a step (+7.0%): copy.2 +7.00 ms" in shown.out
    assert "Printing the report instead of opening the screen." in shown.err


@pytest.mark.parametrize(
    "options",
    [("--before", "2026_11_19", "--after", "2026_11_20"), ("--before", "2026_11_19"), ("--after", "2026_11_20"), ()],
)
def test_two_runs_of_one_logdir(logdir: Path, options: tuple[str, ...], call: Call) -> None:
    out = call("diff", logdir, *options, "--md").out
    assert out.startswith("### Slower: 2026_11_19_10_00_00 → 2026_11_20_10_00_00")


def test_the_other_way_round(logdir: Path, call: Call) -> None:
    assert call("diff", logdir, logdir, "--after", "2026_11_19", "--md").out.startswith("### Faster: 2026_11_20")


def test_what_is_refused(logdir: Path, tmp_path: Path, call: Call) -> None:
    inside = logdir / "plugins" / "profile" / "2026_11_19_10_00_00" / "report.json"
    call.error(EXIT_USAGE, "diff", logdir, logdir)
    assert "holds no run older than" in call.error(EXIT_USAGE, "diff", logdir, "--after", "2026_11_19")[0]
    call.error(EXIT_NOT_FOUND, "diff", tmp_path / "nowhere", logdir)
    call.error(EXIT_NOT_FOUND, "diff", logdir, "--before", "x")
    call.error(EXIT_NOT_FOUND, "diff", logdir, "--host", "nobody", "--json")
    call.error(EXIT_USAGE, "diff", logdir, "--json", "--output", inside)


def test_fail_on_regression(tmp_path: Path, call: Call) -> None:
    a, b = written(tmp_path, "a", BASE), written(tmp_path, "b", SLOWER)
    shown = call("diff", a, b, "--fail-on-regression", "5%", "--json", code=EXIT_REGRESSION)
    assert parsed(shown.out)["regression"]["outcome"] == "slower"
    assert shown.err == "The typical step takes 7.0% longer than before, more than the 5% allowed.\n"
    assert call("diff", a, b, "--fail-on-regression", "8", "--md").err == ""
    assert call("diff", b, a, "--fail-on-regression", "0").err == ""


def test_a_check_that_cannot_tell_does_not_pass(tmp_path: Path, call: Call) -> None:
    bare = Program(steps=BASE.steps[:2], marked=False)
    a, b = written(tmp_path, "a", bare), written(tmp_path, "b", bare)
    shown = call("diff", a, b, "--fail-on-regression", "5", "--json", code=EXIT_UNREADABLE)
    assert "Step times are unknown" in shown.err
    assert parsed(shown.out)["regression"]["outcome"] == "unknown"  # the report is there all the same


def test_different_programs_do_not_pass_either(tmp_path: Path, call: Call) -> None:
    a, b = written(tmp_path, "a", TRAINING), written(tmp_path, "b", INFERENCE)
    for pair in ((a, b), (b, a)):
        shown = call("diff", *pair, "--fail-on-regression", "5", "--json", code=EXIT_UNREADABLE)
        assert "Nothing can be said about a regression: these are different programs: A ran " in shown.err
        assert shown.err.endswith("try: compare two runs of one program\n")
        document = parsed(shown.out)
        assert document["verdict"]["mark"] == document["regression"]["outcome"] == "unknown"
        assert document["verdict"]["different_programs"] is True
        assert document["steps"]["typical"]["before_ms"] and len(document["ops"]) == 5
    assert call("diff", a, b, "--md").out.startswith("### Different programs: a")
    words = call("diff", a, b, "--format", "text", "--width", "80").out
    assert " DIFFERENT " in words and "typical" in words and "SLOWER" not in words


def test_options_say_how_the_hosts_are_read(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[bool, int | None]] = []
    plain = Session.__init__

    def init(self: Session, *arguments: Any, cache: HostCache | None = None, jobs: int | None) -> None:
        asked.append((cache is not None, jobs))
        plain(self, *arguments)

    monkeypatch.setattr(Session, "__init__", init)
    a, b = written(tmp_path, "a", BASE), written(tmp_path, "b", SLOWER)
    call("diff", a, b, "--json", "--jobs", "3")
    call("diff", a, b, "--json", "--no-cache")
    assert asked == [(True, 3)] * 2 + [(False, None)] * 2


@pytest.mark.parametrize("text", ["5 percent", "-1", "", "nan", "%", "1e3", "٥"])
def test_percentages_that_are_none(text: str, call: Call) -> None:
    sentence, _ = call.error(EXIT_USAGE, "diff", "a", "b", "--fail-on-regression", text)
    assert "is not a percentage" in sentence or text.startswith("-")


def test_a_report_goes_to_a_file(logdir: Path, tmp_path: Path, call: Call) -> None:
    out = tmp_path / "diff.csv"
    assert call("diff", logdir, "--format", "csv", "--output", out).out == ""
    assert out.read_text().startswith("rank,mark,name,")
