"""Compares two runs: B, the run after, against A, the run before. What it holds is in `parsers.session.diff.model`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.hlo.programs import module_name
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.memory.key import MEMORY
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.parsers.pages.shared.common import why_no_ops
from tpuprof.parsers.pages.shared.split_runs import refuse_one_capture
from tpuprof.parsers.session.diff import model, noise
from tpuprof.parsers.session.diff.beside.memory import modules_memory
from tpuprof.parsers.session.diff.beside.settings import about_settings, setting_changes, settings_of
from tpuprof.parsers.session.diff.cautions import cautions, different_programs
from tpuprof.parsers.session.diff.groups import categories, classes, kinds, op_changes, op_groups, owner_changes
from tpuprof.parsers.session.diff.match import matched
from tpuprof.parsers.session.diff.measure import STEPS_OF_HOST, BatchedTimes, StepsSummary, measure_steps, measure_whole
from tpuprof.parsers.session.diff.model import (
    UNKNOWN_CHANGE,
    Basis,
    Change,
    Diff,
    change,
    change_of,
)
from tpuprof.parsers.session.diff.noise import Bounds, typical_bounds, within
from tpuprof.parsers.session.diff.phases import PhaseSide, phases
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.session.software import NOT_RECORDED
from tpuprof.parsers.steps.accounts.owners import owner_index

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


def compare(
    before: Session,
    after: Session,
    host: str | None = None,
) -> Diff:
    """Compares two runs.

    Args:
        before, after: sessions of A and B; it uses again what they have decoded.
        host: compares one host of each run; None compares all.

    Raises:
        ProfileError: a run cannot be read (exit code 4), or has no such host (3).
        Cancelled: the `is_cancelled` of a session said so.
    """
    refuse_one_capture(before.run, after.run)
    sessions = before, after
    for session in sessions:
        session.reduced(STEPS_OF_HOST, host)  # ahead of all pages: that takes the most memory
    sides = [_Run.of(session, host) for session in sessions]
    sides = _of_one_step(sides)
    basis = _basis(sides)
    bounds = typical_bounds(sides[0].step_ps, sides[1].step_ps) if basis == "step" else (None, None)
    times = [_measured(run, basis, of) for run, of in zip(sides, bounds, strict=True)]
    return _diff(sides, basis, bounds, times, host)


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
    modules: dict[str, tuple[int, int]]
    busiest: str
    no_steps: str = ""

    @property
    def runs(self) -> int:
        """How often the busiest module ran."""
        return self.modules.get(self.busiest, (0, 0))[1]

    @property
    def infers_steps(self) -> bool:
        """Whether a step is a period of the busiest module."""
        time = self.page.performance.step_time
        return bool(len(self.step_ps)) and time is not None and time.source == "modules"

    @classmethod
    def of(cls, session: Session, host: str | None) -> _Run:
        summaries = tuple(session.reduced(STEPS_OF_HOST, host).summaries)  # the pages are made of them
        page, ops = session.page(OVERVIEW, host), session.page(OPS, host)
        step_ps = np.array([step.duration_ps for step in page.steps], np.float64)
        files = {file.label: file for file in session.run.hosts}
        modules = _modules_of(summaries)
        busiest = max(modules, key=lambda name: (modules[name][0], name), default="")
        return cls(session, page, ops, summaries, files, step_ps, modules, busiest)

    @property
    def has_ops_by_step(self) -> bool:
        """Whether it is known in which step each op ran: of cores of a TPU alone."""
        return any(summary.steps is not None for summary in self.summaries)

    @property
    def why_no_steps(self) -> str:
        if len(self.step_ps):
            return ""
        return self.no_steps or self.page.unknown.get("performance.step_time_ms", "the profile has no steps")


def _modules_of(summaries: Sequence[HostSummary]) -> dict[str, tuple[int, int]]:
    """The time of each module over all hosts, and how often it ran."""
    times: dict[str, int] = {}
    counts: dict[str, list[int]] = {}
    for summary in summaries:
        for module in summary.requests.modules:
            name = module_name(module.name)
            times[name] = times.get(name, 0) + int(module.duration_ps.sum())
            runs = len(module) if module.is_joined else round(len(module) / max(1, module.cores))
            counts.setdefault(name, []).append(runs)
    return {name: (time, max(1, *counts[name])) for name, time in times.items()}


def _of_one_step(sides: Sequence[_Run]) -> list[_Run]:
    """The runs, without steps where these are periods of one module in A and of another in B.

    A program that got faster need not have most time any more. Then times are of runs of the module that has most in
    both.
    """
    a, b = sides
    common = a.modules.keys() & b.modules.keys()
    if not (a.infers_steps and b.infers_steps and a.busiest != b.busiest and common):
        return list(sides)
    unit = max(common, key=lambda name: (a.modules[name][0] + b.modules[name][0], name))
    none = np.zeros(0)
    return [replace(run, step_ps=none, busiest=unit, no_steps=f"a step is a period of {run.busiest}") for run in sides]


def _basis(runs: Sequence[_Run]) -> Basis:
    if all(len(run.step_ps) for run in runs):
        return "step"
    return "module run" if all(run.runs and len(run.ops) for run in runs) else "capture"


def _measured(run: _Run, basis: Basis, bounds: Bounds | None) -> BatchedTimes:
    if bounds is None:
        return measure_whole(run.ops, run.summaries, run.runs if basis == "module run" else 1)
    if not run.has_ops_by_step:
        return measure_whole(run.ops, run.summaries, len(run.step_ps))
    return measure_steps(run.ops, run.summaries, bounds)


# --- the comparison ------------------------------------------------------------------------------------------------


def _diff(
    runs: Sequence[_Run],
    basis: Basis,
    bounds: tuple[Bounds | None, Bounds | None],
    times: Sequence[BatchedTimes],
    host: str | None,
) -> Diff:
    unknown: dict[str, str] = {}
    before, after = times
    names = _names([run.session.run for run in runs])
    sides = [_side(run, name, basis, of) for run, name, of in zip(runs, names, bounds, strict=True)]
    steps = _steps(runs, bounds)
    if steps is None:
        unknown["steps"] = _of_both([run.why_no_steps for run in runs])
    has_cores = all(run.ops.core_count for run in runs)
    total = change_of(before.whole, after.whole) if has_cores else UNKNOWN_CHANGE
    total = total if steps is None else steps.typical
    pairs = matched(before.ops, after.ops, runs[0].ops.table, runs[1].ops.table)
    if not before.ops or not after.ops:
        unknown["ops"] = _of_both([why_no_ops(run.summaries) for run in runs])
    ops = op_changes(pairs, before, after)
    tables = runs[0].ops.table, runs[1].ops.table
    different = different_programs(before, after, pairs)
    settings = _settings(runs, times, host, unknown)
    diff = Diff(
        before=sides[0],
        after=sides[1],
        basis=basis,
        steps=steps,
        owners=owner_changes(runs[0].page.account, runs[1].page.account, bounds, tables) if steps is not None else (),
        ops=tuple(op for op, _ in ops),
        groups=op_groups(ops, before, after, tables),
        categories=categories(before, after),
        classes=classes(before, after) if has_cores and steps is None else (),
        kinds=() if different else kinds(before, after, tables),
        total=total,
        phases=(),
        settings=settings,
        figures=_figures(runs, unknown),
        modules=_modules(runs, before, after, host, unknown),
        unknown=unknown,
        warnings=(
            *cautions(sides, basis, pairs, bool(different)),
            *_of_whole_captures(runs, basis),
            *about_settings(settings),
        ),
        different=different,
    )
    parts = [
        PhaseSide(of, cache(partial(measure_whole, run.ops, run.summaries, 1)), run.summaries, run.ops.table)
        for run, of in zip(runs, times, strict=True)
    ]
    found = phases((parts[0], parts[1]), pairs, diff) if has_cores and ops else ()
    if not found:
        unknown["phases"] = unknown.get("ops") or "no run of a module is recorded, so programs cannot be distinguished"
    return replace(diff, phases=found)


def _of_whole_captures(runs: Sequence[_Run], basis: Basis) -> list[str]:
    names = [name for name, run in zip("AB", runs, strict=True) if basis == "step" and not run.has_ops_by_step]
    capture = "the whole capture, divided by its steps" if len(names) == 1 else "whole captures, divided by their steps"
    return (
        [f"the ops of {' and '.join(names)} are those of {capture}: the profile does not give them by step"]
        if names
        else []
    )


def _settings(
    runs: Sequence[_Run], times: Sequence[BatchedTimes], host: str | None, unknown: dict[str, str]
) -> tuple[model.SettingChange, ...]:
    found = [
        settings_of(run.files, run.summaries, run.session.page(MEMORY, host), of.runs)
        for run, of in zip(runs, times, strict=True)
    ]
    told = [any(one.kind in ("version", "flag") for one in part) for part in found]
    if not all(told):
        each = _of_both(["" if is_told else NOT_RECORDED for is_told in told])
        unknown["settings"] = each if any(told) else f"in both runs, {NOT_RECORDED}"
    return setting_changes(*found)


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


def _side(run: _Run, name: str, basis: Basis, bounds: Bounds | None) -> model.Side:
    page, time = run.page, run.page.performance.step_time
    typical = within(run.step_ps, bounds) if bounds is not None else np.ones(len(run.step_ps), np.bool_)
    units, unit_name = 1, "capture"
    if basis == "step":
        units = int(np.count_nonzero(typical))
        inferred = time is not None and time.source == "modules"
        unit_name = f"period of {run.busiest or 'the busiest module'}" if inferred else "step"
    elif basis == "module run":
        units, unit_name = run.runs, f"run of {run.busiest}"
    return model.Side(
        name=name,
        path=run.session.run.path,
        hosts=page.hosts,
        device_type=page.environment.device_type,
        core_count=page.environment.device_core_count,
        units=units,
        unit_name=unit_name,
        step_ps=tuple(step.duration_ps for step in page.steps),
        typical=tuple(typical.tolist()),
        step_time=time,
        why_no_steps=run.why_no_steps,
        table=run.ops.table,
        programs=run.ops.program,
        warnings=page.warnings,
        simulated=page.environment.simulated,
    )


def _steps(runs: Sequence[_Run], bounds: Sequence[Bounds | None]) -> model.StepTimeChanges | None:
    values = [run.step_ps for run in runs]
    usual = [part[within(part, of)] for part, of in zip(values, bounds, strict=True) if of is not None]
    if not usual:
        return None
    typical = change_of(noise.estimate_steps(usual[0]), noise.estimate_steps(usual[1]))
    mean = change_of(*noise.estimate_both(values[0], values[1], [_compiling(run) for run in runs]))
    return model.StepTimeChanges(
        typical=typical,
        mean=mean,
        median=change_of(noise.estimate_median(values[0]), noise.estimate_median(values[1])),
        minimum=change(*(float(part.min()) for part in values)),
        maximum=change(*(float(part.max()) for part in values)),
        odd=_less(mean, typical),
    )


_COMPILES = 0.01  # share of a step from which on it is one that compiles


def _compiling(run: _Run) -> Bools | None:
    """bool[steps]: in which steps programs were compiled; None where that is unknown."""
    account = run.page.account
    if account is None or len(account.steps) != len(run.step_ps):
        return None
    compiling = np.array([step.owner_ps[owner_index("compile")] for step in account.steps])
    out: Bools = compiling > _COMPILES * run.step_ps
    return out


def _less(whole: Change, part: Change) -> Change:
    """A time without one of its parts, with the noise of the whole."""
    if whole.before is None or whole.after is None or part.before is None or part.after is None:
        return UNKNOWN_CHANGE
    return change(whole.before - part.before, whole.after - part.after, whole.noise)


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


def _modules(
    runs: Sequence[_Run], before: BatchedTimes, after: BatchedTimes, host: str | None, unknown: dict[str, str]
) -> tuple[model.ModuleMemory, ...]:
    compiled = runs[0].session.page(MEMORY, host), runs[1].session.page(MEMORY, host)
    memories = modules_memory(before, after, compiled, (runs[0].ops.program, runs[1].ops.program))
    if not memories:
        unknown["modules"] = "neither run names its programs"
    return memories
