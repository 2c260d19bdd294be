"""The tiles that the compiler chose, ``window_config`` in an instruction's ``backend_config``, and the time they tell.

The bounds of a window are in the array's physical order, major to minor: the last counts 128 lanes, the one before it 8
sublanes, all others single elements. ``iteration_bounds`` are the steps of the pipeline, outermost first. Those of a
product are: batch dimensions of the result, its features, spatial dimensions that stand for features, rows, spatial
dimensions that stand for rows, the dimensions of the window, and the contraction.

Each step takes the larger of multiplying its windows and of moving the windows that change. The constants were found on
programs for a TPU v6e whose times others measured. On other chips they are scaled by the peaks, with a wider band.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.hlo.matrix import spatial_kinds
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import round_up

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

PRODUCT_BAND, STREAM_BAND, SCALED_BAND, UNCLAIMED_BAND = 0.10, 0.20, 0.40, 0.60
"""How far the truth may lie from what is told of products, of streams, on other chips, and where nothing is claimed."""

_STREAMED, BESIDE_PRODUCTS = 0.78, 0.72
"""The part of HBM's peak that loops and copies come to, and that the arrays of a product do."""

_STEP_S, _ACCUMULATING_STEP_S = 0.4e-6, 0.6e-6
"""What a step of a product takes beside multiplying: without and with a sum over several steps."""

_OVER_CYCLES, FEW_BYTES = 3.0, 1_000_000
"""The compiler's cycles are up to so many times the truth for what streams through HBM, and right for fewer bytes."""


class Chip(NamedTuple):
    """What one device of a kind does: FLOP/s of bfloat16, bytes/s of HBM, cycles/s; and the side of its matrix unit."""

    flops: float
    hbm: float
    clock: float
    side: int


FITTED = "TPU v6e"
"""The chip on which the constants were found."""

CHIPS = {
    "TPU v4": Chip(275e12, 1228.8e9, 1.05e9, 128),
    "TPU v5e": Chip(197e12, 819.2e9, 1.5e9, 128),
    "TPU v5p": Chip(459e12, 2765e9, 1.75e9, 128),
    FITTED: Chip(918e12, 1638e9, 1.75e9, 256),
    "TPU7x": Chip(1153.5e12, 3690e9, 1.9e9, 256),
}
"""Those that are known, by their usual names; a chip of a TPU7x is two devices."""

_LANES, _SUBLANES, _VMEM = 128, 8, "1"
_BOUNDS = ("iteration_bounds", "input_window_bounds", "kernel_window_bounds", "output_window_bounds")


class Axis(NamedTuple):
    """One axis of a product's steps: how many, and which windows move along it: ``left``, ``right``, ``out``."""

    steps: int
    moves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tiles:
    """How an instruction is cut up: steps along each axis, the outermost first, and bounds of its windows as written.

    The windows are of the left and the right operand and of the result. `cycles` are the compiler's estimate, 0
    without one, `scoped_bytes` the VMEM that the instruction uses for itself. Of a product whose steps its sizes
    explain, `axes` says what moves when, `block` is its window, rows, features and contraction in elements, and
    `slides` whether a position of its result meets several positions of its input.
    """

    iteration: tuple[int, ...]
    windows: tuple[tuple[int, ...], ...]
    cycles: int
    scoped_bytes: int | None
    axes: tuple[Axis, ...] = ()
    block: tuple[int, int, int] = (0, 0, 0)
    slides: bool = False

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
    made = _product(tiles, product, (*shapes, product.shape))
    return made if tuple(axis.steps for axis in made.axes) == iteration else tiles


