"""A scene: a program, the chips and hosts that run it, and what they do; and how it is played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

import numpy as np

from tests.demo.profile.schedule import Device
from tests.insight.simulator.code import US, V5E, Program
from tests.insight.simulator.play import (
    GAP_PS,
    LAUNCH_PS,
    START_PS,
    Chips,
    HostEvent,
    Launch,
    Loop,
    Played,
    Stage,
    Times,
)

WARM = 2
"""Steps before the capture begins, so that it shows a program under way."""

EXECUTE_TYPE, EXECUTE_LINK = 7, 4_294_967_296
"""What ties a call to the thread that carries it out, as in real profiles; the link grows with the run's id."""

_NOTICE_PS = 60 * US
"""From the end of a run to the host's notice of it."""


class Workload(Protocol):
    """Something that can be compiled: a frozen dataclass of sizes and choices."""

    def build(self, device: Device, cores: int) -> Program:
        """Compiles it for so many cores together."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Memory:
    """What the allocator of each device reports: shares of the capacity that buffers and programs take."""

    in_use: float = 0.55
    reserved: float = 0.15


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a profile shows.

    Attributes:
        work: the programs; turns: which of them step after step, repeated; hosts, cores: of each host.
        marks: whether cores have a Steps line; marks_first: whether its steps end with their first program.
        hlo: whether the modules are in the profile; scopes: whether ops have framework names and source lines; python:
            whether the host's Python calls were traced.
        traced: what the profile holds: ``all``; ``host``, no device planes; else the devices ran nothing at all, and
            this is what the host did meanwhile.
    """

    work: tuple[Workload, ...]
    device: Device = V5E
    hosts: int = 1
    cores: int = 4
    steps: int = 12
    seed: int = 1
    turns: tuple[tuple[int, ...], ...] = ((0,),)
    loop: Loop = field(default_factory=Loop)
    chips: Chips = field(default_factory=Chips)
    memory: Memory = field(default_factory=Memory)
    marks: bool = True
    marks_first: bool = False
    hlo: bool = True
    scopes: bool = True
    python: bool = True
    traced: str = "all"


@cache
def _compiled(work: Workload, device: Device, cores: int) -> Program:
    return work.build(device, cores)


def compiled(scene: Scene) -> list[Program]:
    return [_compiled(work, scene.device, scene.hosts * scene.cores) for work in scene.work]


def play(scene: Scene) -> Played:
    """Plays a scene from its first step to its last."""
    total = scene.hosts * scene.cores
    stage = Stage(scene.seed, scene.steps, total, scene.chips)
    programs = compiled(scene)
    hosts = [_Host(scene, number, stage) for number in range(scene.hosts)]
    launches: list[Launch] = []
    ends: list[Times] = []
    previous = np.full(total, START_PS, np.int64)
    begins: list[Times] = []
    run_id = 3
    for step in range(-WARM, scene.steps):
        if step == 0:
            _begin_capture(hosts)
            launches.clear()
        for host in hosts:
            host.prepare(step)
        begins.append(previous + GAP_PS)
        for number in scene.turns[step % len(scene.turns)]:
            run_id += 1
            enqueued = tuple(host.launch(run_id, programs[number].module.name) for host in hosts)
            begin = np.maximum(np.repeat(enqueued, scene.cores) + LAUNCH_PS, previous + GAP_PS)
            launch = stage.run(programs[number], step, begin, run_id, enqueued)
            launches.append(launch)
            previous = launch.end
        ends.append(previous)
        for host in hosts:
            host.follow(step, ends)
    for host in hosts:
        host.finish()
    return Played(launches, np.array(begins[WARM:]), np.array(ends[WARM:]), [host.events for host in hosts])


def _begin_capture(hosts: Sequence[_Host]) -> None:
    """Forgets what the hosts did before the capture began."""
    for host in hosts:
        host.events.clear()
        host.begun = host.now


