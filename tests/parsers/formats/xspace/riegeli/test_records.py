"""Records of files that the tests write: each compression, cut and damaged."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.files.riegeli import BLOCK, CODECS, Writer, written
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace import spool
from tpuprof.parsers.formats.xspace.riegeli import blocks
from tpuprof.parsers.formats.xspace.riegeli.records import spool_records
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.spool import Spool, SpoolSource


def read(data: bytes | bytearray, in_memory: int = spool.IN_MEMORY) -> tuple[list[bytes], str]:
    """The records of a file, and what it says was left out."""
    room = Spool(in_memory)
    spans, note = spool_records(MemorySource(data, "x.xplane.riegeli"), room)
    return [room.read(begin, end - begin) for begin, end in spans], note


def profile(planes: int = 3, events: int = 40) -> bytes:
    """A small XSpace with values of every wire type, names of several lengths, and metadata in maps."""
    space = XSpace(hostnames=[b"host"])
    for number in range(planes):
        plane = space.planes.add(id=number, name=b"/device:TPU:%d" % number)
        for key in range(5):
            plane.event_metadata[key].name = b"%%fusion.%d = f32[8] fusion()" % key
            plane.event_metadata[key].stats.add(metadata_id=key, double_value=key / 3)
            plane.stat_metadata[key].name = b"stat"
        line = plane.lines.add(id=1, name=b"XLA Ops", timestamp_ns=1 << 60)
        for index in range(events):
            event = line.events.add(metadata_id=index % 5, offset_ps=index * 1000, duration_ps=index % 4)
            event.stats.add(metadata_id=2, uint64_value=(1 << 64) - index - 1)
            event.stats.add(metadata_id=3, ref_value=index)
            event.stats.add(metadata_id=4, str_value=b"text" * (index % 3))
    return space.SerializeToString()


RECORDS = [profile(), b"", profile(1, 300), b"\xff\xff no message", b"\x08\x01", profile(2, 3)]


def write(codec: str, parts: Sequence[Sequence[bytes]]) -> bytearray:
    writer = Writer()
    for part in parts:
        writer.simple(part, codec)
    writer.pad()
    return writer.data


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("in_memory", [spool.IN_MEMORY, 100])
def test_records_come_back_as_they_were(codec: str, in_memory: int) -> None:
    parts = [RECORDS, [b""], [b"\x08\x01"] * 3000, [profile(1, 3000)], RECORDS[::-1]]
    data = write(codec, parts)
    assert len(data) % BLOCK == 0
    assert read(data, in_memory) == ([record for part in parts for record in part], "")


def test_chunks_that_no_profiler_writes_are_named() -> None:
    for kind, what in ((b"t\0", "transposed"), (b"rz", "compressed with Zstd"), (b"rs", "compressed with Snappy")):
        writer = Writer()
        writer.chunk(kind[:1], kind[1:] + b"\2\1\0\1\0", 1, 3)
        writer.simple([b"one"])
        assert read(writer.data) == ([b"one"], f"1 chunk is {what}, as no profiler writes them, and left out")


def test_metadata_and_unknown_chunks_are_passed_over() -> None:
    writer = Writer()
    writer.chunk(b"m", b"anything", 0, 900)
    writer.chunk(b"x", b"of the future")
    writer.simple([b"one"])
    at = writer.chunk(b"x", b"of the future", 2, 9)
    size = len(writer.data) - at
    assert read(writer.data) == ([b"one"], f"1 chunk is damaged and left out ({size:,} bytes)")


# --- damage


def test_a_damaged_chunk_costs_itself_alone() -> None:
    writer = Writer()
    places = [writer.simple([bytes([number]) * 90_000], "none") for number in range(4)]
    size = places[2] - places[1]
    writer.data[places[1] + 70_000] ^= 4
    found, note = read(writer.data)
    assert [record[:1] for record in found] == [b"\0", b"\2", b"\3"]
    assert note == f"1 chunk is damaged and left out ({size:,} bytes)"


def test_behind_a_damaged_header_the_next_chunk_is_found_by_a_block_header() -> None:
    writer = Writer()
    places = [writer.simple([bytes([number]) * 30_000], "none") for number in range(7)]
    writer.data[places[1] + 20] ^= 4
    found, note = read(writer.data)
    assert [record[0] for record in found] == [0, 2, 3, 4, 5, 6]  # chunk 2 is the one that a block header interrupts
    assert note == f"1 chunk is damaged and left out ({places[2] - places[1]:,} bytes)"
    writer.data[BLOCK] ^= 4  # and without that block header
    assert [record[0] for record in read(writer.data)[0]] == [0, 4, 5, 6]


def test_a_damaged_begin_of_the_file_is_no_loss() -> None:
    data = bytearray(written([b"one", b"two"]))
    data[30] ^= 1  # in the signature, behind the block header
    assert read(data) == ([b"one", b"two"], "1 chunk is damaged and left out (64 bytes)")
    data[0] ^= 1  # and in that
    assert read(data) == ([b"two"], f"1 chunk is damaged and left out ({BLOCK:,} bytes)")


def test_a_cut_in_the_padding_is_a_cut() -> None:
    """Other records may have come behind it."""
    data = written([b"one", b"two"])
    found, note = read(data[: BLOCK - 1])
    assert found == [b"one"] and note.startswith("it is cut off in a chunk")
    assert read(data[:BLOCK])[1] == ""


def test_any_cut_leaves_the_records_before_it() -> None:
    data = written(RECORDS)
    found = list(blocks.chunks(MemorySource(data), blocks.Losses()))
    for cut in [*range(0, len(data), 9091), *range(60, 150, 7), *(chunk.end - 1 for chunk in found)]:
        kept, note = read(data[:cut])
        assert kept == RECORDS[: sum(chunk.end <= cut for chunk in found)]
        inside = [chunk.begin for chunk in found if chunk.begin + blocks.CHUNK_HEADER + 1 < cut < chunk.end]
        if inside:
            begin = inside[0]
            assert note == f"it is cut off in a chunk, and {cut - begin:,} bytes of that are left out"


@given(st.data())
def test_any_bytes_flipped_give_records_that_were_there(draw: st.DataObject) -> None:
    data = write(draw.draw(st.sampled_from(["none", "brotli"])), [[record] for record in RECORDS] * 2)
    for _ in range(draw.draw(st.integers(1, 6))):
        at = draw.draw(st.integers(0, len(data) - 1))
        data[at] ^= draw.draw(st.integers(1, 255))
    found, note = read(data)
    assert all(record in RECORDS for record in found)
    assert len(found) == 2 * len(RECORDS) or note


@given(st.data())
@settings(max_examples=2 * EXAMPLES)
def test_nonsense_under_right_hashes_is_left_out(draw: st.DataObject) -> None:
    """As a bad writer leaves it: the hashes hold, the bytes below them don't."""
    codec = draw.draw(st.sampled_from(["none", "brotli"]))
    data = bytearray(write(codec, [RECORDS]))
    (chunk,) = blocks.chunks(MemorySource(data), blocks.Losses())
    body = bytearray(chunk.read(0, chunk.size))
    for _ in range(draw.draw(st.integers(1, 3))):
        at = draw.draw(st.one_of(st.integers(0, min(80, len(body) - 1)), st.integers(0, len(body) - 1)))
        body[at] = draw.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, body[at] ^ 1]))
    writer = Writer()
    writer.chunk(b"r", bytes(body), draw.draw(st.sampled_from([chunk.records, 0, 1 << 21])), chunk.decoded_size)
    writer.simple([b"good"])
    tracemalloc.start()
    found, _ = read(writer.data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found[-1] == b"good"
    assert peak < 40 << 20


# --- the spool


@given(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=12), st.data())
def test_spans_of_a_spool_read_as_one(pieces: list[bytes], draw: st.DataObject) -> None:
    room = Spool(in_memory=draw.draw(st.sampled_from([10, 10_000])))
    spans, begin = [], 0
    for piece in pieces:
        room.append(piece)
        spans.append((begin, begin + len(piece)))
        begin += len(piece)
    spans = draw.draw(st.permutations(spans))
    whole = b"".join(room.read(first, last - first) for first, last in spans)
    source = SpoolSource(room, spans, "name", "")
    assert source.size == len(whole)
    first, length = draw.draw(st.integers(0, begin + 3)), draw.draw(st.integers(0, begin + 3))
    assert source.read(first, length) == whole[first : first + length]
    source.close()
