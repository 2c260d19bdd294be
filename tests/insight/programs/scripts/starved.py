"""A loader that sleeps for 60 ms a batch on the step's own thread; the healthy twin's batches are there already.

With ``--between`` the loop asks for a batch before it marks the step.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np

from tests.insight.programs.scripts.harness import SLEEP_S, Planted, arguments, products, run, step


def load(sleeps: bool) -> Iterator[np.ndarray]:
    """Batches, each after a while."""
    while True:
        with planted.taking():
            if sleeps:
                time.sleep(SLEEP_S)
            batch = np.ones((256, 256), np.float32)
        yield batch


def loop(count: int) -> None:
    """Trains."""
    batches = load(not given.healthy)
    for number in range(count):
        if is_between:
            batch = next(batches)
        with step(number):
            forward(batch if is_between else next(batches)).block_until_ready()


if __name__ == "__main__":
    is_between = "--between" in sys.argv
    sys.argv = [each for each in sys.argv if each != "--between"]
    given = arguments()
    planted = Planted("ops") if given.healthy else Planted.of("input", load)
    forward, _ = products(count=32 if given.healthy else 2)
    run(given, planted, loop)
