"""The ten profiles that are asked about: the demo, simulated programs with something planted, and one of a real TPU."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.insight.cases.case import Case
from tests.insight.cases.reader import read_table
from tests.insight.raw import RawCore, cores_of, read
from tests.insight.simulator.space import spaces
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.tui.demo import demo_path

RUN = "2026_11_24_12_00_00"
SHARED = Path(__file__).parents[4] / "shared" / "profiles"
REAL = "real-v6e"
"""A program that somebody ran on a v6e, which moves arrays from and to the host's memory; of the reference data."""

CUT_CORE, CUT_STEP = 2, 6
"""The core whose ops end early in the profile that is cut, and the step of the capture in which they do."""

CASES: Mapping[str, Case] = {
    case.name.removeprefix("healthy-"): case
    for shape in read_table(Path(__file__).with_name("cases.txt"))
    for case in shape.cases()
}
"""What is simulated."""

NAMES = ("demo", *CASES, REAL)


@dataclass(frozen=True)
class Made:
    """A profile as it lies on the disk.

    Attributes:
        logdir: the folder to name to a program. files: of its hosts. case: what was simulated, or None.
    """

    logdir: Path
    files: tuple[Path, ...]
    case: Case | None = None

    @cached_property
    def spaces(self) -> list[XSpace]:
        """The messages of each file."""
        return [read(file) for file in self.files]

    @cached_property
    def cores(self) -> list[RawCore]:
        """The cores of all hosts, by plain arithmetic over the files' events."""
        return [core for space in self.spaces for core in cores_of(space)]

    def tidy(self) -> None:
        """Removes what a program left beside the files."""
        for path in self.files[0].parent.iterdir():
            if path not in self.files:
                path.unlink()

    @property
    def cost_ms(self) -> float:
        """What the planted problem costs a mean step."""
        assert self.case is not None
        return self.case.truth.step_ps / 1e9


def make(folder: Path) -> dict[str, Made]:
    """Writes all profiles, each as a logdir of its own; the real one where the reference data is at hand."""
    return {name: made for name in NAMES if (made := _make(name, folder / name)) is not None}


def _make(name: str, logdir: Path) -> Made | None:
    case = CASES.get(name)
    run = logdir / "plugins" / "profile" / RUN
    run.mkdir(parents=True)
    if name == REAL:
        found = sorted((SHARED / "tpu-v6e-inference").rglob("*.xplane.pb"))
        if not found:
            return None
        shutil.copyfile(found[0], run / "host0.xplane.pb")
    for host, data in enumerate(_spaces(name, case)):
        (run / f"host-{host}.xplane.pb").write_bytes(data)
    return Made(logdir, tuple(sorted(run.iterdir())), case)


def _spaces(name: str, case: Case | None) -> Iterator[bytes]:
    if name == "demo":
        yield gzip.decompress(Path(demo_path()).read_bytes())
    elif case is not None:
        for data in spaces(case.scene, case.played):
            yield _cut(data) if name == "cut" else data


def _cut(data: bytes) -> bytes:
    """The profile as it is where the profiler's buffer of a core was full: its ops end amid a step."""
    space = XSpace.FromString(data)
    plane = next(plane for plane in space.planes if plane.name == b"/device:TPU:%d" % CUT_CORE)
    lines = {line.name: line for line in plane.lines}
    step = lines[b"Steps"].events[CUT_STEP]
    last = step.offset_ps + step.duration_ps // 2
    ops = lines[b"XLA Ops"]
    kept = [event for event in ops.events if event.offset_ps + event.duration_ps <= last]
    del ops.events[:]
    ops.events.extend(kept)
    return space.SerializeToString(deterministic=True)
