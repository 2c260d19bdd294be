"""Rows of collectives: groups of them by what they share, or each one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, grouped, is_among, medians
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import share
from tpuprof.parsers.pages.collectives import bandwidth
from tpuprof.parsers.pages.collectives.host_sums import (
    COUNT,
    DCN,
    DMA,
    EXPOSED,
    HIDDEN,
    ICI,
    STALLED,
    WAITING,
    Collective,
)
from tpuprof.parsers.pages.collectives.model import NO_PARTNERS, CollectivesPage, Rows
from tpuprof.parsers.pages.shared.copies import FROM_HOST, TO_HOST, WITHIN_HBM

By = Literal["all", "kind", "axis", "pass", "copies", "op"]
BYS: tuple[By, ...] = get_args(By)[:-1]
"""What rows can be grouped by: everything that distinguishes groups, or one of these alone; or those of copies. By op
nothing is grouped (`single`)."""

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
    if by == "copies":
        return rows_by(page.of_copies, "all", step)
    members = tuple(map(tuple, grouped((_shared(each, by), at) for at, each in enumerate(page.groups)).values()))
    chosen = slice(step, step + 1) if isinstance(step, int) else step or slice(None)
    of_members = [list(of) for of in members]
    sums = np.stack([page.sums[:, of].sum(axis=1) for of in of_members], axis=1) if members else page.sums
    sums = sums[..., chosen]
    cells = max(1, sums.shape[2] * sums.shape[3])
    mean = sums.sum(axis=(2, 3)) / cells
    payload = page.payload[..., chosen].sum(axis=(1, 2)) / cells
    moved = np.stack([payload, payload * _factors(page)])
    moved = np.stack([np.zeros(2), *(moved[:, of].sum(axis=1) for of in of_members)])[1:].T
    counts = np.array([int(is_among(page.group, of).sum()) for of in of_members], np.int64)
    late = _nobody(len(members)) if page.copies is None else _late(sums, mean)
    return _rows(page, members, None, counts, mean, moved, late)


def _shared(each: Collective, by: By) -> tuple[object, ...]:
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
    moved = np.stack([payload, payload * _factors(page)[group]])
    names, ones = tuple(one.name for one in each), np.ones(len(each), np.int64)
    return _rows(page, tuple((at,) for at in group.tolist()), names, ones, mean, moved, _nobody(len(each)))


def longest(page: CollectivesPage, members: Sequence[int]) -> Collective | None:
    """The collective of some groups with most exposed time, else the one that is in flight longest."""
    chosen = np.flatnonzero(is_among(page.group, members))
    if not len(chosen):
        return None
    exposed = page.of_collective[EXPOSED, chosen]
    times = exposed if exposed.any() else page.of_collective[HIDDEN : STALLED + 1, chosen].sum(axis=0)
    return page.collectives[int(chosen[times.argmax()])]


def _rows(
    page: CollectivesPage,
    members: tuple[tuple[int, ...], ...],
    names: tuple[str, ...] | None,
    collectives: Int64s,
    mean: Floats,
    moved: Floats,
    late: tuple[Int64s, Floats, Int64s],
) -> Rows:
    """Rows of groups, with what these share.

    Args:
        names: of the rows; None for their kinds.
        mean: float64[PARTS, rows]; moved: float64[2, rows], payload and what a core sends.
        late: see `_late`.
    """
    groups = page.groups

    def shared(told: Sequence[str]) -> tuple[str, ...]:
        values = ({told[at] for at in of} for of in members)
        return tuple(of.pop() if len(of) == 1 else "" for of in values)

    of_group = grouped(zip(page.group.tolist(), (each.name for each in page.collectives), strict=True))
    kind = tuple(name or "several kinds" for name in shared([each.kind for each in groups]))
    return Rows(
        name=names or kind,
        ops=names or tuple(", ".join(name for at in of for name in of_group.get(at, ())) for of in members),
        kind=kind,
        axis=shared([each.group[2] for each in groups]),
        groups=shared([each.group[3] for each in groups]),
        pass_name=shared([each.pass_name for each in groups]),
        network=shared([each.network for each in groups]),
        is_async=tuple(any(groups[at].is_async for at in of) for of in members),
        collectives=collectives,
        members=members,
        count=mean[COUNT],
        payload=moved[0],
        sent=moved[1],
        hidden_ps=mean[HIDDEN],
        exposed_ps=mean[EXPOSED],
        stalled_ps=mean[STALLED],
        waiting_ps=(mean[WAITING] if page.copies is not None else 0.0 * mean[WAITING])  # copies wait for no other core
        + (np.nan if page.lacks_partners else 0.0),
        late_core=late[0],
        late_ps=late[1],
        late_steps=late[2],
        peak=np.array([_peak(page, groups[of[0]]) for of in members], np.float64),
        cores=page.cores,
    )


def _factors(page: CollectivesPage) -> Floats:
    """float64[groups]: the `_factor` of each."""
    return np.array([_factor(page, each) for each in page.groups], np.float64)


def _factor(page: CollectivesPage, each: Collective) -> float:
    """See `bus_factor`; NaN where it is unknown. Between slices the bytes are those that a core sends already.

    A copy within HBM reads it and writes it.
    """
    if each.network in (DCN, DMA):
        return 2.0 if each.route == WITHIN_HBM else 1.0
    factor = bandwidth.bus_factor(each.kind, each.groups, len(page.cores))
    return np.nan if factor is None else factor


def _peak(page: CollectivesPage, each: Collective) -> float:
    has_one = each.network == ICI or (each.network == DMA and each.route not in (TO_HOST, FROM_HOST, ""))
    return page.peak if has_one and page.peak is not None else np.nan


def _late(sums: Int64s, mean: Floats) -> tuple[Int64s, Floats, Int64s]:
    """The core that comes last in most steps, by how much, and in how many, for int64[PARTS, rows, cores, steps].

    The core that comes last waits least. It is late where it does in most steps, and the others notice. Only cores that
    run a row's collectives as often as each other in every step are compared.
    """
    _, rows, cores, steps = sums.shape
    who, by, times = _nobody(rows)
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


def _nobody(rows: int) -> tuple[Int64s, Floats, Int64s]:
    """No core that comes last."""
    return np.full(rows, -1, np.int64), np.full(rows, np.nan), np.zeros(rows, np.int64)


def above_peak(rows: Rows) -> tuple[str, ...]:
    """Why some rows move more than all links of a chip carry, a sentence; () where none does."""
    used = np.nan_to_num(rows.peak_share)
    more = int((used > 1).sum()) - 1
    if more < 0:
        return ()
    worst, others = int(used.argmax()), f", and {counted(more, 'more row')} above it" * (more > 0)
    return (
        f"{rows.name[worst]} is at {share(float(used[worst]))} of the links' peak{others}: {bandwidth.ABOVE_LINKS}.",
    )


def why_unknown(page: CollectivesPage, rows: Rows) -> dict[str, str]:
    """Why figures of rows are unknown, by the rows' keys; only those that are."""
    why: dict[str, str] = {}
    nothing: Bools = np.isnan(rows.payload)
    if nothing.any():
        why["payload_bytes"] = why["algorithm_gigabytes_per_second"] = bandwidth.NO_SIZE
    if page.lacks_partners:
        why["waiting_time_ms"] = why["algorithm_gigabytes_per_second"] = why["bus_gigabytes_per_second"] = NO_PARTNERS
    elif np.isnan(rows.bus_rate).any():
        why["bus_gigabytes_per_second"] = bandwidth.NO_SIZE if nothing.any() else bandwidth.NO_GROUPS
    if np.isnan(rows.peak_share).any():
        why["peak_percent"] = (
            bandwidth.NO_PEAK if page.peak is None else why.get("bus_gigabytes_per_second", bandwidth.NO_DCN_PEAK)
        )
    return why
