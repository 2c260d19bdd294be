"""Every reader stays within the memory and the steps that a file of that size may take, on the worst input of its kind.

Each input is read in a process of its own, which says how much its memory has grown at most.
"""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.files.riegeli import Writer, written
from tests.support.files.wire import varint
from tpuprof.parsers.base.budget import MEMORY_FLOOR, inflated_room, memory_room
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

SECONDS = 100
"""So long a reader may take before it counts as one that does not end; it takes some seconds at most."""

READ = """
import gc, resource, sys
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.pprof.messages import read_pprof
from tpuprof.parsers.formats.hlo.files import find_hlo_files, read_hlo_file
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.formats.xspace.riegeli import merge
from tpuprof.parsers.formats.xspace.chrome import translate
from tpuprof.parsers.files.archives import unpacked
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.session import Session
kind, path = sys.argv[1:]
def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
before = most()
try:
    if kind == "pprof":
        read_pprof(path)
    elif kind == "hlo":
        read_hlo_file(find_hlo_files(path)[0])
    elif kind == "archive":
        unpacked(path)
    elif kind == "overview":
        Session(open_logdir(path).find_run(None)).page(OVERVIEW)
    else:
        for plane in Trace.open(path).planes:
            plane.event_metadata, plane.stat_metadata
            for line in plane.lines:
                line.events()
except ProfileError as error:
    print(error.sentence, file=sys.stderr)
print(most() - before)
"""

OVERHEAD = 96 << 20
"""Bytes that a reader takes at any size: modules, windows, buffers of libraries."""


