"""The trend of a log folder: changes told from noise, a check for CI, every format, and nothing read twice."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.build import tpu_plane, write_run
from tests.support.documents import EVIL
from tests.support.reports import check_harmless, check_report
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_OK, EXIT_REGRESSION, EXIT_UNREADABLE, EXIT_USAGE
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.session import trend as maker
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.session.trend import KindWorth, TrendPoint, checked, judged
from tpuprof.tui.pages.runs.trend import REPORT, Trend, TrendRow
from tpuprof.tui.report.page import TextLook

GOLDEN = Path(__file__).parent / "golden"
US, MS = 1_000_000, 1_000_000_000


def point(
    step: float | None, error: float | None = 0.001, program: str | None = "jit_f", count: int = 20
) -> TrendPoint:
    """A run whose step takes so many milliseconds, with that relative error."""
    return TrendPoint(
        hosts=("host0",),
        program=program,
        group=None,
        step_ps=None if step is None else step * MS,
        error_ps=None if step is None or error is None else error * step * MS,
        freedom=0 if step is None or error is None else count - 1,
        step_count=0 if step is None else count,
        mean_step_ps=None if step is None else 1.02 * step * MS,
        roof_fraction=0.5,
        collective_ps=3.0 * MS,
        idle_percent=4.0,
        memory_bytes=8 << 30,
        worths=(KindWorth("collective", 3.0 * MS), KindWorth("copy", 1.0 * MS)),
        why_no_step="" if step is not None else "the profile has no steps",
        mfu=None if step is None else 40.0 / step,
    )


def verdicts(*steps: float) -> list[str]:
    return [each.verdict for each in judged([point(step) for step in steps])]


def test_equal_runs_are_rarely_found_to_differ() -> None:
    rng = random.Random(7)
    false = 0
    for _ in range(200):
        found = judged([point(100 * (1 + rng.gauss(0, 0.004)), 0.002) for _ in range(12)])
        false += any(each.verdict in ("slower", "faster", "odd") for each in found)
    assert false <= 16, "a series of equal runs is found to change in at most 8 of 100"


def test_a_change_begins_a_level() -> None:
    found = judged([point(step) for step in (100, 100.2, 99.9, 100.1, 100, 107, 107.1, 106.9)])
    assert [each.verdict for each in found] == ["first", *["noise"] * 4, "slower", "noise", "noise"]
    assert [each.level for each in found] == [0, 0, 0, 0, 0, 1, 1, 1]
    change = found[5]
    assert change.before_ps == pytest.approx(100.04 * MS) and change.change == pytest.approx(0.0696, abs=1e-4)
    assert change.noise is not None and change.noise < 0.02


def test_a_single_run_that_differs_is_odd_and_the_level_goes_on() -> None:
    found = judged([point(step) for step in (100, 100.2, 99.9, 130, 100.1, 100)])
    assert [each.verdict for each in found] == ["first", "noise", "noise", "odd", "noise", "noise"]
    assert [each.level for each in found] == [0, 0, 0, None, 0, 0]
    assert verdicts(100, 100.2, 99.9, 130, 130.1, 100) == ["first", "noise", "noise", "slower", "noise", "faster"]


def test_another_program_and_runs_without_steps_are_not_compared() -> None:
    series = [point(100), None, point(None), point(50, program="jit_g"), point(50.05, program="jit_g"), point(100)]
    found = judged(series)
    other = "other program"
    assert [each.verdict for each in found] == ["first", "unknown", "unknown", other, "noise", other]
    assert judged([]) == ()
    assert [each.verdict for each in judged([point(100), point(120, error=None)])] == ["first", "unknown"]


@pytest.mark.parametrize(
    ("steps", "allowed", "outcome", "words"),
    [
        ((100, 100.1, 110), 0.05, "slower", "takes 9.9% longer than in the runs before, more than the 5% allowed."),
        ((100, 100.1, 110), 0.2, "passed", ""),
        ((100, 100.1, 90), 0.05, "passed", ""),
        ((100, 100.1, 110, 110.1), 0.05, "passed", ""),
        ((100,), 0.05, "unknown", "No run before the newest one has its program"),
        ((), 0.05, "unknown", "step time is unknown"),
        ((100, 100.1, 100.05), 0.001, "passed", "The noise ("),
    ],
)
def test_the_newest_run_is_checked(steps: Sequence[float], allowed: float, outcome: str, words: str) -> None:
    points = [point(step) for step in steps]
    found = checked(points, judged(points), allowed)
    assert found.outcome == outcome and words in found.sentence and bool(found.sentence) == bool(words)


@pytest.mark.parametrize("newest", [None, point(None), point(100, error=None)])
def test_a_newest_run_that_says_nothing_is_unknown(newest: TrendPoint | None) -> None:
    points = [point(100), point(100.1), newest]
    assert checked(points, judged(points), 0.05).outcome == "unknown"


# --- the report


def series(*points: TrendPoint | None, name: str = "2026_01_{:02d}_00_00_00") -> Trend:
    """Runs of a made-up folder, a day apart."""
    days = range(1, len(points) + 1)
    runs = [Run(name.format(day), f"/logs/{day}", (), (), 1_767_225_600 + day * 86_400) for day in days]
    problems = ["it is broken." if each is None else each.why_no_step for each in points]
    found = judged(points)
    return Trend("/logs", tuple(map(TrendRow, runs, points, found, problems)), checked(points, found, 0.05))


def test_every_format() -> None:
    page = series(*map(point, (100, 100.2, 99.9, 130, 100.1, 100)), None, point(None), point(112))
    run = Run("2026_01_09_00_00_00", "/logs/9", (), ())
    document = check_report(REPORT, "trend", page, run, GOLDEN / "trend", {"": TextLook(120, False, False)})
    assert [each["run"] for each in document["changes"]] == [run.name]
    assert document["regression"]["outcome"] == "slower"
    assert [row["verdict"] for row in document["runs"]][-3:] == ["unknown", "unknown", "slower"]
    assert document["runs"][0]["findings"][0] == {"kind": "collective", "worth_ms": 3.0}
    check_report(REPORT, "trend", series(), run, GOLDEN / "trend-empty", {"": TextLook(80, True, False)})


def test_hostile_names() -> None:
    hostile = replace(point(100), program=EVIL, worths=(KindWorth(EVIL, 1.0),), hosts=(EVIL,))
    page = series(hostile, replace(point(None), why_no_step=EVIL), name=EVIL)
    check_harmless(REPORT, page, Run(EVIL, EVIL, (), ()), TextLook(400, False, False))


# --- the command


def host(step: float, seed: int, steps: int = 12) -> bytes:
    """A core whose steps take so many microseconds, with a noise of 0.4 %."""
    rng, space, at = random.Random(seed), XSpace(), 0
    ops, marks = [], []
    for number in range(steps):
        length = int(step * US * (1 + rng.gauss(0, 0.004)))
        ops.append(("fusion.1", "convolution fusion", at, length))
        marks.append((str(number), at, at + length))
        at += length
    tpu_plane(space, 0, ops, steps=marks, modules=[("jit_f(7)", begin, end) for _, begin, end in marks])
    return space.SerializeToString()


def logdir(folder: Path, *steps: float) -> Path:
    """A log folder with a run a day, settled long ago."""
    for day, step in enumerate(steps, 1):
        write_run(folder, f"2026_01_{day:02d}_00_00_00", host0=host(step, day))
    return folder


def test_the_command_is_the_page(tmp_path: Path, call: Call) -> None:
    logs = logdir(tmp_path, 1000, 1001, 999, 1000, 1002, 1150)
    document = call.json("trend", logs, "--format", "json")
    assert document == call.json("report", "trend", logs, "--format", "json")
    assert [row["verdict"] for row in document["runs"]] == ["first", *["noise"] * 4, "slower"]
    assert document["runs"][0]["run"] == "2026_01_01_00_00_00", "the oldest first"
    overview = call.json("report", "overview", logs, "--run", "2026_01_06", "--format", "json")
    assert document["runs"][-1]["mean_step_time_ms"] == overview["performance"]["step_time_ms"]["average"]
    rows = call("trend", logs, "--filter", "verdict=slower", "--columns", "run,step_time_ms", "--format", "csv").out
    assert len(rows.splitlines()) == 2


@pytest.mark.parametrize(
    ("steps", "allowed", "code"),
    [
        ((1000, 1001, 1150), "5%", EXIT_REGRESSION),
        ((1000, 1001, 1150), "20", EXIT_OK),
        ((1000, 1150, 1001), "5%", EXIT_OK),
        ((1000,), "5%", EXIT_UNREADABLE),
    ],
)
def test_exit_codes_are_those_of_diff(
    tmp_path: Path, call: Call, steps: Sequence[float], allowed: str, code: int
) -> None:
    logs = logdir(tmp_path, *steps)
    out = call("trend", logs, "--fail-on-regression", allowed, "--format", "md", code=code).out
    assert ("## Notes" in out) == (code != EXIT_OK)
    if len(steps) > 1:
        assert call("diff", logs, "--fail-on-regression", allowed, "--md", code=code).out


def test_the_second_look_reads_no_profile(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = logdir(tmp_path / "logs", 1000, 1001)
    monkeypatch.setattr("tpuprof.parsers.hosts.cache.HostCache.is_settled", lambda *_: True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked: list[str] = []
    made = maker.point

    def noted(session: Session) -> TrendPoint:
        asked.append(session.run.name)
        return made(session)

    monkeypatch.setattr(maker, "point", noted)
    first = call("trend", logs, "--format", "json").out
    assert len(asked) == 2
    assert call("trend", logs, "--format", "json").out == first and len(asked) == 2
    changed = logs / "plugins" / "profile" / "2026_01_02_00_00_00" / "host0.xplane.pb"
    changed.write_bytes(host(1300, 5))
    os.utime(changed, (1, 1))
    assert call("trend", logs, "--format", "json").out != first and asked[2:] == ["2026_01_02_00_00_00"]
    assert call("trend", logs, "--no-cache", "--format", "json").out and len(asked) == 5


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["trend", "demo", "--run", "demo"], EXIT_USAGE, "The page trend covers all runs of a folder."),
        (["trend", "demo", "--core", "1"], EXIT_USAGE, "The page trend compares whole runs."),
        (["trend", "demo", "--fail-on-regression", "much"], EXIT_USAGE, "is not a percentage"),
        (["report", "ops", "demo", "--fail-on-regression", "5"], EXIT_USAGE, "is for the page trend, not ops."),
        (["trend", "/no/such/folder"], EXIT_NOT_FOUND, "does not exist"),
    ],
)
def test_what_it_does_not_take(call: Call, arguments: list[str], code: int, words: str) -> None:
    error = call(*arguments, code=code).err
    assert words in error and "\ntry: " in error
