"""Compares a page with XProf's answer, field by field, and counts what it compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Value = str | float | None


@dataclass
class Comparison:
    """Outcome over all fields of one profile."""

    equal: int = 0
    explained: int = 0
    unexplained: list[str] = field(default_factory=list)
    needless: set[str] = field(default_factory=set)

    def unused_specific(self, differences: Mapping[str, Difference]) -> list[str]:
        """Stated differences that are none: a statement that outlived its reason."""
        return sorted(self.needless.intersection(differences))

    def add(self, part: Comparison) -> None:
        """Counts another comparison in."""
        self.equal += part.equal
        self.explained += part.explained
        self.unexplained += part.unexplained
        self.needless |= part.needless

    def counts(self, title: str) -> tuple[str, int, int, int]:
        """What the test run adds up and prints, as the property ``parity`` of a test."""
        return title, self.compared, self.equal, self.explained

    @property
    def compared(self) -> int:
        """All fields looked at."""
        return self.equal + self.explained + len(self.unexplained)


Agrees = Callable[[Comparison, str], None]
"""Asserts that nothing of a comparison is unexplained, and has the test run add up and print its counts by a title."""


@dataclass(frozen=True)
class Difference:
    """A field in which we differ from XProf on purpose: what we say instead, and why."""

    ours: Value
    why: str


def number(text: str) -> float | None:
    """The number in a cell such as ``67.0%``, or None when it holds none."""
    try:
        return float(text.rstrip("%"))
    except ValueError:
        return None


def same(theirs: Value, ours: Value) -> bool:
    """Equal to 1e-9; a number that XProf prints as text is equal when ours, rounded alike, prints the same."""
    if isinstance(theirs, str) and isinstance(ours, float | int) and not isinstance(ours, bool):
        parsed = number(theirs)
        if parsed is None:
            return False
        digits = len(theirs.rstrip("%").partition(".")[2])
        if "e" in theirs:
            return bool(math.isclose(parsed, ours, rel_tol=1e-5))
        # half of the last digit, plus a hair for the rounding of the binary value itself
        return bool(abs(parsed - ours) <= 0.5 * 10**-digits * (1 + 1e-9))
    if isinstance(theirs, float | int) and isinstance(ours, float | int):
        return math.isclose(theirs, ours, rel_tol=1e-9, abs_tol=1e-18)
    return bool(theirs == ours)


def compare(
    theirs: Mapping[str, Value], ours: Mapping[str, Value], differences: Mapping[str, Difference]
) -> Comparison:
    """Compares all fields of XProf's answer. A field may differ only as `differences` says, to the value it says."""
    result = Comparison()
    for key, value in theirs.items():
        difference = differences.get(key)
        mine = ours.get(key)
        if key in ours and same(value, mine):
            result.equal += 1
            if difference is not None:
                result.needless.add(key)
        elif difference is not None and key in ours and same(difference.ours, mine):
            result.explained += 1
        else:
            result.unexplained.append(f"{key}: XProf {value!r}, ours {mine!r}")
    result.needless.update(key for key in differences if key not in theirs)
    return result
