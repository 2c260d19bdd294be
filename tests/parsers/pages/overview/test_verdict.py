"""The verdict: the cause with most of the step, with what other cores wait for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.made.pages import two_findings
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.host_events.activity import Activity, IdleTime
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.ops.table import EMPTY_TABLE
from tpuprof.parsers.pages.findings.finding import Finding, OwnerClaim
from tpuprof.parsers.pages.overview.verdict import Verdict, verdict_of, waited_for
from tpuprof.parsers.steps.accounts.owners import OWNERS, Owner, owner_index
from tpuprof.parsers.steps.step_account import Account

STEP = 1000
LAUNCHER = "python/1"


def account(*cores: dict[Owner, int], hosts: tuple[int, ...] = (0, 0)) -> Account:
    """Three like steps of 1000 ps on some cores; what an owner does not have is at the roof."""
    owner_ps = np.zeros((len(cores), 3, len(OWNERS)), np.int64)
    for core, times in enumerate(cores):
        for owner, ps in times.items():
            owner_ps[core, :, owner_index(owner)] = ps
        owner_ps[core, :, owner_index("ideal")] = STEP - sum(times.values())
    names = tuple(f"host-{host}:{number}" for number, host in enumerate(hosts))
    return Account(("0", "1", "2"), names, np.full(3, STEP), owner_ps, np.zeros_like(owner_ps))


def claiming(kind: str, **claims: float) -> Finding:
    made = tuple(OwnerClaim(owner, claims[owner]) for owner in OWNERS if owner in claims)
    return replace(two_findings()[0], kind=kind, worth_ps=sum(claims.values()), claims=made)


def asked(of: Account, *found: Finding, idle: IdleTime | None = None) -> Verdict:
    return verdict_of(of, EMPTY_TABLE, table_rates(EMPTY_TABLE, Peaks()), idle, found)


LATE_INPUT = account({"input": 300}, {"collective_wait": 300}, hosts=(0, 1))


def test_waiting_for_a_core_that_waits_for_input_is_waiting_for_input() -> None:
    found = asked(LATE_INPUT, claiming("input", input=150.0, collective_wait=150.0))
    assert found.kind == "input-bound"
    assert found.fraction == pytest.approx(0.3)
    assert found.statement.startswith("Waiting for input takes 30.0% of")
    assert found.statement.endswith("). Other cores wait 150 ps of this time for host-0.")


def test_without_a_finding_that_says_why_cores_only_wait() -> None:
    found = asked(account({"input": 200, "loss": 100}, {"collective_wait": 300}, hosts=(0, 1)))
    assert (found.kind, found.by) == ("waiting", "host-0")
    assert found.fraction == pytest.approx(0.15)


def test_what_a_slow_core_takes_longer_is_charged_to_waiting_for_it() -> None:
    of = account({"loss": 300}, {"loss": 100, "collective_wait": 200})
    assert asked(of).kind not in ("waiting", "input-bound")
    found = asked(of, claiming("slow-core", loss=100.0, collective_wait=100.0))
    assert (found.kind, found.by) == ("waiting", "host-0:0")
    assert found.fraction == pytest.approx(0.2)
    assert "the cores wait for host-0:0. 100 ps of this time is the extra time of the late cores." in found.statement


def test_a_slow_core_does_not_make_its_waits_the_hosts() -> None:
    of = account({"host": 100, "loss": 100}, {"host": 200, "collective_wait": 300})
    found = asked(of, claiming("slow-core", host=50.0, collective_wait=150.0, loss=20.0))
    assert found.kind == "waiting"
    assert found.fraction == pytest.approx(0.22)


def test_ops_of_unknown_work_are_the_verdict_from_twice_as_much_as_a_cause_on() -> None:
    assert asked(account({"uncounted": 390, "barrier": 200}, {"uncounted": 390, "barrier": 200})).kind == "waiting"
    assert asked(account({"uncounted": 410, "barrier": 200}, {"uncounted": 410, "barrier": 200})).kind == "uncounted"


@pytest.mark.parametrize(
    ("names", "by"),
    [
        (("$threading.py:323 wait", "$logging.py:71 write_text"), "$logging.py:71 write_text"),
        (("$threading.py:323 wait",), ""),
        (("ThreadpoolListener::Region", "$a.py:1 f"), "$a.py:1 f"),
    ],
)
def test_a_thread_that_waits_is_no_reason(names: tuple[str, ...], by: str) -> None:
    gaps = IdleTime(1000, 1, (0, 1000), tuple(Activity(LAUNCHER, name, 900, 1) for name in names))
    assert asked(account({"host": 500}, {"host": 500}), idle=gaps).by == by


def test_nobody_is_waited_for_where_cores_hardly_wait() -> None:
    assert waited_for(account({}, {})) == ""
    assert waited_for(account({}, {"barrier": 4})) == ""
    assert waited_for(account({}, {"barrier": 40})) == "host-0:0"
    assert waited_for(account({"barrier": 40}, {"barrier": 40})) == ""
    assert waited_for(account({}, {}, {"barrier": 40}, {"barrier": 40}, hosts=(0, 0, 1, 1))) == "host-0"
