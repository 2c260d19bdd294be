"""Random numbers that are the same under every numpy: only raw generator output and exact arithmetic."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_DEVIATION = 65536 * (4 / 12) ** 0.5


class Noise:
    """A seeded source; numpy promises the raw bits of a generator, not what its distributions make of them."""

    def __init__(self, *seed: int) -> None:
        self._bits = np.random.PCG64(list(seed))

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high - 1."""
        return low + int(self._bits.random_raw()) % (high - low)

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Whole numbers from low to high - 1."""
        raw = self._raw(shape) % np.uint64(high - low)
        return raw.astype(np.int64) + low

    def normal(self, mean: float, deviation: float) -> float:
        """Roughly normal: four uniform numbers added up."""
        return float(self.normals(mean, deviation, (1,))[0])

    def normals(self, mean: float, deviation: float, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Roughly normal numbers."""
        raw = self._raw(shape)
        total = np.zeros(shape, np.int64)
        for part in range(4):
            total += ((raw >> np.uint64(16 * part)) & np.uint64(0xFFFF)).astype(np.int64)
        return np.asarray(mean + deviation * ((total - 2 * 65535) / _DEVIATION))

    def _raw(self, shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
        return np.asarray(self._bits.random_raw(int(np.prod(shape))), np.uint64).reshape(shape)
