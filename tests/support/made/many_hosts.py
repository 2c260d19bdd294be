"""Hosts that work on one program: their cores compute, then meet in an all-reduce, which ends for all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.support.build import tpu_plane
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.summary import HostSummary, summarise
from tpuprof.parsers.pages.hosts.hosts import hosts_page
from tpuprof.parsers.pages.hosts.model import HostsPage, LeftOut

US = 1_000_000  # picoseconds
REDUCE = 50 * US
GAP = 10 * US


def host_bytes(busy_us: Sequence[Sequence[int]], longest_us: Sequence[int], input_us: int = 0) -> bytes:
    """One host.

    Args:
        busy_us: how long each core computes in each step; longest_us: how long the slowest core of all hosts does.
        input_us: how much of a step each core waits for input first.
    """
    space = XSpace()
    for core, times in enumerate(busy_us):
        ops, steps, at = [], [], 0
        for number, (busy, longest) in enumerate(zip(times, longest_us, strict=True)):
            begin, meets = at, at + longest * US
            if input_us:
                ops.append(("infeed.1", "infeed", at, input_us * US))
            ops.append(("fusion.1", "convolution fusion", at + input_us * US, (busy - input_us) * US))
            ops.append(("all-reduce.1", "all-reduce", at + busy * US, meets + REDUCE - (at + busy * US)))
            at = meets + REDUCE + GAP
            steps.append((str(number), begin, at))
        tpu_plane(space, core, ops, steps=steps)
    return space.SerializeToString()


def profiles(
    busy_us: Mapping[str, Sequence[int]], cores: int = 2, input_us: Mapping[str, int] | None = None
) -> dict[str, bytes]:
    """A profile for each host; ``busy_us``: how long each of its cores computes in each step."""
    longest = [max(times) for times in zip(*busy_us.values(), strict=True)]
    return {
        host: host_bytes([times] * cores, longest, (input_us or {}).get(host, 0)) for host, times in busy_us.items()
    }


def summaries(made: dict[str, bytes]) -> list[HostSummary]:
    return [summarise(Trace.from_bytes(data), host) for host, data in made.items()]


def steady(busy: int, count: int = 12) -> list[int]:
    """So many steps that vary by a thousandth."""
    return [busy + number % 2 * busy // 1000 for number in range(count)]


def straggling_page() -> HostsPage:
    """Four hosts of two cores; host2 computes a tenth longer, and one more host can't be read."""
    made = profiles({f"host{at}": steady(1100 if at == 2 else 1000 + at) for at in range(4)})
    broken = LeftOut("host4", "host4.xplane.pb is not a profile.")
    return hosts_page(summaries(made), [broken])
