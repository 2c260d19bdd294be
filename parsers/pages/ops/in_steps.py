"""The HLO ops of some steps: which op takes how long there, and how often it runs.

The page of all ops has sums over the whole capture. These are the sums of the occurrences that start in the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import nearest, printable
from tpuprof.parsers.ops.core.sums import CoreSums
from tpuprof.parsers.ops.table import OpTable, merge_tables
from tpuprof.parsers.pages.ops.ops import OpsPage


@dataclass(frozen=True, slots=True)
class OpsInSteps:
    """The HLO ops that ran in some steps, longest first; ties go by name.

    Attributes:
        page: all HLO ops of the capture.
        steps: names of the steps.
        core_count: number of cores that the steps are of.
        table: sums over steps and cores: `in_steps_ps` is the self time and `occurrences` how often each ran in them;
            the other columns are those of the whole capture.
        program: the module of each op, as `OpsPage.program` has it.
    """

    page: OpsPage
    steps: tuple[str, ...]
    core_count: int
    table: OpTable
    program: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.table)


def chosen_steps(text: str, names: Sequence[str]) -> slice:
    """Which steps a name means, or a range of names, ``104-108``, with both ends.

    Raises:
        ProfileError: `unknown_step`, exit code 3, with the nearest names.
    """
    first, between, last = text.partition("-")
    if text in names:
        first = last = text
    elif not between:
        last = first
    for name in (first, last):
        if name not in names:
            raise _unknown_step(name, names)
    begin, end = names.index(first), names.index(last)
    return slice(min(begin, end), max(begin, end) + 1)


def _unknown_step(name: str, names: Sequence[str]) -> ProfileError:
    """The error of a step that is not there: the nearest by number, else by name."""
    there = f"{names[0]} to {names[-1]}" if len(names) > 1 else names[0]
    near = nearest(name, names)
    if name.isdecimal() and all(each.isdecimal() for each in names):
        near = sorted(names, key=lambda each: abs(int(each) - int(name)))[:2]
    sentence = f"The profile has no step {printable(name)}: its steps are {printable(there)}."
    return ProfileError(
        "unknown_step", sentence, f"--step {' or '.join(map(printable, (near or names)[:2]))}", EXIT_NOT_FOUND
    )


def in_steps(sums: CoreSums) -> OpTable:
    """The ops of a core that ran in the steps that its sums have cells of."""
    rows, cells = len(sums.table), sums.cells
    self_ps, runs = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    np.add.at(self_ps, cells.row, cells.self_ps)
    np.add.at(runs, cells.row, cells.count)
    return replace(sums.table, in_steps_ps=self_ps, occurrences=runs).take(np.flatnonzero(runs))


def together(cores: Sequence[OpTable]) -> OpTable:
    """The ops of all cores, longest first."""
    table = merge_tables(cores)
    order = sorted(range(len(table)), key=lambda row: (-int(table.in_steps_ps[row]), table.name[row]))
    return table.take(np.array(order, np.intp))
