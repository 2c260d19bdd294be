"""Files that are no profiles, by their first bytes and names."""

from __future__ import annotations

import gzip
import marshal
import pickle
import struct
from pathlib import Path

import pytest

from tests.demo.profile.hlo_module import Module
from tests.support.files.dumps import DUMP
from tests.support.files.wire import field
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE
from tpuprof.parsers.files.file_kinds import known, may_be_hlo, recognised
from tpuprof.parsers.files.folder_search import BEGIN_BYTES
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.files.places import is_archive
from tpuprof.tui.demo import demo_path

PACKET = field(1, b"\x18\x00" + field(6, b"\x0a\x04\x08\x06\x10\x09") + b"\x50\x01" + field(36, b"\x08\x01"))
RECORD = struct.pack("<Q", 24) + bytes(4) + b"\x09\x00\x00\x00\x00\x00\x00\xd8A\x1a\x0dbrain.Event:2" + bytes(4)
PROFILE = gzip.decompress(Path(demo_path()).read_bytes())
PROTO = Module("jit_eval_step").proto_bytes

NAMED = [
    ("events.bin", RECORD, "a TensorBoard event file"),
    ("trace.pftrace", b"", "a trace in Perfetto's binary format"),
    ("trace.bin", PACKET * 20, "a trace in Perfetto's binary format"),
    ("trace.bin.gz", gzip.compress(PACKET * 20, mtime=0), "a trace in Perfetto's binary format"),
    ("host.trace", field(1, field(1, b"\x08\x02") + b"\x50\x01"), "a trace in Perfetto's binary format"),
    ("memory.prof", marshal.dumps({("train.py", 3, "step"): (1, 1, 0.5, 0.5, {})}), "a dump of Python's cProfile"),
    ("calls", marshal.dumps({("~", 0, "<built-in>"): (1, 1, 0.5, 0.5, {})}), "a dump of Python's cProfile"),
    *(
        (f"h0.xplane.pb{end}", PROFILE[:500], "a copy of h0.xplane.pb that is not finished, or broke off")
        for end in ("_.gstmp", ".gstmp", ".part", ".crdownload", ".tmp")
    ),
    ("module.hlo.pb.xz", b"\xfd7zXZ\0abc", "a compiled HLO module packed with xz"),
    ("h0.xplane.pb.zst", b"\x28\xb5\x2f\xfdabc", "a profile packed with zstd"),
    ("host.overview_page.pb", b"\x0a\x03abc", "one of the pages that TensorFlow computed"),
    ("host.trace", b"\x0a\x03abc", "one of the traces of TensorFlow 2.1 or older"),
    ("x-memory-usage-report.pb", b"\x0a\x03abc", "XLA's memory usage report as a proto"),
    ("snapshot.pickle", pickle.dumps({"segments": []}), "a Python pickle, such as PyTorch's memory snapshots"),
    ("logs.tar.xz", b"\xfd7zXZ\0abc", "a file packed with xz"),
    ("page", b"\n <!DOCTYPE html><html>", "a web page"),
    ("host0", b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
    ("report.sqlite", b"SQLite format 3\0", "a SQLite database"),
]


@pytest.mark.parametrize(("name", "content", "what"), NAMED)
def test_what_nothing_here_reads_is_named_with_what_helps(tmp_path: Path, name: str, content: bytes, what: str) -> None:
    found = known(name, content[:BEGIN_BYTES])
    assert found is not None and (found.what, found.reader) == (what, "none")
    error = found.error(str(tmp_path / name))
    assert error.exit_code == EXIT_UNREADABLE
    assert error.sentence.endswith(f"{name} is {what}, not a profile.")
    assert len(error.hint) > 10 and "{}" not in error.hint


@pytest.mark.parametrize(
    ("name", "content", "reader"),
    [
        ("logs.zip", DUMP.read_bytes(), "archive"),
        ("train.log", b"step 1 loss 3.2\n\x1b[31merror\x1b[0m", "log"),
        ("train.log.gz", gzip.compress(b"step 1 loss 3.2\n", mtime=0), "log"),
        ("train.out", "step 1\r\n".encode("utf-16"), "log"),
        ("train.err", "caf\u00e9 ".encode() * 2000, "log"),
        ("step", PROTO, "hlo"),
        ("step.gz", gzip.compress(PROTO, mtime=0), "hlo"),
        ("step.txt", b"HloModule jit_step, is_scheduled=true", "hlo"),
        ("assigned", b"BufferAssignment:\nallocation 0: size 4", "hlo"),
    ],
)
def test_what_is_read_otherwise(name: str, content: bytes, reader: str) -> None:
    found = known(name, content[:BEGIN_BYTES])
    assert found is not None and found.reader == reader
    assert found.error(name).exit_code == EXIT_NOT_FOUND


@pytest.mark.parametrize(
    "content", [PROFILE, gzip.compress(PROFILE, mtime=0), b"", bytes(99), b'{"traceEvents": []}', b"\x0a\x00" * 9]
)
def test_what_may_be_a_profile_is_left_to_its_reader(content: bytes) -> None:
    assert known("host0", content[:BEGIN_BYTES]) is None


def test_a_profile_under_any_name_is_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(PROFILE)
    assert recognised(str(path)) is None
    assert len(open_logdir(str(path)).runs[0].hosts) == 1


def test_names_that_tell_of_a_profile_are_not_looked_into(tmp_path: Path) -> None:
    path = tmp_path / "host0.xplane.pb"
    path.write_bytes(b"text")
    assert recognised(str(path)) is None
    assert recognised(str(tmp_path)) is None
    assert recognised(str(tmp_path / "nowhere")) is None
    assert not is_archive(str(path))


def test_folders_of_modules_are_told_by_names(tmp_path: Path) -> None:
    assert not may_be_hlo(str(tmp_path))
    (tmp_path / "module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt").write_text("")
    assert may_be_hlo(str(tmp_path))
