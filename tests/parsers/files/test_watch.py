"""Tests of `parsers.files.watch`: a run is reported once it is finished, and nothing on a disk stops the watch."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.files.layouts import CONTENT, run_folder
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, Cancelled, ProfileError
from tpuprof.parsers.files import watch
from tpuprof.parsers.files.logdir import Run, open_logdir
from tpuprof.parsers.files.watch import MOST_LISTED, PATIENCE, Changes, LogdirWatch, follow, run_state, wait_for_run

FIRST = "2026_11_20_18_04_33"
SECOND = "2026_11_20_19_00_00"


def started(root: Path) -> LogdirWatch:
    """A watch of a logdir with one run, which has looked once."""
    run_folder(root, FIRST)
    watched = LogdirWatch(open_logdir(str(root)))
    assert not watched.poll()
    return watched


def told(changes: Changes) -> dict[str, list[str]]:
    return {
        kind: [run.name for run in runs]
        for kind in ("new_runs", "changed_runs", "gone")
        if (runs := getattr(changes, kind))
    }


def polls(watched: LogdirWatch, count: int) -> list[dict[str, list[str]]]:
    return [told(watched.poll()) for _ in range(count)]


# --- runs that come


@pytest.mark.parametrize("levels", [0, 1, 2, 3])
def test_a_new_run_is_told_once_when_it_has_stayed_as_it_is(tmp_path: Path, levels: int) -> None:
    start = run_folder(tmp_path / "experiment", FIRST).parent
    for _ in range(levels):
        start = start.parent
    watched = LogdirWatch(open_logdir(str(start)))
    assert polls(watched, 2) == [{}, {}]
    run_folder(tmp_path / "experiment", SECOND, ["host0", "host1"])
    assert polls(watched, 3) == [{}, {"new_runs": [SECOND]}, {}]
    assert watched.logdir is not None and [run.name for run in watched.logdir.runs] == [SECOND, FIRST]


def test_a_growing_file_keeps_its_run_unsaid(tmp_path: Path) -> None:
    watched = started(tmp_path)
    path = run_folder(tmp_path, SECOND) / "host0.xplane.pb"
    for _ in range(4):
        assert not watched.poll()
        path.write_bytes(path.read_bytes() + CONTENT)
    assert watched.logdir is not None and len(watched.logdir.runs) == 1
    assert polls(watched, 3) == [{}, {"new_runs": [SECOND]}, {}]


def test_a_temporary_name_and_an_empty_file_are_waited_for(tmp_path: Path) -> None:
    watched = started(tmp_path)
    folder = run_folder(tmp_path, SECOND, [])
    folder.mkdir(parents=True)
    for name in (".host0.xplane.pb.a1b2.tmp", "host0.xplane.pb_.gstmp"):
        (folder / name).write_bytes(CONTENT)
        assert polls(watched, 3) == [{}, {}, {}]
        (folder / name).rename(folder / "host0.xplane.pb")
        assert polls(watched, 2)[1] == {"new_runs": [SECOND]} or name.endswith("gstmp")
    (folder / "host1.xplane.pb").write_bytes(b"")
    assert polls(watched, PATIENCE) == [{}] * PATIENCE
    (folder / "host1.xplane.pb").write_bytes(CONTENT)
    assert polls(watched, 2) == [{}, {"changed_runs": [SECOND]}]


def test_an_empty_file_that_stays_so_is_told_in_the_end(tmp_path: Path) -> None:
    """The writer fails past two gigabytes and leaves nothing."""
    watched = started(tmp_path)
    (run_folder(tmp_path, SECOND) / "host1.xplane.pb").write_bytes(b"")
    assert polls(watched, PATIENCE + 1) == [{}] * PATIENCE + [{"new_runs": [SECOND]}]
    assert watched.logdir is not None and [p.code for p in watched.logdir.runs[0].problems] == ["empty_file"]


def test_a_run_without_anything_readable_is_told_when_it_has_a_host(tmp_path: Path) -> None:
    watched = started(tmp_path)
    folder = run_folder(tmp_path, SECOND, [])
    folder.mkdir(parents=True)
    (folder / "host0.xplane.pb").write_bytes(b"")
    assert polls(watched, PATIENCE + 3) == [{}] * (PATIENCE + 3)
    (folder / "host0.xplane.pb").write_bytes(CONTENT)
    assert polls(watched, 3) == [{}, {"new_runs": [SECOND]}, {}]


def test_hosts_that_come_later_change_the_run(tmp_path: Path) -> None:
    watched = started(tmp_path)
    run_folder(tmp_path, FIRST, ["host1"])
    changes = [watched.poll() for _ in range(3)]
    assert [told(change) for change in changes] == [{}, {"changed_runs": [FIRST]}, {}]
    assert len(changes[1].changed_runs[0].hosts) == 2


def test_a_run_that_was_still_written_when_the_logdir_was_opened(tmp_path: Path) -> None:
    path = run_folder(tmp_path, FIRST) / "host0.xplane.pb"
    logdir = open_logdir(str(tmp_path))
    path.write_bytes(CONTENT * 2)
    assert polls(LogdirWatch(logdir), 3) == [{}, {"changed_runs": [FIRST]}, {}]


def test_a_run_that_came_before_the_first_look(tmp_path: Path) -> None:
    run_folder(tmp_path, FIRST)
    logdir = open_logdir(str(tmp_path))
    run_folder(tmp_path, SECOND)
    assert polls(LogdirWatch(logdir), 3) == [{}, {"new_runs": [SECOND]}, {}]


def test_other_logdirs_below_the_path(tmp_path: Path) -> None:
    """A folder that was there without runs, and one that is made."""
    (tmp_path / "waiting").mkdir()
    watched = started(tmp_path / "first")
    run_folder(tmp_path / "first", FIRST)
    watched = LogdirWatch(open_logdir(str(tmp_path)))
    assert not watched.poll()
    run_folder(tmp_path / "waiting", SECOND)
    run_folder(tmp_path / "made", FIRST)
    seen = polls(watched, 4)
    assert sorted(seen[1]["new_runs"]) == [SECOND, "made/" + FIRST] and seen[2:] == [{}, {}]


def test_nothing_is_there_yet(tmp_path: Path) -> None:
    watched = LogdirWatch(str(tmp_path / "logs"))
    assert polls(watched, 2) == [{}, {}] and watched.logdir is None
    (tmp_path / "something_else").mkdir()
    run_folder(tmp_path / "logs", FIRST)
    assert polls(watched, 3) == [{}, {"new_runs": [FIRST]}, {}]
    assert watched.logdir is not None


def test_a_glob_and_a_single_run(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, FIRST)
    glob = LogdirWatch(open_logdir(f"{tmp_path}/plugins/profile/2026*"))
    single = LogdirWatch(open_logdir(str(folder)))
    file = LogdirWatch(open_logdir(str(folder / "host0.xplane.pb")))
    assert [polls(one, 1) for one in (glob, single, file)] == [[{}]] * 3
    run_folder(tmp_path, SECOND)
    assert polls(glob, 2) == [{}, {"new_runs": [SECOND]}]
    assert polls(single, 2) == polls(file, 2) == [{}, {}]
    (folder / "host0.xplane.pb").write_bytes(CONTENT * 3)
    assert polls(single, 2) == polls(file, 2) == [{}, {"changed_runs": [FIRST]}]


# --- runs that go, and what is in the way


def test_a_run_that_goes_and_comes_back(tmp_path: Path) -> None:
    watched = started(tmp_path)
    folder = run_folder(tmp_path, SECOND)
    polls(watched, 2)
    shutil.rmtree(folder)
    assert polls(watched, 3) == [{}, {"gone": [SECOND]}, {}]
    run_folder(tmp_path, SECOND)
    assert polls(watched, 3) == [{}, {"new_runs": [SECOND]}, {}]


def test_everything_goes_and_comes_back(tmp_path: Path) -> None:
    watched = started(tmp_path / "logs")
    shutil.rmtree(tmp_path / "logs")
    assert polls(watched, 3) == [{}, {"gone": [FIRST]}, {}]
    run_folder(tmp_path / "logs", SECOND)
    assert polls(watched, 3) == [{}, {"new_runs": [SECOND]}, {}]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    watched = started(tmp_path)
    profile = tmp_path / "plugins" / "profile"
    profile.chmod(0)
    try:
        assert all(not kinds.get("new_runs") for kinds in polls(watched, 3))
    finally:
        profile.chmod(0o700)


@pytest.mark.parametrize("error", [PermissionError(13, "no"), FileNotFoundError(2, "gone"), OSError(5, "disk")])
def test_errors_of_the_disk_are_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    watched = started(tmp_path)

    def refuse(*_: object, **__: object) -> object:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(os, "scandir", refuse)
        broken.setattr(os, "stat", refuse)
        polls(watched, 4)
    run_folder(tmp_path, SECOND)
    assert "new_runs" in {kind for kinds in polls(watched, 4) for kind in kinds}


def test_links_are_followed_but_not_up(tmp_path: Path) -> None:
    watched = started(tmp_path / "logs")
    elsewhere = run_folder(tmp_path / "elsewhere", SECOND)
    profile = tmp_path / "logs" / "plugins" / "profile"
    (profile / "up").symlink_to(tmp_path / "logs")
    (profile / "dangling").symlink_to(tmp_path / "nowhere")
    (profile / "round").symlink_to("round")
    assert polls(watched, 3) == [{}] * 3
    (profile / SECOND).symlink_to(elsewhere)
    assert polls(watched, 3) == [{}, {"new_runs": [SECOND]}, {}]


def test_many_runs_are_looked_at_by_their_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in range(1, 29):
        run_folder(tmp_path, f"2026_10_{day:02}_00_00_00")
    watched = LogdirWatch(open_logdir(str(tmp_path)))
    polls(watched, 2)
    listed: list[str] = []
    state = run_state

    def counted(path: str) -> object:
        listed.append(path)
        return state(path)

    monkeypatch.setattr(watch, "run_state", counted)
    assert not watched.poll()
    assert len(listed) == MOST_LISTED
    run_folder(tmp_path, "2026_10_01_00_00_00", ["late"])
    assert polls(watched, 2)[1] == {"changed_runs": ["2026_10_01_00_00_00"]}


def test_quiet_folders_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their time of change is enough once it is so long ago that the next change has another."""
    for at in range(20):
        (tmp_path / f"folder{at}").mkdir()
    run_folder(tmp_path, FIRST)
    watched = LogdirWatch(open_logdir(str(tmp_path)), clock=lambda: time.time() + 60)
    watched.poll()
    listed: list[str] = []
    listing = watch._listed

    def counted(folder: str) -> object:
        listed.append(os.path.basename(folder))
        return listing(folder)

    monkeypatch.setattr(watch, "_listed", counted)
    assert not watched.poll() and listed == ["profile"]
    time.sleep(0.02)
    run_folder(tmp_path / "folder7", SECOND)
    assert polls(watched, 3) == [{}, {"new_runs": [SECOND]}, {}]
    assert {"folder7"} < set(listed) and "folder8" not in listed


