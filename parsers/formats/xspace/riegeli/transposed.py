"""Transposed chunks: records taken apart into a buffer for each field, and put together by a state machine.

The specification leaves them open; this follows what google/riegeli's decoder takes. Everything comes from the back:
each node of the machine puts a field before those that are there. No profiler writes such chunks today.
"""

from __future__ import annotations

from collections.abc import Iterator

from tpuprof.parsers.base.budget import Budget
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.riegeli.blocks import Chunk
from tpuprof.parsers.formats.xspace.riegeli.codecs import STEP, Malformed, inflate
from tpuprof.parsers.formats.xspace.walk import encoded

_NO_OP, _NON_PROTO, _START_OF_SUBMESSAGE, _START_OF_MESSAGE = range(4)  # tags that stand for no field
_VARINT, _FIXED64, _LEN, _START_GROUP, _END_GROUP, _FIXED32, _END_OF_SUBMESSAGE = range(7)  # wire types
_FIRST_INLINE = 10  # subtypes of varints: lengths of 1 to 10 bytes, then values of 0 to 127
_LAST_SUBTYPE = _FIRST_INLINE + 127
_MOST_VARINT = 10
_BUFFER, _NODE = 200, 500  # bytes that a buffer and a node take, about
_LARGEST = 0xFFFFFFFF
_CONTINUED = bytes(byte | 0x80 for byte in range(256))

# What a node does. `_COPY` puts its bytes; fixed values and varints stand behind a tag.
_PASS, _COPY, _FIXED, _NUMBER, _TEXT, _END, _START, _MESSAGE, _OTHER = range(9)
_WITHOUT_FIELD = {_NO_OP: _PASS, _NON_PROTO: _OTHER, _START_OF_SUBMESSAGE: _START, _START_OF_MESSAGE: _MESSAGE}
_OF_WIRE = {
    _FIXED32: (_FIXED, 4),
    _FIXED64: (_FIXED, 8),
    _LEN: (_TEXT, 0),
    _START_GROUP: (_COPY, 0),
    _END_GROUP: (_COPY, 0),
}
_READING = frozenset((_FIXED, _NUMBER, _TEXT, _OTHER))
"""Actions that take bytes of a buffer."""


