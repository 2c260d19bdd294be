"""Two processes that reduce over each other at each step; the second prepares each for 60 ms, and the first waits.

The script starts both; `FOLDER/0` and `FOLDER/1` hold what each of them captured.
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

from tests.insight.programs.scripts.harness import SLEEP_S, Planted, arguments, run, step


def prepare() -> None:
    """What the slow process alone does."""
    with planted.taking():
        time.sleep(SLEEP_S)


def loop(count: int) -> None:
    """Trains, one step with the other process."""
    for number in range(count):
        with step(number):
            if given.process == 1 and not given.healthy:
                prepare()
            reduced(batch).block_until_ready()


def start_both() -> None:
    """Runs this script twice."""
    import socket

    with socket.socket() as found:
        found.bind(("localhost", 0))
        coordinator = f"localhost:{found.getsockname()[1]}"
    processes = []
    for number in range(2):
        folder = given.folder / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.insight.programs.scripts.two_processes", str(folder)]
        command += ["--process", str(number), "--coordinator", coordinator, *(["--healthy"] * given.healthy)]
        processes.append(subprocess.Popen(command))
    sys.exit(max(process.wait(60) for process in processes))


if __name__ == "__main__":
    given = arguments()
    if given.process is None:
        start_both()
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(given.coordinator, 2, given.process)
    planted = (
        Planted("ops") if given.healthy else Planted.of("other process" if given.process == 0 else "host", prepare)
    )
    mesh = Mesh(np.array(jax.devices()), ("x",))
    batch = jax.make_array_from_callback(
        (2 * 128, 256), NamedSharding(mesh, PartitionSpec("x")), lambda index: np.ones((128, 256), np.float32)
    )

    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec())
    def reduced(x):  # type: ignore[no-untyped-def]
        for _ in range(12 if given.healthy else 4):
            x = jax.numpy.tanh(x @ x.T @ x / 256)
        return jax.lax.psum(x.sum(), "x")

    run(given, planted, loop)
    jax.distributed.shutdown()
