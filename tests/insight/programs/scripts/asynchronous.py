"""Steps that launch their program and do not wait for it; the healthy twin waits in each."""

from __future__ import annotations

import jax

from tests.insight.programs.scripts.harness import Planted, arguments, products, run, step


def loop(count: int) -> None:
    """Trains; the results are there when it returns."""
    result = x
    for number in range(count):
        with step(number):
            result = forward(result)
            if given.healthy:
                result.block_until_ready()
    jax.block_until_ready(result)


if __name__ == "__main__":
    given = arguments()
    planted = Planted("ops" if given.healthy else "unknown")
    forward, x = products(count=32)
    run(given, planted, loop)
