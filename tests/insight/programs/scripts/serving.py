"""Requests, each in an annotation of the program's own, that come now and then: nothing numbers steps."""

from __future__ import annotations

import time
from typing import Any

import jax

from tests.insight.programs.scripts.harness import Planted, arguments, products, run


def answer() -> Any:
    """Answers a request."""
    with jax.profiler.TraceAnnotation("request"):
        return forward(x).block_until_ready()


def loop(count: int) -> None:
    """Serves."""
    for _ in range(3 * count):
        with planted.taking():
            time.sleep(0.005)
        answer()


if __name__ == "__main__":
    given = arguments()
    planted = Planted("unknown")
    forward, x = products(count=8)
    run(given, planted, loop)
