"""The verdict: the cause with most of the step, with what other cores wait for it."""

from __future__ import annotations

import numpy as np
import pytest

from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.host_events.activity import Activity, IdleTime
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.ops.table import EMPTY_TABLE
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


def asked(of: Account, idle: IdleTime | None = None) -> Verdict:
    return verdict_of(of, EMPTY_TABLE, table_rates(EMPTY_TABLE, Peaks()), idle, ())


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
    assert asked(account({"host": 500}, {"host": 500}), gaps).by == by


def test_nobody_is_waited_for_where_cores_hardly_wait() -> None:
    assert waited_for(account({}, {})) == ""
    assert waited_for(account({}, {"barrier": 4})) == ""
    assert waited_for(account({}, {"barrier": 40})) == "host-0:0"
    assert waited_for(account({"barrier": 40}, {"barrier": 40})) == ""
    assert waited_for(account({}, {}, {"barrier": 40}, {"barrier": 40}, hosts=(0, 0, 1, 1))) == "host-0"
