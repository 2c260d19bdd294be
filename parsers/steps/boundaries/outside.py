"""What lies before the first whole step of a host and after its last one, where that is much of the profile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, overlap, subtract, union_of
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.ops.host_events.activity import IdleTime, compiling, host_during
from tpuprof.parsers.ops.host_events.events import HostEvents
from tpuprof.parsers.steps.boundaries.observed import Capture
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns

LEAST_OUTSIDE = 0.1
"""Such a time is worth a note from this share of the whole profile on."""

_LEAST_PS, _LEAST_STEPS = 10**11, 3
"""And where it is longer than both: the first of inferred steps has no start, and the capture may cut one."""

_TO_START_PS = 10**12
"""A profiler takes up to so long to start and to stop."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The time before the first whole step, or after the last one.

    Attributes:
        is_before: which of them.
        span_ps: how long it is.
        whole_ps: how long the host was profiled.
        running_ps: the part in which a program ran on some core.
        compiling_ps: the part of the rest in which the host traced, lowered or compiled a program.
        rest: what the host did in the rest.
    """

    is_before: bool
    span_ps: int
    whole_ps: int
    running_ps: int
    compiling_ps: int
    rest: IdleTime

    @property
    def is_traced(self) -> bool:
        """Whether events say what went on for most of that time."""
        did = max((each.overlap_ps for each in self.rest.activities), default=0)
        return max(self.running_ps, self.compiling_ps, did) >= self.span_ps / 2


def outside_of(
    host: HostEvents | None,
    cores: Sequence[ModuleRuns],
    start_ps: Int64s,
    end_ps: Int64s,
    shift_ps: int,
    capture: Capture | None,
) -> tuple[Outside, ...]:
    """What lies outside of the steps of a host, as far as it is worth telling.

    Args:
        cores: the runs of modules on each core.
        start_ps, end_ps: int64[steps].
        shift_ps: what to add to the device's times to compare them with the host's.
        capture: when the host was profiled, on its own clock.
    """
    if not len(start_ps) or capture is None:
        return ()
    first, last = int(start_ps.min()), int(end_ps.max())
    begin, end = min(first, capture.span[0] - shift_ps), max(last, capture.span[1] - shift_ps)
    least = max(_LEAST_PS, LEAST_OUTSIDE * (end - begin), _LEAST_STEPS * float(np.median(end_ps - start_ps)))
    sides = (
        _outside(host, cores, window, end - begin, shift_ps, window[0] < first)
        for window in ((begin, first), (last, end))
        if window[1] - window[0] > least
    )
    return tuple(of for of in sides if of.is_traced or of.span_ps >= _TO_START_PS)


def _outside(
    host: HostEvents | None,
    cores: Sequence[ModuleRuns],
    window: tuple[int, int],
    whole_ps: int,
    shift_ps: int,
    is_before: bool,
) -> Outside:
    within = np.array(window[:1], np.int64), np.array(window[1:], np.int64)
    running = union_of((runs.start_ps, runs.end_ps) for runs in cores)
    start, end = compiling(host)
    left = subtract(*within, *running)
    compiled = int(overlap(*left, start - shift_ps, end - shift_ps).sum())
    rest = subtract(*left, start - shift_ps, end - shift_ps)
    did, inside = ((), ()) if host is None else host_during(host, (rest[0] + shift_ps, rest[1] + shift_ps))
    span = window[1] - window[0]
    length = int((rest[1] - rest[0]).sum())
    return Outside(
        is_before,
        span,
        whole_ps,
        span - int((left[1] - left[0]).sum()),
        compiled,
        IdleTime(length, len(rest[0]), activities=did, inside=inside),
    )
