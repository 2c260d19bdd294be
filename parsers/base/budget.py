"""What reading a file may cost, by its own size: how far it is inflated, how much memory is made of it, how many steps.

Some hundred bytes can stand for gigabytes, and a packed list of two-byte messages for a thousand times its size in
objects. All readers ask here before they allocate anything, so that one rule holds for all formats.
"""

from __future__ import annotations

from tpuprof.parsers.base.errors import ProfileError

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

_ROOMS = {
    "memory": (MEMORY_FLOOR, MEMORY_PER_BYTE),
    "steps": (STEPS_FLOOR, STEPS_PER_BYTE),
    "inflated": (2 * INFLATED_FLOOR, INFLATED_PER_BYTE),  # so that the first part has the floor of a file
}


class TooLarge(ProfileError):
    """An input would take too much."""


def inflated_room(size: int, floor: int = INFLATED_FLOOR) -> int:
    """How many bytes a file of `size` bytes may be inflated to."""
    return max(floor, INFLATED_PER_BYTE * size)


def memory_room(size: int) -> int:
    """How many bytes the objects may take that are made of a file of `size` bytes."""
    return _room("memory", size)


def steps_room(size: int) -> int:
    """How many turns of a loop in Python reading a file of `size` bytes may take."""
    return _room("steps", size)


def _room(kind: str, size: int) -> int:
    floor, each = _ROOMS[kind]
    return floor + each * size


class Budget:
    """What reading one file, or one part of it, may still take.

    A part may take what its own bytes justify and, of what every file may take whatever its size, half of what is left.
    So nonsense in one part leaves room for the parts behind it, and all parts together take no more than the file may.

    Args:
        size: bytes of the file as it lies there, compressed or not.
        name: of the file, for the sentence, fit to print.
        whole: the budget of the file that this is a part of; None for a file.
    """

    def __init__(self, size: int, name: str, whole: Budget | None = None) -> None:
        self._size, self._name, self._whole = size, name, whole
        self._own = {kind: each * size for kind, (_, each) in _ROOMS.items()}
        floors = {kind: floor for kind, (floor, _) in _ROOMS.items()}
        self._spare: dict[str, int] = {kind: left // 2 for kind, left in whole._spare.items()} if whole else floors

    def part(self, size: int, of: int) -> Budget:
        """The budget of a part that has `size` of the file's `of` bytes, both as inflated."""
        return Budget(self._size * size // max(1, of), self._name, self)

    def takes(self, count: int, each: int, steps: int = 0, inflated: int = 0) -> None:
        """Takes memory for some objects before they are made, and the steps that making them takes.

        Args:
            count: how many objects.
            each: bytes of one, about.
            inflated: bytes that are inflated for them.

        Raises:
            TooLarge: if that is more than the file or the part may take; nothing is taken then.
        """
        own, memory = self._own, count * each
        if memory <= own["memory"] and steps <= own["steps"] and inflated <= own["inflated"]:  # as nearly always
            own["memory"] -= memory
            own["steps"] -= steps
            own["inflated"] -= inflated
            return
        wanted = {"memory": memory, "steps": steps, "inflated": inflated}
        beyond = {kind: max(0, amount - self._own[kind]) for kind, amount in wanted.items()}
        if over := next((kind for kind, amount in beyond.items() if amount > self._spare[kind]), ""):
            raise self._over(over)
        for kind, amount in wanted.items():
            self._own[kind] -= amount - beyond[kind]
        above: Budget | None = self
        while above is not None:
            for kind, amount in beyond.items():
                above._spare[kind] -= amount
            above = above._whole

    def affords(self, count: int, each: int, steps: int = 0) -> bool:
        """`takes`, and whether there was room for it."""
        try:
            self.takes(count, each, steps)
        except TooLarge:
            return False
        return True

    def _over(self, kind: str) -> TooLarge:
        room = _room(kind, self._size)
        what = f"{room:,} steps" if kind == "steps" else f"{room >> 20:,} MiB of memory"
        sentence = f"{self._name} has {self._size:,} bytes, and reading it would take more than {what}."
        hint = "is it a profile? no program writes such files: check where it comes from"
        return TooLarge("too_large", sentence, hint)
