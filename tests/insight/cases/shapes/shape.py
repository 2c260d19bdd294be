"""Shapes of programs: the scenes of each, and the problems that are planted in them, alone and in pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.insight.cases.case import Case, Half, fine
from tests.insight.simulator.parts import Kernel, Part, Relayouts
from tests.insight.simulator.play import Chore
from tests.insight.simulator.scene import Scene


@dataclass(frozen=True)
class Plant:
    """What makes a scene slower.

    Attributes:
        kind, place, also: as a case's.
        part: what is done badly, in the field `into` of the scene's program number `program`; where the problem is not
            planted it is done well, or `instead` of it something else.
        work, loop, chips, scene: changes of that program, of the hosts' loop, of the chips, of anything else.
        chores: what the hosts do besides.
        every, since: the rhythm of the steps that it comes in, and the first one of them.
    """

    kind: str
    place: tuple[str, ...]
    also: tuple[str, ...] = ()
    part: Any = None
    instead: tuple[Part, ...] | None = None
    into: str = "once"
    program: int = 0
    work: Mapping[str, Any] = field(default_factory=dict)
    loop: Mapping[str, Any] = field(default_factory=dict)
    chips: Mapping[str, Any] = field(default_factory=dict)
    scene: Mapping[str, Any] = field(default_factory=dict)
    chores: tuple[Chore, ...] = ()
    every: int = 0
    since: int = 0

    def into_scene(self, healthy: Scene, bad: bool = True) -> Scene:
        """The scene with the problem, or with the same done well."""
        programs: list[Any] = list(healthy.work)
        if bad:
            programs[self.program] = replace(programs[self.program], **self.work)
        if self.part is not None:
            well = (replace(self.part, bad=False),) if self.instead is None else self.instead
            parts = (*getattr(programs[self.program], self.into), *((self.part,) if bad else well))
            programs[self.program] = replace(programs[self.program], **{self.into: parts})
        planted = replace(healthy, work=tuple(programs))
        if not bad:
            return planted
        loop = replace(healthy.loop, chores=(*healthy.loop.chores, *self.chores), **self.loop)
        return replace(planted, loop=loop, chips=replace(healthy.chips, **self.chips), **self.scene)

    @property
    def when(self) -> str:
        """The pattern of a text that says in which steps it comes: their rhythm, and the number of the first one."""
        if self.every:
            ordinal = {
                2: "other|second|2nd",
                3: "third|3rd",
                4: "fourth",
                5: "fifth",
                6: "sixth",
                7: "seventh",
                8: "eighth",
                10: "tenth",
            }[self.every]
            return rf"(?i)\bevery ({ordinal}|{self.every}(th)?)\b"
        if self.since:
            numbers = "|".join(
                str(number) for first in (0, 100) for number in (first + self.since, first + self.since + 1)
            )
            return rf"(?i)\b(from|since|after|begin\w*|start\w*|as of)\b[^.]*\b({numbers})\b"
        return ""


@dataclass(frozen=True)
class Shape:
    """A sort of program.

    Attributes:
        scenes: healthy ones by name. problems: by name, the scene's name and what is planted there.
        pairs: names of two problems of one scene; the first is worth more.
        twins: harmless things, as problems are given; all scenes are twins anyhow, as they are and with each part that
            could be done badly done well.
        half: of all its cases, where they are not split.
    """

    name: str
    scenes: Mapping[str, Scene]
    problems: Mapping[str, tuple[str, Plant]]
    pairs: tuple[tuple[str, str], ...]
    twins: Mapping[str, tuple[str, Plant]] = field(default_factory=dict)
    half: Half | None = None

    def cases(self) -> list[Case]:
        """All its cases."""
        found = [*self._singles(), *self._pairs(), *self._twins()]
        return [replace(case, shape=self.name, half=self.half) for case in found]

    def done_well(self, names: Iterable[str]) -> Scene:
        """Their scene with these problems' parts, all done well."""
        where, plants = zip(*(self.problems[name] for name in names), strict=True)
        scene = self.scenes[where[0]]
        for plant in plants:
            scene = plant.into_scene(scene, bad=False)
        return scene

    def _singles(self) -> Iterable[Case]:
        for name, (where, plant) in self.problems.items():
            scene = self.scenes[where]
            yield _case(f"{self.name}-{name}", plant, plant.into_scene(scene), plant.into_scene(scene, bad=False))

    def _pairs(self) -> Iterable[Case]:
        for names in self.pairs:
            (where, first), (also_where, second) = (self.problems[name] for name in names)
            assert where == also_where, names
            scene = self.scenes[where]
            both = second.into_scene(first.into_scene(scene))
            name = f"{self.name}-{names[0]}-and-{names[1]}"
            more = _case(name, first, both, second.into_scene(first.into_scene(scene, bad=False)))
            less = _case(name, second, both, second.into_scene(first.into_scene(scene), bad=False))
            yield replace(more, beside=less)

    def _twins(self) -> Iterable[Case]:
        for where, scene in self.scenes.items():
            yield fine(f"{self.name}-healthy-{where}", scene)
            well = self.done_well(name for name, (found_in, _) in self.problems.items() if found_in == where)
            if well != scene:
                yield fine(f"{self.name}-healthy-{where}-all-done-well", replace(well, seed=scene.seed + 500))
        for name, (where, plant) in self.twins.items():
            yield fine(f"{self.name}-healthy-{name}", plant.into_scene(self.scenes[where]))


def _case(name: str, plant: Plant, scene: Scene, without: Scene) -> Case:
    return Case(name, plant.kind, scene, without, plant.place, plant.also, when=plant.when)


def harmless(**changes: Any) -> Plant:
    """What costs nothing, or too little to care."""
    return Plant("", (), **changes)


def throttled(core: int, factor: float, since: int = 0) -> Mapping[str, Any]:
    """Changes of chips: one core takes so many times as long, from a step on."""
    return {"chips": {"speed": ((core, factor),), "since": since}}


def slow_kernel(
    name: str,
    reached: float,
    source: str,
    mib: int,
    flops: float = 1e9,
    into: str = "each",
    scope: str = "",
) -> Plant:
    """A Pallas kernel that reaches a small share of its roof: this many bytes, or FLOPs."""
    part = Kernel(reached, flops=flops, size=mib << 20, base=name, scope=f"{scope or name}/pallas_call", source=source)
    return Plant("slow-kernel", (name,), part=part, into=into)


def transposed(scope: str, source: str, count: int, rows: int, width: int = 2048, into: str = "each") -> Plant:
    """Arrays that are copied into another layout."""
    part = Relayouts(count=count, rows=rows, width=width, scope=scope, source=source)
    return Plant("copy", (scope, source), part=part, into=into)
