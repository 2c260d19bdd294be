"""The quantities of SparseCores: of a step, of each SparseCore, of the ops that wait for them, and of their own ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.words import SOURCE_HELP
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.sparse_core import page
from tpuprof.parsers.pages.sparse_core.host import SparseWait
from tpuprof.parsers.pages.sparse_core.page import SparseCore, SparseStep, StepSplit
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.report.fields import (
    ColumnSpec,
    Field,
    Metric,
    Rows,
    Table,
    attribute,
    column,
    in_order,
    named,
    nested,
    object_table,
    of_each_row,
)
from tpuprof.tui.report.shared.quantities import RANK
from tpuprof.tui.report.units import COUNT, NUMBER, PERCENT, TEXT, TEXTS, TIME_MS, TIME_PS, VERBATIM

PARTS: tuple[tuple[str, str, str, str], ...] = (
    ("tensor_core_busy", "tensor", "TensorCore works", "the TensorCore runs an op that does not wait for a SparseCore"),
    ("sparse_core_busy", "sparse", "SparseCore works", "a SparseCore runs an op; several beside a core count as one"),
    ("both_busy", "both", "both work", "the TensorCore works and so does a SparseCore"),
    ("tensor_core_alone", "tensor_alone", "TensorCore alone", "the TensorCore works and no SparseCore does"),
    ("sparse_core_alone", "sparse_alone", "SparseCore alone", "a SparseCore works and the TensorCore does not"),
    ("neither_busy", "neither", "neither works", "neither of them works"),
    ("tensor_core_waits", "wait", "TensorCore waits", "the TensorCore waits for a SparseCore, in an op that waits"),
    (
        "waits_beside",
        "wait_beside",
        "waits while SC works",
        "the part of this wait in which a SparseCore works; in the rest, none works any more or yet",
    ),
    ("idle_beside", "idle_beside", "idle while SC works", "the TensorCore runs no op at all while a SparseCore works"),
    ("held_up", "held", "delayed by SC", "tensor_core_waits plus idle_beside: the most that SparseCores can cost"),
)
"""Key, name in `StepSplit`, heading and meaning of each part of a step."""


def _parts_of(key: str, name: str, heading: str, meaning: str) -> tuple[Metric[StepSplit], Metric[StepSplit]]:
    null = "" if name == "sparse" else page.NO_TENSOR_CORE
    time = attribute(f"{key}_ms", TIME_MS, meaning, heading, null=null, name=f"{name}_ps", words=_time_words(name))
    share: Metric[StepSplit] = Metric(
        f"{key}_percent", PERCENT, lambda split: split.percent(name), f"{meaning}: of the step's time", null or _NO_TIME
    )
    return time, share


def _time_words(name: str) -> Any:  # noqa: ANN401 - a function of a split
    def words(split: StepSplit) -> str:
        value = getattr(split, f"{name}_ps")
        return duration(value) if value is None else f"{duration(value)}, {percent(split.percent(name))}"

    return words


_NO_TIME = "the step has no duration"
STEP = attribute("step_ms", TIME_MS, "the step's time", "time", name="step_ps")
SPLIT: tuple[Metric[StepSplit], ...] = (STEP, *(figure for part in PARTS for figure in _parts_of(*part)))

_MEAN = "means over the steps and over the TensorCores that have SparseCores beside them"
_VERDICT = "bottleneck: they delay the TensorCores by 10% of the step or more; not_bottleneck; idle; unknown"
_SOURCE = f"{SOURCE_HELP}, Sparse Core Steps, or whole profile where there are none"
METRICS: tuple[Metric[Any], ...] = (
    attribute("statement", VERBATIM, "whether the SparseCores are the bottleneck, in a sentence or two"),
    attribute("verdict", VERBATIM, _VERDICT, null=page.NO_SPARSE_CORES),
    attribute("mean", nested(SPLIT), _MEAN, null=page.NO_SPARSE_CORES),
    attribute("step_source", VERBATIM, _SOURCE, null=page.NO_SPARSE_CORES),
    attribute("tensor_core_count", COUNT, "TensorCores that have SparseCores beside them", name="cores"),
    attribute("notes", TEXTS, "notes on these figures"),
)


def _of_split(figure: Metric[Any]) -> Metric[Any]:
    return replace(figure, read=lambda step: figure.read(step.split), words=None)


STEPS: Table[Sequence[SparseStep]] = object_table(
    "steps",
    (
        attribute("name", VERBATIM, "the step's name", "step"),
        attribute("start_ms", TIME_MS, "its start on the trace's clock", name="start_ps"),
        *map(_of_split, SPLIT),
        attribute("core", VERBATIM, "the core that is delayed longest", "core", null="no core is delayed"),
    ),
    markdown=in_order("name step_ms tensor_core_busy_ms sparse_core_busy_ms both_busy_ms tensor_core_waits_ms core"),
)

CORES: Table[Sequence[SparseCore]] = object_table(
    "sparse_cores",
    (
        attribute("name", VERBATIM, "host, number of the TensorCore beside it, and its own", "SparseCore"),
        attribute("tensor_core", VERBATIM, "the TensorCore that it is beside, as host:ordinal", name="core"),
        attribute("step_ms", TIME_MS, "the step's time, mean over the steps, as for all figures below", name="step_ps"),
        attribute("busy_ms", TIME_MS, "it runs an op", "works", name="busy_ps"),
        attribute("busy_percent", PERCENT, "the same, of the step's time", "of step", null=_NO_TIME),
        attribute("both_ms", TIME_MS, "the TensorCore works at the same time", "both work", null=page.NO_TENSOR_CORE),
        attribute(
            "alone_ms", TIME_MS, "the TensorCore does not work at the same time", "alone", null=page.NO_TENSOR_CORE
        ),
        attribute("infeed_ms", TIME_MS, "it runs infeed ops", "infeed", null=page.NO_FEEDS),
        attribute("outfeed_ms", TIME_MS, "it runs outfeed ops", "outfeed", null=page.NO_FEEDS),
        attribute("sync_ms", TIME_MS, "with an event of its line Sparse Core Syncs", "sync", null=page.NO_SYNCS),
    ),
    markdown=in_order("name busy_ms busy_percent both_ms alone_ms infeed_ms outfeed_ms sync_ms"),
)

_BEGUN_BY = "the TensorCore's op that started the work it waits for"
WAITS: Table[Sequence[SparseWait]] = object_table(
    "waits",
    (
        attribute("op", VERBATIM, "the TensorCore's op that waits", "op that waits"),
        attribute("started_by", TEXT, _BEGUN_BY, "begun by", null="the op's HLO text names none"),
        attribute("occurrences", COUNT, "how often it ran in the steps, over all cores", "count"),
        attribute("wait_ms", TIME_MS, "its time in the steps, over all cores", "waits", name="wait_ps"),
        attribute("beside_ms", TIME_MS, "the part in which a SparseCore works", "while SC works", name="beside_ps"),
    ),
    markdown=in_order("op started_by occurrences wait_ms beside_ms"),
)


def _fractions(table: OpTable, rows: Rows) -> list[float | None]:
    total = int(table.self_ps.sum())
    return [100 * int(table.self_ps[row]) / total if total else None for row in rows]


def _averages(table: OpTable, rows: Rows) -> list[float | None]:
    return [int(table.total_ps[row]) / int(table.occurrences[row]) if table.occurrences[row] else None for row in rows]


_OP = in_order(
    "name side category parent_op framework_op program_id",
    "self_time_ps self_percent occurrences average_time_ps total_time_ps",
)


def _programs(table: OpTable, rows: Rows) -> list[int | None]:
    return [int(table.program_id[row]) or None for row in rows]


def _text(key: str, meaning: str, heading: str, width: int) -> Field[OpTable]:
    return named(key, TEXT, column(key), meaning, heading, width, null=_NONE_GIVEN, filter=(key,))


_SELF = "its time without the ops inside it, over all SparseCores, in the whole profile"
_SELF_PERCENT, _NO_SELF_TIME = "its share of the self time of all SparseCore ops", "they took no time"
_RAN_FOR, _NOT_TOLD = "the TensorCore's op that it ran for", "the profile does not show what it ran for"
_NONE_GIVEN = "the profile gives none"
_NAME_LOOK: dict[str, Any] = {"fixed": True, "grows": True}
_SIDE: ColumnSpec[OpTable] = ColumnSpec("side", 10)

OPS: Table[OpTable] = Table(
    "ops",
    (
        replace(RANK, meaning="the op's place by self time"),
        named("name", TEXT, column("name"), "the op's name", "op", 18, filter=("name",), **_NAME_LOOK),
        named("self_time_ps", TIME_PS, column("self_ps"), _SELF, "self", 8, fixed=True),
        named("self_percent", PERCENT, _fractions, _SELF_PERCENT, "self %", 6, null=_NO_SELF_TIME, title="%"),
        named("occurrences", COUNT, column("occurrences"), "how often it ran", "count", 7),
        named("average_time_ps", TIME_PS, _averages, "total time by occurrence", "average", 8, null="it never ran"),
        named("parent_op", TEXT, column("parent"), _RAN_FOR, "for", 18, null=_NOT_TOLD),
        _text("category", "the HLO category", "category", 16),
        Field("side", TEXT, lambda _, rows: ["SparseCore"] * len(rows), "the kind of core that ran it", screen=_SIDE),
        _text("framework_op", "the framework op that it comes from", "framework op", 24),
        named("total_time_ps", TIME_PS, column("total_ps"), "its time with the ops inside it", "total", 8),
        named("program_id", NUMBER, _programs, "the id of its HLO module", null=_NONE_GIVEN),
        named("expression", TEXT, of_each_row("expression"), "its HLO text", null=_NONE_GIVEN, filter=("expression",)),
    ),
    len,
    json=in_order(_OP, "expression"),
    csv=in_order("rank", _OP),
    markdown=in_order("name self_time_ps self_percent occurrences average_time_ps parent_op category"),
    screen=in_order(
        "name self_time_ps self_percent occurrences average_time_ps parent_op category side framework_op total_time_ps"
    ),
)
