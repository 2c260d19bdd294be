"""The account adds up on every profile at hand: simulated ones of all shapes, those that our scripts make, real ones.

Steps and the time between them add up to the span from the first step's start to the last one's end, on each core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.fence.profiles import DECODE, FEATURES, TRAIN, simulated
from tests.insight.cases.all import CASES, HALF_OF
from tests.insight.simulator.scene import Scene, play
from tests.insight.simulator.space import spaces
from tests.support.build import present, session_at, write_run
from tests.support.composed import slices
from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.pages.collectives.page import COLLECTIVES
from tpuprof.parsers.pages.hosts.hosts import HOSTS
from tpuprof.parsers.pages.hosts.model import PARTS, StepPartName
from tpuprof.parsers.pages.overview.accounts_of_ops import NO_OP
from tpuprof.parsers.pages.overview.model import OP_ACCOUNTS, OVERVIEW
from tpuprof.parsers.pages.overview.overview import ledger_of_run as ledger_of
from tpuprof.parsers.pages.shared.key import SUMMARIES
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.steps.accounts.owners import OWNERS, Owner
from tpuprof.parsers.steps.aligned import AlignedSteps, join_hosts
from tpuprof.parsers.steps.step_account import AccountRow
from tpuprof.tui.demo import demo_path

DRIFT = 0.001
"""The most by which the device's clock and the trace's drift apart."""

MISPLACED = 0.25
"""How far from its place a border may be on the trace's clock, as a share of a step (`device_durations`)."""

PARTS_OF: Mapping[StepPartName, tuple[Owner, ...]] = {
    "input": ("input",),
    "collective": ("collective_transfer",),
    "wait": ("collective_wait", "barrier"),
    "idle": ("host", "dispatch", "compile", "between_ops"),
}
"""Whose some parts of the hosts' page are."""

