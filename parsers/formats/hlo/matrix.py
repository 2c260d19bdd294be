"""How well the matrix products of an instruction fill a TPU's matrix unit: an estimate from shapes.

A product of [m, k] by [k, n] keeps k x n blocks of one operand in the unit, which is a square of 128 (TPU v2 to v5) or
256 (v6 and later) multipliers a side, and feeds it rows of the other, eight at a time. A size that is no multiple of
the block is padded, and the padding is multiplied like the rest. The compiler may lay a product out otherwise (swap
the operands, fold small dimensions together), so a low share is a hint where to look.

TPU compilers write dots as convolutions, whose spatial dimensions may stand for batch, row, contraction or feature
dimensions; it distinguishes them by the window positions that meet the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import gcd, prod
from typing import TYPE_CHECKING, NamedTuple

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import element_bits, element_type, round_up

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2


ROWS = 8
"""Rows that a matrix unit takes at a time: the sublanes of a vector register."""

MEANING = {"m": "rows", "k": "contraction", "n": "output features"}
"""The meaning of a product's dimensions."""

_PASSES = {1: 3, 2: 6}

_LIMIT = 2**63
_VERSION = pattern(r"TPU\s*v?([0-9]{1,3})(?![0-9])", re.IGNORECASE)
_SAMPLES, _LONG_KERNEL = 8, 10_000
_MAX_RANK = 64  # of an operand; no compiler writes more, a hostile file may

_GROUPED = "grouped convolutions are not modelled"
_NO_SHAPES = "the shapes of its operands are unknown"


@dataclass(frozen=True, slots=True)
class MatrixWork:
    """One dot or convolution as products of [m, k] by [k, n].

    Attributes:
        name: the instruction's name.
        opcode: ``dot`` or ``convolution``.
        m: rows: batch and spatial positions of the output; None where unknown, as are `k` and `n` then.
        k: contraction: input features times the positions of the window.
        n: output features.
        batch: how many such products, independent of each other.
        padded_m: `m` rounded up to a multiple of `ROWS`.
        padded_k, padded_n: rounded up to multiples of the matrix unit's side.
        share: m k n over the product of the padded sizes, 0 to 1; None where unknown.
        padded_dimension: the dimension with the most padding, ``m``, ``k`` or ``n``; None where nothing is padded.
        meaning: what that dimension means, see `MEANING`.
        reason: why `share` is None; empty where it is not.
        flops: two a multiplication, without those by padding or by what a dilation spreads an operand with, as XLA
            counts them; 0 where the sizes are unknown.
    """

    name: str
    opcode: str
    m: int | None = None
    k: int | None = None
    n: int | None = None
    batch: int | None = None
    padded_m: int | None = None
    padded_k: int | None = None
    padded_n: int | None = None
    share: float | None = None
    padded_dimension: str | None = None
    meaning: str | None = None
    reason: str = ""
    flops: int = 0


class _Sizes(NamedTuple):
    m: int
    k: int
    n: int
    batch: int
    flops: int


def mxu_side(device_type: str | None) -> int | None:
    """Multipliers on a side of the matrix unit, by the device's name: 128 for TPU v2 to v5, 256 from v6 on.

    The profile does not say it. None for other devices and unknown names.
    """
    match = _VERSION.search(device_type or "")
    version = 0 if match is None else int(match[1])
    return None if version < 2 else 128 if version <= 5 else 256


def matrix_works(module: HloModule, name: str, mxu: int) -> tuple[MatrixWork, ...]:
    """Every dot and convolution in an instruction, or in what it fuses or calls, at any depth, in program order.

    Args:
        module: the compiled program.
        name: the instruction's name; the result is () where the module has none of this name.
        mxu: the matrix unit's side, see `mxu_side`.
    """
    return tuple(_work(module, proto, mxu) for proto in products(module, name)) if mxu > 0 else ()


def matrix_bits(module: HloModule, name: str) -> int | None:
    """Bits of an element of the widest operand of an instruction's dots and convolutions.

    None where the module has no such instruction, where it holds no product, or where their types are unknown.
    """
    operands = (operand for proto in products(module, name) for operand in module.operand_protos(proto)[:2])
    return max((bits for operand in operands if operand and (bits := element_bits(operand.shape))), default=None)


def matrix_types(module: HloModule, name: str) -> tuple[frozenset[str], int]:
    """Element types of the operands of an instruction's dots and convolutions, and the passes over the matrix unit.

    Operands in 32 bits are multiplied in one pass of bfloat16 at the default precision, in three at "high", in six at
    "highest" (`PrecisionConfig`). No types and one pass where the module has no such instruction.
    """
    types: set[str] = set()
    most = 0
    for proto in products(module, name):
        operands = [operand for operand in module.operand_protos(proto)[:2] if operand is not None]
        own = {kind for operand in operands if (kind := element_type(operand.shape))}
        types |= own
        if "f32" in own:
            most = max(most, *proto.precision_config.operand_precision, 0)
    return frozenset(types), _PASSES.get(most, 1)