class _Host:
    """The loop of one host."""

    def __init__(self, scene: Scene, number: int, stage: Stage) -> None:
        self.scene, self.loop, self.number = scene, scene.loop, number
        self.chance = stage.chance
        self.now = START_PS
        self.step_begin = START_PS
        self.begun = START_PS
        self.made: list[int] = []
        self.taken: list[int] = []
        self.events: list[HostEvent] = []
        self.own = slice(number * scene.cores, (number + 1) * scene.cores)

    def vary(self, what: str, ps: float, step: int, deviation: float = 0.05) -> int:
        """A time of the host's with its noise."""
        return int(ps * max(0.2, self.chance.factors(f"host {what}", deviation)[step, self.own.start]))

    def event(self, name: str, begin: int, end: int, thread: str = "python", **stats: int) -> None:
        self.events.append(HostEvent(thread, name, begin, end, tuple(stats.items())))

    def prepare(self, step: int) -> None:
        """Fetches the step's batch and sends it to the devices."""
        loop = self.loop
        self.step_begin = self.now
        if loop.fetch:
            self._produce(step)
            taken = max(self.now, self.made[-1]) + 30 * US
            self.event(loop.fetch, self.now, taken)
            self.taken.append(taken)
            self.now = taken
            put = self.vary("put", loop.put_ps, step)
            self.event("batched_device_put", self.now + 2 * US, self.now + put)
            for core in range(self.scene.cores):
                begin = self.now + (20 + 7 * core) * US
                self.event(
                    "tpu::System::TransferToDevice", begin, begin + 60 * US, f"pjrt-tpu-tasks/{4401 + core}",
                    size=32_768, device_ordinal=core,
                )  # fmt: skip
            self.now += put
        self._chores(step, before=True, ends=[])
        self.now += sum(int(ps) for host, ps in loop.late if host == self.number)

    def _produce(self, step: int) -> None:
        loop = self.loop
        ps = self.vary("batch", loop.batch_ps, step)
        mine = not loop.slow_hosts or self.number in loop.slow_hosts
        within = step >= loop.slow_since and (not loop.slow_until or step < loop.slow_until)
        if mine and within and loop.slow_every and step % loop.slow_every == loop.slow_every - 1:
            ps += int(loop.slow_ps)
        begin = self.made[-1] if self.made else START_PS - ps
        if len(self.made) >= loop.prefetch:
            begin = max(begin, self.taken[len(self.made) - loop.prefetch])
        self.made.append(begin + ps)
        self.event("$dataset.py:77 make_batch", begin, begin + ps, "loader-worker/5120")

    def launch(self, run_id: int, module: str) -> int:
        """Calls the compiled program; returns when its run is enqueued."""
        ps = self.vary("launch", self.loop.launch_ps, run_id % self.scene.steps)
        called = self.loop.call or module.removeprefix("jit_")
        self.event(self.loop.launcher.format(called), self.now, self.now + ps)
        self.event("ParseArguments", self.now + ps // 20, self.now + ps // 5)
        execute = "PjRtCApiLoadedExecutable::Execute"
        begin, end = self.now + ps // 4, self.now + ps - ps // 20
        self.event(execute, begin, end, _pt=EXECUTE_TYPE, _p=EXECUTE_LINK + run_id)
        self.now += ps
        return self.now - ps // 10

    def follow(self, step: int, ends: list[Times]) -> None:
        """Reads a result, if an earlier step's, and does what is to be done after a launch."""
        loop = self.loop
        if loop.ahead < len(ends):
            self._read(loop.reading, ends[-1 - loop.ahead])
        self._chores(step, before=False, ends=ends)
        if loop.annotate:
            self.event("train", self.step_begin, self.now, step_num=100 + step, _r=1)
        self.now += 12 * US

    def finish(self) -> None:
        """Adds what goes on all the time, on the loop's thread and on others."""
        self.event("$trainer.py:201 fit", self.begun - 100 * US, self.now + 40 * US)
        self.event("$threading.py:323 wait", self.begun - 900 * US, self.now + 700 * US, "Thread-2/5301")
        for number, begin in enumerate(range(self.begun, self.now, 40_000 * US)):
            self.event("$heartbeat.py:33 beat", begin, begin + (150 + number % 7) * US, "Thread-3/5302")

    def _read(self, name: str, end: Times) -> None:
        noticed = max(self.now, int(end[self.own].max()) + _NOTICE_PS)
        done = noticed + 15 * US
        self.event(name, self.now, done)
        if "asarray" in name:
            transfer = "tpu::System::TransferFromDevice=>IssueEvent=>Done"
            self.event(transfer, noticed, noticed + 12 * US, "EventFDAsyncWorker/3118", size=512)
        self.now = done

    def _chores(self, step: int, before: bool, ends: list[Times]) -> None:
        for chore in self.loop.chores:
            if chore.before != before or step % chore.every != chore.offset or (step < 0 and chore.every > 1):
                continue
            if (chore.since and step < chore.since) or (chore.hosts and self.number not in chore.hosts):
                continue
            if chore.reads:
                self._read(chore.reads, ends[-1])
            ps = self.vary(chore.name, chore.ps, step)
            if chore.thread:
                self.event(chore.name, self.now, self.now + ps, chore.thread)
                continue
            if chore.inside:
                self.event(chore.inside, self.now, self.now + ps)
            self.event(chore.name, self.now + ps // 100, self.now + ps - ps // 100)
            self.now += ps
