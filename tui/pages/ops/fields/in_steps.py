"""The quantities of the HLO ops of some steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.base.words import NO_CATEGORY, NO_FRAMEWORK_OP
from tpuprof.tui.pages.ops.fields import common
from tpuprof.tui.pages.ops.fields.common import known_program
from tpuprof.tui.report.fields import Metric, Rows, Table, column, in_order, named
from tpuprof.tui.report.units import COUNT, SHARE_PERCENT, TEXT, TEXTS, TIME_PS

if TYPE_CHECKING:
    from tpuprof.parsers.pages.ops.one_op import OpsInSteps

_WITH = "with --step only: "
_NO_TIME = "no op took any time in these steps"


def _fractions(page: OpsInSteps, rows: Rows) -> Floats:
    own = page.table.in_steps_ps
    whole = int(own.sum())
    out: Floats = own[np.asarray(rows, np.intp)] / whole if whole else np.full(len(rows), np.nan)
    return out


def _programs(page: OpsInSteps, rows: Rows) -> list[str | None]:
    return [known_program(page.program[row]) for row in rows]


def _sources(page: OpsInSteps, rows: Rows) -> list[str]:
    return page.table.texts("source", np.asarray(rows, np.intp))


STEPS: tuple[Metric[OpsInSteps], ...] = (
    Metric("steps", TEXTS, lambda page: page.steps, f"{_WITH}names of the steps", heading="steps"),
    Metric("step_cores", COUNT, lambda page: page.core_count, f"{_WITH}cores whose steps these are", heading="cores"),
)
_NAME, _TIME = column("table.name"), column("table.in_steps_ps")
_OWN = f"{_WITH}self time of the runs that start in the steps, over all cores"
_RUNS = f"{_WITH}runs that start in the steps, over all cores"
_OF = f"{_WITH}the HLO module that the op belongs to, with its program id"
_CATEGORY, _SCOPE = column("table.category"), column("table.framework_op")
_KEYS = in_order("name self_time_ps self_time_percent occurrences program category framework_op source")
IN_STEPS: Table[OpsInSteps] = Table(
    "ops_in_steps",
    (
        named("name", TEXT, _NAME, f"{_WITH}the HLO op", "op", 26, filter=("name",), fixed=True, grows=True),
        named("self_time_ps", TIME_PS, _TIME, _OWN, "self time", 10),
        named("self_time_percent", SHARE_PERCENT, _fractions, f"{_WITH}of all ops' there", "self", 6, null=_NO_TIME),
        named("occurrences", COUNT, column("table.occurrences"), _RUNS, "count", 7),
        named("program", TEXT, _programs, _OF, "program", 24, null=common.NO_PROGRAM, filter=("program",)),
        named(
            *("category", TEXT, _CATEGORY, f"{_WITH}its HLO category", "HLO category", 20),
            null=NO_CATEGORY,
            filter=("category",),
        ),
        named(
            *("framework_op", TEXT, _SCOPE, f"{_WITH}the framework op that it comes from", "framework op", 40),
            null=NO_FRAMEWORK_OP,
            filter=("framework_op",),
        ),
        named("source", TEXT, _sources, f"{_WITH}its source file and line", "source", 30, null=common.NO_SOURCE),
    ),
    len,
    json=_KEYS,
    csv=_KEYS,
    markdown=_KEYS,
    screen=_KEYS,
)
