"""Paths that lead nowhere, and hostile names."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.files.layouts import codes, hosts, names, put, refused
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, ProfileError
from tpuprof.parsers.files.folder_search import SearchLimits
from tpuprof.parsers.files.logdir import open_logdir

# --- nothing there


def test_nothing_found_says_what_is_there(tmp_path: Path) -> None:
    put(tmp_path / "checkpoint_10" / "weights")
    put(tmp_path / "config.yaml")
    error = refused(tmp_path)
    assert (error.code, error.exit_code) == ("not_found", EXIT_NOT_FOUND)
    assert error.sentence == (
        f"No profile (*.xplane.pb) in {tmp_path}: searched 2 folders; there is checkpoint_10/, config.yaml."
    )
    assert "plugins/profile" in error.hint


def test_nothing_found_counts_what_it_does_not_name(tmp_path: Path) -> None:
    for number in range(1200):
        put(tmp_path / f"{number:04}.txt")
    assert ", 0005.txt and 1,194 more." in refused(tmp_path).sentence


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("h0.xplane.pb_.gstmp", "is a copy that is not finished, or broke off"),
        ("h0.overview_page.json", "is a page or trace that TensorFlow 2.2 or older computed"),
    ],
)
def test_a_run_folder_without_a_profile_says_what_it_holds(tmp_path: Path, name: str, hint: str) -> None:
    put(tmp_path / "plugins" / "profile" / "r" / name)
    assert f"{name} {hint}" in refused(tmp_path).hint


@pytest.mark.parametrize(("name", "hint"), [("events.out.tfevents.1", "start_trace()"), ("other", "plugins/profile")])
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
