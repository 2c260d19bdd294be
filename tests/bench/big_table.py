"""How long a table of a million ops takes to open, to move in, to sort and to filter.

    python tests/bench/big_table.py [rows]

Times are the best of three, of the drawing alone; what goes over the wire is counted by `tests/tui/terminal/pty`.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.processes import least_seconds
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
        view.lines(Pen(WIDTH, BLOCK), HEIGHT)
        return view

    view = opened()

    def moved() -> None:
        view.move(0, 1)
        view.lines(Pen(WIDTH, BLOCK), HEIGHT)

    def ended() -> None:
        view.jump(rows)
        view.lines(Pen(WIDTH, BLOCK), HEIGHT)
        view.jump(-rows)

    def filtered(text: str) -> None:
        view.search(text)
        view.lines(Pen(WIDTH, BLOCK), HEIGHT)

    print(f"{rows:,} rows at {WIDTH}x{HEIGHT}")
    print(f"open           {1e3 * least_seconds(opened):8.1f} ms")
    print(f"cursor move    {1e3 * least_seconds(moved):8.1f} ms")
    print(f"to the end     {1e3 * least_seconds(ended):8.1f} ms")
    print(f"sort           {1e3 * least_seconds(lambda: view.command('sort')):8.1f} ms")
    print(f"filter 'ion.77' {1e3 * least_seconds(lambda: filtered('ion.77')):7.1f} ms")
    print(f"filter '>1us cat:copy' {1e3 * least_seconds(lambda: filtered('>1us cat:copy')):.1f} ms")

    def found(text: str) -> None:
        parse_filter(text).mask(TableView(cards).search_columns)

    for text in ("hlo:fusion", "shape:bf16", "remat:yes", "side:device"):  # beside the screen, their columns read anew
        print(f"filter '{text}' {1e3 * least_seconds(partial(found, text)):.1f} ms, not on the screen's thread")


if __name__ == "__main__":
    main()
