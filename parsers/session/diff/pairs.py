"""Which finding of one run is about the same as one of another: of one kind, and of the same ops, lines or cores."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tpuprof.parsers.pages.findings.finding import Finding
from tpuprof.parsers.pages.findings.subject import Subject

Pair = tuple[Finding | None, Finding | None]
"""A finding before and after; None on the side that has none of the subject."""

_NAMED_CORES = re.compile(r"(?<!\S)[^\s:]+:\d+(?![^\s,.])")
_NUMBER = re.compile(r"[.:]\d+\Z")


def paired(before: Sequence[Finding], after: Sequence[Finding]) -> list[Pair]:
    """Puts findings of one kind in pairs by what they are about; those that nothing is like stand alone.

    Args:
        before, after: of one kind, the one that is worth most first.
    """
    alike = [
        (_likeness(old, new), -abs(row - column), row, column)
        for row, old in enumerate(before)
        for column, new in enumerate(after)
    ]
    rows, columns = dict[int, int](), set[int]()
    for likeness, _, row, column in sorted(alike, reverse=True):
        if likeness and row not in rows and column not in columns:
            rows[row] = column
            columns.add(column)
    pairs: list[Pair] = [(old, after[rows[row]] if row in rows else None) for row, old in enumerate(before)]
    return [*pairs, *((None, new) for column, new in enumerate(after) if column not in columns)]


def _likeness(old: Finding, new: Finding) -> int:
    """How much two findings of a kind are about the same; 0 where they are about something else.

    Ops are the same by name or source line; after a change of the code also by their names without numbers in the same
    file. Findings without ops differ where their titles name other cores.
    """
    mine, other = old.subject, new.subject
    if mine.ops and other.ops:
        names = {op.name for op in mine.ops} & {op.name for op in other.ops}
        return 4 * len(names) + 2 * len(_lines(mine) & _lines(other)) + len(_families(mine) & _families(other))
    cores = [set(_NAMED_CORES.findall(finding.title)) for finding in (old, new)]
    return 0 if all(cores) and not cores[0] & cores[1] else 1


def _lines(subject: Subject) -> set[str]:
    return {op.source for op in subject.ops if op.source}


def _families(subject: Subject) -> set[tuple[str, str]]:
    """Names without their numbers, and the files that they are from."""
    return {(_NUMBER.sub("", op.name), _NUMBER.sub("", op.source)) for op in subject.ops if op.source}
