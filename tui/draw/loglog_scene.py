"""What a roofline plot shows and where: points and roofs as logarithms, the axes' decades, the cells of the points.

Every number becomes its decimal logarithm first, so no product of extreme figures can overflow. A cell's middle is a
whole coordinate: the lowest decade of an axis is the middle of its first cell, the highest that of its last one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.draw.spans import StyleKey

LEFT = 8  # cells left of the plot: six of a figure, a space, the axis
RIGHT = 1  # cells right of it, for the cursor's bracket
TOP = 1  # lines above the plot, for the title
BOTTOM = 2  # lines below it: the axis and its figures
DECADES = 12  # decades that an axis shows at most; it shows three at least
AIR = 0.1  # decades left free beyond the outermost figure
Cell = tuple[int, int]  # row and column of the plot
Logs = TypeVar("Logs", float, "npt.NDArray[np.float64]")  # a logarithm, or an array of them


@dataclass(frozen=True, slots=True)
class Roof:
    """What a memory's bandwidth permits: its name, such as ``HBM``, and its bytes/s."""

    name: str
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class Point:
    """An op, a step or the program.

    Attributes:
        intensity: FLOP/byte; a point that is not above zero or not finite is not drawn.
        flops_per_second: FLOP/s, likewise.
        key: its colour.
        letter: one ASCII character that identifies it without colours.
        weight: share of the time, 0-1; the heaviest point of a cell is the one that shows.
        is_spelt: its letter shows in colours too.
    """

    intensity: float
    flops_per_second: float
    key: StyleKey
    letter: str
    weight: float
    is_spelt: bool = False


@dataclass(frozen=True, slots=True)
class Axes:
    """The decades that both axes show and the cells that they have for them."""

    x_low: int
    x_high: int
    y_low: int
    y_high: int
    columns: int
    rows: int

    def column(self, log_x: Logs) -> Logs:
        """Where a logarithm of FLOP/byte lies: 0.0 is the middle of the first column."""
        return (log_x - self.x_low) / (self.x_high - self.x_low) * (self.columns - 1)

    def row(self, log_y: Logs) -> Logs:
        """Where a logarithm of FLOP/s lies: 0.0 is the middle of the top row."""
        return (self.y_high - log_y) / (self.y_high - self.y_low) * (self.rows - 1)

    def log_x(self, column: float) -> float:
        """The logarithm at a column, against `column`."""
        return self.x_low + column / (self.columns - 1) * (self.x_high - self.x_low)

    def log_y(self, row: float) -> float:
        """The logarithm at a row, against `row`."""
        return self.y_high - row / (self.rows - 1) * (self.y_high - self.y_low)


