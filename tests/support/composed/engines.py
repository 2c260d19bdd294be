"""Programs side by side on the cores of one or more hosts, each with a rhythm of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.build import PlaneBuilder
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

MS = 1_000_000_000


@dataclass(frozen=True)
class Engine:
    """Runs of one program on some cores of a host.

    Attributes:
        program: its name; cores: how many; busy_ms: how long each of its cores computes in a run.
        period_ms: from one run to the next; begin_ms: when the first begins.
        devices: how many devices its all-reduce needs, which all its cores end together; 0 for no collective.
        ends_ms: how long a run takes with that; 0 for little longer than on its slowest core.
        is_numbered: whether the runs have run ids.
        marked: which of its cores have a Steps line, around each run.
    """

    program: str = "jit_decode"
    cores: int = 1
    busy_ms: tuple[int, ...] = (20,)
    period_ms: int = 60
    begin_ms: int = 10
    devices: int = 0
    runs: int = 10
    ends_ms: int = 0
    is_numbered: bool = False
    marked: Sequence[int] = ()


def engines_space(engines: Sequence[Engine]) -> XSpace:
    """A host's profile."""
    space, ordinal = XSpace(), 0
    for engine in engines:
        for core in range(engine.cores):
            _core(space, ordinal, engine, engine.busy_ms[core % len(engine.busy_ms)], core in engine.marked)
            ordinal += 1
    return space


def _core(space: XSpace, ordinal: int, engine: Engine, busy_ms: int, is_marked: bool) -> None:
    plane = PlaneBuilder(space, f"/device:TPU:{ordinal}", ordinal + 1)
    plane.stat("device_type_string", "TPU v6 lite")
    plane.stat("peak_teraflops_per_second", 918.0)
    modules, ops = plane.line("XLA Modules"), plane.line("XLA Ops")
    steps = [plane.line("Steps")] if is_marked else []
    number = sum(engine.program.encode())
    of_program = {"program_id": number, "flops": 1 << 30}
    compute = plane.event_id(
        "%fusion.1 = f32[8]{0} fusion(%p)", "fusion.1", hlo_category="convolution fusion", symbol_id=1, **of_program
    )
    groups = "{{" + ",".join(map(str, range(engine.devices))) + "}}"
    text = f"%all-reduce.1 = f32[8]{{0}} all-reduce(%fusion.1), replica_groups={groups}"
    reduce = plane.event_id(text, "all-reduce.1", hlo_category="all-reduce", symbol_id=2, program_id=number)
    whole_ms = engine.ends_ms or max(engine.busy_ms) + 2 if engine.devices else busy_ms
    for run in range(engine.runs):
        at = (engine.begin_ms + run * engine.period_ms) * MS
        numbered = {"run_id": run} if engine.is_numbered else {}
        for line in steps:
            plane.event(line, plane.event_id(str(run)), at, whole_ms * MS)
        plane.event(modules, plane.event_id(f"{engine.program}({number})"), at, whole_ms * MS, **numbered)
        plane.event(ops, compute, at, busy_ms * MS)
        if engine.devices:
            plane.event(ops, reduce, at + busy_ms * MS, (whole_ms - busy_ms) * MS)


REPLICAS = tuple(
    Engine(busy_ms=(busy,), period_ms=period, begin_ms=10 + 3 * at)
    for at, (busy, period) in enumerate(((21, 63), (25, 61), (55, 64), (22, 63)))
)
"""Four engines of one program without a collective, which drift apart."""

TRAINER_AND_ROLLOUT = (
    Engine("jit_train_step", 4, (40, 44, 40, 40), 100, 5, devices=4),
    Engine("jit_generate", 2, (10, 10), 17, 9, devices=2, runs=40),
)
