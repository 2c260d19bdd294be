"""What a finding is about, as data: its ops, hosts and cores, the step with most of it, and its figures with units.

It is made of the time that the finding claims, once for all kinds, so that no kind has to tell it in its own words; and
the places of ops in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Floats, grouped, median, totals
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.words import shortened
from tpuprof.parsers.files.core_names import host_of
from tpuprof.parsers.ops.device import CUSTOM_CALL, is_kernel
from tpuprof.parsers.ops.frames import call_stack, own_call
from tpuprof.parsers.ops.framework_op import scope_end
from tpuprof.parsers.ops.roofline import AT_THE_PEAK, Rates
from tpuprof.parsers.ops.table import OpTable, kernel_name, without_number
from tpuprof.parsers.pages.findings.figures import Figure
from tpuprof.parsers.steps.aligned import AlignedSteps

MOST_LISTED = 8
"""Ops, hosts and cores that are listed, those with most time."""

_HAS_IT = 0.1
_ALIKE = 1e-6
_PS_PER_MS = 1e9


@dataclass(frozen=True, slots=True)
class SubjectOp:
    """An op that a finding is about.

    Attributes:
        name, program_id: of the HLO op; the id is None where the profile gives none.
        time_ps: its time in a step, or in the capture without steps; a mean over cores.
        claimed_ps: the part of that time claimed by the finding.
        bound_by, efficiency: what bounds it, and how near that it comes (0-1); None where unknown.
        source: ``file:line``; None where unknown.
    """

    name: str
    program_id: int | None
    time_ps: float
    claimed_ps: float
    bound_by: str | None
    efficiency: float | None
    source: str | None


@dataclass(frozen=True, slots=True)
class SubjectPart:
    """A host or a core, and the time there that a finding claims: the mean over steps."""

    name: str
    time_ps: float


@dataclass(frozen=True, slots=True)
class Subject:
    """What a finding is about.

    Attributes:
        ops, hosts, cores: those with most of it, most first, `MOST_LISTED` of `op_count`, `host_count`, `core_count`.
            No cores where it claims the same time on all.
        step: the step with most of it; None without steps, or where it claims the same time in all.
        interval_ps: when that ran, from its earliest core on to its last, on the trace's clock.
        figures: with units.
    """

    ops: tuple[SubjectOp, ...] = ()
    op_count: int = 0
    hosts: tuple[SubjectPart, ...] = ()
    host_count: int = 0
    cores: tuple[SubjectPart, ...] = ()
    core_count: int = 0
    step: str | None = None
    interval_ps: tuple[int, int] | None = None
    figures: tuple[Figure, ...] = ()


NOTHING = Subject()
"""Of a finding that claims no time and is about no op, such as a nearly full memory."""


@dataclass(frozen=True, slots=True)
class SubjectOps:
    """The ops of a finding.

    Attributes:
        table, rates: of all ops.
        rows: which of them.
        time_ps, claimed_ps: float64[rows]; see `SubjectOp`.
    """

    table: OpTable
    rates: Rates
    rows: NDArray[np.intp]
    time_ps: Floats
    claimed_ps: Floats


def subject_of(ops: SubjectOps, cells: Floats | None, core_names: Sequence[str], grid: AlignedSteps | None) -> Subject:
    """What a finding is about.

    Args:
        cells: float64[cores, steps], the time that it claims; one core and one step where it is of the whole capture,
            None where it claims none.
        core_names: of the cores; grid: their steps. Empty and None without steps.
    """
    of_ops = Subject(ops=_ops(ops), op_count=len(ops.rows), figures=_figures_of_ops(ops))
    if cells is None or grid is None or cells.shape != (len(core_names), len(grid)):
        return of_ops
    by_core, by_step = cells.mean(axis=1), cells.mean(axis=0)
    cores = _parts(zip(core_names, by_core.tolist(), strict=True)) if _differ(by_core) else ()
    by_host = grouped(zip(map(host_of, core_names), by_core.tolist(), strict=True))
    hosts = _parts((host, sum(times) / len(times)) for host, times in by_host.items())
    worst = int(by_step.argmax()) if _differ(by_step) else None
    return replace(
        of_ops,
        hosts=hosts[:MOST_LISTED],
        host_count=len(hosts),
        cores=cores[:MOST_LISTED],
        core_count=len(cores),
        step=None if worst is None else grid.names[worst],
        interval_ps=None if worst is None else (int(grid.start_ps[worst]), int(grid.end_ps[worst])),
        figures=(*of_ops.figures, *_figures_of_steps(by_core, by_step)),
    )


def _differ(times: Floats) -> bool:
    """Whether some have more than others: a claim that is spread evenly says nothing about where the time is."""
    return len(times) == 1 or bool(len(times) and times.max() - times.min() > _ALIKE * times.max())


def subject_of_hosts(names: Sequence[str], times: Floats) -> Subject:
    """What a finding on programs of the hosts' own processors is about: the time of each host, float64[hosts]."""
    hosts = _parts(zip(names, times.tolist(), strict=True))
    return Subject(hosts=hosts[:MOST_LISTED], host_count=len(hosts))


def _parts(times: Iterable[tuple[str, float]]) -> tuple[SubjectPart, ...]:
    """Those with any of the time, most first."""
    found = [SubjectPart(name, time) for name, time in times if time > 0]
    return tuple(sorted(found, key=lambda part: -part.time_ps))


