"""Small runs whose every time is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.build import PlaneBuilder, StatInput, session_at, write_run
from tpuprof.parsers.formats.hlo.programs import METADATA_PLANE
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.session.diff.compare import compare
from tpuprof.parsers.session.diff.model import Change, Diff, OpChange

US = 1_000_000
MS = 1000 * US

Step = Sequence[tuple[str, int]]
"""Names of ops and how long each runs, one after the other, in picoseconds."""


@dataclass(frozen=True, slots=True)
class Program:
    """What runs.

    Attributes:
        steps: the ops of each step.
        idle_ps: time at the end of each step without an op; one a step, or the same for all.
        cores: each does the same.
        late_ps: idle time of the second core, and every other one, beyond that of the first.
        categories: HLO category of ops, ``loop fusion`` for others.
        texts: HLO text of ops, ``f32[8] name()`` for others; framework: their framework ops.
        duplicates: the op that ops are copies of, by the compiler's word.
        names: of the steps; their numbers where there are none.
        hlo: the compiled module's proto.
        program: name of the module; marked: with a Steps line; runs: with an XLA Modules line.
    """

    steps: Sequence[Step]
    idle_ps: int | Sequence[int] = 0
    cores: int = 1
    late_ps: int = 0
    categories: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    framework: Mapping[str, str] = field(default_factory=dict)
    duplicates: Mapping[str, str] = field(default_factory=dict)
    names: Sequence[str] = ()
    program: str = "jit_step"
    marked: bool = True
    runs: bool = True
    device: str = "TPU test"
    hlo: bytes = b""


def space_of(program: Program, first_core: int = 0) -> XSpace:
    """The profile of one host."""
    space = XSpace()
    for core in range(first_core, first_core + program.cores):
        _plane(space, program, core)
    if program.hlo:
        plane = PlaneBuilder(space, METADATA_PLANE, 90)
        entry = plane.plane.event_metadata[plane.event_id(f"{program.program}(7)")]
        plane.fill(entry.stats.add(), "Hlo Proto", program.hlo)
        plane.fill(entry.stats.add(), "program_id", 7)
    return space


def _plane(space: XSpace, program: Program, core: int) -> None:
    plane = PlaneBuilder(space, f"/device:TPU:{core}", core + 1)
    plane.stat("device_type_string", program.device)
    plane.stat("peak_teraflops_per_second", 100.0)
    plane.stat("peak_hbm_bw_gigabytes_per_second", 1000.0)
    marks = plane.line("Steps") if program.marked else None
    modules = plane.line("XLA Modules") if program.runs else None
    line = plane.line("XLA Ops")
    idle = program.idle_ps if isinstance(program.idle_ps, Sequence) else [program.idle_ps] * len(program.steps)
    now = 5 * MS
    for number, (step, gap) in enumerate(zip(program.steps, idle, strict=True)):
        begin = now
        for name, duration in step:
            stats: dict[str, StatInput] = {
                "program_id": 7,
                "symbol_id": sum(byte * (at + 1) for at, byte in enumerate(name.encode())),
                "hlo_category": program.categories.get(name, "loop fusion"),
            }
            if name in program.framework:
                stats["tf_op"] = program.framework[name]
            if name in program.duplicates:
                stats["deduplicated_name"] = program.duplicates[name]
            text = program.texts.get(name, f"f32[8] {name.partition('.')[0]}()")
            plane.event(line, plane.event_id(f"%{name} = {text}", name, **stats), now, duration)
            now += duration
        if modules is not None:
            plane.event(modules, plane.event_id(f"{program.program}(7)"), begin, now - begin)
        now += gap + (program.late_ps if core % 2 else 0)
        if marks is not None:
            plane.event(
                marks, plane.event_id(program.names[number] if program.names else str(number)), begin, now - begin
            )


def written(folder: Path, name: str, *programs: Program) -> str:
    """The path of a run with a host for each program."""
    hosts = {f"host{number}": space_of(program) for number, program in enumerate(programs)}
    return str(write_run(folder / name, name, **hosts))


def diff_of(folder: Path, before: Program | Sequence[Program], after: Program | Sequence[Program]) -> Diff:
    """The comparison of two programs, or of what several hosts run."""
    parts = [[one] if isinstance(one, Program) else list(one) for one in (before, after)]
    paths = [written(folder, name, *part) for name, part in zip(("run_a", "run_b"), parts, strict=True)]
    return compare(session_at(paths[0]), session_at(paths[1]))


def op(diff: Diff, name: str) -> OpChange:
    """The op of that name."""
    (found,) = (item for item in diff.ops if item.name == name)
    return found


def check_identity(diff: Diff) -> None:
    """The times add up, of each side and of the change."""
    assert diff.steps is not None
    for side in ("before", "after", "delta"):

        def figure(change: Change, side: str = side) -> float:
            return getattr(change, side) or 0.0

        of_ops = sum(figure(item.time) for item in diff.ops)
        close = 1e-9 * figure(diff.steps.mean, "after") + 1.0
        without_ops = sum(figure(item.typical) for item in diff.owners if not item.has_ops)
        assert abs(sum(figure(item.mean) for item in diff.owners) - figure(diff.steps.mean)) < close
        assert abs(sum(figure(item.typical) for item in diff.owners) - figure(diff.steps.typical)) < close
        assert abs(of_ops - sum(figure(item.time) for item in diff.categories)) < close
        assert abs(of_ops + without_ops - figure(diff.steps.typical)) < close
        assert figure(diff.total) == figure(diff.steps.typical)
        assert abs(figure(diff.steps.typical) + figure(diff.steps.odd) - figure(diff.steps.mean)) < close


def example(folder: Path) -> Diff:
    """A run that got slower: a new all-gather, a fusion that takes longer, an op that is gone, two odd steps."""
    jitter = (0, 300, -200, 100, -100, 200, -300, 0, 100, -100, 50, -50)
    categories = {
        "fusion.397": "convolution fusion",
        "fusion.41": "loop fusion",
        "fusion.52": "loop fusion",
        "copy.812": "copy",
        "all-gather.3": "all-gather",
        "all-reduce.9": "all-reduce",
    }
    framework = {
        "fusion.397": "jit(step)/mlp/dot_general:",
        "fusion.41": "jit(step)/norm/mul:",
        "fusion.52": "jit(step)/norm/mul:",
        "copy.812": "jit(step)/transpose:",
    }
    before = Program(
        steps=[
            [("fusion.397", 60 * MS + by * US), ("fusion.41", 9 * MS), ("copy.812", 5 * MS), ("all-reduce.9", 20 * MS)]
            for by in jitter
        ],
        idle_ps=6 * MS,
        cores=2,
        categories=categories,
        framework=framework,
        texts={"fusion.41": "f32[64,512]{1,0} fusion(f32[64,512] %p.1), kind=kLoop, calls=%fused.1"},
    )
    after = Program(
        steps=[
            [
                ("fusion.397", 60 * MS + by * US),
                ("fusion.52", 11 * MS),
                ("all-gather.3", 21_700 * US),
                ("all-reduce.9", 20 * MS),
            ]
            for by in jitter
        ],
        idle_ps=[6 * MS if number not in (4, 9) else 90 * MS for number in range(len(jitter))],
        cores=2,
        categories=categories,
        framework=framework,
        texts={"fusion.52": "f32[64,512]{1,0} fusion(f32[64,512] %p.8), kind=kLoop, calls=%fused.9"},
    )
    return diff_of(folder, before, after)


def layers(count: int, duration_ps: int) -> Program:
    """A program with one op a layer, unrolled: each jitters by 6 % from step to step, their sum hardly; and a copy."""
    names = [f"fusion.{10 + layer}" for layer in range(count)]
    return Program(
        steps=[
            [
                *((name, duration_ps + ((7 * at + 5 * step) % 13 - 6) * 10 * US) for at, name in enumerate(names)),
                ("copy.900", 4 * MS),
            ]
            for step in range(13)
        ],
        categories={"copy.900": "copy"},
        framework={name: f"jit(step)/layer_{at}/mlp/dot_general:" for at, name in enumerate(names)},
    )
