"""Tests of `parsers.files.logdir`: any path leads to its runs, which are found by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.parsers.files.layouts import CONTENT, NOON, hosts, names, put, refused, run_folder
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.files.folder_search import NO_HOST_NAME
from tpuprof.parsers.files.logdir import HostFile, Logdir, open_logdir

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
    assert sorted(names(open_logdir(str(tmp_path)))) == ["copied", "deeper"]


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
        f"opened only {folder}/host1.xplane.pb; left out 3 profile files beside: open the folder for all hosts",
    )


def test_a_single_file_without_siblings_mentions_none(tmp_path: Path) -> None:
    path = put(tmp_path / "bench-v5p" / "host1.xplane.pb")
    found = open_logdir(str(path))
    assert names(found) == ["bench-v5p"]
    assert found.searched == (f"opened only {path}",)


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
    assert (error.code, error.exit_code) == ("not_a_profile", EXIT_NOT_FOUND)
    assert "README.md is a text, not a profile." in error.sentence
    error = refused(put(tmp_path / "zeros", bytes(9)))
    assert (error.code, error.exit_code) == ("not_found", EXIT_NOT_FOUND)
    assert "zeros is not a profile" in error.sentence


@pytest.mark.parametrize("name", ["jit_step(42).hlo_proto.pb", "ALL_HOSTS.op_stats_v2.pb", "cache_version.txt"])
def test_a_file_beside_a_profile_opens_its_folder(tmp_path: Path, name: str) -> None:
    found = open_logdir(str(put(run_folder(tmp_path, hosts=["host0", "host1"]) / name)))
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
