"""Facts about a run for a list of runs, found without decoding its files.

It reads one host, the first whole one with a device: the headers of its planes, and the small lines `Steps` and
`XLA Modules` of one core; without these, where its lines are few bytes, the steps that the overview finds. A budget
limits the bytes that it reads beyond the headers, so that a run of 64 hosts of a gigabyte costs no more than one of a
few megabytes. The figures serve to distinguish runs; the pages' figures rest on all cores and hosts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tpuprof.parsers.base.errors import Cancelled, Problem, ProfileError, one_part
from tpuprof.parsers.base.intervals import median, totals
from tpuprof.parsers.base.record import dataclass, field, fields, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import scheme_of
from tpuprof.parsers.base.words import NO_DEVICE_NAME, NO_DEVICE_PLANE, NO_START
from tpuprof.parsers.files.logdir import HostFile, Run
from tpuprof.parsers.formats.hlo.programs import METADATA_PLANE, HloModules, module_name
from tpuprof.parsers.formats.xspace.trace import Plane, Trace
from tpuprof.parsers.hosts.summary import needed_bytes, summarise
from tpuprof.parsers.ops.core.ops import MODULES_LINE, STEPS_LINE
from tpuprof.parsers.ops.device import ENVIRONMENT_PLANE, gpu_type, is_gpu, is_tensor_core, shortcoming
from tpuprof.parsers.ops.host_events.events import HOST_PLANE
from tpuprof.parsers.ops.streams.devices import CPU, runs_on_cpu
from tpuprof.parsers.session.software import VERSIONS_NOT_RECORDED, software
from tpuprof.parsers.steps.boundaries.cycles import marks_each_run
from tpuprof.parsers.steps.boundaries.markers import CoreSteps, marked_steps
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns, module_runs
from tpuprof.parsers.steps.model import StepSource
from tpuprof.parsers.steps.requests.inferred import steps_of_programs

HostTracing = Literal["off", "annotations", "python"]

BUDGET_BYTES = 8 << 20
"""Bytes of metadata and lines that it reads of a run beyond the headers; some 0.1 s of work."""

SMALL_BYTES = 2 << 20
"""Lines of steps that only the host marks are read up to this size: some 0.1 s of work, once."""

HOSTS_TRIED = 8
"""The most hosts that are opened in search of a whole one with a device."""

MOST_MODULES = 16

TOO_LARGE = "the lines of steps and modules are too large to read for this list"

NAMES_LOOKED_AT = 20_000
"""How many names of host events are searched for calls of Python functions."""

_LONGEST_NS = 1 << 53
_PYTHON_CALL = pattern(r"\$.+:\d+ ")


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run. What is unknown is None, with the reason in `unknown` under the attribute's name.

    Attributes:
        host: the host that was read.
        device_type: such as ``TPU v5 Lite``.
        core_count: number of TensorCores, or GPUs, of that host; 0 for a host without a device.
        modules: names of the HLO modules, the busiest first, at most `MOST_MODULES`.
        module_count: how many modules there are.
        core_step_ps: median of the steps on one core, by its own markers or runs of a module. A step of the pages is
            that of the slowest core, and takes the host into account, for which all events have to be read. Where a
            core shows none it is the pages' step, of GPUs and of the host's CPU, if that is cheap or known.
        step_source: what the steps are taken from.
        step_count: how many steps the median covers.
        duration_ps: how long the profiler says that it recorded.
        has_hlo: whether the profile holds compiled HLO.
        host_tracing: what the host's threads hold: nothing, annotations and calls into the runtime, or Python calls
            too.
        versions: name and value of each version and build of the software, in one text.
        simulated: the profile says of itself that its times are not measured.
        problems: of the files that were opened; those of the folder are `Run.problems`.
        unknown: attribute to reason.
    """

    host: str | None = None
    device_type: str | None = None
    core_count: int | None = None
    modules: tuple[str, ...] | None = None
    module_count: int | None = None
    core_step_ps: int | None = None
    step_source: StepSource | None = None
    step_count: int | None = None
    duration_ps: int | None = None
    has_hlo: bool | None = None
    host_tracing: HostTracing | None = None
    versions: tuple[str, ...] | None = None
    simulated: bool = False
    problems: tuple[Problem, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


METRICS = tuple(each.name for each in fields(RunFacts) if each.default is None and each.name != "host")
"""Attributes that may be unknown."""

OF_STEPS = ("core_step_ps", "step_source", "step_count")
"""Those of steps."""


def nothing_known(reason: str, problems: Sequence[Problem] = ()) -> RunFacts:
    """The facts of a run that cannot be read at all."""
    return RunFacts(problems=tuple(problems), unknown=MappingProxyType(dict.fromkeys(METRICS, reason)))


def run_facts(run: Run, budget_bytes: int = BUDGET_BYTES, is_cancelled: Callable[[], bool] = lambda: False) -> RunFacts:
    """The facts of a run.

    Never raises for what a file holds or lacks: that becomes a reason.

    Args:
        run: what `parsers.files.logdir` found. It does not fetch remote files.
        budget_bytes: how much of a file it may read beyond the headers; also the largest packed file that it unpacks.
        is_cancelled: called between files and lines.

    Raises:
        Cancelled: `is_cancelled` said so.
    """
    if not run.hosts:
        sentence = run.problems[0].sentence if run.problems else "the run holds no readable profile"
        return nothing_known(sentence)
    best: tuple[int, RunFacts] | None = None
    problems: list[Problem] = []
    reason = ""
    for file in run.hosts[:HOSTS_TRIED]:
        if is_cancelled():
            raise Cancelled
        why = _not_opened(file, budget_bytes)
        if why:
            reason = reason or why
            continue
        try:
            with one_part(f"read {printable(file.path)}"), closing(Trace.open(file.path)) as trace:
                problems += trace.problems
                rank = shortcoming(trace)
                if best is None or rank < best[0]:
                    best = (rank, _facts_of(trace, file.host, _Budget(budget_bytes, is_cancelled)))
        except ProfileError as error:
            problems.append(Problem(error.code, file.path, error.sentence, error.hint))
            reason = reason or error.sentence
        if best is not None and best[0] == 0:
            break
    if best is None:
        return nothing_known(reason, problems)
    return replace(best[1], problems=tuple(problems))


def _not_opened(file: HostFile, budget_bytes: int) -> str:
    """Why a file is left unopened; empty where it is opened."""
    if scheme_of(file.path) and not os.path.lexists(file.path):
        return "the file is not on this machine: it is fetched when the run is opened"
    if file.packed and file.size_bytes > budget_bytes:
        return "the file is compressed and too large to unpack for this list"
    return ""


class _Budget:
    """Bytes that may still be read."""

    def __init__(self, size: int, is_cancelled: Callable[[], bool]) -> None:
        self._left = size
        self._is_cancelled = is_cancelled

    def take(self, size: int) -> bool:
        """Returns whether `size` bytes may be read, and takes them from the budget."""
        if self._is_cancelled():
            raise Cancelled
        if size > self._left:
            return False
        self._left -= size
        return True


def _facts_of(trace: Trace, host: str, budget: _Budget) -> RunFacts:
    unknown: dict[str, str] = {}
    devices = [*filter(is_tensor_core, trace.planes)] or [*filter(is_gpu, trace.planes)]
    plane = trace.plane(ENVIRONMENT_PLANE)  # what the profiler recorded of the capture
    environment = {} if plane is None or not budget.take(plane.end - plane.begin) else plane.stats
    core = _working_core(devices)
    kind = _device_type(trace, devices, unknown)
    runs, steps, why = _runs_and_steps(core, budget) if core is not None else (None, None, _no_steps(devices))
    time, count, source = _step_time(steps, runs)
    if core is None:
        time, count, source = _steps_of_host(trace, host, budget)
    if time is None:
        unknown.update(dict.fromkeys(OF_STEPS, why))
    duration = _duration(environment)
    if duration is None:
        unknown["duration_ps"] = NO_START
    has_hlo, stored = _hlo(trace, budget)
    names = _module_names(runs) or stored
    if names is None:
        is_large = core is not None and runs is None and _line_bytes(core, MODULES_LINE)
        why_none = TOO_LARGE if is_large else "no run of a module and no compiled HLO is recorded"
        unknown.update(dict.fromkeys(("modules", "module_count"), why_none))
    tracing = _host_tracing(trace, budget)
    if tracing is None:
        unknown["host_tracing"] = "the host's events have too many names to read for this list"
    versions = _versions(trace, devices[:1], budget)
    if not versions:
        unknown["versions"] = VERSIONS_NOT_RECORDED
    return RunFacts(
        host=host,
        device_type=kind,
        core_count=len(devices),
        modules=None if names is None else names[:MOST_MODULES],
        module_count=None if names is None else len(names),
        core_step_ps=time,
        step_source=source,
        step_count=count,
        duration_ps=duration,
        has_hlo=has_hlo,
        host_tracing=tracing,
        versions=versions or None,
        simulated=bool(environment.get("tpuprof_simulated")),
        unknown=MappingProxyType(unknown),
    )


def _versions(trace: Trace, devices: Sequence[Plane], budget: _Budget) -> tuple[str, ...]:
    """Versions and builds that the environment's plane and those of devices record, name and value of each."""
    planes = [plane for plane in (trace.plane(ENVIRONMENT_PLANE), *devices) if plane is not None]
    if not all(budget.take(_metadata_bytes(plane)) for plane in planes):
        return ()
    return tuple(f"{one.name} {one.value}" for one in software(planes) if one.kind == "version")


def _duration(environment: Mapping[str, object]) -> int | None:
    start, stop = environment.get("profile_start_time"), environment.get("profile_stop_time")
    if not isinstance(start, int) or not isinstance(stop, int):
        return None
    return (stop - start) * 1000 if 0 < stop - start < _LONGEST_NS else None


def _metadata_bytes(plane: Plane) -> int:
    """Bytes of a plane besides its lines."""
    return max(0, plane.end - plane.begin - sum(line.size for line in plane.lines))


def _device_type(trace: Trace, devices: Sequence[Plane], unknown: dict[str, str]) -> str | None:
    """The type of the first device, from its plane's stats and their names, which are few; `CPU` where that ran ops."""
    if not devices and runs_on_cpu(trace) is not None:
        return CPU
    if not devices:
        unknown["device_type"] = NO_DEVICE_PLANE
        return None
    if is_gpu(devices[0]):
        return gpu_type(devices[0])
    kind = devices[0].stats.get("device_type_string")
    if isinstance(kind, str) and kind:
        return kind
    unknown["device_type"] = NO_DEVICE_NAME
    return None


def _working_core(devices: Sequence[Plane]) -> Plane | None:
    """The core with the most steps, else with the most runs of modules: a program need not use every chip."""
    for name in (STEPS_LINE, MODULES_LINE):
        having = [plane for plane in devices if _line_bytes(plane, name)]
        if having:
            return max(having, key=lambda plane: _line_bytes(plane, name))
    return None


def _line_bytes(plane: Plane, name: str) -> int:
    return sum(line.size for line in plane.lines if line.name == name)


def _no_steps(devices: Sequence[Plane]) -> str:
    if not devices:
        return NO_DEVICE_PLANE
    return "no core has a Steps or XLA Modules line" + (", as on GPUs: see the overview" if is_gpu(devices[0]) else "")


def _runs_and_steps(core: Plane, budget: _Budget) -> tuple[ModuleRuns | None, CoreSteps | None, str]:
    """Module runs and marked steps of a core, each where its line is small enough, and why there is no step time."""
    sizes = {name: _line_bytes(core, name) for name in (STEPS_LINE, MODULES_LINE)}
    if not budget.take(_metadata_bytes(core)):
        return None, None, "the names of the device's events are too many to read for this list"
    steps = marked_steps(core) if sizes[STEPS_LINE] and budget.take(sizes[STEPS_LINE]) else None
    runs = module_runs(core) if sizes[MODULES_LINE] and budget.take(sizes[MODULES_LINE]) else None
    if steps is None and runs is None:
        return None, None, TOO_LARGE
    return runs, steps, "no Steps line, and no module ran often enough to have a period"


def _step_time(steps: CoreSteps | None, runs: ModuleRuns | None) -> tuple[int | None, int | None, StepSource | None]:
    """Median duration of the steps, their number and where they are from."""
    runs = runs if runs is not None and len(runs) else None
    found = None if runs is None else steps_of_programs([runs], None, "")
    is_cycle = found is not None and found.source == "cycle"
    if steps is not None and len(steps) and not (is_cycle and runs is not None and marks_each_run(steps, runs)):
        return _median(steps.duration_ps), len(steps), "steps"
    if found is None:
        return None, None, None
    return _median(found.of_cores[0].duration_ps), len(found.of_cores[0]), found.source


def _median(durations_ps: ArrayLike) -> int:
    return int(median(np.asarray(durations_ps, np.float64)))


def _steps_of_host(trace: Trace, host: str, budget: _Budget) -> tuple[int | None, int | None, StepSource | None]:
    """Median, number and origin of the steps that the overview finds, where it needs few bytes for them.

    They are those that the host marks, as for GPUs and programs that run on its own CPU.
    """
    needed = needed_bytes(trace)
    if needed > SMALL_BYTES or not budget.take(needed):
        return None, None, None
    summary = summarise(trace, host)
    if summary.generic is not None and summary.generic.steps:
        times = [step.duration_ps for step in summary.generic.steps]
        return _median(times), len(times), "steps"
    if summary.steps is not None and len(summary.steps):
        return _median(summary.steps.duration_ps[0]), len(summary.steps), summary.steps.source
    return None, None, None


def _module_names(runs: ModuleRuns | None) -> tuple[str, ...] | None:
    """Names of modules without their ids, the one with the most time first."""
    if runs is None or not len(runs):
        return None
    times = totals(zip(map(module_name, runs.names), runs.module_ps.tolist(), strict=True))
    return tuple(sorted(times, key=lambda name: (-times[name], name)))


def _hlo(trace: Trace, budget: _Budget) -> tuple[bool, tuple[str, ...] | None]:
    """Whether there is compiled HLO, and its modules' names where the budget allows to read them."""
    planes = [plane for plane in trace.planes if plane.name == METADATA_PLANE]
    size = sum(plane.end - plane.begin for plane in planes)
    if budget.take(size):
        names = HloModules.of(trace).names
        return bool(names), tuple(dict.fromkeys(name for name in names.values() if name)) or None
    return any(plane.stat_ids(("Hlo Proto", "HLO Proto")) for plane in planes), None


def _host_tracing(trace: Trace, budget: _Budget) -> HostTracing | None:
    """What the host's tracer recorded, by the names of the host's events."""
    planes = [plane for plane in trace.planes if plane.name == HOST_PLANE and plane.lines]
    if not planes:
        return "off"
    if not budget.take(sum(map(_metadata_bytes, planes))):
        return None
    for plane in planes:
        table = plane.event_metadata
        if any(_PYTHON_CALL.match(table.name(row)) for row in range(min(len(table), NAMES_LOOKED_AT))):
            return "python"
    return "annotations"
