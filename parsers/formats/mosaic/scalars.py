"""Follows the integers of a kernel through its ops, for all steps of its grid at a time.

A number is an int where it is the same in all steps, an array where it is not, one entry a step, and None where it is
not known, such as one that is loaded from memory. The indices of the grid are known, so conditions on them are, loops
with constant bounds, and which blocks are copied.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add, and_, eq, floordiv, ge, gt, le, lt, mul, ne, or_, sub, xor
from typing import Any

import numpy as np

from tpuprof.parsers.base.intervals import Int64s

Number = int | Int64s | None

_LARGEST = 1 << 62
_COMPARED: tuple[Callable[[Any, Any], Any], ...] = (eq, ne, lt, le, gt, ge)
_UNSIGNED = 4
"""From the seventh comparison on they are the last four once more, of unsigned numbers."""

_FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    **{"addi": add, "subi": sub, "muli": mul, "andi": and_, "ori": or_, "xori": xor},
    **{"minsi": np.minimum, "maxsi": np.maximum, "minui": np.minimum, "maxui": np.maximum},
    "floordivsi": floordiv,
    "ceildivsi": lambda a, b: -(-a // b),
}
_TOWARD_ZERO = {"divsi", "divui", "remsi", "remui"}
SAME = frozenset(("index_cast", "index_castui", "extui", "extsi", "trunci"))
"""Ops of `arith` that change the type alone."""


def folded(name: str, a: Number, b: Number) -> Number:
    """The result of an op of `arith` on two numbers; None where one is not known, or the op is none of these."""
    if name in ("andi", "muli") and any(isinstance(each, int) and not each for each in (a, b)):
        return 0
    if a is None or b is None:
        return None
    if name in _TOWARD_ZERO:
        return _divided(name, a, b)
    function = _FOLDED.get(name)
    if function is None or (name.endswith("divsi") and np.any(np.equal(b, 0))):
        return None
    return _plain(function(a, b))


def compared(predicate: int | None, a: Number, b: Number) -> Number:
    """1 where a comparison of `arith` holds, else 0; None where it is not known."""
    if a is None or b is None or predicate is None or not 0 <= predicate < len(_COMPARED) + _UNSIGNED:
        return None
    if predicate >= len(_COMPARED):
        if np.any(np.less(a, 0)) or np.any(np.less(b, 0)):
            return None
        predicate -= _UNSIGNED
    return _plain(_COMPARED[predicate](a, b))


def selected(condition: Number, a: Number, b: Number) -> Number:
    """The first number where the condition holds, else the second; None where it is not known."""
    if isinstance(condition, int):
        return a if condition else b
    if isinstance(a, int) and isinstance(b, int) and a == b:
        return a
    if condition is None or a is None or b is None:
        return None
    return _plain(np.where(condition != 0, a, b))


def _divided(name: str, a: int | Int64s, b: int | Int64s) -> Number:
    """C's division: toward zero, and a remainder with the sign of what is divided."""
    if np.any(np.equal(b, 0)):
        return None
    quotient = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return _plain(quotient if name.startswith("div") else a - quotient * b)


def _plain(value: Any) -> Number:  # noqa: ANN401 - of Python or numpy, a bool or a number
    if isinstance(value, np.ndarray):
        return value.astype(np.int64, copy=False)
    number = int(value)
    return number if abs(number) < _LARGEST else None
