"""Profiles of a TPU whose kernels record what goes on inside them, composed as real captures of a v6e have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.parsers.formats.mosaic.compiled import archive
from tests.support.build import PlaneBuilder, StatInput
from tests.support.files.counters import device, environment
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.programs import METADATA_PLANE
from tpuprof.parsers.formats.proto.xplane_pb2 import XLine, XSpace

NS = 1_000
US = 1_000 * NS
MS = 1_000 * US

BODY, IDLE = {"MXU": 80.0, "Vector ALU": 20.0}, {"MXU": 0.0, "Vector ALU": 0.0}
"""Percent of the slots of each unit in the bundles of a body, and of what is around it."""

ARRAYS = (
    "f32[2048,2048]{1,0:T(8,128)} custom-call(f32[2048,1024]{1,0:T(8,128)} %x.1, f32[1024,2048]{1,0:T(8,128)} %y.1)"
)
TARGET = ', custom_call_target="tpu_custom_call"'


@dataclass(frozen=True, slots=True)
class KernelRun:
    """How a kernel runs.

    Attributes:
        op, program, framework_op: its names.
        text: its HLO behind the name.
        steps: of its grid.
        wait_x_ps, wait_y_ps, body_ps: of each step: the waits for the blocks of its two operands, and the body.
        runs: how often.
        flops: by the compiler's count, None for none; it counts no bytes: 0.
    """

    op: str = "matmul.1"
    program: int = 7
    framework_op: str = "jit(step)/jit(matmul)/pallas_call"
    text: str = ARRAYS + TARGET
    steps: int = 4
    wait_x_ps: int = 10 * NS
    wait_y_ps: int = 6 * US
    body_ps: int = 2 * US
    runs: int = 3
    flops: int | None = None

    @property
    def step_ps(self) -> int:
        """A step of the grid, with what lies between the spans."""
        return self.wait_x_ps + self.wait_y_ps + self.body_ps + 20 * NS

    @property
    def time_ps(self) -> int:
        """A run: its steps, and the wait for the last results."""
        return self.steps * self.step_ps + 500 * NS


def with_kernels(kernels: Sequence[KernelRun] = (KernelRun(),), *, is_traced: bool = True, cores: int = 1) -> bytes:
    """Cores that run kernels one after the other, a millisecond apart."""
    space = XSpace()
    for ordinal in range(cores):
        plane = device(space, ordinal, "TPU v6 Lite")
        ops, modules, scopes, counters = (
            plane.line(name) for name in ("XLA Ops", "XLA Modules", "XLA TraceMe", "_counters_")
        )
        at = MS
        for kernel in kernels:
            stats: dict[str, StatInput] = {"bytes_accessed": 0}
            stats |= {} if kernel.flops is None else {"flops": kernel.flops, "model_flops": kernel.flops}
            call = plane.event_id(
                f"%{kernel.op} = {kernel.text}",
                kernel.op,
                hlo_category="custom-call",
                program_id=kernel.program,
                symbol_id=sum(kernel.op.encode()),
                tf_op=f"{kernel.framework_op}:",
                source="model.py:12",
            )
            for _ in range(kernel.runs):
                plane.event(modules, plane.event_id(f"jit_step({kernel.program})"), at, kernel.time_ps)
                plane.event(ops, call, at, kernel.time_ps, **stats)
                if is_traced:
                    _inside(plane, scopes, counters, kernel, at)
                at += kernel.time_ps + MS
    environment(space, 100 * MS)
    return space.SerializeToString()


def _inside(plane: PlaneBuilder, scopes: XLine, counters: XLine, kernel: KernelRun, begin: int) -> None:
    """The spans of one run, and the samples from one trace point to the next.

    That of a body stands 78 ps ahead of the next point, behind which the body runs; the last one lasts far beyond.
    """
    span = {name: plane.event_id(name) for name in ("ep_wait_in", "ep_run_kernel", "acc", "ep_finalize")}
    at = begin
    for step in range(kernel.steps):
        plane.event(scopes, span["ep_wait_in"], at + 2 * NS, kernel.wait_x_ps)
        plane.event(scopes, span["ep_wait_in"], at + 4 * NS + kernel.wait_x_ps, kernel.wait_y_ps)
        marker = at + 6 * NS + kernel.wait_x_ps + kernel.wait_y_ps
        body = marker + 78 + 1_170
        plane.event(scopes, span["ep_run_kernel"], marker - 1 * NS, kernel.body_ps + 4 * NS)
        plane.event(scopes, span["acc"], body, kernel.body_ps)
        end = at + kernel.step_ps
        _sample(plane, counters, IDLE, at, marker)
        _sample(plane, counters, BODY, marker, marker + 78)
        _sample(plane, counters, IDLE, marker + 78, end if step + 1 < kernel.steps else end + MS)
        at = end
    plane.event(scopes, span["ep_finalize"], at, 500 * NS)


def _sample(plane: PlaneBuilder, line: XLine, use: Mapping[str, float], begin: int, end: int) -> None:
    for unit, percent in use.items():
        stats: dict[str, StatInput] = {"% util": percent}
        plane.event(line, plane.event_id(unit), begin, end - begin, **stats)


PIPELINE = KernelRun(
    op="pipeline.1",
    program=1,
    framework_op="jit(step)/layer_0/mlp/pipeline/pallas_call",
    text=f"f32[512,512]{{1,0}} custom-call(bf16[512,256]{{1,0}} %x, bf16[256,512]{{1,0}} %y){TARGET}",
    steps=16,
    wait_y_ps=300 * NS,
    body_ps=120 * NS,
    runs=64,
    flops=2 * 512 * 256 * 512 // 8,
)
"""A kernel with a pipeline of its own: `y` has one buffer, and the compiler counted 2 of 16 steps."""


def tuned(size: int, wait_ps: int) -> KernelRun:
    """The same product in blocks of one size, a program of its own."""
    name = f"mm-bm_{size}-bn_512-"
    return KernelRun(
        op=f"{name}.1", program=size, framework_op=f"jit(tune)/{name}/pallas_call", steps=8, wait_y_ps=wait_ps, runs=4
    )


PAGED = KernelRun(
    op="RPA-bq_32-bkvp_64-.3",
    program=2,
    framework_op="jit(step)/layer_0/attention/jit(ragged_paged_attention)/RPA-bq_32-bkvp_64-/pallas_call",
    text=f"bf16[64,128]{{1,0}} custom-call(s32[256]{{0}} %pages, bf16[7007,64]{{1,0}} %kv){TARGET}",
    wait_y_ps=1 * US,
    body_ps=8 * US,
    runs=12,
)


def traced_kernels() -> bytes:
    """A core that runs kernels, with the spans inside them, and the compiled program of one."""
    runs = (PIPELINE, tuned(128, 6 * US), tuned(512, 1 * US), tuned(256, 3 * US), PAGED)
    space = XSpace.FromString(with_kernels(runs))
    plane = PlaneBuilder(space, METADATA_PLANE, 90)
    stats: dict[str, StatInput] = {"Hlo Proto": archive.program("pipeline").proto.SerializeToString(), "program_id": 1}
    plane.event_id("jit_step(1)", "", **stats)
    return space.SerializeToString()
