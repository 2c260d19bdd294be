"""Which axes of a module are one: what a batch reaches over sums, reshapes, tiles, loops and products."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import parse_shape, shape_to_proto
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.batch.axes import Axes, Share
from tpuprof.parsers.memory.batch.relations import relate


class Made:
    """A module made by hand, one computation after the other; the first is the entry."""

    def __init__(self) -> None:
        self.proto = hlo_pb2.HloProto()
        self.proto.hlo_module.entry_computation_id = 1
        self._last = 0
        self.computation(1)

    def computation(self, number: int) -> hlo_pb2.HloComputationProto:
        self.inside = self.proto.hlo_module.computations.add(id=number)
        return self.inside

    def add(self, opcode: str, shape: str | Sequence[str], *operands: int, **fields: object) -> int:
        self._last += 1
        made = self.inside.instructions.add(id=self._last, opcode=opcode.encode(), operand_ids=operands, **fields)
        self.inside.root_id = self._last
        shapes = [shape] if isinstance(shape, str) else shape
        if not isinstance(shape, str):
            made.shape.element_type = 13
        for each in shapes:
            read = parse_shape(each)
            assert read is not None
            shape_to_proto(read, made.shape if isinstance(shape, str) else made.shape.tuple_shapes.add())
        return self._last

    def axes(self) -> Axes:
        return relate(HloModule(self.proto))


def marked(axes: Axes, seed: int, number: int, leaf: int = 0) -> list[Share | None]:
    """The shares of an instruction's dimensions, where the leading one of another is the batch."""
    first = axes.leaves[seed][0]
    found = axes.spread({first.first: Share(1, first.dims[0])})
    return [found.get(axes.root(axis)) for axis in axes.leaves[number][leaf].axes]


def test_a_reshape_puts_the_batch_outside_of_the_tokens_and_back() -> None:
    made = Made()
    x = made.add("parameter", "f32[4,8,16]{2,1,0}")
    rows = made.add("reshape", "f32[32,16]{1,0}", x)
    back = made.add("reshape", "f32[4,2,4,16]{3,2,1,0}", rows)
    axes = made.axes()
    assert marked(axes, x, rows) == [Share(8, 4), None]
    assert marked(axes, x, back) == [Share(1, 4), None, None, None]


def test_of_a_batch_that_is_split_the_outer_part_grows() -> None:
    made = Made()
    x = made.add("parameter", "f32[12,16]{1,0}")
    parts = made.add("reshape", "f32[3,4,16]{2,1,0}", x)
    assert marked(made.axes(), x, parts) == [Share(1, 3), None, None]


def test_a_bitcast_goes_by_the_layout_and_its_tiles() -> None:
    made = Made()
    x = made.add("parameter", "s32[4,1024]{1,0:T(4,128)}")
    tiles = made.add("bitcast", "s32[8,4,128]{2,1,0}", x)
    turned = made.add("bitcast", "s32[1024,4]{0,1:T(4,128)}", x)
    axes = made.axes()
    assert marked(axes, x, tiles) == [None, Share(1, 4), None]
    assert marked(axes, x, turned) == [None, Share(1, 4)]


def test_what_a_loop_fills_is_reached_from_its_slices() -> None:
    """The array is set aside empty, and only the updates inside of the loop say what it is."""
    made = Made()
    x = made.add("parameter", "f32[4,16]{1,0}")
    empty = made.add("custom-call", "f32[3,4,16]{2,1,0}")
    start = made.add("tuple", ["f32[4,16]{1,0}", "f32[3,4,16]{2,1,0}"], x, empty)
    loop = made.add("while", ["f32[4,16]{1,0}", "f32[3,4,16]{2,1,0}"], start, called_computation_ids=[2])
    made.add("get-tuple-element", "f32[3,4,16]{2,1,0}", loop, tuple_index=1)
    made.computation(2)
    given = made.add("parameter", ["f32[4,16]{1,0}", "f32[3,4,16]{2,1,0}"])
    h = made.add("get-tuple-element", "f32[4,16]{1,0}", given, tuple_index=0)
    kept = made.add("get-tuple-element", "f32[3,4,16]{2,1,0}", given, tuple_index=1)
    piece = made.add("reshape", "f32[1,4,16]{2,1,0}", h)
    filled = made.add("dynamic-update-slice", "f32[3,4,16]{2,1,0}", kept, piece)
    made.add("tuple", ["f32[4,16]{1,0}", "f32[3,4,16]{2,1,0}"], h, filled)
    axes = made.axes()
    assert marked(axes, x, empty) == [None, Share(1, 4), None]
    assert marked(axes, x, loop, 1) == [None, Share(1, 4), None]


