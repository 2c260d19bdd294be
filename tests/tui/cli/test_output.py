"""What headless commands write arrives to the byte, or one sentence says why it does not, and no half file is left."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.build import host_bytes, write_run
from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE, ProfileError
from tpuprof.tui.report import output

FAULTS = """
import json, os, resource, signal, sys
from tpuprof.tui.cli.main import main
import numpy, google.protobuf.message
for place, fault, words in json.loads(sys.argv[1]):
    reader, writer = os.pipe()
    os.set_blocking(writer, fault != "does not block")
    child = os.fork()
    if not child:
        os.close(reader)
        os.dup2(os.open(f"{place}.err", os.O_WRONLY | os.O_CREAT), 2)
        name = {"full": "/dev/full", "whole": place, "limit": place}.get(fault)
        os.dup2(writer if name is None else os.open(name, os.O_WRONLY | os.O_CREAT), 1)
        os.close(writer)
        if fault in ("limit", "file"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
        sys.exit(main([*words, *(["--output", f"{place}.file"] if fault == "file" else [])]))
    os.close(writer)
    pieces = []
    while fault != "closed" and (piece := os.read(reader, 5000)):
        pieces.append(piece)
        if fault == "stops":
            os.kill(child, signal.SIGSTOP)
            os.kill(child, signal.SIGCONT)
    os.close(reader)
    if pieces:
        with open(place, "wb") as file:
            file.write(b"".join(pieces))
    with open(f"{place}.code", "w") as file:
        file.write(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""
"""Runs each call in a copy of its own of a process that has imported what takes longest, with a fault of its output."""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_every_byte_arrives_or_a_sentence_says_why(unbuffered: str, tmp_path: Path) -> None:
    logs = write_run(tmp_path / "logs", "run", host0=host_bytes(count=600))
    events = ("report", "timeline", str(logs), "--from", "0", "--to", "1000", "--limit", "0", "--format")
    forms = ("text", "csv", "json", "md", "html", "perfetto")
    calls = {form: (*events, form) for form in forms} | {"help": ("report", "--help")}
    faults = ("whole", "full", "limit", "does not block", "stops", "closed", "file")
    asked = [
        (f"{form} {fault}", fault, words)
        for form, words in calls.items()
        for fault in faults
        if (form, fault) != ("help", "file")
    ]
    command = [sys.executable, "-W", "error", "-c", FAULTS, json.dumps(asked)]
    env = os.environ | {"PYTHONUNBUFFERED": unbuffered, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "110"}
    subprocess.run(command, env=env, cwd=tmp_path, check=True, stdin=subprocess.DEVNULL)
    why = {"full": "no space left on device", "limit": "file too large", "file": "file too large"}
    for place, fault, _ in asked:
        out = (tmp_path / place).read_bytes() if (tmp_path / place).exists() else b""
        whole = (tmp_path / place.replace(fault, "whole")).read_bytes()
        said = [line for line in (tmp_path / f"{place}.err").read_text().splitlines() if not line.startswith("note: ")]
        name = f"{place}.file" if fault == "file" else "Standard output"
        told = [f"{name} can't be written: {why[fault]}.", "try: write it somewhere else"] if fault in why else []
        code = EXIT_USAGE if told else EXIT_OK
        assert (said, int((tmp_path / f"{place}.code").read_text())) == (told, code), place
        assert out == {"limit": whole[:500]}.get(fault, b"" if told or fault == "closed" else whole), place
        assert len(whole) > 1500
    assert not [file.name for file in tmp_path.iterdir() if file.suffix in (".tmp", ".file")]


@settings(max_examples=EXAMPLES)
@given(
    st.lists(st.binary(max_size=200)), st.lists(st.integers(0, 50)), st.sampled_from([None, "EIO", "ENOSPC", "EPIPE"])
)
def test_whatever_the_system_takes_at_once(pieces: list[bytes], takes: list[int], fails: str | None) -> None:
    """0 stands for a descriptor that is not ready; after the last the system fails, or takes all."""
    left, taken = list(takes), bytearray()
    reader, writer = os.pipe()

    def write(_: int, data: memoryview) -> int:
        amount = left.pop(0) if left else len(data)
        if not left and fails is not None:
            raise OSError(getattr(errno, fails), os.strerror(getattr(errno, fails)))
        if not amount:
            raise BlockingIOError
        taken.extend(data[:amount])
        return min(amount, len(data))

    def produce(write: Callable[[bytes], object]) -> None:
        for piece in pieces:
            write(piece)

    with pytest.MonkeyPatch.context() as patch, os.fdopen(writer, "w") as stream:
        patch.setattr(sys, "stdout", stream)
        patch.setattr(output, "_GATHERED", 100)
        patch.setattr("os.write", write)
        try:
            output.stream_stdout(produce)
        except output.NobodyReads:
            assert fails == "EPIPE"
        except ProfileError as error:
            assert fails in ("EIO", "ENOSPC") and error.exit_code == EXIT_USAGE
        else:
            assert bytes(taken) == b"".join(pieces)
    os.close(reader)
    assert b"".join(pieces).startswith(bytes(taken))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_half_file(number: int, tmp_path: Path) -> None:
    program = "import os, sys\nfrom tpuprof.tui.report.output import stream_file\n"
    program += f"stream_file('new', lambda write: (write(b'x' * 10**6), os.kill(os.getpid(), {number}), write(b'y')))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False)
    assert done.returncode == -number and not list(tmp_path.iterdir())