@dataclass(slots=True)
class Reader:
    """Bytes that are read from the front."""

    data: bytes
    at: int = 0

    def varint(self, largest: int = (1 << 64) - 1) -> int:
        """The next varint."""
        value = 0
        for shift in range(0, 7 * _MOST_VARINT, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > largest:
                    break
                return value
        raise Malformed("a number is too large")

    def varints(self, count: int, largest: int = (1 << 64) - 1) -> list[int]:
        """Reads `count` varints; each takes at least one byte."""
        if count > len(self.data) - self.at:
            raise Malformed("numbers are missing")
        return [self.varint(largest) for _ in range(count)]

    def take(self, length: int) -> bytes:
        """The next bytes."""
        end = self.at + length
        if end > len(self.data):
            raise Malformed("bytes are missing")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    @property
    def is_at_end(self) -> bool:
        """Whether all bytes are read."""
        return self.at == len(self.data)


@dataclass(frozen=True, slots=True)
class _Node:
    """A state: what it does, with what, and where it leads."""

    action: int
    tag: bytes
    buffer: Reader
    length: int
    following: int
    is_implicit: bool


def sized(code: int, pieces: Iterator[bytes], length: int, most: int) -> tuple[int, Iterator[bytes]]:
    """A compressed block: the bytes it stands for, and how many they are.

    Args:
        code: the compression.
        pieces: the block's bytes.
        length: how many there are of these.
        most: how many it may stand for.

    Raises:
        Malformed: it stands for more, or does not even say for how many.
    """
    if code == 0:
        size, rest = length, pieces
    else:
        reader = Reader(next(pieces, b""))
        size = reader.varint()
        rest = _chained(reader.data[reader.at :], pieces)
    if size > most:
        raise Malformed("a block stands for more bytes than it can")
    return size, inflate(code, rest, size)


def _chained(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from pieces


def head_of(chunk: Chunk) -> tuple[int, int, int]:
    """How the data of a chunk begins: compression, length of its first block, and offset of that."""
    head = Reader(chunk.read(0, 1 + _MOST_VARINT))
    code, length = head.take(1)[0], head.varint()
    if length > chunk.size - head.at:
        raise Malformed("a block is longer than its chunk")
    return code, length, head.at


class _Parts:
    """The compressed blocks of a chunk, one after the other, inflated up to a bound for all of them."""

    def __init__(self, chunk: Chunk, budget: Budget) -> None:
        self._chunk = chunk
        self._budget = budget
        self._code, self._header_length, self._at = head_of(chunk)
        # Values take no more bytes in buffers than in records, and a field no more than one transition.
        self._room = 2 * chunk.decoded_size + chunk.records + STEP

    def header(self) -> Reader:
        """The description of buffers and nodes."""
        return self.block(self._header_length)

    def block(self, length: int | None = None) -> Reader:
        """The next block; without a length, all that is left."""
        left = self._chunk.size - self._at
        length = left if length is None else length
        if length > left:
            raise Malformed("a block is longer than its chunk")
        pieces = self._chunk.pieces(self._at, length)
        self._at += length
        size, inflated = sized(self._code, pieces, length, self._room)
        self._room -= size
        self._budget.takes(size, 1)
        return Reader(b"".join(inflated))


def transposed_records(chunk: Chunk, budget: Budget) -> tuple[bytearray, list[int]]:
    """The records of a transposed chunk, one after the other, and their sizes.

    It takes memory for all of the chunk. The caller has seen that `chunk.decoded_size` is no more than it wants.

    Args:
        budget: of the file: buffers and nodes are objects, and the machine takes a step for each field.

    Raises:
        ProfileError: `too_large`, if it would take more than that.
        Malformed: the chunk does not follow the format.
        MissingCodec: the package for its compression is not installed.
    """
    budget.takes(chunk.decoded_size, 1)
    parts = _Parts(chunk, budget)
    header = parts.header()
    buffers = _read_buffers(header, parts, budget)
    nodes, first = _read_nodes(header, buffers, budget)
    if not header.is_at_end:
        raise Malformed("a header is longer than what it describes")
    machine = _Machine(nodes, buffers, chunk)
    machine.run(first, parts.block().data, budget)
    return machine.finish()


def _read_buffers(header: Reader, parts: _Parts, budget: Budget) -> list[Reader]:
    """The buffers of all fields: several are compressed together as a bucket."""
    bucket_count, buffer_count = header.varint(_LARGEST), header.varint(_LARGEST)
    budget.takes(bucket_count + buffer_count, _BUFFER, steps=bucket_count + buffer_count)
    lengths = header.varints(bucket_count)
    buckets = [parts.block(length) for length in lengths]
    buffers, current = [], 0
    for length in header.varints(buffer_count):
        if current >= len(buckets):
            raise Malformed("a buffer lies in no bucket")
        buffers.append(Reader(buckets[current].take(length)))
        while current + 1 < len(buckets) and buckets[current].is_at_end:
            current += 1
    if not all(bucket.is_at_end for bucket in buckets):
        raise Malformed("a bucket holds more than its buffers")
    return buffers


def _read_nodes(header: Reader, buffers: list[Reader], budget: Budget) -> tuple[list[_Node], int]:
    """The nodes of the state machine, and which is the first."""
    count = header.varint(_LARGEST)
    budget.takes(count, _NODE, steps=count)
    tags, following = header.varints(count, _LARGEST), header.varints(count, _LARGEST)
    subtypes = iter(header.take(sum(tag & 7 == _VARINT and tag >= 8 for tag in tags)))
    nodes = []
    for tag, target in zip(tags, following, strict=True):
        if target >= 2 * count:
            raise Malformed("a node leads nowhere")
        action, text, length = _action(tag, subtypes)
        buffer = Reader(b"")
        if action in _READING:
            index = header.varint(_LARGEST)
            if index >= len(buffers):
                raise Malformed("a node reads a buffer that is not there")
            buffer = buffers[index]
        nodes.append(_Node(action, text, buffer, length, target % count, target >= count))
    first = header.varint(_LARGEST)
    if first >= count or _goes_round(nodes):
        raise Malformed("the nodes do not lead to an end")
    return nodes, first


def _action(tag: int, subtypes: Iterator[int]) -> tuple[int, bytes, int]:
    """What a node does, the bytes of its tag, and the length of its values where all have the same."""
    if tag < 8:
        if tag not in _WITHOUT_FIELD:
            raise Malformed("a node without a field")
        return _WITHOUT_FIELD[tag], b"", 0
    wire, text = tag & 7, encoded(tag)
    if wire == _VARINT:
        subtype = next(subtypes)
        if subtype > _LAST_SUBTYPE:
            raise Malformed("a number of an unknown kind")
        is_inline = subtype >= _FIRST_INLINE
        return (_COPY, text + bytes([subtype - _FIRST_INLINE]), 0) if is_inline else (_NUMBER, text, subtype + 1)
    if wire == _END_OF_SUBMESSAGE:
        return _END, encoded(tag - _END_OF_SUBMESSAGE + _LEN), 0
    if wire not in _OF_WIRE:
        raise Malformed("a field of an unknown kind")
    action, length = _OF_WIRE[wire]
    return action, text, length


def _goes_round(nodes: list[_Node]) -> bool:
    """Whether nodes that are followed without reading a transition form a circle."""
    visit = [0] * len(nodes)
    for start in range(len(nodes)):
        at = start
        while not visit[at]:
            visit[at] = start + 1
            if not nodes[at].is_implicit:
                break
            at = nodes[at].following
            if visit[at] == start + 1:
                return True
    return False


class _Machine:
    """Puts the records of a chunk together, from the last one's end to the first one's begin."""

    def __init__(self, nodes: list[_Node], buffers: list[Reader], chunk: Chunk) -> None:
        self._nodes = nodes
        self._lengths = buffers[-1] if buffers else Reader(b"")  # of records that are no messages
        self._records = chunk.records
        self._out = bytearray(chunk.decoded_size)
        self._at = chunk.decoded_size
        self._open: list[tuple[int, bytes]] = []  # where messages within others end, and their tags
        self._begins: list[int] = []

    def run(self, first: int, transitions: bytes, budget: Budget) -> None:
        """Goes from node to node; a transition says how far to jump, and for how many nodes not to ask again."""
        nodes, index, stay, read = self._nodes, first, int(self._nodes[first].is_implicit), 0
        # Every node but one that passes puts a byte or ends a message, and only a transition makes it pass any.
        most = 8 * (len(self._out) + len(transitions) + self._records) + 1024
        for _ in range(min(most, budget.steps)):
            node = nodes[index]
            self._act(node)
            index = node.following
            if stay:
                stay -= not nodes[index].is_implicit
                continue
            if read == len(transitions):
                return
            byte = transitions[read]
            read += 1
            index += byte >> 2
            if index >= len(nodes):
                raise Malformed("a transition leads nowhere")
            stay = (byte & 3) + nodes[index].is_implicit
        raise Malformed("the nodes do not lead to an end")

    def _act(self, node: _Node) -> None:
        """Does what a node says."""
        action = node.action
        if action == _COPY:
            self._put(node.tag)
        elif action == _NUMBER:
            raw = node.buffer.take(node.length)
            self._put(node.tag + raw[:-1].translate(_CONTINUED) + raw[-1:])
        elif action == _FIXED:
            self._put(node.tag + node.buffer.take(node.length))
        elif action == _TEXT:
            begin = node.buffer.at
            length = node.buffer.varint(_LARGEST)
            before = node.buffer.at - begin
            node.buffer.at = begin
            self._put(node.tag + node.buffer.take(before + length))
        elif action == _END:
            self._open.append((self._at, node.tag))
        elif action == _START:
            if not self._open:
                raise Malformed("a message begins that has not ended")
            end, tag = self._open.pop()
            self._put(tag + encoded(end - self._at))
        elif action == _OTHER:
            self._put(node.buffer.take(self._lengths.varint(_LARGEST)))
            self._begin_record()
        elif action == _MESSAGE:
            self._begin_record()

    def _put(self, piece: bytes) -> None:
        """Puts bytes before those that are there."""
        begin = self._at - len(piece)
        if begin < 0:
            raise Malformed("records are larger than announced")
        self._out[begin : self._at] = piece
        self._at = begin

    def _begin_record(self) -> None:
        if self._open or len(self._begins) == self._records:
            raise Malformed("a record begins within another, or is one too many")
        self._begins.append(self._at)

    def finish(self) -> tuple[bytearray, list[int]]:
        """The records and their sizes."""
        begins = self._begins[::-1]
        if self._at or self._open or len(begins) != self._records or (begins and begins[0]):
            raise Malformed("records are not as announced")
        ends = [*begins[1:], len(self._out)] if begins else []
        return self._out, [end - begin for begin, end in zip(begins, ends, strict=True)]
