"""Makes the page of collectives of what each host adds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np

from tpuprof.parsers.base.record import fields, replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import share, shortened, time
from tpuprof.parsers.files.core_names import host_of, labels_together
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.device import STAGES
from tpuprof.parsers.pages.collectives import model
from tpuprof.parsers.pages.collectives.bandwidth import ici_peak
from tpuprof.parsers.pages.collectives.host import COLLECTIVES_OF_HOST, CollectivesSummary
from tpuprof.parsers.pages.collectives.host_sums import COUNT, ICI, PARTS, WAITING, Collective, HostCollectives, Sums
from tpuprof.parsers.pages.collectives.instruction import PARTITION_ID
from tpuprof.parsers.pages.collectives.rows import LATE, rows_by
from tpuprof.parsers.pages.collectives.slices import joined_slices
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.shared.common import device_of, runs_on, warnings_of, why_no_ops
from tpuprof.parsers.pages.shared.copies import is_copy_half
from tpuprof.parsers.pages.shared.groups import group_shown, shown_words
from tpuprof.parsers.pages.shared.key import MODULES, PageKey, PageSession
from tpuprof.parsers.pages.shared.steps import CommonSteps, common_steps
from tpuprof.parsers.pages.shared.summaries import note_programs
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.boundaries.replica_groups import without_partners
from tpuprof.parsers.steps.step_account import late_one, waits_by_collective


def collectives_page(
    summaries: Sequence[HostSummary],
    parts: Sequence[HostCollectives],
    step_names: Sequence[str],
    steps_note: str,
    has_steps: bool,
    notes: Sequence[str] = (),
    copies: model.CollectivesPage | None = None,
    grid: AlignedSteps | None = None,
) -> model.CollectivesPage:
    """The page of some hosts; without `copies` these are what its rows are.

    Args:
        parts: what each adds, over the same steps in the same order.
        steps_note: where the steps come from.
        has_steps: whether these are steps, and not the whole time as one.
        grid: these steps; None without.
    """
    device = device_of(summaries)
    cores = tuple(core for part in parts for core in part.cores)
    joined = _joined(parts)
    if grid is not None and copies is not None:
        _wait_for_stages(joined, cores, grid)
    slices = joined_slices([each for part in parts for each in part.slices])
    steps = len(step_names)
    totals = np.concatenate([np.zeros((3, 0, steps), np.int64), *(part.totals for part in parts)], axis=1)
    step_ps = np.concatenate([np.zeros((0, steps), np.int64), *(part.step_ps for part in parts)])
    why = "" if len(joined.collectives) else _why_none(summaries) if copies is not None else model.NO_COPY
    sentences = [*notes]
    if any(part.unpaired for part in parts):
        lost = sum(part.unpaired for part in parts)
        sentences.append(
            f"{counted(lost, 'half', 'halves')} of asynchronous {'collectives' if copies is not None else 'copies'} "
            "left out: the other half is missing"
        )
    if has_steps and any(part.outside for part in parts):
        outside = sum(part.outside for part in parts)
        sentences.append(f"{counted(outside, 'transfer')} outside of the steps left out")
    lacking = partners(summaries, joined.collectives)
    sentences += lacking
    if slices:
        sentences.append(model.NEVER_SEEN)
    page = model.CollectivesPage(
        hosts=tuple(summary.host for summary in summaries),
        cores=cores,
        step_names=tuple(step_names),
        steps_note=steps_note,
        has_steps=has_steps,
        device_type=None if device is None else device.device_type,
        peak=None if device is None else ici_peak(device.device_type) if copies is not None else device.peaks.hbm,
        **{field.name: getattr(joined, field.name) for field in fields(joined)},
        totals=totals.mean(axis=1) if cores else np.zeros((3, 0)),
        step_ps=step_ps.max(axis=0).astype(np.float64) if cores else np.zeros(0),
        slices=slices,
        why_none=why,
        statement="",
        warnings=warnings_of(summaries, clocks=[summary.clocks for summary in summaries]),
        notes=tuple(sentences),
        lacks_partners=bool(lacking),
        copies=copies,
    )
    return replace(page, statement=_statement(page))


def _why_none(summaries: Sequence[HostSummary]) -> str:
    cores = sum(summary.core_count for summary in summaries)
    none = {"core": model.NO_COLLECTIVE, "GPU": model.ON_GPUS, "host thread": model.ON_CPU}[runs_on(summaries)]
    none += model.CUT * any(summary.problems for summary in summaries)
    return why_no_ops(summaries) or (f"{none}; it has one core" if cores == 1 else none)


def partners(summaries: Sequence[HostSummary], collectives: Sequence[Collective]) -> list[str]:
    """A sentence where devices that take part are not shown: of other processes on CPUs, of other hosts with TPUs.

    Args:
        collectives: of these hosts.
    """
    hosts = [summary.on_cpu for summary in summaries if summary.on_cpu is not None]
    devices = max((of.devices for of in hosts), default=0)
    here = sum(of.local_devices for of in hosts)
    cores = sum(summary.core_count for summary in summaries)
    if cores:
        of_tpus = (each.groups.members for each in collectives if each.groups is not None and each.network == ICI)
        devices, here = max(of_tpus, default=0), cores
    sentence = without_partners(devices, here)
    return [sentence] if sentence else []


def _joined(parts: Sequence[HostCollectives]) -> Sums:
    """Puts the hosts together: a collective waits for the last core of any host, so for the shortest of all."""
    number: dict[tuple[int, str, str], int] = {}
    distinct: list[Collective] = []
    of_part = []
    for part in parts:
        places = []
        for each, count in zip(part.collectives, part.of_collective[COUNT].sum(axis=1).tolist(), strict=True):
            place = number.get((each.program_id, each.name, each.network), -1)
            if place < 0 and count:
                place = number[each.program_id, each.name, each.network] = len(distinct)
                distinct.append(each)
            places.append(place)
        of_part.append(np.array(places, np.int64))
    steps = parts[0].step_ps.shape[1] if parts else 0
    shortest = np.full((len(distinct), steps), np.iinfo(np.int64).max, np.int64)
    for part, at in zip(parts, of_part, strict=True):
        np.minimum.at(shortest, at[at >= 0], part.shortest_ps[at >= 0])
    groups: dict[tuple[object, ...], int] = {}
    group = np.array([groups.setdefault(each.group, len(groups)) for each in distinct], np.int64)
    firsts = [distinct[int(np.flatnonzero(group == row)[0])] for row in range(len(groups))]
    sums = [np.zeros((PARTS, len(groups), 0, steps), np.int64)]
    payloads = [np.zeros((len(groups), 0, steps))]
    of_collective = np.zeros((PARTS, len(distinct)), np.int64)
    for part, at in zip(parts, of_part, strict=True):
        taken = np.array([groups.get(each.group, -1) for each in part.groups], np.int64)
        by_part = np.zeros((PARTS, len(groups), len(part.cores), steps), np.int64)
        by_part[:, taken[taken >= 0]] = part.sums[:, taken >= 0]
        held = np.zeros((len(groups), len(part.cores), steps))
        held[taken[taken >= 0]] = part.payload[taken >= 0]
        kept = at >= 0
        ran = part.shortest_ps[kept] < np.iinfo(np.int64).max
        later = np.where(ran, part.shortest_ps[kept] - np.where(ran, shortest[at[kept]], 0), 0)
        by_group = np.zeros((len(groups), steps), np.int64)
        np.add.at(by_group, group[at[kept]], later)
        waits = by_part[COUNT] > 0
        by_part[WAITING] += by_group[:, None] * waits  # the last core of all is on another host
        for each_part in range(PARTS):
            np.add.at(of_collective[each_part], at[kept], part.of_collective[each_part, kept].sum(axis=1))
        np.add.at(of_collective[WAITING], at[kept], (later * waits.sum(axis=1)[group[at[kept]]]).sum(axis=1))
        sums.append(by_part)
        payloads.append(held)
    return Sums(
        tuple(distinct),
        group,
        tuple(firsts),
        np.concatenate(sums, axis=2),
        np.concatenate(payloads, axis=1),
        of_collective,
    )


def _wait_for_stages(sums: Sums, cores: Sequence[str], grid: AlignedSteps) -> None:
    """Takes the waits of collectives along stages from the account."""
    waits = waits_by_collective(grid.collective_ps, grid.hops)
    column = {name: at for at, name in enumerate(grid.collective_names)}
    core = [grid.core_names.index(name) for name in cores if name in grid.core_names]
    for row, group in enumerate(sums.groups):
        members = [(at, {each.name, each.done}) for at, each in enumerate(sums.collectives) if sums.group[at] == row]
        named = set.union(*(names for _, names in members)) - {""}
        if STAGES.match(group.kind) and named <= column.keys() and len(core) == len(cores):
            sums.sums[WAITING, row] = waits[core][:, :, [column[name] for name in named]].sum(axis=2)
            for at, names in members:
                sums.of_collective[WAITING, at] = waits[core][:, :, [column[name] for name in names if name]].sum()


def _statement(page: model.CollectivesPage) -> str:
    """The answer in a sentence or two."""
    if page.why_none and page.copies is None:
        return f"{page.why_none[0].upper()}{page.why_none[1:]}."
    if page.exposed_ps is None or page.exposed_share is None or page.hidden_share is None:
        return f"No collectives: {page.why_none}."
    of = "the step" if page.has_steps else "the profile's time"
    first = f"{share(page.exposed_share)} of {of} ({time(page.exposed_ps)}) exposed; "
    return f"{first}{share(page.hidden_share)} of transfers hidden. {_who(page)}".rstrip()


def _who(page: model.CollectivesPage) -> str:
    """Who is waited for most, or what is exposed most."""
    rows = rows_by(page, "all")
    if not len(rows):
        return ""
    most = int(rows.exposed_ps.argmax())
    what = f"Most exposed: {rows.kind[most]}"
    if page.copies is None:
        of = " for ".join(filter(None, (rows.axis[most], rows.groups[most])))
        return f"{what} from {of}, {time(float(rows.exposed_ps[most]))}." if rows.exposed_ps[most] > 0 else ""
    waits_ps = page.sums[WAITING].sum(axis=0).mean(axis=1)
    late_host_or_core = late_one(page.cores, waits_ps)
    late = np.where(rows.late_core >= 0, rows.waiting_ps, 0.0)
    at = int(late.argmax())
    if late[at] > 0 and page.exposed_ps and late[at] >= LATE * page.exposed_ps:
        core, by = rows.late[at] or "", time(float(rows.late_ps[at]))
        where = f"over {rows.axis[at]} " if rows.axis[at] and not rows.axis[at].startswith("id+") else ""
        waits = f"{rows.kind[at]} {where}waits for"
        if late_host_or_core == host_of(core):  # all cores of a host come late, each of them last at times
            return f"{waits} {shortened(late_host_or_core)}, {by} late."
        unit = "core" if rows.network[at] == ICI else "device"
        label = f"{unit} {shortened(core.rpartition(':')[2])}" if len(page.hosts) == 1 else shortened(core)
        steps = f" in {rows.late_steps[at]:,} of {counted(len(page.step_names), 'step')}" if page.has_steps else ""
        return f"{waits} {label}, {by} late{steps}."
    if rows.exposed_ps[most] <= 0:
        return ""
    first, waiting = f"{what}, {time(float(rows.exposed_ps[most]))}.", float(waits_ps.mean())
    if waiting < _MUCH_WAITING * (page.exposed_ps or 0.0):
        return first
    others = "other stages" if STAGES.match(rows.kind[most]) else "late cores"
    return f"{first} {time(waiting)} of the exposed time is waiting for {shortened(late_host_or_core) or others}."


_MUCH_WAITING = 0.5
"""Waiting for late cores is named from this share of exposed time on, where no one core is late in most steps."""

_WHOLE = ("profile",)


def collectives_of_run(session: PageSession, host: str | None) -> model.CollectivesPage:
    """What moves between cores, and what compute hides of it.

    Where all collectives run outside of the steps, as those of a program that ran once beside a loop of another one,
    each core's whole time counts as one step.
    """
    found = session.reduced(COLLECTIVES_OF_HOST, host)
    note_programs(session, found)
    main = group_shown(found.summaries)
    if main is not None and any(group.devices is not None for of in found.summaries for group in of.groups):
        page = collectives_of_run(session.of_core(labels_together(main.core_names)), None)
        return replace(page, warnings=(shown_words(main), *page.warnings, *found.left_out))
    page = _page(found.summaries, "collectives", _page(found.summaries, "copies"))
    return replace(page, warnings=(*page.warnings, *found.left_out, *session.problems))


def _page(
    summaries: Sequence[CollectivesSummary],
    which: Literal["collectives", "copies"],
    copies: model.CollectivesPage | None = None,
) -> model.CollectivesPage:
    """The page of one sort, by step unless all of it lies outside of the steps."""
    made = partial(collectives_page, summaries, copies=copies)
    every: list[HostCollectives] = [getattr(summary, f"all_{which}") for summary in summaries]
    if not any(summary.core_count for summary in summaries):
        every = [of for of in every if of.cores]
        note = model.ONE_STEP if any(map(_count, every)) else ""
        return made(every, _WHOLE if every else (), note, False, (note,) if note else ())
    steps = common_steps(summaries)
    parts = _in_shared_steps(summaries, which, steps)
    if parts and steps.grid is not None and (any(map(_count, parts)) or not any(part.outside for part in parts)):
        notes = (*steps.remarks, *([steps.note] if steps.note else []))
        return made(parts, steps.grid.names, steps.note, True, notes, grid=steps.grid)
    note = f"{model.OUTSIDE if steps.grid is not None else ''}{model.ONE_STEP}"
    return made(every, _WHOLE, note, False, [note])


def has_collectives(session: PageSession, host: str | None) -> bool:
    """Whether an op moves data to other cores or devices, or to other slices, or copies beside the core's work."""
    ops = session.page(OPS, host)
    kinds = zip(ops.op_class, ops.table.category, strict=True)
    if any(name == "collective" and category != PARTITION_ID for name, category in kinds):
        return True
    if any(map(is_copy_half, ops.table.category, ops.table.name)):
        return True
    return ops.runs_on == "core" and any(
        ops.table.is_across_slices(row, lambda: session.page(MODULES, host)) for row in range(len(ops.table))
    )


def _count(part: HostCollectives) -> int:
    return int(part.of_collective[COUNT].sum())


def _in_shared_steps(summaries: Sequence[CollectivesSummary], which: str, steps: CommonSteps) -> list[HostCollectives]:
    if steps.grid is None:
        return []
    of_hosts = [(getattr(summaries[at], which), rows) for at, rows in steps.rows.items()]
    return [collectives.take(rows) for collectives, rows in of_hosts if collectives is not None]


COLLECTIVES = PageKey(collectives_of_run)
HAS_COLLECTIVES = PageKey(has_collectives)
