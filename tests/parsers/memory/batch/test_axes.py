"""Which axes of a module are one: what a batch reaches over sums, reshapes, tiles, loops and products."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import parse_shape, shape_to_proto
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.batch.axes import Axes, Share, leaf_at
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
    found = axes.batch_axes({first.first: Share(1, first.dims[0])})
    return [found.get(axes.root(axis)) for axis in axes.leaves[number][leaf].axes]


FACTORS = st.lists(st.tuples(st.integers(2, 4), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4)


@given(FACTORS)
def test_of_a_batch_that_is_split_or_joined_the_outermost_part_grows(factors: list[tuple[int, int, int]]) -> None:
    """Each side joins a factor with the one before it, begins a dimension with it, or that and one of length 1."""
    sides: tuple[list[int], list[int]] = ([], [])
    for factor, *ways in factors:
        for dims, way in zip(sides, ways, strict=True):
            if way and dims:
                dims[-1] *= factor
            else:
                dims.append(factor)
            dims.extend([1] * (way == 2))
    made = Made()
    shapes = [f"f32[{','.join(map(str, dims))}]{{{','.join(map(str, reversed(range(len(dims)))))}}}" for dims in sides]
    x = made.add("parameter", shapes[0])
    y = made.add("reshape", shapes[1], x)
    (old, *_), (new, *rest) = sides
    assert marked(made.axes(), x, y) == [Share(max(1, new // old), min(old, new)), *(None for _ in rest)]


def test_a_bitcast_goes_by_the_layout_and_its_tiles() -> None:
    made = Made()
    x = made.add("parameter", "s32[4,1024]{1,0:T(4,128)}")
    tiles = made.add("bitcast", "s32[8,4,128]{2,1,0}", x)
    turned = made.add("bitcast", "s32[1024,4]{0,1:T(4,128)}", x)
    axes = made.axes()
    assert marked(axes, x, tiles) == [None, Share(1, 4), None]
    assert marked(axes, x, turned) == [None, Share(1, 4)]


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


def test_equal_lengths_alone_relate_nothing() -> None:
    made = Made()
    x = made.add("parameter", "f32[16,16]{1,0}")
    w = made.add("parameter", "f32[16,16]{1,0}")
    numbers = hlo_pb2.DotDimensionNumbers(lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0])
    made.add("dot", "f32[16,16]{1,0}", x, w, dot_dimension_numbers=numbers)
    axes = made.axes()
    assert marked(axes, x, x) == [Share(1, 16), None]
    assert marked(axes, x, w) == [None, None]


@given(st.integers(0, 4), st.integers(0, 4))
def test_tiles_that_are_not_full_or_of_no_size_relate_nothing(high: int, wide: int) -> None:
    made = Made()
    x = made.add("parameter", f"s32[4,4]{{1,0:T({high},{wide})}}")
    flat = made.add("bitcast", "s32[16]{0}", x)
    is_full = high and wide and not 4 % high and not 4 % wide
    outermost = Share(4 * high, 4 // high) if 0 < high < 4 else Share(wide, 4)
    assert marked(made.axes(), x, flat) == [outermost if is_full else None]


@given(st.lists(st.integers(-9, 9), min_size=3, max_size=3))
def test_dimensions_and_parts_that_are_not_there_relate_nothing(numbers: list[int]) -> None:
    made = Made()
    left, kernel = (made.add("parameter", "f32[4,1]") for _ in range(2))
    result = made.add("convolution", "f32[4,1]", left, kernel)
    instruction = made.inside.instructions[-1]
    of = instruction.convolution_dimension_numbers
    of.input_batch_dimension = of.input_feature_dimension = of.kernel_input_feature_dimension = 9
    for spatial, number in zip(("input", "kernel", "output"), numbers, strict=True):
        getattr(of, f"{spatial}_spatial_dimensions").append(number)
    instruction.window.dimensions.add()
    assert marked(made.axes(), left, result) == [None, None] or set(numbers) <= {0, 1}
    instruction.shape.tuple_shapes.add()  # an array has no parts, whatever stands there
    assert leaf_at(instruction.shape, [0]) is None and leaf_at(instruction.shape, []) == 0
