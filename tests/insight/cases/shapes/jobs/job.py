"""Jobs: shapes that came last. Each of their scenes has one healthy twin, and some have others that look suspicious."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tests.insight.cases.case import JOBS, Case, fine
from tests.insight.cases.shapes.shape import Shape
from tests.insight.simulator.scene import Scene


@dataclass(frozen=True)
class Job(Shape):
    """A shape whose scenes have one healthy twin each, with all parts done well; `suspects` are healthy scenes that
    only look as if something were wrong, by name."""

    suspects: tuple[tuple[str, Scene], ...] = ()

    def cases(self) -> list[Case]:
        """All its cases, held back."""
        return [replace(case, later=JOBS, half="held") for case in super().cases()]

    def _twins(self) -> Iterable[Case]:
        for where, scene in self.scenes.items():
            names = [name for name, (found_in, _) in self.problems.items() if found_in == where]
            well = self.done_well(names) if names else scene
            yield fine(f"{self.name}-healthy-{where}", replace(well, seed=scene.seed + 500))
        for name, (where, plant) in self.twins.items():
            yield fine(f"{self.name}-healthy-{name}", plant.into_scene(self.scenes[where]))
        for name, scene in self.suspects:
            yield fine(f"{self.name}-healthy-{name}", scene)
