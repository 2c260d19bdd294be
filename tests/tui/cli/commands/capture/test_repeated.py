"""Capturing again and again: what stays, what goes, and when it ends."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.build import tpu_plane
from tests.support.servers.profiler_server import FakeProfiler, free_port
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, EXIT_OK, EXIT_USAGE, Cancelled, ProfileError
from tpuprof.parsers.capture.errors import failure
from tpuprof.parsers.capture.files import RunFolder
from tpuprof.parsers.capture.model import CaptureResult, HostCapture
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.tui.cli import main as cli
from tpuprof.tui.cli.arguments.capture import Condition, condition_of, seconds_of
from tpuprof.tui.cli.commands.capture.repeated import repeated, step_time, tried

MS = 10**9


def profile(step_ms: int) -> bytes:
    space = XSpace()
    steps = [(str(n), n * step_ms * MS, (n + 1) * step_ms * MS) for n in range(6)]
    tpu_plane(space, 0, [("fusion.1", "fusion", begin, step_ms * MS // 2) for _, begin, _ in steps], steps=steps)
    return space.SerializeToString()


def captured(logdir: Path, number: int, host: str, data: bytes) -> CaptureResult:
    """A run of a log folder, ``run_001`` for 1, with the profile of one host."""
    run = RunFolder(str(logdir), 0)
    run.name = f"run_{number:03}"
    run.prepare()
    file, name = run.write([host], [data])
    return CaptureResult(str(run.path), (HostCapture("a:1", file, name, 2.0, None),), 2000, 2.0)


class Runs:
    """Captures runs of given step times, one after the other, then is ended by the user."""

    def __init__(self, folder: Path, *steps_ms: int | str) -> None:
        self._logdir, self._folder = folder, folder / "plugins" / "profile"
        self._steps = list(steps_ms)
        self.made = 0
        self.before_the_second: Callable[[], object] = lambda: None

    def __call__(self) -> CaptureResult:
        if self.made == 1:
            self.before_the_second()
        if not self._steps:
            raise KeyboardInterrupt
        step = self._steps.pop(0)
        if isinstance(step, str):
            raise failure(step, "No server.")
        self.made += 1
        return captured(self._logdir, self.made, "host", profile(step))

    def file(self, run: int) -> Path:
        return self._folder / f"run_{run:03}" / "host.xplane.pb"

    @property
    def left(self) -> list[str]:
        return sorted(path.name for path in self._folder.iterdir())


def watch(runs: Runs, keep: int = 0, condition: Condition | None = None) -> tuple[str | None, list[str]]:
    told: list[str] = []
    path = repeated(runs, 1, keep, condition, lambda result: told.append(Path(result.run_path).name), lambda _: None)
    return (None if path is None else Path(path).name), told


def test_the_newest_of_its_own_runs_stay(tmp_path: Path) -> None:
    runs = Runs(tmp_path, 10, 10, 10, 10)
    other = tmp_path / "plugins" / "profile" / "older"
    other.mkdir(parents=True)
    assert watch(runs, keep=2) == (None, ["run_001", "run_002", "run_003", "run_004"])
    assert runs.left == ["older", "run_003", "run_004"]


def test_what_others_put_into_a_run_stays_and_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = Runs(tmp_path, 10, 10)

    def put() -> None:
        for name in ("notes.txt", "other.xplane.pb"):
            (runs.file(1).parent / name).write_text("mine")

    runs.before_the_second = put
    watch(runs, keep=1)
    assert sorted(path.name for path in runs.file(1).parent.iterdir()) == ["notes.txt", "other.xplane.pb"]
    assert "run_001 is kept: it has files" in (told := capsys.readouterr().err) and "notes.txt, other.xpl" in told


@pytest.mark.parametrize("how", ["replaced", "changed", "replaced by the same size", "linked", "folder linked"])
def test_what_is_not_the_very_file_that_it_wrote_stays(tmp_path: Path, how: str) -> None:
    runs = Runs(tmp_path, 10, 10)
    elsewhere = tmp_path / "elsewhere"

    def swap() -> None:
        file, content = runs.file(1), runs.file(1).read_bytes()
        if how == "changed":
            file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        elif how == "folder linked":
            file.parent.rename(elsewhere)
            file.parent.symlink_to(elsewhere)
        else:
            file.rename(elsewhere)  # the file lives on, so that no other one gets its inode
            if how == "linked":
                file.symlink_to(elsewhere)
            else:
                file.write_bytes(content if "same" in how else b"theirs")

    runs.before_the_second = swap
    watch(runs, keep=1)
    assert runs.file(1).is_file() and runs.left == ["run_001", "run_002"]


def test_only_the_run_with_a_slow_step_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = Runs(tmp_path, 100, 104, 96, 118, 130, 90)
    assert watch(runs, condition=condition_of("step>1.2x")) == ("run_005", ["run_005"])
    assert runs.left == ["run_005"] and runs.made == 5
    told = capsys.readouterr().err
    assert "run_001: a step takes 100 ms; not kept" in told and "run_005: a step takes 130 ms, usually 102 ms" in told


def test_a_limit_needs_no_run_before(tmp_path: Path) -> None:
    assert watch(Runs(tmp_path, 300), condition=condition_of("step > 250ms"))[0] == "run_001"


def test_a_failure_in_between_is_told_and_three_in_a_row_end_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = Runs(tmp_path, 10, "no_server", 10, "no_server", "no_server", "no_server", 10)
    with pytest.raises(ProfileError):
        watch(runs)
    assert runs.left == ["run_001", "run_002"]
    assert capsys.readouterr().err.count("No server. The next one in 1 s.") == 3


def test_nothing_at_all_is_cancelled(tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        watch(Runs(tmp_path))


def test_what_may_pass_is_tried_again() -> None:
    codes = ["no_server", "another_session"]
    paused: list[float] = []

    def capture() -> CaptureResult:
        if codes:
            raise failure(codes.pop(0), "Not now.")
        return CaptureResult("x", (), 1, 1.0)

    assert tried(capture, 2, paused.append).run_path == "x" and len(paused) == 2
    codes[:] = ["no_server", "no_server"]
    with pytest.raises(ProfileError):
        tried(capture, 1, paused.append)
    codes[:] = ["disk_full"]
    with pytest.raises(ProfileError):
        tried(capture, 9, paused.append)


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("10m", 600), ("2h", 7200)])
def test_times(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read, text)
        for read, texts in (
            (seconds_of, ("", "0s", "10", "1d", "-1s")),
            (condition_of, ("", "step", "step>0x", "step<1ms", "loss>1x")),
        )
        for text in texts
    ],
)
def test_what_is_no_time_or_condition(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        read(text)


def test_conditions() -> None:
    assert condition_of("step>250ms") == Condition(250 * MS, is_ratio=False)
    assert condition_of("step>2s") == Condition(2000 * MS, is_ratio=False)
    assert not condition_of("step>1.2x").holds(1e12, [])


def test_step_time_of_a_run(tmp_path: Path) -> None:
    result = Runs(tmp_path, 120)()
    assert step_time(result.run_path) == 120 * MS


def test_the_command(tmp_path: Path, call: Call) -> None:
    """On, a snapshot when the step is too long, off."""
    with FakeProfiler(data=profile(300)) as server:
        assert "keeps its last seconds from now on" in call("capture", "--continuous", "on", server.address).err
        words = ["capture", "--snapshot", "--every", "1s", "--when", "step>250ms", server.address]
        out = call(*words, "--logdir", tmp_path, "--no-open").out
        assert Path(out.strip(), "worker-0.xplane.pb").exists() or list(Path(out.strip()).glob("*.xplane.pb"))
        assert cli.main(["capture", "--continuous", "off", server.address]) == EXIT_OK
        assert not server.kept
    assert cli.main(["capture", "--continuous", "on", f"127.0.0.1:{free_port()}"]) == EXIT_CAPTURE_FAILED
    assert cli.main(["capture", "--keep", "3", "localhost:1"]) == EXIT_USAGE
