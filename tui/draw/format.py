"""Figures as text: picoseconds, percent, counts, sizes and rates, each with its unit, and dates.

Sizes of memory have binary units, as the compiler and the runtime print them, those of files have decimal ones.
"""

from __future__ import annotations

import math
from datetime import datetime, timezone

from tpuprof.parsers.base import words
from tpuprof.parsers.base.words import BINARY_UNITS, binary_parts, significant

_RATE_UNITS = ((1e6, "P"), (1e3, "T"), (1.0, "G"), (1e-3, "M"))
_SIZE_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))
_AGE_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))

UNKNOWN = "n/a"


def duration(ps: float | None, ascii_only: bool = False, digits: int = 3) -> str:
    """A duration in its natural unit: ``1.83 s``, ``183 ms``, ``4.12 µs``; ``0`` for none at all."""
    if ps is None or not math.isfinite(ps):
        return UNKNOWN
    if ps == 0:
        return "0"
    text = words.duration(ps, digits)
    return text.replace("µ", "u") if ascii_only else text


def percent(value: float | None, decimals: int = 1) -> str:
    """A percentage; what is not zero never reads as zero, what is not all never as all: ``<0.1%``, ``>99.9%``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    smallest = 10.0**-decimals
    if 0 < value < smallest / 2:
        return f"<{smallest:.{decimals}f}%"
    if 100 - smallest / 2 <= value < 100:
        return f">{100 - smallest:.{decimals}f}%"
    return f"{value:.{decimals}f}%"


def count(value: int | None) -> str:
    """A whole number with its thousands apart."""
    return UNKNOWN if value is None else f"{value:,}"


def size(value: int) -> str:
    """A size in bytes: ``862 KB``, ``51.5 MB`` (powers of ten, as file managers count)."""
    for factor, unit in _SIZE_UNITS:
        if value >= factor * 0.9995:
            return f"{significant(value / factor)} {unit}"
    return f"{value} B"


def binary_size(value: int | None) -> str:
    """``12.1 GiB``, ``470 MiB``, ``512 B``; negative ones with their sign."""
    number, unit = _binary(value)
    return f"{number} {unit}" if unit else number


def binary_short(value: int | None) -> str:
    """For a narrow column: ``12.1G``, ``470M``, ``512B``; at most six cells below 1,000 TiB."""
    number, unit = _binary(value)
    return f"{number}{unit[:1]}"


def limit_size(value: int | None) -> str:
    """A limit as the compiler prints it, two decimals always: ``15.75 GiB``, ``127.94 MiB``."""
    if value is None:
        return UNKNOWN
    factor, unit = next((pair for pair in BINARY_UNITS if abs(value) >= pair[0]), (1, "B"))
    return f"{value / factor:.2f} {unit}" if factor > 1 else f"{value} B"


def _binary(value: int | None) -> tuple[str, str]:
    return (UNKNOWN, "") if value is None else binary_parts(value)


def flop_rate(gflops_per_second: float | None) -> str:
    """A rate in FLOP/s with its prefix, for a column that says so: ``57.1T``; ``-`` for an op that does none."""
    if gflops_per_second is None or not math.isfinite(gflops_per_second) or gflops_per_second < 0:
        return UNKNOWN
    if gflops_per_second == 0:
        return "-"
    for factor, prefix in _RATE_UNITS:
        if gflops_per_second >= factor * 0.9995:
            return f"{significant(gflops_per_second / factor)}{prefix}"
    return "<1M"


def age(seconds: float) -> str:
    """How long ago: ``just now``, ``5 min ago``, ``3 h ago``, ``12 d ago``."""
    for factor, unit in _AGE_UNITS:
        if seconds >= factor:
            return f"{seconds / factor:.0f} {unit} ago"
    return "just now" if seconds >= 0 else "in the future"


def byte_rate(bytes_per_second: float | None) -> str:
    """A rate in bytes/s with its prefix, for a column that says so: ``819G``; ``-`` for none at all."""
    return flop_rate(None if bytes_per_second is None else bytes_per_second / 1e9)


def with_unit(rate: str, unit: str) -> str:
    """A rate as `flop_rate` and `byte_rate` write it, with its unit: ``57.1 TFLOP/s``, ``0 B/s``, ``n/a``."""
    if rate == UNKNOWN:
        return UNKNOWN
    figure, prefix = ("0", "") if rate == "-" else (rate[:-1], rate[-1])
    return f"{figure} {prefix}{unit}"


def share(fraction: float | None) -> str:
    """A fraction as a percentage of at most six cells: ``39.6%``, ``100.0%``, ``>999%``, ``n/a``."""
    if fraction is None or not math.isfinite(fraction):
        return UNKNOWN
    return ">999%" if fraction >= 9.995 else percent(100 * fraction)


def intensity(flops_per_byte: float | None) -> str:
    """FLOPs per byte with three digits: ``608``, ``0.125``, ``26.7k``; ``-`` for none."""
    if flops_per_byte is None or not math.isfinite(flops_per_byte):
        return UNKNOWN
    if flops_per_byte == 0:
        return "-"
    for factor, prefix in ((1e6, "M"), (1e3, "k")):
        if flops_per_byte >= factor * 0.9995:
            return f"{significant(flops_per_byte / factor)}{prefix}"
    return "<0.001" if flops_per_byte < 0.001 else f"{flops_per_byte:.3g}"


def utc(seconds: float) -> str | None:
    """Seconds since 1970 as ISO 8601 in UTC; `None` where no calendar reaches."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return None


def local_minute(seconds: float) -> str:
    """Seconds since 1970 as local date and time, for reading; ``?`` where no calendar reaches."""
    try:
        return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return "?"
