"""Tests of `parsers.files.logdir`: any path leads to its runs, and what is in the way is said in plain words."""

from __future__ import annotations

import errno
import os
import shlex
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, Problem, ProfileError
from tpuprof.parsers.files.folder_search import DEFAULT_LIMITS, NO_HOST_NAME, SearchLimits
from tpuprof.parsers.files.logdir import HostFile, Logdir, Run, open_logdir

CONTENT = b"\x0a\x02\x08\x01"
NOON = 1_700_000_000.0


def put(path: Path, content: bytes = CONTENT, modified: float = NOON) -> Path:
    """Writes a file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (modified, modified))
    return path


def run_folder(root: Path, name: str = "2026_11_20_18_04_33", hosts: Iterable[str] = ("host0",)) -> Path:
    """A run in TensorBoard's layout below `root`."""
    folder = root / "plugins" / "profile" / name
    for host in hosts:
        put(folder / f"{host}.xplane.pb")
    return folder


def names(found: Logdir) -> list[str]:
    return [run.name for run in found.runs]


def hosts(run: Run) -> list[str]:
    return [host.host for host in run.hosts]


def codes(problems: Iterable[Problem]) -> list[str]:
    return [problem.code for problem in problems]


def refused(path: str | Path, limits: SearchLimits = DEFAULT_LIMITS) -> ProfileError:
    """The error of a path that leads nowhere; its text is one printable line."""
    with pytest.raises(ProfileError) as caught:
        open_logdir(str(path), limits)
    assert caught.value.sentence.isprintable()
    assert caught.value.hint.isprintable()
    return caught.value


# --- every part of the layout leads to the runs


@pytest.mark.parametrize("levels", [0, 1, 2, 3, 4, 5])
def test_any_part_of_the_layout_opens(tmp_path: Path, levels: int) -> None:
    """The run folder, plugins/profile, plugins, the logdir and folders above it."""
    folder = run_folder(tmp_path / "experiment" / "logs", hosts=["host0", "host1"])
    start = folder
    for _ in range(levels):
        start = start.parent
    found = open_logdir(str(start))
    assert found.query == str(start)
    assert names(found) == ["2026_11_20_18_04_33"]
    assert [run.path for run in found.runs] == [str(folder)]
    assert hosts(found.runs[0]) == ["host0", "host1"]
    assert found.problems == found.runs[0].problems == ()
    assert len(found.searched) == 1
    assert f"in {levels + 1} folder" in found.searched[0]
    assert "2 profile files in 1 run" in found.searched[0]


def test_a_host_file_tells_its_facts(tmp_path: Path) -> None:
    path = put(tmp_path / "run" / "t1v-n-0.example.com.xplane.pb", b"x" * 1234, NOON + 5)
    packed = put(tmp_path / "run" / "t1v-n-1.xplane.pb.gz", b"y" * 100, NOON + 9)
    (run,) = open_logdir(str(tmp_path)).runs
    assert run.hosts == (
        HostFile("t1v-n-0.example.com", str(path), 1234, NOON + 5, False),
        HostFile("t1v-n-1", str(packed), 100, NOON + 9, True),
    )
    assert run.size_bytes == 1334
    assert run.modified == run.time == NOON + 9


def test_hosts_are_in_natural_order(tmp_path: Path) -> None:
    run_folder(tmp_path, hosts=["host10", "host2", "host1", "a", "host02"])
    assert hosts(open_logdir(str(tmp_path)).runs[0]) == ["a", "host1", "host02", "host2", "host10"]


@pytest.mark.parametrize("name", [".xplane.pb", "xplane.pb", ".xplane.pb.gz"])
def test_a_file_without_a_host_name(tmp_path: Path, name: str) -> None:
    put(tmp_path / "run" / name)
    assert hosts(open_logdir(str(tmp_path / "run")).runs[0]) == [NO_HOST_NAME]


@pytest.mark.parametrize("name", ["axplane.pb", "host.xplane.pb.tmp", "._host.xplane.pb", "xplane.pbx", "host.pb"])
def test_names_that_are_no_profiles(tmp_path: Path, name: str) -> None:
    put(tmp_path / "run" / name)
    assert refused(tmp_path).code == "not_found"


