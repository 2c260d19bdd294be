"""Words of a comparison: changes with sign and unit, what a mark is called, and the verdict in a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.diff.model import Change, Diff, Mark
from tpuprof.parsers.diff.noise import RESOLUTION
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.format import UNKNOWN, duration, significant
from tpuprof.tui.draw.layout import clean
from tpuprof.tui.draw.spans import StyleKey

Kind = Literal["time", "bytes", "percent"]
"""What a figure counts: picoseconds, bytes, or percent of something."""

MARK_WORDS: dict[Mark, str] = {
    "same": "same",
    "more": "more",
    "less": "less",
    "new": "new",
    "gone": "gone",
    "unknown": "?",
}

MARK_STYLES: dict[Mark, StyleKey] = {
    "same": "dim",
    "more": "bad",
    "less": "good",
    "new": "bad",
    "gone": "good",
    "unknown": "text",
}


def plus_minus(ascii_only: bool) -> str:
    """The sign before a noise."""
    return "+-" if ascii_only else "±"


def figure(value: float | None, kind: Kind, ascii_only: bool) -> str:
    """A figure with its unit."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if kind == "bytes":
        return binary_size(round(value))
    return f"{value:.1f}%" if kind == "percent" else duration(value, ascii_only)


def side_figure(change: Change, value: float | None, kind: Kind, ascii_only: bool, absent: str) -> str:
    """A figure of one run; other words where that run has none of it at all, which is not the same as unknown."""
    return absent if value is None and change.mark != "unknown" else figure(value, kind, ascii_only)


def signed(value: float | None, kind: Kind, ascii_only: bool) -> str:
    """A change with its sign and unit: ``+217 ms``, ``-5.00 ms``, ``0``; of percentages ``+1.2 pp``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if kind == "percent":
        return f"{value:+.1f} pp" if abs(value) >= 0.05 else "0 pp"
    text = figure(abs(value), kind, ascii_only)
    return text if not value else f"{'+' if value > 0 else '-'}{text}"


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
    return f"{plus_minus(ascii_only)}{value:.1f}%" if value >= 0.05 else f"{plus_minus(ascii_only)}0.1%"


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


# --- the verdict

_MOST_NAMED = 3
_LEAST_SHARE = 0.1
"""Of the whole change, what a part of it must be to be named."""

_EXPLAINED = 0.5
"""Share of the change that the named ops must explain; else it is told by category."""


_IDLE, _WAITING = "idle", "waiting for the slowest core"


@dataclass(frozen=True, slots=True)
class Part:
    """What adds to a change: an op, a category, or, with its name as its kind, idle time and waiting."""

    name: str
    change: Change
    kind: str

    @property
    def delta(self) -> float:
        """Its change in picoseconds."""
        return self.change.delta or 0.0


def headline_mark(diff: Diff) -> Mark:
    """What the whole change is: of the typical step, else of all time; of different programs nothing can be told."""
    if diff.different:
        return "unknown"
    return (diff.steps.typical if diff.steps is not None else diff.total).mark


def verdict(diff: Diff, ascii_only: bool = False) -> str:
    """One to three sentences, in one line without control characters."""
    sentences = [_main(diff, ascii_only)]
    if not diff.different and diff.steps is not None and diff.steps.odd.is_beyond_noise:
        odd = diff.steps.odd
        counts = [f"{side.odd_count} of {len(side.step_ps)}" for side in (diff.before, diff.after)]
        words = f"Odd steps ({counts[0]} before, {counts[1]} after)"
        sentences.append(f"{words} change the mean by another {signed(odd.delta, 'time', ascii_only)} a step.")
    return clean(" ".join(sentences), ascii_only)


def _main(diff: Diff, ascii_only: bool) -> str:
    change = diff.steps.typical if diff.steps is not None else diff.total
    if change.delta is None or not (change.before or change.after):
        return _nothing(diff)
    before, after = duration(change.before, ascii_only, 4), duration(change.after, ascii_only, 4)
    if diff.different:
        return _different(diff, before, after)
    per = per_unit(diff)
    if change.mark == "same":
        if change.noise is None:
            return f"The same: {before} {per} in both; what is noise is unknown."
        within = noise_words(change, ascii_only)
        return f"The same within {within}: {before} {per} before, {after} after.{_all_the_same(diff, ascii_only)}"
    size = f"{signed(change.delta, 'time', ascii_only)} {per} ({relative(change)})"
    if change.noise is None:
        words = f"{size}: {before} before, {after} after; whether that is noise can't be told"
        reasons = _named(diff, change, ascii_only)[0]
        return f"{words}. Most of it: {reasons}." if reasons else f"{words}."
    named, rest, others = _named(diff, change, ascii_only)
    noise = f"{plus_minus(ascii_only)}{duration(change.noise, ascii_only)}"
    if not named:
        return f"{size}, beyond the noise ({noise}): spread over many ops, none of which is beyond its own."
    left = signed(rest, "time", ascii_only)
    ups = sum(part.delta for part in others if part.delta > 0)
    downs = sum(part.delta for part in others if part.delta < 0)
    where = _where(others)
    if where and min(ups, -downs) >= max(_LEAST_SHARE * abs(change.delta), 2 * change.noise):
        both = f"{signed(ups, 'time', ascii_only)} and {signed(downs, 'time', ascii_only)}"
        return f"{size}: {named}; the rest, {left}, is {both} over {where} (noise {noise})."
    if abs(rest) <= change.noise or not where:
        return f"{size}: {named}; the rest, {left}, is noise ({noise})."
    return f"{size}: {named}; the rest, {left}, is spread over {where} (noise {noise})."


def _different(diff: Diff, before: str, after: str) -> str:
    """Both times, each of its own program, and why they are no comparison."""
    units = [f" a {side.unit_name}" if diff.basis != "capture" else " in all" for side in (diff.before, diff.after)]
    times = f"{before}{units[0]} in A and {after}{units[1]} in B"
    return f"{diff.different[0].upper()}{diff.different[1:]}; so times are no comparison: {times}."


def _where(others: Sequence[Part]) -> str:
    """What the rest of a change is spread over: ``57 other ops and idle``."""
    counts = {
        word: sum(part.kind == word and part.delta != 0 for part in others)
        for word in ("op", "category", _IDLE, _WAITING)
    }
    places = [counted(counts["op"], "other op")] if counts["op"] else []
    places += [counted(counts["category"], "other category", "other categories")] if counts["category"] else []
    places += [word for word in (_IDLE, _WAITING) if counts[word]]
    return " and ".join([", ".join(places[:-1]), places[-1]] if len(places) > 1 else places)


def _nothing(diff: Diff) -> str:
    """No time to compare."""
    why = diff.unknown.get("ops") or diff.unknown.get("steps") or "the profiles hold no times of a device"
    return f"There is no time to compare: {why}."


def _all_the_same(diff: Diff, ascii_only: bool) -> str:
    """Changes of ops that don't show in the step, though they are large enough to matter to it."""
    least = RESOLUTION * (diff.total.before or 0.0)
    changed = [op for op in diff.ops if op.time.is_beyond_noise and abs(op.time.delta or 0.0) >= least]
    if not changed:
        return ""
    words = _listed([Part(op.name, op.time, "op") for op in changed[:_MOST_NAMED]], ascii_only)
    most = "" if len(changed) <= _MOST_NAMED else " most of all"
    return f" {counted(len(changed), 'op')} changed all the same:{most} {words}."


