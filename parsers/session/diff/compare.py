"""Compares two runs: B, the run after, against A, the run before. What it holds is in `parsers.session.diff.model`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache, partial
from itertools import product, starmap

import numpy as np

from tpuprof.parsers.base.errors import INTERNAL, ProfileError, behind_wall, one_part
from tpuprof.parsers.base.intervals import Bools, Floats, grouped, median, totals
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.hlo.programs import module_name
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.roofline import WORK, summed_rows, work_of
from tpuprof.parsers.pages.memory.compiled import CompiledModules
from tpuprof.parsers.pages.memory.key import MEMORY
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.parsers.pages.shared.common import why_no_ops
from tpuprof.parsers.pages.shared.split_runs import refuse_one_capture
from tpuprof.parsers.session.diff import beside, model, noise
from tpuprof.parsers.session.diff.cautions import cautions, different_programs
from tpuprof.parsers.session.diff.groups import categories, classes, op_changes, op_groups, owner_changes
from tpuprof.parsers.session.diff.match import matched
from tpuprof.parsers.session.diff.measure import (
    STEPS_OF_HOST,
    BatchedTimes,
    StepsSummary,
    listed_ops,
    measure_steps,
    measure_whole,
)
from tpuprof.parsers.session.diff.model import UNKNOWN_CHANGE, Basis, Diff, change, change_of, change_of_launches, less
from tpuprof.parsers.session.diff.noise import Bounds, within
from tpuprof.parsers.session.diff.phases import PhaseSide, phases
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.session.software import NOT_RECORDED
from tpuprof.parsers.steps.accounts.owners import owner_index
from tpuprof.parsers.steps.boundaries.runs import busiest_often

METRICS: tuple[tuple[str, str], ...] = (
    ("device_duty_cycle_percent", "device duty cycle"),
    ("flops_utilization_percent", "FLOPS utilization"),
    ("memory_bandwidth_utilization_percent", "HBM bandwidth"),
    ("roofline_efficiency_percent", "roofline efficiency"),
    ("mxu_utilization_percent", "MXU counter"),
    ("hbm_utilization_percent", "HBM counter"),
    ("device_idle_percent", "device idle"),
    ("host_idle_percent", "host idle"),
    ("bits16_percent", "16-bit compute"),
    ("bits32_percent", "32-bit compute"),
)
"""The figures of the overview that it compares: attribute of `Performance`, and its name in words."""


def compare(before: Session, after: Session, host: str | None = None) -> Diff:
    """Compares two runs; see `compare_launches`."""
    return compare_launches(([before], [after]), host)[0]


def compare_launches(
    sides: beside.Sides, host: str | None = None, detect: float = beside.DETECT, group: int | None = None
) -> tuple[Diff, tuple[Session, Session]]:
    """Compares one run, or several launches, with others; each launch is one observation where a side has several.

    Cores that do not wait for each other are compared group by group (`beside.core_groups`).

    Args:
        sides: sessions of A and B; it uses again what they have decoded.
        host: compares one host of each run; None compares all.
        detect: the size of a change that is to be found, as a fraction of the time before.
        group: the number, in the first run, of the only group of cores to compare; None compares all.

    Returns:
        The comparison, and the sessions that stand for both sides: of single runs, or of the median launches.

    Raises:
        ProfileError: a run cannot be read (exit code 4), or has no such host or group (3): of several, all of a side.
        Cancelled: the `is_cancelled` of a session said so.
    """
    for one, other in product(*sides):
        refuse_one_capture(one.run, other.run)
    notes: list[str] = []
    read = [_readable(side, host, notes) for side in sides]
    of_groups, alone = beside.sides_of_groups((read[0], read[1]), host, group)
    found = [_compared(of.sides, host, detect) for of in of_groups]
    shown, words = beside.most_changed([diff for diff, _ in found], of_groups, alone)
    diff, middle = found[shown]
    return replace(diff, warnings=(*notes, *words, *diff.warnings)), middle


def _compared(sides: beside.Sides, host: str | None, detect: float) -> tuple[Diff, tuple[Session, Session]]:
    """Compares runs of which all cores depend on each other; see `compare_launches`."""
    runs = _with_time_between(_of_one_step([[_Run.of(session, host) for session in side] for side in sides]))
    basis = _basis([*runs[0], *runs[1]])
    bounds: Sequence[Sequence[Bounds | None]] = [[None] * len(side) for side in runs]
    if basis == "step":
        bounds = noise.launch_bounds([[run.step_ps for run in side] for side in runs])
    before, after = (_Side.of(side, basis, of) for side, of in zip(runs, bounds, strict=True))
    diff = _diff((before, after), basis, host, detect)
    if diff.launches is not None:
        notes = [diff.launches.order] * bool(diff.launches.order) + [beside.OF_MEDIAN]
        diff = replace(diff, warnings=(*notes, *diff.warnings))
    if basis == "step" and before.run.has_time_between:
        diff = replace(diff, warnings=(_LIE_APART, *diff.warnings))
    return diff, (before.run.session, after.run.session)


_LIE_APART = "steps lie apart: each counts with the time up to the next one, and the last does not count"


def _readable(side: Sequence[Session], host: str | None, notes: list[str]) -> list[Session]:
    """The sessions of a side that can be read, ahead of all pages: that takes the most memory."""
    found, errors = list[Session](), list[ProfileError]()
    for session in side:
        try:
            with one_part(f"read the run {printable(session.run.name)}"):
                session.reduced(STEPS_OF_HOST, host)
            found.append(session)
        except ProfileError as error:
            errors.append(error)
            notes.append(f"{printable(session.run.name)} is left out: {error.sentence}")
    if not found:
        raise errors[0]
    return found


# --- what there is of each run -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Run:
    """What the pages of one run say."""

    session: Session
    page: Overview
    ops: OpsPage
    summaries: tuple[StepsSummary, ...]
    files: dict[str, HostFile]
    step_ps: Floats
    module_ps: dict[str, float]
    module_runs: dict[str, list[int]]
    busiest: str
    no_steps: str = ""
    has_time_between: bool = False

    @property
    def runs(self) -> int:
        """How often the busiest module ran."""
        return max(1, *self.module_runs[self.busiest]) if self.busiest else 0

    @property
    def infers_steps(self) -> bool:
        """Whether a step is a period of the busiest module."""
        time = self.page.performance.step_time
        return bool(len(self.step_ps)) and time is not None and time.source == "modules"

    @property
    def captured(self) -> float:
        """When it was captured, in seconds since 1970."""
        start = self.page.environment.profile_start_ns
        return self.session.run.time if start is None else start / 1e9

    @classmethod
    def of(cls, session: Session, host: str | None) -> _Run:
        summaries = tuple(session.reduced(STEPS_OF_HOST, host).summaries)  # the pages are made of them
        page, ops = session.page(OVERVIEW, host), session.page(OPS, host)
        step_ps = np.array([step.duration_ps for step in page.steps], np.float64)
        files = {file.label: file for file in session.run.hosts}
        times, counts = _modules_of(summaries)
        busiest = busiest_often(times, counts) or max(times, key=lambda name: (times[name], name), default="")
        return cls(session, page, ops, summaries, files, step_ps, times, counts, busiest)

    @property
    def has_ops_by_step(self) -> bool:
        """Whether it is known in which step each op ran: of cores of a TPU alone."""
        return any(summary.steps is not None for summary in self.summaries)

    @property
    def why_no_steps(self) -> str:
        if len(self.step_ps):
            return ""
        return self.no_steps or self.page.unknown.get("performance.step_time_ms", "the profile has no steps")


def _modules_of(summaries: Sequence[HostSummary]) -> tuple[dict[str, float], dict[str, list[int]]]:
    """The time of each module over all hosts and cores, and how often it ran on each host."""
    modules = [(module_name(module.name), module) for summary in summaries for module in summary.requests.modules]
    counts = grouped(
        (name, len(module) if module.is_joined else round(len(module) / max(1, module.cores)))
        for name, module in modules
    )
    return totals((name, module.core_ps) for name, module in modules), counts


def _of_one_step(sides: Sequence[Sequence[_Run]]) -> list[list[_Run]]:
    """The runs, without steps where these are periods of one module in some and of another in others.

    A program that got faster need not have most time any more. Then times are of runs of the module that has most in
    all.
    """
    runs = [run for side in sides for run in side]
    common = set.intersection(*(set(run.module_ps) for run in runs))
    if not all(run.infers_steps for run in runs) or len({run.busiest for run in runs}) == 1 or not common:
        return [list(side) for side in sides]
    unit = max(common, key=lambda name: (sum(run.module_ps[name] for run in runs), name))

    def without_steps(run: _Run) -> _Run:
        return replace(run, step_ps=np.zeros(0), busiest=unit, no_steps=f"a step is a period of {run.busiest}")

    return [list(map(without_steps, side)) for side in sides]


def _with_time_between(sides: Sequence[Sequence[_Run]]) -> list[list[_Run]]:
    """The runs, each step with the time up to the next one where steps of any lie apart: it takes that longer."""
    accounts = [run.page.account for side in sides for run in side]
    if not any(account is not None and account.steps_lie_apart for account in accounts):
        return [list(side) for side in sides]

    def with_between(run: _Run) -> _Run:
        account = run.page.account
        if account is None or not run.has_ops_by_step or len(account.steps) != len(run.step_ps):
            return run
        page = replace(run.page, account=replace(account, steps=account.periods))
        step_ps = np.array([period.time_ps for period in account.periods])
        return replace(run, page=page, step_ps=step_ps, has_time_between=True)

    return [list(map(with_between, side)) for side in sides]


def _basis(runs: Sequence[_Run]) -> Basis:
    if all(len(run.step_ps) for run in runs):
        return "step"
    return "module run" if all(run.runs and len(run.ops) for run in runs) else "capture"


def _measured(run: _Run, basis: Basis, bounds: Bounds | None) -> BatchedTimes:
    if bounds is None:
        return measure_whole(run.ops, run.summaries, run.runs if basis == "module run" else 1)
    if not run.has_ops_by_step:
        return measure_whole(run.ops, run.summaries, len(run.step_ps))
    return measure_steps(run.ops, run.summaries, bounds, run.has_time_between)


@dataclass(frozen=True, slots=True)
class _Side:
    """One run, or several launches.

    Attributes:
        runs: of the side; bounds: how long the typical steps of each are, None without steps.
        own: the times of each run; launches: what is told of each.
    """

    runs: Sequence[_Run]
    bounds: Sequence[Bounds | None]
    own: Sequence[BatchedTimes]
    launches: Sequence[model.Launch]

    @classmethod
    def of(cls, runs: Sequence[_Run], basis: Basis, bounds: Sequence[Bounds | None]) -> _Side:
        own = [_measured(run, basis, of) for run, of in zip(runs, bounds, strict=True)]
        return cls(runs, bounds, own, [_launch(*each) for each in zip(runs, bounds, own, strict=True)])

    @property
    def middle(self) -> int:
        """The number of the median launch, the shorter of two, which stands for all."""
        order = np.argsort([launch.time_ps for launch in self.launches], kind="stable")
        return int(order[(len(order) - 1) // 2])

    @property
    def run(self) -> _Run:
        return self.runs[self.middle]

    @property
    def pooled(self) -> BatchedTimes:
        return beside.pooled(self.own, [run.ops.table for run in self.runs], self.middle)

    @property
    def steps(self) -> list[Floats]:
        return [run.step_ps for run in self.runs]

    @property
    def is_typical(self) -> list[Bools]:
        """bool[steps] of each run: which steps are typical."""
        return [within(of, each or noise.EVERY_STEP) for of, each in zip(self.steps, self.bounds, strict=True)]

    @property
    def typical(self) -> list[Floats]:
        """The times of the typical steps of each run."""
        return [of[mask] for of, mask in zip(self.steps, self.is_typical, strict=True)]


def _launch(run: _Run, bounds: Bounds | None, own: BatchedTimes) -> model.Launch:
    time = own.whole if bounds is None else noise.estimate_steps(run.step_ps[within(run.step_ps, bounds)])
    of = run.session.run
    return model.Launch(of.name, of.path, run.captured, len(run.step_ps), time.mean, time.error)


# --- the comparison ------------------------------------------------------------------------------------------------


def _diff(sides: tuple[_Side, _Side], basis: Basis, host: str | None, detect: float) -> Diff:
    unknown: dict[str, str] = {}
    runs = [side.run for side in sides]
    has_launches = any(len(side.runs) > 1 for side in sides)
    own = [side.own[side.middle] for side in sides]
    before, after = [side.pooled for side in sides] if has_launches else own
    steps = _steps(sides, has_launches) if basis == "step" else None
    if steps is None:
        unknown["steps"] = _of_both([next(filter(None, (run.why_no_steps for run in side.runs)), "") for side in sides])
    has_cores = all(run.ops.core_count for run in runs)
    total = change_of(before.whole, after.whole) if has_cores else UNKNOWN_CHANGE
    total = total if steps is None else steps.typical
    pairs = matched(before.ops, after.ops, runs[0].ops.table, runs[1].ops.table)
    if not before.ops or not after.ops:
        unknown["ops"] = _of_both([why_no_ops(run.summaries) for run in runs])
    ops = op_changes(pairs, before, after)
    tables = runs[0].ops.table, runs[1].ops.table
    different = different_programs(before, after, pairs)
    accounts = [[run.page.account for run in side.runs] for side in sides]
    compiled = [run.session.page(MEMORY, host) for run in runs]
    failed: list[str] = []
    settings = behind_wall("compare settings", lambda: _settings(runs, own, compiled, unknown), failed) or ()
    figures = _figures(runs, unknown)
    work, traffic = starmap(model.plain_change, zip(*map(_work, runs, own), strict=True))
    programs = runs[0].ops.program, runs[1].ops.program
    compare_memory = partial(beside.modules_memory, before, after, (compiled[0], compiled[1]), programs)
    modules = behind_wall("compare the memory of modules", compare_memory, failed)
    if not modules:
        unknown["modules"] = INTERNAL if modules is None else "neither run names its programs"
    names = _names([run.session.run for run in runs])
    of_sides = [_side(side, name, basis) for side, name in zip(sides, names, strict=True)]
    diff = Diff(
        before=of_sides[0],
        after=of_sides[1],
        basis=basis,
        steps=steps,
        owners=() if steps is None else owner_changes(accounts, [side.bounds for side in sides], tables),
        ops=tuple(op for op, _ in ops),
        groups=op_groups(ops, before, after, tables),
        categories=categories(before, after),
        classes=classes(before, after) if has_cores and steps is None else (),
        total=total,
        phases=(),
        settings=settings,
        figures=figures,
        traffic=traffic,
        work=work,
        modules=modules or (),
        unknown=unknown,
        warnings=(
            *cautions(of_sides, basis, pairs, bool(different)),
            *_of_whole_captures(runs, basis),
            *beside.about_settings(settings),
            *failed,
        ),
        different=different,
        launches=beside.launches_of(sides[0].launches, sides[1].launches, detect) if has_launches else None,
    )
    parts = [
        PhaseSide(of, cache(partial(measure_whole, run.ops, run.summaries, 1)), run.summaries, run.ops.table)
        for run, of in zip(runs, own, strict=True)
    ]
    found = phases((parts[0], parts[1]), pairs, diff) if has_cores and ops else ()
    if not found:
        unknown["phases"] = unknown.get("ops") or "no run of a module is recorded, so programs cannot be distinguished"
    return replace(diff, phases=found)


def _of_whole_captures(runs: Sequence[_Run], basis: Basis) -> list[str]:
    names = [name for name, run in zip("AB", runs, strict=True) if basis == "step" and not run.has_ops_by_step]
    capture = "the whole capture, divided by its steps" if len(names) == 1 else "whole captures, divided by their steps"
    words = f"the ops of {' and '.join(names)} are those of {capture}: the profile does not give them by step"
    return [words] if names else []


def _settings(
    runs: Sequence[_Run], times: Sequence[BatchedTimes], compiled: Sequence[CompiledModules], unknown: dict[str, str]
) -> tuple[model.SettingChange, ...]:
    found = [
        beside.settings_of(run.files, run.summaries, modules, of.runs)
        for run, modules, of in zip(runs, compiled, times, strict=True)
    ]
    told = [any(one.kind in ("version", "flag") for one in part) for part in found]
    if not all(told):
        each = _of_both(["" if is_told else NOT_RECORDED for is_told in told])
        unknown["settings"] = each if any(told) else f"in both runs, {NOT_RECORDED}"
    return beside.setting_changes(*found)


def _of_both(reasons: Sequence[str]) -> str:
    return "; ".join(f"{name}: {why}" for name, why in zip("AB", reasons, strict=True) if why)


def _names(runs: Sequence[Run]) -> list[str]:
    """The runs' names; where these are equal, the part of their paths that differs."""
    names = [run.name for run in runs]
    if names[0] != names[1] or runs[0].path == runs[1].path:
        return names
    paths = [os.path.abspath(run.path) for run in runs]
    top = os.path.commonpath(paths)
    return [os.path.relpath(path, top) for path in paths]