def test_urls_are_not_watched() -> None:
    watched = LogdirWatch("gs://bucket/logs")
    assert not watched.poll() and watched.logdir is None


def test_following_tells_of_each_change_until_it_is_stopped(tmp_path: Path) -> None:
    watched = started(tmp_path)
    run_folder(tmp_path, SECOND)
    stopped = threading.Event()
    seen: list[Changes] = []

    def tell(changes: Changes) -> None:
        seen.append(changes)
        stopped.set()

    follow(watched, tell, stopped, 0.001)
    assert [told(changes) for changes in seen] == [{"new_runs": [SECOND]}]


# --- waiting for a run


class Hands:
    """Stands in for time: each sleep does the next thing."""

    def __init__(self, *acts: Callable[[], object]) -> None:
        self.acts = list(acts)
        self.now = 1_700_000_100.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.acts:
            self.acts.pop(0)()

    def wait(self, path: Path | str, after: float = 0.0, timeout: float | None = 60.0) -> Run:
        return wait_for_run(
            str(path), after, timeout, self.waits.append, interval=1.0, sleep=self.sleep, clock=lambda: self.now
        )


def test_the_newest_run_is_there_at_once(tmp_path: Path) -> None:
    run_folder(tmp_path, FIRST)
    hands = Hands()
    assert hands.wait(tmp_path).name == FIRST and hands.waits == []


