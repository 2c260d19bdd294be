"""The input pipeline tab: the page, a cursor in its steps and one in its ops, and search over both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tpuprof.parsers.pages.input.model import InputOp, InputPipelinePage, StepWait
from tpuprof.tui.draw.columns import Cursor
from tpuprof.tui.draw.format import count, duration, percent
from tpuprof.tui.draw.layout import clean, cut_middle, fit, labelled, wrap
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.input.drawing import compose_input, figure_notes, input_verdict, wait_detail
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import FootKey
from tpuprof.tui.widgets.graph_tab import GraphTab, Panel, Place, steps_named
from tpuprof.tui.widgets.line_canvas import Look
from tpuprof.tui.widgets.states import state_lines

MEANINGS: tuple[tuple[str, str], ...] = (
    (
        "Waits",
        "share of a step in which the device waits for input: time in infeed ops; in a program without any, "
        "idle time while the host waits for input or sends it. Each step counts with its worst core. The mean "
        "step's share is less than that of all step time where the longer steps wait more.",
    ),
    ("Graph", "one column a step: solid up to the mean over the cores, light up to the core that waits most."),
    (
        "making input",
        "ops that read and prepare data. With infeed their time is scaled, so that enqueues keep the share "
        "of time that they take.",
    ),
    ("read", "files read when their data is asked for; read ahead: with a prefetch, interleave or cache around it."),
    (
        "feeding",
        "wait: the program stands in a loader. transfer: data on its way to the device. produce: another thread "
        "stands in a loader.",
    ),
    (
        "self",
        "time of an op without the ops inside it; total: with them. Both over all threads, which run side by side.",
    ),
    ("self %", "of the self time of all ops that make input, or of all rows that feed the device."),
    ("n/a", "the profile cannot tell: the page says why. It is never 0 instead."),
)


class InputPipelineTab(GraphTab[InputPipelinePage]):
    """Shows an input pipeline page, or the state of loading one."""

    MEANINGS = MEANINGS
    TITLES: ClassVar[Mapping[Panel, str]] = {"ops": "Input op", "steps": "Step"}

    def __init__(self, look: Look, *, id: str) -> None:
        super().__init__(look, id=id)
        self._wanted_step = ""

    def _op_names(self, page: InputPipelinePage) -> Sequence[str]:
        return [page.ops[stage.op].name for stage in page.stages]

    # --- what it shows

    def show(self, part: str, payload: InputPipelinePage) -> None:
        """Shows a page; the cursors stay on the same op and step where the new page has them."""
        page = payload
        old, self._page = self._page, page
        self._keep_cursors(old, page)
        self._panel = "ops" if page.stages else "steps"
        self.redraw()
        if self._wanted_step:
            self.go_to("step", self._wanted_step)

    def draw(self, width: int, height: int) -> Sequence[AnyLine]:
        """The page or the state."""
        glyphs = self.look.glyphs
        if self._page is None:
            return state_lines(self._state, width, height, glyphs)
        return self._drawn(compose_input(self._page, width, height, glyphs, Cursor(self._step, self._op)))

    def detail_line(self, width: int) -> AnyLine:
        """One line on what is under the cursor."""
        glyphs, page = self.look.glyphs, self._page
        op = self._selected_op
        if page is not None and self._selected_step is not None and self._step is not None:
            return wait_detail(page.steps, self._step, True, width, glyphs)
        return input_op_line(op, width, glyphs) if op is not None else fit([], width, glyphs)

    def detail_lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        """All there is to say about what is under the cursor."""
        page, step, op = self._page, self._selected_step, self._selected_op
        if page is not None and step is not None:
            return step_wait_details(step, page, width, glyphs)
        if page is not None and op is not None:
            return input_op_details(page, page.stages[self._op].op, width, glyphs)
        return []

    @property
    def foot_keys(self) -> tuple[FootKey, ...]:
        """Keys for what there is to move over."""
        page = self._page
        keys = [FootKey("j k", "op")] if page is not None and page.stages else []
        keys += [FootKey("h l", "step")] if page is not None and page.steps else []
        return (*keys, FootKey("Enter", "details")) if keys else super().foot_keys

    @property
    def selection(self) -> str | None:
        """The full name of the op, or the step's name."""
        step, op = self._selected_step, self._selected_op
        return step.name if step is not None else op.name if op is not None else None

    @property
    def _selected_step(self) -> StepWait | None:
        index = self._selected("steps")
        return self._page.steps[index] if self._page is not None and index is not None else None

    @property
    def _selected_op(self) -> InputOp | None:
        index, page = self._selected("ops"), self._page
        return page.ops[page.stages[index].op] if page is not None and index is not None else None

    def verdict_lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        """The verdict, all that is to do, and what the figures are of, for the notes."""
        if self._page is None:
            return []
        return [*input_verdict(self._page, width, glyphs), *figure_notes(self._page, width, glyphs)]

    # --- moving

    def move(self, across: int, down: int) -> None:
        """Across moves over steps, from the one that waits most; down over ops."""
        page = self._page
        if page is None:
            return
        if across and page.steps:
            first = page.worst_step or 0
            self._go(Place("steps", first if self._step is None else self._step + across))
        elif down and page.stages:
            self._go(Place("ops", self._op + down))
        elif down:
            super().move(across, down)

    def ends(self, direction: int) -> None:
        """First or last of what the cursor moved over last."""
        page = self._page
        if page is None:
            return
        last = len(page.steps if self._panel == "steps" else page.stages) - 1
        if last >= 0:
            self._go(Place(self._panel, 0 if direction < 0 else last))

    def go_to(self, what: str, name: str, program: int | None = None) -> str:
        """Moves to the step of that name, now or when the page is there."""
        self._wanted_step = name if self._page is None else ""
        return super().go_to(what, name, program)

    def find(self, text: str) -> tuple[Place, ...]:
        """Ops by name or category, steps by name."""
        return find_input(self._page, text) if self._page is not None else ()


