"""Picking stats out of messages, on both cores."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.formats.xspace.core.fuzz_core import damaged, field, random_event, random_stat, varint
from tests.parsers.formats.xspace.core.test_events import in_one_buffer, signed
from tests.parsers.formats.xspace.core.test_split import Broken, read_one, read_varint
from tpuprof.parsers.formats.proto.xplane_pb2 import XEvent, XEventMetadata, XPlane
from tpuprof.parsers.formats.xspace.core import numpy_core
from tpuprof.parsers.formats.xspace.core.types import KIND_ABSENT, KIND_EMPTY, Core

Cell = tuple[int, int | bytes]  # kind; the 64 bits, or the payload
WIRE = {2: 1, 3: 0, 4: 0, 5: 2, 6: 2, 7: 0, 8: 2}
NAMES = {
    "double_value": 2,
    "uint64_value": 3,
    "int64_value": 4,
    "str_value": 5,
    "bytes_value": 6,
    "ref_value": 7,
    "compressed_str_value": 8,
}


def reference_stat(body: bytes) -> tuple[int, Cell]:
    stat_id, at = 0, 0
    cell: Cell = KIND_EMPTY, 0
    while at < len(body):
        number, wire, begin, at = read_one(body, at)
        if at > len(body):
            raise Broken
        if (number, wire) == (1, 0):
            stat_id = signed(read_varint(body, begin, 10)[0])
        elif WIRE.get(number) == wire:
            raw = body[begin:at]
            value = (
                raw
                if wire == 2
                else signed(read_varint(body, begin, 10)[0])
                if wire == 0
                else struct.unpack("<q", raw)[0]
            )
            cell = number, value
    return stat_id, cell


def reference(body: bytes, stats_field: int, wanted: list[int]) -> list[Cell]:
    """A message's cells as `stat_columns` has them."""
    cells: dict[int, Cell] = {}
    at = 0
    while at < len(body):
        try:
            number, wire, begin, at = read_one(body, at)
        except Broken:
            break
        if at > len(body):
            break
        if (number, wire) == (stats_field, 2):
            try:
                stat_id, cell = reference_stat(body[begin:at])
            except Broken:
                continue
            cells.setdefault(stat_id, cell)
    return [cells.get(stat_id, (KIND_ABSENT, 0)) for stat_id in wanted]


def by_protobuf(message: XEvent | XEventMetadata | XPlane, wanted: list[int]) -> list[Cell]:
    cells: dict[int, Cell] = {}
    for stat in message.stats:
        name = stat.WhichOneof("value")
        value = getattr(stat, name) if name else 0
        if isinstance(value, float):
            value = struct.unpack("<q", struct.pack("<d", value))[0]
        kind = NAMES[name] if name else KIND_EMPTY
        cells.setdefault(stat.metadata_id, (kind, value if isinstance(value, bytes) else signed(value)))
    return [cells.get(stat_id, (KIND_ABSENT, 0)) for stat_id in wanted]


def pick(core: Core, bodies: list[bytes], stats_field: int, wanted: list[int], gap: bytes = b"") -> list[list[Cell]]:
    """Cells of each body; they lie in one buffer with something between them."""
    buf, begin, end = in_one_buffer(bodies, gap)
    found = core.stat_columns(buf, begin, end, stats_field, np.array(wanted, np.int64))
    assert [column.dtype for column in (found.kind, found.value, found.length)] == [np.uint8, np.int64, np.int64]
    assert found.kind.shape == found.value.shape == found.length.shape == (len(wanted), len(bodies))
    table = []
    for i in range(len(bodies)):
        row: list[Cell] = []
        for kind, value, length in zip(found.kind[:, i], found.value[:, i], found.length[:, i], strict=True):
            if WIRE.get(int(kind)) == 2:
                assert begin[i] <= value <= value + length <= end[i]
                row.append((int(kind), bytes(buf[value : value + length])))
            else:
                assert length == 0
                row.append((int(kind), int(value)))
        table.append(row)
    return table


