"""Array shapes: XLA's notation, tiles and padding."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tpuprof.parsers.formats.hlo.shapes import COMBINE, Shape, parse_shape, shape_of_proto, shape_text, shapes_in
from tpuprof.parsers.formats.proto import hlo_pb2

TYPES = ("pred", "s4", "u8", "bf16", "f32", "c64", "f8e4m3fn")


def shape(text: str) -> Shape:
    found = parse_shape(text)
    assert found is not None, text
    return found


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    rank = draw(st.integers(0, 4))
    tiled = draw(st.booleans())
    tile = tuple(draw(st.lists(st.integers(1, 256), min_size=1, max_size=3)))
    dims = tuple(draw(st.lists(st.integers(0, 3000), min_size=rank, max_size=rank)))
    bounds = tuple(draw(st.lists(st.booleans(), min_size=rank, max_size=rank)))
    return Shape(
        element_type=draw(st.sampled_from(TYPES)),
        dimensions=dims,
        minor_to_major=tuple(draw(st.permutations(range(rank)))),
        tiles=(tile,) if tiled else (),
        memory_space=draw(st.integers(0, 9)),
        element_bits=draw(st.sampled_from((0, 0, 4))),
        tail_alignment=draw(st.sampled_from((1, 1, 64))),
        dynamic=bounds if any(bounds) else (),
        other=draw(st.sampled_from(("", "", "#(u32)"))),
    )


def test_a_tiled_layout_is_read_in_full() -> None:
    assert shape("f32[4,512,512,64]{3,0,2,1:T(4,128)(2,1)S(1)}") == Shape(
        element_type="f32",
        dimensions=(4, 512, 512, 64),
        minor_to_major=(3, 0, 2, 1),
        tiles=((4, 128), (2, 1)),
        memory_space=1,
    )
    packed = shape("s4[8,128]{1,0:T(8,128)(8,1)L(1024)E(4)S(5)}")
    assert (packed.element_bits, packed.memory_space, packed.tail_alignment) == (4, 5, 1024)
    assert shape("f32[<=8,4]{1,0}").dynamic == (True, False)
    assert shape("f32[8,4]{1,0:D(D,C)T(2,128)SC(0:4)#(u32)*(s64)}").other == "D(D,C)SC(0:4)#(u32)*(s64)"
    assert shape("f32[8,4]{1,0:T(*,128)}").tiles == ((COMBINE, 128),)


@pytest.mark.parametrize(
    ("text", "unpadded", "padded", "dims"),
    [
        ("f32[5,1000]{1,0:T(8,128)}", 20000, 8 * 1024 * 4, (8, 1024)),
        ("f32[5,1000]{0,1:T(8,128)}", 20000, 1000 * 128 * 4, (128, 1000)),
        ("bf16[3,16384,2048]{2,1,0:T(8,128)(2,1)}", 201326592, 201326592, (3, 16384, 2048)),
        ("f32[3,8,1024,1]{2,1,3,0:T(8,128)}", 98304, 98304, (3, 8, 1024, 1)),
        ("pred[]{:T(512)}", 1, 512, ()),
        ("bf16[]{:T(256)}", 2, 512, ()),
        ("s32[4]{0:T(128)}", 16, 512, (128,)),
        ("bf16[1000]{0:T(1024)(128)(2,1)}", 2000, 2048, (1024,)),
        ("s4[9,100]{1,0:T(8,128)(8,1)E(4)}", 450, 16 * 128 // 2, (16, 128)),
        ("u4[3]{0}", 2, 3, (3,)),  # not packed: a byte each
        ("f32[3,5]{1,0:L(16)}", 60, 64, (3, 5)),
        ("f32[0,7]{1,0:T(8,128)}", 0, 0, (0, 128)),
        ("c64[2]{0}", 16, 16, (2,)),
        ("s32[]", 4, 4, ()),
    ],
)
def test_bytes_with_and_without_padding(text: str, unpadded: int, padded: int, dims: tuple[int, ...]) -> None:
    found = shape(text)
    assert (found.unpadded_bytes, found.padded_bytes, found.padded_dimensions) == (unpadded, padded, dims)
    assert found.expansion == (padded / unpadded if unpadded else None)


@pytest.mark.parametrize(
    "text",
    [
        "f32[8]",  # no layout
        "f32[8]{}",
        "f32[8]{:T(128)}",
        "f32[8,4]{1,0:T(*,128)}",
        "f32[8,4]{1,0:T(0,128)}",
        "f32[8,4]{1,0:T(1,128)(2,1)}",  # a second tile that does not divide the first
        "f32[8,4]{1,0:T(8,128)(8,128,1)}",
        "f32[8,4]{1,0:T(8,128)SC(0:4)}",
        "f32[8,4]{1,0:D(D,C)}",
        "f32[9000000000000000000]{0:T(9000000000000000000)}",
        "token[]",
    ],
)
def test_a_size_that_is_not_known_is_none(text: str) -> None:
    found = shape(text)
    assert found.padded_bytes is None
    assert found.expansion is None
    assert shape(str(found)) == found or text == "f32[8]{}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f32",
        "f32[8",
        "f33[8]",
        "(f32[8], s32[])",
        "f32[8]{0} add(",
        "f32[8]{1}",
        "f32[8,8]{0,0}",
        "f32[-1]",
        "f32[" + "9" * 30 + "]",
        "f32[8]{0:T(8}",
        "f32[8]{0:S(1)(2)}",
        "f32[8]{0:E(-4)}",
        "f32[8]{0:P(f32[8]{0})}",
        "f32[" + "1," * 300 + "1]",
    ],
)
def test_what_is_no_array_shape_is_none(text: str) -> None:
    assert parse_shape(text) is None


@given(shapes())
@settings(max_examples=2 * EXAMPLES)
def test_text_and_sizes_of_any_shape(value: Shape) -> None:
    assert parse_shape(str(value)) == value
    assert [found.shape for found in shapes_in(f"%a = ({value}, {value}) f({value} %b)")] == [value] * 3
    padded, unpadded = value.padded_bytes, value.unpadded_bytes
    assert padded is not None and unpadded is not None
    assert padded >= unpadded
    dims = value.padded_dimensions
    assert dims is not None and all(a >= b for a, b in zip(dims, value.dimensions, strict=True))


@given(st.text(alphabet='f32bs41[]{}(),:T*SEL<=?"\\ %.', max_size=200))
@settings(max_examples=3 * EXAMPLES)
def test_hostile_text_never_raises(text: str) -> None:
    parse_shape(text)
    end = 0
    for found in shapes_in(text):
        assert found.begin >= end
        end = found.end
        assert parse_shape(text[found.begin : found.end]) == found.shape
        assert parse_shape(str(found.shape)) is not None


def test_shapes_of_an_expression_come_with_their_places() -> None:
    text = (
        "%fusion.1 = (f32[8]{0:T(128)}, /*index=1*/bf16[2,3]{1,0}) fusion(s32[]{:T(128)} %my.f32[3], token[] %t, "
        'f32[4]{odd} %x), kind=kLoop, metadata={op_name="jit(f)/f32[99]" line=3}, s8[5]'
    )
    found = shapes_in(text)
    assert [text[one.begin : one.end] for one in found] == [
        "f32[8]{0:T(128)}",
        "bf16[2,3]{1,0}",
        "s32[]{:T(128)}",
        "token[]",
        "s8[5]",
    ]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("f32[" * 100_000, 0),
        ("f32[1," * 100_000, 0),
        ("f32[8]{" * 100_000, 0),
        ("f32[8]{0:" + "T(8" * 100_000, 0),
        ('"\\' * 200_000, 0),
        ("f32[2]{0} " * 20_000, 20_000),
    ],
)
def test_long_texts_are_read_once(text: str, count: int) -> None:
    assert len(shapes_in(text)) == count


def test_protos_of_every_kind() -> None:
    proto = hlo_pb2.ShapeProto(element_type=13)
    proto.tuple_shapes.add(element_type=11, dimensions=[2, 3]).layout.minor_to_major[:] = [0, 1]
    proto.tuple_shapes.add(element_type=17)
    proto.tuple_shapes.add(element_type=99)
    assert shape_text(proto) == "(f32[2,3]{0,1}, token[], ?)"
    assert shape_of_proto(proto) is None
    bad = hlo_pb2.ShapeProto(element_type=11, dimensions=[2, -3])
    assert shape_of_proto(bad) is None
    bad = hlo_pb2.ShapeProto(element_type=11, dimensions=[2, 3], layout=hlo_pb2.LayoutProto(minor_to_major=[0, 5]))
    assert shape_of_proto(bad) is None
    bound = hlo_pb2.ShapeProto(element_type=4, dimensions=[8], is_dynamic_dimension=[True])
    assert shape_text(bound) == "s32[<=8]"