def test_ways_to_write_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_folder(tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for text in (
        "logs",
        "logs/",
        "logs//",
        "./logs",
        ".",
        "~/logs",
        "~",
        "../" + tmp_path.name,
        f"file://{tmp_path}/logs",
    ):
        found = open_logdir(text)
        assert names(found) == ["2026_11_20_18_04_33"], text
        assert os.path.isfile(found.runs[0].hosts[0].path), text
    assert open_logdir("logs").runs[0].hosts[0].path.startswith("logs/"), "a relative path stays relative"
    monkeypatch.chdir(tmp_path / "logs" / "plugins" / "profile" / "2026_11_20_18_04_33")
    assert names(open_logdir(".")) == ["2026_11_20_18_04_33"]
    assert names(open_logdir("host0.xplane.pb")) == ["2026_11_20_18_04_33"]
    assert open_logdir(tmp_path / "logs").runs[0].hosts, "path objects are paths too"


def test_files_in_an_ordinary_folder_are_a_run(tmp_path: Path) -> None:
    put(tmp_path / "copied" / "host0.xplane.pb")
    put(tmp_path / "copied" / "notes.txt")
    put(tmp_path / "copied" / "deeper" / "host1.xplane.pb")
    found = open_logdir(str(tmp_path))
    assert sorted(names(found)) == ["copied", "deeper"]


def test_a_folder_named_like_a_profile_is_a_folder(tmp_path: Path) -> None:
    put(tmp_path / "odd.xplane.pb" / "host0.xplane.pb")
    assert names(open_logdir(str(tmp_path))) == ["odd.xplane.pb"]
    assert names(open_logdir(f"{tmp_path}/*.pb")) == ["odd.xplane.pb"]


# --- single files


def test_a_single_file_is_a_run_of_its_own(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, hosts=["host0", "host1", "host2"])
    put(folder / "host3.xplane.pb", b"")
    put(folder / "cache_version.txt")
    found = open_logdir(str(folder / "host1.xplane.pb"))
    (run,) = found.runs
    assert run.name == "2026_11_20_18_04_33"
    assert run.path == run.hosts[0].path == str(folder / "host1.xplane.pb")
    assert hosts(run) == ["host1"]
    assert run.problems == ()
    assert found.searched == (
        f"opened {folder}/host1.xplane.pb alone; left out 3 profile files beside: open the folder for all hosts",
    )


def test_a_single_file_without_siblings_mentions_none(tmp_path: Path) -> None:
    path = put(tmp_path / "bench-v5p" / "host1.xplane.pb")
    found = open_logdir(str(path))
    assert names(found) == ["bench-v5p"]
    assert found.searched == (f"opened {path} alone",)


@pytest.mark.parametrize("folder", ["tmp", "Downloads", "logs", "traces"])
def test_where_the_folder_says_nothing_the_file_names_the_run(tmp_path: Path, folder: str) -> None:
    put(tmp_path / folder / "before-remat.xplane.pb.gz")
    assert names(open_logdir(str(tmp_path / folder / "before-remat.xplane.pb.gz"))) == ["before-remat"]
    assert names(open_logdir(str(tmp_path / folder))) == [folder]


def test_a_file_in_the_home_folder_names_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path / "mine.xplane.pb")
    assert names(open_logdir("~/mine.xplane.pb")) == ["mine"]


@pytest.mark.parametrize("content", [CONTENT, b"\x1f\x8b\x08", b"\x22\x05host0"])
def test_a_profile_under_any_name_opens_when_it_is_named(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path / "renamed" / "profile.bin", content)
    (run,) = open_logdir(str(path)).runs
    assert hosts(run) == ["profile.bin"]
    assert refused(path.parent).code == "not_found"  # but it is not looked for


def test_a_file_that_is_no_profile(tmp_path: Path) -> None:
    error = refused(put(tmp_path / "README.md", b"# Read me"))
    assert (error.code, error.exit_code) == ("not_found", EXIT_NOT_FOUND)
    assert "README.md is no profile" in error.sentence


@pytest.mark.parametrize(
    "name", ["jit_step(42).hlo_proto.pb", "ALL_HOSTS.op_stats_v2.pb", "host0.trace.json.gz", "cache_version.txt"]
)
def test_a_file_beside_a_profile_opens_its_folder(tmp_path: Path, name: str) -> None:
    folder = run_folder(tmp_path, hosts=["host0", "host1"])
    found = open_logdir(str(put(folder / name)))
    assert hosts(found.runs[0]) == ["host0", "host1"]
    assert "opened its folder" in found.searched[0]
    alone = refused(put(tmp_path / "elsewhere" / name))
    assert (alone.code, alone.exit_code) == ("not_found", EXIT_NOT_FOUND)
    assert "no profile (*.xplane.pb) is beside it" in alone.sentence