PADDING = st.sampled_from([0, 0, 1, 9])
NUMBER = st.one_of(st.integers(0, 5), st.integers(-(1 << 63), (1 << 64) - 1))
PART = st.one_of(
    st.builds(field, st.just(1), st.just(0), st.builds(varint, st.one_of(st.integers(0, 3), NUMBER), PADDING), PADDING),
    st.builds(field, st.sampled_from([3, 4, 7, 11]), st.just(0), st.builds(varint, NUMBER, PADDING), PADDING),
    st.builds(field, st.sampled_from([2, 12]), st.just(1), st.binary(min_size=8, max_size=8), PADDING),
    st.builds(field, st.sampled_from([5, 6, 8, 13]), st.just(2), st.binary(max_size=140), PADDING),
    # wire types that are not the field's
    st.builds(field, st.integers(1, 8), st.just(5), st.binary(min_size=4, max_size=4), PADDING),
    st.builds(field, st.sampled_from([2, 5, 6, 8]), st.just(0), st.builds(varint, NUMBER), PADDING),
    st.builds(field, st.sampled_from([1, 2, 3, 4, 7]), st.just(2), st.binary(max_size=4), PADDING),
)
STAT = st.lists(PART, max_size=4).map(b"".join)
BODY = st.lists(
    st.one_of(
        st.builds(field, st.just(4), st.just(2), STAT, PADDING),
        st.builds(field, st.sampled_from([1, 2, 3, 5]), st.just(0), st.builds(varint, NUMBER), PADDING),
        st.builds(field, st.just(9), st.just(2), st.binary(max_size=20), PADDING),
    ),
    max_size=6,
).map(b"".join)
WANTED = st.lists(st.one_of(st.integers(0, 5), st.integers(-(1 << 63), (1 << 63) - 1)), max_size=5, unique=True)


def without_nan_bits(cells: list[list[Cell]]) -> list[list[Cell]]:
    """Not-a-numbers may lose their payload bits on their way through Python's float."""

    def plain(cell: Cell) -> Cell:
        kind, value = cell
        if kind == 2 and isinstance(value, int) and np.isnan(np.array([value], np.int64).view(np.float64)[0]):
            return kind, -1
        return cell

    return [[plain(cell) for cell in row] for row in cells]


class TestAgainstProtobuf:
    @given(body=BODY, wanted=WANTED, gap=st.sampled_from([b"", b"\xff" * 20, b"\x01" * 20]))
    def test_one_message(self, core: Core, body: bytes, wanted: list[int], gap: bytes) -> None:
        expected = [by_protobuf(XEvent.FromString(body), wanted)]
        assert without_nan_bits(pick(core, [body], 4, wanted, gap)) == without_nan_bits(expected)

    @given(bodies=st.lists(BODY, min_size=1, max_size=6), wanted=WANTED)
    def test_many_messages(self, core: Core, bodies: list[bytes], wanted: list[int]) -> None:
        expected = [by_protobuf(XEvent.FromString(body), wanted) for body in bodies] * 40
        assert without_nan_bits(pick(core, bodies * 40, 4, wanted)) == without_nan_bits(expected)

    def test_more_than_a_block(self, core: Core) -> None:
        rng = random.Random(4)
        bodies = [random_event(rng) for _ in range(numpy_core._BLOCK + 100)]
        expected = [by_protobuf(XEvent.FromString(body), [1, 3]) for body in bodies]
        assert without_nan_bits(pick(core, bodies, 4, [1, 3])) == without_nan_bits(expected)

    @pytest.mark.parametrize(("kind", "stats_field"), [(XEventMetadata, 5), (XPlane, 6)])
    def test_stats_of_metadata_and_planes(
        self, core: Core, kind: type[XEventMetadata | XPlane], stats_field: int
    ) -> None:
        message = kind(id=3, name=b"x")
        for stat_id in range(5):
            message.stats.add(metadata_id=stat_id, str_value=b"v" * stat_id)
        message.stats.add(metadata_id=7, double_value=2.5)
        body = message.SerializeToString()
        expected = by_protobuf(message, [7, 3, 9])
        assert expected[0][0] == 2
        assert pick(core, [body], stats_field, [7, 3, 9]) == [expected]
        assert pick(core, [body] * 50, stats_field, [7, 3, 9]) == [expected] * 50


@pytest.fixture(params=["alone", "together"])
def copies(request: pytest.FixtureRequest) -> int:
    """How often to repeat a message: the numpy core has a way for few and one for many."""
    return {"alone": 1, "together": numpy_core._FEW + 2}[request.param]


def test_the_first_stat_with_an_id_counts(core: Core, copies: int) -> None:
    first = field(4, 2, field(1, 0, b"\x05") + field(3, 0, b"\x01"))
    second = field(4, 2, field(1, 0, b"\x05") + field(5, 2, b"two"))
    empty = field(4, 2, field(1, 0, b"\x05"))
    assert pick(core, [first + second] * copies, 4, [5]) == [[(3, 1)]] * copies
    assert pick(core, [second + first] * copies, 4, [5]) == [[(5, b"two")]] * copies
    assert pick(core, [empty + first] * copies, 4, [5]) == [[(KIND_EMPTY, 0)]] * copies


