"""What an op table shows: which rows, in which order, from which column on, and where the cursor is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]


@dataclass(slots=True)
class TableState:
    """The state of a table; only indices are held, so a million rows cost eight megabytes.

    Attributes:
        rows: int64[k]; the rows shown, in their order.
        sort: key of the column that they are sorted by.
        descending: largest first.
        filter_text: what the rows were filtered by.
        total: rows without the filter.
        cursor: index into `rows`; top: the first one on the screen.
        shift: columns that are left out at the left.
    """

    rows: Rows
    sort: str = "self"
    descending: bool = True
    filter_text: str = ""
    total: int = 0
    cursor: int = 0
    top: int = 0
    shift: int = 0

    def __post_init__(self) -> None:
        self.total = len(self.rows)

    @property
    def row(self) -> int | None:
        """The row under the cursor."""
        return int(self.rows[self.cursor]) if len(self.rows) else None

    def move(self, rows: int) -> None:
        """So many rows down."""
        self.cursor = max(0, min(self.cursor + rows, len(self.rows) - 1))

    def show(self, rows: Rows) -> None:
        """Shows other rows, or the same in another order; the cursor goes to the first."""
        self.rows = rows
        self.cursor = self.top = 0

    def go_to(self, row: int) -> bool:
        """Puts the cursor on a row; False where it is not shown."""
        found = (self.rows == row).nonzero()[0]
        if not len(found):
            return False
        self.cursor = int(found[0])
        return True

    def scroll(self, height: int) -> None:
        """Moves the window as little as is needed to hold the cursor."""
        height = max(1, height)
        self.top = max(self.cursor - height + 1, min(self.top, self.cursor))
        self.top = max(0, min(self.top, len(self.rows) - height))

    def next_sort(self, keys: tuple[str, ...], natural: Callable[[str], bool]) -> str:
        """Chooses the next column to sort by, in its natural direction; returns its key."""
        place = keys.index(self.sort) if self.sort in keys else -1
        self.sort = keys[(place + 1) % len(keys)]
        self.descending = natural(self.sort)
        return self.sort