def test_an_event_file_opens_the_logdir_that_it_lies_in(tmp_path: Path) -> None:
    run_folder(tmp_path / "train")
    found = open_logdir(str(put(tmp_path / "train" / "events.out.tfevents.1700000000.host")))
    assert names(found) == ["2026_11_20_18_04_33"]
    assert "TensorBoard event file" in found.searched[0]


# --- order and names of runs


def test_newest_first_by_the_time_in_the_name(tmp_path: Path) -> None:
    """Whatever the files' own times are: copying changes those."""
    for name, modified in (("2026_11_20_18_04_33", 1.0), ("2026_11_20_18_04_34", 0.0), ("2025_01_02_03_04_05", 9e9)):
        put(tmp_path / "plugins" / "profile" / name / "h.xplane.pb", modified=modified)
    assert names(open_logdir(str(tmp_path))) == ["2026_11_20_18_04_34", "2026_11_20_18_04_33", "2025_01_02_03_04_05"]


def test_other_names_go_by_modification_time(tmp_path: Path) -> None:
    timed = put(tmp_path / "plugins" / "profile" / "2026_11_20_18_04_33" / "h.xplane.pb", modified=0)
    when = open_logdir(str(timed)).runs[0].time
    for name, modified in (("later", when + 1), ("earlier", when - 1), ("2026_99_99_99_99_99", when + 2)):
        put(tmp_path / "plugins" / "profile" / name / "h.xplane.pb", modified=modified)
    put(tmp_path / "plugins" / "profile" / "later" / "old.xplane.pb", modified=0)
    expected = ["2026_99_99_99_99_99", "later", "2026_11_20_18_04_33", "earlier"]
    assert names(open_logdir(str(tmp_path))) == expected


def test_a_time_with_a_tail_counts_and_one_with_more_digits_does_not(tmp_path: Path) -> None:
    for name in ("2026_11_20_18_04_33-warm", "2026_11_20_18_04_330", "0001_01_01_00_00_00"):
        put(tmp_path / name / "h.xplane.pb", modified=5.0)
    times = {run.name: run.time for run in open_logdir(str(tmp_path)).runs}
    assert times["2026_11_20_18_04_33-warm"] > 1e9
    assert times["2026_11_20_18_04_330"] == 5.0


def test_ties_go_by_name(tmp_path: Path) -> None:
    for name in ("b", "a10", "a9"):
        put(tmp_path / name / "h.xplane.pb")
    assert names(open_logdir(str(tmp_path))) == ["a9", "a10", "b"]


def test_runs_of_one_name_are_told_apart_by_their_logdir(tmp_path: Path) -> None:
    for part in ("train", "validation"):
        run_folder(tmp_path / "job" / part)
    run_folder(tmp_path / "job" / "train", "2024_01_01_00_00_00")
    found = open_logdir(str(tmp_path))
    assert names(found) == ["train/2026_11_20_18_04_33", "validation/2026_11_20_18_04_33", "2024_01_01_00_00_00"]
    assert found.runs[0].time == found.runs[1].time > found.runs[2].time


def test_a_logdir_inside_another(tmp_path: Path) -> None:
    run_folder(tmp_path)
    run_folder(tmp_path / "eval")
    assert names(open_logdir(str(tmp_path))) == ["2026_11_20_18_04_33", "eval/2026_11_20_18_04_33"]


def test_one_name_twice_in_one_logdir(tmp_path: Path) -> None:
    run_folder(tmp_path, "r")
    put(tmp_path / "r" / "h.xplane.pb")
    assert names(open_logdir(str(tmp_path))) == ["plugins/profile/r", "r"]


# --- finding a run by name


def test_find_run(tmp_path: Path) -> None:
    for name in ("2026_11_20_18_04_33", "2026_11_20_18_04_34", "2025_01_01_00_00_00"):
        run_folder(tmp_path, name)
    found = open_logdir(str(tmp_path))
    assert found.find_run().name == found.find_run(None).name == "2026_11_20_18_04_34"
    assert found.find_run("2026_11_20_18_04_33").name == "2026_11_20_18_04_33"
    assert found.find_run("2025").name == found.find_run("2025_01_01_00_00_00/").name == "2025_01_01_00_00_00"


@pytest.mark.parametrize("name", ["2026", "", "1999", "018_04", "\x1b[2J"])
def test_find_run_lists_the_names_there_are(tmp_path: Path, name: str) -> None:
    run_folder(tmp_path, "2026_11_20_18_04_33")
    run_folder(tmp_path, "2026_11_20_18_04_34")
    with pytest.raises(ProfileError) as caught:
        open_logdir(str(tmp_path)).find_run(name)
    assert (caught.value.code, caught.value.exit_code) == ("unknown_run", EXIT_NOT_FOUND)
    assert "2026_11_20_18_04_34, 2026_11_20_18_04_33" in caught.value.sentence
    assert caught.value.sentence.isprintable()


