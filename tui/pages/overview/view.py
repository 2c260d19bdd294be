"""The overview tab: the page, a cursor over findings and ops, one over steps, and search over all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.draw.columns import Cursor, Frame
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.overview.details import op_details, op_line, step_details, step_line
from tpuprof.tui.pages.overview.drawing import compose, notes
from tpuprof.tui.pages.overview.findings import finding_details, finding_line, goes_somewhere
from tpuprof.tui.pages.overview.headline import verdict
from tpuprof.tui.widgets.graph_tab import GraphTab, Panel, Place
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

    def _composed(self, page: Overview, width: int, height: int, cursor: Cursor) -> Frame:
        return compose(page, width, height, self.look.glyphs, cursor)

    def _listed(self, page: Overview) -> Mapping[Panel, Sequence[str]]:
        return {"findings": [finding.title for finding in page.findings], "ops": [op.name for op in page.top_ops]}

    def _searched(self, page: Overview) -> Mapping[Panel, Sequence[str]]:
        ops = (filter(None, (op.name, op.category, op.hlo_category, op.op_class)) for op in page.top_ops)
        return {**self._listed(page), "ops": ["\n".join(words) for words in ops]}

    def _first_step(self, page: Overview) -> int:
        return max(range(len(page.steps)), key=lambda index: page.steps[index].duration_ps)

    def _line_on(self, page: Overview, place: Place, width: int, glyphs: Glyphs) -> Line:
        if place.panel == "steps":
            return step_line(page.steps[place.index], page, width, glyphs)
        if place.panel == "findings":
            return finding_line(page.findings[place.index], width, glyphs)
        return op_line(page.top_ops[place.index], width, glyphs)

    def _lines_on(self, page: Overview, place: Place, width: int, glyphs: Glyphs) -> list[Line]:
        if place.panel == "steps":
            return step_details(page.steps[place.index], page, width, glyphs)
        if place.panel == "findings":
            return finding_details(page.findings[place.index], page, width, glyphs)
        return op_details(page.top_ops[place.index], page, width, glyphs)

    def show(self, part: str, payload: Overview) -> None:
        """Shows a page, be it of some hosts only; cursors stay on the same op and step where the new page has them."""
        old, self._page = self._page, payload
        self._keep_cursors(old, payload)
        if old is None or not payload.findings:
            self._panel = self._first_panel(payload)
            self._list = self._panel if self._panel != "steps" else "ops"
        self._finding = min(self._finding, max(0, len(payload.findings) - 1))
        self.redraw()

    @property
    def commands(self) -> tuple[str, ...]:
        """From an op to the same one in the ops tab, from a step to the timeline, from a finding to where to look."""
        page, place = self._page, self.place
        if page is None or place is None:
            return ()
        if place.panel == "findings":
            return ("same_op",) if goes_somewhere(page.findings[place.index]) else ()
        return ("same_op", "on_timeline") if place.panel == "ops" else ("same_op",)

    def jump(self, command: str) -> Jump | None:
        """To where a finding points, to a step or an op's longest run on the timeline, to the op in the ops tab."""
        page, place, selected = self._page, self.place, self.selection
        if page is None or place is None or selected is None:
            return None
        if command == "same_op" and place.panel == "findings":
            return self._jump_of(page, page.findings[place.index])
        if command == "same_op" and place.panel == "ops":
            return Jump("op-profile", "framework_op", selected)
        return Jump("timeline", "step" if place.panel == "steps" else "op", selected)

    def _jump_of(self, page: Overview, finding: Finding) -> Jump:
        """To where a finding points."""
        tab, target = finding.place.tab, finding.place.target
        if target is None:
            return Jump(tab)
        is_step = any(step.name == target for step in page.steps)
        is_of_step = tab in ("overview", "input") or (tab == "timeline" and is_step)
        return Jump(tab, "step" if is_of_step else "op", target)

    def verdict_lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        """The headline in full, for the notes."""
        return verdict(self._page, width, glyphs) if self._page is not None else []

    def unknown_lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        """What the profile cannot tell, for the notes."""
        return notes(replace(self._page, warnings=()), width, glyphs) if self._page is not None else []
