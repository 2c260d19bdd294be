"""The kernels of TPUs as a view of the ops tab: one a row, and the card of the one under the cursor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tpuprof.parsers.pages.ops.kernels.tpu import TpuKernel, TpuKernelsPage
from tpuprof.parsers.pages.ops.kernels.variants import variants
from tpuprof.parsers.pages.ops.kernels.witnesses import WITNESSES
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.kernels.drawing import kernel_card
from tpuprof.tui.pages.ops.kernels.fields import CALLS, VARIANTS
from tpuprof.tui.report.fields import Table
from tpuprof.tui.widgets.chrome import KeyRow, motion_keys
from tpuprof.tui.widgets.rows import LIST_KEYS, RowsView
from tpuprof.tui.widgets.tab import Jump


class KernelsView(RowsView):
    """The kernels by time."""

    NO_ROWS = "no kernel ran"
    commands = ("group", "sort", "reverse")
    KEYS = (
        KeyRow("group", "block sizes"),
        *motion_keys(),
        *LIST_KEYS[:2],
        KeyRow("timeline", "timeline"),
        *LIST_KEYS[2:],
    )
    MEANINGS: ClassVar[Mapping[str, str]] = {f"by {name}": f"{words}." for name, words in WITNESSES.items()}

    def __init__(self, page: TpuKernelsPage) -> None:
        self._page = page
        self._variants = variants(page.kernels)
        self._is_by_size = False
        super().__init__()

    def table(self) -> tuple[Table[Any], Any]:
        """The kernels, or those that have blocks of several sizes."""
        return (VARIANTS, self._variants) if self._is_by_size else (CALLS, self._page)

    def command(self, name: str) -> str:
        """Does one of `commands`; says what came of it."""
        if name != "group":
            return super().command(name)
        if not self._variants:
            return "no kernel ran with blocks of several sizes"
        self._is_by_size = not self._is_by_size
        self._read_anew("#" if self._is_by_size else self.FIRST_SORT)
        if self._is_by_size and self.descending:
            self.listing = self.listing.turned_round()
            self._arrange()
        return "kernels by the size of their blocks, the fastest first" if self._is_by_size else "all kernels"

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
        if self.row is None:
            return None
        return self._variants[self.row].kernel if self._is_by_size else self._page.kernels[self.row]

    def card(self, pen: Pen) -> list[Line]:
        """All about the kernel under the cursor; among block sizes first why it is slower than the fastest."""
        if self._kernel is None or self.row is None:
            return []
        why = self._variants[self.row].why if self._is_by_size else ""
        slower = pen.wrap(f"Slower than the fastest: {why}.", "warn") if why else []
        return [*slower, *kernel_card(self._kernel, pen)]

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
        if self._is_by_size:
            self.command("group")
        self._go_to(found)
        return ""
