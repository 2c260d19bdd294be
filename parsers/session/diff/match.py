"""Which op of one run is which op of another.

A compiler numbers ops anew whenever a program changes: ``fusion.12`` of one compilation need not be that of another.
So a name alone is no match. It matches ops in passes, the surest first. A pass looks only at ops that no earlier pass
has matched; it matches several ops that look alike in the order of their numbers:

1. program, category, HLO text but for numbers in names, framework op, where both runs have as many such ops: clones
   that were numbered anew are matched by what they compute, whatever number another clone has now ("name" or "text")
2. program, name, HLO text but for numbers, framework op ("name")
3. program, HLO text but for numbers, framework op: the op was numbered anew ("text")
4. program, name, HLO text but for numbers: its scope was renamed ("name")
5. program, name, category, framework op: its shapes or layouts have changed ("name")
6. program, category, shape and framework op: its operands or its fusion have changed ("origin")
7. program, category, framework op, where either run has one such op only ("origin")
8. program, name and category, for ops that no framework op is known of in one of the runs ("name")
9. HLO text and framework op in whatever program: the program was renamed ("text")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import natural_key
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.session.diff.measure import Op
from tpuprof.parsers.session.diff.model import MatchedBy

_NAME = re.compile(r"%[\w.\-]+")
_NUMBER = re.compile(r"[._]?\d+")
_ID = re.compile(r"\b(channel_id|program_id|unique_id)=\d+")
_LONGEST = 4_000
"""How many characters of an HLO text it reads; a tuple of a thousand shapes says no more than its beginning."""


@dataclass(frozen=True, slots=True)
class OpPair:
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


def matched(
    before: Sequence[Op], after: Sequence[Op], table_before: OpTable, table_after: OpTable
) -> tuple[OpPair, ...]:
    """Matches the ops; returns every op of both runs once, the pairs first."""
    a, b = _described(before, table_before), _described(after, table_after)
    left = set(range(len(a.ops))), set(range(len(b.ops)))
    pairs: list[OpPair] = []
    for number, (by, key) in enumerate(_PASSES, 1):
        for old, new in _pass(a, b, left, number, key):
            left[0].discard(old)
            left[1].discard(new)
            is_named = (a.ops[old].program, a.ops[old].name) == (b.ops[new].program, b.ops[new].name)
            has_changed = bool(a.text[old] and b.text[new]) and a.text[old] != b.text[new]
            pairs.append(OpPair(old, new, "name" if is_named and by == "text" else by, has_changed))
        if not left[0] or not left[1]:
            break
    pairs += [OpPair(op, None, "none") for op in sorted(left[0])]
    return (*pairs, *(OpPair(None, op, "none") for op in sorted(left[1])))


def normalised(expression: str) -> str:
    """An HLO text without what a new compilation numbers anew; empty for an op that the profile has no text of.

    It removes the numbers in names, and the name of the op itself; opcodes, types, shapes, layouts and attributes stay.
    """
    _, equals, text = expression[:_LONGEST].partition(" = ")
    return _ID.sub(r"\1=", _NAME.sub(lambda name: _NUMBER.sub("", name[0]), text)) if equals else ""


def _described(ops: Sequence[Op], table: OpTable) -> _Described:
    text = tuple(normalised(table.expression(op.row)) for op in ops)
    rows = np.array([op.row for op in ops], np.int64)
    shapes = table.texts("shape_with_layout", rows) if len(rows) else []
    shape = tuple(given or normal.partition(" ")[0] for given, normal in zip(shapes, text, strict=True))
    return _Described(tuple(ops), text, shape)


_Key = Callable[[Op, str, str], Hashable]
"""What an op is compared by, given its text and its shape; empty for one that has nothing of it."""

_PASSES: tuple[tuple[MatchedBy, _Key], ...] = (
    ("text", lambda op, text, _: text and (op.program, text, op.category, op.framework_op)),
    ("name", lambda op, text, _: (op.program, op.name, text, op.category, op.framework_op)),
    ("text", lambda op, text, _: text and (op.program, text, op.framework_op)),
    ("name", lambda op, text, _: text and (op.program, op.name, text, op.category)),
    ("name", lambda op, _, __: op.framework_op and (op.program, op.name, op.category, op.framework_op)),
    ("origin", lambda op, _, shape: shape and op.framework_op and (op.program, op.category, shape, op.framework_op)),
    ("origin", lambda op, _, __: op.framework_op and (op.program, op.category, op.framework_op)),
    ("name", lambda op, _, __: (op.program, op.name, op.category)),
    ("text", lambda op, text, _: text and (text, op.framework_op.partition("/")[2], op.category)),
)
_AS_MANY, _ONLY_SINGLE, _BY_NAME_ALONE = 1, 7, 8
"""Numbers of passes: in which a key counts only if as many ops of both runs have it, or one op of each; which heeds no
framework op."""


def _pass(
    a: _Described, b: _Described, left: tuple[set[int], set[int]], number: int, key: _Key
) -> list[tuple[int, int]]:
    """Pairs of ops with the same key; several ops with one key pair in the order of their names' numbers."""
    others = _grouped(b, left[1], key)
    pairs: list[tuple[int, int]] = []
    for known, members in _grouped(a, left[0], key).items():
        same = others.get(known, [])
        is_clear = number != _AS_MANY or len(members) == len(same)
        if is_clear and (number != _ONLY_SINGLE or len(members) + len(same) == 2):
            pairs += zip(members, same, strict=False)
    if number == _BY_NAME_ALONE:  # what stems from different framework ops is not one op
        origins = [{a.ops[old].framework_op, b.ops[new].framework_op} - {""} for old, new in pairs]
        pairs = [pair for pair, names in zip(pairs, origins, strict=True) if len(names) < 2]
    return pairs


def _grouped(run: _Described, left: set[int], key: _Key) -> dict[Hashable, list[int]]:
    keys = [(key(run.ops[row], run.text[row], run.shape[row]), row) for row in sorted(left)]
    groups = grouped((of_row, row) for of_row, row in keys if of_row)
    for members in groups.values():
        if len(members) > 1:
            members.sort(key=lambda row: natural_key(run.ops[row].name))
    return groups