def test_a_product_keeps_the_batch_and_its_gradient_sums_over_it() -> None:
    made = Made()
    x = made.add("parameter", "f32[32,16]{1,0}")
    w = made.add("parameter", "f32[16,64]{1,0}")
    forward = hlo_pb2.DotDimensionNumbers(lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0])
    y = made.add("dot", "f32[32,64]{1,0}", x, w, dot_dimension_numbers=forward)
    over = hlo_pb2.DotDimensionNumbers(lhs_contracting_dimensions=[0], rhs_contracting_dimensions=[0])
    gradient = made.add("dot", "f32[16,64]{1,0}", x, y, dot_dimension_numbers=over)
    axes = made.axes()
    assert marked(axes, x, y) == [Share(1, 32), None]
    assert marked(axes, x, gradient) == marked(axes, x, w) == [None, None]


def test_a_product_as_convolution_keeps_it_too() -> None:
    """A batch of products is a convolution whose spatial dimension is dilated to its own length."""
    made = Made()
    x = made.add("parameter", "f32[4,8,16]{2,1,0}")
    w = made.add("parameter", "f32[4,16,64]{2,1,0}")
    numbers = hlo_pb2.ConvolutionDimensionNumbers(
        input_batch_dimension=1, input_feature_dimension=2, input_spatial_dimensions=[0],
        kernel_input_feature_dimension=1, kernel_output_feature_dimension=2, kernel_spatial_dimensions=[0],
        output_batch_dimension=1, output_feature_dimension=2, output_spatial_dimensions=[0],
    )  # fmt: skip
    window = hlo_pb2.Window(dimensions=[hlo_pb2.WindowDimension(size=4, stride=3, base_dilation=4)])
    y = made.add("convolution", "f32[4,8,64]{2,1,0}", x, w, convolution_dimension_numbers=numbers, window=window)
    axes = made.axes()
    assert marked(axes, x, y) == [Share(1, 4), None, None] == marked(axes, x, w)


def test_what_chips_gather_has_the_batch_of_each() -> None:
    made = Made()
    x = made.add("parameter", "s32[2,1024]{1,0}")
    every = made.add("all-gather", "s32[16,1024]{1,0}", x)
    mine = made.add("dynamic-slice", "s32[2,1024]{1,0}", every)
    axes = made.axes()
    assert marked(axes, x, every) == [Share(1, 2), None]
    assert marked(axes, x, mine) == [Share(1, 2), None]


def test_a_transpose_a_broadcast_a_sum_and_a_fusion() -> None:
    made = Made()
    x = made.add("parameter", "f32[4,8]{1,0}")
    turned = made.add("transpose", "f32[8,4]{1,0}", x, dimensions=[1, 0])
    wide = made.add("broadcast", "f32[8,3,4]{2,1,0}", turned, dimensions=[0, 2])
    zero = made.add("constant", "f32[]")
    least = made.add("reduce", "f32[3,4]{1,0}", wide, zero, dimensions=[0])
    fused = made.add("fusion", "f32[3,4]{1,0}", least, called_computation_ids=[2])
    made.computation(2)
    given = made.add("parameter", "f32[3,4]{1,0}")
    made.add("negate", "f32[3,4]{1,0}", given)
    axes = made.axes()
    assert marked(axes, x, turned) == [None, Share(1, 4)]
    assert marked(axes, x, wide) == [None, None, Share(1, 4)]
    assert marked(axes, x, least) == marked(axes, x, given) == marked(axes, x, fused) == [None, Share(1, 4)]


def test_equal_lengths_alone_relate_nothing() -> None:
    made = Made()
    x = made.add("parameter", "f32[16,16]{1,0}")
    w = made.add("parameter", "f32[16,16]{1,0}")
    numbers = hlo_pb2.DotDimensionNumbers(lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0])
    made.add("dot", "f32[16,16]{1,0}", x, w, dot_dimension_numbers=numbers)
    axes = made.axes()
    assert marked(axes, x, x) == [Share(1, 16), None]
    assert marked(axes, x, w) == [None, None]


def test_a_dimension_below_zero_is_none() -> None:
    """As one beyond the last: a damaged convolution names them."""
    made = Made()
    left, kernel = made.add("parameter", "f32[8,4]"), made.add("parameter", "f32[8,4]", parameter_number=1)
    made.add("convolution", "f32[8,4]", left, kernel)
    numbers = made.proto.hlo_module.computations[0].instructions[-1].convolution_dimension_numbers
    numbers.input_batch_dimension = numbers.output_batch_dimension = -5
    numbers.input_feature_dimension, numbers.kernel_input_feature_dimension = -1, -2
    axes = made.axes()
    (first,), (second,) = axes.leaves[left], axes.leaves[kernel]
    assert not {axes.root(axis) for axis in first.axes} & {axes.root(axis) for axis in second.axes if axis}
