"""Disks that fail: at every read an error, a short answer or a file that has changed; at every write a full disk."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.fuzz.core import starved
from tests.fuzz.targets import TARGETS
from tests.fuzz.trial import Outcome, attempt
from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE

SEEDS = {target.name: target.seeds for target in TARGETS}
FILES = {
    "xspace": ("host0.xplane.pb", 1, ["report", "overview", "{}", "--format", "json", "--no-cache"]),
    "riegeli": ("host0.xplane.riegeli", 1, ["report", "ops", "{}", "--format", "json"]),
    "pprof": ("memory.prof", 0, ["report", "live-arrays", "{}", "--format", "json"]),
    "pprof, compressed": ("memory.prof", 2, ["report", "live-arrays", "{}", "--format", "json"]),
    "hlo": ("module_1.jit_step.hlo_proto.pb", 0, ["report", "memory", "{}", "--format", "json"]),
}
WRITE = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
from tpuprof.tui.cli.main import main
sys.exit(main(sys.argv[2:]))
"""
"""Runs a command where no file may grow beyond so many bytes: the system refuses the write that would."""

Read = Callable[[int, int, int], bytes]


def refused(_: int, __: int, ___: int) -> bytes:
    """The disk or the network fails."""
    raise OSError(errno.EIO, "Input/output error")


def short(descriptor: int, size: int, offset: int) -> bytes:
    """Half of what was asked for, as a read may answer."""
    return PREAD(descriptor, max(size // 2, 1), offset)


def gone(_: int, __: int, ___: int) -> bytes:
    """The file has been cut meanwhile."""
    return b""


def other(descriptor: int, size: int, offset: int) -> bytes:
    """The file has been written over meanwhile."""
    return bytes(byte ^ 0x55 for byte in PREAD(descriptor, size, offset))


PREAD: Read = os.pread


class Faulty:
    """`os.pread` that does something else at one of its calls."""

    def __init__(self, at: int, fault: Read) -> None:
        self.calls = 0
        self._at, self._fault = at, fault

    def __call__(self, descriptor: int, size: int, offset: int) -> bytes:
        self.calls += 1
        return (self._fault if self.calls == self._at else PREAD)(descriptor, size, offset)


def with_fault(at: int, fault: Read, words: Sequence[str]) -> tuple[Outcome, int]:
    """What came of a command with a fault at one of its reads, and how many reads there were."""
    faulty = Faulty(at, fault)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pread", faulty)
        return attempt(words), faulty.calls


@pytest.mark.parametrize("name", FILES)
def test_a_fault_at_any_read(name: str, tmp_path: Path) -> None:
    file, seed, command = FILES[name]
    path = tmp_path / file
    path.write_bytes(SEEDS[name.partition(",")[0]]()[seed])
    words = [word.replace("{}", str(path)) for word in command]
    whole, calls = with_fault(0, refused, words)
    assert whole.kind == "read" and calls > 1
    for at in range(1, calls + 1):
        assert with_fault(at, short, words)[0].kind == "read", f"a short answer at read {at} of {calls}"
        for fault in (refused, gone, other):
            outcome, _ = with_fault(at, fault, words)
            assert not outcome.is_fault, f"{fault.__name__} at read {at} of {calls}: {outcome}"


def test_an_allocation_that_fails_in_the_compiled_core() -> None:
    """In a process of its own, which a crash would end."""
    pytest.importorskip("_testcapi", reason="this interpreter can't fail its allocators")
    pytest.importorskip("tpuprof.parsers.formats.xspace.core._core", reason="the compiled core is not built")
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.core.starved", "2000"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.removeprefix(starved.MARKER)) > 2000


def limited(most_bytes: int, *words: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a command where no file may grow beyond so many bytes; Python itself would keep half a module compiled."""
    command = [sys.executable, "-B", "-c", WRITE, str(most_bytes), *words]
    return subprocess.run(command, capture_output=True, env={**os.environ, **env}, check=False, timeout=60)


def test_a_report_is_whole_or_not_there(tmp_path: Path) -> None:
    profile, report = tmp_path / "in" / "host0.xplane.pb", tmp_path / "report.json"
    profile.parent.mkdir()
    profile.write_bytes(SEEDS["xspace"]()[1])
    words = ["report", "ops", str(profile), "--format", "json", "--no-cache", "--output", str(report)]
    assert limited(1 << 20, *words).returncode == EXIT_OK
    size = report.stat().st_size
    before = report.read_bytes()
    for most in (0, 1, size // 2, size - 1):
        done = limited(most, *words)
        assert done.returncode == EXIT_USAGE and done.stdout == b""
        assert done.stderr.strip() and b"Traceback" not in done.stderr
        assert report.read_bytes() == before  # the old one stands
        assert sorted(os.listdir(tmp_path)) == ["in", "report.json"]


def test_a_cache_that_can_not_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    """Neither the report nor the next one is another."""
    profile = tmp_path / "host0.xplane.pb"
    profile.write_bytes(SEEDS["xspace"]()[1] + b"\x82\x7d" + b"\xff\xff\xbf\x01" + bytes((3 << 20) - 1))  # a large one
    os.utime(profile, (1, 1))
    words = ["report", "ops", str(profile), "--format", "json"]
    cache = tmp_path / "cache"
    texts = {limited(most, *words, XDG_CACHE_HOME=str(cache)).stdout for most in (0, 100, 2000, 1 << 20, 0)}
    assert len(texts) == 1 and next(iter(texts))


def test_what_can_not_be_printed_is_said() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "tpuprof.tui", "report", "runs", "demo"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == EXIT_USAGE
    assert b"Standard output" in done.stderr and b"Traceback" not in done.stderr
