"""The kernels of TPUs as a view of the ops tab: one a row, and the card of the one under the cursor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tpuprof.parsers.pages.ops.kernels.tpu import TpuKernel, TpuKernelsPage
from tpuprof.parsers.pages.ops.kernels.witnesses import WITNESSES
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.kernels.drawing import kernel_card
from tpuprof.tui.pages.ops.kernels.fields import CALLS
from tpuprof.tui.report.fields import Table
from tpuprof.tui.widgets.rows import RowsView
from tpuprof.tui.widgets.tab import Jump


class KernelsView(RowsView):
    """The kernels by time."""

    NO_ROWS = "no kernel ran"
    MEANINGS: ClassVar[Mapping[str, str]] = {f"by {name}": f"{words}." for name, words in WITNESSES.items()}

    def __init__(self, page: TpuKernelsPage) -> None:
        self._page = page
        super().__init__()

    def table(self) -> tuple[Table[Any], Any]:
        """The kernels."""
        return CALLS, self._page

    @property
    def headline(self) -> str:
        """What the kernel with most time does with it."""
        return self._page.statement

    @property
    def note(self) -> str:
        """The same, and what contradicts arithmetic."""
        return " ".join((self.headline, *self._page.notes))

    @property
    def _kernel(self) -> TpuKernel | None:
        return None if self.row is None else self._page.kernels[self.row]

    def card(self, pen: Pen) -> list[Line]:
        """All about the kernel under the cursor."""
        return [] if self._kernel is None else kernel_card(self._kernel, pen)

    @property
    def selection(self) -> str | None:
        """The op's name."""
        return None if self._kernel is None else self._kernel.op

    @property
    def op_name(self) -> str | None:
        """The same: other pages know it."""
        return self.selection

    def jumps(self) -> dict[str, Jump]:
        """To its longest run on the timeline."""
        return {} if self.selection is None else {"on_timeline": Jump("timeline", "op", self.selection)}

    def show_named(self, name: str) -> str:
        """Goes to a kernel, by the name of its op or its own."""
        found = self._page.place(name)
        if found is None:
            return f"no kernel {name} ran"
        self._go_to(found)
        return ""
