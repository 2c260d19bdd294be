"""Tabs that are not built yet. They say what will be there and show no figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpuprof.tui.actions import TAB_NAMES
from tpuprof.tui.draw.layout import fit, wrap
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.tabs.base import Tab
from tpuprof.tui.theme import AnyLine
from tpuprof.tui.widgets.line_canvas import Look

_WIDEST = 88


@dataclass(frozen=True, slots=True)
class Plan:
    """What a tab will hold, a phrase each."""

    title: str
    contents: tuple[str, ...]


PLANS: dict[int, Plan] = {
    4: Plan(
        TAB_NAMES[4],
        (
            "peak, capacity and headroom of each memory",
            "the buffers alive at the peak, by size, padding and source line",
            "the text of an out-of-memory error, read into the same table",
        ),
    ),
}


class PlannedTab(Tab):
    """One of the tabs to come."""

    def __init__(self, look: Look, plan: Plan, *, id: str) -> None:
        super().__init__(look, id=id)
        self._plan = plan

    def draw(self, width: int, height: int) -> Sequence[AnyLine]:
        """The plan, in the middle of the page."""
        return planned_lines(self._plan, width, height, self.look.glyphs)

    def help_lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        """That there is nothing to explain yet."""
        return wrap(f"{self._plan.title} is not built yet; it shows no numbers.", width, "text", glyphs)


def planned_lines(plan: Plan, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """What will be on this tab, and that it isn't yet."""
    inner = min(width - 4, _WIDEST)
    block = [
        fit([(plan.title, "title"), ("   not built yet", "warn")], inner, glyphs),
        fit([], inner, glyphs),
        *wrap("No figures here yet, and no report prints them either. It will hold", inner, "text", glyphs),
        fit([], inner, glyphs),
    ]
    for phrase in plan.contents:
        block += wrap(phrase, inner, "text", glyphs, [(f"  {glyphs.dot} ", "key")])
    block += [fit([], inner, glyphs), fit([("1", "key"), (" goes back to the overview", "dim")], inner, glyphs)]
    left = (width - inner) // 2
    above = max(0, (height - len(block)) // 3)
    blank: Line = ((" " * width, "text"),)
    body: list[Line] = [((" " * left, "text"), *line, (" " * (width - left - inner), "text")) for line in block]
    return [*([blank] * above), *body, *([blank] * (height - above - len(body)))]
