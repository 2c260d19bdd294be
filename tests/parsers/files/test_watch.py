"""Tests of `parsers.files.watch`: a run is reported once it is finished, and nothing on a disk stops the watch."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.files.layouts import CONTENT, run_folder
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.files import watch
from tpuprof.parsers.files.folder_search import Walk
from tpuprof.parsers.files.logdir import Logdir, open_logdir
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
    assert [run.name for run in watched.logdir.runs] == [SECOND, FIRST]


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
    assert [p.code for p in watched.logdir.runs[0].problems] == ["empty_file"]


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
    watched = LogdirWatch(open_logdir(str(tmp_path)), clock=lambda: time.time() + 60)
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
    polls(watched, 2)
    listed: list[str] = []

    def counted(look: watch._Look, starts: Iterable[str]) -> None:
        Walk.search(look, starts)
        listed.extend(map(os.path.basename, look.listed))

    monkeypatch.setattr(watch._Look, "search", counted)
    assert not watched.poll() and listed == ["profile"]
    time.sleep(0.02)
    run_folder(tmp_path / "folder7", SECOND)
    assert polls(watched, 3) == [{}, {"new_runs": [SECOND]}, {}]
    assert {"folder7"} < set(listed) and "folder8" not in listed


def test_urls_are_not_watched() -> None:
    assert not LogdirWatch(Logdir("gs://bucket/logs", (), (), ())).poll()


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
        self.waits = 0

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.acts:
            self.acts.pop(0)()

    def wait(self, path: Path | str) -> int:
        """How many looks found nothing."""

        def count() -> None:
            self.waits += 1

        wait_for_run(str(path), count, sleep=self.sleep, clock=lambda: self.now)
        return self.waits


def test_a_run_is_there_at_once(tmp_path: Path) -> None:
    run_folder(tmp_path, FIRST)
    assert Hands().wait(tmp_path) == 0


def test_the_first_run_is_waited_for(tmp_path: Path) -> None:
    assert Hands(lambda: None, lambda: run_folder(tmp_path / "logs", FIRST)).wait(tmp_path / "logs") == 2


def test_a_run_is_waited_for_until_it_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "plugins" / "profile" / SECOND / "host0.xplane.pb"
    hands = Hands()

    def write(size: int) -> Callable[[], object]:
        def act() -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(CONTENT * size)
            os.utime(path, (hands.now, hands.now))

        return act

    hands.acts = [write(0), write(1), write(2), lambda: None]
    assert hands.wait(tmp_path) == 4


@pytest.mark.parametrize("path", ["", "a\0b", "gopher://host/logs"])
def test_a_path_that_can_never_lead_to_a_run_is_not_waited_for(path: str) -> None:
    with pytest.raises(ProfileError):
        Hands().wait(path)


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


def sizes(folder: Path) -> dict[str, int]:
    """The profiles of a run, and their bytes."""
    return {path.name: path.stat().st_size for path in folder.glob("*.xplane.pb")}


@settings(max_examples=2 * EXAMPLES)
@given(st.lists(acts, max_size=25))
def test_in_the_end_the_watch_knows_what_is_there(
    tmp_path_factory: pytest.TempPathFactory, todo: list[tuple[str, str, str, int]]
) -> None:
    root = tmp_path_factory.mktemp("logs")
    run_folder(root / "a", FIRST)
    watched = LogdirWatch(open_logdir(str(root)))
    known = {run.path: run for run in watched.logdir.runs}
    looks = [("look", "", "", 0)] * (PATIENCE + 4)
    before: dict[str, dict[str, int]] = {}
    for kind, run, host, size in [*todo, *looks]:
        if kind != "look":
            act(root, kind, run, host, size)
            continue
        changes = watched.poll()
        now = {run.parent.as_posix(): sizes(run.parent) for run in root.rglob("*.xplane.pb")}
        for told_of in (*changes.new_runs, *changes.changed_runs):  # a run that is still written is not told of
            assert now[told_of.path] == before[told_of.path] and any(now[told_of.path].values())
            assert told_of.path not in known or known[told_of.path] != told_of
        before = now
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
    assert not watched._pending
    assert {run.path for run in watched.logdir.runs if run.hosts} == set(there)
