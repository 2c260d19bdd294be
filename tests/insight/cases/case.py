"""Cases: programs with a planted problem whose worth is known, and healthy ones; and the halves they are split in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from typing import Literal

from tests.insight.simulator.play import Played
from tests.insight.simulator.scene import Scene, compiled, play

Half = Literal["tuned", "held"]
HALVES: tuple[Half, ...] = ("tuned", "held")
LATER = ("jobs", "codebases", "labs", "domains", "trials", "rounds", "blind")
"""Sets that came one after the other, and are scored by themselves."""
PARTS = ("single", "shapes", "pairs", *(part for later in LATER for part in (later, f"pairs of {later}")))
"""What is scored by itself: problems of well-known programs, those of other shapes, and two problems at once; then
those of each later set."""

WORTHLESS = ("memory-full", "no-device", "uncounted")
"""Kinds of problems that cost no time of a step."""


@dataclass(frozen=True)
class Case:
    """A program to find the problem of.

    Attributes:
        kind: the finding's kind; empty for a healthy program.
        also: kinds that are the same answer.
        place: any of these must be in the finding's title, evidence or place, or the name of an op from there.
        scene, without: with the problem, and the same with the same noise without it.
        later: with which others it came later; each set is split by itself, so that no case changes its half.
        shape: what sort of program it is, if its set is split by that rather than by kind.
        beside: the same scene's second problem, which is worth less; its `without` is the scene without that one alone.
        when: a pattern that the finding's text matches if it says in which steps the problem is; empty for all steps.
        half: which half it is in, if its set is not split.
    """

    name: str
    kind: str
    scene: Scene
    without: Scene
    place: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    later: str = ""
    shape: str = ""
    beside: Case | None = None
    when: str = ""
    half: Half | None = None

    @property
    def planted(self) -> tuple[Case, ...]:
        """Its problems, each as a case of its own, the one that is worth more first."""
        return () if self.is_healthy else (self,) if self.beside is None else (self, self.beside)

    @property
    def part(self) -> str:
        """What it is scored with, of `PARTS`."""
        is_pair = len(self.planted) > 1
        if self.later in LATER:
            return f"pairs of {self.later}" if is_pair else self.later
        return "pairs" if is_pair else "shapes" if self.shape else "single"

    @property
    def set(self) -> str:
        """What cases it is split with."""
        if self.shape:
            return f"{self.shape} {('healthy', 'problem', 'pair')[len(self.planted)]}"
        return f"{self.kind} {self.later}" if self.later else self.kind

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds that are right."""
        return (self.kind, *self.also)

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is planted."""
        return not self.kind

    @cached_property
    def op_names(self) -> frozenset[str]:
        """Names of the ops whose framework name or source line has the place; not those that are a plain word."""
        names = set()
        for program in compiled(self.scene):
            for timed in program.ops:
                value = timed.op.instruction
                where = (value.metadata.op_name.decode(), *program.module.stack(value))
                if any(part in text for part in self.place for text in where):
                    names.add(value.name.decode())
        return frozenset(names - {"fusion", "copy"})

    @property
    def has_plain_steps(self) -> bool:
        """Whether a step is one run of one program."""
        return len(self.scene.turns) == 1 and len(self.scene.turns[0]) == 1

    @property
    def played(self) -> Played:
        """What happens with the problem."""
        return _play(self.scene)

    @property
    def played_without(self) -> Played:
        """What would happen without it."""
        return _play(self.without)

    @cached_property
    def truth(self) -> Truth:
        """What the problem costs, by simulation."""
        step, capture = _lasts(self.scene)
        step_without, capture_without = _lasts(self.without)
        return Truth(step - step_without, capture - capture_without, step, capture)


@lru_cache(maxsize=2)
def _play(scene: Scene) -> Played:
    return play(scene)


@cache
def _lasts(scene: Scene) -> tuple[float, float]:
    """Picoseconds of a mean step and of the capture."""
    played = _play(scene)
    return played.step_ps, played.capture_ps


@dataclass(frozen=True, slots=True)
class Truth:
    """What a problem costs a step, and the whole capture; and how long these take with it. Picoseconds."""

    step_ps: float
    capture_ps: float
    whole_step_ps: float
    whole_capture_ps: float

    @property
    def fraction(self) -> float:
        """The problem's share of the step."""
        return self.step_ps / self.whole_step_ps


def halves(cases: Iterable[Case]) -> dict[str, Half]:
    """The half of each case by name: its own, or of each set, in the order of the names' hashes, every other one."""
    sets: dict[str, list[str]] = defaultdict(list)
    found: dict[str, Half] = {}
    for case in cases:
        if case.half is None:
            sets[case.set].append(case.name)
        else:
            found[case.name] = case.half
    for name_of_set, names in sets.items():
        first = _hash(name_of_set) % 2
        for number, name in enumerate(sorted(names, key=_hash)):
            found[name] = HALVES[(number + first) % 2]
    return found


def _hash(name: str) -> int:
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big")
