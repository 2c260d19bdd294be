"""Jumps: from an op, a step or a finding on one tab to where another tab has more on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tpuprof.tui.draw.findings import TAB_KEYS
from tpuprof.tui.loading import OPS_TAB, TIMELINE_TAB, LoadingApp
from tpuprof.tui.tabs.base import Tab

if TYPE_CHECKING:
    from tpuprof.parsers.findings.finding import Place


class JumpingApp(LoadingApp):
    """The part of the app that leads from tab to tab."""

    @property
    def tab(self) -> Tab:
        """The tab that is shown."""
        raise NotImplementedError

    def action_tab_command(self, name: str, by: int = 1) -> None:
        """Does what only this tab does; from the overview to the same op in the ops tab, or where a finding points."""
        index, selected = self.tab_index, self.tab.selection
        if name == "on_timeline" and selected is not None:
            self._on_timeline("op", selected)
        elif name == "same_op" and self.tab is self.timeline and self.timeline.op_name is not None:
            op = self.timeline.op_name
            self.action_show_tab(OPS_TAB)
            self.ops.show_named_op(op)
        elif name == "same_op" and self.tab is self.overview and selected is not None:
            finding, step = self.overview.selected_finding, self.overview.selected_step
            if finding is not None:
                self._go_to(finding.place)
            elif step is not None:
                self._on_timeline("step", step.name)
            else:
                self.action_show_tab(OPS_TAB)
                self.ops.show_framework_op(selected)
        else:
            self._flash = self.tab.command(name, by)
        self._came_from = index if index != self.tab_index else self._came_from
        self.redraw_chrome()

    def _on_timeline(self, what: Literal["step", "op"], name: str) -> None:
        """Shows a step, or an op's longest run, on the timeline."""
        self.action_show_tab(TIMELINE_TAB)
        self._flash = self.timeline.go_to(what, name)

    def _go_to(self, place: Place) -> None:
        """Shows where a finding points."""
        self.action_show_tab(TAB_KEYS[place.tab][0] - 1)
        if place.target is None:
            return
        if place.tab == "op-profile":
            self.ops.show_named_op(place.target)
        elif place.tab == "input":
            self.input.show_step(place.target)
        elif place.tab == "timeline":
            page = self.overview.page_shown
            is_step = page is not None and any(step.name == place.target for step in page.steps)
            self._flash = self.timeline.go_to("step" if is_step else "op", place.target)
        elif self.tab is self.overview:
            self.overview.show_step(place.target)