def test_the_first_run_is_waited_for(tmp_path: Path) -> None:
    hands = Hands(lambda: None, lambda: run_folder(tmp_path / "logs", FIRST))
    assert hands.wait(tmp_path / "logs").name == FIRST
    assert hands.waits == [0.0, 1.0]


def test_the_next_run_is_waited_for_until_it_is_finished(tmp_path: Path) -> None:
    shown = open_logdir(str(run_folder(tmp_path, FIRST))).runs[0]
    path = tmp_path / "plugins" / "profile" / SECOND / "host0.xplane.pb"
    hands = Hands()

    def write(size: int) -> Callable[[], object]:
        def act() -> None:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(CONTENT * size)
            os.utime(path, (hands.now, hands.now))

        return act

    hands.acts = [write(0), write(1), write(2), lambda: None]
    found = hands.wait(tmp_path, shown.modified)
    assert found.name == SECOND and found.size_bytes == 2 * len(CONTENT)
    assert len(hands.waits) == 4


def test_waiting_ends(tmp_path: Path) -> None:
    run = open_logdir(str(run_folder(tmp_path, FIRST))).runs[0]
    with pytest.raises(ProfileError) as late:
        Hands().wait(tmp_path, run.modified, 5.0)
    assert late.value.code == "not_found" and late.value.exit_code == EXIT_NOT_FOUND
    with pytest.raises(Cancelled):
        wait_for_run(str(tmp_path / "never"), is_cancelled=lambda: True)
    for path in ("", "a\0b", "gopher://host/logs"):
        with pytest.raises(ProfileError):
            Hands().wait(path, timeout=None)


