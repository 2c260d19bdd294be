"""The counters that one host's file holds."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from tpuprof.parsers.base.errors import Problem
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.ops.counters.chips import chip_of, register_names
from tpuprof.parsers.ops.counters.kernels import ScopeUse, scope_uses
from tpuprof.parsers.ops.counters.placed import CustomCalls, placed_tracks
from tpuprof.parsers.ops.counters.raw import Counter, read_counters, sampled_counters
from tpuprof.parsers.ops.counters.samples import has_counters, readings, sampled
from tpuprof.parsers.ops.counters.units import UnitUse, of_readings, of_samples
from tpuprof.parsers.ops.device import ENVIRONMENT_PLANE, device_info, is_device, is_gpu


@dataclass(frozen=True, slots=True)
class HostCounters:
    """What one host adds to the page of counters.

    Attributes:
        host: its name.
        device_types: of the planes that have counters, each once.
        units: what units did.
        counters: the counters themselves.
        kernels: custom calls and their scopes, summed over the host's cores.
        captured_ps: how long the capture took; None where the profile does not say.
        device_count, tpu_count: planes of devices, and of TPUs among them, with counters or without.
        problems: what is wrong with the file.
    """

    host: str
    device_types: tuple[str, ...]
    units: tuple[UnitUse, ...]
    counters: tuple[Counter, ...]
    kernels: tuple[ScopeUse, ...]
    captured_ps: int | None
    device_count: int
    tpu_count: int
    problems: tuple[Problem, ...]


def needed_bytes(trace: Trace) -> int:
    """Bytes of the lines that `host_counters` decodes."""
    return sum(_bytes_of(plane) for plane in trace.planes if is_device(plane) and has_counters(plane))


def _bytes_of(plane: Plane) -> int:
    return sum(line.size for line in plane.lines)


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
    for plane in devices:
        if has_counters(plane):
            kind = device_info(plane).device_type
            chip = chip_of(kind)
            types |= {kind: None} if kind else {}
            tracks, read = list(sampled(plane)), list(readings(plane))
            core = CustomCalls(plane)
            in_time = placed_tracks(core, tracks)
            units += of_readings(plane.name, chip, read) if chip is not None else ()
            units += of_samples(plane.name, chip, in_time)
            counters += [*read_counters(plane, read, register_names(chip)), *sampled_counters(plane, in_time)]
            kernels += scope_uses(core, in_time)
            on_chunk(_bytes_of(plane), 0)
    return HostCounters(
        host=host,
        device_types=tuple(types),
        units=tuple(units),
        counters=tuple(counters),
        kernels=merged(kernels),
        captured_ps=_captured(trace.plane(ENVIRONMENT_PLANE)),
        device_count=len(devices),
        tpu_count=sum(not is_gpu(plane) for plane in devices),
        problems=trace.problems,
    )


def merged(kernels: list[ScopeUse]) -> tuple[ScopeUse, ...]:
    """The rows of several cores as one: times add up. Ops in the order of their first row, as are scopes and units."""

    def key(row: ScopeUse) -> tuple[int, int, str, str, str]:
        return row.program_id, row.symbol_id, row.name, row.scope, row.unit

    place: dict[tuple[object, ...], int] = {}
    for row in kernels:  # an op, a scope and a unit each where they are met first
        of = key(row)
        for part in (of[:3], of[:4], of):
            place.setdefault(part, len(place))

    def order(row: ScopeUse) -> tuple[int, ...]:
        of = key(row)
        return tuple(place[part] for part in (of[:3], of[:4], of))

    out = []
    for _, rows in groupby(sorted(kernels, key=order), key):
        first, *others = rows
        out.append(
            replace(
                first,
                runs=first.runs + sum(row.runs for row in others),
                time_ps=first.time_ps + sum(row.time_ps for row in others),
                busy_ps=first.busy_ps + sum(row.busy_ps for row in others),
                sampled_ps=first.sampled_ps + sum(row.sampled_ps for row in others),
            )
        )
    return tuple(out)


def _captured(environment: Plane | None) -> int | None:
    """How long the capture took by the profiler's own clock."""
    stats = environment.stats if environment is not None else {}
    start, stop = stats.get("profile_start_time"), stats.get("profile_stop_time")
    return (stop - start) * 1000 if isinstance(start, int) and isinstance(stop, int) and 0 < start < stop else None
