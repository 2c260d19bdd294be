"""How long a table of a million ops takes to open, to move in, to sort and to filter.

    python -m tests.bench.big_table [rows]

Times are the best of three, of the drawing alone; what goes over the wire is counted by `tests/tui/terminal/pty`.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np

from tests.bench.processes import least_seconds, said_load
from tests.support.made.big_table import big_page
from tests.support.made.op_views import pages_of
from tpuprof.parsers.ops.filtering.filter import parse_filter
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.pages.ops.details.card_cache import CardCache
from tpuprof.tui.pages.ops.table_views import TableView

WIDTH, HEIGHT = 120, 36


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    cards = CardCache(pages_of(big_page(rows)), lambda _, __: None)

    def opened() -> TableView:
        view = TableView(cards)
        view.draw(Pen(WIDTH, BLOCK), HEIGHT)
        return view

    view = opened()

    def moved() -> None:
        view.move(0, 1)
        view.draw(Pen(WIDTH, BLOCK), HEIGHT)

    def ended() -> None:
        view.step(rows)
        view.draw(Pen(WIDTH, BLOCK), HEIGHT)
        view.step(-rows)

    print(f"{rows:,} rows at {WIDTH}x{HEIGHT}")
    print(f"open           {1e3 * least_seconds(opened):8.1f} ms")
    print(f"cursor move    {1e3 * least_seconds(moved):8.1f} ms")
    print(f"to the end     {1e3 * least_seconds(ended):8.1f} ms")
    view.sort_by("HBM")
    made = view.sorting
    if made is None:  # so few rows that the screen's thread sorts them
        print(f"sort           {1e3 * least_seconds(view.reverse):8.1f} ms")
    else:
        rows_in_order = made.rows()
        print(f"sort           {1e3 * least_seconds(lambda: view.show_sorted(made, rows_in_order)):8.1f} ms", end="; ")
        print(f"{1e3 * least_seconds(made.rows):.1f} ms beside the screen's thread")

    def found(text: str) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return parse_filter(text).mask(TableView(cards).search_columns)  # its columns read anew

    for text in ("ion.77", ">1us cat:copy", "hlo:fusion", "shape:bf16", "remat:yes", "side:device"):
        mask = found(text)
        print(f"filter '{text}' {1e3 * least_seconds(partial(view.keep, text, mask)):.1f} ms", end="; ")
        print(f"{1e3 * least_seconds(partial(found, text)):.1f} ms beside the screen's thread")


if __name__ == "__main__":
    with said_load():
        main()
