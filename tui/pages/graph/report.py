"""The report on the graph around an op, and what it says about the op, its neighbours and what it calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.pages.graph import model
from tpuprof.parsers.pages.graph.neighbourhood import Neighbourhood, Side, Subgraph, around, neighbour, neighbourhood
from tpuprof.parsers.pages.graph.programs import GRAPHS
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.session.hlo import HloSession
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.graph import export
from tpuprof.tui.pages.graph.drawing import sections
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, declared
from tpuprof.tui.report.fields import Metric, Table, attribute, metric_rows, object_table
from tpuprof.tui.report.markdown import escaped, metrics_table
from tpuprof.tui.report.page import Head, ReportRequest, Writer
from tpuprof.tui.report.text import SIMULATED
from tpuprof.tui.report.units import (
    BYTES,
    COUNT,
    COUNTS,
    FLAG,
    INTENSITY,
    NUMBER,
    SHARE,
    SHARE_PERCENT,
    TEXT,
    TEXTS,
    TIME_PS,
    VERBATIM,
    Unit,
)

_NO_TIME = f"{model.NOT_TIMED}; or {model.INSIDE}; or {model.NO_PROFILE}"
_NO_PATH = "the compiler does not say"


@dataclass(frozen=True)
class GraphReport:
    """An op with its neighbours decoded, and what lies around it.

    Attributes:
        here: the op, and the rows around it.
        around: what lies within the steps that were asked for.
        steps: how many these are.
        hosts, warnings: where the modules come from, and what is wrong there.
        chosen_of: how many modules there were to choose from, where none was asked for; else 1.
    """

    here: Neighbourhood
    around: Subgraph
    steps: int
    hosts: tuple[str, ...]
    warnings: tuple[str, ...]
    chosen_of: int = 1

    @cached_property
    def operands(self) -> list[model.Neighbour]:
        return self._side("operands")

    @cached_property
    def users(self) -> list[model.Neighbour]:
        return self._side("users")

    def _side(self, side: Side) -> list[model.Neighbour]:
        return [neighbour(self.here, side, at) for at in range(len(self.here.rows(side)))]

    @property
    def sources(self) -> list[str]:
        return list(map(self.here.program.graph.name, self.here.sources))

    @property
    def sinks(self) -> list[str]:
        return list(map(self.here.program.graph.name, self.here.sinks))

    @cached_property
    def nodes(self) -> list[DistantNode]:
        pairs = zip(self.around.rows, self.around.distances, strict=True)
        return [DistantNode(self.here.program.node(row), distance) for row, distance in pairs]

    @cached_property
    def edges(self) -> list[Edge]:
        name = self.here.program.graph.name
        return [Edge(name(begin), name(end), is_control) for begin, end, is_control in self.around.edges]


@dataclass(frozen=True, slots=True)
class DistantNode:
    """An instruction, and how many steps it is away."""

    node: model.Node
    distance: int


@dataclass(frozen=True, slots=True)
class Edge:
    """From an operand to its user."""

    operand: str
    user: str
    is_control: bool


def _node(prefix: str, inside: str = "") -> tuple[Metric[Any], ...]:
    """The figures of an instruction that is an attribute of the source.

    Args:
        prefix: of the keys.
        inside: the dotted name of the instruction in the source, with a dot.
    """

    def figure(key: str, unit: Unit, meaning: str, heading: str = "", null: str = "", name: str = "") -> Metric[Any]:
        return attribute(prefix + key, unit, meaning, heading, null=null, name=inside + (name or key))

    return (
        figure("name", TEXT, "the instruction, unique in its module", "op"),
        figure("opcode", TEXT, "what it does, in XLA's words", "opcode"),
        figure("computation", TEXT, "the computation that it is in", "computation"),
        figure("shape", VERBATIM, "of its result, with layout and tiling as XLA writes them", "shape"),
        figure(
            "size_bytes",
            BYTES,
            "of its result with the padding of its tiles; of a tuple together",
            "size",
            model.NO_SIZE,
        ),
        figure("self_time_ps", TIME_PS, "of all its runs and cores together", "time", _NO_TIME, "self_ps"),
        figure("self_time_percent", SHARE_PERCENT, "of the cores' whole time", "share", _NO_TIME, "fraction"),
        figure("occurrences", COUNT, "how often it ran, on all cores together", "runs", _NO_TIME),
        figure("moves", VERBATIM, "what a copy changes: layout, tiles, or the memory; empty for other ops", "moves"),
        figure("partner", VERBATIM, "the other half of an asynchronous pair; empty for other ops", "pair"),
        figure("inside", COUNT, "instructions of the computations that it calls", "inside"),
        figure("is_root", FLAG, "whether its computation returns it"),
        figure("framework_op", TEXT, "where it comes from in the framework", "framework op", _NO_PATH),
        figure("source", TEXT, "the line that it comes from", "source", _NO_PATH),
    )


_PLACES = "which operand it is, from 0, or which of its operands the op is; none if it only has to run before or after"
_BEHIND = "the real producer or user of the value, if this op only passes it on, as a tuple does"
_NEIGHBOUR = (
    *_node("", "node."),
    attribute("places", COUNTS, _PLACES, "operand"),
    attribute("is_control", FLAG, "whether it is only an order (a control dependency)"),
    attribute("behind", TEXTS, _BEHIND, "behind it"),
)
_SHOWN = ("name", "opcode", "shape", "size_bytes", "self_time_ps", "self_time_percent", "moves", "behind")
OPERANDS: Table[Sequence[model.Neighbour]] = object_table("operands", _NEIGHBOUR, markdown=_SHOWN)
USERS: Table[Sequence[model.Neighbour]] = object_table("users", _NEIGHBOUR, markdown=_SHOWN)

CALLED: Table[Sequence[model.CalledComputation]] = object_table(
    "called",
    (
        attribute("name", TEXT, "the computation", "computation"),
        attribute("role", TEXT, "what it is to the op: calls, body, condition, branch, to_apply", "as"),
        attribute("instructions", COUNT, "how many it has", "instructions"),
        attribute("first", TEXTS, "its last instructions, without parameters and constants", "last ones"),
    ),
    markdown=("name", "role", "instructions", "first"),
)
PATH: Table[Sequence[model.PathStep]] = object_table(
    "path",
    (
        attribute("computation", TEXT, "a computation on the way from the program's own to the op's"),
        attribute("caller", TEXT, "the instruction that calls it", null="it is the program's own computation"),
        attribute("role", VERBATIM, "what it is to that: body, calls; empty for the program's own"),
    ),
)
NODES: Table[Sequence[DistantNode]] = object_table(
    "nodes", (attribute("distance", COUNT, "steps from the op over operands and users"), *_node("", "node."))
)
EDGES: Table[Sequence[Edge]] = object_table(
    "edges",
    (
        attribute("operand", TEXT, "the instruction whose result is taken"),
        attribute("user", TEXT, "the instruction that takes it"),
        attribute("is_control", FLAG, "whether it is only an order (a control dependency)"),
    ),
)
TABLES = (OPERANDS, USERS, CALLED, PATH, NODES, EDGES)


def _of_op(
    key: str, read: Callable[[OpsPage, int], float | str | None], unit: Unit, meaning: str, heading: str
) -> Metric[GraphReport]:
    """A figure that the table of the profile's ops has of the op; None where no event is of it."""

    def known(report: GraphReport) -> float | str | None:
        page, row = report.here.program.times.page, report.here.op.op
        value = None if page is None or row is None else read(page, row)
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return Metric(f"op.{key}", unit, known, meaning, "the profile has no time, FLOPs or bytes of it", heading)


