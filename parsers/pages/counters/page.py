"""The page of performance counters: what a program uses of the machine, unit by unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from tpuprof.parsers.base.errors import Problem
from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.words import NO_DEVICE, share, time
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.ops.counters.chips import Chip, chip_of, register_names
from tpuprof.parsers.ops.counters.kernels import ScopeUse, merged_uses, scope_uses
from tpuprof.parsers.ops.counters.placed import CustomCalls, placed_tracks
from tpuprof.parsers.ops.counters.samples import readings, sampled
from tpuprof.parsers.ops.device import ENVIRONMENT_PLANE, device_info, is_device, is_gpu
from tpuprof.parsers.pages.counters.raw import Counter, read_counters, sampled_counters
from tpuprof.parsers.pages.counters.units import Source, UnitUse, of_readings, of_samples
from tpuprof.parsers.pages.ops.kernels import call_units
from tpuprof.parsers.pages.ops.kernels.call_units import TRACE_KERNELS, KernelRow, Needs, kernel_uses, needs_of
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.shared.key import PageKey, PageSession


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


HOW_TO_RECORD = (
    "The profiler's option tpu_perf_counters records them (capture HOST:PORT --option tpu_perf_counters=true); from "
    "TPU v7x on, tpu_enable_kernel_profiling samples them"
)
"""Which options fill the counters: XProf's docs/advanced_profiler_options.md, and docs/kernel-profiling.md."""

HOW_TO_TRACE = f"{TRACE_KERNELS}, set before JAX starts, records what kernels use and wait for"

NOT_SEEN = {
    "reading": "The use of units is computed from registers as XProf does, address by address; this is untested on "
    "a profile from hardware with readings.",
    "periodic": "Registers that are sampled over time count here from their first sample to their last; this is "
    "untested on a profile from hardware that has them.",
    "LLO": "The use of units in custom calls is the compiler's count of their instructions over the measured time, "
    "not a measurement of the hardware.",
}
"""What to say of where figures come from."""

_SOURCES: tuple[Source, ...] = ("reading", "periodic", "LLO")
_MATRIX, _VECTOR = ("Avg MXU Busy", "MXU"), ("Vector ALUs", "Vector ALU")
_ORDER = {"TensorCore": 0, "chip": 1, "SparseCore": 2}


class UnitRow(NamedTuple):
    """A unit, and the host that it is of."""

    host: str
    use: UnitUse

    @property
    def device(self) -> str:
        """The number of the device plane, ``TPU 3``."""
        return self.use.plane.removeprefix("/device:").replace(":", " ")

    @property
    def name(self) -> str:
        return self.use.name

    @property
    def track(self) -> str:
        """Its track on the timeline, the plane before its name; empty where it has none."""
        return f"{self.use.plane} / {self.use.name}" if self.use.source == "LLO" else ""

    @property
    def core(self) -> str:
        """The core as a person calls it: ``TPU 3 core 0``; of a whole chip ``TPU 3``."""
        words = {"TensorCore": f" core {self.use.number}", "SparseCore": f" SparseCore {self.use.number}", "chip": ""}
        return f"{self.device}{words[self.use.core]}"


class CounterRow(NamedTuple):
    """A counter, and the host that it is of."""

    host: str
    counter: Counter

    @property
    def device(self) -> str:
        return self.counter.plane.removeprefix("/device:").replace(":", " ")

    @property
    def name(self) -> str:
        return self.counter.name

    @property
    def track(self) -> str:
        return "" if self.counter.is_reading else f"{self.counter.plane} / {self.counter.name}"


