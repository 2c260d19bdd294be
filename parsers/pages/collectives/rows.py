"""Rows of collectives: groups of them by what they share, or each one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, is_among, medians
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import share
from tpuprof.parsers.pages.collectives.bandwidth import (
    ABOVE_LINKS,
    NO_DCN_PEAK,
    NO_GROUPS,
    NO_PEAK,
    NO_SIZE,
    bus_factor,
)
from tpuprof.parsers.pages.collectives.host_sums import COUNT, DCN, EXPOSED, HIDDEN, ICI, STALLED, WAITING, Collective
from tpuprof.parsers.pages.collectives.model import NO_PARTNERS, CollectivesPage, Rows

By = Literal["all", "kind", "axis", "pass"]
BYS: tuple[By, ...] = get_args(By)
"""What rows can be grouped by: everything that distinguishes groups, or one of these alone."""

_MOST_STEPS = 2 / 3
"""A core is late that comes last in at least this share of the steps, as for findings."""

LATE = 0.01
"""And others wait for it at least this share of the collective's time."""


def rows_by(page: CollectivesPage, by: By, step: int | slice | None = None) -> Rows:
    """Groups of collectives, those with most exposed time first.

    Args:
        by: what a row's collectives share.
        step: the one step, or the steps, that the rows are the mean of; None for all.
    """
    numbers: dict[tuple[object, ...], list[int]] = {}
    for at, each in enumerate(page.groups):
        numbers.setdefault(_shared(each, by), []).append(at)
    members = tuple(tuple(of) for of in numbers.values())
    chosen = slice(step, step + 1) if isinstance(step, int) else step or slice(None)
    sums = np.stack([page.sums[:, list(of)].sum(axis=1) for of in members], axis=1) if members else page.sums
    sums = sums[..., chosen]
    cells = max(1, sums.shape[2] * sums.shape[3])
    payload = page.payload[..., chosen].sum(axis=(1, 2)) / cells if members else np.zeros(0)
    sent = payload * np.array([_factor(page, each) for each in page.groups]) if members else payload
    of_members = [list(of) for of in members]
    mean = sums.sum(axis=(2, 3)) / cells
    late = _late(sums, mean)
    rows = _described(page, members)
    rows = replace(
        rows,
        collectives=np.array([int(is_among(page.group, of).sum()) for of in of_members], np.int64),
        count=mean[COUNT],
        payload=np.array([payload[of].sum() for of in of_members]),
        sent=np.array([sent[of].sum() for of in of_members]),
        hidden_ps=mean[HIDDEN],
        exposed_ps=mean[EXPOSED],
        stalled_ps=mean[STALLED],
        waiting_ps=mean[WAITING] + (np.nan if page.lacks_partners else 0.0),
        late_core=late[0],
        late_ps=late[1],
        late_steps=late[2],
    )
    return rows


def _shared(each: Collective, by: By) -> tuple[object, ...]:
    """What the collectives of a row share."""
    network, kind, axis, groups, of_pass, _ = each.group
    if by == "all":
        return each.group
    return {"kind": (network, kind), "axis": (network, axis, groups), "pass": (network, of_pass)}[by]


def single(page: CollectivesPage, members: Sequence[int] | None = None) -> Rows:
    """Collectives one by one, of all groups or of some, means over all steps and cores."""
    chosen = np.arange(len(page.collectives)) if members is None else np.flatnonzero(is_among(page.group, members))
    group = page.group[chosen]
    cells = max(1, len(page.cores) * len(page.step_names))
    mean = page.of_collective[:, chosen] / cells
    each = [page.collectives[at] for at in chosen.tolist()]
    payload = mean[COUNT] * np.array([np.nan if one.payload is None else one.payload for one in each], np.float64)
    number = len(each)

    def of_group(values: Sequence[str]) -> tuple[str, ...]:
        return tuple([values[at] for at in group.tolist()])

    return Rows(
        name=tuple([one.name for one in each]),
        kind=of_group([one.kind for one in page.groups]),
        axis=of_group([one.group[2] for one in page.groups]),
        groups=of_group([one.group[3] for one in page.groups]),
        pass_name=of_group([one.pass_name for one in page.groups]),
        network=of_group([one.network for one in page.groups]),
        is_async=tuple([one.is_async for one in each]),
        collectives=np.ones(number, np.int64),
        members=tuple([(at,) for at in group.tolist()]),
        count=mean[COUNT],
        payload=payload,
        sent=payload * np.array([_factor(page, one) for one in page.groups], np.float64)[group],
        hidden_ps=mean[HIDDEN],
        exposed_ps=mean[EXPOSED],
        stalled_ps=mean[STALLED],
        waiting_ps=mean[WAITING] + (np.nan if page.lacks_partners else 0.0),
        late_core=np.full(number, -1, np.int64),
        late_ps=np.full(number, np.nan),
        late_steps=np.zeros(number, np.int64),
        peak=np.array([_peak(page, one) for one in page.groups], np.float64)[group],
        cores=page.cores,
    )


