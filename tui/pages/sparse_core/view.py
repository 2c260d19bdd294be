"""SparseCores as a view of the ops tab: a step as a strip, and the ops that they ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tpuprof.parsers.pages.sparse_core.page import UNSEEN, SparseCorePage
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.sparse_core.drawing import legend, strip_lines, whole_card, worst_step
from tpuprof.tui.pages.sparse_core.fields import OPS, PARTS
from tpuprof.tui.report.fields import Table
from tpuprof.tui.widgets.chrome import motion_keys
from tpuprof.tui.widgets.lists.table import PageView
from tpuprof.tui.widgets.tab import Jump

LEAST_ROWS = 5  # lines of the table below which the strip is left out


class SparseCoreView(PageView):
    """The ops of the SparseCores, below a step over time: what each kind of core does in it."""

    page_name = "sparse-core"
    FIRST_SORT = "self"
    ABSENT = "no SparseCore ran {}"
    NO_ROWS = "no SparseCore ran an op"
    TIMES = ("self_time_ps", "self_percent")
    MOTIONS = motion_keys(across="Next, previous step", short=("", "step", "details"))
    MEANINGS: ClassVar[dict[str, str]] = {
        **{heading: f"{meaning}." for _, _, heading, meaning in PARTS},
        "waiting op": "a done op of a call that a SparseCore runs, or one of category sparsecorev0 infeed.",
        "real ones": UNSEEN,
    }

    _page: SparseCorePage

    def __init__(self, page: SparseCorePage) -> None:
        self.step_shown = worst_step(page)
        super().__init__(page)

    def table(self) -> tuple[Table[Any], Any]:
        return OPS, self._page.ops

    @property
    def names(self) -> Sequence[str]:
        return self._page.ops.name

    def lines_above(self, pen: Pen, height: int) -> list[Line]:
        strip = strip_lines(self._page, self.step_shown, pen)
        strip += [legend(self._page, pen)] if strip else []
        while strip and height - len(strip) < LEAST_ROWS:
            strip.pop()
        return strip

    def card(self, pen: Pen) -> list[Line]:
        return whole_card(self._page, self.row, pen)

    def move(self, across: int, down: int) -> None:
        if across:
            self.step_shown = max(0, min(self.step_shown + across, len(self._page.steps) - 1))
        else:
            super().move(0, down)

    @property
    def op_name(self) -> str | None:
        return None if self.row is None else self._page.ops.parent[self.row] or None

    @property
    def on_timeline(self) -> Jump | None:
        if self.selection is not None:
            return Jump("timeline", "op", self.selection)
        steps = self._page.steps
        return Jump("timeline", "step", steps[self.step_shown].name) if steps else None