def test_an_exact_name_wins_over_a_prefix(tmp_path: Path) -> None:
    for name in ("run", "run2"):
        put(tmp_path / name / "h.xplane.pb")
    assert open_logdir(str(tmp_path)).find_run("run").name == "run"


def test_find_run_by_the_folder_where_logdirs_are_in_front(tmp_path: Path) -> None:
    for part in ("train", "validation"):
        run_folder(tmp_path / part)
    run_folder(tmp_path / "train", "2024_01_01_00_00_00")
    found = open_logdir(str(tmp_path))
    assert found.find_run("validation").name == "validation/2026_11_20_18_04_33"
    assert found.find_run("2024").name == "2024_01_01_00_00_00"
    with pytest.raises(ProfileError, match="fits more than one run"):
        found.find_run("2026_11_20_18_04_33")


def test_find_run_without_runs() -> None:
    with pytest.raises(ProfileError, match="there is none"):
        Logdir("x", (), (), ()).find_run()


# --- files with problems


def test_problem_files_leave_the_other_hosts_alone(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, hosts=["host0", "host9"])
    put(folder / "host1.xplane.pb", b"")
    put(folder / "host2.xplane.pb.gz", b"")
    put(folder / "host3.xplane.riegeli", b"riegeli")
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
    expected = ["empty_file", "empty_file", "riegeli", "dangling_link", "dangling_link"] + ["not_a_file"] * 3
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
    assert ".xplane.pb" in by_code["riegeli"].hint
    assert [word for word in ("a pipe", "a socket", "a device") if word in str(run.problems)] == [
        "a pipe",
        "a socket",
        "a device",
    ]
    assert found.problems == ()


def fail_for(name: str, code: int, real: Callable[..., int]) -> Callable[..., int]:
    """An `os.open` that fails for one file name."""

    def instead(path: str, *rest: int, **more: int) -> int:
        if os.path.basename(path) == name:
            raise OSError(code, os.strerror(code), path)
        return real(path, *rest, **more)

    return instead


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    folder = run_folder(tmp_path, hosts=["host0", "host1"])
    monkeypatch.setattr(os, "open", fail_for("host0.xplane.pb", code, os.open))
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
        folder = run_folder(root, hosts=["host0", "host1"])
        (folder / "host0.xplane.pb").chmod(0)
        (root / "closed").mkdir(mode=0)
        with without_privileges():
            found = open_logdir(place)
            error = refused(root / "closed")
            inside = refused(root / "closed" / "logs")
    assert hosts(found.runs[0]) == ["host1"]
    assert codes(found.runs[0].problems) == ["unreadable"]
    assert codes(found.problems) == ["unreadable_folder"]
    assert (error.code, inside.code) == ("unreadable", "unreadable")


@pytest.mark.parametrize("name", ["host0.xplane.pb", "host0.xplane.riegeli"])
def test_a_run_with_nothing_but_problems_is_listed(tmp_path: Path, name: str) -> None:
    """Named itself or found: the user is told why, rather than that nothing is there."""
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
    monkeypatch.setattr(os, "open", fail_for("thing", errno.EACCES, os.open))
    assert refused(path).code == "unreadable"


def test_a_host_counts_once(tmp_path: Path) -> None:
    """Links within a run, hard ones too, and a gzipped copy beside the plain file."""
    folder = run_folder(tmp_path, hosts=["host1", "host2", "host3"])
    (folder / "0-latest.xplane.pb").symlink_to("host1.xplane.pb")
    os.link(folder / "host2.xplane.pb", folder / "host2-again.xplane.pb")
    put(folder / "host3.xplane.pb.gz")
    (run,) = open_logdir(str(tmp_path)).runs
    assert len(run.hosts) == 3
    assert [host.gzipped for host in run.hosts] == [False] * 3
    assert "0-latest" not in hosts(run)
    assert codes(run.problems) == ["duplicate_host"] * 3
    assert "host3.xplane.pb.gz is left out: host3.xplane.pb is the same host" in str(run.problems)


