"""Steps that are made of the runs of programs where nothing marks any, and when a program waits for requests.

It waits outside of all requests and of all runs of its programs, where the host has events of requests, or annotations
whose names say that they are requests. Else it waits while each thread that launches programs waits for a queue or a
socket, or in an event whose name says that it waits for requests.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, intersect, no_ints, overlap, subtract, union, union_of
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.words import time
from tpuprof.parsers.ops.host_events.activity import LAUNCHES
from tpuprof.parsers.ops.host_events.events import HostEvents
from tpuprof.parsers.steps.boundaries.markers import CoreSteps, inferred_steps
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns, busiest_module
from tpuprof.parsers.steps.model import StepSource
from tpuprof.parsers.steps.requests.annotated import LEAST_SPANS, WAITING, is_request
from tpuprof.parsers.steps.requests.requests import has_requests, request_ids
from tpuprof.parsers.steps.requests.serving import serves, step_cycle

_WAITS_FOR_ONE = pattern(
    rf".*(?:{WAITING}).*(?:request|query)"
    r"|\$queue\.py:\d+ get\Z|\$selectors\.py|\$\S+ (?:accept|poll|recv|select)\Z",
    re.IGNORECASE,
)


def waits_in_words(unasked: Intervals, cores: Sequence[ModuleRuns]) -> str:
    """How a note on the steps of a program that serves goes on; empty where it waits for no request.

    Args:
        unasked: when it does, from `waits_for_requests`; cores: as there.
    """
    start, end = union_of((core.start_ps, core.end_ps) for core in cores)
    waited = int(overlap(start[:1], end[-1:], *unasked).sum())
    return f", without the {time(waited)} in which it waits for requests" if waited else ""


def ids_of_requests(host: HostEvents) -> Int64s:
    """Metadata ids of events of requests, or of annotations whose names say that they are requests."""
    _, found = request_ids(host)
    named = host.ids_named(is_request)
    own = found if len(found) else named
    return own if sum(len(thread.rows_of(own)) for thread in host.threads) >= LEAST_SPANS else no_ints()


def waits_for_requests(host: HostEvents | None, cores: Sequence[ModuleRuns], shift_ps: int = 0) -> Intervals:
    """When a program that serves has no request; disjoint intervals in order on the trace's clock, none for others.

    Args:
        cores: the runs of programs on each core.
        shift_ps: what to add to the devices' times to compare them with the host's.
    """
    runs = union_of((core.start_ps, core.end_ps) for core in cores)
    if host is None or not len(runs[0]) or not serves({name for core in cores for name in core.names}):
        return no_ints(), no_ints()
    requests = _spans(host, ids_of_requests(host))
    if len(requests[0]):
        ends = [(thread.start_ps.min(), thread.end_ps.max()) for thread in host.threads if len(thread)]
        whole = np.array([min(start for start, _ in ends)]), np.array([max(end for _, end in ends)])
        free = subtract(*whole, *requests)
    else:
        free = _waits(host)
    return subtract(free[0] - shift_ps, free[1] - shift_ps, *runs)


def _spans(host: HostEvents, ids: Int64s) -> Intervals:
    rows = [(thread, thread.rows_of(ids)) for thread in host.threads]
    return union_of((thread.start_ps[of], thread.end_ps[of]) for thread, of in rows)


def _waits(host: HostEvents) -> Intervals:
    """When each thread that launches programs waits for requests; where none launches any, when some thread does."""
    launches = host.ids_named(lambda name: LAUNCHES.search(name) is not None)
    waits = host.ids_named(lambda name: _WAITS_FOR_ONE.match(name) is not None)
    launching = [thread for thread in host.threads if len(thread.rows_of(launches))]
    if not launching:
        return _spans(host, waits)
    rows = [(thread, thread.rows_of(waits)) for thread in launching]
    spans = (union(thread.start_ps[of], thread.end_ps[of]) for thread, of in rows)
    return reduce(lambda first, second: intersect(*first, *second), spans)


@dataclass(frozen=True, slots=True)
class FoundSteps:
    """The steps of cores that share programs, and where they come from.

    Attributes:
        of_cores: of each core.
        note: what to say about them, or of cores without markers beside marked ones; without steps, why there are none.
        unasked: when a program that serves waits for requests, which is in no step.
    """

    of_cores: Sequence[CoreSteps]
    source: StepSource
    note: str = ""
    unasked: Intervals = (no_ints(), no_ints())

    @property
    def is_numbered(self) -> bool:
        return self.source in ("steps", "annotations")


def steps_of_programs(
    cores: Sequence[ModuleRuns], host: HostEvents | None, why: str, shift_ps: int = 0
) -> FoundSteps | None:
    """The cycles of programs, or the times from one end of the busiest one to the next; None where none runs often.

    Args:
        cores: the runs of each core.
        host: whose requests have no cycles.
        why: why the program's own steps are not taken.
        shift_ps: what to add to the devices' times to compare them with the host's.
    """
    cycle = None if has_requests(host) else step_cycle(cores)
    if cycle is not None:
        note = f"{why}: a step is inferred from the cycle of programs {cycle.words()}"
        return FoundSteps([cycle.steps(runs) for runs in cores], "cycle", note)
    busiest = busiest_module(cores)
    if busiest is None:
        return None
    unasked = waits_for_requests(host, cores, shift_ps)
    note = f"{why}: a step is the time between the ends of successive runs of {busiest.partition('(')[0]}"
    note += waits_in_words(unasked, cores)
    steps = [inferred_steps(runs, busiest).without(unasked) for runs in cores]
    return FoundSteps(steps, "modules", note, unasked)