def _field(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def pprof_of_samples() -> bytes:
    """Two million samples of two bytes each."""
    head = _field(1, b"\x08\x01\x10\x02") + _field(6, b"") + _field(6, b"space") + _field(6, b"bytes")
    return gzip.compress(head + _field(2, b"") * 2_000_000)


def pprof_of_frames() -> bytes:
    """Samples with a million frames each, all of one location."""
    head = _field(1, b"\x08\x01\x10\x02") + _field(6, b"") + _field(6, b"space") + _field(6, b"bytes")
    return gzip.compress(head + _field(2, _field(1, b"\x01" * 1_000_000)) * 3)


def pprof_of_lines() -> bytes:
    """Stacks of a location with many lines, each of which is a frame."""
    head = _field(1, b"\x08\x01\x10\x02") + _field(6, b"") + _field(6, b"space") + _field(6, b"bytes")
    location = _field(4, b"\x08\x01" + _field(4, b"") * 20_000)
    return gzip.compress(head + location + _field(2, _field(1, b"\x01" * 300_000)))


def hlo_of_instructions() -> bytes:
    """A module with as many empty instructions as there is room for."""
    return gzip.compress(_field(1, _field(3, _field(2, b"") * 900_000)))


def gzip_of_planes() -> bytes:
    return gzip.compress(_field(1, b"") * 8_000_000)


def gzip_of_lines() -> bytes:
    return gzip.compress(_field(1, _field(2, b"/device:TPU:0") + _field(3, b"") * 4_000_000))


def gzip_of_metadata() -> bytes:
    return gzip.compress(_field(1, _field(2, b"/device:TPU:0") + _field(4, b"") * 4_000_000))


def gzip_of_threads() -> bytes:
    """A host's threads with one event each."""
    event = _field(4, b"\x08\x01\x10\x01\x18\x05")
    threads = (_field(3, b"\x08" + varint(number) + _field(2, b"t%d" % number) + event) for number in range(60_000))
    return gzip.compress(_field(1, _field(2, b"/host:CPU") + b"".join(threads)))


def trace_of_events() -> bytes:
    event = json.dumps({"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "name": "a", "args": {"b": 1}})
    return gzip.compress(b'{"traceEvents":[' + b",".join([event.encode()] * 200_000) + b"]}")


def trace_of_threads() -> bytes:
    events = (
        b'{"ph":"X","pid":1,"tid":%d,"ts":1,"dur":1,"name":"a%d"}' % (number, number) for number in range(200_000)
    )
    return gzip.compress(b'{"traceEvents":[' + b",".join(events) + b"]}")


def riegeli_of_records() -> bytes:
    """A simple chunk with a million empty records."""
    sizes = bytes(1 << 20)
    packed = varint(len(sizes)) + brotli.compress(sizes)
    writer = Writer()
    writer.chunk(b"r", b"b" + varint(len(packed)) + packed + varint(0) + brotli.compress(b""), 1 << 20, 0)
    return bytes(writer.data)


def riegeli_of_fields() -> bytes:
    """Two records of one plane with as many empty entries as there is room for."""
    plane = _field(1, _field(2, b"/device:TPU:0") + _field(4, b"") * 2_000_000)
    return bytes(written([plane, plane], "brotli"))


def riegeli_of_collisions() -> bytes:
    """Records whose entries have the ids of others, each with a name of its own."""
    records = []
    for record in range(2):
        space = XSpace()
        plane = space.planes.add(name=b"/device:TPU:0")
        for key in range(1, 6_000):
            plane.event_metadata[key].name = b"%d %d" % (record, key)
        records.append(space.SerializeToString())
    return bytes(written(records, "none"))


def _header(kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def tar_of_pax_records() -> bytes:
    """Headers of records without an equals sign, which a search goes through from each of them on."""
    size = 1 << 16
    body = (b"9 aaaaaa\n" * size)[:size]
    return gzip.compress((_header(b"x", size) + body) * 100)


def tar_of_long_names() -> bytes:
    size = 1 << 20
    return gzip.compress((_header(b"L", size) + b"a" * size) * 60)


def tar_of_files() -> bytes:
    """Empty files of one name."""
    return gzip.compress(_header(b"0", 0) * 30_000)


def zip_of_zeros() -> bytes:
    """A zip whose only member is a gigabyte of zeros."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("host.xplane.pb", "w") as member:
        for _ in range(256):
            member.write(bytes(1 << 20))
    return out.getvalue()


WORST: dict[str, tuple[str, str, Callable[[], bytes]]] = {
    make.__name__: (kind, name, make)
    for kind, name, make in (
        ("pprof", "memory.prof", pprof_of_samples),
        ("pprof", "memory.prof", pprof_of_frames),
        ("pprof", "memory.prof", pprof_of_lines),
        ("hlo", "m.hlo_proto.pb.gz", hlo_of_instructions),
        ("xspace", "host.xplane.pb.gz", gzip_of_planes),
        ("xspace", "host.xplane.pb.gz", gzip_of_lines),
        ("xspace", "host.xplane.pb.gz", gzip_of_metadata),
        ("overview", "host.xplane.pb.gz", gzip_of_threads),
        ("xspace", "host.trace.json.gz", trace_of_events),
        ("xspace", "host.trace.json.gz", trace_of_threads),
        ("xspace", "host.xplane.riegeli", riegeli_of_records),
        ("xspace", "host.xplane.riegeli", riegeli_of_fields),
        ("xspace", "host.xplane.riegeli", riegeli_of_collisions),
        ("archive", "profile.tar.gz", tar_of_pax_records),
        ("archive", "profile.tar.gz", tar_of_long_names),
        ("archive", "profile.tar.gz", tar_of_files),
        ("archive", "profile.zip", zip_of_zeros),
    )
}


@pytest.mark.parametrize("name", WORST)
def test_a_reader_stays_within_the_budget(name: str, tmp_path: Path) -> None:
    kind, file, make = WORST[name]
    path = tmp_path / file
    path.write_bytes(make())
    command = [sys.executable, "-c", READ, kind, str(path)]
    done = subprocess.run(command, capture_output=True, timeout=SECONDS, env={"HOME": str(tmp_path)}, check=False)
    assert done.returncode == 0, done.stderr.decode()
    grown = int(done.stdout)
    assert grown <= memory_room(path.stat().st_size) + OVERHEAD, f"{path.stat().st_size:,} bytes: {grown >> 20:,} MiB"


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 20))
def test_the_room_grows_with_the_file_and_never_falls(size: int, more: int) -> None:
    assert inflated_room(size) <= inflated_room(size + more)
    assert MEMORY_FLOOR <= memory_room(size) <= memory_room(size + more)
