"""The verdict of a comparison, in a sentence or a few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.session.diff.model import Change, Diff, Mark, StepTimeChanges
from tpuprof.parsers.session.diff.noise import MOST_LAUNCHES, RESOLUTION
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES
from tpuprof.tui.draw.format import duration
from tpuprof.tui.draw.pen import clean
from tpuprof.tui.pages.commands.diff.words import noise_time, noise_words, per_unit, relative, signed

_MOST_NAMED = 3
_LEAST_SHARE = 0.1  # of the whole change, what a part of it must be to be named
_EXPLAINED = 0.5  # share of the change that the named ops must explain; else it is explained by category
_IDLE, _OWNER = "idle", "owner"


@dataclass(frozen=True, slots=True)
class Contribution:
    """What adds to a change: an op, a category, an owner of moments without an op, or idle time without steps."""

    name: str
    change: Change
    kind: str

    @property
    def delta(self) -> float:
        """Its change in picoseconds."""
        return self.change.delta or 0.0


def headline_mark(diff: Diff) -> Mark:
    """What the whole change is: of the typical step, or the mean one where that alone changed, else of all time.

    It is unknown for different programs, and where too few launches are the same to say so.
    """
    mark = diff.total.mark if diff.steps is None else _of_mean(diff.steps).mark
    is_open = diff.launches is not None and diff.launches.needed != 0 and mark == "same"
    return "unknown" if diff.different or is_open else mark


def _of_mean(steps: StepTimeChanges) -> Change:
    """The change of the typical step; of the mean one where only that changed, because of odd steps."""
    by_odd = steps.typical.mark == "same" and steps.mean.is_beyond_noise and steps.odd.is_beyond_noise
    return steps.mean if by_odd else steps.typical


def verdict(diff: Diff, ascii_only: bool = False) -> str:
    """One to three sentences, in one line without control characters."""
    words, steps = _main(diff, ascii_only), diff.steps
    if not diff.different and steps is not None and steps.odd.is_beyond_noise:
        counts = [f"{side.odd_count} of {len(side.step_ps)}" for side in (diff.before, diff.after)]
        odd = f"odd steps ({counts[0]} before, {counts[1]} after)"
        if _of_mean(steps) is steps.mean:
            size = f"{signed(steps.mean.delta, 'time', ascii_only)} in the mean step ({relative(steps.mean)})"
            whose = _whose(diff, steps.mean, ascii_only)
            words = f"{size}, by {odd}{whose}; the typical step is {words[0].lower()}{words[1:]}"
        else:
            size = signed(steps.odd.delta, "time", ascii_only)
            words = f"{words} {odd[0].upper()}{odd[1:]} change the mean by another {size} a step."
    return clean(words + _of_launches(diff), ascii_only)


def _of_launches(diff: Diff) -> str:
    """How much launches differ, and how many more of them would decide; empty for two runs."""
    launches, before = diff.launches, diff.total.before
    if launches is None or not before or diff.different:
        return ""
    spread = max(spread for spread in launches.spreads if spread is not None)
    inside = f", {spread / launches.inside:.2g} times what their steps show" if launches.inside else ""
    numbers = f"{len(launches.before)} before, {len(launches.after)} after"
    words = f" Launches ({numbers}) differ by {100 * spread / before:.2g}% among themselves{inside}"
    size = f"a change of {100 * launches.detect:g}%"
    if headline_mark(diff) == "same":
        return f"{words}: {size} would have been found."
    if headline_mark(diff) != "unknown":
        return f"{words}."
    number = f"more than {MOST_LAUNCHES:,}" if launches.needed is None else f"{launches.needed:,}"
    return f"{words}: to find {size}, {number} more of each side are needed."


def _whose(diff: Diff, mean: Change, ascii_only: bool) -> str:
    """The owner that has most of what the mean step changed by, if that is beyond its noise and half of it."""
    most = max(diff.owners, key=lambda of: abs(of.mean.delta or 0.0), default=None)
    if most is None or not most.mean.is_beyond_noise or 2 * abs(most.mean.delta or 0.0) < abs(mean.delta or 0.0):
        return ""
    return f", most of it {OWNER_TITLES[most.owner]} {signed(most.mean.delta, 'time', ascii_only)}"


def _main(diff: Diff, ascii_only: bool) -> str:
    change = diff.steps.typical if diff.steps is not None else diff.total
    if change.delta is None or not (change.before or change.after):
        why = diff.unknown.get("ops") or diff.unknown.get("steps") or "the profiles have no device times"
        return f"There is no time to compare: {why}."
    before, after = duration(change.before, ascii_only, 4), duration(change.after, ascii_only, 4)
    if diff.different:
        return _different(diff, before, after)
    per = per_unit(diff)
    if change.mark == "same":
        if change.noise is None:
            return f"The same: {before} {per} in both; the noise is unknown."
        within = noise_words(change, ascii_only)
        begin = "No change beyond the noise," if headline_mark(diff) == "unknown" else "The same within"
        return f"{begin} {within}: {before} {per} before, {after} after.{_all_the_same(diff, ascii_only)}"
    size = f"{signed(change.delta, 'time', ascii_only)} {per} ({relative(change)})"
    if change.noise is None:
        words = f"{size}: {before} before, {after} after; whether that is noise is unknown"
        reasons = _named(diff, change, ascii_only)[0]
        return f"{words}. Most of the difference: {reasons}." if reasons else f"{words}."
    named, rest, others = _named(diff, change, ascii_only)
    noise = noise_time(change, ascii_only)
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
    return f"{diff.different[0].upper()}{diff.different[1:]}, so their times can't be compared: {times}."


def _where(others: Sequence[Contribution]) -> str:
    """What the rest of a change is spread over: ``57 other ops and idle``."""
    counts = Counter(part.kind for part in others if part.delta != 0)
    places = [counted(counts["op"], "other op")] if counts["op"] else []
    places += [counted(counts["category"], "other category", "other categories")] if counts["category"] else []
    places += [part.name for part in others if part.kind == _OWNER and part.delta != 0]
    return " and ".join([", ".join(places[:-1]), places[-1]] if len(places) > 1 else places)


def _all_the_same(diff: Diff, ascii_only: bool) -> str:
    """Changes of ops that don't show in the step, though they are large enough to matter to it."""
    least = RESOLUTION * (diff.total.before or 0.0)
    changed = [op for op in diff.ops if op.time.is_beyond_noise and abs(op.time.delta or 0.0) >= least]
    if not changed:
        return ""
    words = _listed([Contribution(op.name, op.time, "op") for op in changed[:_MOST_NAMED]], ascii_only)
    most = "" if len(changed) <= _MOST_NAMED else " most of all"
    return f" {counted(len(changed), 'op')} changed all the same:{most} {words}."


