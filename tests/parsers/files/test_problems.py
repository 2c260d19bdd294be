"""Files and folders that hold no profile: each is a problem that says what it is."""

from __future__ import annotations

import errno
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.parsers.files.layouts import CONTENT, NOON, codes, hosts, names, put, refused, run_folder
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.tui.cli.main import main

# --- files with problems


def test_problem_files_leave_the_other_hosts_alone(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, hosts=["host0", "host9"])
    put(folder / "host1.xplane.pb", b"")
    put(folder / "host2.xplane.pb.gz", b"")
    put(folder / "host3.xplane.riegeli", b"")
    (folder / "host4.xplane.pb").symlink_to("nowhere.xplane.pb")
    (folder / "host5.xplane.pb").symlink_to("host5.xplane.pb")
    os.mkfifo(folder / "host6.xplane.pb")
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{short}/socket")  # a socket's path may not be long
        (folder / "host7.xplane.pb").symlink_to(f"{short}/socket")
        (folder / "host8.xplane.pb").symlink_to("/dev/null")
        found = open_logdir(str(tmp_path))
    (run,) = found.runs
    assert hosts(run) == ["host0", "host9"]
    expected = ["empty_file"] * 3 + ["dangling_link"] * 2 + ["not_a_file"] * 3
    assert codes(run.problems) == expected
    for number, problem in enumerate(run.problems, 1):
        assert f"host{number}.xplane" in problem.subject
        assert problem.subject in problem.sentence
        assert problem.sentence.endswith(".")
        assert problem.hint
    by_code = {problem.code: problem for problem in run.problems}
    assert "0 bytes" in by_code["empty_file"].sentence
    assert "2 GB" in by_code["empty_file"].sentence
    assert "fewer seconds" in by_code["empty_file"].hint
    assert all(word in str(run.problems) for word in ("a pipe", "a socket", "a device"))
    assert found.problems == ()


def deny(patch: pytest.MonkeyPatch, name: str, call: str = "open", code: int = errno.EACCES) -> None:
    """Makes a call of `os` fail for files or folders of that name, as for a user without permission."""
    real = getattr(os, call)

    def instead(path: str, *rest: int, **more: int) -> object:
        if os.path.basename(path) == name:
            raise OSError(code, os.strerror(code), path)
        return real(path, *rest, **more)

    patch.setattr(os, call, instead)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    folder = run_folder(tmp_path, hosts=["host0", "host1"])
    deny(monkeypatch, "host0.xplane.pb", "open", code)
    (run,) = open_logdir(str(tmp_path)).runs
    assert hosts(run) == ["host1"]
    assert codes(run.problems) == ["unreadable"]
    assert run.problems[0].subject == str(folder / "host0.xplane.pb")
    assert os.strerror(code).lower() in run.problems[0].sentence


