"""Several launches as one side of a comparison: each launch is one observation, and their spread is the noise.

A launch has its own memory layout, neighbours and clock, so that launches of one program differ several times as much
as the steps of one show. Their figures are the same as those of two runs: only the batches of steps become launches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import median
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.session.diff.match import matched
from tpuprof.parsers.session.diff.measure import BatchedTimes
from tpuprof.parsers.session.diff.model import Launch, Launches
from tpuprof.parsers.session.diff.noise import estimate, launches_needed

DETECT = 0.01
"""The size of a change that is to be found where nothing else is said."""

OF_MEDIAN = "times are means over launches; phases, memory, versions and HLO are of the median launch of each side"


def middle_of(times: Sequence[float]) -> int:
    """The number of the launch with the median time, the shorter of two."""
    return int(np.argsort(times, kind="stable")[(len(times) - 1) // 2])


def pooled(times: Sequence[BatchedTimes], tables: Sequence[OpTable], middle: int) -> BatchedTimes:
    """The times of some launches, each as one batch, by the ops of the middle one.

    What only other launches run counts in the whole time alone.
    """
    main = times[middle]
    time, count = np.zeros((len(main.ops), len(times))), np.zeros((len(main.ops), len(times)))
    for launch, (own, table) in enumerate(zip(times, tables, strict=True)):
        pairs = matched(main.ops, own.ops, tables[middle], table)
        rows = [(pair.before, pair.after) for pair in pairs if pair.before is not None and pair.after is not None]
        mine, other = np.array(rows, np.intp).reshape(-1, 2).T
        time[mine, launch], count[mine, launch] = own.means[other], own.count[other]
    whole = np.array([own.whole.mean for own in times])
    return BatchedTimes(main.ops, time, count.mean(axis=1), whole, np.ones(len(times)), main.runs, None, True)


def launches_of(before: Sequence[Launch], after: Sequence[Launch], detect: float) -> Launches:
    """What is known of the launches of a comparison.

    Args:
        detect: the size of a change that is to be found, as a fraction of the time before.
    """
    times = [np.array([launch.time_ps for launch in side]) for side in (before, after)]
    one, other = (estimate(of, np.ones(len(of)), True) for of in times)
    inside = [launch.error_ps for launch in (*before, *after) if launch.error_ps is not None]
    spreads = [float(of.std(ddof=1)) if len(of) > 1 else None for of in times]
    needed = launches_needed(one, other, detect * one.mean)
    order = _order(before, after) or _order(after, before, "B", "A")
    middle = median(np.array(inside)) if inside else None
    return Launches(tuple(before), tuple(after), (spreads[0], spreads[1]), middle, detect, needed, order)


def _order(first: Sequence[Launch], then: Sequence[Launch], one: str = "A", other: str = "B") -> str:
    """A sentence where one side was captured before the other."""
    if max(launch.captured for launch in first) >= min(launch.captured for launch in then):
        return ""
    ran = f"every launch of {one} was captured before those of {other}"
    return f"{ran}: a drift of the machine looks like a change; capture A and B in turn"
