"""Which op of one run is which op of another.

A compiler numbers ops anew whenever a program changes: ``fusion.12`` of one compilation need not be that of another.
So a name alone is no match. It matches ops in passes, the surest first. A pass looks only at ops that no earlier pass
has matched; it matches several ops that look alike in the order of their numbers:

1. program, name and HLO text, but for numbers in names ("name")
2. program, HLO text but for numbers, framework op: the op was numbered anew ("text")
3. program, name, category, framework op: its shapes or layouts have changed ("name")
4. program, category, shape and framework op: its operands or its fusion have changed ("origin")
5. program, category, framework op, where either run has one such op only ("origin")
6. program, name and category, for ops that no framework op is known of in one of the runs ("name")
7. HLO text and framework op in whatever program: the program was renamed ("text")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from tpuprof.parsers.base.text import natural_key
from tpuprof.parsers.diff.measure import Op
from tpuprof.parsers.diff.model import MatchedBy
from tpuprof.parsers.ops.table import OpTable

_NAME = re.compile(r"%[\w.\-]+")
_NUMBER = re.compile(r"[._]?\d+")
_ID = re.compile(r"\b(channel_id|program_id|unique_id)=\d+")
_LONGEST = 4_000
"""It reads so many characters of an HLO text; a tuple of a thousand shapes tells no more than its beginning."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Op number `before` of A and `after` of B, one of them None where the other run has no such op."""

    before: int | None
    after: int | None
    by: MatchedBy
    text_changed: bool = False


@dataclass(frozen=True, slots=True)
class _Described:
    """The ops of one run with what they are compared by; `text` is without numbers."""

    ops: tuple[Op, ...]
    text: tuple[str, ...]
    shape: tuple[str, ...]


def matched(before: Sequence[Op], after: Sequence[Op], table_before: OpTable, table_after: OpTable) -> tuple[Pair, ...]:
    """Matches the ops; returns every op of both runs once, the pairs first."""
    a, b = _described(before, table_before), _described(after, table_after)
    left = set(range(len(a.ops))), set(range(len(b.ops)))
    pairs: list[Pair] = []
    for key, by, only_single in _PASSES:
        for old, new in _pass(a, b, left, key, only_single):
            left[0].discard(old)
            left[1].discard(new)
            pairs.append(Pair(old, new, by, bool(a.text[old] and b.text[new]) and a.text[old] != b.text[new]))
        if not left[0] or not left[1]:
            break
    pairs += [Pair(op, None, "none") for op in sorted(left[0])]
    return (*pairs, *(Pair(None, op, "none") for op in sorted(left[1])))


def normalised(expression: str) -> str:
    """An HLO text without what a new compilation numbers anew; empty for an op that the profile has no text of.

    It removes the numbers in names, and the name of the op itself; opcodes, types, shapes, layouts and attributes stay.
    """
    _, equals, text = expression[:_LONGEST].partition(" = ")
    return _ID.sub(r"\1=", _NAME.sub(_without_numbers, text)) if equals else ""


def _without_numbers(name: re.Match[str]) -> str:
    return _NUMBER.sub("", name[0])


def _described(ops: Sequence[Op], table: OpTable) -> _Described:
    text = tuple(normalised(table.expression(op.row)) for op in ops)
    rows = np.array([op.row for op in ops], np.int64)
    shapes = table.texts("shape_with_layout", rows) if len(rows) else []
    shape = tuple(given or normal.partition(" ")[0] for given, normal in zip(shapes, text, strict=True))
    return _Described(tuple(ops), text, shape)


_Key = Callable[[_Described, int], Hashable | None]


def _by_name_and_text(run: _Described, row: int) -> Hashable:
    op = run.ops[row]
    return op.program, op.name, run.text[row], op.category, "" if run.text[row] else op.framework_op


def _by_text(run: _Described, row: int) -> Hashable | None:
    op = run.ops[row]
    return (op.program, run.text[row], op.framework_op) if run.text[row] else None


def _by_name_and_origin(run: _Described, row: int) -> Hashable | None:
    op = run.ops[row]
    return (op.program, op.name, op.category, op.framework_op) if op.framework_op else None


def _by_shape_and_origin(run: _Described, row: int) -> Hashable | None:
    op = run.ops[row]
    return (op.program, op.category, run.shape[row], op.framework_op) if run.shape[row] and op.framework_op else None


def _by_origin(run: _Described, row: int) -> Hashable | None:
    op = run.ops[row]
    return (op.program, op.category, op.framework_op) if op.framework_op else None


def _by_name(run: _Described, row: int) -> Hashable:
    op = run.ops[row]
    return op.program, op.name, op.category


def _in_any_program(run: _Described, row: int) -> Hashable | None:
    op = run.ops[row]
    return (run.text[row], op.framework_op.partition("/")[2], op.category) if run.text[row] else None


_PASSES: tuple[tuple[_Key, MatchedBy, bool], ...] = (
    (_by_name_and_text, "name", False),
    (_by_text, "text", False),
    (_by_name_and_origin, "name", False),
    (_by_shape_and_origin, "origin", False),
    (_by_origin, "origin", True),
    (_by_name, "name", False),
    (_in_any_program, "text", False),
)


def _pass(
    a: _Described, b: _Described, left: tuple[set[int], set[int]], key: _Key, only_single: bool
) -> list[tuple[int, int]]:
    """Pairs of ops with the same key; several ops with one key pair in the order of their names' numbers.

    Args:
        only_single: whether a key counts only if one op of each run has it.
    """
    groups = _grouped(a, left[0], key), _grouped(b, left[1], key)
    pairs: list[tuple[int, int]] = []
    for known, mine in groups[0].items():
        others = groups[1].get(known, [])
        if not others or (only_single and len(mine) + len(others) > 2):
            continue
        if key is _by_name:
            pairs += [pair for pair in zip(mine, others, strict=False) if _may_be_one(a.ops[pair[0]], b.ops[pair[1]])]
        else:
            pairs += zip(mine, others, strict=False)
    return pairs


def _may_be_one(old: Op, new: Op) -> bool:
    """Ops of one name that stem from different framework ops are not one op."""
    return not old.framework_op or not new.framework_op or old.framework_op == new.framework_op


def _grouped(run: _Described, left: set[int], key: _Key) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for row in sorted(left):
        of_row = key(run, row)
        if of_row is not None:
            groups.setdefault(of_row, []).append(row)
    for members in groups.values():
        if len(members) > 1:
            members.sort(key=lambda row: natural_key(run.ops[row].name))
    return groups
