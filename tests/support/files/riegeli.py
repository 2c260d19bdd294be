"""Writes Riegeli/records files: chunks in each compression, padding."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import brotli

from tests.support.files.wire import varint
from tpuprof.parsers.formats.proto.xplane_pb2 import XLine, XPlane, XSpace
from tpuprof.parsers.formats.xspace.riegeli.blocks import highway_hash

BLOCK = 1 << 16
HEADER = 24
CODECS = {"none": 0, "brotli": ord("b")}


def compressed(codec: str, data: bytes) -> bytes:
    if codec == "none":
        return data
    body: bytes = brotli.compress(data, quality=6)
    return varint(len(data)) + body


class Writer:
    """A file, chunk by chunk."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.chunk(b"s", b"")

    def chunk(self, kind: bytes, data: bytes, records: int = 0, decoded: int = 0) -> int:
        """Writes a chunk; returns where it begins."""
        begin = len(self.data)
        numbers = len(data), highway_hash([data]), kind[0] | records << 8, decoded
        rest = struct.pack("<4Q", *numbers)
        body = struct.pack("<Q", highway_hash([rest])) + rest + data
        end = begin + len(body) + self._headers(begin, len(body)) * HEADER
        least = begin + records
        end = max(end, least + max(0, -least % BLOCK - (BLOCK - HEADER) + 1))
        body += bytes(end - begin)  # more padding than there is room for
        while len(self.data) < end:
            if len(self.data) % BLOCK == 0:
                at = len(self.data)
                places = struct.pack("<2Q", at - begin, end - at)
                self.data += struct.pack("<Q", highway_hash([places])) + places
            room = min(BLOCK - len(self.data) % BLOCK, end - len(self.data))
            self.data += body[:room]
            body = body[room:]
        return begin

    def _headers(self, begin: int, size: int) -> int:
        """Block headers among so many bytes from `begin` on."""
        count, at = 0, begin
        while size > 0:
            count += at % BLOCK == 0
            at += HEADER if at % BLOCK == 0 else 0
            step = min(size, BLOCK - at % BLOCK)
            at, size = at + step, size - step
        return count

    def simple(self, records: Sequence[bytes], codec: str = "brotli") -> int:
        """Writes records one after the other."""
        sizes = compressed(codec, b"".join(varint(len(record)) for record in records))
        values = compressed(codec, b"".join(records))
        data = bytes([CODECS[codec]]) + varint(len(sizes)) + sizes + values
        return self.chunk(b"r", data, len(records), sum(map(len, records)))

    def pad(self) -> None:
        """Fills the block up, as the profiler does behind each record."""
        room = -len(self.data) % BLOCK
        if room:
            if room < 40:
                room += BLOCK - HEADER
            self.chunk(b"p", bytes(room - 40))


def written(records: Sequence[bytes], codec: str = "brotli") -> bytes:
    """A file as the profiler writes it: each record with a signature of its own, and padded."""
    out = bytearray()
    for record in records:
        writer = Writer()
        writer.simple([record], codec)
        writer.pad()
        out += writer.data
    return bytes(out)


def chunked(space: XSpace, most_events: int) -> Iterator[XSpace]:
    """A profile in records as the profiler splits one that is too large: a plane without lines, then some events each.

    Every record repeats the host's name, and the plane's metadata; the first part of a line has no events.
    """
    for plane in space.planes:
        base = XPlane()
        base.CopyFrom(plane)
        del base.lines[:]
        yield _record(space, base)
        for line in plane.lines:
            events = list(line.events)
            head = XLine()
            head.CopyFrom(line)
            del head.events[:]
            for begin in range(-most_events, len(events), most_events):
                part = _record(space, base)
                copy = part.planes[0].lines.add()
                copy.CopyFrom(head)
                copy.events.extend(events[max(begin, 0) : begin + most_events])
                yield part


def _record(space: XSpace, plane: XPlane) -> XSpace:
    part = XSpace(hostnames=space.hostnames, errors=space.errors, warnings=space.warnings)
    part.planes.add().CopyFrom(plane)
    return part