def test_a_gzipped_copy_stands_in_for_an_empty_file(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, hosts=())
    put(folder / "host0.xplane.pb", b"")
    put(folder / "host0.xplane.pb.gz")
    (run,) = open_logdir(str(tmp_path)).runs
    assert [host.gzipped for host in run.hosts] == [True]
    assert codes(run.problems) == ["empty_file"]


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
    assert "left alone" in run.problems[0].sentence
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
    put(run_folder(tmp_path, "2026_01_03_00_00_00", hosts=()) / "h.trace.json.gz")
    run_folder(tmp_path / "plugins" / "profile" / "nested", "2026_01_04_00_00_00")
    found = open_logdir(str(tmp_path))
    assert names(found) == ["2026_01_04_00_00_00", "2026_01_03_00_00_00", "2026_01_02_00_00_00", "2026_01_01_00_00_00"]
    assert [codes(run.problems) for run in found.runs] == [[], ["no_profile"], ["no_profile"], []]
    assert "only h.trace.json.gz" in found.runs[1].problems[0].sentence
    assert "is empty" in found.runs[2].problems[0].sentence
    assert found.runs[2].modified > 0


def test_nothing_but_empty_run_folders_is_nothing_found(tmp_path: Path) -> None:
    run_folder(tmp_path, hosts=()).mkdir(parents=True)
    error = refused(tmp_path)
    assert (error.code, error.exit_code) == ("not_found", EXIT_NOT_FOUND)
    assert "2026_11_20_18_04_33" in error.hint
    assert "stop_trace" in error.hint


# --- globs


def test_globs(tmp_path: Path) -> None:
    for part in ("train", "validation", "test"):
        run_folder(tmp_path / part / "deep", hosts=["host0", "host1"])
    for pattern, count in (
        ("*", 3),
        ("t*", 2),
        ("t*/", 2),
        ("t?ain", 1),
        ("[tv]*", 3),
        ("*/deep/plugins/profile/*", 3),
        ("**/profile", 3),
        ("**", 3),
        ("**/**/**", 3),
        ("validation/**/2026*", 1),
    ):
        found = open_logdir(f"{tmp_path}/{pattern}")
        assert len(found.runs) == count, pattern
        assert all(hosts(run) == ["host0", "host1"] for run in found.runs), pattern
        assert all(os.path.isdir(run.path) for run in found.runs), pattern


def test_a_glob_of_files(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "train", hosts=["host0", "host1", "worker0"])
    run_folder(tmp_path / "validation", hosts=["host0"])
    put(folder / "host0.SSTABLE")
    found = open_logdir(f"{tmp_path}/**/host*")
    assert [(run.name, hosts(run)) for run in found.runs] == [
        ("train/2026_11_20_18_04_33", ["host0", "host1"]),
        ("validation/2026_11_20_18_04_33", ["host0"]),
    ]
    assert found.runs[0].path == str(folder)
    assert found.runs[1].path.endswith("host0.xplane.pb")
    assert "left out 1 profile file" in found.searched[0]


def test_a_run_matched_as_folder_and_as_file_is_listed_once(tmp_path: Path) -> None:
    put(tmp_path / "a" / "host0.xplane.pb")
    put(tmp_path / "a" / "host1.xplane.pb")
    found = open_logdir(f"{tmp_path}/**/*")
    assert [hosts(run) for run in found.runs] == [["host0", "host1"]]


def test_relative_globs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(tmp_path / "a" / "host0.xplane.pb").parent
    monkeypatch.chdir(tmp_path)
    assert open_logdir("*").runs[0].path == "a"
    assert open_logdir("./*/h*").runs[0].path == "a/host0.xplane.pb"
    assert open_logdir("**").runs[0].path == "a"
    monkeypatch.chdir(folder)
    (run,) = open_logdir("*").runs
    assert (run.name, run.path) == ("a", "host0.xplane.pb")
    (run,) = open_logdir("**").runs
    assert (run.name, hosts(run)) == ("a", ["host0"])


def test_a_name_with_glob_characters_is_a_name_first(tmp_path: Path) -> None:
    put(tmp_path / "run[1]" / "host0.xplane.pb")
    put(tmp_path / "run1" / "host0.xplane.pb")
    assert names(open_logdir(str(tmp_path / "run[1]"))) == ["run[1]"]


def test_globs_leave_hidden_names_alone(tmp_path: Path) -> None:
    put(tmp_path / ".hidden" / "host0.xplane.pb")
    put(tmp_path / "open" / "host0.xplane.pb")
    assert names(open_logdir(f"{tmp_path}/*")) == ["open"]
    assert names(open_logdir(f"{tmp_path}/.h*")) == [".hidden"]


@pytest.mark.parametrize(
    ("pattern", "reason"), [("x*", "matches nothing"), ("[", "matches nothing"), ("n*", "/notes.txt, which by")]
)
def test_a_glob_without_profiles(tmp_path: Path, pattern: str, reason: str) -> None:
    put(tmp_path / "notes.txt")
    error = refused(tmp_path / pattern)
    assert (error.code, error.exit_code) == ("not_found", EXIT_NOT_FOUND)
    assert reason in error.sentence


