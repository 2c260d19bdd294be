"""Groups of cores that do not wait for each other: each is compared with its like, the one that changed most shown."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.shared.groups import APART, CoreGroup, groups_of_run, largest
from tpuprof.parsers.session.diff.model import Diff
from tpuprof.parsers.session.session import Session

Sides = tuple[Sequence[Session], Sequence[Session]]

_KEYS: tuple[Callable[[Sequence[CoreGroup], int], Hashable], ...] = (
    lambda groups, at: (groups[at].programs[:1], groups[at].core_names),
    lambda groups, at: (
        groups[at].programs[:1],
        [of.programs[:1] for of in groups[:at]].count(groups[at].programs[:1]),
    ),
)
"""What makes groups of two runs alike: their program and cores; else their program, and which of it they are."""


@dataclass(frozen=True, slots=True)
class GroupSides:
    """A group of cores and its like in every other run, with sessions that show these alone.

    Attributes:
        groups: of the first run of each side; none where no run has several.
    """

    sides: Sides
    groups: tuple[CoreGroup, ...] = ()


def sides_of_groups(sides: Sides, host: str | None, number: int | None) -> tuple[list[GroupSides], str]:
    """The groups of all runs beside each other, of each run the largest where none are alike; and in words the others.

    Args:
        number: of the only group to compare, as the first run counts them; None for all.

    Raises:
        ProfileError: `unknown_group`, exit code 3, where the first run has no such group, or another not its like.
    """
    runs, second = [*sides[0], *sides[1]], len(sides[0])
    if number is not None:
        runs[0].of_core(f"group {number}", host)  # raises where there is none
    every = [groups_of_run(run, host) for run in runs]
    if all(len(groups) < 2 for groups in every) or not all(every):
        return [GroupSides(sides)], ""
    alike = _alike(every) or [[*map(largest, every)]]
    left = [(len(groups) - len(alike), side) for groups, side in zip((every[0], every[second]), "AB", strict=True)]
    words = " and ".join(f"{counted(count, 'other group')} of {side}" for count, side in left if count)
    found = []
    for groups in alike if number is None else [groups for groups in alike if groups[0].number == number]:
        alone = [run.of_core(f"group {of.number}", host) for run, of in zip(runs, groups, strict=True)]
        found.append(GroupSides((alone[:second], alone[second:]), (groups[0], groups[second])))
    if not found:
        sentence = f"Group {number} of the run before has no like in the run after."
        raise ProfileError("unknown_group", sentence, "leave --group out", EXIT_NOT_FOUND)
    return found, words and f"without a like: {words}"


def _alike(every: Sequence[Sequence[CoreGroup]]) -> list[list[CoreGroup]]:
    """The groups that all runs have, in the order of the first."""
    found, left = list[list[CoreGroup]](), every
    for key in _KEYS:
        keyed = [{key(groups, at): of for at, of in enumerate(groups)} for groups in left]
        found += [[of[each] for of in keyed] for each in keyed[0] if all(each in of for of in keyed)]
        left = [[of for of in groups if all(of != row[at] for row in found)] for at, groups in enumerate(left)]
    return sorted(found, key=lambda row: row[0].number)


def most_changed(compared: Sequence[Diff], of: Sequence[GroupSides], alone: str) -> tuple[int, list[str]]:
    """Which comparison to show: that of the group whose steps got slower most, else changed most; in words the rest."""
    shown, *rest = sorted(range(len(of)), key=lambda at: _slower(compared[at]), reverse=True)
    if not of[shown].groups:
        return shown, []
    before, after = (group.label for group in of[shown].groups)
    what = before if before == after else f"{before} of A with {after} of B"
    most = ", which changed most" if rest and any(_slower(compared[shown])) else ""
    others = ", ".join(f"group {of[at].groups[0].number} {_words(compared[at])}" for at in rest)
    words = (f"compared is {what}{most}", others, alone, "--group NUMBER compares another" if rest else "")
    return shown, [f"{APART}: {'; '.join(filter(None, words))}"]


def _changes(diff: Diff) -> list[float]:
    steps = () if diff.steps is None or diff.different else (diff.steps.typical, diff.steps.mean)
    return [of.relative for of in steps if of.mark in ("more", "less") and of.relative is not None]


def _slower(diff: Diff) -> tuple[float, float]:
    """How much longer a step takes, and by how much it changed in either direction."""
    changes = [0.0, *_changes(diff)]
    return max(changes), max(map(abs, changes))


def _words(diff: Diff) -> str:
    changes = _changes(diff)
    return f"{100 * changes[0]:+.1f}%" if changes else "unknown" if diff.steps is None or diff.different else "the same"
