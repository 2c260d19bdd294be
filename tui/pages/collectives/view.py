"""The view of collectives: groups of them, or each one, or of asynchronous copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tpuprof.parsers.pages.collectives.host_sums import DCN
from tpuprof.parsers.pages.collectives.model import CollectivesPage
from tpuprof.parsers.pages.collectives.rows import BYS, By, longest, rows_by, single
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.collectives.drawing import row_card
from tpuprof.tui.pages.collectives.fields import COPIES, GROUPS, SINGLE, CollectiveRows
from tpuprof.tui.report.fields import Table
from tpuprof.tui.widgets.chrome import KeyRow, motion_keys, verb_row
from tpuprof.tui.widgets.lists.table import PageView

_WORDS: dict[str, str] = {"all": "kind, groups and pass", "kind": "kind", "axis": "axis of the groups", "pass": "pass"}
_WORDS["copies"] = "what asynchronous copies are for"


class CollectivesView(PageView):
    """Groups of collectives of the page, of a step or the mean of all; Enter shows those of a group one by one."""

    FIRST_SORT: ClassVar[str] = "exposed"
    page_name: ClassVar[str] = "collectives"
    NO_ROWS: ClassVar[str] = "no collectives in the steps"
    TIMES: ClassVar[tuple[str, str]] = ("exposed_time_ms", "exposed_percent")
    timeline_words = "timeline"
    MOTIONS = (
        KeyRow("open", "each one"),
        *motion_keys(
            across="The next, previous step; before the first one the mean of all",
            short=("", "step", ""),
            enter="The collectives of a group one by one, till rows are grouped again; of one, its whole card",
        ),
    )
    MEANINGS: ClassVar[dict[str, str]] = {
        "hidden": "transfers are in flight while the core computes or copies.",
        "exposed": "the core is in a collective's own ops: it waits, or moves the data itself.",
        "late": "the core that comes last, so waits least, and how much longer the others' median is.",
        "DCN": "collectives between slices. Untested on hardware: they are read as XProf's source reads them.",
        ">= GB/s": "a lower bound: an asynchronous transfer may end long before its done op.",
    }

    _page: CollectivesPage

    def __init__(self, page: CollectivesPage) -> None:
        self._by: By = "all" if len(page.groups) else "copies"
        self._opened: tuple[int, ...] | None = None
        self._step: int | None = None
        self._ops: dict[int, str | None] = {}
        self._shown = CollectiveRows(rows_by(page, self._by), are_groups=True)
        super().__init__(page)
        self._arrange()

    def table(self) -> tuple[Table[Any], Any]:
        return (COPIES if self._by == "copies" else GROUPS if self._opened is None else SINGLE), self._shown

    @property
    def _of(self) -> CollectivesPage:
        """The page that the rows are of."""
        return self._page.of_copies if self._by == "copies" else self._page

    @property
    def names(self) -> Sequence[str]:
        return self._shown.rows.name

    @property
    def note(self) -> str:
        return self.headline

    def card(self, pen: Pen) -> list[Line]:
        steps = len(self._of.step_names) if self._step is None else 1
        return [] if self.row is None else row_card(self._of, self._shown.rows, self.row, steps, pen)

    def status(self) -> str:
        by = f"by {self._by}" if self._by != "all" else ""
        step = "" if self._step is None else f"step {self._of.step_names[self._step]}"
        one = "one group" if self._opened is not None else by
        return ", ".join(filter(None, (super().status(), one, step)))

    def move(self, across: int, down: int) -> None:
        if not across:
            self.step(down)
            return
        if not self._of.has_steps or self._opened is not None:
            return
        at = (-1 if self._step is None else self._step) + across
        self._step = None if at < 0 else min(at, len(self._of.step_names) - 1)
        self._show()

    @property
    def opened(self) -> dict[str, Callable[[], object]]:
        return {} if self._opened is None else {"group": self.group}

    def enter(self) -> bool:
        if self.row is None or self._opened is not None:
            return False
        self._opened, self._step = self._shown.rows.members[self.row], None
        self._show()
        return True

    @property
    def keys(self) -> Sequence[KeyRow]:
        return (verb_row("group", self.group, short="group by"), *self.MOTIONS, self.sorting_key())

    def group(self) -> str:
        """From the collectives of a group back to the groups; else groups another way. Says which."""
        if self._opened is not None:
            self._opened = None
        else:
            self._by, self._step = BYS[(BYS.index(self._by) + 1) % len(BYS)], None
        self._show()
        return f"a row by {_WORDS[self._by]}"

    def _show(self) -> None:
        """Reads the rows anew; order, filter and, among the same rows, the cursor stay."""
        before = self._shown.rows.members, self.row
        if self._opened is None:
            self._shown = CollectiveRows(rows_by(self._page, self._by, self._step), are_groups=True)
        else:
            self._shown = CollectiveRows(single(self._of, self._opened), are_groups=False)
        self._ops = {}
        self._read_anew(self.FIRST_SORT)
        if before[0] == self._shown.rows.members and before[1] is not None:
            self._go_to(before[1])

    @property
    def op_name(self) -> str | None:
        if self.row is None:
            return None
        if self.row not in self._ops:
            self._ops[self.row] = self._op_of(self.row)
        return self._ops[self.row]

    def _op_of(self, row: int) -> str | None:
        rows = self._shown.rows
        name, network = rows.name[row], rows.network[row]
        if self._opened is None:
            of_group = longest(self._of, rows.members[row])
            if of_group is None:
                return None
            name, network = of_group.name, of_group.network
        if network != DCN:
            return name
        return next((each.send_op for each in self._page.slices if each.rendezvous == name), None)

    def show_named(self, name: str) -> str:
        found = next((at for at, each in enumerate(self._page.collectives) if each.name == name), None)
        if found is None:
            return f"no collective {name} in the steps"
        self._by, self._opened = "all", (int(self._page.group[found]),)
        self.listing = self.listing.anew(words="")
        self._show()
        return super().show_named(name)
