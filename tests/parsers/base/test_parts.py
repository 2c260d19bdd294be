"""Nonsense in one part of a file leaves the other parts as they are, and costs no more than the file may."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.files.riegeli import Writer
from tests.support.files.wire import field, varint
from tpuprof.parsers.base.budget import _ROOMS, INFLATED_FLOOR, INFLATED_PER_BYTE, Budget, TooLarge
from tpuprof.parsers.files import archives
from tpuprof.parsers.files.archives import unpacked
from tpuprof.parsers.formats.pprof.messages import read_messages
from tpuprof.parsers.formats.xspace.chrome.document import Document
from tpuprof.parsers.formats.xspace.riegeli import records
from tpuprof.parsers.formats.xspace.riegeli.codecs import inflate
from tpuprof.parsers.formats.xspace.riegeli.merge import riegeli_source
from tpuprof.parsers.formats.xspace.riegeli.records import spool_records
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.spool import Spool
from tpuprof.parsers.formats.xspace.trace import Trace

Parts = Sequence[object]
"""Parts in order: a number is a good one of that number, anything else nonsense."""

_WISHES = st.tuples(st.integers(0, 1 << 12), *(st.integers(0, 1 << most) for most in (28, 23, 26)))


@given(st.lists(_WISHES, min_size=1, max_size=30))
def test_parts_take_no_more_than_the_file_may_and_each_what_its_bytes_justify(parts: list[tuple[int, ...]]) -> None:
    size = sum(bytes_ for bytes_, *_ in parts)
    budget, taken = Budget(size, "a"), [0, 0, 0]
    for bytes_, *wish in parts:
        try:
            budget.part(bytes_, size).takes(1, wish[0], *wish[1:])
            taken = [before + more for before, more in zip(taken, wish, strict=True)]
        except TooLarge:
            assert any(more > each * bytes_ for more, (_, each) in zip(wish, _ROOMS.values(), strict=True))
    assert all(sum_ <= floor + each * size for sum_, (floor, each) in zip(taken, _ROOMS.values(), strict=True))


def _chunks(parts: Parts) -> list[int]:
    """Numbers of the good records that are read."""
    writer, inflated = Writer(), 0
    for part in parts:
        if isinstance(part, int):
            writer.simple([b"good %d" % part])
        else:
            writer.chunk(*part)  # type: ignore[misc]

    def counted(code: int, pieces: object, size: int) -> object:
        nonlocal inflated
        for piece in inflate(code, pieces, size):  # type: ignore[arg-type]
            inflated += len(piece)
            yield piece

    room = Spool()
    with mock.patch.object(records, "inflate", counted):
        spans, note = spool_records(MemorySource(bytes(writer.data), "x"), room)
    assert inflated <= 2 * INFLATED_FLOOR + INFLATED_PER_BYTE * len(writer.data)
    assert ("left out" in note) is (not all(isinstance(part, int) for part in parts))
    return [int(room.read(begin, end - begin)[5:]) for begin, end in spans]


def _plane(part: object) -> bytes:
    name = b"/device:TPU:%d" % part if isinstance(part, int) else b""
    return part if isinstance(part, bytes) else field(1, field(2, name) + field(3, field(2, b"XLA Ops")))


def _named(trace: Trace) -> list[int]:
    return [int(plane.name.rpartition(":")[2]) for plane in trace.planes if plane.name]


def _riegeli(parts: Parts) -> list[int]:
    writer = Writer()
    for part in parts:
        writer.simple([_plane(part)])
    return _named(Trace(riegeli_source(MemorySource(bytes(writer.data), "x"))))


def _xspace(parts: Parts) -> list[int]:
    return _named(Trace.from_bytes(b"".join(map(_plane, parts))))


def _zip(parts: Parts) -> list[int]:
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict("os.environ", {"XDG_CACHE_HOME": folder}),
        mock.patch.object(archives, "_FLOOR", 1 << 20),
    ):
        path = Path(folder) / "a.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, part in enumerate(parts):
                name, data = (f"{part}", _plane(part)) if isinstance(part, int) else (f"bad{number}", part)
                archive.writestr(f"{name}.xplane.pb", data)  # type: ignore[arg-type]
        found = unpacked(str(path))
        assert len(found.problems) == any(not isinstance(part, int) for part in parts)
        return [int(each.name.partition(".")[0]) for each in sorted(Path(found.folder).glob("[0-9]*"))]


def _events(parts: Parts) -> list[int]:
    text = ",".join(json.dumps({"number": part}) if isinstance(part, int) else str(part) for part in parts)
    document = Document([f"[{text}]".encode()])
    found = [event.get("number") for event in document.events() if isinstance(event, dict)]
    assert bool(document.note) is not all(isinstance(part, int) for part in parts)
    return [number for number in found if number is not None]


def _stacks(parts: Parts) -> list[int]:
    out = io.BytesIO()
    out.write(field(1, b"\x08\x01\x10\x01") + field(6, b"") + field(6, b"space"))
    out.write(field(4, b"\x08\x01" + field(4, b"") * 20_000) + field(4, b"\x08\x02" + field(4, b"")))
    for part in parts:
        out.write(field(2, b"\x08\x02\x10" + varint(part) if isinstance(part, int) else part))  # type: ignore[arg-type]
    found = read_messages(MemorySource(out.getvalue(), "m"), "m")
    assert bool(found.notes) is not all(isinstance(part, int) for part in parts)
    return [sample.values[0] for sample in found.samples if len(sample.stack) == 1]


_BOMB = brotli.compress(bytes(60 << 20), quality=1)
_NONSENSE: dict[Callable[[Parts], list[int]], tuple[object, ...]] = {
    _chunks: (
        *((b"t", b"\0fields", 1, 3), (b"r", b"s\2\1\0\1\0", 1, 1), (b"r", b"z\2\1\0\1\0", 1, 1)),
        *((b"r", b"\0\1\1a", 1, 1 << 50), (b"r", b"\0\1\1a", 1 << 19, 1), (b"r", b"b\xff", 1, 8 << 20)),
        (b"r", b"b\0" + varint(8 << 20) + _BOMB, 0, 8 << 20),
    ),
    _riegeli: (b"\x0a\x00" * 100_000, field(1, b"\x1a\x00" * 100_000), b"\xff" * 9, b"\x0a\xff\x01"),
    _xspace: (field(1, b"\x1a\x00" * 1_000_000), field(1, b"\x22\x00" * 1_000_000), field(1, b"\xff" * 9)),
    _zip: (bytes(4 << 20),),
    _events: (
        '{"a": nonsense}',
        '{"a": "open}',
        '{"a": [}',
        "nonsense}",
        '{"a":' + "[" * 100_000 + "}",
        '{"a":' + "9" * 5000 + "}",
    ),
    _stacks: (b"\xff" * 9, b"\x0a\x05", field(1, b"\x01" * 600)),
}


@pytest.mark.parametrize("read", _NONSENSE, ids=lambda read: read.__name__)
@given(st.data())
@settings(max_examples=EXAMPLES // 4, deadline=None)
def test_one_part_of_nonsense_costs_itself_alone(read: Callable[[Parts], list[int]], draw: st.DataObject) -> None:
    good = [*range(draw.draw(st.integers(2, 5)))]
    at, nonsense = draw.draw(st.integers(0, len(good) - 1)), draw.draw(st.sampled_from(_NONSENSE[read]))
    assert read(good) == good
    assert read([*good[:at], nonsense, *good[at:]]) == good
