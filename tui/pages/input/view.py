"""The input pipeline tab: the page, a cursor in its steps and one in its ops, and search over both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpuprof.parsers.pages.input.model import InputPipelinePage, StepWait
from tpuprof.tui.draw.columns import ComposedGraph, Cursor, Panel, PanelItem
from tpuprof.tui.draw.format import count, duration, percent
from tpuprof.tui.draw.pen import Pen, cut_middle
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.input.drawing import compose_input, figure_notes, input_verdict, wait_detail
from tpuprof.tui.pages.input.fields import sections
from tpuprof.tui.report.describe import Section
from tpuprof.tui.widgets.chrome import KeyRow
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.step_graph_tab import StepGraphTab, step_at
from tpuprof.tui.widgets.tab import Jump, jump_row

MEANINGS: Mapping[str, str] = {
    "Waits": "share of a step in which the device waits for input: time in infeed ops; in a program without any, idle "
    "time while the host waits for input or sends it. Each step counts with its worst core. If longer steps wait "
    "more, the mean step's share is below the share of all step time.",
    "Graph": "one column a step: solid up to the mean over the cores, light up to the core that waits most.",
    "making input": "ops that read and prepare data. With infeed their time is scaled, so that enqueues keep the share "
    "of time that they take.",
    "read": "files read when their data is asked for; read ahead: with a prefetch, interleave or cache around it.",
    "feeding": "wait: the program is in a loader. transfer: data moves to the device. produce: another thread is "
    "in a loader.",
    "self": "time of an op without the ops inside it; total: with them. Both over all threads, which run side by side.",
    "self %": "of the self time of all ops that make input, or of all rows that feed the device.",
    "n/a": "unknown: the page says why. Unknown is never shown as 0.",
}


class InputPipelineTab(StepGraphTab[InputPipelinePage]):
    """Shows an input pipeline page, or the state of loading one."""

    MEANINGS = MEANINGS
    OP = "Input op"

    def __init__(self, look: ScreenLook, *, id: str) -> None:
        super().__init__(look, id=id)
        self._wanted_step = ""

    def _composed(self, page: InputPipelinePage, width: int, height: int, cursor: Cursor) -> ComposedGraph:
        return compose_input(page, Pen(width, self.look.glyphs), height, cursor)

    def _listed(self, page: InputPipelinePage) -> Mapping[Panel, Sequence[str]]:
        return {"ops": [page.ops[stage.op].name for stage in page.stages]}

    def _searched(self, page: InputPipelinePage) -> Mapping[Panel, Sequence[str]]:
        return {"ops": [f"{page.ops[stage.op].name}\n{page.ops[stage.op].kind}" for stage in page.stages]}

    def _written(self, page: InputPipelinePage) -> tuple[str, object]:
        return "input", page

    def _sections(self, page: InputPipelinePage) -> Sequence[Section]:
        return sections(page)

    def _first_step(self, page: InputPipelinePage) -> int:
        return page.worst_step or 0

    def _first_panel(self, page: InputPipelinePage) -> Panel:
        return "ops"

    def _line_on(self, page: InputPipelinePage, place: PanelItem, pen: Pen) -> Line:
        if place.panel == "steps":
            return wait_detail(page.steps, place.index, True, pen)
        op = page.ops[page.stages[place.index].op]
        kind = f"  {pen.glyphs.dot} {op.kind}"
        name = cut_middle(op.name, max(1, pen.width - 5 - len(kind)), pen.glyphs)
        return pen.fit([(" op ", "dim"), (name, "strong"), (kind, "dim")])

    def _lines_on(self, page: InputPipelinePage, place: PanelItem, pen: Pen) -> list[Line]:
        if place.panel == "steps":
            return step_wait_details(page.steps[place.index], page, pen)
        return input_op_details(page, page.stages[place.index].op, pen)

    def show(self, part: str, payload: InputPipelinePage) -> None:
        old, self._page = self._page, payload
        self._keep_cursors(old, payload)
        self._panel = "ops" if payload.stages else "steps"
        self.redraw()
        if self._wanted_step:
            self.go_to("step", self._wanted_step)

    @property
    def keys(self) -> Sequence[KeyRow]:
        place, name = self.place, self.selection
        if place is None or name is None:
            return super().keys
        jump = Jump("timeline", "step" if place.panel == "steps" else "op", name)
        return (*super().keys, *jump_row("there", jump), *jump_row("timeline", jump))

    def verdict_lines(self, pen: Pen) -> list[Line]:
        if self._page is None:
            return []
        return [*input_verdict(self._page, pen), *figure_notes(self._page, pen)]

    def go_to(self, what: str, name: str, program: int | None = None) -> str:
        self._wanted_step = name if self._page is None else ""
        index = step_at(self._page.steps, name) if self._page is not None else None
        if index is not None:
            self._go(PanelItem("steps", index))
        return ""


def input_op_details(page: InputPipelinePage, row: int, pen: Pen) -> list[Line]:
    """All that the page knows of an op."""
    op, is_ascii = page.ops[row], pen.glyphs.is_ascii
    basis = "ops that make input" if op.group == "input_op" else "rows that feed the device"
    each = f"{duration(op.total_ps / op.occurrences, is_ascii)} each" if op.occurrences else "no occurrence"
    rows = [
        ("category", op.category),
        ("occurrences", count(op.occurrences)),
        ("total time", f"{duration(op.total_ps, is_ascii)}, over all threads; {each}"),
        ("self time", f"{duration(op.self_ps, is_ascii)}, without the ops inside"),
        ("share, self", f"{percent(op.self_percent)} of the self time of all {basis}"),
        ("share, total", f"{percent(op.total_percent)} of the same"),
    ]
    parent = next(stage.parent for stage in page.stages if stage.op == row)
    if parent >= 0:
        rows.append(("feeds", page.ops[page.stages[parent].op].name))
    if op.stage_id:
        rows.append(("stage number", str(op.stage_id)))
    return [*pen.wrap(op.name, "strong"), pen.fit([]), *pen.labelled(rows)]


def step_wait_details(step: StepWait, page: InputPipelinePage, pen: Pen) -> list[Line]:
    """How a step waits for input."""
    rows = [("duration", f"{duration(step.duration_ps, pen.glyphs.is_ascii)}, of its slowest core")]
    if step.wait_ps is None:
        rows.append(
            ("waits for input", f"unknown: {page.unknown.get('device.infeed_percent', 'the profile does not show it')}")
        )
    else:
        least, most = percent(step.percent_minimum), percent(step.percent_maximum)
        rows += [
            ("waits for input", f"{duration(step.wait_ps, pen.glyphs.is_ascii)} on {step.core or 'no core'}"),
            ("share of its time", f"{most}; mean over the cores {percent(step.percent_average)}, least {least}"),
        ]
        if page.infeed_percent is not None:
            rows.append(("the median step", percent(page.infeed_percent.median)))
    if page.step_time is not None and page.step_time.source != "steps":
        rows.append(("inferred", page.step_time.note))
    head = pen.fit([("Step ", "dim"), (step.name, "strong")])
    return [head, pen.fit([]), *pen.labelled(rows)]