def _named(diff: Diff, change: Change, ascii_only: bool) -> tuple[str, float, list[Part]]:
    """The largest parts of a change in words, what is left of it, and the parts that add up to that."""
    whole = change.delta or 0.0
    others = [Part(_IDLE, item.time, _IDLE) for item in diff.classes if item.name == "idle"]
    others.append(Part(_WAITING, diff.between_cores, _WAITING))
    parts = [Part(op.name, op.time, "op") for op in diff.ops] + others
    named = _largest(parts, whole, change)
    left = whole - sum(part.delta for part in named)
    if abs(left) > _EXPLAINED * abs(whole):
        groups = [Part(item.name, item.time, "category") for item in diff.categories] + others
        largest = _largest(groups, whole, change)
        rest = whole - sum(part.delta for part in largest)
        if abs(rest) < abs(left):
            parts, named, left = groups, largest, rest
    return _listed(named, ascii_only), left, [part for part in parts if not any(part is one for one in named)]


def _largest(parts: Sequence[Part], whole: float, change: Change) -> list[Part]:
    """Those beyond their noise that are a good part of the change; where no noise is known, the largest."""
    largest = [
        part
        for part in parts
        if (part.change.is_beyond_noise or change.noise is None) and abs(part.delta) >= _LEAST_SHARE * abs(whole) > 0
    ]
    largest.sort(key=lambda part: (-abs(part.delta), part.name))
    return largest[:_MOST_NAMED]


def _listed(parts: Sequence[Part], ascii_only: bool) -> str:
    return ", ".join(_words(part, ascii_only) for part in parts)


def _words(part: Part, ascii_only: bool) -> str:
    size = signed(part.delta, "time", ascii_only)
    if part.change.mark in ("new", "gone"):
        return f"{part.name} is {part.change.mark} ({size})"
    return f"{part.name} {size}"
