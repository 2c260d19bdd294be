"""Loaders with threads that are too slow for the step: Grain's where it is installed, else one of its own spelling.

Each element takes 60 ms to make, and a step needs one. The script ends with status 3 where Grain is asked for
(``--grain``) and is not there.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.insight.programs.scripts.harness import SLEEP_S, Planted, arguments, products, run, step


def decode(index: Any) -> np.ndarray:
    """Makes an element."""
    time.sleep(SLEEP_S)
    return np.full((256, 256), 1.0, np.float32)


class Feeder:
    """A thread that puts elements into a queue."""

    def __init__(self) -> None:
        self._ready: queue.Queue[np.ndarray] = queue.Queue(2)

    def start(self) -> None:
        """Starts the thread."""
        threading.Thread(target=self._fill, daemon=True, name="feeder").start()

    def _fill(self) -> None:
        while True:
            self._ready.put(decode(0))

    def take_batch(self) -> np.ndarray:
        """The next element, once it is there."""
        with planted.taking():
            return self._ready.get()


def from_grain() -> Iterator[np.ndarray]:
    """The same from Grain, its elements from memory."""
    try:
        import grain
    except ImportError:
        sys.exit(3)
    source = grain.MapDataset.source(range(10_000)).map(decode)
    return iter(source.to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=1)))


def loop(count: int) -> None:
    """Trains."""
    for number in range(count):
        with step(number):
            if batches is not None:
                with planted.taking():
                    batch = next(batches)
            else:
                batch = feeder.take_batch()
            forward(batch).block_until_ready()


if __name__ == "__main__":
    is_grain = "--grain" in sys.argv
    sys.argv = [each for each in sys.argv if each != "--grain"]
    given = arguments()
    batches = from_grain() if is_grain else None
    feeder = Feeder()
    if batches is None:
        feeder.start()
    planted = Planted("input") if is_grain else Planted.of("input", Feeder.take_batch)
    forward, _ = products(count=2)
    run(given, planted, loop)
