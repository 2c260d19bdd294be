"""What reading a file may cost, by its own size: how far it is inflated, how much memory is made of it, how many steps.

Some hundred bytes can stand for gigabytes, and a packed list of two-byte messages for a thousand times its size in
objects. All readers ask here before they allocate anything, so that one rule holds for all formats.
"""

from __future__ import annotations

from tpuprof.parsers.base.errors import ProfileError

TOO_LARGE = "too_large"
"""The code of the error of an input that would take too much."""

INFLATED_PER_BYTE = 200
"""Gzip makes a profile some 5 times smaller, a Chrome trace 10 to 30 times, what repeats itself some 100 times."""

INFLATED_FLOOR = 8 << 20
"""Every file may be inflated so far."""

MEMORY_PER_BYTE = 256
"""An event of some 20 bytes becomes objects of a kilobyte; compressed it has 3 to 5 bytes."""

MEMORY_FLOOR = 64 << 20
"""Objects of every file may take so much."""

STEPS_PER_BYTE = 200
STEPS_FLOOR = 2_000_000
"""Every file may take so many turns of a loop in Python; some seconds."""


def inflated_room(size: int, floor: int = INFLATED_FLOOR) -> int:
    """How many bytes a file of `size` bytes may be inflated to."""
    return max(floor, INFLATED_PER_BYTE * size)


def memory_room(size: int) -> int:
    """How many bytes the objects may take that are made of a file of `size` bytes."""
    return MEMORY_FLOOR + MEMORY_PER_BYTE * size


def steps_room(size: int) -> int:
    """How many turns of a loop in Python reading a file of `size` bytes may take."""
    return STEPS_FLOOR + STEPS_PER_BYTE * size


class Budget:
    """The memory and the steps that reading one file may still take.

    Args:
        size: bytes of the file as it lies there, compressed or not.
        name: of the file, for the sentence, fit to print.
    """

    def __init__(self, size: int, name: str) -> None:
        self._size, self._name = size, name
        self._memory = memory_room(size)
        self._steps = steps_room(size)

    @property
    def steps(self) -> int:
        return max(0, self._steps)

    def takes(self, count: int, each: int, steps: int = 0) -> None:
        """Takes memory for some objects before they are made, and the steps that making them takes.

        Args:
            count: how many objects.
            each: bytes of one, about.

        Raises:
            ProfileError: `too_large`, if that is more than the file may take.
        """
        self._memory -= count * each
        self._steps -= steps
        if self._memory < 0:
            raise self._over(f"more than {memory_room(self._size) >> 20:,} MiB of memory")
        if self._steps < 0:
            raise self._over(f"more than {steps_room(self._size):,} steps")

    def _over(self, what: str) -> ProfileError:
        sentence = f"{self._name} has {self._size:,} bytes, and reading it would take {what}."
        return ProfileError(
            TOO_LARGE, sentence, "is it a profile? no program writes such files: check where it comes from"
        )
