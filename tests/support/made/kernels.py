"""A made profile of kernels whose programs were compiled: what the pictures of the README show."""

from __future__ import annotations

from tests.parsers.formats.mosaic.compiled import archive
from tests.support.build import PlaneBuilder
from tests.support.files.kernels import NS, TARGET, US, KernelRun, with_kernels
from tpuprof.parsers.formats.hlo.programs import METADATA_PLANE
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

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
    plane.event_id("jit_step(1)", **{"Hlo Proto": archive.program("pipeline").proto.SerializeToString()}, program_id=1)
    return space.SerializeToString()