def products(module: HloModule, name: str) -> Iterator[hlo_pb2.HloInstructionProto]:
    """The dots and convolutions that an instruction stands for, if it is there; it enters each computation once."""
    entered: set[int] = set()
    start = module.instruction_proto(name)
    waiting = [] if start is None else [start]
    while waiting:
        proto = waiting.pop()
        if proto.opcode in (b"dot", b"convolution"):
            yield proto
            continue
        computation = module.wrapped(proto)
        if computation is not None and computation.id not in entered:
            entered.add(computation.id)
            waiting.extend(reversed(computation.instructions))


def _work(module: HloModule, proto: hlo_pb2.HloInstructionProto, mxu: int) -> MatrixWork:
    product = _sizes(module, proto)
    name, opcode = proto.name.decode("utf-8", "replace"), proto.opcode.decode("utf-8", "replace")
    if isinstance(product, str):
        return MatrixWork(name, opcode, reason=product)
    sizes = {"m": product.m, "k": product.k, "n": product.n}
    padded = {key: round_up(size, ROWS if key == "m" else mxu) for key, size in sizes.items()}
    worst = min(sizes, key=lambda key: sizes[key] / padded[key])
    share = prod(sizes.values()) / prod(padded.values())
    dimension, meaning = (worst, MEANING[worst]) if sizes[worst] < padded[worst] else (None, None)
    work = MatrixWork(name, opcode, *product[:4], padded["m"], padded["k"], padded["n"], share, dimension, meaning)
    return replace(work, flops=product.flops)


