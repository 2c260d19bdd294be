"""The accounts of cores beside each other: what each waits for the others, by brute force, whatever their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.build import present
from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.steps.accounts.cpu import HostOnCpu
from tpuprof.parsers.steps.accounts.owners import OWNERS, WAITS, owner_index
from tpuprof.parsers.steps.generic.gpu import account_on_gpus
from tpuprof.parsers.steps.generic.op_events import OpEvents
from tpuprof.parsers.steps.generic.step_events import GenericStep
from tpuprof.parsers.steps.model import GenericBreakdown
from tpuprof.parsers.steps.step_account import AccountRows, account_of_cores, collective_waits, cpu_account

NOW_NS = 1_795_903_998_749_981_671
COLLECTIVES = ("all-reduce.1", "all-gather.2")
MOVING, WAITING, BARRIER = map(OWNERS.index, ("collective_transfer", "collective_wait", "barrier"))


def times(random: np.random.Generator, *shape: int) -> Int64s:
    """Times in an array of this shape, many of them 0."""
    out: Int64s = random.integers(0, 2, shape) * random.integers(0, 1 << random.integers(1, 41), shape)
    return out


@st.composite
def hosts_on_cpu(draw: st.DrawFn) -> list[tuple[str, HostOnCpu]]:
    """Hosts with the same steps, which end at different times; each row of an account adds up to its step."""
    hosts, steps = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 1 << 20)))
    owner_ps, between_ps = (times(random, hosts, steps, len(OWNERS)) for _ in range(2))
    between_ps[:, -1] = 0
    collective_ps, waits_ps = times(random, hosts, steps, len(COLLECTIVES)), times(random, hosts, steps)
    assume(owner_ps.any())
    return [
        (
            f"host-{host}",
            HostOnCpu(
                names=tuple(map(str, range(steps))),
                start_ps=np.arange(steps),
                step_ps=owner_ps[host].sum(axis=1),
                owner_ps=owner_ps[host],
                between_ps=between_ps[host],
                untraced_ps=np.zeros(steps, np.int64),
                untraced_between_ps=np.zeros(steps, np.int64),
                collective_names=COLLECTIVES,
                collective_ps=collective_ps[host],
                waits_ps=np.minimum(waits_ps[host], owner_ps[host, :, MOVING]),
            ),
        )
        for host in range(hosts)
    ]


def expected(hosts: Sequence[HostOnCpu], host: int, step: int) -> tuple[int, list[int], int]:
    """The step's duration, the time of each owner, and the time up to the next step, one moment after the other."""
    longest = max(int(of.step_ps[step]) for of in hosts)
    owners = hosts[host].owner_ps[step].tolist()
    early = longest - sum(owners)
    waits = int(hosts[host].waits_ps[step])
    if len(hosts) > 1:
        waits = 0
        for each in range(len(COLLECTIVES)):
            mine, *_ = took = [int(of.collective_ps[step, each]) for of in (hosts[host], *hosts)]
            waits += mine - min(filter(None, took)) if mine else 0
    waits = min(waits, owners[MOVING])
    owners[MOVING] -= waits
    owners[WAITING] += waits
    owners[BARRIER] += early
    return longest, owners, max(0, int(hosts[host].between_ps[step].sum()) - early)


@given(hosts_on_cpu())
def test_a_core_waits_for_the_last_one_in_collectives_and_at_the_end_of_its_step(
    hosts: list[tuple[str, HostOnCpu]],
) -> None:
    found = present(cpu_account(hosts))
    for host, step in np.ndindex(found.owner_ps.shape[:2]):
        longest, owners, between = expected([of for _, of in hosts], host, step)
        assert (int(found.step_ps[step]), found.owner_ps[host, step].tolist()) == (longest, owners)
        assert sum(owners) == longest and min(owners) >= 0
        left = found.between_ps[host, step]
        assert int(left.sum()) == between and (left >= 0).all()
        assert (left <= hosts[host][1].between_ps[step]).all()


@given(hosts_on_cpu(), st.data())
def test_the_order_of_cores_does_not_matter(hosts: list[tuple[str, HostOnCpu]], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(hosts))))
    found, other = present(cpu_account(hosts)), present(cpu_account([hosts[at] for at in order]))
    assert other.owner_ps.tolist() == found.owner_ps[order].tolist()
    assert other.between_ps.tolist() == found.between_ps[order].tolist()
    assert other.mean_ps.tolist() == found.mean_ps.tolist()
    for by in get_args(AccountRows):
        assert sorted(row.name for row in other.rows(by)) == sorted(row.name for row in found.rows(by))


