"""Packed files: what they hold is bounded by their size, looked at first, unpacked once, and stood in for."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.build import PlaneBuilder, tpu_plane
from tests.support.files.chrome import events_of, packed, xprof_trace
from tests.support.files.riegeli import written
from tpuprof.parsers.base.budget import inflated_room
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace import packed as packed_module
from tpuprof.parsers.formats.xspace.source import FileSource
from tpuprof.parsers.formats.xspace.trace import Trace


def profile(count: int = 3) -> XSpace:
    """A core with some ops."""
    space = XSpace()
    tpu_plane(
        space, 0, [(f"fusion.{at}", "loop fusion", at * 10, 5) for at in range(count)], modules=[("jit_f(1)", 0, 99)]
    )
    return space


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes of files are read, one entry a read."""
    sizes: list[int] = []
    original = FileSource.read

    def counting(self: FileSource, offset: int, length: int) -> bytes:
        data = original(self, offset, length)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(FileSource, "read", counting)
    return sizes


def bomb(first: bytes) -> bytes:
    """A gzip of these bytes and 600 MiB of zeros, of which one MiB is compressed: the others are the same block."""
    packer, zeros = zlib.compressobj(1, wbits=-15), bytes(1 << 20)
    begin = packer.compress(first) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    check = zlib.crc32(first)
    for _ in range(600):
        check = zlib.crc32(zeros, check)
    head, size = b"\x1f\x8b\x08" + bytes(6) + b"\xff", len(first) + (600 << 20)
    return head + begin + block * 600 + packer.flush() + check.to_bytes(4, "little") + size.to_bytes(4, "little")


