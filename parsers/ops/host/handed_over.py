"""The function of a program that gets a batch from a thread that makes it, where no name says that it is a loader's.

It returns right before the batch is sent to the device, time after time, and when an event of another thread has just
ended that filled most of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s, no_ints
from tpuprof.parsers.ops.host.events import HostThread

_LEAST_SENT = 3
"""Fewer batches show no habit."""

_LONG = 100
"""Events that take less than one part in so many of the time between batches are not looked at."""

_MOSTLY = 2 / 3
"""A function hands batches over if it comes right before at least this share of them."""

_WAITS = 0.5
"""It waits for another thread if this makes the batch for at least this share of its time."""

_JUST = 0.1
"""The other thread has just ended its work where no more than this share of the function's time is left."""


def handed_over(
    thread: HostThread, sent: Int64s, others: Iterable[HostThread], is_function: Callable[[int], bool]
) -> Int64s:
    """int64[k], ascending: the events in which a thread waits for what it sends to the device next.

    Args:
        thread: the one that drives the device.
        sent: rows of the events in which it sends something.
        others: the other threads.
        is_function: whether the event of a metadata id is a function of the program.
    """
    start, end = np.sort(thread.start_ps[sent]), np.sort(thread.end_ps[sent])
    if len(sent) < _LEAST_SENT:
        return no_ints()
    least = max(1, int(start[-1] - start[0]) // (len(sent) - 1) // _LONG)
    rows = _long(thread, least)
    rows = rows[~np.isin(rows, sent)]
    # of events that end together the outermost comes last
    rows = rows[np.lexsort((-thread.start_ps[rows], thread.end_ps[rows]))]
    at = np.searchsorted(thread.end_ps[rows], start, "right") - 1
    chosen = rows[at[at >= 0]]
    before = np.append(np.iinfo(np.int64).min, end[:-1])[at >= 0]
    took = thread.end_ps[chosen] - thread.start_ps[chosen]
    is_next = (thread.start_ps[chosen] >= before) & (start[at >= 0] - thread.end_ps[chosen] <= took)
    chosen = chosen[is_next]
    if len(chosen) < _LEAST_SENT:
        return no_ints()
    ids, counts = np.unique(thread.metadata_id[chosen], return_counts=True)
    most = int(ids[counts.argmax()])
    if counts.max() < _MOSTLY * len(chosen) or not is_function(most):
        return no_ints()
    chosen = np.unique(chosen[thread.metadata_id[chosen] == most]).astype(np.int64)
    took = thread.end_ps[chosen] - thread.start_ps[chosen]
    waits = max(
        (float(took[_waits_for(thread, chosen, other, least, is_function)].sum()) for other in others), default=0.0
    )
    return chosen if waits >= _WAITS * float(took.sum()) else no_ints()


def _long(thread: HostThread, least: int) -> Int64s:
    return np.flatnonzero(thread.end_ps - thread.start_ps >= least).astype(np.int64)


def _waits_for(
    thread: HostThread, rows: Int64s, other: HostThread, least: int, is_function: Callable[[int], bool]
) -> Bools:
    """bool[rows]: which of some events end just after an event of another thread has, that filled most of them."""
    made = _long(other, least)
    made = made[
        np.isin(other.metadata_id[made], [of for of in np.unique(other.metadata_id[made]) if is_function(int(of))])
    ]
    made = made[np.argsort(other.end_ps[made], kind="stable")]
    if not len(made):
        return np.zeros(len(rows), np.bool_)
    start, end = thread.start_ps[rows], thread.end_ps[rows]
    at = np.searchsorted(other.end_ps[made], end, "right") - 1
    last = made[np.maximum(at, 0)]
    filled = other.end_ps[last] - np.maximum(other.start_ps[last], start)
    out: Bools = (at >= 0) & (end - other.end_ps[last] <= _JUST * (end - start)) & (filled >= _WAITS * (end - start))
    return out