def _bound_by(page: OpsPage, row: int) -> str | None:
    bound = page.rates.bound_name(row)
    return None if bound == "unknown" else bound


def _rate(name: str) -> Callable[[OpsPage, int], float]:
    return lambda page, row: float(getattr(page.rates, name)[row])


_PER_BYTE = "FLOPs per byte that it moves"
RATES: tuple[Metric[GraphReport], ...] = (
    _of_op("category", lambda page, row: page.table.category[row], TEXT, "HLO category of the profile", "category"),
    _of_op("operational_intensity", _rate("operational_intensity"), INTENSITY, _PER_BYTE, "FLOP/byte"),
    _of_op("bound_by", _bound_by, TEXT, "its limit in the roofline", "bound by"),
    _of_op("roofline_efficiency", _rate("efficiency"), SHARE, "how close it comes to that roof", "of the roof"),
)

OP: tuple[Metric[GraphReport], ...] = (*_node("op.", "here.op."), *RATES)
_NOT_FUSED = "why it is in no fusion, as far as its neighbours show; the compiler does not record the reason"
MODULE: tuple[Metric[GraphReport], ...] = (
    attribute("module", TEXT, "the compiled module", "module", name="here.program.label.name"),
    attribute("program_id", NUMBER, "its id", null="the file does not say", name="here.program.label.program_id"),
    attribute("origin", TEXT, "the host or the file that it comes from", name="here.program.label.origin"),
    attribute("instruction_count", COUNT, "instructions of the module", "instructions", name="here.instructions"),
    attribute("computation_count", COUNT, "computations of the module", name="here.computations"),
    attribute("in_loops", COUNT, "how many loops the op is in", "in loops", name="here.in_loops"),
    attribute("answers", TEXTS, "sentences: what the op waits for, what it feeds, what it is for", name="here.answers"),
    attribute("why_not_fused", TEXTS, _NOT_FUSED, name="here.why_not_fused"),
    attribute("sources", TEXTS, "what computes its operands, past ops that only pass values on", name="sources"),
    attribute("sinks", TEXTS, "what uses its result, past ops that only pass values on", name="sinks"),
    attribute("around", COUNT, "steps over operands and users that nodes and edges reach", name="steps"),
    attribute("is_all_around", FLAG, "whether nodes holds all within these steps", name="around.is_all"),
)


