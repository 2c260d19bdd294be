"""Hosts without TPUs beside each other: the steps of their CPUs or of their GPUs, as hosts and as cores have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.words import NO_DEVICE, shortened, time
from tpuprof.parsers.files.core_names import core_label, host_of
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.hosts.cores import part_percent, parts_of_owners
from tpuprof.parsers.pages.hosts.model import PARTS, WAIT, HostRow, SharedSteps
from tpuprof.parsers.pages.shared.steps import step_time
from tpuprof.parsers.steps.accounts.cpu import HostOnCpu
from tpuprof.parsers.steps.step_account import Account, cpu_account

_COMPUTE, _IDLE = PARTS.index("compute"), PARTS.index("idle")
_MOST_NAMED = 4
NOT_JOINED = "nothing shows that the hosts keep step"
NO_COMMON_STEPS = "the hosts do not keep step, and none waits for another"


@dataclass(frozen=True, slots=True)
class OtherSteps:
    """The steps of hosts without TPUs.

    Attributes:
        shared: those that hosts run together, or that the only one has; None where there are none.
        own: by number of a host, those of hosts that share none.
        apart, statement: why hosts that have steps share none, and as a sentence with these; else empty.
    """

    shared: SharedSteps | None
    own: Mapping[int, SharedSteps]
    apart: str = ""
    statement: str = ""

    def of(self, index: int) -> SharedSteps | None:
        return self.shared if self.shared is not None and index in self.shared.rows else self.own.get(index)


def steps_without_tpus(summaries: Sequence[HostSummary]) -> OtherSteps:
    """The steps on the CPUs of hosts that keep step, and each other host's own."""
    generics = enumerate(None if of.generic is None else of.generic for of in summaries)
    gpus = [(at, summaries[at].host, of.account) for at, of in generics if of is not None and of.device_count]
    cpus = [(at, of.host, of.on_cpu) for at, of in enumerate(summaries)]
    is_cpu = any(steps is not None for *_, steps in cpus)
    having = [(at, host, steps) for at, host, steps in (*cpus, *gpus) if steps is not None]
    account = cpu_account([(host, steps) for _, host, steps in having])
    if account is not None and len(account.core_names) == len(having):
        shown = set(map(host_of, account.core_names))
        return OtherSteps(_by_device(account, [each for each in having if each[1] in shown]), {})
    own = {}
    for index, host, steps in having:
        alone = cpu_account([(host, steps)])
        if alone is not None:
            own[index] = _by_device(alone, [(index, host, steps)])
    words = ", ".join(
        f"{shortened(summaries[index].host)} takes {time(float(steps.duration_ps.mean()))} a step"
        for index, steps in list(own.items())[:_MOST_NAMED]
    )
    apart = "" if len(own) < 2 else NO_COMMON_STEPS if is_cpu else NOT_JOINED
    return OtherSteps(None, own, apart, f"{apart[0].upper()}{apart[1:]}: {words}." if apart else "")


def _by_device(account: Account, hosts: Sequence[tuple[int, str, HostOnCpu]]) -> SharedSteps:
    """The steps of CPUs or GPUs, by device where a host has several.

    Args:
        hosts: number, name and steps of each that the account is of.
    """
    names, of_host, parts, took = list[str](), list[int](), list[Int64s](), list[Int64s]()
    for row, (_, host, steps) in enumerate(hosts):
        at, whole = steps.rows(account.names), parts_of_owners(account.owner_ps[row])
        devices = None if steps.of_devices is None else steps.of_devices.take(at)
        for place, number in enumerate((0,) if devices is None else devices.numbers):
            names.append(core_label(host, number))
            of_host.append(row)
            took.append(steps.step_ps[at])
            parts.append(whole)
            if devices is not None and len(devices.numbers) > 1:
                waits_ps = devices.waits_ps[place] + (whole[:, WAIT] if len(hosts) > 1 else 0)
                parts[-1] = _of_device(whole, devices.compute_ps[place], waits_ps)
    rows = [host[0] for host in hosts]
    return SharedSteps.of(account.names, rows, names, np.array(of_host), np.stack(parts), np.stack(took))


def _of_device(whole: Int64s, compute_ps: Int64s, waits_ps: Int64s) -> Int64s:
    """The parts of one device: what it neither computes nor waits is divided as the time of the host is."""
    total, out = whole.sum(axis=1), np.zeros_like(whole)
    out[:, WAIT] = np.minimum(waits_ps, total)
    out[:, _COMPUTE] = np.minimum(compute_ps, total - out[:, WAIT])
    rest = total - out.sum(axis=1)
    others = whole.copy()
    others[:, [_COMPUTE, WAIT]] = 0
    share = np.minimum(rest / np.maximum(others.sum(axis=1), 1), 1.0)
    out += (others * share[:, None]).astype(np.int64)
    out[:, _IDLE] += total - out.sum(axis=1)
    return out


def with_other_steps(row: HostRow, summary: HostSummary, steps: SharedSteps | None, is_shared: bool) -> HostRow:
    """A host's row with its steps on CPUs or GPUs."""
    generic = summary.generic
    if generic is None or steps is None:
        return row
    parts = steps.parts_ps.mean(axis=(0, 1)) if not is_shared else None
    if parts is not None:
        row = replace(
            row,
            common_steps=len(steps),
            own_ps=float(steps.own_ps[0].mean()),
            parts_ps=tuple(parts.tolist()),
            collective_percent=part_percent(parts, "collective", "wait"),
        )
    durations = np.array([step.duration_ps for step in generic.steps], np.float64)
    return replace(
        row,
        device_type=generic.device_type,
        cores=row.cores or sum(host_of(name) == summary.host for name in steps.core_names),
        step_time=step_time(durations, generic.source, generic.note),
        input_percent=part_percent(np.array(row.parts_ps), "input"),
        problems=tuple(problem for problem in row.problems if problem != NO_DEVICE),
    )
