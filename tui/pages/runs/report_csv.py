"""The list of runs as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.files.logdir import Run
from tpuprof.tui.report.csv import Cell, table
from tpuprof.tui.report.values import utc

if TYPE_CHECKING:
    from tpuprof.parsers.session.run_facts import RunFacts


_FACTS = ("device_type", "host_core_count", "step_time_ps", "step_time_source", "profile_duration_ps", "modules")


_RUNS = ("name", "path", "hosts", "host_count", "size_bytes", "modified", "problems")


def runs_csv(runs: Sequence[Run], facts: Mapping[str, RunFacts] | None = None) -> str:
    """The runs; several hosts or problems stand in one cell with a semicolon between them.

    Args:
        facts: by path of the run, for further columns.
    """
    rows = (
        (
            run.name,
            run.path,
            "; ".join(host.host for host in run.hosts),
            len(run.hosts),
            run.size_bytes,
            utc(run.modified),
            "; ".join(problem.sentence for problem in run.problems),
            *(() if facts is None else _facts_cells(facts.get(run.path))),
        )
        for run in runs
    )
    return table(_RUNS if facts is None else (*_RUNS, *_FACTS), rows)


def _facts_cells(facts: RunFacts | None) -> tuple[Cell, ...]:
    """Cells of `_FACTS`, empty where unknown."""
    if facts is None:
        return (None,) * len(_FACTS)
    return (
        facts.device_type,
        facts.core_count,
        facts.step_time_ps,
        facts.step_source,
        facts.duration_ps,
        "; ".join(facts.modules or ()),
    )
