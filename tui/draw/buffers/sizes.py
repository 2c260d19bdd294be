"""Memory sizes as text, in binary units as the compiler and the runtime print them."""

from __future__ import annotations

from tpuprof.parsers.base.words import BINARY_UNITS, binary_parts
from tpuprof.tui.draw.format import UNKNOWN


def binary_size(value: int | None) -> str:
    """``12.1 GiB``, ``470 MiB``, ``512 B``; negative ones with their sign."""
    number, unit = _split(value)
    return f"{number} {unit}" if unit else number


def binary_short(value: int | None) -> str:
    """For a narrow column: ``12.1G``, ``470M``, ``512B``; at most six cells below 1,000 TiB."""
    number, unit = _split(value)
    return f"{number}{unit[:1]}"


def limit_size(value: int | None) -> str:
    """A limit as the compiler prints it, two decimals always: ``15.75 GiB``, ``127.94 MiB``."""
    if value is None:
        return UNKNOWN
    factor, unit = next((pair for pair in BINARY_UNITS if abs(value) >= pair[0]), (1, "B"))
    return f"{value / factor:.2f} {unit}" if factor > 1 else f"{value} B"


def _split(value: int | None) -> tuple[str, str]:
    return (UNKNOWN, "") if value is None else binary_parts(value)
