"""Groups of ops that are one for the reader: duplicates, unrolled layers, calls of one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.intervals import Floats, grouped, totals
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import sentence_name, shortened
from tpuprof.parsers.formats.hlo import programs
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.ops.frames import call_stack, own_call
from tpuprof.parsers.ops.framework_op import parse_framework_op, pass_of
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.table import OpTable, clone_keys
from tpuprof.parsers.pages.findings.budget import Budget, Claimed, NothingFound
from tpuprof.parsers.pages.findings.claims import Claim, Rows
from tpuprof.parsers.pages.findings.finding import Evidence, JumpTarget, Kind
from tpuprof.parsers.pages.findings.subject import base_name

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

HBM = TRAFFIC.index("hbm")

REACHED = 0.9
"""Nothing reaches its peak: what ops of a kind reach at most, if the profile does not show that they reach less."""

USUAL = 0.75
"""What they reach where the profile has none to compare with, or only ones that are slower."""

SHORT_PS = 3_000_000
"""An op takes a microsecond or two however little it does: of shorter ones the roof says nothing."""

LEAST_WORTH = 0.01
"""Below this share of the time an estimate is not worth a line."""

_MOST_READ = 24  # groups of ops of which one is read for types and layouts
_COMPARED = 0.001  # share of the time from which on an op shows what its kind reaches


@dataclass(frozen=True, slots=True)
class CloneGroup:
    """An op and its clones, which are one op to the reader.

    Attributes:
        rows: their rows in the table, the longest first.
        ps: their time in the budget.
        name: what to call them.
    """

    rows: Rows
    ps: float
    name: str

    @property
    def first(self) -> int:
        """The longest of them."""
        return int(self.rows[0])

    @property
    def label(self) -> str:
        """Name and number: ``fusion.7``, ``gather (60 ops)``."""
        return _label(self.name, len(self.rows))


def groups_of(table: OpTable, rows: Rows, times: Floats) -> list[CloneGroup]:
    """Groups some ops with their clones (`clone_keys`), the group with most time first.

    Args:
        times: float64[rows], the time of each in the budget.
    """
    members = grouped((key, at) for at, key in enumerate(clone_keys(table, rows)))
    groups = []
    for places in members.values():
        order = sorted(places, key=lambda at: -times[at])
        chosen = rows[order]
        first = int(chosen[0])
        name = table.name[first] if len(chosen) == 1 else base_name(table, first)
        groups.append(CloneGroup(chosen, float(times[order].sum()), name))
    return sorted(groups, key=lambda group: -group.ps)


def read_of_groups(groups: Sequence[CloneGroup], rows: Rows, read: Callable[[int], float]) -> Floats:
    """float64[rows]: what is read of the longest op of each of the largest groups, for all its clones; 0 of others."""
    of_groups = [(group, read(group.first)) for group in groups[:_MOST_READ]]
    known = {row: value for group, value in of_groups for row in group.rows.tolist()}
    return np.array([known.get(row, 0.0) for row in rows.tolist()])


def code_name(table: OpTable, rows: Rows | Sequence[int]) -> str:
    """What a title calls some ops: the user's function that the first comes from, else the scope that they share.

    Of the calls that led to it, those of installed packages and of JAX's libraries are passed over. Its own name where
    the profile has neither.
    """
    first = int(rows[0])
    source, stack = (table.texts(stat, np.array([first]))[0] for stat in ("source", "source_stack"))
    call = own_call(call_stack(source, stack))
    if call is not None and call.function and not call.function.startswith("<"):
        return shortened(call.function)
    shared = _scopes(table.framework_op[first])
    for row in rows[1:]:
        other = _scopes(table.framework_op[int(row)])
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(shared, other, strict=False))
        shared = [part for part, _ in pairs]
    own = [part for part in shared if "(" not in part and ")" not in part and part not in _CONTROL]
    return shortened("/".join(own[-2:])) if own and "/" in table.framework_op[first] else table.name[first]


def place_name(table: OpTable, groups: Sequence[CloneGroup]) -> tuple[str, str]:
    """The same of several groups, and the ending of a verb behind it: ``take (3 ops)`` and ``s``.

    What the first group's ops have in common stands for a function or scope that the profile does not have.
    """
    first, count = groups[0], sum(len(group.rows) for group in groups)
    alike = sum(len(group.rows) for group in groups if group.name == first.name)
    name = code_name(table, first.rows)
    name = first.name if name == table.name[first.first] else name
    return (f"{shortened(name)} and {count - 1:,} more", "") if alike < count else (_label(name, count), "s")


_CONTROL = frozenset(
    ("while", "body", "cond", "scan", "closed_call", "core_call", "checkpoint", "rematted_computation")
)


def _scopes(framework_op: str) -> list[str]:
    return [part for part in parse_framework_op(framework_op).name.split("/") if part] if framework_op else []


def subject(table: OpTable, group: CloneGroup) -> str:
    """The subject of a title: `code_name` of a group, and the number of its ops."""
    return code_name(table, group.rows[:1]) + (f" ({len(group.rows)} ops)" if len(group.rows) > 1 else "")


def of_pass(table: OpTable, rows: Rows) -> str:
    """The pass that ops belong to: ``forward``, ``backward``, ``recomputed``; empty where they differ or none says."""
    passes = {pass_of(table.framework_op[row], table.is_rematerialized(row)) for row in rows.tolist()}
    return passes.pop() if len(passes) == 1 else ""


def module_of(evidence: Evidence, row: int) -> HloModule | None:
    """The compiled program that an op is part of; None where the profile does not hold it."""
    return programs.module_of(evidence.modules, int(evidence.table.program_id[row]))


def inside(evidence: Evidence, row: int) -> list[hlo_pb2.HloInstructionProto]:
    """What an op fuses, itself where it fuses nothing; empty where the profile does not hold its program."""
    module = module_of(evidence, row)
    proto = None if module is None else module.instruction_proto(evidence.table.name[row])
    return [] if module is None or proto is None else module.inside(proto)


_MOST_USED = 1e6


def capped(used: Floats) -> Floats:
    """Shares of a peak, within a bound that only those of a damaged profile exceed; NaN stays."""
    return np.minimum(used, _MOST_USED)


def reached(budget: Budget, used: Floats, times: Floats) -> float:
    """The share of a peak that ops of a kind reach in this profile: that of the best one with some time.

    Args:
        used: float64[n], the share that each uses; NaN where unknown.
        times: float64[n], the time of each in the budget.
    """
    known = used[(times >= _COMPARED * budget.whole_ps) & np.isfinite(used)]
    return float(np.clip(known.max(initial=0.0), USUAL, REACHED))


@dataclass(frozen=True, slots=True)
class Losing:
    """Ops that could be faster.

    Attributes:
        budget: the time that the finding about them claims a part of.
        groups: the group that saves most first.
        claim: what to claim of them.
    """

    budget: Budget
    groups: Sequence[CloneGroup]
    claim: Claim

    @property
    def first(self) -> int:
        """The longest op of the first group."""
        return self.groups[0].first

    @property
    def count(self) -> int:
        """How many ops they are."""
        return sum(len(group.rows) for group in self.groups)

    @property
    def ps(self) -> float:
        """The time of all of them."""
        return sum(group.ps for group in self.groups)

    def words(self, ops: str = "They", more: str = "") -> str:
        """A sentence on the time of these ops, and on which they are."""
        return f"{ops} take {self.budget.amount(self.ps)}{more}: {named(self.groups)}."

    def finding(
        self,
        kind: Kind,
        title: str,
        basis: str,
        evidence: Sequence[str],
        place: JumpTarget | None = None,
        advice: str = "",
    ) -> Claimed:
        """A finding about them whose worth is an estimate; it leads to the first op, or to another place."""
        place = place or JumpTarget("op-profile", self.budget.evidence.table.name[self.first])
        return self.budget.finding(kind, self.claim, title, basis, evidence, place, is_estimate=True, advice=advice)


def worthwhile(budget: Budget, rows: Rows, saved: Floats, goes_away: bool = False) -> Losing:
    """The same as `losing_of`; where that is little, the detector has found nothing (`NothingFound`)."""
    losing = losing_of(budget, rows, saved, goes_away)
    if losing is None:
        raise NothingFound
    return losing


def losing_of(budget: Budget, rows: Rows, saved: Floats, goes_away: bool = False) -> Losing | None:
    """The ops that could be faster; None where that is little.

    Args:
        saved: float64[rows], time that each could save.
        goes_away: see `Budget.take_ops`.
    """
    claim = budget.take_ops(rows, saved, goes_away)
    if claim.worth_ps < LEAST_WORTH * budget.whole_ps or not len(claim.rows):
        return None
    groups = groups_of(budget.evidence.table, claim.rows, claim.op_ps)
    own = [CloneGroup(group.rows, float(budget.op_ps(group.rows).sum()), group.name) for group in groups]
    return Losing(budget, own, claim)


def _label(name: str, count: int) -> str:
    return shortened(name) + (f" ({count} ops)" if count > 1 else "")


def named(groups: Sequence[CloneGroup], most: int = 3) -> str:
    """The first of some groups, for a sentence; groups of one name are counted together."""
    counts = totals((group.name, len(group.rows)) for group in groups)
    words = [sentence_name(_label(name, count)) for name, count in list(counts.items())[:most]]
    rest = sum(list(counts.values())[most:])
    return ", ".join(words) + (f" and {counted(rest, 'more op')}" if rest else "")
