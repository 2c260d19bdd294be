"""How long an op of a compiled program takes as told by the tiles that the compiler chose.

A product goes through its steps, and each takes the larger of multiplying its windows and of moving the windows that
change. The constants were found on programs for a TPU v6e whose times others measured. On other chips they are scaled
by the peaks, with a wider band.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.shapes import round_up
from tpuprof.parsers.pages.program.tiles import Tiles

PRODUCT_BAND, STREAM_BAND, SCALED_BAND, UNCLAIMED_BAND = 0.10, 0.20, 0.40, 0.60
"""How far the truth may lie from what is told of products, of streams, on other chips, and where nothing is claimed."""

_STREAMED, _BESIDE_PRODUCTS = 0.78, 0.72
"""The part of HBM's peak that loops and copies come to, and that the arrays of a product do."""

_STEP_S, _ACCUMULATING_STEP_S = 0.4e-6, 0.6e-6
"""What a step of a product takes beside multiplying: without and with a sum over several steps."""

_OVER_CYCLES, _FEW_BYTES = 3.0, 1_000_000
"""The compiler's cycles are up to so many times the truth for what streams through HBM, and right for fewer bytes."""

_WORDS = pattern(r"(?:tpu)?[ _-]*v?(\d)[ _-]*(lite|e|p|x)?\b.*", 2)


@dataclass(frozen=True, slots=True)
class Chip:
    """What one device of a kind does at most; a TPU7x chip is two devices.

    Attributes:
        name: ``TPU v6e``.
        flops_per_second: of products of bfloat16.
        hbm: bytes/s of HBM.
        clock: cycles/s, by which the compiler's estimates become times.
        side: multipliers on a side of its matrix unit.
        is_fitted: whether the constants of told times were found on it.
    """

    name: str
    flops_per_second: float
    hbm: float
    clock: float
    side: int
    is_fitted: bool = False

    def peak(self, bits: int | None) -> float:
        """FLOP/s of products whose widest operand has elements of so many bits: narrow ones may take half the time."""
        return self.flops_per_second * (2 if bits is not None and bits <= 8 else 1)


CHIPS = {
    "4": Chip("TPU v4", 275e12, 1228.8e9, 1.05e9, 128),
    "5e": Chip("TPU v5e", 197e12, 819.2e9, 1.5e9, 128),
    "5p": Chip("TPU v5p", 459e12, 2765e9, 1.75e9, 128),
    "6e": Chip("TPU v6e", 918e12, 1638e9, 1.75e9, 256, is_fitted=True),
    "7x": Chip("TPU7x", 1153.5e12, 3690e9, 1.9e9, 256),
}


def chip_named(name: str) -> Chip | None:
    """The chip of a name in any of its ways: ``TPU v6e``, ``TPU v6 lite``, ``v5p``, ``7x``; None where unknown."""
    match = _WORDS.fullmatch(name.strip())
    number, ending = match.groups("") if match is not None else ("", "")
    known = {"6": "6e", "7": "7x", "5": "5e" if ending.lower() in ("lite", "e") else "5p"}
    return CHIPS.get(known.get(number, number))


class Told(NamedTuple):
    """Seconds that a run of an op takes: as told, and how far the truth may lie from it, as a part of it."""

    seconds: float
    band: float


def product_told(tiles: Tiles, moved: Iterable[tuple[str, int]], peak: float, chip: Chip) -> Told:
    """What a product takes, by walking through its steps.

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
        windows[of] += size / tiles.count(of) / (_BESIDE_PRODUCTS * chip.hbm)
    total, around = step + windows["left"] + windows["right"], 1
    for place, axis in enumerate(tiles.axes):
        moving = sum(seconds for of, seconds in windows.items() if tiles.changes(of, place))
        total += (axis.steps - 1) * around * max(step, moving)
        around *= axis.steps
    return Told(total, PRODUCT_BAND if around * step >= (1 - PRODUCT_BAND) * total else STREAM_BAND)


def stream_told(opcode: str, hbm_bytes: int, cycles: int, chip: Chip) -> Told:
    """What an op without products takes: its bytes through HBM, no less than a part of the compiler's cycles.

    The cycles of broadcasts are ten times the truth.
    """
    of_cycles = cycles / chip.clock / (_OVER_CYCLES if hbm_bytes > _FEW_BYTES else 1.0)
    moving = hbm_bytes / (_STREAMED * chip.hbm)
    return Told(moving if opcode == "broadcast" else max(moving, of_cycles), STREAM_BAND)