def _sizes(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> _Sizes | str:
    operands = module.operand_protos(proto)
    if len(operands) < 2 or operands[0] is None or operands[1] is None:
        return _NO_SHAPES
    left, right, out = (list(shape.dimensions) for shape in (operands[0].shape, operands[1].shape, proto.shape))
    sizes = (*left, *right, *out)
    if max(len(left), len(right), len(out)) > _MAX_RANK or min(sizes, default=1) < 0:
        return _NO_SHAPES
    if 0 in sizes:
        return "one of its dimensions is 0"
    product = _dot(proto, left, right) if proto.opcode == b"dot" else _convolution(proto, left, right, out)
    if isinstance(product, _Sizes) and max(product) >= _LIMIT:
        return "its dimensions are too large to be true"
    return product


def _dot(proto: hlo_pb2.HloInstructionProto, left: Sequence[int], right: Sequence[int]) -> _Sizes | str:
    numbers = proto.dot_dimension_numbers
    inner, batch = list(numbers.lhs_contracting_dimensions), list(numbers.lhs_batch_dimensions)
    right_inner, right_batch = list(numbers.rhs_contracting_dimensions), list(numbers.rhs_batch_dimensions)
    if not (_distinct(inner + batch, len(left)) and _distinct(right_inner + right_batch, len(right))):
        return _NO_SHAPES
    m = prod(size for index, size in enumerate(left) if index not in {*inner, *batch})
    k = prod(left[index] for index in inner)
    n = prod(size for index, size in enumerate(right) if index not in {*right_inner, *right_batch})
    batches = prod(left[index] for index in batch)
    return _Sizes(m, k, n, batches, 2 * m * k * n * batches)


def _convolution(
    proto: hlo_pb2.HloInstructionProto, left: Sequence[int], right: Sequence[int], out: Sequence[int]
) -> _Sizes | str:
    """Sizes of a convolution; a group count of 0 means 1, which some writers leave out."""
    if proto.feature_group_count > 1 or proto.batch_group_count > 1:
        return _GROUPED
    numbers, window = proto.convolution_dimension_numbers, proto.window.dimensions
    lefts = [*numbers.input_spatial_dimensions, numbers.input_batch_dimension, numbers.input_feature_dimension]
    features = (numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension)
    rights = [*numbers.kernel_spatial_dimensions, *features]
    outs = [*numbers.output_spatial_dimensions, numbers.output_batch_dimension, numbers.output_feature_dimension]
    for order, shape in ((lefts, left), (rights, right), (outs, out)):
        if len(order) != len(shape) or not _distinct(order, len(shape)) or len(window) != len(shape) - 2:
            return _NO_SHAPES
    m, k, n = out[outs[-2]], right[rights[-2]], out[outs[-1]]
    batch, met = 1, 2 * m * k * n
    for index, kind in enumerate(spatial_kinds(proto, left, right, out)):
        of_left, of_right, of_out = left[lefts[index]], right[rights[index]], out[outs[index]]
        if kind == "batch":
            batch *= of_out
        elif kind == "feature":
            n *= of_out
        else:
            m *= of_out
            k *= of_right
        met *= of_out if kind != "row" else _Spatial(of_left, of_right, of_out, window[index]).pairs()
    return _Sizes(m, k, n, batch, met)


def spatial_kinds(
    proto: hlo_pb2.HloInstructionProto, left: Sequence[int], right: Sequence[int], out: Sequence[int]
) -> tuple[str, ...]:
    """What each spatial dimension of a convolution stands for: ``batch``, ``feature`` (of the output) or ``row``.

    Args:
        left, right, out: dimensions of the operands and of the result, of as many as the convolution names.
    """
    numbers, kinds = proto.convolution_dimension_numbers, []
    places = zip(
        numbers.input_spatial_dimensions,
        numbers.kernel_spatial_dimensions,
        numbers.output_spatial_dimensions,
        proto.window.dimensions,
        strict=True,
    )
    for of_left, of_right, of_out, window in places:
        spatial = _Spatial(left[of_left], right[of_right], out[of_out], window)
        kinds.append("batch" if spatial.is_batch() else "feature" if spatial.is_feature() else "row")
    return tuple(kinds)


class _Spatial:
    """One spatial dimension of a convolution: sizes of input, kernel and output, and the window over it."""

    def __init__(self, size: int, kernel: int, out: int, window: hlo_pb2.WindowDimension) -> None:
        self.input, self.kernel, self.out = size, kernel, out
        self._stride, self._before = max(1, window.stride), window.padding_low
        self._step, self._spread = max(1, window.window_dilation), max(1, window.base_dilation)

    def is_batch(self) -> bool:
        """Whether each output position meets its own input position through one kernel position."""
        return self.input == self.kernel == self.out != 1 and self._one_each(inputs_differ=True)

    def is_feature(self) -> bool:
        """Whether the one input position meets each output position through its own kernel position."""
        return self.input == 1 and self.kernel == self.out != 1 and self._one_each(inputs_differ=False)

    def pairs(self) -> int:
        """How many pairs of an output and a kernel position meet an input position, see `_meets`; all of a long kernel.

        Output position p meets one through kernel position r where ``p * stride`` is congruent to ``padding - r *
        step``, modulo the spread.
        """
        if self.kernel > _LONG_KERNEL:
            return self.out * self.kernel
        common, total = gcd(self._stride, self._spread), 0
        period = self._spread // common
        inverse = pow(self._stride // common, -1, period)
        for place in range(self.kernel):
            before = self._before - place * self._step  # the input begins here, counted from the first output position
            low = max(0, -(-before // self._stride))
            high = min(self.out - 1, (before + (self.input - 1) * self._spread) // self._stride)
            if before % common == 0 and high >= low:
                low += (before // common * inverse - low) % period
                total += max(0, (high - low) // period + 1)
        return total

    def _one_each(self, inputs_differ: bool) -> bool:
        """Checks only the first and the last few output positions, since real windows are regular in between."""
        positions = sorted({*range(min(_SAMPLES, self.out)), *range(max(0, self.out - _SAMPLES), self.out)})
        pairs = [pair for position in positions if (pair := self._meets(position)) is not None]
        kernels, inputs = {kernel for kernel, _ in pairs}, {met for _, met in pairs}
        return len(kernels) == len(pairs) == len(positions) and len(inputs) == (len(pairs) if inputs_differ else 1)

    def _meets(self, position: int) -> tuple[int, int] | None:
        """The kernel and input position that make an output position; None unless there is exactly one pair.

        Kernel position r lies at ``position * stride - padding + r * step`` of the input, spread out by `_spread`.
        """
        base = position * self._stride - self._before
        last = (self.input - 1) * self._spread
        low = max(0, -(base // self._step))  # the first r with base + r * step >= 0
        high = min(self.kernel - 1, (last - base) // self._step)
        # base + r * step must be a multiple of the spread: every `period`-th r is, or none
        common = gcd(self._step, self._spread)
        if base % common:
            return None
        period = self._spread // common
        first = -(base // common) * pow(self._step // common, -1, period) % period
        low += (first - low) % period
        return (low, (base + low * self._step) // self._spread) if low <= high < low + period else None


def _distinct(numbers: Sequence[int], rank: int) -> bool:
    return len(set(numbers)) == len(numbers) and all(0 <= number < rank for number in numbers)
