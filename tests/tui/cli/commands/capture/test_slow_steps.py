"""The flight recorder over a made-up program and a made-up clock: what it tells, keeps and outlives."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.build import tpu_plane, write_run
from tests.support.made.pages import training_overview
from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.capture.errors import failure
from tpuprof.parsers.capture.files import RunFolder
from tpuprof.parsers.capture.model import CaptureResult, HostCapture
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.tui.cli.commands.capture.watch.command import line_of
from tpuprof.tui.cli.commands.capture.watch.judged import Event, Look, Usual, judge
from tpuprof.tui.cli.commands.capture.watch.kept import KeptRuns
from tpuprof.tui.cli.commands.capture.watch.slow_steps import Clock, Plan, SlowSteps

MS = 10**9
BIG = 1 << 30


def written(logdir: str, number: int, data: bytes) -> CaptureResult:
    """A run of a log folder, ``run_001`` for 1, with the profile of one host."""
    run = RunFolder(logdir, f"run_{number:03}")
    run.prepare()
    file = run.write(["worker-0"], [data])
    return CaptureResult(str(run.path), (HostCapture("a:1", file, 2.0, None),), 2.0)


def profile(steps_ms: Sequence[int], cores: int = 2, late: int | None = None, length_ms: int = 0) -> bytes:
    """Steps of some lengths; a core may be late: it computes all of each step, and the others half of the shortest."""
    space, least = XSpace(hostnames=[b"worker-0"]), min(steps_ms, default=0)
    for core in range(cores):
        at, ops, steps = 0, [], []
        for number, step in enumerate(steps_ms):
            busy = step if core == late else least // 2
            ops.append(("fusion.1", "loop fusion", at * MS, busy * MS))
            steps.append((str(number), at * MS, (at + step) * MS))
            at += step
        if not steps_ms:
            ops.append(("fusion.1", "loop fusion", 0, length_ms * MS))
        tpu_plane(space, core, ops, steps=steps)
    return space.SerializeToString()


class Passing(Clock):
    """Time that passes by pausing alone."""

    def __init__(self, length_seconds: float | None = None) -> None:
        self.time, self.pauses = 1_800_000_000.0, list[float]()
        super().__init__(length_seconds)

    def passed(self) -> float:
        return self.time

    def pause(self, seconds: float) -> None:
        if self._end is not None:
            seconds = min(seconds, self._end - self.time)
        self.pauses.append(seconds)
        self.time += seconds


class Program:
    """Looks at a program: a profile each, or why there is none; then the user ends it."""

    def __init__(self, logdir: Path, *looks: bytes | str) -> None:
        self.logdir, self.looks = logdir, list(looks)
        self.made, self.traced_ms = 0, list[int]()

    def look(self, folder: str, duration_ms: int) -> CaptureResult:
        self.traced_ms.append(duration_ms)
        if not self.looks:
            raise Cancelled
        look = self.looks.pop(0)
        if isinstance(look, str):
            raise failure(look, "Nothing came.")
        self.made += 1
        return written(folder, self.made, look)

    @property
    def left(self) -> list[str]:
        folder = self.logdir / "plugins" / "profile"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


class Watched:
    """Slow steps with what was told and said of them, and how it paused."""

    def __init__(
        self, program: Program, space: int = BIG, length: float | None = None, once: bool = False, rests: float = 0.0
    ) -> None:
        self.told: list[tuple[Event, str | None]] = []
        self.said: list[str] = []
        self.clock = Passing(length)
        kept = KeptRuns(str(program.logdir), space)
        plan = Plan(1.2, 2000, 30.0, once, rests)
        tell = lambda event, path: self.told.append((event, path))  # noqa: E731
        self.slow = SlowSteps(program.look, plan, kept, self.clock, tell, self.said.append)

    def run(self) -> Watched:
        self.slow.watch()
        return self


STEADY = profile([100] * 6)
SLOW = profile([100, 100, 180, 100, 100, 100], late=1)


def test_the_look_with_a_slow_step_is_told_and_kept(tmp_path: Path) -> None:
    program = Program(tmp_path, STEADY, SLOW, STEADY)
    watched = Watched(program).run()
    ((event, path),) = watched.told
    assert (event.kind, event.step, event.slow_steps, event.steps) == ("slow step", "2", 1, 6)
    assert event.step_ps == 180 * MS and event.usual_ps == 100 * MS and not event.lasts
    assert (event.host, event.core) == ("worker-0", "worker-0:1") and event.why and event.worth_ps
    assert path is not None and Path(path).name == "run_002" and program.left == ["run_002"]
    assert not watched.said and watched.clock.pauses == [30.0] * 3


def test_a_line_is_json_with_a_reason_for_each_null(tmp_path: Path) -> None:
    ((event, path),) = Watched(Program(tmp_path, STEADY, SLOW)).run().told
    body = line_of(event, path, 1_800_000_000.0)
    assert body["time"] == "2027-01-15T08:00:00Z" and body["times"] == pytest.approx(1.8) and body["profile"] == path
    assert {key for key, value in body.items() if value is None} == set(event.unknown)


def test_steps_of_one_look_alone_are_held_against_each_other(tmp_path: Path) -> None:
    assert len(Watched(Program(tmp_path, SLOW)).run().told) == 1
    assert not Watched(Program(tmp_path / "few", profile([100, 180]))).run().told


def test_a_lasting_change_is_told_once(tmp_path: Path) -> None:
    slower = profile([150] * 6)
    watched = Watched(Program(tmp_path, STEADY, slower, slower, slower)).run()
    ((first, _),) = watched.told
    assert first.lasts and first.slow_steps == 6 and first.host is None and "too" in first.unknown["host"]


def test_a_stall_says_why_the_cost_of_its_reason_is_unknown() -> None:
    page, usual = training_overview(), Usual()
    usual.add([100.0 * MS] * 6)
    reason = replace(page.findings[0], worth_ps=None)
    environment = replace(page.environment, profile_duration_ps=900 * MS)
    page = replace(page, findings=(reason,), steps=(), environment=environment)
    event = judge(Look(page, None), usual, 1.2)
    assert event is not None and (event.why, event.worth_ps) == (reason.title, None)
    assert event.unknown["worth_ms"] == reason.basis and "why" not in event.unknown


def test_a_stall_is_told_once_until_steps_end_again(tmp_path: Path) -> None:
    nothing = profile([], length_ms=900)
    program = Program(tmp_path, STEADY, nothing, nothing, STEADY, nothing)
    told = Watched(program).run().told
    assert [event.kind for event, _ in told] == ["stall", "stall over", "stall"]
    over, path = told[1]
    assert over.step_ps == pytest.approx(30_900 * MS), "from the begin of the first look without a step to the last one"
    assert {key for key, value in line_of(over, path, 0.0).items() if value is None} == set(over.unknown)
    assert told[0][0].step_ps == 900 * MS and told[0][0].step is None and told[0][0].unknown["step"]
    assert program.left == ["run_002", "run_005"]
    short = Program(tmp_path / "short", STEADY, profile([], length_ms=250))
    assert not Watched(short).run().told, "a step may be under way"


def test_looks_too_short_for_a_step_are_said_once(tmp_path: Path) -> None:
    nothing = profile([], length_ms=2000)
    watched = Watched(Program(tmp_path, nothing, nothing)).run()
    assert not watched.told and len([said for said in watched.said if "--duration makes looks longer" in said]) == 1


def test_a_program_of_which_nothing_ran_stalls(tmp_path: Path) -> None:
    told = Watched(Program(tmp_path, STEADY, "empty_trace", "empty_trace")).run().told
    assert [(event.kind, event.why, path) for event, path in told] == [("stall", "nothing ran", None)]
    assert not Watched(Program(tmp_path / "new", "empty_trace")).run().told, "nobody knows how long steps take"


def test_it_waits_longer_and_longer_for_a_program_and_begins_anew(tmp_path: Path) -> None:
    program = Program(tmp_path, *["no_server"] * 8, STEADY, *["connection_lost"] * 3, "empty_trace", profile([300] * 6))
    watched = Watched(program).run()
    assert watched.clock.pauses[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert watched.clock.pauses[8:] == [30, 1, 2, 4, 30, 30]
    assert not watched.told, "another program may have longer steps"
    assert watched.said == ["Nothing came. Trying again until it is back.", "The program is back."] * 2


def test_another_profile_of_the_program_is_waited_for(tmp_path: Path) -> None:
    program = Program(tmp_path, STEADY, *["another_session"] * 3, SLOW)
    watched = Watched(program).run()
    assert watched.clock.pauses == [30.0] * 5 and len(watched.told) == 1, "the median is kept"
    assert [said for said in watched.said if "Waiting" in said] == ["Nothing came. Waiting: "]


def test_short_captures_rest_longer_after_a_long_one(tmp_path: Path) -> None:
    watched = Watched(Program(tmp_path, STEADY), rests=19.0)
    assert watched.run().clock.pauses == [38.0], "the look took 2 s"


def test_looks_at_long_steps_are_longer(tmp_path: Path) -> None:
    program = Program(tmp_path, profile([900] * 6), STEADY)
    Watched(program).run()
    assert program.traced_ms[:2] == [2000, 3600], "four steps of 900 ms"


def test_what_will_not_pass_ends_it(tmp_path: Path) -> None:
    program = Program(tmp_path, STEADY, "unwritable", STEADY)
    with pytest.raises(ProfileError):
        Watched(program).run()
    assert program.made == 1


def test_it_ends_after_its_time(tmp_path: Path) -> None:
    program = Program(tmp_path, *[STEADY] * 100)
    watched = Watched(program, length=100.0).run()
    assert program.made == 4 and sum(watched.clock.pauses) == 100.0


def test_once_is_one_look(tmp_path: Path) -> None:
    program = Program(tmp_path, SLOW, STEADY)
    watched = Watched(program, once=True).run()
    assert program.made == 1 and watched.slow.events == 1 and not watched.clock.pauses
    with pytest.raises(ProfileError):
        Watched(Program(tmp_path / "down", "no_server"), once=True).run()


# --- the space


def test_profiles_are_kept_while_the_folder_has_room_and_again_once_it_has(tmp_path: Path) -> None:
    write_run(tmp_path, "mine", **{"worker-0": b"x" * 10_000})
    program = Program(tmp_path, STEADY, SLOW, STEADY, SLOW, STEADY, SLOW)
    watched = Watched(program, space=10_000 + len(SLOW) + 100)

    def pause(seconds: float) -> None:
        if len(watched.told) == 2 and program.left == ["mine", "run_002"]:
            shutil.rmtree(tmp_path / "plugins" / "profile" / "run_002")

    watched.clock.pause = pause  # type: ignore[method-assign]
    watched.run()
    assert [path and Path(path).name for _, path in watched.told] == ["run_002", None, "run_006"]
    assert program.left == ["mine", "run_006"]
    event, _ = watched.told[1]
    body, why = line_of(event, None, 0.0), event.unknown
    assert {key for key, value in body.items() if value is None} == set(why)
    assert (
        body["step"] == "2" and f"{tmp_path} holds 0.01 MB, and --disk-limit is 0.01 MB; remove runs" in why["profile"]
    )


def test_a_folder_of_many_files_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpuprof.tui.cli.commands.capture.watch.kept._MOST_FILES", 2)
    kept = KeptRuns(str(tmp_path), BIG)
    for name in "abc":
        assert not kept.why_full()
        (tmp_path / name).touch()
    assert "more than 2 files" in kept.why_full()


def test_a_slow_step_is_told_where_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(RunFolder, "copy", lambda run, *_: run.write(["a"], (refuse() for _ in range(1))))
    program = Program(tmp_path, STEADY, SLOW)
    ((event, path),) = Watched(program).run().told
    assert path is None and not program.left
    assert event.unknown["profile"].startswith("The disk is full") and "--output DIR" in event.unknown["profile"]


@pytest.mark.parametrize("looks", [(STEADY,), (STEADY, SLOW), (b"not a profile",), ("unwritable",)])
def test_nothing_of_a_look_stays_in_the_temporary_folder(
    looks: tuple[bytes | str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with contextlib.suppress(ProfileError):
        Watched(Program(tmp_path / "logs", *looks)).run()
    assert not list((tmp_path / "temporary").iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(ProfileError) as error:
        Watched(Program(tmp_path / "logs", STEADY)).run()
    assert "a temporary folder" in error.value.sentence and "TMPDIR" in error.value.hint
