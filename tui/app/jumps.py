"""Jumps: from an op, a step or a finding on one tab to where another tab has more on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from textual import work
from textual.message import Message

from tpuprof.tui.app.loading import MEMORY_TAB, OPS_TAB, TIMELINE_TAB, LoadingApp
from tpuprof.tui.pages.memory.view import OpenTriage
from tpuprof.tui.pages.overview.findings import TAB_KEYS
from tpuprof.tui.widgets.line_canvas import Look
from tpuprof.tui.widgets.tab import Tab

if TYPE_CHECKING:
    from tpuprof.parsers.memory.model import SpaceMemory
    from tpuprof.parsers.memory.oom.triage import Triage
    from tpuprof.parsers.pages.findings.finding import Place


class TriageReady(Message):
    """What to do about a memory space is worked out."""

    def __init__(self, triage: Triage) -> None:
        super().__init__()
        self.triage = triage


class JumpingApp(LoadingApp):
    """The part of the app that leads from tab to tab."""

    environ: Mapping[str, str]
    look: Look

    @property
    def tab(self) -> Tab:
        """The tab that is shown."""
        raise NotImplementedError

    def action_tab_command(self, name: str, by: int = 1) -> None:
        """Does what only this tab does; from the overview to the same op in the ops tab, or where a finding points."""
        index, selected = self.tab_index, self.tab.selection
        if name == "on_timeline" and self.tab is self.memory and self.memory.op_name is not None:
            self._on_timeline("op", self.memory.op_name)
        elif name == "on_timeline" and selected is not None:
            self._on_timeline("op", selected)
        elif name == "buffers":
            from_tab = self.timeline if self.tab is self.timeline else self.ops
            op, program = from_tab.op_name, from_tab.op_program
            if op is not None:
                self.action_show_tab(MEMORY_TAB)
                self._flash = self.memory.go_to(op, program)
        elif name == "same_op" and self.tab is self.memory and self.memory.op_name is not None:
            op = self.memory.op_name
            self.action_show_tab(OPS_TAB)
            self._flash = self.ops.show_named_op(op)
        elif name == "same_op" and self.tab is self.timeline and self.timeline.op_name is not None:
            op = self.timeline.op_name
            self.action_show_tab(OPS_TAB)
            self._flash = self.ops.show_named_op(op)
        elif name == "same_op" and self.tab is self.overview and selected is not None:
            finding, step = self.overview.selected_finding, self.overview.selected_step
            if finding is not None:
                self._go_to(finding.place)
            elif step is not None:
                self._on_timeline("step", step.name)
            else:
                self.action_show_tab(OPS_TAB)
                self._flash = self.ops.show_framework_op(selected)
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
            self._flash = self.ops.show_named_op(place.target)
        elif place.tab == "input":
            self.input.show_step(place.target)
        elif place.tab == "memory":
            self._flash = self.memory.go_to(place.target)
        elif place.tab == "timeline":
            page = self.overview.page_shown
            is_step = page is not None and any(step.name == place.target for step in page.steps)
            self._flash = self.timeline.go_to("step" if is_step else "op", place.target)
        elif self.tab is self.overview:
            self.overview.show_step(place.target)

    def on_open_triage(self, message: OpenTriage) -> None:
        """What to do about a memory space is asked for."""
        self._work_out(message.page)

    @work(thread=True, exclusive=True, group="triage", description="triage")
    def _work_out(self, page: SpaceMemory) -> None:
        from tpuprof.parsers.memory.oom.triage import triage_of_memory  # noqa: PLC0415
        from tpuprof.tui.pages.oom import screen as oom_screen  # noqa: F401, PLC0415 - read here, and not on the screen's thread

        self._post_if_running(TriageReady(triage_of_memory(page)))

    def on_triage_ready(self, message: TriageReady) -> None:
        """Shows what to do, on a screen of its own."""
        from tpuprof.tui.pages.oom.screen import TriageScreen  # noqa: PLC0415

        self.push_screen(TriageScreen([message.triage], self.look, environ=self.environ))
