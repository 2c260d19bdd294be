"""The kernels of TPUs as a view of the ops tab: one a row, and the card of the one under the cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tpuprof.parsers.pages.ops.kernels.tpu import TpuKernel, TpuKernelsPage
from tpuprof.parsers.pages.ops.kernels.variants import variants
from tpuprof.parsers.pages.ops.kernels.witnesses import WITNESSES
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.kernels.drawing import kernel_card
from tpuprof.tui.pages.ops.kernels.fields import CALLS, VARIANTS
from tpuprof.tui.report.fields import Table
from tpuprof.tui.widgets.chrome import KeyRow, verb_row
from tpuprof.tui.widgets.lists.table import PageView
from tpuprof.tui.widgets.tab import Jump


class KernelsView(PageView):
    """The kernels by time."""

    NO_ROWS = "no kernel ran"
    timeline_words = "timeline"
    MEANINGS: ClassVar[Mapping[str, str]] = {f"by {name}": f"{words}." for name, words in WITNESSES.items()}

    _page: TpuKernelsPage

    def __init__(self, page: TpuKernelsPage) -> None:
        self._variants = variants(page.kernels)
        self._is_by_size = False
        super().__init__(page)

    def table(self) -> tuple[Table[Any], Any]:
        return (VARIANTS, self._variants) if self._is_by_size else (CALLS, self._page)

    @property
    def keys(self) -> Sequence[KeyRow]:
        return (verb_row("group", self.group, short="block sizes"), *super().keys)

    def group(self) -> str:
        """Kernels with blocks of several sizes, by these; or all kernels again. Says which."""
        if not self._variants:
            return "no kernel ran with blocks of several sizes"
        self._is_by_size = not self._is_by_size
        self._read_anew("#" if self._is_by_size else self.FIRST_SORT)
        return "kernels by the size of their blocks, the fastest first" if self._is_by_size else "all kernels"

    @property
    def _kernel(self) -> TpuKernel | None:
        if self.row is None:
            return None
        return self._variants[self.row].kernel if self._is_by_size else self._page.kernels[self.row]

    def card(self, pen: Pen) -> list[Line]:
        if self._kernel is None or self.row is None:
            return []
        why = self._variants[self.row].why if self._is_by_size else ""
        slower = pen.wrap(f"Slower than the fastest: {why}.", "warn") if why else []
        return [*slower, *kernel_card(self._kernel, pen)]

    @property
    def selection(self) -> str | None:
        return None if self._kernel is None else self._kernel.op

    @property
    def op_name(self) -> str | None:
        return self.selection

    @property
    def on_timeline(self) -> Jump | None:
        kernel = self._kernel
        return None if kernel is None else Jump("timeline", "op", kernel.op, kernel.program_id or None)

    def show_named(self, name: str) -> str:
        found = self._page.place(name)
        if found is None:
            return f"no kernel {name} ran"
        if self._is_by_size:
            self.group()
        self._go_to(found)
        return ""
