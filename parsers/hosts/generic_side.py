"""What GPUs, or the devices of a host's CPU, add to a host's summary, and what lies outside of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.step_summary import HostSide
from tpuprof.parsers.ops import device as devices
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.boundaries.observed import Capture
from tpuprof.parsers.steps.boundaries.outside import Outside, outside_of
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns

if TYPE_CHECKING:
    from tpuprof.parsers.ops.streams.devices import StreamDevice
    from tpuprof.parsers.steps.generic.device_groups import DeviceGroup
    from tpuprof.parsers.steps.generic.step_events import GenericSummary


def generic_of_groups(
    trace: Trace, streams: Sequence[StreamDevice], side: HostSide, on_cpu: Sequence[DeviceGroup]
) -> list[GenericSummary | None]:
    """The steps as streams show them, or the host alone, of each group of devices; None without any."""
    if any(devices.is_gpu(plane) for plane in trace.planes):
        from tpuprof.parsers.steps.generic.gpu import gpu_summary  # noqa: PLC0415 - for GPUs only

        return [gpu_summary(trace, side.events, streams, side.waits)]
    if side.events is None:
        return [None]
    from tpuprof.parsers.steps.generic.cpu import cpu_summary  # noqa: PLC0415 - for profiles without a device only

    if len(on_cpu) <= 1 and not trace.devices:
        return [cpu_summary(trace, side.events, next(iter(streams), None), side.waits)]
    found = [cpu_summary(trace, side.events, group.cpu, side.waits, group.threads) for group in on_cpu]
    busy = sorted((of for each in found if each is not None for of in each.busy), key=lambda of: of.number)
    return [None if each is None else replace(each, busy=tuple(busy)) for each in found] or [None]


def outside_of_host(
    side: HostSide,
    runs: Sequence[ModuleRuns],
    steps: AlignedSteps | None,
    generic: GenericSummary | None,
    shift_ps: int,
    capture: Capture | None,
) -> tuple[Outside, ...]:
    """What lies outside of the steps that the cores share, or of those of the host's CPU."""
    if steps is not None:
        start, end = steps.start_ps, steps.end_ps
    else:
        of_cpu = () if generic is None or generic.device_count else generic.steps
        start = np.array([step.start_ps for step in of_cpu], np.int64)
        end = start + np.array([step.duration_ps for step in of_cpu], np.int64)
    return outside_of(side.events, runs, start, end, shift_ps, capture) if len(start) and capture is not None else ()
