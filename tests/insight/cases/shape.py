"""Shapes of programs: healthy scenes, and the problems that are planted in them, alone and in pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.insight.cases.case import Case, Half
from tests.insight.simulator.parts import Part
from tests.insight.simulator.play import Chore
from tests.insight.simulator.scene import Scene

_ORDINALS = {
    2: "other|second|2nd",
    3: "third|3rd",
    4: "fourth",
    5: "fifth",
    6: "sixth",
    7: "seventh",
    8: "eighth",
    10: "tenth",
}


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
            return rf"(?i)\bevery ({_ORDINALS[self.every]}|{self.every}(th)?)\b"
        if self.since:
            numbers = "|".join(
                str(number) for first in (0, 100) for number in (first + self.since, first + self.since + 1)
            )
            return rf"(?i)\b(from|since|after|begin\w*|start\w*|as of)\b[^.]*\b({numbers})\b"
        return ""


@dataclass
class Shape:
    """A sort of program, or, without a name, programs of which each stands for itself.

    Attributes:
        scenes: healthy ones by name; each is a twin, as it is and with each part that could be done badly done well, or
            with these parts alone where the shape came `later`.
        problems: by name, a scene and what is planted there.
        pairs: names of two problems of one scene; the first is worth more.
        healthy: other healthy scenes by name, of which some look as if something were wrong.
        later, half: of all its cases.
    """

    name: str = ""
    later: str = ""
    half: Half | None = None
    scenes: dict[str, Scene] = field(default_factory=dict)
    problems: dict[str, tuple[Scene, Plant]] = field(default_factory=dict)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    healthy: dict[str, Scene] = field(default_factory=dict)

    def cases(self) -> list[Case]:
        found = [*self._singles(), *self._pairs(), *self._twins()]
        return [replace(case, shape=self.name, later=self.later, half=self.half) for case in found]

    def done_well(self, scene: Scene, names: Iterable[str]) -> Scene:
        """The scene with these problems' parts, all done well."""
        for name in names:
            scene = self.problems[name][1].into_scene(scene, bad=False)
        return scene

    def _singles(self) -> Iterator[Case]:
        for name, (scene, plant) in self.problems.items():
            yield self._case(name, plant, plant.into_scene(scene), plant.into_scene(scene, bad=False))

    def _pairs(self) -> Iterator[Case]:
        for names in self.pairs:
            (scene, first), (also_scene, second) = (self.problems[name] for name in names)
            assert scene == also_scene, names
            both = second.into_scene(first.into_scene(scene))
            name = "-and-".join(names)
            more = self._case(name, first, both, second.into_scene(first.into_scene(scene, bad=False)))
            less = self._case(name, second, both, second.into_scene(first.into_scene(scene), bad=False))
            yield replace(more, beside=less)

    def _twins(self) -> Iterator[Case]:
        for name, scene in self.scenes.items():
            well = self.done_well(scene, (of for of, (planted_in, _) in self.problems.items() if planted_in == scene))
            if not self.later:
                yield self._fine(name, scene)
                if well != scene:
                    yield self._fine(f"{name}-all-done-well", replace(well, seed=scene.seed + 500))
            else:
                yield self._fine(name, replace(well, seed=scene.seed + 500))
        for name, scene in self.healthy.items():
            yield self._fine(name, scene)

    def _case(self, name: str, plant: Plant, scene: Scene, without: Scene) -> Case:
        return Case(self._named(name), plant.kind, scene, without, plant.place, plant.also, when=plant.when)

    def _fine(self, name: str, scene: Scene) -> Case:
        return Case(self._named(f"healthy-{name}"), "", scene, scene)

    def _named(self, name: str) -> str:
        return f"{self.name}-{name}".removeprefix("-")
