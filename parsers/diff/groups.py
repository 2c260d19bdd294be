"""Ops with their clones: sixty layers that each got a little slower are one change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tpuprof.parsers.diff.match import Pair
from tpuprof.parsers.diff.measure import Measured
from tpuprof.parsers.diff.model import OpChange, OpGroup, change_of_either, plain_change
from tpuprof.parsers.ops.table import OpTable, clone_keys

Compared = tuple[OpChange, Pair]
"""An op's change, and the ops of both runs that it is of."""


def op_groups(
    ops: Sequence[Compared], before: Measured, after: Measured, tables: tuple[OpTable, OpTable]
) -> tuple[OpGroup, ...]:
    """Groups the changes of ops with those of their clones in one program, the largest change first.

    The noise of a group is that of its ops' times added up, as one of as many comparisons as there are ops: a group
    of one op has that op's change.

    Args:
        ops: in the order of `Diff.ops`.
        tables: the ops that the rows of `before` and `after` refer to.
    """
    of_before, of_after = (_keys(run, table) for run, table in zip((before, after), tables, strict=True))
    members: dict[tuple[str, ...], list[int]] = {}
    for number, (op, pair) in enumerate(ops):
        if pair.after is not None:
            key = of_after[pair.after]
        else:
            assert pair.before is not None
            key = of_before[pair.before]
            if not key[1]:  # without a framework op: what has that name in the other run may be another op
                key = (*key, "gone")
        members.setdefault((op.program, *key), []).append(number)
    groups = [_group(ops, numbers, before, after) for numbers in members.values()]
    return tuple(sorted(groups, key=lambda group: (-abs(group.change.time.delta or 0.0), group.members)))


def _keys(run: Measured, table: OpTable) -> list[tuple[str, ...]]:
    return clone_keys(table, np.array([op.row for op in run.ops], np.intp))


def _group(ops: Sequence[Compared], members: list[int], before: Measured, after: Measured) -> OpGroup:
    """The changes of some ops added up; names and texts are those of the op with the most time."""
    if len(members) == 1:
        return OpGroup(ops[members[0]][0], tuple(members))
    changes, pairs = [ops[number][0] for number in members], [ops[number][1] for number in members]
    main = max(changes, key=lambda op: max(op.time.before or 0.0, op.time.after or 0.0))
    old = [pair.before for pair in pairs if pair.before is not None]
    new = [pair.after for pair in pairs if pair.after is not None]
    times = before.time(old) if old else None, after.time(new) if new else None
    counts = (float(run.count[rows].sum()) if rows else None for run, rows in ((before, old), (after, new)))
    count = plain_change(*counts)
    if not old or not new:
        count = replace(count, mark="gone" if old else "new")
    change = replace(
        main,
        name=f"{main.name} ({len(members)} ops)",
        old_name=None,
        time=change_of_either(*times, len(ops)),
        count=count,
        text_changed=any(op.text_changed for op in changes),
    )
    return OpGroup(change, tuple(members))
