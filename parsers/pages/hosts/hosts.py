"""The hosts of a run side by side: how long their steps take, what they wait for, and which one the others wait for.

Hosts that work on one program meet in collectives, so their steps all take as long as the slowest host's. A core's own
time distinguishes them: its step without the time that it waits in collectives. The core that comes last spends the
least time in collectives; every other core waits there by as much as it spends longer. (XProf's pod viewer shows the
bare times of each step and core, which `SharedSteps.core_duration_ps` holds.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.errors import Problem
from tpuprof.parsers.base.intervals import Floats, grouped
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted, examples, natural_key
from tpuprof.parsers.base.words import NO_DEVICE, NO_DEVICE_NAME, NO_SPAN, share, time
from tpuprof.parsers.files.folder_search import host_name
from tpuprof.parsers.hosts.summary import HostSummary, duty_of_capture
from tpuprof.parsers.pages.hosts.cores import (
    LEAST_COST,
    core_rows,
    hosts_of_group,
    judged_cores,
    lateness,
    part_percent,
    parts_of,
)
from tpuprof.parsers.pages.hosts.model import PARTS, HostRow, HostsPage, LeftOut, SharedSteps, StepPartName, Verdict
from tpuprof.parsers.pages.hosts.without_tpus import steps_without_tpus, with_other_steps
from tpuprof.parsers.pages.ops.parts import steps_asked, words_of_steps
from tpuprof.parsers.pages.shared.common import complaints, damage_of, warnings_of, why_no_ops
from tpuprof.parsers.pages.shared.groups import COMPARED_INSIDE, CoreGroup, groups_of, largest
from tpuprof.parsers.pages.shared.key import PageKey, PageSession
from tpuprof.parsers.pages.shared.split_runs import split_words
from tpuprof.parsers.pages.shared.steps import common_steps, step_time
from tpuprof.parsers.pages.shared.summaries import read
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.boundaries.observed import idle_percent
from tpuprof.parsers.steps.boundaries.replica_groups import lacking_partners

if TYPE_CHECKING:
    from tpuprof.parsers.hosts.reduction import Reduced

_NO_HOST = frozenset(("empty_file", "unreadable", "not_a_file", "dangling_link"))
"""Codes of a run's problems that stand for a host whose file cannot be read."""

STRAGGLES = 2 / 3
"""A straggler is the slowest in at least this share of the steps, or costs at least this share of what all hosts cost
by being late. A host that is slow now and then, as others are, is none."""

_LEAST_STEPS = 3

EVEN = 0.05
"""Hosts are even where their own times differ by no more than this share of a step."""


def hosts_page(
    summaries: Sequence[HostSummary], left_out: Sequence[LeftOut] = (), problems: Sequence[Problem] = ()
) -> HostsPage:
    """Compares the hosts of a run.

    Args:
        summaries: at least one, in the order of the hosts.
        left_out: hosts that could not be read.
        problems: the run's problems. A file that is not a profile is a host left out, unless a host of that name was
            read.
    """
    if len(groups := groups_of(summaries)) > 1:
        return _side_by_side(summaries, groups, left_out, problems)
    missing, notes = _missing({summary.host for summary in summaries}, left_out, problems)
    shortcomings = _shortcomings(summaries)
    having = [index for index, summary in enumerate(summaries) if summary.steps is not None]
    # where no host is whole, one of those that are not is all there is to show
    taking = [index for index in having if not shortcomings[index]] or having[:1]
    common = common_steps([summaries[index] for index in taking] or summaries)
    steps, grid = None, common.grid
    if grid is not None:
        of_cores = grid.core_names, grid.hosts, parts_of(grid), grid.duration_ps
        steps = SharedSteps.of(grid.names, [taking[of] for of in common.rows], *of_cores)
    others = steps_without_tpus(summaries)
    steps = steps or others.shared
    rows = tuple(
        with_other_steps(_row(summary, index, steps, why), summary, others.of(index), others.shared is not None)
        for index, (summary, why) in enumerate(zip(summaries, shortcomings, strict=True))
    )
    cores = core_rows(summaries, rows, steps, others.of)
    is_partial = grid is not None and grid.is_partial
    if is_partial:
        rows, cores = tuple(map(_alone, rows)), list(map(_alone, cores))
    slowest_core, cores_statement = judged_cores(cores, steps, others.apart or common.note)
    verdict, statement, straggler = verdict_of(rows, None if is_partial else steps, common.note, len(missing))
    statement = others.statement or statement
    said = warnings_of(summaries, common.remarks, [summary.clocks for summary in summaries])
    return HostsPage(
        rows=rows,
        cores=tuple(cores),
        slowest_core=slowest_core,
        cores_statement=cores_statement,
        steps=steps,
        verdict=verdict,
        statement=statement,
        straggler=straggler,
        left_out=missing,
        unknown=why_unknown(rows, summaries, common.note),
        cores_unknown=why_unknown(cores, summaries, common.note, "core"),
        warnings=tuple(dict.fromkeys((*said, *_apart(rows), *notes))),
    )


