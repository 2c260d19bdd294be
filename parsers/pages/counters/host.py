"""The counters that one host's file holds."""

from __future__ import annotations

from functools import partial

from tpuprof.parsers.base.errors import Problem
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.ops.counters.chips import Chip, chip_of, register_names
from tpuprof.parsers.ops.counters.kernels import ScopeUse, merged_uses, scope_uses
from tpuprof.parsers.ops.counters.placed import CustomCalls, placed_tracks
from tpuprof.parsers.ops.counters.samples import readings, sampled
from tpuprof.parsers.ops.device import ENVIRONMENT_PLANE, device_info, is_device, is_gpu
from tpuprof.parsers.pages.counters.raw import Counter, read_counters, sampled_counters
from tpuprof.parsers.pages.counters.units import UnitUse, of_readings, of_samples
from tpuprof.parsers.pages.ops.kernels import call_units


@dataclass(frozen=True, slots=True)
class HostCounters(call_units.HostCallUnits):
    """What one host adds to the page of counters.

    Attributes:
        device_types: of the planes that have counters, each once.
        units: what units did.
        counters: the counters themselves.
        captured_ps: how long the capture took; None where the profile does not say.
        device_count, tpu_count: planes of devices, and of TPUs among them, with counters or without.
        problems: what is wrong with the file.
    """

    device_types: tuple[str, ...]
    units: tuple[UnitUse, ...]
    counters: tuple[Counter, ...]
    captured_ps: int | None
    device_count: int
    tpu_count: int
    problems: tuple[Problem, ...]


def host_counters(trace: Trace, host: str, on_chunk: ChunkDone = lambda _, __: None) -> HostCounters:
    """Reads the counters of a host's devices.

    Args:
        on_chunk: called after each device; raises `Cancelled` where nobody waits any more.
    """
    units: list[UnitUse] = []
    counters: list[Counter] = []
    kernels: list[ScopeUse] = []
    types: dict[str, None] = {}
    devices = [plane for plane in trace.planes if is_device(plane)]
    for plane in call_units.planes_with_counters(trace):
        kind = device_info(plane).device_type
        types |= {kind: None} if kind else {}
        what = f"read the counters of {printable(plane.name)}"
        if (found := trace.optional(what, partial(_of_plane, plane, chip_of(kind)))) is not None:
            units += found[0]
            counters += found[1]
            kernels += found[2]
        on_chunk(call_units.plane_bytes(plane), 0)
    return HostCounters(
        host=host,
        device_types=tuple(types),
        units=tuple(units),
        counters=tuple(counters),
        kernels=merged_uses(kernels),
        captured_ps=_captured(trace.plane(ENVIRONMENT_PLANE)),
        device_count=len(devices),
        tpu_count=sum(not is_gpu(plane) for plane in devices),
        problems=trace.problems,
    )


def _of_plane(plane: Plane, chip: Chip | None) -> tuple[list[UnitUse], list[Counter], list[ScopeUse]]:
    """What the units of one device did, its counters, and the scopes of its custom calls."""
    read, core = list(readings(plane)), CustomCalls(plane)
    in_time = placed_tracks(core, list(sampled(plane)))
    units = [] if chip is None else list(of_readings(plane.name, chip, read))
    counters = [*read_counters(plane, read, register_names(chip)), *sampled_counters(plane, in_time)]
    return [*units, *of_samples(plane.name, chip, in_time)], counters, list(scope_uses(core, in_time))


def _captured(environment: Plane | None) -> int | None:
    """How long the capture took by the profiler's own clock."""
    stats = environment.stats if environment is not None else {}
    start, stop = stats.get("profile_start_time"), stats.get("profile_stop_time")
    return (stop - start) * 1000 if isinstance(start, int) and isinstance(stop, int) and 0 < start < stop else None


def _reduce(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> HostCounters:
    return host_counters(trace, file.label, on_chunk)


COUNTERS_OF_HOST = Reduction(
    "counters", HostCounters, call_units.needed_bytes, _reduce, includes=call_units.CALL_UNITS_OF_HOST
)
"""The counters of a host's devices."""
