"""Pallas kernels whose blocks or scratch operands do not fit: matrix product, norm, attention, table of scalars."""

# mypy: ignore-errors
import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P


def specs(k, *blocks):
    """Blocks with one or two buffers each."""
    how = {"pipeline_mode": pl.Buffered(1)} if k["buffers"] == 1 else {}
    return [pl.BlockSpec(shape, place, **how) for shape, place in blocks]


def options(k):
    return pltpu.CompilerParams(vmem_limit_bytes=k["limit"] or None)


def matmul_kernel(x, y, out):
    out[...] = jnp.dot(x[...], y[...], preferred_element_type=jnp.float32).astype(out.dtype)


def matmul(k, x, y):
    """Whole rows of `x` by whole columns of `y`: the axis in the middle is in two of the three blocks."""
    m, n, inner = k["block_m"], k["block_n"], x.shape[1]
    first, second, out = specs(
        k, ((m, inner), lambda i, j: (i, 0)), ((inner, n), lambda i, j: (0, j)), ((m, n), lambda i, j: (i, j))
    )
    return pl.pallas_call(
        matmul_kernel,
        grid=(x.shape[0] // m, y.shape[1] // n),
        in_specs=[first, second],
        out_specs=out,
        out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), x.dtype),
        compiler_params=options(k),
        name="matmul_kernel",
    )(x, y)


def norm_kernel(x, out):
    out[...] = x[...] * jax.lax.rsqrt((x[...] ** 2).mean(-1, keepdims=True) + 1e-6)


def norm(k, x):
    """Blocks of rows, in and out."""
    rows = ((k["block_m"], x.shape[1]), lambda i: (i, 0))
    given, out = specs(k, rows, rows)
    return pl.pallas_call(
        norm_kernel,
        grid=(x.shape[0] // k["block_m"],),
        in_specs=[given],
        out_specs=out,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=options(k),
        name="norm_kernel",
    )(x)


def scratch_kernel(x, out, scratch):
    scratch[...] = jnp.zeros_like(scratch)
    scratch[0:8, :] = x[...]
    out[...] = scratch[0:8, :] * 2


def scratch(k, x):
    """A scratch operand in VMEM."""
    return pl.pallas_call(
        scratch_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[pltpu.VMEM((k["block_m"], x.shape[1]), jnp.float32)],
        compiler_params=options(k),
        name="scratch_kernel",
    )(x)


def table_kernel(x, out, table):
    table[0] = jnp.int32(1)
    out[...] = x[...] * table[0].astype(jnp.float32)


def table(k, x):
    """A scratch operand in SMEM."""
    return pl.pallas_call(
        table_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[pltpu.SMEM((k["block_m"],), jnp.int32)],
        compiler_params=options(k),
        name="table_kernel",
    )(x)


def attend_kernel(q, key, value, out):
    scores = jnp.dot(q[...], key[...].T, preferred_element_type=jnp.float32)
    weights = jnp.exp(scores - scores.max(-1, keepdims=True))
    mixed = jnp.dot(weights.astype(value.dtype), value[...], preferred_element_type=jnp.float32)
    out[...] = (mixed / weights.sum(-1, keepdims=True)).astype(out.dtype)


def attend(k, q, key, value):
    """Rows of queries by whole keys and values, whose blocks have an axis in common that those of the others lack."""
    m, n, inner = k["block_m"], k["block_n"], key.shape[0]
    rows, whole = ((m, n), lambda i: (i, 0)), ((inner, n), lambda i: (0, 0))
    first, second, third, out = specs(k, rows, whole, whole, rows)
    return pl.pallas_call(
        attend_kernel,
        grid=(q.shape[0] // m,),
        in_specs=[first, second, third],
        out_specs=out,
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
        compiler_params=options(k),
        name="attend_kernel",
    )(q, key, value)


def build(k, array):
    """The kernel on every chip."""
    given = {
        "matmul": ((4096, k["inner"]), (k["inner"], 4096)),
        "norm": ((32768, k["inner"]),),
        "scratch": ((8, k["inner"]),),
        "table": ((8, 128),),
        "attend": ((k["inner"], k["block_n"]),) * 3,
    }[k["kind"]]
    kernel = {"matmul": matmul, "norm": norm, "scratch": scratch, "table": table, "attend": attend}[k["kind"]]
    run = functools.partial(kernel, k)
    return run, tuple(array(shape, P(), jnp.dtype(k["dtype"])) for shape in given), {}
