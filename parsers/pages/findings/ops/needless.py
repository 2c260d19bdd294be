"""Findings about what a step need not do: print for debugging, and rearrange data without computing on it."""

from __future__ import annotations

import re

import numpy as np

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import share, short
from tpuprof.parsers.ops.roofline import holds_ops
from tpuprof.parsers.pages.findings.budget import Budget
from tpuprof.parsers.pages.findings.finding import Finding, Place
from tpuprof.parsers.pages.findings.ops.groups import NOTHING, Group, Told, base_name, groups_of, module_of, named, told

_DEBUG = re.compile(r"(?:^|/)debug_(?:print|callback)(?=[/:\[.]|$)")
"""The primitives of jax.debug.print and jax.debug.callback in a framework op, or a scope that a user named so."""

_CALLS: tuple[OpClass, ...] = ("host", "unknown", "vector", "copy")


def debug_prints(budget: Budget) -> Told:
    """Time on the line of ops in calls of Python that debug: from 1 % on, as nothing of it is the program's result.

    XProf looks for ``debug_print`` in the names of events, and speaks from 5 % of the step on.
    """
    table = budget.evidence.table
    parts = [(budget.rows[name], budget.op_ps(budget.rows[name], name)) for name in _CALLS]
    rows, times = (np.concatenate(column) for column in zip(*parts, strict=True))
    is_debug = np.array([bool(_DEBUG.search(table.framework_op[row])) for row in rows.tolist()], np.bool_)

    def make(groups: list[Group], worth: float) -> Finding | None:
        first = groups[0]
        count = sum(len(group.rows) for group in groups)
        return budget.finding(
            "debug-print",
            f"Debug prints hold up the step: {short(base_name(table, first.first))}",
            worth,
            "Self time on the cores' line of ops of the transfers and calls that stem from debugging callbacks.",
            [
                f"{counted(count, 'op')} of debugging callbacks hold the device up {budget.amount(worth)}: "
                f"{named(groups)}.",
                budget.largest(first.first, float(times[rows == first.first][0])),
                "On several cores all others wait too for the one that prints.",
            ],
            Place("timeline", table.name[first.first]),
        )

    return told(budget, rows, np.where(is_debug, times, 0.0), times, make)


# --- shuffles ------------------------------------------------------------------------------------------------------

LEAST_SHUFFLED = 0.03
"""Every program slices and pads a little; from this share of the time on it matters. XProf speaks from 30 % on."""

_REARRANGES = re.compile(r"^(concatenate|pad|reverse|slice|sort)$")
_REARRANGING = frozenset({b"concatenate", b"pad", b"reverse", b"slice", b"sort"})
_BESIDE = frozenset(
    {
        *(b"parameter", b"constant", b"bitcast", b"tuple", b"get-tuple-element", b"broadcast", b"iota", b"reshape"),
        *(b"transpose", b"copy", b"convert", b"compare", b"select", b"dynamic-slice", b"gather"),
    }
)
"""What a fusion that only rearranges has beside that. Alone, gathers and dynamic slices (of weights and of what is kept
for the backward pass, in a loop over layers) are what a program needs; slow ones are another finding."""

_FUSED = re.compile(r"^(loop|custom|input) fusion$")
_LEAST_OP = 2e-4  # share of the time below which an op's fusion is not looked into


def shuffles(budget: Budget) -> Told:
    """Ops that put data elsewhere without computing on it, other than copies into another layout."""
    table = budget.evidence.table
    parts = [(budget.rows[name], budget.op_ps(budget.rows[name], name)) for name in _SHUFFLING]
    rows, times = (np.concatenate(column) for column in zip(*parts, strict=True))
    moved = (times >= _LEAST_OP * budget.whole_ps) & ~holds_ops(table)[rows]
    moved[moved] = [_only_moves(budget, row) for row in rows[moved].tolist()]
    together = float(times[moved].sum())
    if together < LEAST_SHUFFLED * budget.whole_ps:
        return NOTHING
    kept, kept_ps = rows[moved], times[moved]
    groups = groups_of(table, kept, kept_ps)
    first = groups[0]
    finding = budget.finding(
        "shuffle",
        f"Rearranging data takes {share(together / budget.whole_ps)}: {short(first.label)} most",
        together,
        "Self time of ops that only slice, pad, join or sort; what is needed of them can't be told.",
        [
            f"Slices, pads, joins and sorts compute nothing for {budget.amount(together)}: {named(groups)}.",
            budget.largest(first.first, float(kept_ps[kept == first.first][0])),
        ],
        Place("op-profile", table.name[first.first]),
    )
    return finding, kept


_SHUFFLING: tuple[OpClass, ...] = ("vector", "copy")


def _only_moves(budget: Budget, row: int) -> bool:
    """Whether an op rearranges and does nothing else, by its category or by all that is fused in it."""
    table = budget.evidence.table
    category = table.category[row] or ""
    if _REARRANGES.match(category):
        return True
    if not _FUSED.match(category):
        return False
    module = module_of(budget.evidence, row)
    proto = module.instruction_proto(table.name[row]) if module is not None else None
    computation = module.wrapped(proto) if module is not None and proto is not None else None
    if computation is None:
        return False
    opcodes = {inside.opcode for inside in computation.instructions} - _BESIDE
    return bool(opcodes) and opcodes <= _REARRANGING