@contextmanager
def without_privileges() -> Iterator[None]:
    """As an ordinary user, for whom permissions hold; root becomes nobody for the while."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_permissions_for_real() -> None:
    """A file, a folder below and the folder asked for that may not be read."""
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are closed to others
        root = Path(place)
        root.chmod(0o755)
        (run_folder(root, hosts=["host0", "host1"]) / "host0.xplane.pb").chmod(0)
        (root / "closed").mkdir(mode=0)
        with without_privileges():
            found = open_logdir(place)
            error = refused(root / "closed")
            inside = refused(root / "closed" / "logs")
    assert hosts(found.runs[0]) == ["host1"]
    assert codes(found.runs[0].problems) == ["unreadable"]
    assert codes(found.problems) == ["unreadable_folder"]
    assert (error.code, inside.code) == ("unreadable", "unreadable")


@pytest.mark.parametrize(
    ("end", "is_double"), [(".xplane.riegeli", True), (".xplane.pb.gz", True), (".trace.json.gz", False)]
)
def test_what_stands_in_for_an_empty_profile(tmp_path: Path, end: str, is_double: bool) -> None:
    """Past 2 GB a profile is left empty, and one in records or a trace is written; naming it leads to the other.

    Where the whole profile is there, what is beside it is left alone; named itself, it is opened.
    """
    folder = run_folder(tmp_path, hosts=["host1"])
    put(folder / "host0.xplane.pb", b"")
    put(folder / f"host0{end}")
    put(folder / f"host1{end}")
    put(folder / "perfetto_trace.json.gz")
    (run,) = open_logdir(str(tmp_path)).runs
    assert [os.path.basename(host.path) for host in run.hosts] == [f"host0{end}", "host1.xplane.pb"]
    assert hosts(run) == ["host0", "host1"] and [host.packed for host in run.hosts] == [True, False]
    assert codes(run.problems) == ["empty_file"] + ["duplicate_host"] * is_double
    assert run.problems[0].sentence.endswith(f"host0.xplane.pb holds 0 bytes; host0{end} beside it is read instead.")
    found = open_logdir(str(folder / f"host1{end}"))
    assert [os.path.basename(host.path) for host in found.runs[0].hosts] == [f"host1{end}"]
    if end.endswith("pb.gz"):
        return
    found = open_logdir(str(folder / "host0.xplane.pb"))
    assert [os.path.basename(host.path) for host in found.runs[0].hosts] == [f"host0{end}"]
    assert found.searched[0] == f"host0.xplane.pb holds 0 bytes: opened host0{end} beside it"
    put(folder / f"host0{end}", b"")
    (run,) = open_logdir(str(folder / "host0.xplane.pb")).runs
    assert codes(run.problems) == ["empty_file"]


@pytest.mark.parametrize(
    ("names", "read"),
    [
        (("h.trace.json.gz", "perfetto_trace.json.gz"), ["h.trace.json.gz"]),
        (("h.trace.json", "h.trace.json.gz", "g.trace.json"), ["g.trace.json", "h.trace.json"]),
        (("perfetto_trace.json.gz",), ["perfetto_trace.json.gz"]),
    ],
)
def test_traces_are_a_run_where_nothing_else_is_left(tmp_path: Path, names: tuple[str, ...], read: list[str]) -> None:
    folder = run_folder(tmp_path, hosts=())
    for name in names:
        put(folder / name)
    for query in (tmp_path, folder, folder / "*"):
        (run,) = open_logdir(str(query)).runs
        assert [os.path.basename(host.path) for host in run.hosts] == read
        assert set(codes(run.problems)) <= {"duplicate_host"}


@pytest.mark.parametrize("name", ["host0.xplane.pb", "host0.xplane.riegeli"])
def test_a_run_with_nothing_but_problems_is_listed(tmp_path: Path, name: str) -> None:
    """Named itself or found: the error says why, rather than that nothing is there."""
    path = put(run_folder(tmp_path, hosts=()) / name, b"", NOON + 3)
    for query in (path, tmp_path):
        (run,) = open_logdir(str(query)).runs
        assert run.hosts == ()
        assert len(run.problems) == 1
        assert run.size_bytes == 0
        assert run.modified == NOON + 3


def test_the_newest_run_stays_the_newest_when_it_failed(tmp_path: Path) -> None:
    """An older run in its place would be read as the new one's result."""
    run_folder(tmp_path, "2026_01_01_00_00_00")
    put(run_folder(tmp_path, "2026_01_02_00_00_00", hosts=()) / "h.xplane.pb", b"")
    assert codes(open_logdir(str(tmp_path)).find_run().problems) == ["empty_file"]


@pytest.mark.parametrize(
    ("make", "code", "exit_code"),
    [
        (lambda path: path.write_bytes(b""), "empty_file", EXIT_UNREADABLE),
        (os.mkfifo, "not_a_file", EXIT_UNREADABLE),
        (lambda path: path.symlink_to("/dev/zero"), "not_a_file", EXIT_UNREADABLE),
        (lambda path: path.symlink_to("nowhere"), "dangling_link", EXIT_NOT_FOUND),
        (lambda path: path.symlink_to(path), "dangling_link", EXIT_NOT_FOUND),
    ],
)
def test_an_odd_file_given_by_name(tmp_path: Path, make: Callable[[Path], object], code: str, exit_code: int) -> None:
    """A pipe is not waited on: there is no writer here."""
    make(tmp_path / "thing")
    error = refused(tmp_path / "thing")
    assert (error.code, error.exit_code) == (code, exit_code)


def test_a_file_that_cannot_be_read_given_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "thing")
    deny(monkeypatch, "thing", "open")
    assert refused(path).code == "unreadable"


def test_a_host_counts_once(tmp_path: Path) -> None:
    """Links within a run, hard ones too, and a gzipped copy beside the plain file."""
    folder = run_folder(tmp_path, hosts=["host1", "host2", "host3"])
    (folder / "0-latest.xplane.pb").symlink_to("host1.xplane.pb")
    os.link(folder / "host2.xplane.pb", folder / "host2-again.xplane.pb")
    put(folder / "host3.xplane.pb.gz")
    (run,) = open_logdir(str(tmp_path)).runs
    assert len(run.hosts) == 3
    assert [host.packed for host in run.hosts] == [False] * 3
    assert "0-latest" not in hosts(run)
    assert codes(run.problems) == ["duplicate_host"] * 3
    assert "host3.xplane.pb.gz is left out: host3.xplane.pb is the same host" in str(run.problems)


def test_a_link_to_a_profile_elsewhere_is_a_host(tmp_path: Path) -> None:
    target = put(tmp_path / "store" / "blob-1f3a")
    folder = run_folder(tmp_path / "logs", hosts=())
    folder.mkdir(parents=True)
    (folder / "host0.xplane.pb").symlink_to(target)
    (run,) = open_logdir(str(tmp_path / "logs")).runs
    assert hosts(run) == ["host0"]
    assert run.hosts[0].size_bytes == len(CONTENT)


