"""Matrix unit padding: sizes of dots and of convolutions in all their disguises."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.demo.profile.hlo_cost import convolution_flops
from tests.demo.profile.hlo_module import Module
from tpuprof.parsers.formats.hlo.matrix import MatrixWork, matrix_works, mxu_side
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2

WindowSpec = tuple[int, int, int, int, int]
"""Size, stride, padding on both sides, window dilation, base dilation."""


def product(left: Sequence[int], right: Sequence[int], out: Sequence[int], opcode: bytes) -> hlo_pb2.HloProto:
    """A module with one instruction `p` of two parameters."""
    proto = hlo_pb2.HloProto()
    main = proto.hlo_module.computations.add(name=b"main", id=1)
    for number, dims in ((1, left), (2, right)):
        shape = hlo_pb2.ShapeProto(element_type=16, dimensions=dims)
        main.instructions.add(name=b"a%d" % number, opcode=b"parameter", id=number, shape=shape)
    shape = hlo_pb2.ShapeProto(element_type=16, dimensions=out)
    main.instructions.add(name=b"p", opcode=opcode, id=3, operand_ids=[1, 2], shape=shape)
    return proto


def dot(left: Sequence[int], right: Sequence[int], dims: Sequence[Sequence[int]]) -> hlo_pb2.HloProto:
    """`dims`: contracting of left and right, batch of left and right."""
    proto = product(left, right, [1], b"dot")
    numbers = proto.hlo_module.computations[0].instructions[2].dot_dimension_numbers
    numbers.lhs_contracting_dimensions[:], numbers.rhs_contracting_dimensions[:] = dims[0], dims[1]
    numbers.lhs_batch_dimensions[:], numbers.rhs_batch_dimensions[:] = dims[2], dims[3]
    return proto


def convolution(
    left: Sequence[int], right: Sequence[int], out: Sequence[int], windows: Sequence[WindowSpec]
) -> hlo_pb2.HloProto:
    """Dimensions in the order batch/spatial/feature, spatial/input/output and batch/spatial/feature."""
    proto = product(left, right, out, b"convolution")
    one = proto.hlo_module.computations[0].instructions[2]
    numbers, spatial = one.convolution_dimension_numbers, len(windows)
    numbers.input_feature_dimension = numbers.output_feature_dimension = spatial + 1
    numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension = spatial, spatial + 1
    numbers.input_spatial_dimensions[:] = numbers.output_spatial_dimensions[:] = range(1, spatial + 1)
    numbers.kernel_spatial_dimensions[:] = range(spatial)
    for size, stride, padding, window_dilation, base_dilation in windows:
        one.window.dimensions.add(
            size=size,
            stride=stride,
            padding_low=padding,
            padding_high=padding,
            window_dilation=window_dilation,
            base_dilation=base_dilation,
        )
    return proto


def work(proto: hlo_pb2.HloProto, mxu: int = 128) -> MatrixWork:
    (found,) = matrix_works(HloModule(proto), "p", mxu)
    return found


def sizes(found: MatrixWork) -> tuple[int | None, ...]:
    return (found.m, found.k, found.n, found.batch)


@pytest.mark.parametrize(
    ("kind", "side"),
    [
        ("TPU v2", 128),
        ("TPU v3", 128),
        ("TPU v4", 128),
        ("TPU v5 Lite", 128),
        ("TPU v5", 128),
        ("TPU v5p", 128),
        ("TPU v6 Lite", 256),
        ("TPU7x", 256),
        ("TPU v11", 256),
        ("TPU test", None),
        ("TPU v1", None),
        ("NVIDIA H100", None),
        ("TPU v" + "9" * 5000, None),
        ("", None),
        (None, None),
    ],
)
def test_side_of_the_matrix_unit(kind: str | None, side: int | None) -> None:
    assert mxu_side(kind) == side


def test_a_dot_with_batch() -> None:
    found = work(dot([4, 100, 64], [4, 64, 129], [[2], [1], [0], [0]]))
    assert sizes(found) == (100, 64, 129, 4)
    assert (found.padded_m, found.padded_k, found.padded_n) == (104, 128, 256)
    assert found.share == 100 * 64 * 129 / (104 * 128 * 256)
    assert (found.name, found.opcode, found.padded_dimension, found.meaning) == ("p", "dot", "k", "contraction")
    assert work(dot([4, 100, 64], [4, 64, 129], [[2], [1], [0], [0]]), 256).padded_k == 256


@pytest.mark.parametrize(
    ("m", "k", "n", "worst", "meaning"),
    [
        (1, 128, 128, "m", "rows"),
        (8, 100, 128, "k", "contraction"),
        (8, 128, 10, "n", "output features"),
        (16, 256, 384, None, None),
        (1, 16, 16, "m", "rows"),
    ],
)
def test_the_worst_dimension_is_named(m: int, k: int, n: int, worst: str | None, meaning: str | None) -> None:
    found = work(dot([m, k], [k, n], [[1], [0], [], []]))
    assert (found.padded_dimension, found.meaning) == (worst, meaning)
    assert (found.share == 1.0) == (worst is None)


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 1000), st.sampled_from((128, 256)))
def test_the_share_is_one_exactly_without_padding(m: int, k: int, n: int, mxu: int) -> None:
    found = work(dot([m, k], [k, n], [[1], [0], [], []]), mxu)
    assert found.share is not None and 0 < found.share <= 1
    assert (found.share == 1) == (m % 8 == k % mxu == n % mxu == 0) == (found.padded_dimension is None)


_SMALL = st.integers(1, 9)


@given(_SMALL, _SMALL, st.tuples(_SMALL, st.integers(1, 4), st.integers(-3, 5), st.integers(1, 4), st.integers(1, 4)))
def test_flops_count_the_positions_that_meet_the_input(size: int, out: int, window: WindowSpec) -> None:
    kernel, stride, padding, step, spread = window
    met = [p * stride - padding + r * step for p in range(out) for r in range(kernel)]
    pairs = sum(place % spread == 0 and 0 <= place <= (size - 1) * spread for place in met)
    assert work(convolution([5, size, 7], [kernel, 7, 9], [5, out, 9], [window])).flops == 2 * 5 * 7 * 9 * pairs


@given(st.integers(2, 40))
def test_batch_and_feature_dimensions_written_as_windows(b: int) -> None:
    batches: list[WindowSpec] = [(b, max(b - 1, 1), 0, 1, b), (b, b, b - 1, 1, b - 1), (b, 1, 0, max(b - 1, 1), b)]
    for window in batches:
        assert sizes(work(convolution([5, b, 7], [b, 7, 9], [5, b, 9], [window]))) == (5, 7, 9, b)
    assert sizes(work(convolution([5, 1, 7], [b, 7, 9], [5, b, 9], [(b, 1, b - 1, 1, 1)]))) == (5, 7, 9 * b, 1)
    assert sizes(work(convolution([5, b, 7], [b, 7, 9], [5, 1, 9], [(b, 1, 0, 1, 1)]))) == (5, 7 * b, 9, 1)
    assert sizes(work(convolution([5, b, 7], [1, 7, 9], [5, b, 9], [(1, 1, 0, 1, 1)]))) == (5 * b, 7, 9, 1)
    same = work(convolution([5, b, 7], [b, 7, 9], [5, b, 9], [(b, 1, b // 2, 1, 1)]))
    assert sizes(same) == (5 * b, 7 * b, 9, 1)


def test_groups_zeros_and_missing_shapes_have_no_share() -> None:
    proto = convolution([32, 28, 64], [3, 1, 64], [32, 28, 64], [(3, 1, 1, 1, 1)])
    proto.hlo_module.computations[0].instructions[2].feature_group_count = 64
    found = work(proto)
    assert (found.share, found.m, found.padded_dimension) == (None, None, None)
    assert found.reason == "grouped convolutions are not modelled"
    proto = convolution([32, 28, 64], [3, 64, 64], [32, 28, 64], [(3, 1, 1, 1, 1)])
    proto.hlo_module.computations[0].instructions[2].batch_group_count = 2
    assert work(proto).share is None
    assert work(dot([0, 5], [5, 6], [[1], [0], [], []])).reason == "one of its dimensions is 0"
    assert work(dot([-2, 5], [5, 6], [[1], [0], [], []])).share is None
    assert work(dot([4, 5], [5, 6], [[7], [0], [], []])).share is None
    assert work(dot([4, 5], [5, 6], [[1, 1], [0], [], []])).share is None
    assert work(dot([2] * 100, [5, 6], [[1], [0], [], []])).share is None
    huge = work(dot([2**62, 2**62, 5], [5, 6], [[2], [0], [], []]))
    assert (huge.share, huge.reason) == (None, "its dimensions are too large to be true")
    assert work(convolution([5, 8, 7], [3, 7, 9], [5, 8, 9], [])).share is None
    proto = dot([4, 5], [5, 6], [[1], [0], [], []])
    proto.hlo_module.computations[0].instructions[2].operand_ids[:] = [1, 77]
    assert work(proto).reason == "the shapes of its operands are unknown"


def test_products_are_found_in_fusions_of_fusions() -> None:
    proto = dot([8, 128], [128, 256], [[1], [0], [], []])
    module = proto.hlo_module
    outer = module.computations.add(name=b"outer", id=2)
    outer.instructions.add(name=b"inside", opcode=b"fusion", id=10, called_computation_ids=[1])
    outer.instructions.add(name=b"back", opcode=b"fusion", id=11, called_computation_ids=[2])  # a cycle
    entry = module.computations.add(name=b"entry", id=3)
    entry.instructions.add(name=b"f", opcode=b"fusion", id=12, called_computation_ids=[2])
    entry.instructions.add(name=b"loop", opcode=b"while", id=13, called_computation_ids=[2])
    built = HloModule(proto)
    assert [found.name for found in matrix_works(built, "f", 128)] == ["p"]
    assert matrix_works(built, "loop", 128) == matrix_works(built, "none", 128) == matrix_works(built, "f", 0) == ()


@pytest.mark.parametrize(("name", "count"), [("jit_eval_step", 7), ("jit_train_step", 21)])
def test_sizes_of_compiled_convolutions_give_their_flops(name: str, count: int) -> None:
    compiled = Module(name)
    built = HloModule(compiled.proto)
    convolutions = [one for one in compiled.instructions.values() if one.opcode == b"convolution"]
    assert len(convolutions) == count
    for one in convolutions:
        (found,) = matrix_works(built, one.name.decode(), 128)
        assert found.m and found.k and found.n and found.batch
        assert 2 * found.m * found.k * found.n * found.batch == found.flops == convolution_flops(compiled, one)
