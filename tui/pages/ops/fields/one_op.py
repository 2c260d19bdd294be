"""The quantities of the page of one op: its runs, by core and by step, what it is part of, and its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.graph.model import NO_SIZE
from tpuprof.parsers.pages.graph.neighbourhood import Neighbourhood, Side
from tpuprof.parsers.pages.ops.details import OpDetails
from tpuprof.parsers.pages.ops.one_op import NO_RUN, NO_SCOPE, OpPage, Spread
from tpuprof.tui.pages.ops.fields import common
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS
from tpuprof.tui.report.fields import Field, Metric, Table, attribute, in_order, named, of_each
from tpuprof.tui.report.units import BYTES, COUNT, FLAG, NUMBER, SHARE, TEXT, TEXTS, TIME_PS, VERBATIM

if TYPE_CHECKING:
    from tpuprof.parsers.pages.program.ops import ProgramOp

MOST_SHOWN = 3
"""Rows of each list where no limit is given: the page is to be read whole."""

_MOST_TEXT = 240
_MOST_SHAPE = 60
_NO_GRAPH = "the profile holds no HLO of its module, or the module does not have it"


@dataclass(frozen=True)
class OpReport:
    """The page of an op, and what is around the op in the graph of its module.

    Attributes:
        details: what the profile's texts say of the longest of its HLO ops.
        here: what is around that; None where `why_no_graph` says why.
        is_whole: whether its HLO text is shown whole.
        compiled: what its compiled program says of it, beside its runs; None without that.
    """

    asked: str
    page: OpPage
    details: OpDetails
    here: Neighbourhood | None
    why_no_graph: str
    is_whole: bool
    compiled: ProgramOp | None

    @property
    def elsewhere(self) -> list[str]:
        return list(self.page.found.elsewhere)

    @property
    def expression(self) -> str:
        text = self.details.expression
        return text if self.is_whole or len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"

    @property
    def calls(self) -> list[str]:
        return list(dict.fromkeys(self.details.source_stack))

    @property
    def answers(self) -> list[str] | None:
        return None if self.here is None else list(self.here.answers)

    @property
    def operand_count(self) -> int | None:
        return None if self.here is None else len(self.operands)

    @property
    def user_count(self) -> int | None:
        return None if self.here is None else len(self.users)

    @cached_property
    def operands(self) -> list[OpNeighbour]:
        return sorted(self._side("operands", True), key=lambda each: -(each.size_bytes or 0))

    @cached_property
    def users(self) -> list[OpNeighbour]:
        """What waits for its result, behind what only hands it on, such as tuples; the longest first."""
        return sorted(self._side("users", False), key=lambda each: -(each.self_ps or 0))

    def _side(self, side: Side, is_direct: bool) -> list[OpNeighbour]:
        if self.here is None:
            return []
        program, rows = self.here.program, self.here.rows(side, is_direct)
        nodes = map(program.node, rows)
        return [OpNeighbour(node.name, node.opcode, _cut(node.shape), node.size_bytes, node.self_ps) for node in nodes]


def _cut(shape: str) -> str:
    return shape if len(shape) <= _MOST_SHAPE else f"{shape[:_MOST_SHAPE]}…"


@dataclass(frozen=True, slots=True)
class OpNeighbour:
    """An operand or a user of the op."""

    name: str
    opcode: str
    shape: str
    size_bytes: int | None
    self_ps: int | None


_SPREAD = (
    ("minimum_ps", "the shortest", "min", ""),
    ("median_ps", "the median", "median", ""),
    ("p90_ps", "the 90th percentile", "p90", "one run has no percentiles"),
    ("maximum_ps", "the longest", "max", ""),
)
_RUNS = "how often it ran"
_TOTAL = "time from begin to end, over all of these runs"


def _table(key: str, what: str, width: int) -> Table[Sequence[Spread]]:
    """The spread of its runs, a row a core or a step."""
    fields: tuple[Field[Sequence[Spread]], ...] = (
        named(what, TEXT, of_each("name"), f"the {what}, as all pages name it", what, width, fixed=True, grows=True),
        named("runs", COUNT, of_each("runs"), f"{_RUNS} there", "runs", 7, fixed=True),
        named("total_time_ps", TIME_PS, of_each("total_ps"), _TOTAL, "total time", 10),
        *(
            named(name, TIME_PS, of_each(name), f"{meaning} of the runs", heading, 9, null=why, fixed=True)
            for name, meaning, heading, why in _SPREAD
        ),
    )
    keys = tuple(quantity.key for quantity in fields)
    return Table(key, fields, len, json=keys, csv=keys, markdown=keys, screen=keys)


CORES, STEPS = _table("by_core", "core", 24), _table("by_step", "step", 24)


_NO_EVENT = "the profile has no event of it"


def _neighbours(key: str, what: str) -> Table[Sequence[OpNeighbour]]:
    fields: tuple[Field[Sequence[OpNeighbour]], ...] = (
        named("name", TEXT, of_each("name"), f"the instruction that is {what}", "op", 30, fixed=True),
        named("opcode", TEXT, of_each("opcode"), "what it does, in XLA's words", "opcode", 20),
        named("self_time_ps", TIME_PS, of_each("self_ps"), "of all its runs", "time", 9, null=_NO_EVENT),
        named("size_bytes", BYTES, of_each("size_bytes"), "of its result, padded", "size", 9, null=NO_SIZE),
        named("shape", VERBATIM, of_each("shape"), "of its result, long ones cut", "shape", 30, grows=True),
    )
    keys = tuple(quantity.key for quantity in fields)
    return Table(key, fields, len, json=keys, csv=keys, markdown=keys, screen=keys)


OPERANDS = _neighbours("operands", "an operand")
USERS = _neighbours("users", "what uses its result, past ops that only pass it on")

_ROW = in_order(
    "name program program_id category class framework_op occurrences total_time_ps self_time_ps average_time_ps",
    "self_time_percent flops bytes_accessed hbm_bytes gflops_per_second flops_utilization hbm_bandwidth_utilization",
    "operational_intensity bound_by roofline_efficiency above_peak_why dma_stall_percent core_type source",
)
ROWS: Table[Any] = Table("ops", HLO_OPS.fields, len, json=_ROW, markdown=HLO_OPS.markdown, screen=HLO_OPS.screen)
"""The HLO ops that the name stands for, as the page of all ops has them."""

_of = attribute
_NO_MODULE, _MODULE, _SCOPE = common.NO_PROGRAM, "page.program", "page.scope"
_CLONES = "ops whose names differ from its name only by numbers, including itself"
_LINE = "the source line of the longest of its HLO ops"
_STEP = "its runs' time in a step of a core, the mean over all steps and cores"

_NOT_TOLD = "report program says why: its HLO has no tiles, or nothing was claimed of such an op"
_COMPILED = (
    ("bound_ps", TIME_PS, "what one run takes at least: FLOPs at the peak, or bytes at HBM's", ""),
    (
        "told_low_ps",
        TIME_PS,
        "the least that the compiler's tiles tell, for one run; nobody measured it",
        "told_ps.low",
    ),
    ("told_high_ps", TIME_PS, "the most of it", "told_ps.high"),
    ("times", NUMBER, "how many times the middle of that its mean self time is", ""),
    ("hbm_bytes", BYTES, "that it moves through HBM: arrays once, of a kernel blocks as copied", ""),
    ("streamed_bytes", BYTES, "the same, each array as often as the tiles stream it", ""),
    ("tiles", TEXT, "what the tiles of a product stream, in a sentence", "tile_words"),
)

METRICS: tuple[Metric[OpReport], ...] = (
    _of("op", TEXT, "the name that was asked for", name="asked"),
    _of("is_framework_op", FLAG, "whether that is the name of a framework op", name="page.found.is_framework_op"),
    _of("other_modules", TEXTS, "modules that have an op of that name too, for --module", name="elsewhere"),
    _of("runs.count", COUNT, "runs of all its HLO ops on all cores", "runs", name="page.all_runs.runs"),
    _of("runs.total_ps", TIME_PS, _TOTAL, "total time", name="page.all_runs.total_ps"),
    *(
        _of(f"runs.{name}", TIME_PS, f"{meaning} of all", heading, null=why or NO_RUN, name=f"page.all_runs.{name}")
        for name, meaning, heading, why in _SPREAD
    ),
    _of("step_time_ps", TIME_PS, _STEP, "a step, mean over cores", null="there are no steps", name="page.step_ps"),
    _of("module.name", TEXT, "the module that it is in", "module", null=_NO_MODULE, name=f"{_MODULE}.name"),
    _of("module.self_time_ps", TIME_PS, "self time of all ops in it", null=_NO_MODULE, name=f"{_MODULE}.self_ps"),
    _of("module.fraction", SHARE, "its part of that", "of the module", null=_NO_MODULE, name=f"{_MODULE}.fraction"),
    _of("scope.name", TEXT, "its framework op's scope, such as a layer", "scope", null=NO_SCOPE, name=f"{_SCOPE}.name"),
    _of("scope.self_time_ps", TIME_PS, "self time of all ops in it", null=NO_SCOPE, name=f"{_SCOPE}.self_ps"),
    _of("scope.fraction", SHARE, "its part of that", "of the scope", null=NO_SCOPE, name=f"{_SCOPE}.fraction"),
    _of("clones.count", COUNT, _CLONES, "clones, this op included", name="page.clones"),
    _of("clones.self_time_ps", TIME_PS, "of this op and its clones", "self time of all clones", name="page.clones_ps"),
    *(
        _of(f"compiled.{key}", unit, meaning, null=_NOT_TOLD, name=f"compiled.{name or key}")
        for key, unit, meaning, name in _COMPILED
    ),
    _of("source", TEXT, _LINE, "source", null=common.NO_SOURCE, name="details.source"),
    _of("source_stack", TEXTS, "the calls that led there, outermost first", name="calls"),
    _of("expression", TEXT, "its HLO text, a long one cut: --limit 0 has it whole", null=common.NO_EXPRESSION),
    _of("answers", TEXTS, "what it waits for and what it feeds, in sentences", null=_NO_GRAPH),
    Metric("core_count", COUNT, lambda of: len(of.page.cores), "cores on which it ran, before any limit"),
    Metric("step_count", COUNT, lambda of: len(of.page.steps), "steps in which it ran, before any limit"),
    _of("operand_count", COUNT, "its operands, before any limit", null=_NO_GRAPH),
    _of("user_count", COUNT, "what waits for its result, before any limit", null=_NO_GRAPH),
)
