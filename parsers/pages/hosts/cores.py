"""Where the steps of cores go, and the cores of a run side by side.

A core's own time is its step without the time that it waits for cores that come later, in collectives and at barriers.
Cores that work on one program meet there, so that their whole steps take equally long, and only their own times differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Floats, Int64s
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.base.words import percent_of, share, time
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.hosts.model import PARTS, HostRow, SharedSteps, StepPartName
from tpuprof.parsers.pages.shared.groups import CoreGroup, in_group
from tpuprof.parsers.pages.shared.steps import step_time
from tpuprof.parsers.steps.accounts.owners import OWNERS, Owner
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.boundaries.observed import idle_percent
from tpuprof.parsers.steps.step_account import tpu_account
from tpuprof.parsers.steps.times import OUTFEED

LEAST_COST = 0.01
"""A straggler costs at least this share of a step; steps vary by less anyway."""

_OWNERS_OF: Mapping[StepPartName, tuple[Owner, ...]] = {
    "compute": ("ideal", "loss", "uncounted", "copy"),
    "input": ("input",),
    "transfer": ("host_transfer",),
    "collective": ("collective_transfer",),
    "wait": ("collective_wait", "barrier"),
    "idle": ("host", "dispatch", "compile", "between_ops"),
}
"""Whose each part is (`parsers.steps.accounts.owners`); output is taken out of transfers."""


def parts_of(grid: AlignedSteps) -> Int64s:
    """int64[cores, steps, len(PARTS)]: the account of the steps by part; of each core they add up to the slowest's."""
    account = tpu_account(grid)
    parts = parts_of_owners(grid.owner_ps if account is None else account.owner_ps)
    transfer, output = PARTS.index("transfer"), PARTS.index("output")
    parts[:, :, output] = np.clip(grid.part_ps[:, :, OUTFEED], 0, parts[:, :, transfer])
    parts[:, :, transfer] -= parts[:, :, output]
    return parts


def parts_of_owners(owner_ps: Int64s) -> Int64s:
    """int64[..., len(PARTS)]: the times of owners, int64[..., len(OWNERS)], by part; none of it is output."""
    parts = np.zeros((*owner_ps.shape[:-1], len(PARTS)), np.int64)
    for name, owners in _OWNERS_OF.items():
        parts[..., PARTS.index(name)] = owner_ps[..., [OWNERS.index(owner) for owner in owners]].sum(axis=-1)
    return parts


def part_percent(parts: Floats | None, *names: StepPartName) -> float | None:
    """The share of some parts of a mean step; None without one."""
    if parts is None:
        return None
    return percent_of(sum(float(parts[PARTS.index(name)]) for name in names), float(parts.sum()))


# --- cores side by side


def core_rows(
    summaries: Sequence[HostSummary],
    rows: Sequence[HostRow],
    steps: SharedSteps | None,
    others: Callable[[int], SharedSteps | None],
) -> list[HostRow]:
    """A row for each core or GPU, or device of a CPU.

    Args:
        rows: the hosts, as the summaries.
        steps: the steps that the hosts share; cores of a host that takes no part stand with its own steps.
        others: the steps of a host without TPUs, by its number.
    """
    number = {} if steps is None else {name: index for index, name in enumerate(steps.core_names)}
    cores = list[HostRow]()
    for index, (summary, row) in enumerate(zip(summaries, rows, strict=True)):
        own = steps if steps is not None and index in steps.rows else others(index) or _own_steps(summary)
        places = number if own is steps else {name: at for at, name in enumerate(own.core_names if own else ())}
        named = (*summary.cores.items(), *_devices(summary, summaries))
        cores += [_row(row, name, chip, summary, own, places.get(name)) for name, chip in named]
    if steps is None or len(steps.core_names) < 2:
        return cores
    excess = lateness(steps.core_done_ps, LEAST_COST * float(steps.duration_ps.max(axis=0).mean()))
    return [_compared(row, excess[number[row.label]]) if row.label in number else row for row in cores]