@dataclass(frozen=True, slots=True)
class CountersPage:
    """Units, counters and custom calls of a run.

    Attributes:
        hosts: names of the hosts.
        statement: what the kernel uses of the machine, in a sentence.
        captured_ps, sampled_ps: how long the capture took, the longest of all hosts; and for how long the units of the
            statement were sampled. None where unknown.
        units: by host, device, how they are known, kernel, sample and core.
        counters: as the profile has them.
        kernels: custom calls, each with its scopes.
        unknown: why there are none, by key.
        notes: on where the figures come from.
        warnings: what is wrong with the files.
    """

    hosts: tuple[str, ...]
    statement: str
    captured_ps: int | None
    sampled_ps: int | None
    units: tuple[UnitRow, ...]
    counters: tuple[CounterRow, ...]
    kernels: tuple[KernelRow, ...]
    unknown: Mapping[str, str]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def counters_page(
    parts: Sequence[HostCounters], notes: Sequence[str] = (), needs: Needs = MappingProxyType({})
) -> CountersPage:
    """Puts the hosts' counters together.

    Args:
        notes: sentences on hosts that are left out.
        needs: what kernels need of the matrix units by their shapes, against which the compiler's count is held.
    """
    units = tuple(UnitRow(part.host, use) for part in parts for use in sorted(part.units, key=_place))
    counters = tuple(CounterRow(part.host, counter) for part in parts for counter in part.counters)
    kernels = kernel_uses(parts, needs)
    refused = [row for row in kernels if row.refused and not row.use.scope]
    if refused:  # the units of their core are made of the same samples
        units = tuple(_without_use(row) for row in units)
    captured = max((part.captured_ps for part in parts if part.captured_ps is not None), default=None)
    main = main_core(units)
    sampled = max((row.use.sampled_ps for row in main if row.use.sampled_ps), default=None)
    unknown = _unknown(parts, units, counters, kernels)
    sources = dict.fromkeys(row.use.source for row in units) | ({"LLO": None} if kernels else {})
    return CountersPage(
        hosts=tuple(part.host for part in parts),
        statement=_statement(main, sampled, captured, unknown, bool(counters), kernels),
        captured_ps=captured,
        sampled_ps=sampled,
        units=units,
        counters=counters,
        kernels=kernels,
        unknown=unknown,
        notes=(
            *(f"{row.use.name}: {row.use.unit} by the compiler's count is refused: {row.refused}" for row in refused),
            *(NOT_SEEN[source] for source in _SOURCES if source in sources),
        ),
        warnings=(*(problem.sentence for part in parts for problem in part.problems), *notes),
    )


def _without_use(row: UnitRow) -> UnitRow:
    use = row.use
    is_it = use.source == "LLO" and use.group == "matrix"
    return row._replace(use=replace(use, achieved=None, peak=None)) if is_it else row


def _place(use: UnitUse) -> tuple[int, str, int, str, int, int, int]:
    """Where a unit stands among those of its host; those of one core stay in their order."""
    digits = "".join(char for char in use.plane if char.isdigit())
    plane = int(digits[:9]) if digits else 0
    where = (plane, use.plane, _SOURCES.index(use.source), use.kernel, use.sample)
    return (*where, _ORDER[use.core], use.number)


def core_of(row: UnitRow) -> tuple[object, ...]:
    """What distinguishes the units of one core, measured in one way, from others."""
    use = row.use
    return row.host, use.plane, use.source, use.kernel, use.sample, use.core, use.number


def main_core(units: Sequence[UnitRow]) -> list[UnitRow]:
    """The units of the TensorCore whose matrix units worked most, by the best source that there is."""
    cores = grouped((core_of(row), row) for row in units)
    tensor = [rows for rows in cores.values() if rows[0].use.core == "TensorCore"]

    def rank(rows: list[UnitRow]) -> tuple[int, bool, float]:
        return -_SOURCES.index(rows[0].use.source), not rows[0].use.kernel, _use(rows, _MATRIX) or 0.0

    best = max(tensor, key=rank, default=[])
    chip = [row for row in units if row.use.core == "chip" and best and core_of(row)[:5] == core_of(best[0])[:5]]
    return [*best, *chip]


def _use(rows: Iterable[UnitRow], names: Sequence[str]) -> float | None:
    return next((row.use.use for row in rows if row.use.name in names and row.use.use is not None), None)


