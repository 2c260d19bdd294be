"""Eight virtual devices that reduce over each other: their ops take the steps, with nothing planted."""

from __future__ import annotations

import os

import numpy as np

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

from tests.insight.programs.scripts.harness import Planted, arguments, run, step


def loop(count: int) -> None:
    """Trains."""
    for number in range(count):
        with step(number):
            reduced(batch).block_until_ready()


if __name__ == "__main__":
    given = arguments()
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    planted = Planted("ops")
    mesh = Mesh(np.array(jax.devices()), ("x",))
    batch = jax.device_put(np.ones((8 * 128, 256), np.float32), NamedSharding(mesh, PartitionSpec("x")))

    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec())
    def reduced(x):  # type: ignore[no-untyped-def]
        for _ in range(8):
            x = jax.numpy.tanh(x @ x.T @ x / 256)
        return jax.lax.psum(x, "x")

    run(given, planted, loop)