@given(hosts_on_cpu(), st.data())
def test_steps_that_some_hosts_lack_change_nothing_in_the_others(
    hosts: list[tuple[str, HostOnCpu]], data: st.DataObject
) -> None:
    """A host that has more steps, and those in another order, gives the account of the steps that all have."""
    whole = present(cpu_account(hosts))
    assume(len(hosts) > 1)
    kept = data.draw(st.lists(st.sampled_from(whole.names), min_size=1, unique=True))
    name, first = hosts[0]
    rows = [first.names.index(step) for step in kept]
    changed = ("names", "start_ps", "step_ps", "owner_ps", "between_ps", "untraced_ps", "untraced_between_ps")
    columns = {each: getattr(first, each) for each in HostOnCpu.__dataclass_fields__}
    columns |= {each: np.array(columns[each])[rows] for each in (*changed, "collective_ps", "waits_ps")}
    columns["names"] = tuple(kept)
    fewer = cpu_account([(name, HostOnCpu(**columns)), *hosts[1:]])
    if fewer is None:
        assert not whole.step_ps[rows].any()
        return
    assert fewer.names == tuple(kept)
    assert (fewer.step_ps.tolist(), fewer.owner_ps.tolist()) == (
        whole.step_ps[rows].tolist(),
        whole.owner_ps[:, rows].tolist(),
    )


@pytest.mark.parametrize(
    ("names", "meet", "clock", "joined"),
    [("12", True, 0, True), ("34", True, 0, False), ("12", False, 0, False), ("12", True, 10**6, False)],
)
def test_hosts_that_do_not_keep_step_show_the_one_that_takes_longest(
    names: str, meet: bool, clock: int, joined: bool
) -> None:
    def host(names: Sequence[str], clock: int, slower: int) -> HostOnCpu:
        none, owner_ps = np.zeros(len(names), np.int64), slower * np.ones((len(names), len(OWNERS)), np.int64)
        owner_ps[:, [WAITING, BARRIER]] = 0
        columns = (np.arange(len(names)) * 10**6, owner_ps.sum(axis=1), owner_ps, 0 * owner_ps, none, none)
        shared = (COLLECTIVES[:1] * meet, none[:, None][:, : int(meet)])
        return HostOnCpu(tuple(names), *columns, *shared, none, began_ns=NOW_NS + clock)

    hosts = [("a", host("12", 0, 1)), ("b", host(names, clock, 2)), ("c", host("", 0, 3))]
    for order in (hosts, hosts[::-1]):
        found = present(cpu_account(order))
        assert sorted(found.core_names) == (["a:0", "b:0"] if joined else ["b:0"])
        assert found.of(*WAITS).any() == joined
    assert cpu_account([("c", host("", 0, 1))]) is None


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.lists(st.floats(0, 2**38), min_size=8, max_size=8)), max_size=4))
def test_steps_of_gpus_are_divided_as_far_as_they_go(spec: list[tuple[int, list[float]]]) -> None:
    steps = [GenericStep(str(at), at, 0, took, GenericBreakdown(*of)) for at, (took, of) in enumerate(spec)]
    found = cpu_account([("host0", account_on_gpus(steps, OpEvents.joined([]), np.ones(len(steps), np.bool_)))])
    if not sum(took for took, _ in spec):
        assert found is None
        return
    of = present(found)
    assert (of.owner_ps >= 0).all() and not of.between_ps.any()
    assert of.owner_ps[0].sum(axis=1).tolist() == of.step_ps.tolist() == [took for took, _ in spec]


@given(hosts_on_cpu())
def test_rows_are_means_that_add_up(hosts: list[tuple[str, HostOnCpu]]) -> None:
    """Two cores of each host: a host is the mean of its cores."""
    cores = [(f"{name}:{core}", of) for name, of in hosts for core in range(2)]
    own, owner_ps, between_ps, moving = (
        np.stack([getattr(of, name) for _, of in cores])
        for name in ("step_ps", "owner_ps", "between_ps", "collective_ps")
    )
    names, core_names = hosts[0][1].names, [name for name, _ in cores]
    of = present(account_of_cores(names, core_names, own, owner_ps, between_ps, collective_waits(moving)))
    for by, count in zip(get_args(AccountRows), (len(of), len(cores), len(hosts)), strict=True):
        rows = of.rows(by)
        assert len(rows) == count
        np.testing.assert_allclose(np.mean([row.owner_ps for row in rows], axis=0), of.mean_ps, rtol=1e-9)
        np.testing.assert_allclose(np.mean([row.time_ps for row in rows]), of.mean_step_ps, rtol=1e-9)
    assert of.mean_whole_ps == (of.mean_period_ps if of.steps_lie_apart else of.mean_step_ps)
    assert of.of("barrier", "copy").tolist() == of.owner_ps[:, :, [BARRIER, owner_index("copy")]].sum(axis=2).tolist()
