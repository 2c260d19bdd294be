"""Two device memory profiles of one program compared: what is alive in the second that was not in the first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Literal

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.live_arrays import AllocationGroup, By, LiveArrays, groups

Mark = Literal["more", "less", "same", "new", "gone"]


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What became of the allocations that have something in common.

    Attributes:
        before, after: the group in both; None where it is in one only.
    """

    before: AllocationGroup | None
    after: AllocationGroup | None

    @property
    def group(self) -> AllocationGroup:
        """The group after, or before where it is gone."""
        group = self.after or self.before
        assert group is not None
        return group

    @property
    def size_change(self) -> int:
        return (self.after.total.size_bytes if self.after else 0) - (self.before.total.size_bytes if self.before else 0)

    @property
    def count_change(self) -> int:
        return (self.after.total.count if self.after else 0) - (self.before.total.count if self.before else 0)

    @property
    def mark(self) -> Mark:
        """What it is called: by its bytes, by its count where they are the same."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        change = self.size_change or self.count_change
        return "more" if change > 0 else "less" if change < 0 else "same"


@dataclass(frozen=True, slots=True)
class LiveArraysDiff:
    """Two device memory profiles; `after` is compared with `before`."""

    before: LiveArrays
    after: LiveArrays

    @property
    def size_change(self) -> int:
        return self.after.total.size_bytes - self.before.total.size_bytes

    @property
    def count_change(self) -> int:
        return self.after.total.count - self.before.total.count

    @property
    def fraction(self) -> float | None:
        whole = self.before.total.size_bytes
        return self.size_change / whole if whole > 0 else None


def changes(
    diff: LiveArraysDiff, by: By = "source", device: str | None = None, kind: str | None = None
) -> tuple[GroupChange, ...]:
    """What became of each group, the largest growth first, then what shrank, the least first.

    Groups are the same where their source lines, functions or stacks are. What is left is matched without the numbers
    of the lines where all else is the same: a program whose file was edited has its lines elsewhere.

    Args:
        by, device, kind: as for `parsers.memory.live_arrays.groups`.
    """
    before = {group.key: group for group in groups(diff.before, by, device, kind)}
    after = {group.key: group for group in groups(diff.after, by, device, kind)}
    pairs = [(before.pop(key), after.pop(key)) for key in list(before) if key in after]
    moved = _by_kin(diff.after, after.values())
    for kin, old in _by_kin(diff.before, before.values()).items():
        if len(old) == 1 and len(moved.get(kin, ())) == 1:
            pairs.append((before.pop(old[0].key), after.pop(moved[kin][0].key)))
    made = [GroupChange(*pair) for pair in pairs]
    made += [GroupChange(group, None) for group in before.values()]
    made += [GroupChange(None, group) for group in after.values()]
    return tuple(sorted(made, key=lambda one: (-one.size_change, -one.count_change, -one.group.total.size_bytes)))


def _by_kin(page: LiveArrays, those: Iterable[AllocationGroup]) -> dict[Hashable, list[AllocationGroup]]:
    """Groups by what stays when lines move: functions and files of the stack, how many there are and of which size."""
    kin: dict[Hashable, list[AllocationGroup]] = {}
    for group in those:
        stack = page.allocations[group.members[0]].stack
        if stack:
            chain = tuple((frame.file, frame.function) for frame in stack)
            kin.setdefault((chain, group.kind, group.total), []).append(group)
    return kin


@dataclass(frozen=True, slots=True)
class Growth:
    """The answer of a check in continuous integration.

    Attributes:
        allowed: the fraction by which live memory may grow.
        is_beyond: it grew by more than that.
        sentence: why; empty for a pass.
    """

    allowed: float
    is_beyond: bool
    sentence: str


def growth(diff: LiveArraysDiff, allowed: float) -> Growth:
    """Judges the total: counts are exact, there is no noise."""
    if diff.size_change <= allowed * max(0, diff.before.total.size_bytes):
        return Growth(allowed, False, "")
    grown = "from nothing" if diff.fraction is None else f"by {100 * diff.fraction:.1f}%"
    sentence = f"Live memory grew {grown}, more than the {100 * allowed:g}% allowed."
    return Growth(allowed, True, sentence)
