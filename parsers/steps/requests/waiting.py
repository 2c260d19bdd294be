"""When a program that serves waits for requests: nothing is slow then, and nothing is to be saved.

That is the time outside of all requests and of all runs of its programs, where the host has events of requests, or
annotations whose names say that they are some. Else it is the time in which each thread that launches programs waits
for a queue or a socket, or in an event whose name says that it waits for requests.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, intersect, no_ints, overlap, subtract, union, union_of
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.words import time
from tpuprof.parsers.ops.host_events.activity import LAUNCHES
from tpuprof.parsers.ops.host_events.events import HostEvents
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns
from tpuprof.parsers.steps.requests.annotated import LEAST_SPANS, WAITING, is_request
from tpuprof.parsers.steps.requests.requests import request_ids
from tpuprof.parsers.steps.requests.serving import serves

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