def _named(diff: Diff, change: Change, ascii_only: bool) -> tuple[str, float, list[Contribution]]:
    """The largest parts of a change in words, what is left of it, and the parts that add up to that."""
    whole = change.delta or 0.0
    others = [Contribution(_IDLE, item.time, _OWNER) for item in diff.classes if item.name == "idle"]
    others += [Contribution(OWNER_TITLES[of.owner], of.typical, _OWNER) for of in diff.owners if not of.has_ops]
    parts = [Contribution(op.name, op.time, "op") for op in diff.ops] + others
    named = _largest(parts, whole, change)
    left = whole - sum(part.delta for part in named)
    if abs(left) > _EXPLAINED * abs(whole):
        groups = [Contribution(item.name, item.time, "category") for item in diff.categories] + others
        largest = _largest(groups, whole, change)
        rest = whole - sum(part.delta for part in largest)
        if abs(rest) < abs(left):
            parts, named, left = groups, largest, rest
    return _listed(named, ascii_only), left, [part for part in parts if not any(part is one for one in named)]


def _largest(parts: Sequence[Contribution], whole: float, change: Change) -> list[Contribution]:
    """Those beyond their noise that are a good part of the change; where no noise is known, the largest."""
    least = _LEAST_SHARE * abs(whole)
    known = (part for part in parts if part.change.is_beyond_noise or change.noise is None)
    largest = (part for part in known if abs(part.delta) >= least > 0)
    return sorted(largest, key=lambda part: (-abs(part.delta), part.name))[:_MOST_NAMED]


def _listed(parts: Sequence[Contribution], ascii_only: bool) -> str:
    words = []
    for part in parts:
        size = signed(part.delta, "time", ascii_only)
        is_one_sided = part.change.mark in ("new", "gone")
        words.append(f"{part.name} is {part.change.mark} ({size})" if is_one_sided else f"{part.name} {size}")
    return ", ".join(words)