def _alone(row: HostRow) -> HostRow:
    """A row that is compared with no other."""
    return replace(row, slowest_in=None, cost_ps=None, wait_percent=None)


# --- groups of cores ------------------------------------------------------------------------------------------------


def _side_by_side(
    summaries: Sequence[HostSummary],
    groups: Sequence[CoreGroup],
    left_out: Sequence[LeftOut],
    problems: Sequence[Problem],
) -> HostsPage:
    """Compares hosts and cores inside of each group: a row a host and group. The largest group stands for all."""
    shown = largest(groups)
    ordered = [shown, *(group for group in groups if group is not shown)]
    pages = {group.number: _of_group(summaries, group, left_out, problems) for group in ordered}
    hosts = [summary.host for summary in summaries]
    rows = [row for page in pages.values() for row in page.rows]
    among = {row.host for row in rows}
    rows += [_row(summary, at, None, "") for at, summary in enumerate(summaries) if summary.host not in among]
    rows.sort(key=lambda row: (hosts.index(row.host), row.group))
    cores = [row for page in pages.values() for row in page.cores]
    cores.sort(key=lambda row: (hosts.index(row.host), row.core or 0))
    main = pages[shown.number]
    judged = next((page for page in pages.values() if page.straggler is not None), main)
    steps = [
        replace(page.steps, rows=tuple(rows.index(page.rows[row]) for row in page.steps.rows))
        for page in pages.values()
        if page.steps is not None
    ]
    apart = f"The {counted(len(cores), 'core')} form {len(groups):,} groups that do not wait for each other."
    of_hosts = {group.number: pages[group.number].statement for group in ordered if len(group.parts) > 1}
    of_cores = {group.number: pages[group.number].cores_statement for group in ordered if len(group.core_names) > 1}
    slowest = None if main.slowest_core is None else cores.index(main.cores[main.slowest_core])
    named = {group.number: group.label for group in groups}
    said = (COMPARED_INSIDE, *(one for page in pages.values() for one in page.warnings))
    return replace(
        main,
        rows=tuple(rows),
        cores=tuple(cores),
        steps=None if main.steps is None else steps[0],
        other_steps=tuple(steps if main.steps is None else steps[1:]),
        slowest_core=slowest,
        cores_statement=_told(apart, named, of_cores),
        verdict=judged.verdict if judged.straggler is not None or len(shown.parts) > 1 else "independent",
        statement=_told(apart, named, of_hosts),
        straggler=None if judged.straggler is None else rows.index(judged.rows[judged.straggler]),
        unknown=why_unknown(rows, summaries, ""),
        cores_unknown=why_unknown(cores, summaries, "", "core"),
        warnings=tuple(dict.fromkeys(said)),
    )


def _told(apart: str, labels: Mapping[int, str], statements: Mapping[int, str]) -> str:
    """That there are groups, and what there is to say of each."""
    return " ".join([apart, *(f"Of {labels[number]}: {statement}" for number, statement in statements.items())])