def test_inside_a_stat_the_last_value_counts(core: Core, copies: int) -> None:
    text, number = field(5, 2, b"abc"), field(7, 0, b"\x09")
    for inner, cell in ((text + number, (7, 9)), (number + text, (5, b"abc"))):
        body = field(4, 2, inner + field(1, 0, b"\x02"))  # the id after the value
        assert pick(core, [body] * copies, 4, [2]) == [[cell]] * copies


def test_an_absent_id_is_zero(core: Core, copies: int) -> None:
    body = field(4, 2, field(4, 0, varint(-8)))
    assert pick(core, [body] * copies, 4, [0, 1]) == [[(4, -8), (KIND_ABSENT, 0)]] * copies


def test_malformed_stats_are_left_out(core: Core, copies: int) -> None:
    good = field(4, 2, field(1, 0, b"\x05") + field(3, 0, b"\x01"))
    for broken in (b"\x0b", b"\x18", b"\x2a\x09abc", b"\x11" + bytes(7), b"\x00"):
        bad = field(4, 2, field(1, 0, b"\x05") + field(3, 0, b"\x02") + broken)
        assert pick(core, [bad + good] * copies, 4, [5], b"\x01" * 20) == [[(3, 1)]] * copies
        assert pick(core, [bad] * copies, 4, [5], b"\x01" * 20) == [[(KIND_ABSENT, 0)]] * copies


def test_truncation_at_every_byte(core: Core, copies: int) -> None:
    stats = [field(1, 0, b"\x05") + field(3, 0, b"\x81\x01"), field(1, 0, b"\x06") + field(5, 2, b"abc", 1)]
    body = field(4, 2, stats[0]) + field(1, 0, varint(-1)) + field(4, 2, stats[1])
    for n in range(len(body) + 1):
        for gap in (b"", b"\x01" * 20):
            assert pick(core, [body[:n]] * copies, 4, [5, 6], gap) == [reference(body[:n], 4, [5, 6])] * copies


def test_damaged_messages(core: Core) -> None:
    rng = random.Random(3)
    wanted = [0, 1, 2, 3, 4, -1]
    bodies = [damaged(rng, random_event(rng)) for _ in range(3000)]
    found = pick(core, bodies, 4, wanted, b"\x22\x03\x08")
    assert found == [reference(body, 4, wanted) for body in bodies]
    assert {cell[0] for row in found for cell in row} == set(range(9))


@given(st.lists(st.binary(max_size=60), max_size=40), st.sampled_from([1, 4, 20]))
def test_any_bytes(core: Core, bodies: list[bytes], stats_field: int) -> None:
    wanted = [0, 1, 2, -1]
    assert pick(core, bodies, stats_field, wanted) == [reference(body, stats_field, wanted) for body in bodies]


def test_messages_with_many_stats(core: Core) -> None:
    """More than the numpy core looks at one at a time, in a message and in a stat."""
    rng = random.Random(8)
    wanted = [4, 1, 77]
    many = b"".join(field(4, 2, random_stat(rng)) for _ in range(600)) + field(4, 2, field(1, 0, varint(77)))
    long_stat = field(4, 2, field(4, 0, b"\x05") * 2100 + field(1, 0, varint(77)) + field(7, 0, b"\x06"))
    for body in (many, many + b"\x0b", many + b"\x22\x7fabc", long_stat, long_stat[:-1]):
        assert len(body) > numpy_core._LONG
        assert pick(core, [body], 4, wanted) == [reference(body, 4, wanted)]
        assert pick(core, [body] * 40, 4, wanted) == [reference(body, 4, wanted)] * 40
    for value in (field(2, 1, struct.pack("<d", -1.5)), field(6, 2, b"abc"), field(3, 0, varint(-1))):
        body = field(4, 2, field(1, 0, varint(77)) + value)
        assert pick(core, [body], 4, wanted) == [reference(body, 4, wanted)]


@pytest.mark.parametrize("stats_field", [0, -1, 1 << 29, 1 << 61, -(1 << 63)])
def test_a_field_that_cannot_be(core: Core, stats_field: int) -> None:
    assert pick(core, [field(4, 2, field(1, 0, b"\x05"))], stats_field, [5]) == [[(KIND_ABSENT, 0)]]


def test_nothing_wanted_and_no_messages(core: Core) -> None:
    assert pick(core, [b"\x22\x00"], 4, []) == [[]]
    assert pick(core, [], 4, [1, 2]) == []


def test_an_id_wanted_twice_is_refused(core: Core) -> None:
    with pytest.raises(ValueError):
        pick(core, [b"\x22\x00"], 4, [1, 1])
