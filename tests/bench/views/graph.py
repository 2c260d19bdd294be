"""How long the graph of a module of a hundred thousand instructions takes to open, to walk, to draw and to search.

    python tests/bench/views/graph.py [instructions]

Opening is on a worker; a walk is what a key does, the decoding of what shows and its drawing. Times are CPU seconds of
this process, the best of five, and for walks the median and the worst of two hundred.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.bench.processes import least_seconds, said_load
from tests.support.files.hlo_graphs import deep_module, program_of
from tpuprof.parsers.formats.hlo.graph import HloGraph
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.pages.graph.neighbourhood import neighbourhood
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.pages.graph.drawing import GraphView, compose, line_of

WIDTH, HEIGHT = 120, 38
WALKS = 200


def spent(work: Callable[[], object], times: int = 5) -> float:
    return least_seconds(work, times, time.process_time)


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    data = deep_module(number).SerializeToString()
    proto = hlo_pb2.HloProto.FromString(data)
    module = HloModule(proto)
    print(f"{len(data):,} bytes; parsed {spent(lambda: hlo_pb2.HloProto.FromString(data)) * 1e3:.0f} ms")
    print(f"indexed {spent(lambda: HloModule(proto), 3) * 1e3:.0f} ms")
    print(f"graph {spent(lambda: HloGraph(module), 3) * 1e3:.0f} ms")
    graph = HloGraph(module)
    print(f"search made ready {spent(graph.prepare, 1) * 1e3:.0f} ms")
    program = program_of(graph)
    rows = random.Random(1).sample(range(len(graph)), WALKS - 4)
    rows += [0, 1, int(graph.root[0]), int(graph.root[graph.entry])]  # those with the longest lists

    def walked(row: int, view: GraphView) -> float:
        begin = time.process_time()
        here = neighbourhood(program, row)
        compose(here, (), view, Pen(WIDTH, BLOCK), HEIGHT)
        return time.process_time() - begin

    for title, view in (("walk", GraphView()), ("walk, direct", GraphView(is_direct=True))):
        times = sorted(walked(row, view) for row in rows)
        print(f"{title}: median {times[WALKS // 2] * 1e3:.2f} ms, worst {times[-1] * 1e3:.2f} ms")
    middle = len(graph) // 2
    here = neighbourhood(program, middle)
    view = GraphView(is_text=True, text=Listing(line_of(here)))
    print(f"text redrawn {spent(lambda: compose(here, (), view, Pen(WIDTH, BLOCK), HEIGHT)) * 1e3:.2f} ms")
    for words in ("copy.5", "tanh", "a"):
        print(f"/{words}: {len(graph.find(words)):,} in {spent(partial(graph.find, words)) * 1e3:.2f} ms")


if __name__ == "__main__":
    with said_load():
        main()
