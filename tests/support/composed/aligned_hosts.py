"""Hosts that meet in collectives, each with a clock of its own: how far these are apart is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.support.build import PlaneBuilder, write_run
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.parsers.timeline.read.timeline import read_timeline

US = 1_000_000
MS = 1000 * US
REDUCE = 40 * US
_TEXTS = {
    "fusion.1": ("%fusion.1 = f32[8]{0} fusion(%p)", "convolution fusion"),
    "all-reduce.1": ("%all-reduce.1 = f32[8]{0} all-reduce(%p)", "all-reduce"),
    "all-reduce-start.1": ("%all-reduce-start.1 = f32[8]{0} all-reduce-start(%p)", "all-reduce-start"),
    "all-reduce-done.1": ("%all-reduce-done.1 = f32[8]{0} all-reduce-done(%all-reduce-start.1)", "all-reduce-done"),
}


def profiles(
    busy_us: Sequence[Sequence[int]],
    ahead_ps: Sequence[int],
    *,
    is_async: bool = False,
    has_steps: bool = True,
    began_ns: Sequence[int | None] | None = None,
    jitter_ps: int = 0,
) -> list[bytes]:
    """A profile of one core for each host: in each step it computes, then meets the others in an all-reduce.

    Args:
        busy_us: how long each host computes in each step. ahead_ps: how far each one's clock is ahead.
        is_async: it starts the all-reduce before it computes the second half, and then waits for it.
        began_ns: when each capture began by the host's clock.
        jitter_ps: a host leaves a collective up to so much later than the others.
    """
    rng = np.random.default_rng(len(busy_us[0]))
    spaces = [XSpace() for _ in busy_us]
    cores = [PlaneBuilder(space, "/device:TPU:0", 2) for space in spaces]
    lines = [(core.line("Steps"), core.line("XLA Ops")) for core in cores]
    now = [MS] * len(busy_us)
    for step in range(len(busy_us[0])):
        halves = [times[step] * US // 2 for times in busy_us]
        arrive = [at + half * (1 if is_async else 2) for at, half in zip(now, halves, strict=True)]
        complete = max(arrive) + REDUCE
        for host, (core, (steps, ops)) in enumerate(zip(cores, lines, strict=True)):
            begin, clock = now[host], ahead_ps[host]

            def add(name: str, first: int, last: int) -> None:
                text, category = _TEXTS[name]
                number = core.event_id(text, name, hlo_category=category)  # noqa: B023 - called at once
                core.event(ops, number, first + clock, last - first)  # noqa: B023

            end = complete + int(rng.integers(0, jitter_ps + 1))
            add("fusion.1", begin, arrive[host])
            if is_async:
                asks = arrive[host] + halves[host]
                add("all-reduce-start.1", arrive[host], arrive[host] + US // 20)
                add("fusion.1", arrive[host] + US // 20, asks)
                end = max(asks + US // 20, end)
                add("all-reduce-done.1", asks, end)
            else:
                add("all-reduce.1", arrive[host], end)
            if has_steps:
                core.event(steps, core.event_id(str(100 + step)), begin + clock, end - begin)
            now[host] = end + US
    for number, space in enumerate(spaces):
        start = None if began_ns is None else began_ns[number]
        if start is not None:
            PlaneBuilder(space, "Task Environment", 9).stat("profile_start_time", start)
    return [space.SerializeToString() for space in spaces]


def timelines(made: Sequence[bytes], path: str = "host{}") -> list[Timeline]:
    """The hosts' timelines, each by its own clock."""
    return [
        read_timeline(Trace(MemorySource(data, "test")), f"host{number}", path.format(number))
        for number, data in enumerate(made)
    ]


def late_host(root: Path, *, hosts: int = 2, steps: int = 8, late: int = 1) -> str:
    """A run of hosts of which one computes half again as long as the others; their clocks are 3.7 ms apart."""
    busy = [[1500 if host == late else 1000 + 3 * host] * steps for host in range(hosts)]
    made = profiles(busy, [3_700 * US * host for host in range(hosts)], jitter_ps=2 * US)
    return str(write_run(root, "run", **{f"host{number}": data for number, data in enumerate(made)}))
