"""The flight recorder over a made-up program and a made-up clock: what it tells, keeps, removes and outlives."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.support.build import tpu_plane, write_run
from tests.support.made.pages import training_overview
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, Cancelled, ProfileError
from tpuprof.parsers.capture import written as written_module
from tpuprof.parsers.capture.errors import failure
from tpuprof.parsers.capture.files import RunFolder
from tpuprof.parsers.capture.model import CaptureResult, HostCapture
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.tui.cli.commands.capture.watch.command import line_of
from tpuprof.tui.cli.commands.capture.watch.judged import Event, Look, Usual, none_since
from tpuprof.tui.cli.commands.capture.watch.kept import LISTS, KeptRuns
from tpuprof.tui.cli.commands.capture.watch.slow_steps import Clock, Plan, Servers, SlowSteps

MS = 10**9
BIG = 1 << 30


def written(logdir: Path, number: int, host: str, data: bytes) -> CaptureResult:
    """A run of a log folder, ``run_001`` for 1, with the profile of one host."""
    run = RunFolder(str(logdir), 0)
    run.name = f"run_{number:03}"
    run.prepare()
    file, name = run.write([host], [data])
    return CaptureResult(str(run.path), (HostCapture("a:1", file, name, 2.0, None),), 2000, 2.0)


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

    def now(self) -> float:
        return self.time

    def passed(self) -> float:
        return self.time

    def pause(self, seconds: float) -> None:
        if self._end is not None:
            seconds = min(seconds, self._end - self.time)
        self.pauses.append(seconds)
        self.time += seconds


class Program(Servers):
    """Looks at a program: a profile each, or why there is none; then the user ends it."""

    def __init__(self, logdir: Path, *looks: bytes | str, keeps: bool = False) -> None:
        self.logdir, self.looks, self.keeps = logdir, list(looks), keeps
        self.begun = self.ended = self.made = 0

    def begin(self) -> str:
        if self.looks and self.looks[0] == "down":
            self.looks.pop(0)
            raise failure("no_server", "No profiler server listens there.")
        self.begun += 1
        return "short captures"

    def look(self, usual_ps: float | None) -> CaptureResult:
        if not self.looks:
            raise Cancelled
        look = self.looks.pop(0)
        if isinstance(look, str):
            raise failure(look, "Nothing came.")
        self.made += 1
        return written(self.logdir, self.made, "worker-0", look)

    def look_ps(self, usual_ps: float | None) -> float:
        return 2000.0 * MS

    def end(self) -> None:
        self.ended += 1

    @property
    def left(self) -> list[str]:
        folder = self.logdir / "plugins" / "profile"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


class Watched:
    """Slow steps with what was told and said of them, and how it paused."""

    def __init__(self, program: Program, space: int = BIG, length: float | None = None, once: bool = False) -> None:
        self.told: list[tuple[Event, str | None]] = []
        self.said: list[str] = []
        self.clock = Passing(length)
        kept = KeptRuns(str(program.logdir), space)
        plan = Plan(1.2, 30.0, once, "watching 1 server")
        tell = lambda event, path, _: self.told.append((event, path))  # noqa: E731
        self.slow = SlowSteps(program, plan, kept, self.clock, tell, self.said.append)

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
    assert program.ended == 1 and watched.said == ["watching 1 server; looking every 30 s at short captures"]
    assert watched.clock.pauses == [30.0] * 3


def test_a_line_is_json_with_a_reason_for_each_null(tmp_path: Path) -> None:
    ((event, path),) = Watched(Program(tmp_path, STEADY, SLOW)).run().told
    body, why = line_of(event, path, 1_800_000_000.0)
    assert body["time"] == "2027-01-15T08:00:00Z" and body["times"] == pytest.approx(1.8) and body["profile"] == path
    assert {key for key, value in body.items() if value is None} == set(why)
    body, why = line_of(event, None, 0.0)
    assert body["profile"] is None and why["profile"]


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
    event = none_since(Look(replace(page, findings=(reason,)), None), 900.0 * MS, usual, 1.2)
    assert event is not None and (event.why, event.worth_ps) == (reason.title, None)
    assert event.unknown["worth_ms"] == reason.basis and "why" not in event.unknown


def test_a_stall_is_told_once_until_steps_end_again(tmp_path: Path) -> None:
    nothing = profile([], length_ms=900)
    program = Program(tmp_path, STEADY, nothing, nothing, STEADY, nothing)
    told = Watched(program).run().told
    assert [event.kind for event, _ in told] == ["stall", "stall over", "stall"]
    over, path = told[1]
    assert over.step_ps == pytest.approx(30_900 * MS), "from the begin of the first look without a step to the last one"
    body, why = line_of(over, path, 0.0)
    assert {key for key, value in body.items() if value is None} == set(why)
    assert told[0][0].step_ps == 900 * MS and told[0][0].step is None and told[0][0].unknown["step"]
    assert program.left == ["run_002", "run_005"]
    short = Program(tmp_path / "short", STEADY, profile([], length_ms=250))
    assert not Watched(short).run().told, "a step may be under way"


def test_servers_that_keep_their_last_steps_stall_where_these_stay_the_same(tmp_path: Path) -> None:
    """A snapshot has the steps before the stall, so each look has steps."""
    later = profile([100, 101, 100, 102, 100, 99])
    program = Program(tmp_path, STEADY, STEADY, STEADY, later, keeps=True)
    told = Watched(program).run().told
    assert [(event.kind, event.step_ps) for event, _ in told] == [("stall", 30_000 * MS), ("stall over", 60_000 * MS)]
    captured = Watched(Program(tmp_path / "captures", STEADY, STEADY)).run()
    assert not captured.told, "short captures of a program may look alike"


def test_looks_too_short_for_a_step_are_said_once(tmp_path: Path) -> None:
    nothing = profile([], length_ms=2000)
    watched = Watched(Program(tmp_path, nothing, nothing)).run()
    assert not watched.told and len([said for said in watched.said if "--ms makes looks longer" in said]) == 1


def test_a_program_of_which_nothing_ran_stalls(tmp_path: Path) -> None:
    told = Watched(Program(tmp_path, STEADY, "empty_trace", "empty_trace")).run().told
    assert [(event.kind, event.why, path) for event, path in told] == [("stall", "nothing ran", None)]
    assert not Watched(Program(tmp_path / "new", "empty_trace")).run().told, "nobody knows how long steps take"


def test_it_waits_longer_and_longer_for_a_program_and_begins_anew(tmp_path: Path) -> None:
    down = ["down"] * 8
    program = Program(tmp_path, *down, STEADY, "connection_lost", *["down"] * 2, profile([300] * 6))
    watched = Watched(program).run()
    assert watched.clock.pauses[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert watched.clock.pauses[8:] == [30, 1, 2, 4, 30]
    assert not watched.told, "another program may have longer steps"
    assert watched.said == [
        "No profiler server listens there. Trying again until it is back.",
        "back again, looking every 30 s at short captures",
        "Nothing came. Trying again until it is back.",
        "back again, looking every 30 s at short captures",
    ]


def test_servers_that_forgot_are_asked_again_to_keep_their_last_seconds(tmp_path: Path) -> None:
    program = Program(tmp_path, STEADY, "nothing_kept", STEADY, keeps=True)
    assert not Watched(program).run().told and program.begun == 2
    forgets = Program(tmp_path / "again", "nothing_kept", "nothing_kept", keeps=True)
    assert 0 not in Watched(forgets).run().clock.pauses, "and not without a pause"


def test_another_profile_of_the_program_is_waited_for(tmp_path: Path) -> None:
    program = Program(tmp_path, STEADY, *["another_session"] * 3, SLOW)
    watched = Watched(program).run()
    assert watched.clock.pauses == [30.0] * 5 and program.begun == 1 and len(watched.told) == 1, "the median is kept"
    assert [said for said in watched.said if "Waiting" in said] == ["Nothing came. Waiting: "]


def test_short_captures_rest_longer_after_a_long_one(tmp_path: Path) -> None:
    watched = Watched(Program(tmp_path, STEADY))
    watched.slow._plan = replace(watched.slow._plan, rests=19.0)
    assert watched.run().clock.pauses == [38.0], "the look took 2 s"


def test_what_will_not_pass_ends_it_and_leaves_the_servers_as_they_were(tmp_path: Path) -> None:
    program = Program(tmp_path, STEADY, "unwritable", STEADY)
    with pytest.raises(ProfileError):
        Watched(program).run()
    assert program.ended == 1 and program.made == 1


def test_it_ends_after_its_time(tmp_path: Path) -> None:
    program = Program(tmp_path, *[STEADY] * 100)
    watched = Watched(program, length=100.0).run()
    assert program.made == 4 and sum(watched.clock.pauses) == 100.0


def test_once_is_one_look(tmp_path: Path) -> None:
    program = Program(tmp_path, SLOW, STEADY)
    watched = Watched(program, once=True).run()
    assert program.made == 1 and watched.slow.events == 1 and not watched.clock.pauses
    with pytest.raises(ProfileError):
        Watched(Program(tmp_path / "down", "down"), once=True).run()


# --- the space


def test_the_oldest_of_its_own_go_first(tmp_path: Path) -> None:
    size = len(SLOW)
    program = Program(tmp_path, STEADY, SLOW, STEADY, SLOW, STEADY, SLOW)
    write_run(tmp_path, "mine", **{"worker-0": b"x" * 10 * size})
    watched = Watched(program, space=3 * size + 100).run()
    assert len(watched.told) == 3 and program.left == ["mine", "run_004", "run_006"], "one more look fits beside them"


def test_a_later_watch_counts_and_removes_what_an_earlier_one_kept(tmp_path: Path) -> None:
    Watched(Program(tmp_path, STEADY, SLOW)).run()
    later = Program(tmp_path, STEADY, SLOW)
    later.made = 10
    Watched(later, space=2 * len(SLOW) + 100).run()
    assert later.left == ["run_012"]


def test_a_look_that_nobody_could_judge_any_more_is_known_to_the_next_watch(tmp_path: Path) -> None:
    add(KeptRuns(str(tmp_path), BIG), tmp_path, 1)  # and killed
    later = Program(tmp_path, STEADY, SLOW)
    later.made = 10
    Watched(later, space=2 * len(SLOW) + 100).run()
    assert later.left == ["run_012"]


ATTACKS = ("changed", "replaced", "linked", "run", "middle", "elsewhere", "ending", "long", "deep", "gone")


@pytest.mark.parametrize("how", ATTACKS)
def test_what_is_not_what_it_wrote_stays(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    own, away = tmp_path / "own", tmp_path / "away"
    Watched(Program(own, STEADY, SLOW)).run()
    file = own / "plugins" / "profile" / "run_002" / "worker-0.xplane.pb"
    (noted,) = (tmp_path / "state" / "tpuprof-tui" / LISTS).iterdir()
    if how == "changed":
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif how in ("replaced", "linked"):
        content = file.read_bytes()
        file.rename(away)  # the file lives on, so that no other one gets its inode
        file.write_bytes(content) if how == "replaced" else file.symlink_to(away)
    elif how in ("run", "middle"):
        moved = file.parent if how == "run" else own / "plugins"
        moved.rename(away)
        moved.symlink_to(away)
    elif how in ("elsewhere", "ending"):
        mine = tmp_path / "mine.xplane.pb" if how == "elsewhere" else file.with_name("mine.txt")
        path = os.path.relpath(file.rename(mine), file.parent)
        noted.write_text(noted.read_text().replace(json.dumps(file.name), json.dumps(path)))
        file = mine
    elif how == "long":
        os.truncate(noted, 10**9)
    elif how == "deep":
        noted.write_text("[" * 10**6)
    else:
        file.unlink()
    later = Program(own, STEADY, SLOW)
    later.made = 10
    Watched(later, space=2 * len(SLOW) + 100).run()
    assert file.exists() == (how != "gone")


@pytest.mark.parametrize("what", ["a file", "a link to a file", "the run", "the middle"])
def test_what_is_put_in_its_place_while_it_is_removed_stays(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, mine, away = tmp_path / "own", tmp_path / "mine", tmp_path / "away"
    Watched(Program(own, STEADY, SLOW)).run()
    file = own / "plugins" / "profile" / "run_002" / "worker-0.xplane.pb"
    others = mine / "run_002" / file.name
    others.parent.mkdir(parents=True)
    others.write_bytes(file.read_bytes())
    digest = written_module._digest

    def swapped(opened: BinaryIO) -> bytes:
        found = digest(opened)
        if not away.exists():
            place = file if "file" in what else file.parent if what == "the run" else file.parent.parent
            place.rename(away)
            if what == "a file":
                file.write_bytes(others.read_bytes())
            else:
                place.symlink_to({"a link to a file": others, "the run": others.parent}.get(what, mine))
        return found

    monkeypatch.setattr(written_module, "_digest", swapped)
    add(KeptRuns(str(own), 0), own, 9)
    assert away.exists() and others.read_bytes() == SLOW and (what != "a file" or file.read_bytes() == SLOW)


def add(kept: KeptRuns, logdir: Path, number: int) -> None:
    """Takes a look that shows a slow step."""
    result = written(logdir, number, "worker-0", SLOW)
    kept.add(result.run_path, result.files)


@pytest.mark.parametrize(("where", "mode"), [("tpuprof-tui", 0o757), (f"tpuprof-tui/{LISTS}", 0o720), ("alien", 0)])
def test_a_state_folder_that_others_may_write_to_is_refused(
    where: str, mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    KeptRuns(str(tmp_path / "own"), BIG)
    if mode:
        (tmp_path / "state" / where).chmod(mode)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.stat(tmp_path).st_uid + 1)
    with pytest.raises(ProfileError, match=r"belongs to another user|can be written to by others") as caught:
        KeptRuns(str(tmp_path / "own"), BIG)
    assert caught.value.exit_code == EXIT_CAPTURE_FAILED and "XDG_STATE_HOME" in caught.value.hint


def test_two_watches_of_one_folder_know_each_other(tmp_path: Path) -> None:
    first, second = KeptRuns(str(tmp_path), BIG), KeptRuns(str(tmp_path), BIG)
    add(first, tmp_path, 1)
    add(second, tmp_path, 2)
    assert first.keep() and second.keep()
    add(KeptRuns(str(tmp_path), 0), tmp_path, 9)
    assert [path.name for path in (tmp_path / "plugins" / "profile").iterdir()] == ["run_009"]


def test_a_profile_larger_than_the_space_is_told_and_not_kept(tmp_path: Path) -> None:
    program = Program(tmp_path, STEADY, SLOW)
    ((_, path),) = Watched(program, space=100).run().told
    assert path is None and not program.left


def test_what_others_put_into_a_look_stays(tmp_path: Path) -> None:
    program = Program(tmp_path, STEADY, STEADY)
    notes = tmp_path / "plugins" / "profile" / "run_001" / "notes.txt"
    watched = Watched(program)
    read = program.look

    def look(usual_ps: float | None) -> CaptureResult:
        result = read(usual_ps)
        if program.made == 1:
            notes.write_text("mine")
        return result

    program.look = look  # type: ignore[method-assign]
    watched.run()
    assert program.left == ["run_001"] and notes.read_text() == "mine"
    assert [path.name for path in notes.parent.iterdir()] == ["notes.txt"]
