"""The changes of ops, and of what they add up to: categories, classes, owners.

Above all ops with their clones: sixty layers that each got a little slower are one change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, grouped
from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.ops.table import OpTable, clone_keys
from tpuprof.parsers.pages.overview.ledger import MeanStep
from tpuprof.parsers.session.diff import model
from tpuprof.parsers.session.diff.match import OpPair
from tpuprof.parsers.session.diff.measure import BatchedTimes
from tpuprof.parsers.session.diff.noise import EVERY_STEP, Bounds, estimate_both, estimate_steps, odd_by_design, within
from tpuprof.parsers.steps.accounts.owners import OWNERS, WITHOUT_OPS, Owner, has_input_ops

_SOME = 0.1  # of the most that a step compiles, the share from which on another one does

Compared = tuple[model.OpChange, OpPair]
"""An op's change, and the ops of both runs that it is of."""


def op_groups(
    ops: Sequence[Compared], before: BatchedTimes, after: BatchedTimes, tables: tuple[OpTable, OpTable]
) -> tuple[model.OpGroupChange, ...]:
    """Groups the changes of ops with those of their clones in one program, the largest change first.

    The noise of a group is that of its ops' times added up, as one of as many comparisons as there are ops: a group
    of one op has that op's change.

    Args:
        ops: in the order of `Diff.ops`.
        tables: the ops that the rows of `before` and `after` refer to.
    """
    of_before, of_after = (
        clone_keys(table, np.array([op.row for op in run.ops], np.intp))
        for run, table in zip((before, after), tables, strict=True)
    )
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


def _group(
    ops: Sequence[Compared], members: list[int], before: BatchedTimes, after: BatchedTimes
) -> model.OpGroupChange:
    """The changes of some ops added up; names and texts are those of the op with the most time."""
    if len(members) == 1:
        return model.OpGroupChange(ops[members[0]][0], tuple(members))
    changes, pairs = [ops[number][0] for number in members], [ops[number][1] for number in members]
    main = max(changes, key=lambda op: max(op.time.before or 0.0, op.time.after or 0.0))
    old = [pair.before for pair in pairs if pair.before is not None]
    new = [pair.after for pair in pairs if pair.after is not None]
    times = before.time(old) if old else None, after.time(new) if new else None
    change = replace(
        main,
        name=f"{main.name} ({len(members)} ops)",
        old_name=None,
        time=model.change_of_either(*times, len(ops)),
        count=_count(before, after, old, new),
        text_changed=any(op.text_changed for op in changes),
    )
    return model.OpGroupChange(change, tuple(members))


def _count(
    before: BatchedTimes, after: BatchedTimes, old: Sequence[int] | None, new: Sequence[int] | None
) -> model.Change:
    """The change of how often some ops of each run ran, all together; none for a run without them."""
    sides = (float(run.count[list(rows)].sum()) if rows else None for run, rows in ((before, old), (after, new)))
    count = model.plain_change(*sides)
    return count if old and new else replace(count, mark="gone" if old else "new")


def op_changes(pairs: Sequence[OpPair], before: BatchedTimes, after: BatchedTimes) -> list[Compared]:
    """The changes of ops, the largest first."""
    ops = [(_op_change(pair, before, after, len(pairs)), pair) for pair in pairs]
    ops.sort(key=lambda item: (-abs(item[0].time.delta or 0.0), item[0].program, item[0].name))
    return ops


def _op_change(pair: OpPair, before: BatchedTimes, after: BatchedTimes, comparisons: int) -> model.OpChange:
    old = before.ops[pair.before] if pair.before is not None else None
    new = after.ops[pair.after] if pair.after is not None else None
    shown = new or old
    assert shown is not None
    rows = ((before, pair.before), (after, pair.after))
    time_before, time_after = (None if row is None else run.time([row]) for run, row in rows)
    old_rows, new_rows = ([] if row is None else [row] for _, row in rows)
    return model.OpChange(
        name=shown.name,
        old_name=old.name if old is not None and new is not None and old.name != new.name else None,
        program=shown.program,
        category=shown.category,
        op_class=shown.op_class,
        framework_op=shown.framework_op,
        time=model.change_of_either(time_before, time_after, comparisons),
        count=_count(before, after, old_rows, new_rows),
        matched_by=pair.by,
        text_changed=pair.text_changed,
        rows=(old.row if old is not None else None, new.row if new is not None else None),
    )


