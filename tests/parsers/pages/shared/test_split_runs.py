"""Hosts of one capture in several folders are recognised, opened as one, and never compared as before and after."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import present, write_run
from tests.support.composed.engines import Engine, engines_space
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.text import PATHS
from tpuprof.parsers.files.logdir import Logdir, Run, open_logdir
from tpuprof.parsers.pages.hosts.hosts import HOSTS
from tpuprof.parsers.pages.shared.split_runs import (
    are_of_one_capture,
    capture_words,
    refuse_one_capture,
    split_words,
    whole_capture,
    whole_captures,
)
from tpuprof.parsers.session.session import Session


def split(root: Path, *seconds: int, devices: int = 4, host: str = "node-{}", program: str = "jit_step") -> Logdir:
    """Hosts of two cores, each in a folder of its own."""
    for at, second in enumerate(seconds):
        engine = Engine(program.format(at), 2, (30 + 20 * at,), 100, devices=devices, ends_ms=60)
        name = f"2026_05_06_04_{second // 60:02}_{second % 60:02}"
        write_run(root, name, **{host.format(at): engines_space([engine])})
    return open_logdir(root)


def test_hosts_in_two_folders_are_one_run(tmp_path: Path) -> None:
    logdir = split(tmp_path, 36, 38)
    whole = present(whole_capture(logdir.runs[0]))
    names = [run.name for run in logdir.runs]
    assert (whole.name, [file.host for file in whole.hosts]) == ("+".join(names[::-1]), ["node-0", "node-1"])
    folder = f"{tmp_path}/plugins/profile"
    opened = [
        logdir.find_run(whole.name),
        open_logdir(f"{folder}/*").find_run(),
        open_logdir(PATHS.join(run.path for run in logdir.runs)).find_run(),
        *whole_captures(logdir.runs),
    ]
    assert opened == [whole] * 4
    page = Session(whole).page(HOSTS)
    assert (len(page.cores), page.straggler, {row.group for row in page.cores}) == (4, 1, {1})
    assert all(len(split_words(run)) == 1 and whole.name in split_words(run)[0] for run in logdir.runs)
    assert split_words(whole) == []
    assert [whole.name in sentence for sentence in capture_words(logdir.runs)] == [True]
    with pytest.raises(ProfileError, match="one capture"):
        refuse_one_capture(*logdir.runs)


@pytest.mark.parametrize(
    "differs",
    [{"devices": 2}, {"devices": 0}, {"host": "node"}, {"program": "jit_step_{}"}, {"devices": 3}],
    ids=["all shown", "no collective", "same host", "other program", "too few devices"],
)
def test_runs_that_do_not_complete_each_other_stay_apart(differs: dict[str, int | str], tmp_path: Path) -> None:
    runs = split(tmp_path, 36, 38, **differs).runs  # type: ignore[arg-type]
    assert list(map(whole_capture, runs)) == [None, None] and not are_of_one_capture(*runs)
    assert whole_captures(runs) == list(runs) and capture_words(runs) == []
    refuse_one_capture(*runs)


def test_each_host_of_a_capture_is_told_with_its_folder(tmp_path: Path) -> None:
    runs = split(tmp_path, 38, 36, 41, devices=6).runs
    for run in runs:
        places = [f"{other.hosts[0].host} in {other.name}" for other in runs if other is not run]
        assert all(place in split_words(run)[0] for place in places) and "devices of all of them" in split_words(run)[0]


@given(st.lists(st.integers(0, 3000), min_size=2, max_size=4, unique=True))
def test_only_folders_from_about_the_same_time_are_beside_each_other(
    tmp_path_factory: pytest.TempPathFactory, seconds: list[int]
) -> None:
    runs: tuple[Run, ...] = split(tmp_path_factory.mktemp("runs"), *seconds, devices=2 * len(seconds)).runs
    for run in runs:
        near = {other.name for other in runs if other is not run and abs(other.time - run.time) <= 120}
        assert {other.name for other in run.beside} == near
