"""What the ops of compiled programs took in a profile, beside what is told of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tpuprof.parsers.base.errors import behind_wall
from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.base.words import duration, multiple
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.program.ops import Measured, ProgramOp, ProgramRow, op_of
from tpuprof.parsers.pages.shared.key import SUMMARIES, PageSession

if TYPE_CHECKING:
    from tpuprof.parsers.pages.ops.ops import OpsPage

Key = TypeVar("Key")


class Times(NamedTuple):
    """What ops took, by the label of their module and by name, programs, by their labels, and what to know of that.

    Attributes:
        simulated: the profile says of itself that its times were composed, not measured.
    """

    ops: Mapping[tuple[str, str], Measured | None]
    programs: Mapping[str, Measured | None]
    warnings: tuple[str, ...]
    simulated: bool


_CLEAR, _LEAST_LOSS, _MOST_NAMED = 1.2, 0.01, 3
"""An op is slow that takes so many times the most that is told of it, and loses this part of all ops' time or more."""


def times_of(session: PageSession, host: str | None) -> Times:
    """What ops and programs took in a profile."""
    modules = [module for summary in session.page(SUMMARIES, host) for module in summary.requests.modules]
    page = session.page(OPS, host)  # behind the summaries, which it is made of where they are there
    names, columns = map(printable, page.table.name), (page.table.occurrences.tolist(), page.table.self_ps.tolist())
    ops = grouped(((program, name), row) for program, name, *row in zip(page.program, names, *columns, strict=True))
    runs = grouped((each.name, (len(each), int(each.duration_ps.sum()))) for each in modules)
    programs = {name: _mean(of) for name, of in runs.items()}
    return Times({key: _mean(of) for key, of in ops.items()}, programs, page.warnings, page.simulated)


def with_measured(rows: Sequence[ProgramRow], times: Times) -> list[ProgramRow]:
    """The programs of a profile, and their ops, with what they took in it."""
    found = []
    for row in rows:
        ops = [replace(op, measured=_of_any(times.ops, [(each, op.name) for each in row.origins])) for op in row.ops]
        found.append(replace(row, ops=ops, measured=_of_any(times.programs, row.origins)))
    return found


def _of_any(times: Mapping[Key, Measured | None], keys: Sequence[Key]) -> Measured | None:
    """The runs under some keys together."""
    found = (times.get(key) for key in keys)
    return _mean([(each.runs, each.all_ps) for each in found if each is not None])


def _mean(runs: Iterable[Sequence[float]]) -> Measured | None:
    """How many runs, and their mean, out of how many there are and how long they took together, a pair a part."""
    count, all_ps = (sum(column) for column in zip((0, 0), *runs, strict=True))
    return Measured(int(count), all_ps / count) if count else None


def op_of_page(page: OpsPage, row: int, module: HloModule | None) -> ProgramOp | None:
    """One op of a profile as `op_of` has it, with its runs; None without its module, or where it is damaged."""
    if module is None:
        return None
    table = page.table
    look = partial(op_of, module, table.name[row], page.device_type)
    op = behind_wall("tell its time by its tiles", look, [], is_decoder=True)
    measured = _mean([(int(table.occurrences[row]), int(table.self_ps[row]))])
    return None if op is None else replace(op, measured=measured)


def slow_words(ops: Sequence[ProgramOp]) -> list[str]:
    """Words on the ops that take clearly longer than is told of them, those that lose most first."""
    least = _LEAST_LOSS * sum(op.measured.all_ps for op in ops if op.measured is not None)
    lost = sorted(filter(None, map(_lost, ops)), reverse=True)
    return [words for ps, words in lost[:_MOST_NAMED] if ps > least]


def _lost(op: ProgramOp) -> tuple[float, str] | None:
    """What all runs of an op took beyond the most that is told of them, and words on it; None without a difference."""
    if op.measured is None or op.told_ps is None or op.measured.mean_ps <= _CLEAR * op.told_ps.high:
        return None
    runs, mean = op.measured
    took = f"{op.name} took {multiple(op.times or 0)} times what its tiles need"
    told = f"{duration(mean)} for {duration(sum(op.told_ps) / 2)} told, the mean of {counted(runs, 'run')}"
    return runs * (mean - op.told_ps.high), f"{took}, {told}" + (f" ({op.source})" if op.source else "")
