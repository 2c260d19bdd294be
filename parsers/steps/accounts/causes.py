"""What keeps a core from running ops, as far as the profile shows it, and who owns such a moment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Intervals, intersect, no_ints, union, union_of
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.core.ops import TRACE_ME_LINE, event_spans
from tpuprof.parsers.steps.accounts.owners import Owner
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns
from tpuprof.parsers.steps.launches import LaunchedRuns, waiting_to_run

_NONE: Intervals = (no_ints(), no_ints())


@dataclass(frozen=True, slots=True)
class IdleCauses:
    """When something is known to keep a core from running ops; each disjoint intervals in order on the trace's clock.

    Attributes:
        input: the host waited for input or sent it.
        compiling: the host traced, lowered or compiled a program.
        barrier: the core waited at a barrier.
        running: a program ran on the core. None where the profile has no runs of programs.
        launched: the host had launched a program that the core had not ended yet.
        reading: a thread of the host that launches programs waited for a result of the device.
        behind: it did so while another core of the host was still at work on what it had begun beside this core's last
            program.
        unasked: a program that serves waited for requests: that is no time of its steps, nor between them.
    """

    input: Intervals = _NONE
    compiling: Intervals = _NONE
    barrier: Intervals = _NONE
    running: Intervals | None = None
    launched: Intervals = _NONE
    reading: Intervals = _NONE
    behind: Intervals = _NONE
    unasked: Intervals = _NONE

    def in_order(self) -> list[tuple[Owner, Intervals]]:
        """Who owns a moment without an op: the first owner whose intervals hold it."""
        known: list[tuple[Owner, Intervals]] = [
            ("input", self.input),
            ("compile", self.compiling),
            ("barrier", self.barrier),
        ]
        if self.running is not None:
            known += [("between_ops", self.running), ("dispatch", self.launched), ("barrier", self.behind)]
        return known

    @property
    def rest(self) -> Owner:
        """Who owns the moments that no interval holds."""
        return "between_ops" if self.running is None else "host"


_BARRIER = "barrier-cores"


def barriers(plane: Plane) -> Intervals | None:
    """When a core waits at barriers, before programs mostly; None without a line of events that show it."""
    lines = [line for line in plane.lines if line.name == TRACE_ME_LINE]
    if not lines:
        return None
    wanted, spans = plane.event_metadata.find_names((_BARRIER,)).get(_BARRIER), list[Intervals]()
    for line in lines if wanted is not None else ():
        events = line.events()
        start, end = event_spans(line, events)
        rows = np.flatnonzero(events.metadata_id.astype(np.int64) == wanted)
        spans.append((start[rows], end[rows]))
    return union_of(spans)


def meets(spans: Intervals | None) -> bool:
    """Whether a core waits for others at `barriers`."""
    return spans is not None and bool(len(spans[0]))


def causes_of_core(
    of_host: IdleCauses,
    core: LaunchedRuns,
    at_barriers: Intervals | None,
    shift_ps: int,
    others: Sequence[ModuleRuns] = (),
) -> IdleCauses:
    """What is known to keep a core from running ops, beside what is known of its host.

    Args:
        others: the runs of the host's other cores.
        at_barriers: see `barriers`.
        shift_ps: what to add to the device's times to compare them with the host's.
    """
    return replace(
        of_host,
        barrier=at_barriers or _NONE,
        running=union(core.runs.start_ps, core.runs.end_ps) if len(core.runs) else None,
        launched=waiting_to_run(core, shift_ps),
        behind=intersect(*of_host.reading, *_outlasting(core.runs, others)),
    )


def _outlasting(runs: ModuleRuns, others: Sequence[ModuleRuns]) -> Intervals:
    """When other cores were still in runs that had begun before this core's last one ended; disjoint and in order.

    What another core began later is work of its own, which this one does not wait for.
    """
    spans, own = list[Intervals](), np.sort(runs.end_ps)
    for other in others if len(runs) else ():
        last = own[np.maximum(np.searchsorted(own, other.end_ps) - 1, 0)]
        outlasts = (other.start_ps < last) & (last < other.end_ps)
        spans.append((last[outlasts], other.end_ps[outlasts]))
    return union_of(spans)
