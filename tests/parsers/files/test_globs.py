"""Globs, links and loops, and how far the search goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.parsers.files.layouts import hosts, names, put, refused, run_folder
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND
from tpuprof.parsers.files.folder_search import SearchLimits
from tpuprof.parsers.files.logdir import open_logdir

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
    by_the_shell = "\0".join(sorted(map(str, tmp_path.glob("**/host*.pb"))))
    assert [run.hosts for run in open_logdir(by_the_shell).runs] == [run.hosts for run in found.runs]


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
    ("pattern", "reason"), [("x*", "matches nothing"), ("[", "matches nothing"), ("n*", "/notes.txt, whose names")]
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


# --- bounds


def test_the_depth_bound(tmp_path: Path) -> None:
    put(tmp_path / "a" / "b" / "near" / "h.xplane.pb")
    put(tmp_path / "a" / "b" / "c" / "far" / "h.xplane.pb")
    found = open_logdir(str(tmp_path), SearchLimits(max_depth=3))
    assert names(found) == ["near"]
    assert found.searched[1:] == ("not searched: 1 folder below level 3",)
    assert "not searched: 1 folder below level 1" in refused(tmp_path, SearchLimits(max_depth=1)).sentence
    assert len(open_logdir(str(tmp_path)).runs) == 2


def test_the_entry_bound(tmp_path: Path) -> None:
    """Nearer folders are looked into first, so what a bound leaves out is what is far away."""
    for number in range(20):
        put(tmp_path / "data" / f"{number}" / "checkpoint")
    put(tmp_path / "near" / "h.xplane.pb")
    found = open_logdir(str(tmp_path), SearchLimits(max_entries=25))
    assert names(found) == ["near"]
    assert any("stopped after 25 folder entries" in line for line in found.searched)
    assert "stopped after 3 folder entries" in refused(tmp_path, SearchLimits(max_entries=3)).sentence
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

    def counting(path: str, flags: int, *rest: int, **more: int) -> int:
        if not flags & os.O_DIRECTORY:
            opened.append(os.path.basename(path))
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", counting)
    before = sorted(path.stat().st_atime_ns for path in folder.iterdir())
    open_logdir(str(tmp_path))
    assert opened == ["host0.xplane.pb", "host1.xplane.riegeli"]
    assert sorted(path.stat().st_atime_ns for path in folder.iterdir()) == before
