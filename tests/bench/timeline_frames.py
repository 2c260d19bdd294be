"""How fast the timeline draws: a row, a whole frame, a frame with nothing kept, with millions of events in one line.

    python -m tests.bench.timeline_frames [MILLIONS]

Prints the best and the median of some dozen zooms; no check, the machine decides.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from tests.bench.processes import said_load
from tests.parsers.timeline.build import timeline
from tpuprof.parsers.timeline.durations import Durations
from tpuprof.parsers.timeline.model import EventNames, Track
from tpuprof.parsers.timeline.windows import cell_edges, lane_window
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.pages.timeline.draw.frame import TimelinePage
from tpuprof.tui.pages.timeline.draw.lanes import lane_line

CELLS, ROWS = 160, 50


def crowded(millions: float, seed: int = 0) -> Track:
    """One lane of so many million ops of some hundred names, with gaps."""
    rng = np.random.default_rng(seed)
    n = int(millions * 1e6)
    duration = rng.integers(1_000, 2_000_000, n)
    start = np.cumsum(duration + rng.integers(0, 500_000, n)) - duration
    names = EventNames(None, tuple(f"fusion.{at}" for at in range(300)), rng.integers(0, 7, 300).astype(np.uint8))
    key = rng.integers(0, 300, n).astype(np.int32)
    return Track("XLA Ops", "ops", names, start, Durations.of(duration), key, np.array([0, n], np.int64))


def timed(work: Callable[[int], object], times: int = 24) -> str:
    """Best and median of some runs, in milliseconds."""
    taken = []
    for at in range(times):
        begin = time.perf_counter()
        work(at)
        taken.append(1e3 * (time.perf_counter() - begin))
    return f"best {min(taken):6.2f} ms, median {statistics.median(taken):6.2f} ms, most {max(taken):6.2f} ms"


def main() -> None:
    millions = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    track = crowded(millions)
    first, last = track.span

    def window(at: int) -> tuple[int, int]:
        span = max(CELLS, (last - first) >> at)
        begin = first + (last - first - span) // 3
        return begin, begin + span

    def row(at: int) -> None:
        lane_line(track, lane_window(track, 0, cell_edges(*window(at), CELLS)), BLOCK)

    begin = time.perf_counter()
    row(0)
    print(f"{millions:g} million events in one line; first row {1e3 * (time.perf_counter() - begin):.0f} ms")
    print(f"one row of {CELLS} cells       {timed(row)}")
    page = TimelinePage(timeline(*[[track] for _ in range(ROWS // 2)]))

    def draw() -> None:
        page.lines(Pen(CELLS + 32, BLOCK), ROWS + 10)

    def frame(at: int) -> None:
        page.view.window = page.view.window.fitted(*window(at))
        page.view.cursor_ps = page.view.window.start_ps
        page.view.move_rows(0)
        draw()

    def step(_: int) -> None:
        page.view.move_cells(1)
        draw()

    draw()
    print(f"a frame of {page.view.rows.height} rows        {timed(frame)}")
    print(f"after a cursor's step      {timed(step)}")
    columns = (track.start_ps, track.lasting.column, track.key, track.place)
    sums = [
        value.nbytes for name, value in vars(track).items() if name.startswith("_") and isinstance(value, np.ndarray)
    ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{sum(one.nbytes for one in columns) / len(track):.1f} bytes an event, {sum(sums) / len(track):.1f} of sums")
    print(f"at most {peak:.0f} MB")


if __name__ == "__main__":
    with said_load():
        main()
