"""SparseCores as a view of the ops tab: a step as a strip, and the ops that they ran."""

from __future__ import annotations

from typing import Any, ClassVar

from tpuprof.parsers.pages.ops.sparse_core.page import UNSEEN, SparseCorePage
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.sparse_core.drawing import legend, strip_lines, whole_card, worst_step
from tpuprof.tui.pages.sparse_core.fields import OPS, PARTS
from tpuprof.tui.report.fields import Table
from tpuprof.tui.widgets.chrome import motion_keys
from tpuprof.tui.widgets.rows import LIST_KEYS, RowsView
from tpuprof.tui.widgets.tab import Jump

LEAST_ROWS = 5  # lines of the table below which the strip is left out


class SparseCoreView(RowsView):
    """The ops of the SparseCores, below the step with the index `step` over time: what each kind of core does in it."""

    page_name = "sparse-core"
    NO_ROWS = "no SparseCore ran an op"
    TIMES = ("self_time_ps", "self_percent")
    KEYS = (*motion_keys(across="Next, previous step", short=("", "step", "")), *LIST_KEYS)
    MEANINGS: ClassVar[dict[str, str]] = {
        **{heading: f"{meaning}." for _, _, heading, meaning in PARTS},
        "waiting op": "a done op of a call that a SparseCore runs, or one of category sparsecorev0 infeed.",
        "real ones": UNSEEN,
    }

    def __init__(self, page: SparseCorePage) -> None:
        self._page = page
        self.step = worst_step(page)
        super().__init__()

    def table(self) -> tuple[Table[Any], Any]:
        """The ops of all SparseCores."""
        return OPS, self._page.ops

    @property
    def headline(self) -> str:
        """Whether the SparseCores are the bottleneck."""
        return self._page.statement

    @property
    def note(self) -> str:
        """The same, and what is untested on hardware."""
        return " ".join((self.headline, *self._page.notes))

    def lines(self, pen: Pen, height: int) -> list[Line]:
        """The strip, and below it heading and rows; at most `height` lines."""
        strip = strip_lines(self._page, self.step, pen)
        strip += [legend(self._page, pen)] if strip else []
        while strip and height - len(strip) < LEAST_ROWS:
            strip.pop()
        return [*strip, *super().lines(pen, height - len(strip))]

    def card(self, pen: Pen) -> list[Line]:
        """All about the op under the cursor; then the mean step, the SparseCores and who waits."""
        return whole_card(self._page, self.row, pen)

    def move(self, across: int, down: int) -> None:
        """Across goes over the steps, down over the rows."""
        if across:
            self.step = max(0, min(self.step + across, len(self._page.steps) - 1))
        else:
            super().move(0, down)

    @property
    def selection(self) -> str | None:
        """The op's name."""
        return None if self.row is None else self._page.ops.name[self.row]

    @property
    def op_name(self) -> str | None:
        """The TensorCore's op that it ran for."""
        return None if self.row is None else self._page.ops.parent[self.row] or None

    def jumps(self) -> dict[str, Jump]:
        """To its longest run on the timeline; without ops to the step that is drawn."""
        if self.selection is not None:
            return {"on_timeline": Jump("timeline", "op", self.selection)}
        steps = self._page.steps
        return {"on_timeline": Jump("timeline", "step", steps[self.step].name)} if steps else {}

    def show_named(self, name: str) -> str:
        """Goes to an op."""
        if name not in self._page.ops.name:
            return f"no SparseCore ran {name}"
        self._go_to(self._page.ops.name.index(name))
        return ""