def _product(tiles: Tiles, product: hlo_pb2.HloInstructionProto, shapes: Sequence[hlo_pb2.ShapeProto]) -> Tiles:
    """The same with what a convolution of these operands and this result, the last one, does in its steps."""
    left, right, out = (_window(shape, bounds) for shape, bounds in zip(shapes, tiles.windows, strict=True))
    numbers, kinds = product.convolution_dimension_numbers, spatial_kinds(product, *(one.dimensions for one in shapes))
    outs = [out[place] for place in numbers.output_spatial_dimensions]
    kernels = [right[place] for place in numbers.kernel_spatial_dimensions]
    batch = [size for size, kind in zip(outs, kinds, strict=True) if kind == "batch"]
    features = [out[numbers.output_feature_dimension]]
    features += [size for size, kind in zip(outs, kinds, strict=True) if kind == "feature"]
    rows = [out[numbers.output_batch_dimension]]
    rows += [size for size, kind in zip(outs, kinds, strict=True) if kind == "row"]
    inner = [size if kind == "row" else (1, 1) for size, kind in zip(kernels, kinds, strict=True)]
    slides = any(of_out[0] > 1 and kernel[0] > 1 for of_out, kernel in zip(outs, inner, strict=True))
    inner.append(left[numbers.input_feature_dimension])
    ways = (
        (batch, ("left", "right", "out")),
        (features, ("right", "out")),
        (rows, ("left", "out")),
        (inner, ("left", "right")),
    )
    axes = tuple(Axis(-(-size // window), moves) for sizes, moves in ways for size, window in sizes)
    rows_of, features_of, depth = (prod(window for _, window in sizes) for sizes in (rows + batch, features, inner))
    return replace(tiles, axes=axes, block=(rows_of, features_of, depth), slides=slides)


def _window(shape: hlo_pb2.ShapeProto, bounds: Sequence[int]) -> dict[int, tuple[int, int]]:
    """The size of an array along each dimension, and that of a window, which is no larger."""
    order = list(reversed(shape.layout.minor_to_major))
    units = [*[1] * (len(order) - 2), _SUBLANES, _LANES][-len(order) :]
    sizes = [shape.dimensions[place] for place in order]
    windows = [max(1, min(bound * unit, size)) for bound, unit, size in zip(bounds, units, sizes, strict=True)]
    return dict(zip(order, zip(sizes, windows, strict=True), strict=True))


def product_told(tiles: Tiles, moved: Iterable[tuple[str, int]], peak: float, chip: Chip) -> tuple[float, float]:
    """Seconds of a product, by walking through its steps, and how far the truth may lie from them, as a part.

    Of the steps at which one axis is the outermost that moves, all move the same windows.

    Args:
        moved: bytes of each array in HBM, and which it is: ``left``, ``right``, or ``out`` if it goes with the result.
        peak: FLOP/s of its types.
    """
    rows, features, contraction = tiles.block
    accumulates = any(axis.steps > 1 and "out" not in axis.moves for axis in tiles.axes)
    step = 2 * rows * round_up(features, chip.side) * round_up(contraction, chip.side) / peak
    step += _ACCUMULATING_STEP_S if accumulates else _STEP_S
    windows = {"left": 0.0, "right": 0.0, "out": 0.0}
    for of, size in moved:
        windows[of] += size / tiles.count(of) / (BESIDE_PRODUCTS * chip.hbm)
    total, around = step + windows["left"] + windows["right"], 1
    for place, axis in enumerate(tiles.axes):
        moving = sum(seconds for of, seconds in windows.items() if tiles.changes(of, place))
        total += (axis.steps - 1) * around * max(step, moving)
        around *= axis.steps
    return total, PRODUCT_BAND if around * step >= (1 - PRODUCT_BAND) * total else STREAM_BAND


def stream_told(opcode: str, hbm_bytes: int, cycles: int, chip: Chip) -> tuple[float, float]:
    """The same of an op without products: its bytes through HBM, no less than a part of the compiler's cycles.

    The cycles of broadcasts are ten times the truth.
    """
    of_cycles = cycles / chip.clock / (_OVER_CYCLES if hbm_bytes > FEW_BYTES else 1.0)
    moving = hbm_bytes / (_STREAMED * chip.hbm)
    return moving if opcode == "broadcast" else max(moving, of_cycles), STREAM_BAND
