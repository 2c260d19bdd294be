"""The groups of a run's cores: inside one cores depend on each other, and groups stand side by side.

A host says which of its own cores belong together (`parsers.steps.boundaries.core_groups`); here those of several hosts
come together where their collectives need more devices than a host shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import examples, natural_key
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.hosts.step_summary import HostGroup
from tpuprof.parsers.hosts.summary import SUMMARY_OF_HOST, HostSummary
from tpuprof.parsers.pages.shared.key import PageSession
from tpuprof.parsers.steps.boundaries.observed import idle_percent
from tpuprof.parsers.steps.model import StepTime

_ROLES: Mapping[str, str] = {
    "trainer": r"train|update_params|grad|backward",
    "rollout": r"rollout|generate|sample",
    "prefill": r"prefill",
    "decode": r"decode",
    "evaluation": r"eval",
}
_ROLE = pattern("|".join(f"(?P<{role}>{words})" for role, words in _ROLES.items()))


@dataclass(frozen=True, slots=True)
class CoreGroup:
    """Some cores of a run that depend on each other, and on no other core.

    Attributes:
        number: counts the groups from 1 on, in the order of hosts and cores.
        core_names: ``host:ordinal`` of each core.
        programs: what they run, most time first; role: what for, as far as the first program's name says it.
        parts: for each host that has some of the cores its place among the summaries, and which of its groups it is.
        busy_ps: self time of their ops; busy_percent: share of the capture in which they ran ops, None where unknown.
        run_ps, run_count: the median run of the first program on a host, and the runs on all cores.
        step_time: of the steps that its cores share; None where they share none, or nobody asks.
    """

    number: int
    core_names: tuple[str, ...]
    programs: tuple[str, ...]
    role: str | None
    parts: tuple[tuple[int, int], ...]
    busy_ps: int
    busy_percent: float | None
    run_ps: int
    run_count: int
    step_time: StepTime | None = None

    @property
    def step_ps(self) -> float | None:
        """The median step; None where its cores share none."""
        return None if self.step_time is None else self.step_time.median_ps

    @property
    def label(self) -> str:
        """``group 3 (jit_decode on host0:2)``."""
        program = f"{self.programs[0]} on " if self.programs else ""
        return f"group {self.number} ({program}{examples(self.core_names)})"


def groups_of(summaries: Sequence[HostSummary]) -> tuple[CoreGroup, ...]:
    """The groups of the cores of some hosts."""
    if all((of.thread_count or of.gpu_count) and len(of.groups) <= 1 for of in summaries):
        return ()  # programs on CPUs or GPUs that are one group each are compared as hosts
    together: dict[object, list[tuple[int, int]]] = {}
    needed = _needed(summaries)
    for part in [(at, of) for at, summary in enumerate(summaries) for of in range(len(summary.groups))]:
        key = _meets(_part(summaries, part), needed)
        together.setdefault(part if key is None else key, []).append(part)
    made = [_made(summaries, parts) for parts in together.values()]
    made.sort(key=lambda group: (group.parts[0][0], natural_key(group.core_names[0])))
    return tuple(replace(group, number=number) for number, group in enumerate(made, 1))


def _part(summaries: Sequence[HostSummary], part: tuple[int, int]) -> HostGroup:
    return summaries[part[0]].groups[part[1]]


def _needed(summaries: Sequence[HostSummary]) -> dict[str, int]:
    """How many devices the collectives of each program need: the most that a host knows, 0 where one doesn't."""
    needed: dict[str, int] = {}
    for group in (group for summary in summaries for group in summary.groups if group.devices is not None):
        devices, name = group.devices or 0, _program(group)
        needed[name] = max(devices, needed.get(name, devices)) if devices and needed.get(name, 1) else 0
    return needed


def _program(group: HostGroup) -> str:
    return group.programs[0] if group.programs else ""


def _meets(group: HostGroup, needed: Mapping[str, int]) -> object:
    """What a host's group has in common with those of other hosts that it depends on; None where it needs none.

    Where no line says which programs ran, hosts are taken to run one.
    """
    if group.sends or not group.programs:
        return group.sends
    devices = needed.get(_program(group))
    return None if devices is None or 0 < devices <= len(group.core_names) else _program(group)


def _made(summaries: Sequence[HostSummary], parts: Sequence[tuple[int, int]]) -> CoreGroup:
    groups = [_part(summaries, part) for part in parts]
    largest = max(groups, key=lambda group: group.busy_ps)
    names = tuple(name for group in groups for name in group.core_names)
    idle = idle_percent([of for at, _ in parts for of in summaries[at].observed if of.name in names])
    role = _ROLE.search(_program(largest).lower())
    return CoreGroup(
        number=0,
        core_names=names,
        programs=largest.programs,
        role=None if role is None else role.lastgroup,
        parts=tuple(parts),
        busy_ps=sum(group.busy_ps for group in groups),
        busy_percent=None if idle is None else 100.0 - idle,
        run_ps=largest.run_ps,
        run_count=sum(group.run_count for group in groups),
    )


def groups_of_run(session: PageSession, host: str | None) -> tuple[CoreGroup, ...]:
    """The groups of the cores of a run, or of one host; errors as for `PageSession.reduced`."""
    return groups_of(session.reduced(SUMMARY_OF_HOST, host).summaries)


_NEARLY = 0.9
"""Noise does not decide which of several engines is shown: with this share of the busiest one's time all are equal."""


def largest(groups: Sequence[CoreGroup]) -> CoreGroup:
    """The group with most cores, of equals a host's first, and the first that is nearly as busy as any of these."""
    sizes = [(len(group.core_names), any(not of for _, of in group.parts)) for group in groups]
    equal = [group for group, size in zip(groups, sizes, strict=True) if size == max(sizes)]
    busiest = max(group.busy_ps for group in equal)
    return next(group for group in equal if group.busy_ps >= _NEARLY * busiest)


def group_shown(summaries: Sequence[HostSummary]) -> CoreGroup | None:
    """The group whose steps pages show, the largest; None where all cores are one."""
    groups = groups_of(summaries)
    return largest(groups) if len(groups) > 1 else None


APART = "the cores form groups that do not wait for each other"
COMPARED_INSIDE = f"{APART}: hosts, cores and steps are compared inside each; --group NUMBER shows one alone"


def shown_words(group: CoreGroup) -> str:
    """A sentence on whose steps are shown."""
    return f"{APART}: steps, reasons and the verdict are those of {group.label}; --group NUMBER shows another"


def in_group(summaries: Sequence[HostSummary], group: CoreGroup) -> list[HostSummary]:
    """The hosts of a group, each with the steps of the group's cores; what else they add is that of all their cores."""
    return [_of_group(summaries[at], of) for at, of in group.parts]


def _of_group(summary: HostSummary, of: int) -> HostSummary:
    group = summary.groups[of]
    steps, note = (group.steps, group.step_note) if of else (summary.steps, summary.step_note)
    alone = replace(summary, steps=steps, step_note=note, groups=(group,))
    generic = group.generic if of else summary.generic
    if generic is None:
        return alone
    busy = tuple(each for each in generic.busy if core_label(summary.host, each.number) in group.core_names)
    return replace(alone, generic=replace(generic, busy=busy, device_count=len(busy) if generic.device_count else 0))
