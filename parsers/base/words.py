"""Figures and names as the sentences of pages have them, and why a figure is unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping

_TIME_UNITS = ((1e12, "s"), (1e9, "ms"), (1e6, "µs"), (1e3, "ns"), (1.0, "ps"))
BINARY_UNITS = ((1 << 50, "PiB"), (1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
"""Units above a byte as the compiler and the runtime print them, the largest first."""

_LETTERS = 28  # of a name in a title
_SENTENCE_LETTERS = 60


def significant(value: float, digits: int = 3) -> str:
    """A number with `digits` significant digits, but never fewer than its whole part: 1.83, 18.3, 183, 1830."""
    size = abs(value)
    for decimals in range(digits - 1, 0, -1):
        if round(size, decimals) < 10 ** (digits - decimals):
            return f"{value:.{decimals}f}"
    return f"{value:.0f}"


def duration(ps: float, digits: int = 3) -> str:
    """A duration in its natural unit: ``1.83 s``, ``183 ms``, ``4.12 µs``."""
    factor, unit = next((pair for pair in _TIME_UNITS if abs(ps) >= pair[0] * 0.9995), _TIME_UNITS[-1])
    return f"{significant(ps / factor, digits)} {unit}"


def time(ps: float) -> str:
    """A duration for a sentence: ``3.10 ms``, ``412 µs``; ``0`` for less than a picosecond."""
    return "0" if ps < 1 else duration(ps)


def binary_parts(size: int) -> tuple[str, str]:
    """A size in bytes with three digits, and its unit: ``12.1`` and ``GiB``."""
    for factor, unit in BINARY_UNITS:
        if abs(size) >= factor * 0.9995:
            return significant(size / factor), unit
    return str(size), "B"


def percent_of(part: float, whole: float) -> float | None:
    """A share in percent, 0-100; None where there is no whole."""
    return 100.0 * part / whole if whole > 0 else None


def share(fraction: float) -> str:
    """A fraction as a percentage: ``12.3%``; ``<0.1%`` for little."""
    return f"{100 * fraction:.1f}%" if fraction >= 0.0005 or fraction <= 0 else "<0.1%"


def multiple(factor: float) -> str:
    """A multiple, without its sign: ``1.62``, ``32``."""
    return f"{factor:.2f}" if factor < 9.995 else f"{factor:.0f}"


def factor_text(factor: float) -> str:
    """A multiple: ``1.62x``, ``32x``."""
    return f"{multiple(factor)}x"


def size(count: float) -> str:
    """A size in bytes: ``51.5 MB`` (powers of ten)."""
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count:.0f} B" if math.isfinite(count) else "unknown size"


def shortened(name: str, most: int = _LETTERS) -> str:
    """A name for a title: a long name is cut at its end."""
    return name if len(name) <= most else name[: most - 3] + "..."


def sentence_name(name: str) -> str:
    """A name for a sentence, where there is more room than in a title."""
    return shortened(name, _SENTENCE_LETTERS)


def path_end(path: str) -> str:
    """A framework op or file for a sentence: of a long one only the end, from a ``/`` on if there is one."""
    if len(path) <= _SENTENCE_LETTERS:
        return path
    end = path[3 - _SENTENCE_LETTERS :]
    return "..." + end[max(end.find("/"), 0) :]


def ordinal(number: int) -> str:
    """``4th``; ``other`` for 2, as in every other."""
    if number == 2:
        return "other"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"


# --- why a figure is unknown, where several pages say so

NO_DEVICE = "no device plane in this profile"
NO_DEVICE_NAME = "the device plane does not name its device"
NO_DEVICE_PLANE = "the profile has no device plane: only the host was traced"
NO_PEAK_FLOPS = "the device plane gives no peak FLOPS"
NO_PEAK_HBM = "the device plane gives no peak HBM bandwidth"
NO_TIME_SCALE = "no op event has a Time Scale Multiplier"
NO_START = "the profile does not record its start and stop"
NO_SPAN = "the profile records neither its start and stop nor device events"
REPORTED = "the profiler reports: "
"""What the profiler's own warnings begin with."""

NO_TIMED_STEPS = "the profile has no steps with a duration"
NO_SCOPES = "no op has a framework name"
NO_FRAMEWORK_OP = "the profile names no framework op for these ops"
NO_CATEGORY = "the profile has no HLO category for these ops"
NO_HOST_OPS = "no host thread ran a framework op; plain JAX records none there"
NO_FLOPS_OR_BYTES = "no FLOPs or bytes are counted for it"

SOURCE_WORDS: Mapping[str, str] = {
    "steps": "marked",
    "annotations": "numbered by the host's step_num",
    "cycle": "from a cycle of programs",
    "modules": "from the periods of a module",
}
"""How each source of step times is told."""

SOURCE_HELP = f"where steps come from: {', '.join(f'{source}: {words}' for source, words in SOURCE_WORDS.items())}"
