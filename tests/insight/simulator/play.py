"""Plays programs on the cores of several hosts: loops of hosts, input, launches, links, copies, waits and noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from zlib import crc32

import numpy as np
import numpy.typing as npt

from tests.demo.profile.noise import Noise
from tests.insight.simulator.code import US, Item, Program

Times = npt.NDArray[np.int64]
Ops = npt.NDArray[np.int64]

MS = 1000 * US
GAP_PS = 20_000
LAUNCH_PS = 45 * US
START_PS = 300 * MS
"""When the first step begins, counted from the profile's start."""


@dataclass(frozen=True, slots=True)
class Chore:
    """Work of a host's Python between two launches.

    Attributes:
        name: of its host event; ps: how long it takes; every: in which steps, `offset` first.
        reads: it waits for the step's results first, under the event of this name.
        before: it comes ahead of the launch.
        hosts: which hosts do it; empty for all.
        inside: the event around it. thread: another one that does it while the loop goes on; empty for the loop's own.
        since: the first step with it; 0 if it began before the capture did.
    """

    name: str
    ps: float
    every: int = 1
    offset: int = 0
    reads: str = ""
    before: bool = False
    hosts: tuple[int, ...] = ()
    inside: str = ""
    thread: str = ""
    since: int = 0


@dataclass(frozen=True, slots=True)
class Loop:
    """What each host does step by step.

    Attributes:
        batch_ps: time to make a batch; every `slow_every`th takes `slow_ps` more, on `slow_hosts` or on all, beginning
            with step `slow_since` and, unless it is 0, ahead of step `slow_until`.
        prefetch: batches made ahead.
        fetch: name of the event in which the loop asks for a batch; empty for no input.
        ahead: how many steps a host launches before it reads a result; 0 reads each step's at once.
        reading: name of the event in which it reads.
        call: the name of the function that the loop calls; empty for the program's own. launcher: the name of the
            event in which it does, with ``{}`` for the function's.
        late: how much later than the others some hosts get to their launch, (host, picoseconds).
    """

    batch_ps: float = 0.4 * MS
    slow_every: int = 0
    slow_ps: float = 0.0
    slow_hosts: tuple[int, ...] = ()
    slow_since: int = 0
    slow_until: int = 0
    prefetch: int = 2
    fetch: str = "$data_loader.py:210 __next__"
    put_ps: float = 0.25 * MS
    launch_ps: float = 0.22 * MS
    ahead: int = 1
    reading: str = "np.asarray(jax.Array)"
    call: str = "train_step"
    launcher: str = "PjitFunction({})"
    chores: tuple[Chore, ...] = ()
    late: tuple[tuple[int, float], ...] = ()
    annotate: bool = True


@dataclass(frozen=True, slots=True)
class Chips:
    """How the chips differ.

    Attributes:
        jitter: deviation of an op's time. speed: (core, factor on the time of all its ops).
        matrix_speed: (core, factor on the time of its matrix products).
        link_speed: (core, factor on the time of what it sends along a route).
        since: the first step at these speeds; 0 if they are so from before the capture on; until: the first one after
            them, unless it is 0.
        slow_steps: (step, factor on all times of this step).
        ahead_ps: how much the devices' clocks run ahead of the hosts'.
    """

    jitter: float = 0.004
    speed: tuple[tuple[int, float], ...] = ()
    matrix_speed: tuple[tuple[int, float], ...] = ()
    link_speed: tuple[tuple[int, float], ...] = ()
    since: int = 0
    until: int = 0
    slow_steps: tuple[tuple[int, float], ...] = ()
    ahead_ps: int = 0


@dataclass(frozen=True, slots=True)
class HostEvent:
    """An event on a host's thread."""

    thread: str
    name: str
    begin: int
    end: int
    stats: tuple[tuple[str, int | str], ...] = ()


@dataclass(slots=True)
class Launch:
    """One run of a program: begin and end on each core, and its events [event, core]; durations of 0 left none.

    `barriers` are begins and ends of waits at barriers on each core.
    """

    program: Program
    run_id: int
    step: int
    enqueued: tuple[int, ...]
    begin: Times
    end: Times
    ops: npt.NDArray[np.int64]
    starts: Times
    durations: Times
    pairs: list[tuple[int, int]] = field(default_factory=list)
    barriers: list[tuple[Times, Times]] = field(default_factory=list)


@dataclass(slots=True)
class Played:
    """Everything that happened; `step_ends` is [step, core]."""

    launches: list[Launch]
    step_begins: Times
    step_ends: Times
    events: list[list[HostEvent]]

    @property
    def step_ps(self) -> float:
        """The mean time from the end of one step to the end of the next, on the slowest core of each."""
        return float((self.step_ends - self.step_begins).max(axis=1).mean())

    @property
    def capture_ps(self) -> float:
        """From the first launch's begin to the last end, mean over cores."""
        return float((self.launches[-1].end - self.launches[0].begin).mean())