def _of_group(
    summaries: Sequence[HostSummary], group: CoreGroup, left_out: Sequence[LeftOut], problems: Sequence[Problem]
) -> HostsPage:
    """The page of a group as if its hosts had no other cores; the rows say which group they are of."""
    page = hosts_page(hosts_of_group(summaries, group), left_out, problems)
    rows, cores = (
        tuple(replace(row, group=group.number, of_several=True) for row in rows) for rows in (page.rows, page.cores)
    )
    steps = None if page.steps is None else replace(page.steps, group=group.number)
    return replace(page, rows=rows, cores=cores, steps=steps)


# --- who takes part ------------------------------------------------------------------------------------------------


def _missing(
    read: set[str], left_out: Sequence[LeftOut], problems: Sequence[Problem]
) -> tuple[tuple[LeftOut, ...], list[str]]:
    """The hosts that are left out, each once and by name, and what else is wrong with the run."""
    hosts = {out.host: out for out in left_out}
    notes: list[str] = []
    for problem in problems:
        host = host_name(problem.subject.rpartition("/")[2])
        if problem.code in _NO_HOST and host not in read:
            hosts.setdefault(host, LeftOut(host, problem.sentence))
        else:
            notes.append(problem.sentence)
    return tuple(sorted(hosts.values(), key=lambda out: natural_key(out.host))), notes


def _shortcomings(summaries: Sequence[HostSummary]) -> list[str]:
    """Why each host cannot be compared; empty for a host that can.

    A host that lost data looks faster than it was: its slowest core may be missing, or the end of a step. A file may
    also end between two planes; then the only sign is that most hosts have more cores.
    """
    having = [0 if summary.steps is None else len(summary.steps.core_names) for summary in summaries]
    usual = max(set(having), key=lambda cores: (having.count(cores) if cores else 0, cores))
    reasons: list[str] = []
    for summary, cores in zip(summaries, having, strict=True):
        why, damage = "", damage_of(summary)
        if damage is not None:
            why = f"its file is {damage}"
        elif 0 < cores < usual:
            of = f"of its {summary.core_count:,} cores" if cores < summary.core_count else f"core{'s' * (cores > 1)}"
            why = f"only {cores:,} {of} {'has' if cores == 1 else 'have'} steps, and {usual:,} of other hosts"
        reasons.append(why)
    return reasons


def _apart(rows: Sequence[HostRow]) -> list[str]:
    """A sentence on each reason why hosts with steps take no part."""
    hosts = grouped((row.not_compared, row.host) for row in rows if row.not_compared and len(rows) > 1)
    return [_is_apart(names, why) for why, names in hosts.items()]


def _is_apart(hosts: Sequence[str], why: str) -> str:
    return f"{examples(hosts)} {'is' if len(hosts) == 1 else 'are'} not compared with the others: {why}"


# --- rows ----------------------------------------------------------------------------------------------------------


def _row(summary: HostSummary, index: int, steps: SharedSteps | None, not_compared: str) -> HostRow:
    grid = summary.steps
    own_ps = slowest_in = cost_ps = parts = None
    if steps is not None and index in steps.rows:
        mine = steps.rows.index(index)
        own_ps = float(steps.own_ps[mine].mean())
        parts = steps.parts_ps[steps.core_hosts == mine].mean(axis=(0, 1))
        if len(steps.rows) > 1:
            excess = lateness(steps.done_ps)[mine]
            slowest_in, cost_ps = int(np.count_nonzero(excess)), float(excess.mean())
    problems = [_is_apart([summary.host], not_compared)] if not_compared else []
    problems += complaints(summary)
    if not summary.core_count and not summary.gpu_count:
        problems.append(NO_DEVICE)
    return HostRow(
        host=summary.host,
        device_type=summary.device.device_type if summary.device else None,
        cores=summary.core_count + summary.gpu_count,
        step_time=None if grid is None else step_time(grid.longest_ps.astype(np.float64), grid.source),
        not_compared=not_compared,
        common_steps=0 if steps is None or parts is None else len(steps),
        own_ps=own_ps,
        slowest_in=slowest_in,
        cost_ps=cost_ps,
        parts_ps=None if parts is None else tuple(parts.tolist()),
        idle_percent=idle_percent(summary.observed),
        input_percent=part_percent(parts, "input") if grid is not None and grid.input_source else None,
        collective_percent=part_percent(parts, "collective", "wait"),
        wait_percent=part_percent(parts, "wait") if steps is not None and len(steps.core_names) > 1 else None,
        duty_percent=duty_of_capture([summary]),
        mxu_percent=summary.mxu_percent,
        hbm_percent=summary.hbm_percent,
        profile_duration_ps=summary.profile_duration_ps,
        problems=tuple(problems),
    )


