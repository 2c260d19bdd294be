"""Pallas kernels that tests read: small blocks of arrays that are too large for VMEM."""

# mypy: ignore-errors
import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

BF16, F32, I32 = jnp.bfloat16, jnp.float32, jnp.int32


def _product(x, y):
    return jnp.dot(x, y, preferred_element_type=F32)


def _matmul(x_ref, y_ref, o_ref, sum_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        sum_ref[...] = jnp.zeros_like(sum_ref)

    with jax.named_scope("dot"):
        sum_ref[...] += _product(x_ref[...], y_ref[...])

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        o_ref[...] = sum_ref[...].astype(o_ref.dtype)


def matmul(x, y):
    (m, k), n = x.shape, y.shape[1]
    return pl.pallas_call(
        _matmul,
        grid=(m // 128, n // 128, k // 128),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), BF16),
        scratch_shapes=[pltpu.VMEM((128, 128), F32)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary"), vmem_limit_bytes=32 << 20
        ),
        cost_estimate=pl.CostEstimate(
            flops=2 * m * n * k, bytes_accessed=2 * (m * k + k * n + m * n), transcendentals=0
        ),
        metadata={"variant": "128"},
        name="mm",
    )(x, y)


def _attention(q_ref, k_ref, v_ref, o_ref, max_ref, sum_ref, out_ref, *, is_causal):
    row, column = pl.program_id(1), pl.program_id(2)

    @pl.when(column == 0)
    def _():
        max_ref[...] = jnp.full_like(max_ref, -jnp.inf)
        sum_ref[...] = jnp.zeros_like(sum_ref)
        out_ref[...] = jnp.zeros_like(out_ref)

    def block():
        with jax.named_scope("scores"):
            scores = jax.lax.dot_general(q_ref[0], k_ref[0], (((1,), (1,)), ((), ())), preferred_element_type=F32)
        with jax.named_scope("softmax"):
            largest = jnp.maximum(max_ref[...], jnp.max(scores, axis=1, keepdims=True))
            weights = jnp.exp(scores - largest[:, :1])
            scale = jnp.exp(max_ref[...] - largest)
            sum_ref[...] = scale * sum_ref[...] + jnp.sum(weights, axis=1, keepdims=True)
        out_ref[...] = out_ref[...] * scale[:, :1] + _product(weights.astype(v_ref.dtype), v_ref[0])
        max_ref[...] = largest

    pl.when(column <= row)(block) if is_causal else block()

    @pl.when(column == pl.num_programs(2) - 1)
    def _():
        o_ref[0] = (out_ref[...] / sum_ref[...][:, :1]).astype(o_ref.dtype)


def attention(q, k, v, is_causal=False):
    heads, length, width = q.shape
    of_rows = pl.BlockSpec((1, 128, width), lambda h, i, j: (h, i, 0))
    of_columns = pl.BlockSpec((1, 128, width), lambda h, i, j: (h, j, 0))
    return pl.pallas_call(
        functools.partial(_attention, is_causal=is_causal),
        grid=(heads, length // 128, length // 128),
        in_specs=[of_rows, of_columns, of_columns],
        out_specs=of_rows,
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
        scratch_shapes=[pltpu.VMEM((128, 128), F32)] * 3,
        name="attention",
    )(q, k, v)


def causal(q, k, v):
    return attention(q, k, v, is_causal=True)


def _gather(rows_ref, count_ref, x_ref, o_ref):
    step = pl.program_id(0)

    @pl.when(step < count_ref[0])
    def _():
        o_ref[...] = x_ref[...] * 2

    @pl.when(step >= count_ref[0])
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)


def gather(rows, count, x):
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(rows.shape[0],),
        in_specs=[pl.BlockSpec((8, 512), lambda i, rows, count: (rows[i], 0))],
        out_specs=pl.BlockSpec((8, 512), lambda i, rows, count: (i, 0)),
    )
    shape = jax.ShapeDtypeStruct((rows.shape[0] * 8, 512), F32)
    return pl.pallas_call(_gather, grid_spec=grid, out_shape=shape, name="ragged_gather")(rows, count, x)


def _spill(x_ref, o_ref):
    values = [x_ref[pl.ds(8 * row, 8), :] for row in range(80)]
    mixed = [jnp.tanh(values[row] * values[(row * 37 + 1) % 80]) + values[(row * 53 + 7) % 80] for row in range(80)]
    for row in range(80):
        o_ref[pl.ds(8 * row, 8), :] = mixed[row] + mixed[(row * 29 + 3) % 80]


def spill(x):
    block = pl.BlockSpec((640, 128), lambda i: (i, 0))
    return pl.pallas_call(
        _spill,
        grid=(x.shape[0] // 640,),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        name="spilling",
    )(x)


def _copy(x_ref, o_ref, buffer_ref, semaphore):
    with jax.named_scope("copy"):
        copy = pltpu.make_async_copy(x_ref.at[pl.ds(pl.program_id(0) * 64, 64)], buffer_ref, semaphore)
        copy.start()
        copy.wait()
    o_ref[...] = buffer_ref[...] + 1


def wait(x):
    return pl.pallas_call(
        _copy,
        grid=(x.shape[0] // 64,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((64, 512), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[pltpu.VMEM((64, 512), F32), pltpu.SemaphoreType.DMA],
        name="dma_wait",
    )(x)


def _pipeline(x_ref, y_ref, o_ref):
    def body(x_block, y_block, o_block):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o_block[...] = jnp.zeros_like(o_block)

        o_block[...] += _product(x_block[...], y_block[...])

    pltpu.emit_pipeline(
        body,
        grid=(4, 2, 2),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k), pipeline_mode=pl.Buffered(3)),
            pl.BlockSpec((128, 256), lambda i, j, k: (k, j), pipeline_mode=pl.Buffered(1)),
        ],
        out_specs=[pl.BlockSpec((128, 256), lambda i, j, k: (i, j))],
    )(x_ref, y_ref, o_ref)


def pipeline(x, y):
    whole = pl.BlockSpec(memory_space=pl.ANY)
    shape = jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), F32)
    return pl.pallas_call(_pipeline, in_specs=[whole, whole], out_specs=whole, out_shape=shape, name="pipeline")(x, y)


def _ragged(count_ref, x_ref, y_ref, o_ref):
    def turn(step, total):
        return total + _product(x_ref[pl.ds(step * 128, 128), :], y_ref[...])

    o_ref[...] = jax.lax.fori_loop(0, count_ref[pl.program_id(0)], turn, jnp.zeros((128, 128), F32))


def ragged(count, x, y):
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(count.shape[0],),
        in_specs=[
            pl.BlockSpec((1024, 128), lambda i, count: (i, 0)),
            pl.BlockSpec((128, 128), lambda i, count: (0, 0)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, count: (i, 0)),
    )
    shape = jax.ShapeDtypeStruct((count.shape[0] * 128, 128), F32)
    return pl.pallas_call(_ragged, grid_spec=grid, out_shape=shape, name="ragged")(count, x, y)


ARGUMENTS = {
    "matmul": (((2048, 1024), BF16), ((1024, 2048), BF16)),
    "attention": (((8, 2048, 128), BF16),) * 3,
    "causal": (((8, 2048, 128), BF16),) * 3,
    "gather": (((64,), I32), ((1,), I32), ((4096, 512), F32)),
    "spill": (((6400, 128), F32),),
    "wait": (((8192, 512), F32),),
    "pipeline": (((512, 256), F32), ((256, 512), F32)),
    "ragged": (((16,), I32), ((16384, 128), BF16), ((128, 128), BF16)),
}