def find_input(page: InputPipelinePage, text: str) -> tuple[Place, ...]:
    """Ops whose name or category holds the text, then steps whose name does; case does not matter."""
    wanted = text.casefold()
    ops = [page.ops[stage.op] for stage in page.stages]
    places = [Place("ops", index) for index, op in enumerate(ops) if wanted in f"{op.name}\n{op.category}".casefold()]
    return (*places, *steps_named(page.steps, text))


# --- one op or step in full ----------------------------------------------------------------------------------------


def input_op_line(op: InputOp, width: int, glyphs: Glyphs) -> Line:
    """An op's full name in one line, as far as it fits, and its category."""
    kind = f"  {glyphs.dot} {op.category}"
    name = cut_middle(clean(op.name, glyphs.is_ascii), max(1, width - 5 - len(kind)), glyphs)
    return fit([(" op ", "dim"), (name, "strong"), (kind, "dim")], width, glyphs)


def input_op_details(page: InputPipelinePage, row: int, width: int, glyphs: Glyphs) -> list[Line]:
    """All that the page knows of an op."""
    ascii_only, op = glyphs.is_ascii, page.ops[row]
    basis = "ops that make input" if op.group == "input_op" else "rows that feed the device"
    stage = next(stage for stage in page.stages if stage.op == row)
    around = page.ops[page.stages[stage.parent].op].name if stage.parent >= 0 else ""
    rows = [
        ("category", op.category),
        ("occurrences", count(op.occurrences)),
        ("total time", f"{duration(op.total_ps, ascii_only)}, over all threads; {_each(op, ascii_only)}"),
        ("self time", f"{duration(op.self_ps, ascii_only)}, without the ops inside"),
        ("share, self", f"{percent(op.self_percent)} of the self time of all {basis}"),
        ("share, total", f"{percent(op.total_percent)} of the same"),
        *([("feeds", clean(around, ascii_only))] if around else []),
        *([("stage number", str(op.stage_id))] if op.stage_id else []),
    ]
    lines = wrap(op.name, width, "strong", glyphs)
    return [*lines, fit([], width, glyphs), *labelled(rows, width, glyphs)]


def _each(op: InputOp, ascii_only: bool) -> str:
    return f"{duration(op.total_ps / op.occurrences, ascii_only)} each" if op.occurrences else "no occurrence"


def step_wait_details(step: StepWait, page: InputPipelinePage, width: int, glyphs: Glyphs) -> list[Line]:
    """How a step waits for input."""
    rows = [("duration", f"{duration(step.duration_ps, glyphs.is_ascii)}, of its slowest core")]
    if step.wait_ps is None:
        rows.append(("waits for input", f"unknown: {page.unknown.get('device.infeed_percent', 'nothing tells it')}"))
    else:
        least, most = percent(step.percent_minimum), percent(step.percent_maximum)
        rows += [
            ("waits for input", f"{duration(step.wait_ps, glyphs.is_ascii)} on {step.core or 'no core'}"),
            ("share of its time", f"{most}; mean over the cores {percent(step.percent_average)}, least {least}"),
        ]
        if page.infeed_percent is not None:
            rows.append(("the median step", percent(page.infeed_percent.median)))
    if page.step_time is not None and page.step_time.source == "modules":
        rows.append(("inferred", page.step_time.note))
    head = fit([("Step ", "dim"), (clean(step.name, glyphs.is_ascii), "strong")], width, glyphs)
    return [head, fit([], width, glyphs), *labelled(rows, width, glyphs)]