OTHERS: Mapping[str, Callable[[Path], Path | str]] = {
    "demo": lambda _: demo_path(),
    "two-slices": slices.write_run,
    "decode": lambda folder: hosts_at(folder, simulated(DECODE)),
    "hosts": lambda folder: hosts_at(folder, simulated(TRAIN)),
    "cut off": lambda folder: hosts_at(folder, [data[: len(data) * 2 // 3] for data in simulated(TRAIN)]),
    **{name: lambda folder, name=name: hosts_at(folder, [FEATURES[name]()]) for name in FEATURES},  # type: ignore[misc]
}
"""Profiles that our scripts make."""

REAL = ("tpu-v6e-inference", "gpu-v100-bert", "gpu-mi300-jax", "cpu-only")
COMPOSED = ("synthetic-a", "synthetic-b", "synthetic-c", "synthetic-h1")


def hosts_at(folder: Path, hosts: Sequence[bytes]) -> Path:
    return write_run(folder, **{f"host{number}": data for number, data in enumerate(hosts)})


def scenes() -> Mapping[str, Scene]:
    """One case of the tuned half for each kind of program, device and number of hosts, with and without markers."""
    chosen: dict[tuple[object, ...], tuple[str, Scene]] = {}
    for case in CASES:
        scene = case.scene
        if HALF_OF[case.name] == "tuned":
            kind = tuple(type(work).__name__ for work in scene.work)
            key = (case.part, kind, scene.device.kind, scene.hosts, scene.marks, scene.traced, len(scene.turns) > 1)
            chosen.setdefault(key, (case.name, scene))
    return dict(chosen.values())


SCENES = scenes()


@pytest.mark.parametrize("name", SCENES)
def test_simulated(name: str, tmp_path: Path) -> None:
    scene = SCENES[name]
    check(session_at(hosts_at(tmp_path, spaces(scene, play(scene)))))


@pytest.mark.parametrize("name", OTHERS)
def test_made(name: str, tmp_path: Path) -> None:
    check(session_at(OTHERS[name](tmp_path)))


@pytest.mark.shared
@pytest.mark.parametrize("name", [*(f"profiles/{name}" for name in REAL), *(f"golden/{name}" for name in COMPOSED)])
def test_real(name: str, shared: Path) -> None:
    check(session_at(shared / name))


# --- what holds on any profile


def check(session: Session) -> None:
    """Checks the steps of each host and of all, the account, and what pages show of both."""
    summaries = session.page(SUMMARIES)
    grids = [summary.steps for summary in summaries if summary.steps is not None]
    for grid in grids:
        check_steps(grid)
    if grids and len({grid.source for grid in grids}) == 1 and len(joined := join_hosts(grids)):
        check_steps(joined)
    check_account(session)


def check_steps(grid: AlignedSteps) -> None:
    """Steps of a core follow each other, and with the time between them they add up to the whole span."""
    between = grid.between_ps.sum(axis=2)
    gaps = grid.core_start_ps[:, 1:] - grid.core_end_ps[:, :-1]
    assert (grid.owner_ps >= 0).all() and (grid.between_ps >= 0).all()
    assert (grid.owner_ps.sum(axis=2) == grid.duration_ps).all()
    assert (gaps >= 0).all() and (grid.core_end_ps > grid.core_start_ps).all()
    assert not between[:, -1].any()
    follows = (between[:, :-1] == gaps).all(axis=0)
    assert (follows | ~between[:, :-1].any(axis=0)).all()  # nothing is known of the time of steps that were left out
    if not grid.dropped and not grid.incomplete:
        assert follows.all() or not between.any()  # but for the time in which a server waits for requests
    own = grid.core_end_ps - grid.core_start_ps
    if follows.all():
        span = grid.core_end_ps[:, -1] - grid.core_start_ps[:, 0]
        assert (own.sum(axis=1) + between.sum(axis=1) == span).all()
    apart = np.abs(grid.duration_ps.sum(axis=1) - own.sum(axis=1))
    assert (apart <= DRIFT * own.sum(axis=1) + MISPLACED * grid.duration_ps.max(axis=1)).all()


def check_account(session: Session) -> None:
    """Rows of the account add up exactly, and what pages show of it are its means."""
    account, overview = ledger_of(session, None), session.page(OVERVIEW)
    if account is None:
        assert overview.account is None
        return
    assert (account.owner_ps >= 0).all() and (account.between_ps >= 0).all()
    assert (account.owner_ps.sum(axis=2) == account.step_ps).all()
    shown, time = present(overview.account), present(overview.performance.step_time)
    mean = account.owner_ps.mean(axis=(0, 1))
    assert sum(owner.time_ps for owner in shown.owners) == pytest.approx(shown.step_ps)
    assert {of.owner: of.time_ps for of in shown.owners} == pytest.approx(
        {of.owner: mean[OWNERS.index(of.owner)] for of in shown.owners}
    )
    assert shown.step_ps == pytest.approx(time.average_ps) == pytest.approx(float(account.step_ps.mean()))
    cores = [int((account.hosts == host).sum()) for host in sorted(set(account.hosts.tolist()))]
    for rows, weights in ((shown.steps, None), (shown.cores, None), (shown.hosts, cores)):
        assert mean_of(rows, weights) == pytest.approx(mean, abs=1)
    check_hosts(session, mean, shown.step_ps, len(account.core_names))
    check_ops(session)


def check_ops(session: Session) -> None:
    """Rows by module, by scope and by op have names of their own, and add up to each owner's time."""
    account, accounts = present(session.page(OVERVIEW).account), session.page(OP_ACCOUNTS)
    if accounts is None:
        return
    for grouping in ("module", "scope", "op"):
        rows = accounts.by(grouping)
        assert len({row.name for row in rows}) == len(rows)
        for owner in account.owners:
            times = [row.owner_ps[OWNERS.index(owner.owner)] for row in rows]
            assert sum(times) == pytest.approx(owner.time_ps, abs=1), (grouping, owner.owner)
        without_op = sum(row.time_ps for row in rows if row.name == NO_OP)
        assert present(account.no_op_fraction) * account.step_ps == pytest.approx(without_op, abs=1)


def mean_of(rows: Sequence[AccountRow], weights: Sequence[int] | None) -> Floats:
    for row in rows:
        assert sum(row.owner_ps) == pytest.approx(row.time_ps)
    mean: Floats = np.average([row.owner_ps for row in rows], axis=0, weights=weights)
    return mean


def check_hosts(session: Session, mean: Floats, step_ps: float, rows: int) -> None:
    """The hosts' page and that of collectives show the same step, where all hosts take part in the comparison."""
    hosts = session.page(HOSTS)
    if hosts.steps is None or any(row.not_compared for row in hosts.rows):
        return
    assert hosts.steps.duration_ps.max(axis=0).mean() == pytest.approx(step_ps)
    parts = hosts.steps.parts_ps.mean(axis=(0, 1))
    assert parts.sum() == pytest.approx(step_ps)
    for part, owners in PARTS_OF.items() if len(hosts.steps.core_names) == rows else ():  # one row is all GPUs together
        assert parts[PARTS.index(part)] == pytest.approx(sum(mean[OWNERS.index(owner)] for owner in owners), abs=1)
    collectives = session.page(COLLECTIVES)
    if collectives.has_steps:
        assert present(collectives.step_time_ps) == pytest.approx(step_ps)