def test_a_glob_of_folders_without_profiles(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "the folder is empty" in refused(tmp_path / "*").sentence


# --- links and loops


def test_loops_of_links_end(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "logs")
    for index, place in enumerate((tmp_path / "logs", folder, folder.parent)):
        (place / f"again{index}").symlink_to(tmp_path / "logs")
        (place / f"up{index}").symlink_to("..")
    (tmp_path / "logs" / "self").symlink_to("self")
    found = open_logdir(str(tmp_path / "logs"))
    assert [run.path for run in found.runs] == [str(folder)]
    assert len(open_logdir(f"{tmp_path}/logs/**").runs) == 1
    assert len(found.searched) == 1, "a loop is no bound that was hit"


def test_a_link_up_does_not_widen_the_search(tmp_path: Path) -> None:
    run_folder(tmp_path / "mine")
    run_folder(tmp_path / "other", "2026_12_12_12_12_12")
    (tmp_path / "mine" / "up").symlink_to(tmp_path)
    (tmp_path / "mine" / "root").symlink_to("/")
    assert names(open_logdir(str(tmp_path / "mine"))) == ["2026_11_20_18_04_33"]
    assert len(open_logdir(str(tmp_path / "mine" / "up")).runs) == 2, "unless it is what was asked for"


def test_a_linked_run_is_listed_once_under_its_own_name(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    (folder.parent / "0latest").symlink_to(folder.name)
    for query in (f"{tmp_path}", f"{tmp_path}/plugins/profile/*"):
        assert names(open_logdir(query)) == ["2026_11_20_18_04_33"]
    assert names(open_logdir(str(folder.parent / "0latest"))) == ["0latest"], "unless it is what was asked for"


def test_links_are_followed(tmp_path: Path) -> None:
    run_folder(tmp_path / "disk" / "logs")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "logs").symlink_to(tmp_path / "disk" / "logs")
    assert names(open_logdir(str(tmp_path / "home"))) == ["2026_11_20_18_04_33"]


# --- bounds


def test_the_depth_bound(tmp_path: Path) -> None:
    put(tmp_path / "a" / "b" / "near" / "h.xplane.pb")
    put(tmp_path / "a" / "b" / "c" / "far" / "h.xplane.pb")
    found = open_logdir(str(tmp_path), SearchLimits(max_depth=3))
    assert names(found) == ["near"]
    assert found.searched[1:] == ("not searched: 1 folder below level 3",)
    error = refused(tmp_path, SearchLimits(max_depth=1))
    assert "not searched: 1 folder below level 1" in error.sentence
    assert len(open_logdir(str(tmp_path)).runs) == 2


def test_the_entry_bound(tmp_path: Path) -> None:
    """Nearer folders are looked into first, so what a bound leaves out is what is far away."""
    for number in range(20):
        put(tmp_path / "data" / f"{number}" / "checkpoint")
    put(tmp_path / "near" / "h.xplane.pb")
    found = open_logdir(str(tmp_path), SearchLimits(max_entries=25))
    assert names(found) == ["near"]
    assert any("stopped after 25 folder entries" in line for line in found.searched)
    error = refused(tmp_path, SearchLimits(max_entries=3))
    assert "stopped after 3 folder entries" in error.sentence
    assert open_logdir(str(tmp_path)).searched[1:] == ()


def test_plugins_come_before_everything_else(tmp_path: Path) -> None:
    for number in range(30):
        put(tmp_path / f"checkpoint{number}" / "weights" / "w")
    run_folder(tmp_path)
    assert len(open_logdir(str(tmp_path), SearchLimits(max_entries=40)).runs) == 1


def test_bounds_hold_for_globs(tmp_path: Path) -> None:
    for number in range(30):
        put(tmp_path / f"d{number:02}" / "h.xplane.pb")
    found = open_logdir(f"{tmp_path}/*/*", SearchLimits(max_entries=12))
    assert 0 < len(found.runs) <= 12
    assert any("stopped after 12 folder entries" in line for line in found.searched)
    assert "stopped after 12" in refused(f"{tmp_path}/*/x*", SearchLimits(max_entries=12)).sentence
    shallow = refused(f"{tmp_path}/**/*.pb", SearchLimits(max_depth=0))
    assert "matches nothing; not searched: 30 folders below level 0" in shallow.sentence


def test_heavy_folders_are_left_out_unless_named(tmp_path: Path) -> None:
    put(tmp_path / "repo" / ".git" / "h.xplane.pb")
    put(tmp_path / "repo" / "node_modules" / "h.xplane.pb")
    put(tmp_path / "repo" / "out" / "h.xplane.pb")
    found = open_logdir(str(tmp_path))
    assert names(found) == ["out"]
    assert found.searched[1:] == ("not searched: 2 folders such as .git, node_modules, site-packages",)
    assert names(open_logdir(str(tmp_path / "repo" / ".git"))) == [".git"]


def test_a_search_opens_no_more_than_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no byte of them is read, so that a folder on a bucket mount costs no download."""
    folder = run_folder(tmp_path)
    put(folder / "ALL_HOSTS.op_stats_v2.pb")
    put(folder / "host1.xplane.riegeli")
    opened: list[str] = []
    real = os.open

    def counting(path: str, *rest: int, **more: int) -> int:
        opened.append(os.path.basename(path))
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", counting)
    before = sorted(path.stat().st_atime_ns for path in folder.iterdir())
    open_logdir(str(tmp_path))
    assert opened == ["host0.xplane.pb"]
    assert sorted(path.stat().st_atime_ns for path in folder.iterdir()) == before


# --- what may not be listed


def deny(monkeypatch: pytest.MonkeyPatch, name: str, code: int = errno.EACCES) -> None:
    """Makes folders of that name fail when they are listed, as for a user without permission."""
    real = os.scandir

    def instead(path: str) -> object:
        if os.path.basename(path) == name:
            raise OSError(code, os.strerror(code), path)
        return real(path)

    monkeypatch.setattr(os, "scandir", instead)


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
    def instead(path: str) -> os.stat_result:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "lstat", instead)
    error = refused("/closed/logs")
    assert (error.code, error.exit_code) == ("unreadable", EXIT_UNREADABLE)


# --- nothing there


def test_nothing_found_says_what_is_there(tmp_path: Path) -> None:
    put(tmp_path / "checkpoint_10" / "weights")
    put(tmp_path / "config.yaml")
    error = refused(tmp_path)
    assert (error.code, error.exit_code) == ("not_found", EXIT_NOT_FOUND)
    assert error.sentence == (
        f"No profile (*.xplane.pb) in {tmp_path}: looked into 2 folders; there is checkpoint_10/, config.yaml."
    )
    assert "plugins/profile" in error.hint


def test_nothing_found_counts_what_it_does_not_name(tmp_path: Path) -> None:
    for number in range(1200):
        put(tmp_path / f"{number:04}.txt")
    assert ", 0005.txt and 1,194 more." in refused(tmp_path).sentence


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("host0.trace.json.gz", ".xplane.pb of the same capture"),
        ("events.out.tfevents.1", "start_trace()"),
        ("other", "plugins/profile"),
    ],
)
def test_hints_go_by_what_is_there(tmp_path: Path, name: str, hint: str) -> None:
    put(tmp_path / "x" / name)
    assert hint in refused(tmp_path).hint


def test_a_path_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "experiments" / "h.xplane.pb")
    error = refused(tmp_path / "experimets" / "logs")
    assert (error.code, error.exit_code) == ("not_found", EXIT_NOT_FOUND)
    assert f"nearest folder that does is {tmp_path}, which holds experiments" in error.sentence
    assert error.hint == f"did you mean {tmp_path}/experiments?"
    monkeypatch.chdir(tmp_path)
    assert refused("experimets").hint == "did you mean experiments?"
    assert "which holds h.xplane.pb" in refused("experiments/h.xplane.pb/more").sentence
    (tmp_path / "void").mkdir()
    assert "which is empty or may not be listed" in refused(tmp_path / "void" / "x").sentence


@pytest.mark.parametrize("path", ["", "\0", "a\0b*", "\ud800", "x" * 5000, "///nonexistent", "~nobody-here/x", "-"])
def test_paths_that_cannot_be(path: str) -> None:
    error = refused(path)
    assert (error.code, error.exit_code) == ("not_found", EXIT_NOT_FOUND)


def test_the_current_folder_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    error = refused(".")
    assert error.code == "not_found"
    assert "current folder" in error.sentence
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def no_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where fsspec is not installed."""
    monkeypatch.setitem(sys.modules, "fsspec", None)


GCS = "pip install 'tpuprof-tui[gcs]', or: gcloud storage cp -r "


@pytest.mark.usefixtures("no_fsspec")
@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("gs://bucket/train/logs/", f"{GCS}gs://bucket/train/logs . && tpuprof-tui ./logs"),
        ("gs://bucket", f"{GCS}gs://bucket . && tpuprof-tui ./bucket"),
        ("gs://b/my logs", f"{GCS}'gs://b/my logs' . && tpuprof-tui './my logs'"),
        ("gs://b/runs/*", f"{GCS}'gs://b/runs/*' . && tpuprof-tui './*'"),
        (
            "s3://b/logs",
            "pip install 'tpuprof-tui[remote]' s3fs, "
            "or: aws s3 cp --recursive s3://b/logs ./logs && tpuprof-tui ./logs",
        ),
        ("https://example.com/x.xplane.pb", "pip install 'tpuprof-tui[remote]'"),
    ],
)
def test_urls_without_fsspec(url: str, hint: str) -> None:
    error = refused(url)
    assert (error.code, error.exit_code) == ("driver_missing", EXIT_NOT_FOUND)
    assert error.hint == hint
    assert error.sentence == f"{url.partition(':')[0]}:// paths need fsspec, which is not installed."