# --- XProf's own files


XPROF_FILES = (
    "ALL_HOSTS.op_stats_v2.pb",
    "ALL_HOSTS.smart_suggestion.pb",
    "ALL_HOSTS.dcn_collective_stats.pb",
    "host0.SSTABLE",
    "host0.metadata.SSTABLE",
    "host0.trie.SSTABLE",
    "cache_version.txt",
    ".cached_tools.json",
)


def test_xprofs_files_are_one_note(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    for name in (*XPROF_FILES, "jit_step(42).hlo_proto.pb"):
        put(folder / name, b"")
    (run,) = open_logdir(str(tmp_path)).runs
    assert hosts(run) == ["host0"]
    assert codes(run.problems) == ["xprof_cache"]
    assert "XProf keeps 9 files" in run.problems[0].sentence
    assert "not touched" in run.problems[0].sentence
    assert run.problems[0].hint == ""


def test_saved_hlo_modules_alone_are_no_problem(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    put(folder / "jit_step(42).hlo_proto.pb")
    put(folder / "host0.trace.json.gz")
    assert open_logdir(str(tmp_path)).runs[0].problems == ()


def test_caches_without_a_profile_are_no_run(tmp_path: Path) -> None:
    put(tmp_path / "somewhere" / "table.SSTABLE")
    assert refused(tmp_path).code == "not_found"


# --- run folders without a profile


def test_an_empty_run_folder_is_named_beside_good_runs(tmp_path: Path) -> None:
    run_folder(tmp_path, "2026_01_01_00_00_00")
    run_folder(tmp_path, "2026_01_02_00_00_00", hosts=()).mkdir()
    put(run_folder(tmp_path, "2026_01_03_00_00_00", hosts=()) / "h.hlo_proto.pb")
    run_folder(tmp_path / "plugins" / "profile" / "nested", "2026_01_04_00_00_00")
    found = open_logdir(str(tmp_path))
    assert names(found) == ["2026_01_04_00_00_00", "2026_01_03_00_00_00", "2026_01_02_00_00_00", "2026_01_01_00_00_00"]
    assert [codes(run.problems) for run in found.runs] == [[], ["no_profile"], ["no_profile"], []]
    assert "only h.hlo_proto.pb" in found.runs[1].problems[0].sentence
    assert "is empty" in found.runs[2].problems[0].sentence
    assert found.runs[2].modified > 0


def test_nothing_but_empty_run_folders_is_nothing_found(tmp_path: Path) -> None:
    run_folder(tmp_path, hosts=()).mkdir(parents=True)
    error = refused(tmp_path)
    assert (error.code, error.exit_code) == ("not_found", EXIT_NOT_FOUND)
    assert "2026_11_20_18_04_33" in error.hint
    assert "stop_trace" in error.hint


# --- what may not be listed


def test_folders_that_cannot_be_listed_are_one_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "open" / "h.xplane.pb")
    for place in ("a", "b", "c"):
        put(tmp_path / place / "closed" / "h.xplane.pb")
    deny(monkeypatch, "closed")
    found = open_logdir(str(tmp_path))
    assert names(found) == ["open"]
    assert codes(found.problems) == ["unreadable_folder"]
    expected = f"{tmp_path}/a/closed and 2 further folders could not be listed: permission denied."
    assert found.problems[0].sentence == expected


def test_a_run_that_cannot_be_listed_is_not_called_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "plugins" / "profile"
    put(runs / "open" / "h.xplane.pb")
    closed = put(runs / "closed" / "h.xplane.pb").parent
    deny(monkeypatch, "closed")
    found = {run.name: run for run in open_logdir(str(tmp_path)).runs}
    assert codes(found["closed"].problems) == ["unreadable_folder"]
    assert found["closed"].problems[0].sentence == f"The run folder {closed} cannot be read: permission denied."
    assert main(["report", "overview", str(tmp_path), "--run", "closed"]) == EXIT_UNREADABLE
    assert f"The run folder {closed} cannot be read: permission denied." in capsys.readouterr().err


def test_the_folder_asked_for_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "closed" / "h.xplane.pb")
    deny(monkeypatch, "closed")
    error = refused(path.parent)
    assert (error.code, error.exit_code) == ("unreadable", EXIT_UNREADABLE)
    assert "permission denied" in error.sentence
    assert hosts(open_logdir(str(path)).runs[0]) == ["h"], "a file in it may still be opened by its name"


def test_nothing_found_because_of_a_closed_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "closed" / "h.xplane.pb")
    deny(monkeypatch, "closed")
    error = refused(tmp_path)
    assert error.code == "not_found"
    assert "closed" in error.hint


def test_a_path_that_may_not_be_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, "logs", "lstat")
    error = refused("/closed/logs")
    assert (error.code, error.exit_code) == ("unreadable", EXIT_UNREADABLE)