# --- the verdict ---------------------------------------------------------------------------------------------------


def verdict_of(
    rows: Sequence[HostRow], steps: SharedSteps | None, note: str, left_out: int
) -> tuple[Verdict, str, int | None]:
    """Judges whether one host delays the others; returns the verdict, its sentence, and that host's row."""
    if steps is None:
        return "unknown", f"Steps can't be compared: {note}.", None
    if len(steps.rows) < 2:
        return "unknown", _why_alone(rows, rows[steps.rows[0]], left_out), None
    taking, count = [rows[row] for row in steps.rows], counted(len(steps), "step")
    whole = float(steps.duration_ps.max(axis=0).mean())
    worst = max(range(len(taking)), key=lambda index: taking[index].cost_ps or 0.0)
    host, cost, often = taking[worst].host, taking[worst].cost_ps or 0.0, taking[worst].slowest_in or 0
    matters = len(steps) >= _LEAST_STEPS and cost >= LEAST_COST * whole
    if matters and often >= STRAGGLES * len(steps):
        words = (
            f"{host} is the slowest in {often:,} of {count} and costs each {time(cost)} ({share(cost / whole)}): "
            f"it takes that much longer than the next slowest. {_reason(rows, steps, worst)}"
        )
        return "straggler", words.rstrip(), steps.rows[worst]
    if matters and cost >= STRAGGLES * sum(row.cost_ps or 0.0 for row in taking):
        late = int(np.count_nonzero(lateness(steps.done_ps)[worst] >= cost))
        words = (
            f"{host} delays the others by {time(cost)} a step ({share(cost / whole)}), most of it in {late:,} of "
            f"{count}. {_reason(rows, steps, worst)}"
        )
        return "straggler", words.rstrip(), steps.rows[worst]
    means, compared = steps.done_ps.mean(axis=1), _compared(rows, len(taking))
    spread = float(means.max() - means.min()) / whole if whole else 0.0
    if spread <= EVEN:
        within = share(max(spread, 1e-9))  # a figure of one decimal would say that there is no difference at all
        return "even", f"The {compared} differ by {within} of a step: none delays the others.", None
    slowest = taking[int(means.argmax())]
    words = (
        f"The {compared} differ by {share(spread)} of a step, but no single one delays the others: "
        f"{slowest.host} takes longest and is the slowest in {slowest.slowest_in or 0:,} of {count}."
    )
    return "uneven", words, None


def _compared(rows: Sequence[HostRow], number: int) -> str:
    """How many hosts are compared, and which ones where these are not all."""
    if number == len(rows):
        return counted(number, "host")
    is_rest_bare = all(row.cores == 0 for row in rows if row.parts_ps is None)
    return f"{counted(number, 'host')} {'with a device' if is_rest_bare else 'compared'}"