def lateness(own_ps: Int64s, alike_ps: float = 0.0) -> Int64s:
    """int64[n, steps]: by how much longer the own time of each of some cores, or hosts, is than the slowest other's.

    Those that are the slowest together, with means within `alike_ps`, are compared with the rest.
    """
    mean = own_ps.mean(axis=1)
    are_late = mean > mean.max() - alike_ps
    second, first = np.sort(own_ps, axis=0)[-2:]
    others = np.where(own_ps == first, second, first)
    if not are_late.all():
        others[are_late] = own_ps[~are_late].max(axis=0)
    excess: Int64s = np.maximum(own_ps - others, 0)
    return excess


def _devices(summary: HostSummary, beside: Sequence[HostSummary]) -> list[tuple[str, None]]:
    """GPUs, or the devices of a CPU, which have no chip's number; a host without a device beside others has none."""
    is_bare = not summary.gpu_count and not summary.thread_count and any(of.core_count or of.gpu_count for of in beside)
    known = () if summary.generic is None or is_bare else summary.generic.busy
    return [(core_label(summary.host, of.number), None) for of in known]


def _own_steps(summary: HostSummary) -> SharedSteps | None:
    """The steps of a host with TPUs that takes no part; None without any, and where their ops were lost."""
    grid = summary.steps
    if grid is None or grid.are_lost:
        return None
    return SharedSteps.of(grid.names, (0,), grid.core_names, grid.hosts, parts_of(grid), grid.duration_ps)


def _row(
    row: HostRow, name: str, chip: int | None, summary: HostSummary, steps: SharedSteps | None, core: int | None
) -> HostRow:
    """A core's own figures, of steps in which it has the place `core`; what compares it with others is None."""
    took: Int64s | None = None if steps is None or core is None else steps.core_duration_ps[core]
    parts: Floats | None = None if steps is None or core is None else steps.parts_ps[core].mean(axis=0)
    of = summary.steps or summary.generic
    tells_input = summary.steps.input_source is not None if summary.steps is not None else summary.generic is not None
    return replace(
        row,
        device_type=row.device_type if summary.generic is None else summary.generic.device_type,
        cores=1,
        step_time=None if took is None or of is None else step_time(took.astype(np.float64), of.source),
        common_steps=0 if took is None or row.parts_ps is None else len(took),
        own_ps=None if steps is None or core is None else float(steps.core_own_ps[core].mean()),
        slowest_in=None,
        cost_ps=None,
        parts_ps=None if parts is None else tuple(parts.tolist()),
        idle_percent=idle_percent([of for of in summary.observed if of.name == name and (of.ran or summary.generic)]),
        input_percent=part_percent(parts, "input") if tells_input else None,
        collective_percent=part_percent(parts, "collective", "wait"),
        wait_percent=None,
        duty_percent=None,
        mxu_percent=None,
        hbm_percent=None,
        profile_duration_ps=None,
        problems=(),
        core=int(name.rpartition(":")[2]),
        chip=chip,
        noun="core" if summary.core_count else "GPU" if summary.gpu_count else "device",
        lost_steps=_lost_steps(summary, name),
    )


def _lost_steps(summary: HostSummary, name: str) -> tuple[str, ...]:
    lost = () if summary.steps is None else summary.steps.lost
    return next((core.steps for core in lost if core.core == name), ())


def _compared(row: HostRow, excess: Int64s) -> HostRow:
    """A core compared with the others; int64[steps], its `lateness`."""
    parts = None if row.parts_ps is None else np.array(row.parts_ps)
    return replace(
        row,
        slowest_in=int(np.count_nonzero(excess)),
        cost_ps=float(excess.mean()) if len(excess) else None,
        wait_percent=part_percent(parts, "wait"),
    )