def categories(before: BatchedTimes, after: BatchedTimes) -> tuple[model.NamedChange, ...]:
    """The changes of HLO categories, the largest first."""
    parts = [grouped((op.category or "unknown", row) for row, op in enumerate(run.ops)) for run in (before, after)]
    names = sorted({*parts[0], *parts[1]})
    changes = []
    for name in names:
        old, new = parts[0].get(name), parts[1].get(name)
        times = before.time(old) if old else None, after.time(new) if new else None
        run, rows = (after, new) if new else (before, old or [])
        main = max(rows, key=run.means.__getitem__)
        time, count = model.change_of_either(*times, len(names)), _count(before, after, old, new)
        changes.append(model.NamedChange(name, run.ops[main].op_class, time, count))
    return tuple(sorted(changes, key=lambda item: (-abs(item.time.delta or 0.0), item.name)))


def classes(before: BatchedTimes, after: BatchedTimes) -> tuple[model.NamedChange, ...]:
    """The changes of the classes that either run has, and of idle time."""
    parts = [grouped((op.op_class, row) for row, op in enumerate(run.ops)) for run in (before, after)]
    changes: list[model.NamedChange] = []
    for name in OP_CLASSES:
        old, new = (part.get(name, []) for part in parts)
        if name == "idle":
            times, count = (before.idle, after.idle), model.UNKNOWN_CHANGE
        elif old or new:
            times, count = (before.time(old), after.time(new)), _count(before, after, old, new)
        else:
            continue
        changes.append(model.NamedChange(name, name, model.change_of(*times, len(OP_CLASSES)), count))
    return tuple(changes)


def owner_changes(
    sides: Sequence[Sequence[MeanStep | None]],
    bounds: Sequence[Sequence[Bounds | None]],
    tables: tuple[OpTable, OpTable],
) -> tuple[model.OwnerChange, ...]:
    """The changes of the owners that have time in steps, in the order of `OWNERS`; none without all accounts.

    Args:
        sides: the accounts of a run, or of each launch of it; bounds: how long the typical steps of each take.
    """
    accounts = [[account for account in side if account is not None] for side in sides]
    if list(map(len, accounts)) != list(map(len, sides)):
        return ()
    steps = [[np.array([step.owner_ps for step in account.steps]) for account in side] for side in accounts]
    lengths = [[np.array([step.time_ps for step in account.steps]) for account in side] for side in accounts]
    typical = [
        [times[within(length, each or EVERY_STEP)] for times, length, each in zip(*side, strict=True)]
        for side in zip(steps, lengths, bounds, strict=True)
    ]
    odd = _odd(accounts[0][0], accounts[1][0])
    has_launches = any(len(side) > 1 for side in sides)
    changes = []
    for column, owner in enumerate(OWNERS):
        if not any(times[:, column].any() for side in steps for times in side):
            continue
        every, usual = ([[times[:, column] for times in side] for side in of] for of in (steps, typical))
        if has_launches:
            mean, of_typical = (model.change_of_launches(of, np.mean, len(OWNERS)) for of in (every, usual))
        else:
            ((before,), (after,)), ((old,), (new,)) = every, usual
            means = estimate_both(before, after, _special([side[0] for side in steps], owner, odd))
            mean = model.change_of(*means, len(OWNERS))
            of_typical = model.change_of(estimate_steps(old), estimate_steps(new), len(OWNERS))
        # waits for input are ops in some profiles alone
        has_ops = owner not in WITHOUT_OPS and (owner != "input" or any(map(has_input_ops, tables)))
        changes.append(model.OwnerChange(owner, mean, of_typical, has_ops))
    return tuple(changes)


def owners_together(before: MeanStep | None, after: MeanStep | None, owners: Sequence[Owner]) -> model.Change:
    """The change of what some owners have of the mean step together; unknown where either run has no account."""
    if before is None or after is None or not owners:
        return model.UNKNOWN_CHANGE
    columns = [OWNERS.index(owner) for owner in owners]
    old, new = (np.array([step.owner_ps for step in run.steps]) for run in (before, after))
    special = _special([old, new], owners[0] if len(owners) == 1 else None, _odd(before, after))
    return model.change_of(*estimate_both(old[:, columns].sum(axis=1), new[:, columns].sum(axis=1), special))


def _odd(before: MeanStep, after: MeanStep) -> tuple[Bools, Bools]:
    """bool[steps] of each run: which steps are longer by design, whoever has their time."""
    old, new = (np.array([step.time_ps for step in run.steps], np.float64) for run in (before, after))
    return odd_by_design(old, new)


def _special(times: Sequence[Floats], owner: Owner | None, odd: Sequence[Bools]) -> Sequence[Bools]:
    """The steps that are a class of their own: those that compile, because of what the program does; else odd ones."""
    if owner != "compile":
        return odd
    compiling = [of[:, OWNERS.index(owner)] for of in times]
    return [of > _SOME * max(float(of.max()), 1.0) for of in compiling]
