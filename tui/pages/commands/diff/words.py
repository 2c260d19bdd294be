"""Words of a comparison: changes with sign and unit, and what a mark is called."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from tpuprof.parsers.base.words import significant
from tpuprof.parsers.session.diff.model import Change, Diff, Mark
from tpuprof.tui.draw.format import UNKNOWN, binary_size, duration, flop_rate
from tpuprof.tui.draw.spans import StyleKey

QuantityKind = Literal["time", "bytes", "flops", "percent", "text"]
"""What a figure counts: picoseconds, bytes, or percent of something; or that there are texts instead."""

_LEAST = 0.5
"""Less than half of a picosecond or byte is what rounding leaves of nothing."""


class MarkLook(NamedTuple):
    """How a mark reads in a table, and what a comparison is called whose step has it; each with its style."""

    word: str
    style: StyleKey
    headline: str
    headline_style: StyleKey


MARKS: dict[Mark, MarkLook] = {
    "same": MarkLook("same", "dim", "Same", "strong"),
    "more": MarkLook("more", "bad", "Slower", "bad"),
    "less": MarkLook("less", "good", "Faster", "good"),
    "new": MarkLook("new", "bad", "New", "bad"),
    "gone": MarkLook("gone", "good", "Gone", "good"),
    "other": MarkLook("diff", "warn", "Different", "warn"),
    "unknown": MarkLook("?", "text", "Can't tell", "warn"),
}


def plus_minus(ascii_only: bool) -> str:
    """The sign before a noise."""
    return "+-" if ascii_only else "±"


def figure(value: float | None, kind: QuantityKind, ascii_only: bool) -> str:
    """A figure with its unit."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if kind == "bytes":
        return binary_size(round(value))
    if kind == "flops":
        return flop_rate(value / 1e9)
    return f"{value:.1f}%" if kind == "percent" else duration(value, ascii_only)


def side_figure(change: Change, value: float | None, kind: QuantityKind, ascii_only: bool, absent: str) -> str:
    """A figure of one run; other words where that run has none of it at all, which is not the same as unknown."""
    return absent if value is None and change.mark != "unknown" else figure(value, kind, ascii_only)


def signed(value: float | None, kind: QuantityKind, ascii_only: bool) -> str:
    """A change with its sign and unit: ``+217 ms``, ``-5.00 ms``, ``0``; of percentages ``+1.2 pp``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if kind == "percent":
        return f"{value:+.1f} pp" if abs(value) >= 0.05 else "0 pp"
    if abs(value) < _LEAST:
        return figure(0.0, kind, ascii_only)
    return f"{'+' if value > 0 else '-'}{figure(abs(value), kind, ascii_only)}"


def relative(change: Change) -> str:
    """A change as a percentage of what was: ``+11.6%``; ``new`` and ``gone`` have none."""
    value = change.relative
    if change.mark in ("new", "gone") or change.delta is None:
        return ""
    return "" if value is None or not math.isfinite(value) else signed_percent(100 * value)


def signed_percent(value: float) -> str:
    """``+11.6%``, ``-100%``, ``<0.1%`` of nearly nothing, ``+12.5x`` of ten times more: six cells at most."""
    if value >= 999.5:
        return f"+{significant(value / 100)}x"
    if 0 < abs(value) < 0.05:
        return "<0.1%"
    if not value:
        return "0%"
    return f"{value:+.1f}%" if abs(value) < 99.95 else f"{value:+.0f}%"


def noise_words(change: Change, ascii_only: bool) -> str:
    """The noise relative to what was, as ``±1.1%``; unknown where it is unknown."""
    base = change.before if change.before else change.after
    if change.noise is None or not base:
        return UNKNOWN
    value = 100 * change.noise / abs(base)
    return f"{plus_minus(ascii_only)}{value if value >= 0.05 else 0.1:.1f}%"


def noise_time(change: Change, ascii_only: bool) -> str:
    """The noise as a time, ``±492 µs``."""
    return UNKNOWN if change.noise is None else f"{plus_minus(ascii_only)}{duration(change.noise, ascii_only)}"


def per_unit(diff: Diff) -> str:
    """What times are divided by, in words: ``a step``, ``a run of jit_step``, ``in the whole capture``."""
    if diff.basis == "capture":
        return "in the whole capture"
    one, other = diff.before.unit_name, diff.after.unit_name
    if diff.basis == "step":
        return "a step"
    return f"a {one}" if one == other else "a module run"