METRICS = (*MODULE, *OP)


def read(request: ReportRequest) -> GraphReport:
    """Finds the op and what is around it."""
    options, run = request.options, request.run
    programs = HloSession(run).page(GRAPHS) if request.only_hlo else request.session(run).page(GRAPHS, request.host)
    found = programs.find(options.get("op"), None, options.get("module"))
    steps = 1 if options.get("around") is None else options["around"]
    graph = found.program.graph
    here, near = neighbourhood(found.program, found.row), around(graph, found.row, steps)
    chosen_of = len(programs.compiled.places) if options.get("module") is None else 1
    return GraphReport(here, near, steps, programs.hosts, programs.warnings, chosen_of)


def _which(report: GraphReport) -> str:
    """How the module was chosen, where there are several; empty where there is but one to take."""
    if report.chosen_of == 1:
        return ""
    why = "the first with the op" if report.here.op.self_ps is None else "where the op takes most time"
    return f"module {why}, of {report.chosen_of}: --module picks another"


def declare(report: GraphReport, request: ReportRequest) -> Declared:
    """The op, its neighbours, and what lies within the steps that were asked for; neighbours are decoded when shown."""
    here, most = report.here, request.most_rows
    title = f"Graph around {here.op.name} of {request.run.name}"
    label = str(here.program.label)

    def nodes() -> Section[Sequence[DistantNode]]:
        return Section(NODES, report.nodes, limit=most)

    return Declared(
        Head(title, request.run, report.hosts, report.warnings, simulated=here.program.is_simulated, covers=label),
        parts=(
            Metrics(METRICS, report),
            Section(PATH, here.path),
            Block(lambda: Section(OPERANDS, report.operands).json()),
            Block(lambda: Section(USERS, report.users).json()),
            Block(Section(CALLED, here.called).json, lambda: _markdown(report, most)),
            Block(lambda: nodes().json()),
            Block(lambda: Section(EDGES, report.edges, limit=most).json()),
        ),
        csv=Block(csv=lambda: nodes().csv(), table=nodes),
        text=lambda pen: _text(report, most, pen),
        reasons=here.unknown,
    )


def _markdown(report: GraphReport, most: int) -> list[str]:
    here, which = report.here, _which(report)
    lines = [*([f"- {which}"] if which else []), "", *map(escaped, here.answers)]
    lines += [f"- not fused: {escaped(reason)}" for reason in here.why_not_fused]
    lines += metrics_table(metric_rows(METRICS, report))
    lines += Section(OPERANDS, report.operands, f"Operands ({len(report.operands)})", most).markdown()
    lines += Section(USERS, report.users, f"Users ({len(report.users)})", most).markdown()
    return [*lines, *Section(CALLED, here.called, "Inside").markdown()]


def _text(report: GraphReport, most: int, pen: Pen) -> list[Line]:
    drawn = [pen.fit([(SIMULATED, "warn")])] if report.here.program.is_simulated else []
    drawn += [*pen.wrap_all(report.here.answers, "text", [(" ", "text")]), *sections(report.here, pen, most)]
    if report.steps != 1:
        words = f" {len(report.nodes)} instructions within {report.steps} steps: --format csv or json has them"
        drawn.append(pen.fit([(words, "dim")]))
    if which := _which(report):
        drawn.append(pen.fit([(f" {which}", "dim")]))
    return [*drawn, *pen.notes(report.warnings, ())]  # what is unknown says so in its place


def hlo(report: GraphReport, request: ReportRequest) -> Iterable[str]:
    """The computation of the op as HLO text; the whole module where no op was asked for."""
    if request.options.get("op") is None:
        return export.module_text(report.here.program)
    return export.computation_text(report.here.program, report.here.op.row)


_DECLARED = declared("graph", read, declare, TABLES, METRICS, csv_table=NODES)
_WRITERS: dict[str, Writer[GraphReport]] = {"hlo": hlo, "proto": lambda report, _: export.proto(report.here.program)}
REPORT = replace(_DECLARED, writers={**_DECLARED.writers, **_WRITERS})


def written(here: Neighbourhood, hosts: tuple[str, ...], warnings: tuple[str, ...]) -> tuple[GraphReport, str]:
    """What the screen shows of an op, itself and its neighbours, as the report has it; and what that is."""
    return GraphReport(here, around(here.program.graph, here.op.row, 1), 1, hosts, warnings), ""
