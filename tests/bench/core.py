"""Speed of the decoding core alone: nanoseconds an event, and how many times a plain copy of the bytes takes.

    python -m tests.bench.core PROFILE [--repeat 5] [--threads 1 2]

It decodes the `XLA Ops` lines of a profile from memory, each line whole: without stats, and with those that the
overview reads. The copy of the same bytes in the same run says what the memory can do.

Then it adds up the ops of the first core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tests.bench.processes import said_load
from tpuprof.parsers.formats.xspace.core.api import core_name
from tpuprof.parsers.formats.xspace.trace import Line, Trace
from tpuprof.parsers.ops.core.ops import ALL_REDUCE_ID, DEVICE_SPAN, DMA_STALL, OPS_LINE, TIME_SCALE
from tpuprof.parsers.ops.core.sums import op_sums

STATS = {"no stats": (), "stats": (*DEVICE_SPAN, ALL_REDUCE_ID, TIME_SCALE, DMA_STALL)}


def seconds(work: Callable[[Line], object], lines: Sequence[Line], threads: int) -> float:
    """Wall time of the work on all lines."""
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, lines))
    return time.perf_counter() - start


def copy(line: Line) -> int:
    """Reads the line's bytes, a megabyte at a time."""
    source = line.plane.source
    return sum(
        len(source.read(begin, min(1 << 20, line.end - begin))) for begin in range(line.begin, line.end, 1 << 20)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    with open(arguments.profile, "rb") as file:
        trace = Trace.from_bytes(file.read())
    lines = [line for plane in trace.planes for line in plane.lines if line.name == OPS_LINE]
    count = sum(len(line.events(places=False)) for line in lines)
    for threads in arguments.threads:
        plain = min(seconds(copy, lines, threads) for _ in range(arguments.repeat))
        for name, stats in STATS.items():
            decode = partial(Line.events, stats=stats, places=False)
            best = min(seconds(decode, lines, threads) for _ in range(arguments.repeat))
            print(
                f"{core_name()} core, {threads} threads, {name}: {count:,} events, "
                f"{best / count * 1e9:.1f} ns an event, {best / plain:.1f} times a copy ({plain * 1e3:.0f} ms)"
            )
    best = min(seconds(lambda line: op_sums(line.plane), lines[:1], 1) for _ in range(arguments.repeat))
    print(f"ops of one core, {lines[0].size / 1e6:.0f} MB: {best * 1e3:.0f} ms")


if __name__ == "__main__":
    with said_load():
        main()
