"""Each step has another shape, so that each is compiled; the healthy twin's are of one shape."""

from __future__ import annotations

from itertools import count as counting

import numpy as np

from tests.insight.programs.scripts.harness import Planted, arguments, products, run, step

LENGTHS = counting(33)


def loop(count: int) -> None:
    """Trains."""
    for number in range(count):
        length = 256 if given.healthy else next(LENGTHS)
        with step(number):
            batch = np.ones((length, length), np.float32)
            with planted.taking():
                lowered = forward(batch)
            lowered.block_until_ready()


if __name__ == "__main__":
    given = arguments()
    planted = Planted("ops") if given.healthy else Planted.of("compile", loop)
    forward, _ = products(count=32 if given.healthy else 2)
    run(given, planted, loop)