def _statement(
    main: Sequence[UnitRow],
    sampled: int | None,
    captured: int | None,
    unknown: Mapping[str, str],
    any_counter: bool,
    kernels: Sequence[KernelRow],
) -> str:
    """What the main core did; else what a custom call used; else why nothing is known."""
    if not main and kernels:
        first = [row for row in kernels if row.use.name == kernels[0].use.name and not row.use.scope]
        uses = ", ".join(f"{row.use.unit} {share(row.share)}" for row in first if row.share is not None)
        return f"By the compiler's count, custom call {first[0].use.name} uses these parts of its time: {uses}."
    if not main:
        why = unknown.get("units" if any_counter else "counters", "")
        if why.endswith(HOW_TO_RECORD):
            return f"{why[0].upper()}{why[1:]}."
        return f"{'No hardware unit is measured' if any_counter else 'No counters'}: {why}." if why else ""
    over = _over(main[0].use.source, sampled, captured)
    matrix = _use(main, _MATRIX)
    known = [("matrix units worked", matrix), ("vector units", _use(main, _VECTOR))]
    parts = [f"{name} {share(use)}" for name, use in known if use is not None]
    ways = [row for row in main if not row.use.is_share and row.use.use is not None and row.use.group != "matrix"]
    nearest = max(ways, key=lambda row: row.use.use or 0.0, default=None)
    if nearest is not None:
        use = nearest.use.use or 0.0
        after = "after matrix units, " if matrix is not None and matrix >= use else ""
        parts.append(f"{after}closest to its peak is {nearest.use.name}, {share(use)}")
    return f"{over}, {', '.join(parts[:-1])}{'; ' if len(parts) > 1 else ''}{''.join(parts[-1:])} ({main[0].core})."


def _over(source: Source, sampled: int | None, captured: int | None) -> str:
    """Of which time the figures are, and for the compiler's count that it is one."""
    if not sampled:
        return "While it was sampled"
    if source == "LLO":
        return f"By the compiler's count, over {time(sampled)} of custom calls"
    return f"Over {time(sampled)} sampled" + (f" of {time(captured)}" if captured else "")


def _unknown(
    parts: Sequence[HostCounters],
    units: Sequence[UnitRow],
    counters: Sequence[CounterRow],
    kernels: Sequence[KernelRow],
) -> dict[str, str]:
    """Why there are none, by table."""
    unknown: dict[str, str] = {}
    if not any(part.device_count for part in parts):
        return dict.fromkeys(("units", "counters", "kernels"), NO_DEVICE)
    if not any(part.tpu_count for part in parts):
        none = "only TPUs have counters of units, and this profile has no TPU"
        return dict.fromkeys(("units", "kernels", *(() if counters else ("counters",))), none)
    if not counters:
        what = "the readable part of this profile" if any(part.problems for part in parts) else "this profile"
        unknown["counters"] = f"{what} has no counters. {HOW_TO_RECORD}"
    types = list(dict.fromkeys(kind for part in parts for kind in part.device_types))
    if not units and any(row.counter.is_reading for row in counters) and chip_of(types[0] if types else None) is None:
        whose = f"the registers of {types[0]}" if types else "the registers of this device"
        described = "XProf describes only those of TPU v6 Lite and TPU v7x"
        unknown["units"] = f"what {whose} say about units is unknown: {described}"
    elif not units:
        unknown["units"] = "the counters of this profile measure none" if counters else unknown["counters"]
    if not kernels:
        unknown["kernels"] = f"no custom call of this profile has a count of what it uses; {HOW_TO_TRACE}"
    return unknown


def counters_of_run(session: PageSession, host: str | None) -> CountersPage:
    """The performance counters."""
    found = session.reduced(COUNTERS_OF_HOST, host)
    needs = needs_of(session.page(OPS, host)) if any(summary.kernels for summary in found.summaries) else {}
    return counters_page(found.summaries, [*found.left_out, *session.problems, *session.only_shown], needs)


COUNTERS = PageKey(counters_of_run, is_held=True)