@pytest.mark.parametrize("first", [b"", b"\x00", b"\x7fELF", b"[5, ", b"no profile", b"\x0b"])
def test_a_gzip_of_something_else_is_not_inflated(first: bytes, tmp_path: Path, reads: list[int]) -> None:
    path = tmp_path / "bomb.xplane.pb.gz"
    path.write_bytes(bomb(first))
    tracemalloc.start()
    with pytest.raises(ProfileError) as caught:
        Trace.open(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert caught.value.code == "corrupt"
    assert sum(reads) < 1 << 20 < path.stat().st_size
    assert peak < 6 << 20


@pytest.mark.parametrize("end", [".xplane.pb.gz", ".trace.json.gz"])
def test_a_gzip_that_begins_well_grows_to_a_bound(end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory it takes a step, and what is kept in memory of what is inflated."""
    monkeypatch.setattr(packed_module, "inflated_room", lambda size: inflated_room(size, 4 << 20))
    monkeypatch.setattr("tpuprof.parsers.formats.xspace.spool.IN_MEMORY", 1 << 20)
    monkeypatch.setattr("tpuprof.parsers.formats.xspace.spool.Spool.__init__.__defaults__", (1 << 20,))
    data = (
        profile().SerializeToString() if end.startswith(".xplane") else xprof_trace(profile()).removesuffix(b"},{}]}")
    )
    text = b'},{"a":"' + b" " * (1 << 20) + b'"'
    fill = b"\x22\x80\x80\x80\x7f" + b" " * (80 << 20) if end.startswith(".xplane") else text * 80
    path = tmp_path / f"h{end}"
    path.write_bytes(gzip.compress(data + fill, mtime=0))
    tracemalloc.start()
    trace = Trace.open(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    said = " ".join(problem.sentence for problem in trace.losses)
    assert "the gzip stream grows past 200 times its size; the rest is not read" in said
    assert len([event for event in events_of(trace.planes[0]) if event[0] == "XLA Ops"]) == 3
    assert peak < 40 << 20
    assert path.stat().st_size < 100_000


def test_a_file_is_unpacked_once_and_again_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = packed_module._unpack

    def counting(source: FileSource, head: bytes) -> object:
        calls.append(source.name)
        return original(source, head)

    monkeypatch.setattr(packed_module, "_unpack", counting)
    paths = [tmp_path / name for name in ("a.trace.json.gz", "b.trace.json", "c.xplane.pb.gz", "d.xplane.riegeli")]
    contents: list[Callable[[XSpace], bytes]] = [
        lambda space: packed(xprof_trace(space)),
        xprof_trace,
        lambda space: packed(space.SerializeToString()),
        lambda space: bytes(written([space.SerializeToString()])),
    ]
    for path, content in zip(paths, contents, strict=True):
        for count in (3, 5):
            path.write_bytes(content(profile(count)))
            opened = [Trace.open(str(path)) for _ in range(3)]
            opened[0].close()
            for trace in opened[1:]:
                assert sum(event[0] == "XLA Ops" for event in events_of(trace.planes[0])) == count
    assert calls == [str(path) for path in paths for _ in range(2)]
    first = Trace.open(str(paths[0]))
    Trace.open(str(paths[1]))  # takes its place
    assert sum(event[0] == "XLA Ops" for event in events_of(first.planes[0])) == 5


@pytest.mark.parametrize(
    "content", [b"", b"\x0a", b"\x0a\xff\xff\x03\x08\x02\x12\x0d/device:TPU:0", b"\xef\xbf\xbd" * 50]
)
@pytest.mark.parametrize("end", [".xplane.pb", ".xplane.pb.gz"])
def test_a_trace_stands_in_for_a_profile_that_is_none(end: str, content: bytes, tmp_path: Path) -> None:
    path, other = tmp_path / f"h{end}", tmp_path / "h.trace.json.gz"
    path.write_bytes(packed(content) if end.endswith(".gz") else content)
    with pytest.raises(ProfileError) as alone:
        Trace.open(str(path))
    for nothing in (b"", b"\x1f\x8b\x08", packed(b"{}"), packed(profile().SerializeToString())):
        other.write_bytes(nothing)
        with pytest.raises(ProfileError) as caught:
            Trace.open(str(path))
        assert caught.value.sentence == alone.value.sentence
    other.write_bytes(packed(xprof_trace(profile())))
    trace = Trace.open(str(path))
    assert sum(event[0] == "XLA Ops" for event in events_of(trace.planes[0])) == 3
    (problem,) = trace.problems
    assert problem.sentence.startswith(
        f"{alone.value.sentence.rstrip('.')}; the file beside it is read instead: h.trace"
    )
    path.write_bytes(profile(7).SerializeToString())
    assert Trace.open(str(path)).problems == ()


@pytest.mark.parametrize("name", ["h.trace.json.gz", "h.trace.json", "anything"])
def test_a_trace_is_known_by_its_first_bytes(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    text = xprof_trace(profile())
    for data in (text, b"\xef\xbb\xbf" + text, b"\n" + text, packed(text), packed(text[:900]) + packed(text[900:])):
        path.write_bytes(data)
        trace = Trace.open(str(path))
        assert [plane.name for plane in trace.planes] == ["/device:TPU:0"]
        assert [problem.code for problem in trace.problems] == ["viewer_trace"]


def test_a_plane_as_long_as_a_brace_is_no_json(tmp_path: Path) -> None:
    """Its length is the byte of ``{``, which sends it the longer way, and it comes back as it is."""
    for size in (0x7B, 0x5B, 0x20, 0x0A):
        space = XSpace()
        PlaneBuilder(space, "x" * (size - 2))
        data = space.SerializeToString()
        assert data[:2] == bytes([0x0A, size])
        path = tmp_path / "h.xplane.pb"
        path.write_bytes(data)
        assert [len(plane.name) for plane in Trace.open(str(path)).planes] == [size - 2]


@pytest.mark.parametrize("kind", ["trace", "profile"])
def test_a_damaged_gzip_says_what_is_missing(kind: str, tmp_path: Path) -> None:
    chance = random.Random(3)
    space = profile(4000)
    data = packed(xprof_trace(space) if kind == "trace" else space.SerializeToString())
    path = tmp_path / "h"
    outcomes = set()
    for _ in range(40):
        damaged = bytearray(data)
        if chance.random() < 0.5:
            del damaged[chance.randrange(200, len(damaged)) :]
        else:
            damaged[chance.randrange(10, len(damaged) - 8)] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            whole = zlib.decompress(bytes(damaged), wbits=31) is not None
        except zlib.error:
            whole = False
        try:
            said = " ".join(problem.sentence for problem in Trace.open(str(path)).losses)
        except ProfileError as error:
            outcomes.add(error.code)
            continue
        outcomes.add("read")
        assert whole or f"bytes of {kind}" in said
    assert outcomes == {"read", "corrupt"} or outcomes == {"read"}
