"""Work of the host at each step on its own thread, one kind a name: ``on_the_host FOLDER --kind checkpoint``.

checkpoint: writes the parameters and waits for the disk. log: reads the loss and sends a line to a slow sink. garbage:
collects garbage of many objects. slow: plain Python that takes longer than the step's ops.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from typing import Any

import numpy as np

from tests.insight.programs.scripts.harness import Planted, arguments, products, run, step


def save_checkpoint(params: Any) -> None:
    """Writes what the step gave, and waits until it is on the disk."""
    with planted.taking():
        path = given.folder / "checkpoint.npy"
        for _ in range(4):
            with path.open("wb") as file:
                np.save(file, np.tile(np.asarray(params), (12, 1)))
                os.fsync(file.fileno())


def log_metrics(result: Any) -> None:
    """Reads the loss and sends it, with all that else is known."""
    loss = result.sum().item()
    with planted.taking():
        for _ in range(20):
            json.dumps({f"layer_{number}/norm": loss for number in range(300)})
        time.sleep(0.02)


def tidy_up(result: Any) -> None:
    """Collects garbage."""
    with planted.taking():
        gc.collect()


def schedule(result: Any) -> None:
    """Plain Python."""
    with planted.taking():
        total = 0
        for number in range(150_000):
            total += number % 7


KINDS = {"checkpoint": save_checkpoint, "log": log_metrics, "garbage": tidy_up, "slow": schedule}


def loop(count: int) -> None:
    """Trains."""
    for number in range(count):
        with step(number):
            result = forward(x)
            result.block_until_ready()
            work(result)


if __name__ == "__main__":
    at = sys.argv.index("--kind")
    work = KINDS[sys.argv[at + 1]]
    del sys.argv[at : at + 2]
    given = arguments()
    planted = Planted.of("host", work)
    kept = [{"number": [number]} for number in range(100_000)] if work is tidy_up else []
    forward, x = products()
    run(given, planted, loop)
