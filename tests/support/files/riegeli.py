"""Writes Riegeli/records files: simple and transposed chunks, each compression, padding."""

from __future__ import annotations

import importlib
import struct
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tests.support.files.wire import varint
from tpuprof.parsers.formats.proto.xplane_pb2 import XLine, XPlane, XSpace
from tpuprof.parsers.formats.xspace.riegeli.hashing import highway_hash

BLOCK = 1 << 16
HEADER = 24
CODECS = {"none": 0, "brotli": ord("b"), "zstd": ord("z"), "snappy": ord("s")}
PACKAGES = {
    "brotli": "brotli",
    "zstd": "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd",
    "snappy": "cramjam",
}


def compressed(codec: str, data: bytes) -> bytes:
    if codec == "none":
        return data
    package = importlib.import_module(PACKAGES[codec])
    body: bytes
    if codec == "brotli":
        body = package.compress(data, quality=6)
    elif codec == "zstd":
        body = package.compress(data)
    else:
        body = bytes(package.snappy.compress_raw(data))
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

    def transposed(self, records: Sequence[bytes], codec: str = "brotli", buckets: int = 2) -> int:
        """Writes records taken apart into fields."""
        data = bytes([CODECS[codec]]) + _Transposed(records).data(codec, buckets)
        return self.chunk(b"t", data, len(records), sum(map(len, records)))

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


# --- transposed chunks

_NO_OP, _NON_PROTO, _START_OF_SUBMESSAGE, _START_OF_MESSAGE = range(4)
_Key = tuple[int, int, int]
"""A state: the number of the message it lies in, its tag, its subtype."""


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data: bytes) -> list[tuple[int, bytes]]:
    """Tags and values of a message, those of wire type 2 with their length; ValueError for what is none."""
    out, at = [], 0
    while at < len(data):
        tag, begin = _read_varint(data, at)
        if tag < 8 or varint(tag) != data[at:begin] or tag >> 32:
            raise ValueError
        wire = tag & 7
        if wire == 0:
            value, end = _read_varint(data, begin)
            if varint(value) != data[begin:end]:
                raise ValueError
        elif wire in (1, 5):
            end = begin + (8 if wire == 1 else 4)
        elif wire == 2:
            length, end = _read_varint(data, begin)
            if varint(length) != data[begin:end]:
                raise ValueError
            end += length
        else:
            raise ValueError
        if end > len(data):
            raise ValueError
        out.append((tag, data[begin:end]))
        at = end
    return out


class _Transposed:
    """Records as states of a machine and the bytes that these take."""

    def __init__(self, records: Sequence[bytes]) -> None:
        self._messages: dict[tuple[int, int], int] = {}
        self._path: list[_Key] = []
        self._buffers: dict[tuple[int, int], list[bytes]] = defaultdict(list)
        self._lengths: list[bytes] = []
        for record in records:
            try:
                parts = fields(record)
            except ValueError:
                self._path.append((0, _NON_PROTO, 0))
                self._buffers[0, _NON_PROTO].append(record)
                self._lengths.append(varint(len(record)))
                continue
            self._path.append((0, _START_OF_MESSAGE, 0))
            self._take(parts, 0)

    def _take(self, parts: list[tuple[int, bytes]], parent: int) -> None:
        for tag, value in parts:
            wire = tag & 7
            if wire == 0 and value[0] <= 3:
                self._path.append((parent, tag, 10 + value[0]))
            elif wire == 0:
                self._path.append((parent, tag, len(value) - 1))
                self._buffers[parent, tag].append(bytes(byte & 0x7F for byte in value))
            elif wire == 2 and len(value) > 1:
                _, begin = _read_varint(value, 0)
                try:
                    inner = fields(value[begin:])
                except ValueError:
                    inner = []
                if inner:
                    message = self._messages.setdefault((parent, tag), len(self._messages) + 1)
                    self._path.append((parent, _START_OF_SUBMESSAGE, 0))
                    self._take(inner, message)
                    self._path.append((parent, tag + 4, 0))
                    continue
                self._path.append((parent, tag, 0))
                self._buffers[parent, tag].append(value)
            else:
                self._path.append((parent, tag, 0))
                self._buffers[parent, tag].append(value)

    def data(self, codec: str, bucket_count: int) -> bytes:
        """What stands behind the compression's byte."""
        path = self._path[::-1]
        states = list(dict.fromkeys(path))
        order = list(self._buffers)
        buffers = [b"".join(reversed(self._buffers[key])) for key in order]
        if self._lengths:
            buffers.append(b"".join(reversed(self._lengths)))
        cuts = [len(buffers) * index // bucket_count for index in range(bucket_count + 1)]
        groups = [b"".join(buffers[a:b]) for a, b in pairwise(cuts)]
        buckets = [compressed(codec, group) for group in groups if group]
        tags, following, transitions = self._machine(path, states)
        head = varint(len(buckets)) + varint(len(buffers))
        head += b"".join(varint(len(bucket)) for bucket in buckets) + b"".join(varint(len(each)) for each in buffers)
        head += varint(len(tags)) + b"".join(map(varint, tags)) + b"".join(map(varint, following))
        head += bytes(subtype for _, tag, subtype in states if tag >= 8 and tag & 7 == 0)
        for parent, tag, subtype in states:
            if (parent, tag) in self._buffers and not (tag & 7 == 0 and subtype >= 10 and tag >= 8):
                head += varint(order.index((parent, tag)))
        head += varint(len(tags) - len(states) + states.index(path[0])) if path else varint(0)
        packed = compressed(codec, head)
        return varint(len(packed)) + packed + b"".join(buckets) + compressed(codec, transitions)

    def _machine(self, path: list[_Key], states: list[_Key]) -> tuple[list[int], list[int], bytes]:
        """Tags and followers of all nodes, and the transitions: over a node for each 64 states that does nothing."""
        after: dict[_Key, set[_Key | None]] = defaultdict(set)
        for state, follower in zip(path, [*path[1:], None], strict=True):
            after[state].add(follower)
        routers = len(states) // 64 + 1
        place = {state: routers + index for index, state in enumerate(states)}
        count = routers + len(states)
        tags = [_NO_OP] * routers + [tag for _, tag, _ in states]
        following = [routers + 64 * index for index in range(routers)]
        only = {state: next(iter(followers)) for state, followers in after.items() if len(followers) == 1}
        implicit = {state: place[follower] for state, follower in only.items() if follower and follower != state}
        while circle := _circle(implicit, states, routers):
            del implicit[circle]
        following += [implicit[state] + count if state in implicit else 0 for state in states]
        jumps: list[int] = []
        for state, follower in pairwise(path):
            if state not in implicit:
                router, jump = divmod(place[follower] - routers, 64)
                jumps += [router, jump]
        out: list[int] = []
        for jump in jumps:
            if jump == 0 and out and out[-1] & 3 < 3:
                out[-1] += 1
            else:
                out.append(jump << 2)
        return tags, following, bytes(out)


def _circle(implicit: dict[_Key, int], states: list[_Key], routers: int) -> _Key | None:
    """A state from which those that lead on by themselves lead back to it."""
    for start in implicit:
        at = start
        for _ in implicit:
            if at not in implicit:
                break
            at = states[implicit[at] - routers]
            if at == start:
                return start
    return None