def _why_alone(rows: Sequence[HostRow], shown: HostRow, left_out: int) -> str:
    """Why only one host has steps to show."""
    if len(rows) == 1 and not left_out:
        return f"The run has one host, {shown.host}: there is nothing to compare it with."
    if shown.not_compared and len(rows) > 1:
        return f"No host can be compared; the steps are those of {shown.host}, and {shown.not_compared}."
    apart = {row.not_compared for row in rows if row.not_compared}
    if apart:
        names = [row.host for row in rows if row.not_compared]
        reason = apart.pop() if len(apart) == 1 else "their files are cut off, or some of their cores have no steps"
        why = f"{examples(names)} {'is' if len(names) == 1 else 'are'} left out, because {reason}"
    elif sum(row.step_time is not None for row in rows) > 1:
        why = "the hosts share no step"
    else:
        why = "the others have no steps" if len(rows) > 1 else "the others can't be read"
    return f"There is nothing to compare {shown.host} with: {why}."


_PART_WORDS: Mapping[StepPartName, str] = {
    "input": "waiting for input",
    "transfer": "transfers from and to its host",
    "collective": "collectives",
    "idle": "idle time",
}


def _reason(rows: Sequence[HostRow], steps: SharedSteps, host: int) -> str:
    """A sentence on what a host spends most time on beyond the others' median.

    Only some hosts record their waiting for input; for the others it is part of idle time. So it compares both only
    among hosts that record the same.
    """
    hosts = range(len(steps.rows))
    by_host = np.stack([steps.parts_ps[steps.core_hosts == index].mean(axis=(0, 1)) for index in hosts])
    is_known = [rows[row].input_percent is not None for row in steps.rows]
    others = [index for index in hosts if index != host]
    alike = [index for index in others if is_known[index] == is_known[host]]
    more = by_host[host] - _middle(by_host[others])
    for part in ("input", "idle"):
        index = PARTS.index(part)
        is_comparable = bool(alike) and (part == "idle" or is_known[host])
        more[index] = by_host[host, index] - _middle(by_host[alike])[index] if is_comparable else 0.0
    more[PARTS.index("wait")] = 0
    most = int(more.argmax())
    if more[most] <= 0:
        return ""
    return (
        f"It spends {time(float(more[most]))} a step more on {_PART_WORDS.get(PARTS[most], PARTS[most])} than the "
        "others."
    )


