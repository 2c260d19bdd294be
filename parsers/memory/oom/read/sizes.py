"""Sizes as out-of-memory texts print them: ``27.81G``, ``980.0K``, ``0B``; binary multiples, rounded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

SIZE = r"[0-9]{1,20}(?:\.[0-9]{1,6})?[BKMGTPE](?!i?B)"
"""Expression for a printed size, without groups. ``2.5GiB`` is none: other programs write that."""

_UNITS = {unit: 1024**power for power, unit in enumerate("BKMGTPE")}
_PARTS = re.compile(r"([0-9]+)(?:\.([0-9]+))?([BKMGTPE])")
_LIMIT = 2**63


@dataclass(frozen=True, slots=True)
class Printed:
    """A size and how far off it may be.

    Attributes:
        value: bytes.
        slack: the true size lies at most this many bytes away; 0 for sizes in bytes.
    """

    value: int
    slack: Fraction

    def agrees(self, exact: int) -> bool:
        """Whether `exact` bytes would be printed like this."""
        return abs(exact - self.value) <= self.slack


def printed(text: str) -> Printed | None:
    """Reads a printed size; None for anything else, ``unknown size`` say, and for what no int64 holds."""
    match = _PARTS.fullmatch(text)
    if match is None:
        return None
    decimals = match[2] or ""
    unit = _UNITS[match[3]]
    value = round(Fraction(int(match[1] + decimals), 10 ** len(decimals)) * unit)
    # the printed digits are the nearest, and the value above is rounded to whole bytes
    slack = Fraction(unit, 2 * 10 ** len(decimals)) + 1 if unit > 1 else Fraction(0)
    return Printed(value, slack) if value < _LIMIT else None


def exactly(value: int) -> Printed | None:
    """A size given in bytes; None for what no int64 holds."""
    return Printed(value, Fraction(0)) if 0 <= value < _LIMIT else None


def sharpened(size: Printed | None, exact: int | None) -> int | None:
    """`exact` where the printed size agrees with it, else the printed one; None without a printed one."""
    if size is None:
        return None
    return exact if exact is not None and size.agrees(exact) else size.value