class Chance:
    """Noise that hangs on what it is for, so that planting something leaves the rest as it was."""

    def __init__(self, seed: int, steps: int, cores: int) -> None:
        self.seed, self.steps, self.cores = seed, steps, cores
        self._factors: dict[tuple[str, float], npt.NDArray[np.float64]] = {}

    def factors(self, label: str, deviation: float) -> npt.NDArray[np.float64]:
        """float64[steps, cores] around 1."""
        key = label, deviation
        if key not in self._factors:
            noise = Noise(self.seed, crc32(label.encode()))
            self._factors[key] = noise.normals(1.0, deviation, (self.steps, self.cores))
        return self._factors[key]


@lru_cache(maxsize=2)
def chance_of(seed: int, steps: int, cores: int) -> Chance:
    """The noise of a scene; what differs from it only by what is planted asks for it next."""
    return Chance(seed, steps, cores)


class Stage:
    """The cores of all hosts and what is under way on them."""

    def __init__(self, seed: int, steps: int, cores: int, chips: Chips) -> None:
        self.chance, self.chips, self.cores = chance_of(seed, steps, cores), chips, cores
        self.speed = np.ones(cores)
        for core, factor in chips.speed:
            self.speed[core] = factor
        self.matrix_speed = np.ones(cores)
        for core, factor in chips.matrix_speed:
            self.matrix_speed[core] = factor
        self.slow = dict(chips.slow_steps)
        self._tables: dict[int, _Table] = {}
        self._stretches: dict[int, list[Item | Ops]] = {}

    def table(self, program: Program) -> _Table:
        """What the ops of a program take, with their noise."""
        if id(program) not in self._tables:
            self._tables[id(program)] = _Table(program, self.chance, self.chips.jitter)
        return self._tables[id(program)]

    def stretches(self, program: Program, items: tuple[Item, ...]) -> list[Item | Ops]:
        """The items in their order, numbers of ops that only run, one after the other, as one array."""
        if id(items) not in self._stretches:
            found: list[Item | Ops] = []
            for runs, group in groupby(items, lambda item: item.kind == "run" and not program.ops[item.op].loads):
                alike = list(group)
                found += [np.array([item.op for item in alike])] if runs else alike
            self._stretches[id(items)] = found
        return self._stretches[id(items)]

    def run(self, program: Program, step: int, begin: Times, run_id: int, enqueued: tuple[int, ...]) -> Launch:
        """Plays one run that begins at these times."""
        player = _Player(self, program, step, begin)
        player.play(program.items, ())
        ops, starts, durations = player.columns()
        end = player.now.copy()
        pairs, barriers = player.pairs, player.barriers
        return Launch(program, run_id, step, enqueued, begin, end, ops, starts, durations, pairs, barriers)


class _Table:
    """What a program's ops take on each core, undisturbed, and their noise in each step."""

    def __init__(self, program: Program, chance: Chance, jitter: float) -> None:
        ops = program.ops
        self.durations = np.array([timed.op.duration_ps for timed in ops])[:, None]
        self.noise = np.array([chance.factors(timed.label, jitter) for timed in ops])
        self.multiplies = np.array([timed.op.category == "convolution fusion" for timed in ops])
        self.loaded = [(number, timed) for number, timed in enumerate(ops) if timed.load]