def longest(page: CollectivesPage, members: Sequence[int]) -> Collective | None:
    """The collective of some groups with most exposed time, else the one that is in flight longest."""
    chosen = np.flatnonzero(is_among(page.group, members))
    if not len(chosen):
        return None
    exposed = page.of_collective[EXPOSED, chosen]
    times = exposed if exposed.any() else page.of_collective[HIDDEN : STALLED + 1, chosen].sum(axis=0)
    return page.collectives[int(chosen[times.argmax()])]


def _described(page: CollectivesPage, members: Sequence[Sequence[int]]) -> Rows:
    """Rows with what their groups share, and no figures."""

    def shared(read: Mapping[int, str]) -> tuple[str, ...]:
        told = [{read[at] for at in of} for of in members]
        return tuple(values.pop() if len(values) == 1 else "" for values in told)

    groups = page.groups
    kind = shared({at: each.kind for at, each in enumerate(groups)})
    nothing, none = np.zeros(len(members)), np.zeros(len(members), np.int64)
    return Rows(
        name=tuple(name or "several kinds" for name in kind),
        kind=tuple(name or "several kinds" for name in kind),
        axis=shared({at: each.group[2] for at, each in enumerate(groups)}),
        groups=shared({at: each.group[3] for at, each in enumerate(groups)}),
        pass_name=shared({at: each.pass_name for at, each in enumerate(groups)}),
        network=shared({at: each.network for at, each in enumerate(groups)}),
        is_async=tuple(any(groups[at].is_async for at in of) for of in members),
        collectives=none,
        members=tuple(tuple(of) for of in members),
        count=nothing,
        payload=nothing,
        sent=nothing,
        hidden_ps=nothing,
        exposed_ps=nothing,
        stalled_ps=nothing,
        waiting_ps=nothing,
        late_core=none,
        late_ps=nothing,
        late_steps=none,
        peak=np.array([_peak(page, groups[of[0]]) for of in members], np.float64),
        cores=page.cores,
    )


def _factor(page: CollectivesPage, each: Collective) -> float:
    """See `bus_factor`; NaN where it is unknown. Between slices the bytes are those that a core sends already."""
    if each.network == DCN:
        return 1.0
    factor = bus_factor(each.kind, each.groups, len(page.cores))
    return np.nan if factor is None else factor


def _peak(page: CollectivesPage, each: Collective) -> float:
    return page.peak if each.network == ICI and page.peak is not None else np.nan


def _late(sums: Int64s, mean: Floats) -> tuple[Int64s, Floats, Int64s]:
    """The core that comes last in most steps, by how much, and in how many, for int64[PARTS, rows, cores, steps].

    The core that comes last waits least. It is late where it does in most steps, and the others notice. Only cores that
    run a row's collectives as often as each other in every step are compared.
    """
    _, rows, cores, steps = sums.shape
    who, by, times = np.full(rows, -1, np.int64), np.full(rows, np.nan), np.zeros(rows, np.int64)
    for row in range(rows if steps else 0):
        counts = sums[COUNT, row]
        taking = np.flatnonzero((counts == counts.max(axis=0)).all(axis=1) & counts.any(axis=1))
        if len(taking) < 2 or len(taking) < np.count_nonzero(counts.any(axis=1)):
            continue
        exposed = sums[EXPOSED, row, taking]
        last, count = Counter(exposed.argmin(axis=0).tolist()).most_common(1)[0]
        others = medians(np.delete(exposed, last, axis=0).astype(np.float64))
        late = float(np.mean(others - exposed[last]))
        span = float(mean[HIDDEN, row] + mean[EXPOSED, row] + mean[STALLED, row]) * cores / len(taking)
        if count >= _MOST_STEPS * steps and late > 0 and late >= LATE * span:
            who[row], by[row], times[row] = taking[last], late, count
    return who, by, times


def above_peak(rows: Rows) -> tuple[str, ...]:
    """Why some rows move more than all links of a chip carry, a sentence; () where none does."""
    used = np.nan_to_num(rows.peak_share)
    more = int((used > 1).sum()) - 1
    if more < 0:
        return ()
    worst, others = int(used.argmax()), f", and {counted(more, 'more row')} above it" * (more > 0)
    return (f"{rows.name[worst]} is at {share(float(used[worst]))} of the links' peak{others}: {ABOVE_LINKS}.",)


def why_unknown(page: CollectivesPage, rows: Rows) -> dict[str, str]:
    """Why figures of rows are unknown, by the rows' keys; only those that are."""
    why: dict[str, str] = {}
    nothing: Bools = np.isnan(rows.payload)
    if nothing.any():
        why["payload_bytes"] = why["algorithm_gigabytes_per_second"] = NO_SIZE
    if page.lacks_partners:
        why["waiting_time_ms"] = why["algorithm_gigabytes_per_second"] = why["bus_gigabytes_per_second"] = NO_PARTNERS
    elif np.isnan(rows.bus_rate).any():
        why["bus_gigabytes_per_second"] = NO_SIZE if nothing.any() else NO_GROUPS
    if np.isnan(rows.peak_share).any():
        why["peak_percent"] = NO_PEAK if page.peak is None else why.get("bus_gigabytes_per_second", NO_DCN_PEAK)
    return why
