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
_Row = list[CoreGroup | None]
"""A group of each run, which are compared; None for a run without any, whose cores are all compared."""

_KEYS: tuple[Callable[[Sequence[CoreGroup], int], Hashable], ...] = (
    lambda groups, at: (groups[at].programs[:1], groups[at].core_names),
    lambda groups, at: (
        groups[at].programs[:1],
        [of.programs[:1] for of in groups[:at]].count(groups[at].programs[:1]),
    ),
    lambda groups, at: groups[at].core_names,
)
"""What makes two groups alike: their program and cores; their program, and which of it they are; their cores."""


@dataclass(frozen=True, slots=True)
class GroupSides:
    """A group of A and its like in B, of the first run of each, and sessions of all runs that show these alone."""

    groups: tuple[CoreGroup | None, CoreGroup | None]
    sides: Sides


@dataclass(frozen=True, slots=True)
class GroupsBeside:
    """The groups of both sides beside each other, at least one; alone: how many of A and of B are in one alone."""

    rows: Sequence[GroupSides]
    alone: tuple[int, int] = (0, 0)


def groups_beside(sides: Sides, host: str | None, number: int | None) -> GroupsBeside:
    """Puts each group that all runs have beside its like, or where they have none in common, the largest of each.

    Args:
        number: of the only group that is compared, as the first run counts them; None for all.

    Raises:
        ProfileError: `unknown_group`, exit code 3, where the first run has no such group, or another not its like.
    """
    sessions, second = [*sides[0], *sides[1]], len(sides[0])
    if number is not None:
        sessions[0].of_core(f"group {number}", host)  # raises where there is none
    every = [groups_of_run(session, host) for session in sessions]
    if all(len(groups) < 2 for groups in every):
        return GroupsBeside([GroupSides((None, None), sides)])
    alike = _alike(every)
    asked = [row for row in alike if number is None or (row[0] is not None and row[0].number == number)]
    if not asked:
        sentence = f"Group {number} of the run before is not compared: the run after has no such group."
        raise ProfileError("unknown_group", sentence, "leave --group out", EXIT_NOT_FOUND)

    def beside(row: _Row) -> GroupSides:
        pairs = zip(sessions, row, strict=True)
        shown = [session if of is None else session.of_core(f"group {of.number}", host) for session, of in pairs]
        return GroupSides((row[0], row[second]), (shown[:second], shown[second:]))

    alone = len(every[0]) - len(alike), len(every[second]) - len(alike)
    return GroupsBeside([*map(beside, asked)], alone if number is None else (0, 0))


def _alike(every: Sequence[Sequence[CoreGroup]]) -> list[_Row]:
    """The groups that all runs have, in the order of the first; else the largest of each, which its pages show."""
    found, left = list[list[CoreGroup]](), [[*groups] for groups in every]
    for key in _KEYS:
        keyed = [{key(groups, at): of for at, of in enumerate(groups)} for groups in left]
        found += [[of[each] for of in keyed] for each in keyed[0] if all(each in of for of in keyed)]
        left = [[of for of in groups if all(of != row[at] for row in found)] for at, groups in enumerate(left)]
    ordered: list[_Row] = [[*row] for row in sorted(found, key=lambda row: row[0].number)]
    return ordered or [[largest(groups) if groups else None for groups in every]]


def most_changed(compared: Sequence[Diff], of: GroupsBeside) -> tuple[int, list[str]]:
    """Which comparison to show: that of the group whose steps got slower most, else changed most; in words the rest."""
    shown, *rest = sorted(range(len(compared)), key=lambda at: _slower(compared[at]), reverse=True)
    if of.rows[shown].groups == (None, None):
        return shown, []
    before, after = ("all cores" if group is None else group.label for group in of.rows[shown].groups)
    words = [f"compared is {before if before == after else f'{before} in A with {after} in B'}"]
    words[0] += ", which changed most" if rest and any(_slower(compared[shown])) else ""
    numbers = [0 if row.groups[0] is None else row.groups[0].number for row in of.rows]
    words += [", ".join(f"group {numbers[at]} {_words(compared[at])}" for at in rest)] if rest else []
    alone = [f"{counted(count, 'other group')} of {side}" for side, count in zip("AB", of.alone, strict=True) if count]
    words += [f"{' and '.join(alone)} {'has' if sum(of.alone) == 1 else 'have'} no like"] if alone else []
    words += ["--group NUMBER compares another"] if rest else []
    return shown, [f"{APART}: {'; '.join(words)}"]


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
