"""What stands beside the times of two runs: memory, settings, groups of cores, and launches.

Memory is the HBM that the compiled modules with the most time need in both. Settings are versions, builds, flags and
the profiler's options that the profiles record. Groups of cores that do not wait for each other are each compared with
their like, and the one that changed most is shown.

Several launches may be one side of a comparison: each launch is one observation, and their spread is the noise. A
launch has its own memory layout, neighbours and clock, so that launches of one program differ several times as much as
the steps of one show. Their figures are the same as those of two runs: only the batches of steps become launches.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import closing

import numpy as np

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.intervals import median
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.memory.model import HBM, SpaceMemory
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.memory.compiled import CompiledModules
from tpuprof.parsers.pages.ops.ops import UNKNOWN_PROGRAM
from tpuprof.parsers.pages.shared.groups import APART, CoreGroup, groups_of_run, largest
from tpuprof.parsers.session.diff.match import matched
from tpuprof.parsers.session.diff.measure import BatchedTimes
from tpuprof.parsers.session.diff.model import Diff, Launch, Launches, Mark, ModuleMemory, SettingChange, plain_change
from tpuprof.parsers.session.diff.noise import estimate, launches_needed
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.session.software import Setting, in_order, program_settings, software

MOST_MODULES = 4
_LEAST_SHARE = 0.005
"""A main program takes at least this share of a step."""


def modules_memory(
    before: BatchedTimes,
    after: BatchedTimes,
    modules: tuple[CompiledModules, CompiledModules],
    labels: tuple[Sequence[str], Sequence[str]],
) -> tuple[ModuleMemory, ...]:
    """The main programs of two runs, those with the most time first.

    Args:
        labels: the program of each row of a run's op table, ``jit_step(7)``.
    """
    compared = []
    for name in _main_programs(before, after):
        problems: list[str] = []
        old, new = (
            _hbm(next((programs[op.row] for op in run.ops if op.program == name), None), compiled, problems)
            for run, compiled, programs in zip((before, after), modules, labels, strict=True)
        )
        compared.append(
            ModuleMemory(
                name=name,
                peak=plain_change(*(None if side is None else side.peak_bytes for side in (old, new))),
                arguments=plain_change(*(None if side is None else side.arguments_bytes for side in (old, new))),
                temporaries=plain_change(*(None if side is None else side.temporaries_bytes for side in (old, new))),
                problem=" ".join(dict.fromkeys(problems)),
            )
        )
    return tuple(compared)


def _main_programs(before: BatchedTimes, after: BatchedTimes) -> list[str]:
    times: dict[str, float] = {}
    for run in (before, after):
        whole = run.whole.mean
        for op, time in zip(run.ops, run.means.tolist(), strict=True):
            if op.program != UNKNOWN_PROGRAM and whole > 0:
                times[op.program] = times.get(op.program, 0.0) + time / whole
    main = sorted((name for name, share in times.items() if share >= _LEAST_SHARE), key=lambda name: -times[name])
    return main[:MOST_MODULES]


def _hbm(label: str | None, modules: CompiledModules, problems: list[str]) -> SpaceMemory | None:
    if label is None:
        problems.append("The program runs in one of the two only.")
        return None
    try:
        return modules.space(modules.find(label), HBM)
    except ProfileError as error:
        unknown = error.code == "unknown_module"
        problems.append(f"The compiled HLO of {label} is not in its profile." if unknown else error.sentence)
        return None


def settings_of(
    files: Mapping[str, HostFile], summaries: Sequence[HostSummary], modules: CompiledModules, programs: Iterable[str]
) -> tuple[Setting, ...]:
    """The settings of a run; where hosts differ, the values of all of them, each once.

    Args:
        modules: the compiled modules; programs: names of those whose attributes count.
    """
    values: dict[tuple[str, str], dict[str, None]] = {}
    kinds: dict[tuple[str, str], Setting] = {}
    for summary in summaries:
        with closing(Trace.open(files[summary.host].path)) as trace:
            for setting in software(trace.planes):
                key = setting.kind, setting.name
                kinds.setdefault(key, setting)
                values.setdefault(key, {})[setting.value] = None
    found = [Setting(kinds[key].kind, key[1], " | ".join(texts)) for key, texts in values.items()]
    return in_order([*found, *_of_programs(modules, set(programs))])


def _of_programs(modules: CompiledModules, names: set[str]) -> list[Setting]:
    """What JAX attached to the main programs; of several with one name, to the first that has it."""
    found: dict[str, Setting] = {}
    for source in modules.sources:
        for number, name in source.modules.names.items():
            module = source.modules.module(number) if name in names else None
            if module is not None:
                for setting in program_settings(name, module.proto.hlo_module.frontend_attributes.map):
                    found.setdefault(setting.name, setting)
    return list(found.values())


def setting_changes(before: Sequence[Setting], after: Sequence[Setting]) -> tuple[SettingChange, ...]:
    """Every setting of both."""
    changes = []
    old, new = ({(one.kind, one.name): one.value for one in side} for side in (before, after))
    for one in in_order({(one.kind, one.name): one for one in (*before, *after)}.values()):
        a, b = (side.get((one.kind, one.name)) for side in (old, new))
        mark: Mark = "new" if a is None else "gone" if b is None else "same" if a == b else "other"
        changes.append(SettingChange(one.kind, one.name, a, b, mark))
    return tuple(changes)


def about_settings(changes: Sequence[SettingChange]) -> list[str]:
    """Sentences on versions and flags that differ, where both profiles record some."""
    sentences = []
    for kind, word in (("version", "the software differs"), ("flag", "the flags differ")):
        told = [change for change in changes if change.kind == kind]
        if not all(any(getattr(change, side) is not None for change in told) for side in ("before", "after")):
            continue
        differing = [change for change in told if change.mark != "same"]
        if differing:
            names = examples([change.name for change in differing])
            sentences.append(f"{word}: {counted(len(differing), 'setting')}, {names}")
    return sentences


Sides = tuple[Sequence[Session], Sequence[Session]]

_KEYS: tuple[Callable[[Sequence[CoreGroup], int], Hashable], ...] = (
    lambda groups, at: (groups[at].programs[:1], groups[at].core_names),
    lambda groups, at: (
        groups[at].programs[:1],
        [of.programs[:1] for of in groups[:at]].count(groups[at].programs[:1]),
    ),
)
"""What makes groups of two runs alike: their program and cores; else their program, and which of it they are."""


@dataclass(frozen=True, slots=True)
class GroupSides:
    """A group of cores and its like in every other run, with sessions that show these alone.

    Attributes:
        groups: of the first run of each side; none where no run has several.
    """

    sides: Sides
    groups: tuple[CoreGroup, ...] = ()


def sides_of_groups(sides: Sides, host: str | None, number: int | None) -> tuple[list[GroupSides], str]:
    """The groups of all runs beside each other, of each run the largest where none are alike; and in words the others.

    Args:
        number: of the only group to compare, as the first run counts them; None for all.

    Raises:
        ProfileError: `unknown_group`, exit code 3, where the first run has no such group, or another not its like.
    """
    runs, second = [*sides[0], *sides[1]], len(sides[0])
    if number is not None:
        runs[0].of_core(f"group {number}", host)  # raises where there is none
    every = [groups_of_run(run, host) for run in runs]
    if all(len(groups) < 2 for groups in every) or not all(every):
        return [GroupSides(sides)], ""
    alike = _alike(every) or [[*map(largest, every)]]
    left = [(len(groups) - len(alike), side) for groups, side in zip((every[0], every[second]), "AB", strict=True)]
    words = " and ".join(f"{counted(count, 'other group')} of {side}" for count, side in left if count)
    found = []
    for groups in alike if number is None else [groups for groups in alike if groups[0].number == number]:
        alone = [run.of_core(f"group {of.number}", host) for run, of in zip(runs, groups, strict=True)]
        found.append(GroupSides((alone[:second], alone[second:]), (groups[0], groups[second])))
    if not found:
        sentence = f"Group {number} of the run before has no like in the run after."
        raise ProfileError("unknown_group", sentence, "leave --group out", EXIT_NOT_FOUND)
    return found, words and f"without a like: {words}"


def _alike(every: Sequence[Sequence[CoreGroup]]) -> list[list[CoreGroup]]:
    """The groups that all runs have, in the order of the first."""
    found, left = list[list[CoreGroup]](), every
    for key in _KEYS:
        keyed = [{key(groups, at): of for at, of in enumerate(groups)} for groups in left]
        found += [[of[each] for of in keyed] for each in keyed[0] if all(each in of for of in keyed)]
        left = [[of for of in groups if all(of != row[at] for row in found)] for at, groups in enumerate(left)]
    return sorted(found, key=lambda row: row[0].number)


def most_changed(compared: Sequence[Diff], of: Sequence[GroupSides], alone: str) -> tuple[int, list[str]]:
    """Which comparison to show: that of the group whose steps got slower most, else changed most; in words the rest."""
    shown, *rest = sorted(range(len(of)), key=lambda at: _slower(compared[at]), reverse=True)
    if not of[shown].groups:
        return shown, []
    before, after = (group.label for group in of[shown].groups)
    what = before if before == after else f"{before} of A with {after} of B"
    most = ", which changed most" if rest and any(_slower(compared[shown])) else ""
    others = ", ".join(f"group {of[at].groups[0].number} {_words(compared[at])}" for at in rest)
    words = (f"compared is {what}{most}", others, alone, "--group NUMBER compares another" if rest else "")
    return shown, [f"{APART}: {'; '.join(filter(None, words))}"]


def _changes(diff: Diff) -> list[float]:
    steps = () if diff.steps is None or diff.different else (diff.steps.typical, diff.steps.mean)
    return [of.relative for of in steps if of.mark in ("more", "less") and of.relative is not None]


def _slower(diff: Diff) -> tuple[float, float]:
    """How much longer a step takes, and by how much it changed in either direction."""
    changes = [0.0, *_changes(diff)]
    return max(changes), max(map(abs, changes))


def _words(diff: Diff) -> str:
    changes = _changes(diff)
    return f"{100 * changes[0]:+.1f}%" if changes else "unknown" if diff.steps is None or diff.different else "the same"


DETECT = 0.01
"""The size of a change that is to be found where nothing else is said."""

OF_MEDIAN = "times are means over launches; phases, memory, versions and HLO are of the median launch of each side"


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
