"""Files and folders that hold no profile, paths that lead nowhere, and hostile names: each is said."""

from __future__ import annotations

import errno
import os
import shlex
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.files.layouts import codes, hosts, names, put, refused, run_folder
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, ProfileError
from tpuprof.parsers.files.folder_search import SearchLimits
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


def test_a_file_that_cannot_be_read_given_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "thing")
    deny(monkeypatch, "thing", "open")
    assert refused(path).code == "unreadable"


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


# --- nothing there


def test_nothing_found_counts_what_it_does_not_name(tmp_path: Path) -> None:
    for number in range(1200):
        put(tmp_path / f"{number:04}.txt")
    assert ", 0005.txt and 1,194 more." in refused(tmp_path).sentence


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