# --- whatever happens


acts = st.tuples(
    st.sampled_from(["write", "empty", "temporary", "finish", "remove", "remove run", "folder", "look", "look"]),
    st.sampled_from(["a/plugins/profile/r1", "a/plugins/profile/r2", "b/plugins/profile/r1", "loose", "deep/er/run"]),
    st.sampled_from(["host0", "host1"]),
    st.integers(1, 4),
)


def act(root: Path, kind: str, run: str, host: str, size: int) -> None:
    """Does one thing to a logdir; what cannot be done is left."""
    folder = root / run
    path = folder / f"{host}.xplane.pb"
    if kind in ("write", "empty", "temporary", "folder"):
        folder.mkdir(parents=True, exist_ok=True)
    if kind in ("write", "empty"):
        path.write_bytes(CONTENT * size if kind == "write" else b"")
    elif kind == "temporary":
        (folder / f".{host}.xplane.pb.tmp").write_bytes(CONTENT * size)
    elif kind == "finish" and (folder / f".{host}.xplane.pb.tmp").exists():
        (folder / f".{host}.xplane.pb.tmp").rename(path)
    elif kind == "remove":
        path.unlink(missing_ok=True)
    elif kind == "remove run":
        shutil.rmtree(folder, ignore_errors=True)


@settings(max_examples=2 * EXAMPLES)
@given(st.lists(acts, max_size=25), st.booleans())
def test_in_the_end_the_watch_knows_what_is_there(
    tmp_path_factory: pytest.TempPathFactory, todo: list[tuple[str, str, str, int]], from_a_path: bool
) -> None:
    root = tmp_path_factory.mktemp("logs")
    run_folder(root / "a", FIRST)
    watched = LogdirWatch(str(root) if from_a_path else open_logdir(str(root)))
    known = {} if from_a_path else {run.path: run for run in open_logdir(str(root)).runs}
    looks = [("look", "", "", 0)] * (PATIENCE + 4)
    for kind, run, host, size in [*todo, *looks]:
        if kind != "look":
            act(root, kind, run, host, size)
            continue
        changes = watched.poll()
        for gone in changes.gone:
            del known[gone.path]
        for changed in changes.changed_runs:
            assert changed.path in known
            known[changed.path] = changed
        for new in changes.new_runs:
            assert new.path not in known and new.hosts
            known[new.path] = new
    there = {run.path: run for run in open_logdir(str(root)).runs if run.hosts}
    assert {path: run.hosts for path, run in known.items()} == {path: run.hosts for path, run in there.items()}
    assert watched.logdir is not None and not watched._pending
    assert {run.path for run in watched.logdir.runs if run.hosts} == set(there)
