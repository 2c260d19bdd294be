"""Which of a run's hosts holds up the others, in a sentence; and why figures of some hosts are unknown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.common import NO_DEVICE, why_no_ops
from tpuprof.parsers.pages.findings.words import share, time
from tpuprof.parsers.pages.hosts.model import PARTS, HostRow, HostSteps, Verdict

_WAIT = PARTS.index("wait")

STRAGGLES = 2 / 3
"""Share of the steps in which a straggler is the slowest; what is slow now and then is none."""

_LEAST_STEPS = 3
LEAST_COST = 0.01
"""Share of a step that a straggler must cost: less is within what steps vary."""

EVEN = 0.05
"""Hosts are even where their own times differ by no more than this share of a step."""

_SEEN = 0.0005
"""Share of a step below which a figure of one decimal would say that there is no difference at all."""


# --- the verdict ---------------------------------------------------------------------------------------------------


def verdict_of(
    rows: Sequence[HostRow], steps: HostSteps | None, note: str, left_out: int
) -> tuple[Verdict, str, int | None]:
    """Whether one host holds up the others, the sentence that says so, and the row of that host."""
    if steps is None:
        return "unknown", f"Steps can't be compared: {note}.", None
    if len(steps.rows) < 2:
        return "unknown", _why_alone(rows, rows[steps.rows[0]], left_out), None
    costs = [rows[row].cost_ps or 0.0 for row in steps.rows]
    worst = int(np.argmax(costs))
    often, total = rows[steps.rows[worst]].slowest_in or 0, len(steps)
    whole = float(steps.duration_ps.max(axis=0).mean())
    if total >= _LEAST_STEPS and often >= STRAGGLES * total and costs[worst] >= LEAST_COST * whole:
        words = (
            f"{rows[steps.rows[worst]].host} is the slowest in {often:,} of {counted(total, 'step')} and costs each "
            f"{time(costs[worst])} ({share(costs[worst] / whole)}), which it takes longer than the next slowest."
        )
        return "straggler", f"{words} {_reason(rows, steps, worst)}".rstrip(), steps.rows[worst]
    means = steps.own_ps.mean(axis=1)
    spread = float(means.max() - means.min()) / whole if whole else 0.0
    if spread <= EVEN:
        within = share(spread) if spread >= _SEEN else "<0.1%"
        words = f"The {_compared(rows, len(means))} are even within {within} of a step: none holds up the others."
        return "even", words, None
    most = int(means.argmax())
    often = rows[steps.rows[most]].slowest_in or 0
    words = (
        f"The {_compared(rows, len(means))} differ by {share(spread)} of a step, but no single one holds up the "
        "others: "
        f"{rows[steps.rows[most]].host} takes longest and is the slowest in {often:,} of {counted(total, 'step')}."
    )
    return "uneven", words, None


def _compared(rows: Sequence[HostRow], number: int) -> str:
    """So many hosts, and which of the rows they are where they are not all."""
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
        reason = apart.pop() if len(apart) == 1 else "their files are cut off, or cores of theirs have no steps"
        why = f"{examples(names)} {'is' if len(names) == 1 else 'are'} left aside, {reason}"
    elif sum(row.step_time is not None for row in rows) > 1:
        why = "the hosts share no step"
    else:
        why = "the others have no steps" if len(rows) > 1 else "the others can't be read"
    return f"There is nothing to compare {shown.host} with: {why}."


def _reason(rows: Sequence[HostRow], steps: HostSteps, host: int) -> str:
    """What a host spends more time on than the others' median, most of all.

    Waiting for input is known of some hosts only, and what is not known to be that is idle time: both are compared
    among hosts of which the same is known.
    """
    by_host = np.stack([steps.parts_ps[steps.core_hosts == at].mean(axis=(0, 1)) for at in range(len(steps.rows))])
    is_known = [rows[row].input_percent is not None for row in steps.rows]
    alike = [at for at, known in enumerate(is_known) if at != host and known == is_known[host]]
    others = [at for at in range(len(is_known)) if at != host]
    more = by_host[host] - _middle(by_host[others])
    for part in ("input", "idle"):
        at = PARTS.index(part)
        is_comparable = bool(alike) and (part == "idle" or is_known[host])
        more[at] = by_host[host, at] - _middle(by_host[alike])[at] if is_comparable else 0.0
    more[_WAIT] = 0
    most = int(more.argmax())
    if more[most] <= 0:
        return ""
    what = {
        "compute": "compute",
        "input": "waiting for input",
        "output": "output",
        "transfer": "transfers from and to its host",
        "collective": "collectives",
        "idle": "idle time",
    }[PARTS[most]]
    return f"It has {time(float(more[most]))} a step more of {what} than the others."


def _middle(values: Floats) -> Floats:
    """The upper median of each column."""
    middle: Floats = np.sort(values, axis=0)[len(values) // 2]
    return middle


# --- what is unknown -----------------------------------------------------------------------------------------------


def why_unknown(rows: Sequence[HostRow], summaries: Sequence[HostSummary], note: str) -> dict[str, str]:
    """Why figures are missing: a reason for each, by the name of the host where not all lack it for that reason."""
    why = why_no_ops(summaries)
    no_steps = why or note or "the host shares no step with the others"
    no_events = why or "no device events"
    no_other = why or "no other host has a step at the same time"
    no_input = why or "neither infeed ops nor what the host does tell of waiting for input"
    reasons = {
        "device_type": why or "the device plane does not name its device",
        "step_time": no_steps,
        "own_ps": no_steps,
        "slowest_in": no_other,
        "cost_ps": no_other,
        "parts_ps": no_steps,
        "idle_percent": no_events,
        "input_percent": no_input,
        "collective_percent": no_steps,
        "wait_percent": no_steps if any(row.parts_ps is None for row in rows) else "there is one core",
        "duty_percent": no_events,
        "mxu_percent": "the host recorded no matrix unit counters (hardware counters are off by default)",
        "hbm_percent": "the host recorded no HBM counters (hardware counters are off by default)",
        "profile_duration_ps": "the profile records neither its start and stop nor device events",
    }
    found: dict[str, str] = {}
    for name, reason in reasons.items():
        lacking = [(row.host, _why(row, name, reason)) for row in rows if getattr(row, name) is None]
        if lacking:
            found[name] = _by_host(lacking, len(rows))
    unsure = [row.host for row in rows if row.parts_ps is not None and row.input_percent is None]
    if unsure:
        found["parts_ps.input"] = _by_host([(host, no_input) for host in unsure], len(rows))
    return found


_OF_STEPS = frozenset(("own_ps", "slowest_in", "cost_ps", "parts_ps", "collective_percent", "wait_percent"))
_OF_HOST = frozenset(("mxu_percent", "hbm_percent", "profile_duration_ps"))
"""What a host records without a device too."""


def _why(row: HostRow, name: str, reason: str) -> str:
    """Why one host lacks a figure."""
    if not row.cores and name not in _OF_HOST:
        return NO_DEVICE
    if row.not_compared and row.parts_ps is None and name in (*_OF_STEPS, "input_percent"):
        return f"not compared, {row.not_compared}"
    return reason


def _by_host(lacking: Sequence[tuple[str, str]], total: int) -> str:
    """The reasons, each with the hosts that it holds for unless it holds for all."""
    hosts: dict[str, list[str]] = {}
    for host, reason in lacking:
        hosts.setdefault(reason, []).append(host)
    if len(hosts) == 1 and len(lacking) == total:
        return lacking[0][1]
    return "; ".join(f"{examples(names)}: {reason}" for reason, names in hosts.items())
