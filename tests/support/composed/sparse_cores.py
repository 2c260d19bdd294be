"""Profiles of an embedding-heavy training with SparseCores, composed as XProf's source describes their planes.

A step of `STEP_PS` on a TensorCore: a call that a SparseCore runs begins (`embed.call-start`), dense layers run, the
call is waited for (`embed.call-done`), further layers run, then a scatter the same way, and a collective that a
SparseCore runs while nothing else does. How long each takes is a `Shape`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.build import PlaneBuilder, StatInput
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

US = 1_000_000
STEP_PS = 1000 * US

PEAKS = {"peak_teraflops_per_second": 100.0, "peak_hbm_bw_gigabytes_per_second": 1000.0}


@dataclass(frozen=True, slots=True)
class Shape:
    """Times in a step, in microseconds: when a SparseCore begins and for how long it works, for each of two calls.

    Attributes:
        gather, scatter: begin and length of what a SparseCore runs for each call; a length of 0 leaves the call out.
        gather_done, scatter_done: begin and length of the op in which the TensorCore waits for it.
        idle: begin and length of a time in which the TensorCore runs nothing.
    """

    gather: tuple[int, int] = (20, 200)
    gather_done: tuple[int, int] = (219, 2)
    scatter: tuple[int, int] = (600, 110)
    scatter_done: tuple[int, int] = (700, 20)
    idle: tuple[int, int] = (990, 10)


HEALTHY = Shape()
"""It works 31% of the step, 28.9% beside the TensorCore, which waits 2.2% for it."""

BOUND = Shape(gather=(10, 600), gather_done=(200, 420), scatter=(700, 260), scatter_done=(900, 50), idle=(960, 40))
"""It works 86% of the step, and the TensorCore waits 47% for it."""

UNUSED = Shape(gather=(0, 0), scatter=(0, 0))
"""No op runs on it."""

_ON_SPARSE_CORE = 'async_execution_thread="sparsecore"'
_TEXTS = {
    "embed.call-start": f"%embed.call-start = ((s32[4096]), f32[4096,128]) call-start(%ids), {_ON_SPARSE_CORE}",
    "embed.call-done": "%embed.call-done = f32[4096,128] call-done(%embed.call-start)",
    "update.call-start": f"%update.call-start = ((f32[4096,128]), f32[]) call-start(%grad), {_ON_SPARSE_CORE}",
    "update.call-done": "%update.call-done = f32[] call-done(%update.call-start)",
}
_CATEGORIES = {"call-start": "async-start", "call-done": "async-done", "fusion": "convolution fusion"}
_SPARSE_OPS = {
    "gather": (("sc_infeed.1", "infeed", 0.0, 0.1), ("gather_fusion.1", "loop fusion", 0.1, 0.9)),
    "scatter": (("scatter_fusion.2", "loop fusion", 0.0, 0.8), ("sc_add.3", "non-fusion elementwise", 0.8, 0.2)),
}
"""What a SparseCore runs for a call: op, category, begin and length as shares of its time."""


def _op(plane: PlaneBuilder, name: str, number: int, category: str) -> int:
    text = _TEXTS.get(name, f"%{name} = f32[8] fusion(%p.0)")
    more: dict[str, StatInput] = {"program_id": 7, "symbol_id": number, "hlo_category": category}
    more["tf_op"] = f"jit(train)/embed/{name}:"
    return plane.event_id(text, name, **more)


def _numbers(value: int) -> dict[str, StatInput]:
    return {"offload_core_id": 0, "tc_offload_start_id": value}


def add_sparse_cores(
    space: XSpace, chip: int, shapes: Sequence[Shape], steps: Sequence[tuple[str, int, int]], with_x: bool
) -> None:
    """Adds planes of SparseCores beside a chip's TensorCore; they start nothing on it.

    Args:
        shapes: of each SparseCore; times are cut in proportion to the steps' length.
        steps: name, start and duration of the steps, in picoseconds.
        with_x: whether the planes are called ``SparseCore x0``.
    """
    for core, shape in enumerate(shapes):
        name = f"/device:TPU:{chip} SparseCore {'x' * with_x}{core}"
        plane = PlaneBuilder(space, name, 100 + 10 * chip + core)
        lines = [plane.line(f"Sparse Core {kind}") for kind in ("Steps", "Modules", "Ops", "Syncs")]
        for number, (step, start, long) in enumerate(steps):
            plane.event(lines[0], plane.event_id(step), start, long, group_id=number)
            for place, call in enumerate(("gather", "scatter")):
                begin, length = (value * long // 1000 for value in getattr(shape, call))
                if not length:
                    continue
                plane.event(lines[1], plane.event_id("jit_sparse(9)"), start + begin, length)
                for key, value in _numbers(1000 + 10 * number + place).items():
                    plane.fill(lines[1].events[-1].stats.add(), key, value)
                for stat in lines[1].events[-1].stats:  # XProf reads these as unsigned, those of a core's op as signed
                    stat.uint64_value = stat.int64_value
                for op, category, first, share in _SPARSE_OPS[call]:
                    ident = _op(plane, op, len(op) + 20 * place, category)
                    offset = start + begin + round(first * length)
                    plane.event(lines[2], ident, offset, round(share * length), group_id=number)
                plane.event(lines[3], plane.event_id("sync wait"), start + begin, length // 20)


def add_beside_all(space: XSpace, shapes: Sequence[Shape]) -> None:
    """Adds SparseCores beside every TensorCore of a profile, with the steps that this one has."""
    for plane in list(space.planes):
        chip = plane.name.decode().removeprefix("/device:TPU:")
        lines = [line for line in plane.lines if line.name == b"Steps"]
        if not (chip.isdecimal() and lines):
            continue
        begin = lines[0].timestamp_ns * 1000
        steps = [
            (plane.event_metadata[event.metadata_id].name.decode(), begin + event.offset_ps, event.duration_ps)
            for event in lines[0].events
        ]
        add_sparse_cores(space, int(chip), shapes, steps, with_x=False)


def _tensor_core(space: XSpace, chip: int, shape: Shape, steps: Sequence[tuple[str, int, int]]) -> None:
    plane = PlaneBuilder(space, f"/device:TPU:{chip}", chip + 1)
    plane.stat("device_type_string", "TPU v6 lite")
    for name, value in PEAKS.items():
        plane.stat(name, value)
    lines = plane.line("Steps"), plane.line("XLA Modules"), plane.line("XLA Ops")
    for number, (step, start, _) in enumerate(steps):
        plane.event(lines[0], plane.event_id(step), start, STEP_PS, group_id=number)
        plane.event(lines[1], plane.event_id("jit_train(7)"), start, STEP_PS, group_id=number)
        cuts = [(0, 2, "embed.call-start", 1000 + 10 * number)] if shape.gather[1] else []
        cuts += [(*shape.gather_done, "embed.call-done", None)] if shape.gather[1] else []  # type: ignore[list-item]
        if shape.scatter[1]:
            cuts.append((shape.scatter[0] - 2, 2, "update.call-start", 1000 + 10 * number + 1))
            cuts.append((*shape.scatter_done, "update.call-done", None))  # type: ignore[arg-type]
        cuts.append((*shape.idle, "", None))  # type: ignore[arg-type]
        at = 0
        for begin, length, op, started in [*sorted(cuts), (1000, 0, "", None)]:
            if begin > at:
                layer = f"fusion.{at % 7}"
                plane.event(
                    lines[2],
                    _op(plane, layer, 50 + at % 7, "convolution fusion"),
                    start + at * US,
                    (begin - at) * US,
                    group_id=number,
                )
            if op:
                category = _CATEGORIES[op.rpartition(".")[2]]
                stats = {} if started is None else _numbers(started)
                ident = _op(plane, op, 1 + list(_TEXTS).index(op), category)
                plane.event(lines[2], ident, start + begin * US, length * US, group_id=number, **stats)
            at = max(at, begin + length)


def sparse_profile(
    shapes: Sequence[Shape] = (HEALTHY,),
    chips: int = 1,
    step_count: int = 4,
    with_x: bool = False,
    with_tensor_cores: bool = True,
) -> XSpace:
    """A host's profile.

    Args:
        shapes: of the SparseCores of each chip; the TensorCore's is the first one's.
        with_x: as of `add_sparse_cores`.
        with_tensor_cores: whether their planes are there.
    """
    space = XSpace()
    for chip in range(chips):
        steps = [(str(number), number * STEP_PS, STEP_PS) for number in range(step_count)]
        if with_tensor_cores:
            _tensor_core(space, chip, shapes[0], steps)
        add_sparse_cores(space, chip, shapes, steps, with_x)
    return space