def _middle(values: Floats) -> Floats:
    """The upper median of each column."""
    middle: Floats = np.sort(values, axis=0)[len(values) // 2]
    return middle


# --- what is unknown -----------------------------------------------------------------------------------------------


def why_unknown(
    rows: Sequence[HostRow], summaries: Sequence[HostSummary], note: str, what: str = "host"
) -> dict[str, str]:
    """Why figures are missing: a reason for each, with the names of hosts or cores where it does not hold for all."""
    why = why_no_ops(summaries)
    if what == "core" and any(summary.gpu_count for summary in summaries):
        why = note if all(row.step_time is None for row in rows) else "none of its ops ran in a step"
    no_steps = why or note or f"the {what} has no steps, or none that others share"
    no_events = why or "no device events"
    no_other = why or f"no other {what} has a step at the same time"
    no_input = why or "neither infeed ops nor the host's events show a wait for input"
    reasons = {
        "device_type": why or NO_DEVICE_NAME,
        "step_time": no_steps,
        "own_ps": no_steps,
        "slowest_in": no_other,
        "cost_ps": no_other,
        "parts_ps": no_steps,
        "idle_percent": no_events,
        "busy_percent": "its ops were not recorded, or it ran none",
        "input_percent": no_input,
        "collective_percent": no_steps,
        "wait_percent": no_steps if any(row.parts_ps is None for row in rows) else "there is one core",
        "duty_percent": "not computed for GPUs" if any(summary.gpu_count for summary in summaries) else no_events,
        "mxu_percent": "the host recorded no matrix unit counters (hardware counters are off by default)",
        "hbm_percent": "the host recorded no HBM counters (hardware counters are off by default)",
        "profile_duration_ps": NO_SPAN,
    }
    unknown: dict[str, str] = {}
    in_groups = Counter(row.group for row in rows if row.of_several)
    of_others = ("busy_percent",) if what == "host" else (*_OF_HOST, "duty_percent", "idle_percent")
    for name, reason in reasons.items():
        if name in of_others:
            continue
        alone = f"its group has no other {'core' if name == 'wait_percent' else what}"
        lacking = [
            (row.label, _why(row, name, alone if in_groups[row.group] == 1 and name in _OF_OTHERS else reason))
            for row in rows
            if getattr(row, name) is None
        ]
        if lacking:
            unknown[name] = _by_host(lacking, len(rows))
    unsure = [row.label for row in rows if row.parts_ps is not None and row.input_percent is None]
    if unsure:
        unknown["parts_ps.input"] = _by_host([(host, no_input) for host in unsure], len(rows))
    return unknown


_OF_STEPS = frozenset(("own_ps", "slowest_in", "cost_ps", "parts_ps", "collective_percent", "wait_percent"))
_OF_OTHERS = frozenset(("slowest_in", "cost_ps", "wait_percent"))
_OF_HOST = frozenset(("mxu_percent", "hbm_percent", "profile_duration_ps"))
"""Figures that a host records even without a device."""


def _why(row: HostRow, name: str, reason: str) -> str:
    """Why one host lacks a figure."""
    if not row.cores and name not in _OF_HOST:
        return NO_DEVICE
    if row.not_compared and row.parts_ps is None and name in (*_OF_STEPS, "input_percent"):
        return f"not compared, {row.not_compared}"
    return reason


def _by_host(lacking: Sequence[tuple[str, str]], total: int) -> str:
    """Joins the reasons, each with its hosts unless it holds for all hosts."""
    hosts = grouped((reason, host) for host, reason in lacking)
    if len(hosts) == 1 and len(lacking) == total:
        return lacking[0][1]
    return "; ".join(f"{examples(names)}: {reason}" for reason, names in hosts.items())


def hosts_of_run(session: PageSession, host: str | None) -> HostsPage:
    """All hosts of the run, whichever one is chosen."""
    found = read(session, None)
    return page_of(session, found, found.summaries)


def page_of(session: PageSession, found: Reduced[HostSummary], summaries: Sequence[HostSummary]) -> HostsPage:
    """The page of what hosts add to it.

    Args:
        found: which hosts could be read.
    """
    left_out = [LeftOut(file.host, error.sentence) for file, error in found.failed]
    page = hosts_page(summaries, left_out, session.run.problems)
    cores = sum(summary.core_count for summary in summaries)
    partners = {lacking_partners(summary.table, cores) for summary in summaries} - {""}
    return replace(page, warnings=(*page.warnings, *(split_words(session.run) or sorted(partners))))


def hosts_in_steps(session: PageSession, steps: str) -> HostsPage:
    """The hosts compared over a step, or a range of steps.

    Raises:
        ProfileError: `no_steps`, `unknown_step`, exit code 3; and as for `PageSession.page`.
    """
    found, grid = read(session, None), steps_asked(session, None, steps)
    page = page_of(session, found, [_host_in_steps(summary, set(grid.names)) for summary in found.summaries])
    only = f"only {words_of_steps(grid)} {'is' if len(grid) == 1 else 'are'} shown; {_OF_CAPTURE}"
    return replace(page, warnings=(*page.warnings, only))


_OF_CAPTURE = "busy time, duty cycle and counters are those of the whole capture"


def _host_in_steps(summary: HostSummary, names: Container[str]) -> HostSummary:
    """A host of whose steps only these are looked at, in each of its groups."""
    groups = tuple(replace(group, steps=_chosen(group.steps, names)) for group in summary.groups)
    return replace(summary, steps=_chosen(summary.steps, names), groups=groups)


def _chosen(steps: AlignedSteps | None, names: Container[str]) -> AlignedSteps | None:
    rows = [] if steps is None else [row for row, name in enumerate(steps.names) if name in names]
    return None if steps is None or not rows else steps.take(np.array(rows, np.intp))


HOSTS = PageKey(hosts_of_run)