@pytest.mark.usefixtures("no_fsspec")
def test_the_copy_line_is_safe_to_paste() -> None:
    hint = refused("gs://b/$(reboot);x").hint.partition("or: ")[2]
    assert shlex.split(hint)[4:] == ["gs://b/$(reboot);x", ".", "&&", "tpuprof-tui", "./$(reboot);x"]


def test_a_local_folder_that_looks_like_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "gs:" / "run" / "h.xplane.pb")
    monkeypatch.chdir(tmp_path)
    assert names(open_logdir("gs://run")) == ["run"]


# --- hostile names


HOSTILE = [
    "\x1b[2J\x1b]0;x\x07",
    "line\nbreak",
    "\u202egpj",
    "caf\udce9",
    "[red]markup[b]",
    " ",
    "--help",
    "'; rm -rf ~",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_kept_and_neutralised_in_sentences(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / name
    put(folder / f"{name}.xplane.pb")
    put(folder / f"{name}2.xplane.pb", b"")
    put(folder / f"{name}.SSTABLE")
    found = open_logdir(str(tmp_path))
    (run,) = found.runs
    assert (run.name, hosts(run)) == (name, [name])
    assert os.path.isfile(run.hosts[0].path)
    assert codes(run.problems) == ["empty_file", "xprof_cache"]
    alone = open_logdir(str(folder / f"{name}.xplane.pb"))
    printed = [text for problem in run.problems for text in (problem.subject, problem.sentence, problem.hint)]
    assert all(text.isprintable() for text in (*printed, *found.searched, *alone.searched))
    assert names(open_logdir(str(folder))) == [name]
    with pytest.raises(ProfileError) as caught:
        found.find_run("no such run")
    assert caught.value.sentence.isprintable()
    refused(tmp_path / name / "missing")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    refused(f"gs://{name}/x")


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "*", "?", "[", "]", "/", "**", "~", ":", "\\", "\n", "!", "-"]), max_size=8))
def test_any_text_is_answered_with_a_logdir_or_a_sentence(parts: list[str]) -> None:
    """Inside an empty folder of its own, so that no text reaches far."""
    with tempfile.TemporaryDirectory() as folder:
        put(Path(folder) / "a" / "a.xplane.pb")
        text = f"{folder}/" + "".join(parts)
        try:
            found = open_logdir(text, SearchLimits(max_entries=50, max_depth=2))
        except ProfileError as error:
            assert error.exit_code in (EXIT_NOT_FOUND, EXIT_UNREADABLE)
            assert error.sentence.isprintable()
        else:
            assert [hosts(run) for run in found.runs] == [["a"]]


# --- reference data


@pytest.mark.shared
def test_every_reference_profile_opens_from_everywhere(shared: Path) -> None:
    files = sorted((shared / "profiles").glob("**/*.xplane.pb"))
    assert files
    for file in files:
        logdir_path = file.parents[3] if file.parents[2].name == "plugins" else file.parent
        for query in (file, file.parent, logdir_path):
            found = open_logdir(str(query))
            assert [host.path for run in found.runs for host in run.hosts] == [str(file)], query
            assert found.runs[0].hosts[0].size_bytes == file.stat().st_size
    above = open_logdir(str(shared / "profiles"))
    assert sorted(host.path for run in above.runs for host in run.hosts) == sorted(map(str, files))
    assert len(set(names(above))) == len(files)
    assert all(not run.problems for run in above.runs)
    everything = {host.path for run in open_logdir(str(shared)).runs for host in run.hosts}
    assert everything >= set(map(str, files))