def _side(side: _Side, name: str, basis: Basis) -> model.Side:
    run = side.run
    page, typical = run.page, np.concatenate(side.is_typical)
    units, unit_name = 1, "capture"
    if basis == "step":
        units = int(np.count_nonzero(typical))
        unit_name = f"period of {run.busiest or 'the busiest module'}" if run.infers_steps else "step"
    elif basis == "module run":
        units, unit_name = run.runs, f"run of {run.busiest}"
    return model.Side(
        name=name if len(side.runs) == 1 else f"{name} (median of {len(side.runs)})",
        path=run.session.run.path,
        hosts=page.hosts,
        device_type=page.environment.device_type,
        core_count=page.environment.device_core_count,
        units=units,
        unit_name=unit_name,
        step_ps=tuple(round(ps) for each in side.runs for ps in each.step_ps.tolist()),
        typical=tuple(typical.tolist()),
        step_time=page.performance.step_time,
        why_no_steps=run.why_no_steps,
        table=run.ops.table,
        programs=run.ops.program,
        warnings=page.warnings,
        simulated=page.environment.simulated,
    )


def _steps(sides: tuple[_Side, _Side], has_launches: bool) -> model.StepTimeChanges:
    typical, every = [side.typical for side in sides], [side.steps for side in sides]
    one, other = (np.concatenate(steps) for steps in every)
    if has_launches:
        usual, mean, middle = change_of_launches(typical), change_of_launches(every), change_of_launches(every, median)
    else:
        usual = change_of(noise.estimate_steps(typical[0][0]), noise.estimate_steps(typical[1][0]))
        mean = change_of(*noise.estimate_both(one, other, [_compiling(side.run) for side in sides]))
        middle = change_of(noise.estimate_median(one), noise.estimate_median(other))
    shortest, longest = (change(float(of(one)), float(of(other))) for of in (np.min, np.max))
    return model.StepTimeChanges(usual, mean, middle, shortest, longest, less(mean, usual))


