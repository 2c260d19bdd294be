"""Packs bytes as files do: headers and bodies may be damaged, and checksums and lengths are right again."""

from __future__ import annotations

import io
import random
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Sequence

from tests.fuzz.mutate import mutated
from tests.support.files.riegeli import CODECS, Writer, chunked
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

_BLOCK = 512
_KINDS = (
    b"0",
    b"1",
    b"2",
    b"3",
    b"5",
    b"6",
    b"7",
    *(b"S",) * 6,
    b"L",
    b"K",
    b"x",
    b"g",
    b"\0",
    b"V",
)  # of tar's members
_MOST_RECORDS = 1 << 17  # a chunk takes a byte for each at least
_MOST = 1 << 20  # bytes of a damaged chunk: the hashes of the tests are those of the product, and take their time


class DamagedWriter(Writer):
    """A Riegeli file of which a chunk's data or claims may be damaged before its hashes are made.

    Args:
        damage: how likely that is for each chunk.
    """

    def __init__(self, rng: random.Random, damage: float) -> None:
        self._rng, self._damage = rng, damage
        super().__init__()

    def chunk(self, kind: bytes, data: bytes, records: int = 0, decoded: int = 0) -> int:
        """See `Writer.chunk`."""
        rng = self._rng
        if kind != b"s" and rng.random() < self._damage:
            how = rng.randrange(6)
            if how < 3:
                data = mutated(rng, data)[:_MOST]
            elif how == 3:
                records = _near(rng, records)
            elif how == 4:
                decoded = _near(rng, decoded)
            else:
                kind = rng.choice((b"r", b"t", b"p", b"m", b"x"))
        return super().chunk(kind, data, min(records, _MOST_RECORDS), decoded)


def _near(rng: random.Random, number: int) -> int:
    return abs(rng.choice((number + 1, number - 1, 2 * number, 0, 1, 1 << 20, (1 << 63) - 1)))


def riegeli(rng: random.Random, profile: bytes) -> bytes:
    """A profile as Riegeli records: whole or in parts, in one of the compressions."""
    records = [profile]
    if rng.random() < 0.5:
        records = [part.SerializeToString() for part in chunked(XSpace.FromString(profile), rng.choice((1, 3, 50)))][
            :200
        ]
    if rng.random() < 0.2:
        rng.shuffle(records)
    codec = rng.choice(["none", "none", *CODECS])
    writer = DamagedWriter(rng, rng.choice((0.0, 0.2, 0.7)))
    at_once = rng.choice((1, 7, max(len(records), 1)))
    for begin in range(0, len(records), at_once):
        of_chunk = records[begin : begin + at_once]
        writer.simple(of_chunk, codec)
        if rng.random() < 0.2:
            writer.pad()
    return bytes(writer.data)


def gzipped(rng: random.Random, data: bytes) -> bytes:
    """Gzip with any of its header's parts, in one member or several."""
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.choice((0, 0, 1, 3))))
    parts = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    return b"".join(_member(rng, part) for part in parts) + bytes(rng.choice((0, 0, 3, 512)))


def _member(rng: random.Random, data: bytes) -> bytes:
    flags, parts = 0, b""
    if rng.random() < 0.2:
        flags, extra = flags | 4, rng.randbytes(rng.randrange(9))
        parts += struct.pack("<H", len(extra)) + extra
    for flag in (8, 16):
        if rng.random() < 0.2:
            flags, parts = flags | flag, parts + b"name\0"
    head = bytes((0x1F, 0x8B, 8, flags)) + rng.randbytes(4) + b"\0\xff" + parts
    packer = zlib.compressobj(rng.choice((0, 1, 9)), zlib.DEFLATED, -15)
    return head + packer.compress(data) + packer.flush() + struct.pack("<2L", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def tar(rng: random.Random, members: Sequence[tuple[str, bytes]]) -> bytes:
    """A tar in one of its forms, its headers damaged and their sums right again; packed at times."""
    out = io.BytesIO()
    form = rng.choice((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name if form != tarfile.USTAR_FORMAT else name[-90:])
            info.size, info.mtime = len(data), rng.choice((0, 1, 1_700_000_000))
            if form == tarfile.PAX_FORMAT and rng.random() < 0.5:
                info.pax_headers = {"path": rng.choice((name, "../" + name, "a" * 300)), "mtime": "1e400"}
            archive.addfile(info, io.BytesIO(data))
    made = bytearray(out.getvalue())
    for at in _headers(made):
        if rng.random() < 0.4:
            begin, size = rng.choice(((0, 100), (124, 12), (136, 12), (156, 1), (157, 100), (257, 8), (345, 155)))
            field = mutated(rng, bytes(made[at + begin : at + begin + size]))[:size]
            if begin == 156 or rng.random() < 0.3:
                begin, size, field = 156, 1, rng.choice(_KINDS)
            elif rng.random() < 0.1:
                begin, size, field = 124, 12, rng.choice((b"\xff" * 12, b"77777777777", b"\x80" + bytes(10) + b"\xff"))
            made[at + begin : at + begin + size] = field.ljust(size, b"\0")
            if field == b"S":
                made[at + 482] = rng.choice((0, 1))
            if made[at + 156] == ord("x") and rng.random() < 0.5 and at + 600 < len(made):
                made[at + 512 + rng.randrange(30)] = rng.choice(b"\0= 9a\n")
            made[at + 148 : at + 156] = b" " * 8
            made[at + 148 : at + 156] = b"%06o\0 " % sum(made[at : at + _BLOCK])
    return gzipped(rng, bytes(made)) if rng.random() < 0.3 else bytes(made)


def _headers(data: bytes | bytearray) -> list[int]:
    """Where headers begin, as their sizes say."""
    found, at = [], 0
    while at + _BLOCK <= len(data) and data[at]:
        found.append(at)
        at += _BLOCK + -(-int(bytes(data[at + 124 : at + 135]) or b"0", 8) // _BLOCK) * _BLOCK
    return found


def zipped(rng: random.Random, members: Sequence[tuple[str, bytes]]) -> bytes:
    """A zip of damaged members with the sums that they have; its table is damaged at times."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name, rng.choice(((1980, 1, 1, 0, 0, 0), (2107, 12, 31, 23, 59, 58))))
            info.compress_type = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
            info.external_attr = rng.choice((0o100644, 0o120777, 0o040755, 0)) << 16
            with warnings.catch_warnings():  # of two members of one name
                warnings.simplefilter("ignore")
                archive.writestr(info, data)
    made = bytearray(out.getvalue())
    directory = made.rfind(b"PK\1\2")
    if rng.random() < 0.4:
        at = rng.randrange(max(directory, 0), len(made))
        made[at] = rng.randrange(256)
    elif rng.random() < 0.2 and directory >= 0:
        made[directory + 8] |= 1  # behind a password
    return bytes(made)
