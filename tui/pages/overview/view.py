"""The overview tab: the page, a cursor over findings and ops, one over steps, and search over all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tpuprof.parsers.pages.overview.model import Overview, Step, TopOp
from tpuprof.tui.draw.columns import Cursor
from tpuprof.tui.draw.layout import fit
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.overview.details import op_details, op_line, step_details, step_line
from tpuprof.tui.pages.overview.drawing import compose, notes
from tpuprof.tui.pages.overview.findings import finding_details, finding_line, goes_somewhere
from tpuprof.tui.pages.overview.headline import verdict
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import FootKey
from tpuprof.tui.widgets.graph_tab import GraphTab, Panel, Place, steps_named
from tpuprof.tui.widgets.states import state_lines
from tpuprof.tui.widgets.tab import Jump

if TYPE_CHECKING:
    from tpuprof.parsers.pages.findings.finding import Finding

MEANINGS: tuple[tuple[str, str], ...] = (
    (
        "Step time",
        "of the slowest core in each step. ~ means inferred: the time between starts of the busiest program.",
    ),
    ("Duty cycle", "share of the capture in which a chip runs an op that neither waits nor moves data for the host."),
    ("Idle", "share of the capture in which a core ran no op at all."),
    ("FLOPS", "model FLOPs of all ops by the compiler's count, over the capture, against the device's peak."),
    ("HBM BW", "bytes that ops move to and from HBM by the compiler's count, against the device's peak."),
    (
        "Why slow?",
        "what takes more of a step than it needs to, most first; ~ marks an estimate. Enter tells what it rests on, o "
        "goes to where to look.",
    ),
    ("Device time", "self time of all ops by class, over all cores; with idle it adds up to the whole."),
    ("C V D N H ?", "compute (matrix unit), vector, copy (DMA), collective (network), host, unknown category."),
    ("Steps", "one column each from 0; where its time went, by the profile's own breakdown. The slow ones are marked."),
    ("self", "share of the self time of all ops, idle left out: what an op takes without the ops inside it."),
    ("count", "how often the op ran, summed over cores."),
    ("FLOP/s", "FLOPs by the compiler's count over the op's time; n/a where the profile has no count."),
    ("n/a", "the profile cannot tell: the notes (w) say why. It is never 0 instead."),
)


class OverviewTab(GraphTab[Overview]):
    """Shows an overview, or the state of loading one."""

    MEANINGS = MEANINGS
    TITLES: ClassVar[Mapping[Panel, str]] = {"findings": "Finding", "ops": "Op", "steps": "Step"}

    def _op_names(self, page: Overview) -> Sequence[str]:
        return [op.name for op in page.top_ops]

    def _finding_count(self, page: Overview) -> int:
        return len(page.findings)

    def _first_panel(self, page: Overview) -> Panel:
        """What the cursor is on at first: the answer, if there is one."""
        return "findings" if page.findings else "ops" if page.top_ops or not page.steps else "steps"

    # --- what it shows

    def show(self, part: str, payload: Overview) -> None:
        """Shows a page, be it of some hosts only; cursors stay on the same op and step where the new page has them."""
        page = payload
        old, self._page = self._page, page
        self._keep_cursors(old, page)
        if old is None or not page.findings:
            self._panel = self._first_panel(page)
            self._list = self._panel if self._panel != "steps" else "ops"
        self._finding = min(self._finding, max(0, len(page.findings) - 1))
        self.redraw()

    def draw(self, width: int, height: int) -> Sequence[AnyLine]:
        """The page or the state."""
        glyphs = self.look.glyphs
        if self._page is None:
            return state_lines(self._state, width, height, glyphs)
        finding = self._finding if self._list == "findings" else None
        op = self._op if self._list != "findings" else None
        return self._drawn(compose(self._page, width, height, glyphs, Cursor(self._step, op, finding)))

    def detail_line(self, width: int) -> AnyLine:
        """One line on what is under the cursor."""
        glyphs = self.look.glyphs
        step, op, finding = self.selected_step, self._selected_op, self.selected_finding
        if step is not None and self._page is not None:
            return step_line(step, self._page, width, glyphs)
        if finding is not None:
            return finding_line(finding, width, glyphs)
        return op_line(op, width, glyphs) if op is not None else fit([], width, glyphs)

    def detail_lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        """All there is to say about what is under the cursor."""
        step, op, finding = self.selected_step, self._selected_op, self.selected_finding
        if self._page is not None and step is not None:
            return step_details(step, self._page, width, glyphs)
        if finding is not None and self._page is not None:
            return finding_details(finding, self._page, width, glyphs)
        if self._page is not None and op is not None:
            return op_details(op, self._page, width, glyphs)
        return []

    @property
    def commands(self) -> tuple[str, ...]:
        """From an op to the same one in the ops tab, from a step to the timeline, from a finding to where to look."""
        finding = self.selected_finding
        if finding is not None:
            return ("same_op",) if goes_somewhere(finding) else ()
        if self._selected_op is not None:
            return ("same_op", "on_timeline")
        return ("same_op",) if self.selected_step is not None else ()

    def jump(self, command: str) -> Jump | None:
        """To where a finding points, to a step or an op's longest run on the timeline, to the op in the ops tab."""
        finding, step, selected = self.selected_finding, self.selected_step, self.selection
        if selected is None:
            return None
        if command == "same_op" and finding is not None:
            return self._jump_of(finding)
        if command == "same_op" and step is None:
            return Jump("op-profile", "framework_op", selected)
        return Jump("timeline", "op" if step is None else "step", selected)

    def _jump_of(self, finding: Finding) -> Jump:
        """To where a finding points."""
        tab, target = finding.place.tab, finding.place.target
        if target is None:
            return Jump(tab)
        is_step = self._page is not None and any(step.name == target for step in self._page.steps)
        is_of_step = tab in ("overview", "input") or (tab == "timeline" and is_step)
        return Jump(tab, "step" if is_of_step else "op", target)

    @property
    def foot_keys(self) -> tuple[FootKey, ...]:
        """Keys for what there is to move over."""
        page = self._page
        what = "finding, op" if page is not None and page.findings else "op"
        keys = [FootKey("j k", what)] if page is not None and (page.top_ops or page.findings) else []
        keys += [FootKey("h l", "step")] if page is not None and page.steps else []
        if not keys:
            return super().foot_keys
        words = "in ops" if self._selected_op is not None else "go there"
        jump = [FootKey("o", words)] if self.commands else []
        return (*keys, FootKey("Enter", "details"), *jump)

    @property
    def selection(self) -> str | None:
        """The full name of the op, the step's name, or what a finding says."""
        step, op, finding = self.selected_step, self._selected_op, self.selected_finding
        if finding is not None:
            return finding.title
        return step.name if step is not None else op.name if op is not None else None

    @property
    def selected_step(self) -> Step | None:
        """The step under the cursor."""
        index = self._selected("steps")
        return self._page.steps[index] if self._page is not None and index is not None else None

    @property
    def selected_finding(self) -> Finding | None:
        """The finding under the cursor."""
        index = self._selected("findings")
        return self._page.findings[index] if self._page is not None and index is not None else None

    @property
    def _selected_op(self) -> TopOp | None:
        index = self._selected("ops")
        return self._page.top_ops[index] if self._page is not None and index is not None else None

    def verdict_lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        """The headline in full, for the notes."""
        return verdict(self._page, width, glyphs) if self._page is not None else []

    def unknown_lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        """What the profile cannot tell, for the notes."""
        return notes(replace(self._page, warnings=()), width, glyphs) if self._page is not None else []

    # --- moving

    def move(self, across: int, down: int) -> None:
        """Across moves over steps, down over findings and ops from where the cursor is in these."""
        page = self._page
        if page is None:
            return
        if across and page.steps:
            slowest = max(range(len(page.steps)), key=lambda index: page.steps[index].duration_ps)
            self._go(Place("steps", slowest if self._step is None else self._step + across))
        elif down and (page.top_ops or page.findings):
            self._go(self._below(page, down))
        elif down:
            super().move(across, down)

    def _below(self, page: Overview, down: int) -> Place:
        """The place so many rows down: findings stand above the ops, and the cursor goes from one to the other."""
        if self._list == "findings":
            index = self._finding + down
            return Place("findings", index) if index < len(page.findings) or not page.top_ops else Place("ops", 0)
        if self._op + down < 0 and page.findings:
            return Place("findings", len(page.findings) - 1)
        return Place("ops", self._op + down) if page.top_ops else Place("findings", 0)

    def ends(self, direction: int) -> None:
        """First or last of what the cursor moves over: of the steps, or of findings and ops."""
        page = self._page
        if page is None:
            return
        if self._panel == "steps" and page.steps:
            self._go(Place("steps", 0 if direction < 0 else len(page.steps) - 1))
        elif direction < 0:
            self._go(Place(self._first_panel(page), 0))
        elif page.top_ops:
            self._go(Place("ops", len(page.top_ops) - 1))

    def find(self, text: str) -> tuple[Place, ...]:
        """Findings and ops by their words, steps by name."""
        return find(self._page, text) if self._page is not None else ()


def find(page: Overview, text: str) -> tuple[Place, ...]:
    """Findings and ops whose words hold the text, then steps whose name does; case does not matter."""
    wanted = text.casefold()
    reasons = [Place("findings", index) for index, why in enumerate(page.findings) if wanted in why.title.casefold()]
    ops = [
        Place("ops", index)
        for index, op in enumerate(page.top_ops)
        if any(wanted in (words or "").casefold() for words in (op.name, op.category, op.hlo_category, op.op_class))
    ]
    return (*reasons, *ops, *steps_named(page.steps, text))
