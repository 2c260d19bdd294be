"""Groups of cores that do not wait for each other: each is compared with its like, the one that changed most shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.shared.groups import CoreGroup, groups_of_run
from tpuprof.parsers.session.diff.model import Diff
from tpuprof.parsers.session.session import Session

Sides = tuple[Sequence[Session], Sequence[Session]]


@dataclass(frozen=True, slots=True)
class GroupSides:
    """One group of cores in all runs: sessions of both sides that show it alone, and what it is called in the first."""

    label: str
    number: int
    sides: Sides


def sides_of_groups(sides: Sides, host: str | None) -> list[GroupSides]:
    """The groups of all runs beside each other, by the programs that they run; none where there is one, or they differ.

    Groups of one program are beside each other in the order of their cores.
    """
    groups = [[_numbered(groups_of_run(session, host)) for session in side] for side in sides]
    every = [of for side in groups for of in side]
    if len(every[0]) < 2 or any(of.keys() != every[0].keys() for of in every):
        return []

    def alone(key: tuple[str, int], side: int) -> list[Session]:
        pairs = zip(sides[side], groups[side], strict=True)
        return [session.of_core(f"group {of[key].number}", host) for session, of in pairs]

    return [GroupSides(of.label, of.number, (alone(key, 0), alone(key, 1))) for key, of in every[0].items()]


def _numbered(groups: Sequence[CoreGroup]) -> dict[tuple[str, int], CoreGroup]:
    """The groups by program, and which of that program each is."""
    seen, found = Counter[str](), dict[tuple[str, int], CoreGroup]()
    for group in groups:
        program = group.programs[0] if group.programs else ""
        found[program, seen[program]] = group
        seen[program] += 1
    return found


def most_changed(compared: Sequence[Diff], of: Sequence[GroupSides]) -> tuple[int, Diff]:
    """Which comparison to show: of the group whose steps got slower most, else changed most. It names the others."""
    shown, *rest = sorted(range(len(of)), key=lambda at: _slower(compared[at]), reverse=True)
    others = ", ".join(f"group {of[at].number} {_words(compared[at])}" for at in rest)
    words = (
        f"the cores form {counted(len(of), 'group')} that do not wait for each other: compared is {of[shown].label}, "
        f"which changed most; {others}; --group NUMBER compares another"
    )
    return shown, replace(compared[shown], warnings=(words, *compared[shown].warnings))


def _changes(diff: Diff) -> list[float]:
    steps = () if diff.steps is None else (diff.steps.typical, diff.steps.mean)
    return [of.relative for of in steps if of.mark in ("more", "less") and of.relative is not None]


def _slower(diff: Diff) -> tuple[float, float]:
    """How much longer a step takes, and by how much it changed in either direction."""
    changes = [0.0, *_changes(diff)]
    return max(changes), max(map(abs, changes))


def _words(diff: Diff) -> str:
    changes = _changes(diff)
    return f"{100 * changes[0]:+.1f}%" if changes else "unknown" if diff.steps is None else "the same"
