"""Tests of `parsers.files.logdir`: any path leads to its runs, which are found by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.parsers.files.layouts import LAYOUTS, hosts, lay_out, names, put, refused, run_folder
from tests.support.golden import check_golden
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, Problem, ProfileError
from tpuprof.parsers.files.folder_search import SearchLimits
from tpuprof.parsers.files.logdir import Logdir, open_logdir

# --- what is found


def told(query: str) -> Iterator[str]:
    """All that is said of a path: its runs with their hosts and problems, and how they were searched for."""
    try:
        found = open_logdir(query)
    except ProfileError as error:
        yield f"refused, {error.code}, exit code {error.exit_code}: {error.sentence} ({error.hint})"
        return
    for run in found.runs:
        yield f"run {run.name}, {run.path}, {run.size_bytes} bytes, written at {run.modified:.0f}"
        for host in run.hosts:
            yield f"    host {host.host}, {host.path}, {host.size_bytes} bytes{', packed' * host.packed}"
        yield from told_problems(run.problems, "    ")
    yield from told_problems(found.problems)
    yield from (f"searched: {line}" for line in found.searched)


def told_problems(problems: Iterable[Problem], indent: str = "") -> Iterator[str]:
    for each in problems:
        yield f"{indent}{each.code}, {each.subject}: {each.sentence}{f' ({each.hint})' if each.hint else ''}"


def test_what_is_found_is_what_it_was_word_by_word(tmp_path: Path) -> None:
    """In each of the layouts, which are named by what they show."""
    lines: list[str] = []
    for number, (name, layout) in enumerate(LAYOUTS.items()):
        folder = tmp_path / str(number) / "here"
        folder.mkdir(parents=True)
        lay_out(folder, layout["files"])
        for query in layout["queries"]:
            lines += ["", f"# {name}: {query}".replace("\0", " and ")]
            lines += [line.replace(str(folder), "DIR") for line in told(query.replace("DIR", str(folder)))]
    assert all(line.isprintable() for line in lines)
    check_golden(Path(__file__).with_name("layouts.txt"), "".join(f"{line}\n" for line in lines[1:]))


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


# --- single files


def test_a_file_in_the_home_folder_names_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path / "mine.xplane.pb")
    assert names(open_logdir("~/mine.xplane.pb")) == ["mine"]


# --- order and names of runs


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


# --- globs


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