def _ops(ops: SubjectOps) -> tuple[SubjectOp, ...]:
    order = np.lexsort((-ops.time_ps, -ops.claimed_ps))[:MOST_LISTED]
    rows = ops.rows[order]
    sources = ops.table.texts("source", rows)
    found = []
    for at, row, source in zip(order.tolist(), rows.tolist(), sources, strict=True):
        bound, efficiency = ops.rates.bound_name(row), float(ops.rates.efficiency[row])
        found.append(
            SubjectOp(
                name=ops.table.name[row],
                program_id=int(ops.table.program_id[row]) or None,
                time_ps=float(ops.time_ps[at]),
                claimed_ps=float(ops.claimed_ps[at]),
                bound_by=None if bound == "unknown" else bound,
                efficiency=efficiency if np.isfinite(efficiency) else None,
                source=source or None,
            )
        )
    return tuple(found)


def _figures_of_ops(ops: SubjectOps) -> tuple[Figure, ...]:
    if not len(ops.rows):
        return ()
    together = float(ops.time_ps.sum())
    efficiency = ops.rates.efficiency[ops.rows]
    known = (efficiency <= AT_THE_PEAK) & (ops.time_ps > 0)  # no work and time that do not belong together
    found = [Figure("ops", float(len(ops.rows)), "count"), Figure("ops_time", together / _PS_PER_MS, "ms")]
    if known.any():
        mean = float(np.average(efficiency[known], weights=ops.time_ps[known]))
        found.append(Figure("ops_roofline_efficiency", mean, "fraction"))
    runs = float(ops.table.occurrences[ops.rows].sum())
    return (*found, Figure("ops_occurrences", runs, "count"))


def _figures_of_steps(by_core: Floats, by_step: Floats) -> tuple[Figure, ...]:
    found = []
    if len(by_core) > 1 and _differ(by_core):
        found = [
            Figure("most_of_a_core", float(by_core.max()) / _PS_PER_MS, "ms"),
            Figure("least_of_a_core", float(by_core.min()) / _PS_PER_MS, "ms"),
        ]
    if len(by_step) > 1 and _differ(by_step):
        most = float(by_step.max())
        found += [
            Figure("most_of_a_step", most / _PS_PER_MS, "ms"),
            Figure("median_of_steps", median(by_step) / _PS_PER_MS, "ms"),
            Figure("steps_with_it", float((by_step > _HAS_IT * most).sum()) if most > 0 else 0.0, "count"),
            Figure("steps", float(len(by_step)), "count"),
        ]
    return tuple(found)


# --- where ops come from, in words ---------------------------------------------------------------------------------

LEAST_LARGE = 0.10
"""A place that takes this share of the time has a name, whatever is known of it."""


_NUMBER = pattern(r"(?<![A-Za-z])\d+")


def base_name(table: OpTable, row: int) -> str:
    """What ops like this one have in common: the end of their framework op, else the name without its number."""
    return scope_end(table.framework_op[row]) or without_number(table.name[row])


def what_it_does(table: OpTable, row: int) -> str:
    """What an op does, for a title: its kernel, else the end of its framework op, else its name."""
    return kernel_name(table, row) if is_kernel_call(table, row) else base_name(table, row)


def is_kernel_call(table: OpTable, row: int) -> bool:
    """Whether an op is a kernel that the program brings, and not what the compiler calls by itself."""
    return table.category[row] == CUSTOM_CALL and is_kernel(table.expression(row))


def in_a_line(table: OpTable, rows: NDArray[np.intp]) -> list[str]:
    """What each of some ops does, and in which line of the program.

    What differs in numbers alone, as ops of layers do, has one name: ``layer_#/dot_general``.
    """
    whole = [what_it_does(table, row) for row in rows.tolist()]
    alike, short = dict[str, set[str]](), dict[str, set[str]]()
    for name in whole:
        alike.setdefault(_NUMBER.sub("#", name), set()).add(name)
    names = [one if len(alike[one := _NUMBER.sub("#", name)]) > 1 else name for name in whole]
    for name in names:
        short.setdefault(shortened(name), set()).add(name)
    names = [cut if len(short[cut := shortened(name)]) == 1 else name for name in names]
    return [
        f"{what} in {line}" if line.endswith(")") else f"{what} ({line})" if line else what
        for what, line in zip(names, lines(table, rows), strict=True)
    ]


def lines(table: OpTable, rows: NDArray[np.intp]) -> list[str]:
    """In which function and line of the program each of some ops is; empty where the profile does not say."""

    @cache
    def words(source: str, stack: str) -> str:
        frame = own_call(call_stack(source, stack)) or own_call((source,))
        return "" if frame is None else frame.words

    return list(map(words, table.texts("source", rows), table.texts("source_stack", rows)))


def unnamed(
    table: OpTable, rows: NDArray[np.intp], times: Floats, least_ps: float, words: Iterable[str]
) -> dict[str, float]:
    """The places of some ops that take at least so much together, most first, and of which no sentence speaks.

    Args:
        times: float64[rows], the time of each op.
        words: the sentences.
    """
    text = " ".join(words)
    new = [shortened(what_it_does(table, row)) not in text and table.name[row] not in text for row in rows.tolist()]
    rows, times = rows[new], times[new]
    if float(times.sum()) < least_ps:
        return {}
    together = totals(zip(in_a_line(table, rows), times.tolist(), strict=True))
    return {name: ps for name, ps in sorted(together.items(), key=lambda of: -of[1]) if ps >= least_ps}
