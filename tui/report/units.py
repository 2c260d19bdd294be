"""Units: how a quantity is written, for machines and for people.

A page stores times in picoseconds, rates in FLOP/s or bytes/s and shares as fractions (0-1). A unit knows what of these
stands in JSON and CSV (`machine`), where the key ends in the unit, and what a person reads (`words`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.draw.format import (
    UNKNOWN,
    binary_size,
    byte_rate,
    count,
    duration,
    flop_rate,
    intensity,
    percent,
    share,
    size,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

Value = str | int | float | bool | list[Any] | None
"""What JSON and CSV hold of one row, where CSV joins a list in one cell; None for what is unknown."""

PS_PER_MS = 1e9
LARGEST_EXACT = 2**53  # every whole number up to it is a double
_GIGA = 1e9


@dataclass(frozen=True)
class Unit:
    """How a quantity is written.

    Attributes:
        name: the unit of the machine's figure, as `report PAGE --describe` names it.
        machine: a stored column as JSON and CSV hold it: an array, NaN where unknown, or a sequence, None where it is.
        words: a stored figure as a person reads it; with True in ASCII characters only.
        is_text: it is read, not compared: its column ends at the left, and sorts from A to Z.
        parts: figures or fields of the objects that it writes, where it writes objects; see `fields.nested`.
        is_list: it writes lists of these.
    """

    name: str
    machine: Callable[[Sequence[Any] | NDArray[Any]], list[Value]]
    words: Callable[[Any, bool], str]
    is_text: bool = False
    parts: tuple[Any, ...] = ()
    is_list: bool = False


def plain(values: Sequence[Any] | NDArray[Any]) -> list[Value]:
    """Figures as they are stored; None for what is not finite."""
    if isinstance(values, Sequence):
        return list(values)
    import numpy  # noqa: PLC0415 - there is an array, so it is loaded

    metrics: list[Value] = values.tolist()
    if values.dtype.kind != "f":
        return metrics
    known = numpy.isfinite(values)
    if known.all():
        return metrics
    return [value if is_known else None for value, is_known in zip(metrics, known.tolist(), strict=True)]


def divided(by: float) -> Callable[[Sequence[Any] | NDArray[Any]], list[Value]]:
    """Figures in a larger unit than they are stored in."""

    def machine(values: Sequence[Any] | NDArray[Any]) -> list[Value]:
        if isinstance(values, Sequence):
            return [None if value is None else value / by for value in values]
        return plain(values / by)

    return machine


def hundredfold(values: Sequence[Any] | NDArray[Any]) -> list[Value]:
    """Fractions (0-1) as percentages."""
    if isinstance(values, Sequence):
        return [None if value is None else 100 * value for value in values]
    return plain(100 * values)


def whole_numbers(values: Sequence[Any] | NDArray[Any]) -> list[Value]:
    """Counts that are stored as doubles, whole numbers as such while a double distinguishes each from the next one."""
    numbers: Sequence[float] = values if isinstance(values, Sequence) else values.tolist()
    return [
        int(value) if value.is_integer() and abs(value) < LARGEST_EXACT else value if math.isfinite(value) else None
        for value in numbers
    ]


def _lists(values: Sequence[Any] | NDArray[Any]) -> list[Value]:
    return [None if value is None else list(value) for value in values]


def _words(write: Callable[[Any], str]) -> Callable[[Any, bool], str]:
    return lambda value, _: write(value)


TEXT = Unit("text", lambda values: [value or None for value in values], lambda value, _: value or UNKNOWN, is_text=True)
VERBATIM = Unit("text", plain, lambda value, _: value or UNKNOWN, is_text=True)
"""Texts of which an empty one is not an unknown one."""
BYTES_BY_NAME = Unit("bytes by name", plain, lambda value, _: value or UNKNOWN, is_text=True)
"""Objects with a size for each name."""
TEXTS = Unit("list of texts", _lists, lambda value, _: UNKNOWN if value is None else ", ".join(value), is_text=True)
COUNTS = Unit(
    "list of counts", lambda values: [list(value) for value in values], lambda value, _: ", ".join(map(str, value))
)
PROBLEMS = Unit("list of problems", _lists, lambda value, _: "; ".join(item.sentence for item in value), is_text=True)
FLAG = Unit("true or false", plain, lambda value, _: "yes" if value else "no", is_text=True)
MAYBE = Unit("true or false", plain, lambda value, _: UNKNOWN if value is None else FLAG.words(value, _), is_text=True)
"""Flags that can be unknown."""
COUNT = Unit("count", plain, _words(count))
WHOLE = Unit("count", whole_numbers, lambda value, _: count(round(value)) if math.isfinite(value) else UNKNOWN)
NUMBER = Unit("number", plain, lambda value, _: UNKNOWN if value is None else str(value))
TIME_PS = Unit("ps", plain, duration)
TIME_MS = Unit("ms", divided(PS_PER_MS), duration)
PERCENT = Unit("percent", plain, _words(percent))
SHARE = Unit("fraction, 0-1", plain, _words(share))
SHARE_PERCENT = Unit("percent", hundredfold, _words(share))
GFLOPS = Unit("GFLOP/s", divided(_GIGA), lambda value, _: flop_rate(None if value is None else value / _GIGA))
GIGABYTES = Unit("GB/s", divided(_GIGA), lambda value, _: byte_rate(value))
JOULES = Unit("J", plain, lambda value, _: UNKNOWN if not math.isfinite(value) else f"{value:.3g} J")
INTENSITY = Unit("FLOP/byte", plain, _words(intensity))
BYTES = Unit("bytes", plain, _words(binary_size))
FILE_BYTES = Unit("bytes", plain, _words(size))


def words_of_key(key: str) -> str:
    """What people call a figure without a name: ``host idle time`` for ``device.host_idle_time_ps``."""
    words, _, unit = key.rpartition(".")[2].replace("_", " ").rpartition(" ")
    return words if words and unit in ("ms", "ps", "us", "percent") else f"{words} {unit}".strip()