_COMPILES = 0.01  # share of a step from which on it is one that compiles


def _compiling(run: _Run) -> Bools | None:
    """bool[steps]: in which steps programs were compiled; None where that is unknown."""
    account = run.page.account
    if account is None or len(account.steps) != len(run.step_ps):
        return None
    compiling = np.array([step.owner_ps[owner_index("compile")] for step in account.steps])
    return compiling > _COMPILES * run.step_ps


def _work(run: _Run, own: BatchedTimes) -> list[float | None]:
    """FLOPs, and bytes of HBM, in a unit on the mean core, as often as each op runs there; None where not counted."""
    of_row, table = listed_ops(run.ops)[1], run.ops.table
    done = summed_rows(work_of(table)[:, [*map(WORK.index, ("flops", "hbm"))]], of_row, len(own.ops)).T
    every = done / np.maximum(sum_by_key(of_row, table.occurrences, len(own.ops)), 1)
    return [float(np.nansum(each * own.count)) if np.isfinite(each).any() else None for each in every]


def _figures(runs: Sequence[_Run], unknown: dict[str, str]) -> tuple[model.KeyMetric, ...]:
    figures = []
    for key, label in METRICS:
        values: list[float | None] = [getattr(run.page.performance, key) for run in runs]
        if values == [None, None]:
            continue
        for side, run, value in zip(("before", "after"), runs, values, strict=True):
            if value is None:
                dotted = f"compute_precision.{key}" if key.startswith("bits") else key
                reason = run.page.unknown.get(f"performance.{dotted}", "the profile does not say")
                unknown[f"figures.{key}.{side}"] = reason
        figures.append(model.KeyMetric(key, label, change(*values)))
    return tuple(figures)