@dataclass(frozen=True, slots=True)
class LogPoints:
    """The points that can be drawn, by column: logarithms, weights and places in the caller's sequence."""

    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    weight: npt.NDArray[np.float64]
    at: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Slope:
    """A roof that can be drawn: its name and the logarithm of its bytes/s."""

    name: str
    log: float


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is drawn."""

    cloud: LogPoints
    slopes: tuple[Slope, ...]
    peak: float | None
    axes: Axes

    def roof(self, slope: Slope, log_x: float) -> float:
        """The logarithm of the FLOP/s that a memory and the peak permit at an intensity."""
        return slope.log + log_x if self.peak is None else min(self.peak, slope.log + log_x)


def _log(value: float | None) -> float | None:
    """The decimal logarithm; `None` for what has none."""
    return math.log10(value) if value is not None and math.isfinite(value) and value > 0 else None


def scene_of(points: Sequence[Point], roofs: Sequence[Roof], peak: float | None, width: int, height: int) -> Scene:
    """All that is drawn on a frame of that size; figures that are not finite or not above zero are left out."""
    cloud = _cloud(points)
    logs = [(roof.name, _log(roof.bytes_per_second)) for roof in roofs]
    slopes = tuple(Slope(name, log) for name, log in logs if log is not None)
    top = _log(peak)
    x_low, x_high = _x_range(cloud, slopes, top)
    y_low, y_high = _y_range(cloud, slopes, top, (x_low + x_high) / 2)
    axes = Axes(x_low, x_high, y_low, y_high, max(2, width - LEFT - RIGHT), max(2, height - TOP - BOTTOM))
    return Scene(cloud, slopes, top, axes)


def _cloud(points: Sequence[Point]) -> LogPoints:
    size = len(points)
    x = np.fromiter((point.intensity for point in points), np.float64, size)
    y = np.fromiter((point.flops_per_second for point in points), np.float64, size)
    weight = np.fromiter((point.weight for point in points), np.float64, size)
    at = np.flatnonzero(np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)).astype(np.int64)
    weight = np.where(np.isfinite(weight), np.clip(weight, 0.0, 1.0), 0.0)
    return LogPoints(np.log10(x[at]), np.log10(y[at]), weight[at], at)


def _x_range(cloud: LogPoints, slopes: Sequence[Slope], peak: float | None) -> tuple[int, int]:
    """Decades of FLOP/byte; around a ridge as much of the slope and of the flat part as one needs to see them."""
    ridges = [peak - slope.log for slope in slopes] if peak is not None else []
    around = [*(ridge - 1 for ridge in ridges), *(ridge + 0.5 for ridge in ridges)]
    return _decades(cloud.x, cloud.weight, ridges, around)


def _y_range(cloud: LogPoints, slopes: Sequence[Slope], peak: float | None, middle: float) -> tuple[int, int]:
    """Decades of FLOP/s; without a peak the slopes pass through the `middle` of the other axis."""
    if peak is not None:
        return _decades(cloud.y, cloud.weight, [peak], [peak - 2])
    through = [slope.log + middle for slope in slopes]
    around = [] if len(cloud.at) else [value - 1 for value in through]
    return _decades(cloud.y, cloud.weight, through, around)


def _decades(
    logs: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], must: Sequence[float], around: Sequence[float]
) -> tuple[int, int]:
    """Whole decades that hold all figures with some air, at most `DECADES`.

    Where they are more, those with the most of `must`, then with the heaviest points, then the highest.
    """
    known = [*must, *around, *((float(logs.min()), float(logs.max())) if len(logs) else ())] or [0.0, 2.0]
    low, high = math.floor(min(known) - AIR), math.ceil(max(known) + AIR)
    if high - low < 3:
        low, high = low - (3 - (high - low)) // 2, high + (4 - (high - low)) // 2
    if high - low <= DECADES:
        return low, high

    each = np.bincount(np.floor(logs).astype(np.int64) - low, weights + 1e-6, minlength=high - low + 1)
    before = np.concatenate(([0.0], np.cumsum(each)))
    starts = range(low, high - DECADES + 1)

    def worth(start: int) -> tuple[int, float, int]:
        held = sum(start + AIR <= value <= start + DECADES - AIR for value in must)
        return held, float(before[start - low + DECADES] - before[start - low]), start

    best = max(starts, key=worth)
    return best, best + DECADES


def heaviest_points(scene: Scene) -> dict[Cell, int]:
    """The cells with points, and the heaviest point of each (the first one among equals)."""
    rows, columns = _cells(scene)
    order = np.argsort(-scene.cloud.weight, kind="stable")
    cells, first = np.unique((rows * scene.axes.columns + columns)[order], return_index=True)
    best = order[first]
    return {divmod(int(cell), scene.axes.columns): int(at) for cell, at in zip(cells, best, strict=True)}


def _cells(scene: Scene) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """int64[n] each: rows and columns of the points; those beyond the axes are in the cells at their ends."""
    axes, cloud = scene.axes, scene.cloud
    rows = np.clip(np.floor(axes.row(cloud.y) + 0.5), 0, axes.rows - 1)
    columns = np.clip(np.floor(axes.column(cloud.x) + 0.5), 0, axes.columns - 1)
    return rows.astype(np.int64), columns.astype(np.int64)


def outside(scene: Scene) -> int:
    """How many points lie beyond the axes."""
    axes, x, y = scene.axes, scene.cloud.x, scene.cloud.y
    out = (x < axes.x_low) | (x > axes.x_high) | (y < axes.y_low) | (y > axes.y_high)
    return int(out.sum())


def place_of(scene: Scene, cursor: int | None) -> tuple[int, Cell] | None:
    """The place in the cloud of the cursor's point, and its cell; `None` where it is not drawn."""
    places: list[int] = [] if cursor is None else (scene.cloud.at == cursor).nonzero()[0].tolist()
    if not places:
        return None
    rows, columns = _cells(scene)
    return places[0], (int(rows[places[0]]), int(columns[places[0]]))