class _Player:
    """One run of a program."""

    def __init__(self, stage: Stage, program: Program, step: int, begin: Times) -> None:
        self.stage, self.program, self.step = stage, program, step
        self.now = begin + 2 * US
        self.engines = {name: self.now.copy() for name in ("copy", "link", "host", "sparse core")}
        self.ready: dict[int, Times] = {}
        self.open: dict[int, int] = {}
        self.pairs: list[tuple[int, int]] = []
        self.barriers: list[tuple[Times, Times]] = []
        self.count = 0
        self.ops: list[Ops] = []
        self.starts: list[Times] = []
        self.durations: list[Times] = []
        self.lengths = self._lengths()
        self.gaps = np.where(self.lengths > 0, GAP_PS, 0)

    def columns(self) -> tuple[npt.NDArray[np.int64], Times, Times]:
        """Ops, begins and durations of the events in the order they were left."""
        return np.concatenate(self.ops), np.concatenate(self.starts), np.concatenate(self.durations)

    def _lengths(self) -> Times:
        """How long each op takes on each core: int64[op, core]."""
        stage, table = self.stage, self.stage.table(self.program)
        even, chips = np.ones(stage.cores), stage.chips
        begun = self.step >= (chips.since or self.step) and (not chips.until or self.step < chips.until)
        speed, matrix_speed = (stage.speed, stage.matrix_speed) if begun else (even, even)
        ps = table.durations * table.noise[:, self.step] * speed * stage.slow.get(self.step, 1.0)
        ps[table.multiplies] *= matrix_speed
        for number, timed in table.loaded:
            load = np.resize(timed.load, stage.cores)
            ps[number] *= np.roll(load, self.step) if timed.rotates else load
        return np.asarray(ps.astype(np.int64))

    def length(self, number: int, trip: int) -> Times:
        """How long an op takes on each core in a turn of its loop."""
        loads = self.program.ops[number].loads
        if not loads:
            return np.asarray(self.lengths[number])
        parts: Times = (self.lengths[number] * np.resize(loads[trip % len(loads)], self.stage.cores)).astype(np.int64)
        return parts

    def event(self, op: int, duration: Times) -> int:
        """Notes an event that begins now, and lets its time pass."""
        self._note(np.array([op]), self.now[None], duration[None])
        self.now = self.now + duration + np.where(duration > 0, GAP_PS, 0)
        return self.count - 1

    def _note(self, ops: Ops, starts: Times, durations: Times) -> None:
        self.ops.append(ops)
        self.starts.append(starts)
        self.durations.append(durations)
        self.count += len(ops)

    def _run(self, ops: Ops) -> None:
        """Notes events of ops that run one after the other."""
        lengths = self.lengths[ops]
        passed = lengths + self.gaps[ops]
        ends = self.now + np.cumsum(passed, axis=0)
        self._note(ops, ends - passed, lengths)
        self.now = ends[-1]

    def play(self, items: tuple[Item, ...], trips: tuple[int, ...]) -> None:
        """Plays items in their order; `trips` counts the turns of the loops around them."""
        trip = trips[-1] if trips else 0
        for item in self.stage.stretches(self.program, items):
            if not isinstance(item, Item):
                self._run(item)
            elif item.kind == "run":
                self.event(item.op, self.length(item.op, trip))
            elif item.kind == "loop":
                self.loop(item, trips)
            elif item.kind == "sync":
                arrived = _meeting(self.now, self.program.ops[item.op].op.groups)
                self.event(item.op, arrived - self.now + self.transfer(item.op))
            elif item.kind == "start":
                self.start(item)
            elif item.kind == "barrier":
                begin, met = self.now, _meeting(self.now, (tuple(range(self.stage.cores)),))
                self.now = met + item.ps
                self.barriers.append((begin, self.now))
            else:
                at = self.open.pop(item.start, None)
                wait = np.maximum(self.ready[item.start] - self.now, 0)
                here = self.event(item.op, wait + self.length(item.op, trip))
                if at is not None:
                    self.pairs.append((at, here))

    def transfer(self, number: int) -> Times:
        """Time on the wire, the same for all that take part."""
        timed = self.program.ops[number]
        noise = self.stage.chance.factors(f"wire {timed.label}", 2 * self.stage.chips.jitter)[self.step]
        return np.full(self.stage.cores, int(timed.op.transfer_ps * noise[0]), np.int64)

    def start(self, item: Item) -> None:
        """Puts a transfer on its engine."""
        timed = self.program.ops[item.op]
        begun = np.maximum(self.engines[timed.engine], self.now)
        if timed.op.groups:
            begun = _meeting(begun, timed.op.groups)
        lasts = self.transfer(item.op)
        for core, factor in self.stage.chips.link_speed if timed.route else ():
            lasts[core] = int(lasts[core] * factor)
        done = begun + lasts
        self.engines[timed.engine] = done
        if timed.route:
            received = self.now.copy()
            for source, target in timed.route:
                received[target] = done[source]
            done = received
        self.ready[item.op] = done
        self.open[item.op] = self.event(item.op, self.length(item.op, 0))

    def loop(self, item: Item, trips: tuple[int, ...]) -> None:
        """All turns of a loop, and its own event around them."""
        begin, whole = self.now, np.zeros_like(self.now)[None]
        self._note(np.array([item.op]), begin[None], whole)
        self.now = self.now + GAP_PS
        simple = all(i.kind == "run" and not self.program.ops[i.op].loads for i in item.body)
        if simple and item.body:
            self._many_turns(item)
        else:
            for trip in range(item.trips):
                self.play(item.body, (*trips, trip))
        whole[0] = self.now - begin

    def _many_turns(self, item: Item) -> None:
        """The turns of a loop that only computes, all at once."""
        ops = np.tile([i.op for i in item.body], item.trips)
        lengths = self.lengths[ops]
        ends = np.cumsum(lengths + GAP_PS, axis=0)
        self._note(ops, self.now + ends - lengths - GAP_PS, lengths)
        self.now = self.now + ends[-1]


def _meeting(now: Times, groups: tuple[tuple[int, ...], ...]) -> Times:
    """When the last core of each group arrives."""
    arrived = now.copy()
    for group in groups:
        members = list(group)
        arrived[members] = now[members].max()
    return arrived