def judged_cores(cores: Sequence[HostRow], steps: SharedSteps | None, note: str) -> tuple[int | None, str]:
    """The core that is slowest, as an index, and a sentence; no core where several are, and where it is unknown."""
    having = [index for index, row in enumerate(cores) if row.slowest_in is not None and row.own_ps is not None]
    if steps is None or len(having) < 2:
        return None, _why_alone(cores, note)
    own = steps.core_done_ps.mean(axis=1)[[steps.core_names.index(cores[index].label) for index in having]]
    whole = max(times.average_ps for index in having if (times := cores[index].step_time) is not None)
    excess = float(own.max() - np.sort(own)[(len(own) - 1) // 2])
    if whole <= 0 or excess < LEAST_COST * whole:
        within = share(max((float(own.max() - own.min()) / whole) if whole > 0 else 0.0, 1e-9))
        even = f"The {counted(len(having), 'core')} differ by {within} of a step."
        return None, _why_uneven([cores[index] for index in having], whole) or even
    late = [having[index] for index in np.flatnonzero(own > own.max() - LEAST_COST * whole).tolist()]
    longer = f"{time(float(own.max()))}, {time(excess)} ({share(excess / whole)}) longer than the median core's."
    if len(late) > 1:
        names = examples([cores[index].label for index in late])
        most = "up to " if len({time(cores[index].own_ps or 0.0) for index in late}) > 1 else ""
        many = f"{names} are the slowest of {counted(len(having), 'core')}: without waits, a step takes them "
        return None, f"{many}{most}{longer}"
    row = cores[late[0]]
    often = f"It comes last in {row.slowest_in or 0:,} of {counted(len(steps), 'step')}."
    one = (
        f"{row.label} is the slowest of {counted(len(having), 'core')}: without waits, its step takes {longer} {often}"
    )
    return late[0], one


_LEAST_UNEVEN = 5.0
"""Cores are not even where their own times, or their idle times in equal steps, differ by so many percent of a step."""


def _why_uneven(cores: Sequence[HostRow], whole: float) -> str:
    """A sentence where no core delays the others, and one takes longer, or is idle for more of a step, than another."""
    none, own = f"None of {counted(len(cores), 'core')} delays the others", [row.own_ps or 0.0 for row in cores]
    idle = [row.step_idle_percent or 0.0 for row in cores]
    if 100.0 * (max(own) - min(own)) >= _LEAST_UNEVEN * whole > 0:
        most, least = cores[int(np.argmax(own))], cores[int(np.argmin(own))]
        return f"{none}: {most.label} takes {time(max(own))} for a step, {least.label} {time(min(own))}."
    if max(idle) - min(idle) < _LEAST_UNEVEN:
        return ""
    most, least = cores[int(np.argmax(idle))], cores[int(np.argmin(idle))]
    return (
        f"{none}: {most.label} is idle for {share(max(idle) / 100.0)} of a step, {least.label} for "
        f"{share(min(idle) / 100.0)}."
    )


def _why_alone(cores: Sequence[HostRow], note: str) -> str:
    if not cores:
        return "There is no core in this profile."
    if len(cores) == 1:
        return f"There is one core, {cores[0].label}: there is nothing to compare it with."
    if sum(core.step_time is not None for core in cores) == 1:
        return "One core has steps: there is nothing to compare it with."
    return f"Steps can't be compared: {note or 'the cores share no step'}."


# --- cores of one group


def hosts_of_group(summaries: Sequence[HostSummary], group: CoreGroup) -> list[HostSummary]:
    """The hosts of a group, with its cores, their steps and their chips, as if they had no others."""
    names, hosts = set(group.core_names), list[HostSummary]()
    for host in in_group(summaries, group):
        cores = {name: chip for name, chip in host.cores.items() if name in names}
        observed = tuple(of for of in host.observed if of.name in names)
        chips = _chips(host, cores)
        duty = tuple(chip for chip in host.duty if chip.chip in chips)
        hosts.append(replace(host, cores=cores, core_count=len(cores), observed=observed, duty=duty))
    return hosts


def _chips(host: HostSummary, cores: Mapping[str, int | None]) -> set[str]:
    """The chips of some cores, as the duty cycles of a host name them."""
    named = {chip.chip for chip in host.duty}
    planes = [(chip, f"/device:TPU:{name.rpartition(':')[2]}") for name, chip in cores.items()]
    return {plane if plane in named else f"chip {chip}" for chip, plane in planes}
