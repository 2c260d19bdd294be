"""The tiles that the compiler chose: ``window_config`` in an instruction's ``backend_config``.

The bounds of a window are in the array's physical order, major to minor: the last counts 128 lanes, the one before it 8
sublanes, all others single elements. ``iteration_bounds`` are the steps of the pipeline, outermost first. Those of a
product are: batch dimensions of the result, its features, spatial dimensions that stand for features, rows, spatial
dimensions that stand for rows, the dimensions of the window, and the contraction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.matrix import spatial_kinds
from tpuprof.parsers.formats.hlo.modules import HloModule

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

_LANES, _SUBLANES, _VMEM = 128, 8, "1"
_BOUNDS = ("iteration_bounds", "input_window_bounds", "kernel_window_bounds", "output_window_bounds")


class Axis(NamedTuple):
    """One axis of a product's steps: how many, and which windows move along it: ``left``, ``right``, ``out``."""

    steps: int
    moves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tiles:
    """How an instruction is cut up.

    Attributes:
        iteration: steps along each axis, the outermost first.
        windows: bounds of the windows as written, of the left and the right operand and of the result.
        cycles: the compiler's estimate; 0 without one.
        scoped_bytes: VMEM that the instruction uses for itself; None where it does not say.
        axes: of a product; () for what is none, and where they don't fit its sizes.
        block: rows, features and contraction of a product's window, in elements.
    """

    iteration: tuple[int, ...]
    windows: tuple[tuple[int, ...], ...]
    cycles: int
    scoped_bytes: int | None
    axes: tuple[Axis, ...] = ()
    block: tuple[int, int, int] = (0, 0, 0)

    def count(self, of: str) -> int:
        """How many windows an array, ``left``, ``right`` or ``out``, has."""
        return prod(axis.steps for axis in self.axes if of in axis.moves)

    def streams(self, of: str) -> int:
        """How often an array passes between HBM and the chip.

        A window is loaded anew at each step at which an axis that it depends on, or one outside of it, moves.
        """
        inner = max((place for place, axis in enumerate(self.axes) if axis.steps > 1 and of in axis.moves), default=0)
        return prod(axis.steps for axis in self.axes[:inner] if of not in axis.moves)

    def changes(self, of: str, place: int) -> bool:
        """Whether the window of an array changes at a step at which this axis is the outermost that moves."""
        inner = self.axes[place + 1 :]
        return of in self.axes[place].moves or any(axis.steps > 1 and of in axis.moves for axis in inner)


def tiles_of(
    module: HloModule, proto: hlo_pb2.HloInstructionProto, product: hlo_pb2.HloInstructionProto | None
) -> Tiles | None:
    """How an instruction is cut up; None where its ``backend_config`` does not say.

    Args:
        product: the one convolution in it, if it has one.
    """
    data = module.backend_config(proto)
    config = json.loads(data) if data.startswith(b"{") and b'"window_config"' in data else {}
    if not (window := config.get("window_config")):
        return None
    iteration, *windows = (tuple(int(bound) for bound in window.get(name, ())) for name in _BOUNDS)
    used = config.get("used_scoped_memory_configs", ())
    scoped = next((int(each["size"]) for each in used if str(each.get("memory_space")) == _VMEM), None)
    tiles = Tiles(iteration, tuple(windows), int(window.get("estimated_cycles", 0)), scoped)
    shapes = [operand.shape for operand in module.operand_protos(product) if operand] if product is not None else []
    if product is None or [len(shape.dimensions) for shape in (*shapes, product.shape)] != list(map(len, windows)):
        return tiles
    axes, block = _axes(product, (*shapes, product.shape), windows)
    is_fitting = tuple(axis.steps for axis in axes) == iteration
    return Tiles(iteration, tiles.windows, tiles.cycles, scoped, axes, block) if is_fitting else tiles


def _axes(
    product: hlo_pb2.HloInstructionProto, shapes: Sequence[hlo_pb2.ShapeProto], windows: Sequence[Sequence[int]]
) -> tuple[tuple[Axis, ...], tuple[int, int, int]]:
    """The axes of a convolution's steps, and rows, features and contraction of its window."""
    left, right, out = (_window(shape, bounds) for shape, bounds in zip(shapes, windows, strict=True))
    numbers, kinds = product.convolution_dimension_numbers, spatial_kinds(product, *(one.dimensions for one in shapes))
    outs, kernels = numbers.output_spatial_dimensions, numbers.kernel_spatial_dimensions
    batch, features, rows = (
        [out[place] for place, kind in zip(outs, kinds, strict=True) if kind == wanted]
        for wanted in ("batch", "feature", "row")
    )
    features, rows = [out[numbers.output_feature_dimension], *features], [out[numbers.output_batch_dimension], *rows]
    slid = [right[place] if kind == "row" else (1, 1) for place, kind in zip(kernels, kinds, strict=True)]
    inner = [*slid, left[numbers.input_feature_dimension]]
    ways = (
        (batch, ("left", "right", "out")),
        (features, ("right", "out")),
        (rows, ("left", "out")),
        (inner, ("left", "right")),
    )
    axes = tuple(Axis(-(-size // window), moves) for places, moves in ways for size, window in places)
    m, n, k = (prod(window for _, window in places) for places in (rows + batch, features, inner))
    return axes, (m, n, k)


def _window(shape: hlo_pb2.ShapeProto, bounds: Sequence[int]) -> dict[int, tuple[int, int]]:
    """The size of an array along each dimension, and that of a window, which is no larger."""
    order = list(reversed(shape.layout.minor_to_major))
    units = [*[1] * (len(order) - 2), _SUBLANES, _LANES][-len(order) :]
    sizes = [shape.dimensions[place] for place in order]
    windows = [max(1, min(bound * unit, size)) for bound, unit, size in zip(bounds, units, sizes, strict=True)]
    return dict(zip(order, zip(sizes, windows, strict=True), strict=True))
