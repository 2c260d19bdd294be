"""Points with three coordinates each, moved by a kernel that wants them row by row: tiles are mostly padding."""

# mypy: ignore-errors
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.sharding import PartitionSpec as P


def kernel(x, out):
    out[...] = x[...] * 2 + 1


def move(x, block, place):
    spec = pl.BlockSpec(block, place)
    grid = (max(x.shape) // max(block),)
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(kernel, grid=grid, in_specs=[spec], out_specs=spec, out_shape=out, name="move")(x)


def build(k, array):
    """Three coordinates last, or, with `points_last`, the points."""

    def step(points):
        if k["points_last"]:
            return jnp.sin(move(points, (3, 512), lambda i: (0, i)))
        return jnp.sin(move(points, (512, 3), lambda i: (i, 0)))

    shape = (3, k["points"]) if k["points_last"] else (k["points"], 3)
    return step, (array(shape, P(), jnp.float32),), {}
