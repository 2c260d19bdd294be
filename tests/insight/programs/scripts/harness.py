"""What the programs share: they run some steps once with the Python tracer and once without, and write down the truth.

``python -m tests.insight.programs.scripts.NAME FOLDER`` writes `FOLDER/traced` and `FOLDER/untraced`, with the trace
viewer's JSON beside the profile, and `FOLDER/truth.json`. With ``--port PORT`` it starts a profiler server, prints
``ready`` and runs steps until its standard input ends. With ``--healthy`` it leaves the fault out.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SLEEP_S = 0.06
"""What a planted wait lasts: many times a step without it."""

STEPS = 9
"""Of which the first and the last are left out."""


@dataclass
class Planted:
    """What was planted, and how much of the steps it took by the script's own clock.

    Attributes:
        verdict: what holds the program up: input, compile, host, other process, ops.
        function: the program's own function that takes the time; empty where it is no function's.
        file, line: where that stands.
        seconds: in it so far.
        fraction: the part of the steps' time that was in it, by way of capture.
    """

    verdict: str
    function: str = ""
    file: str = ""
    line: int = 0
    seconds: float = 0.0
    fraction: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, verdict: str, function: Callable[..., Any]) -> Planted:
        """A fault in a function."""
        code = function.__code__
        return cls(verdict, code.co_name, Path(code.co_filename).name, code.co_firstlineno)

    @contextmanager
    def taking(self) -> Iterator[None]:
        """Counts the time inside."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - began


Loop = Callable[[int], None]
"""Runs so many steps."""


def arguments() -> argparse.Namespace:
    """What the script was called with."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--healthy", action="store_true")
    parser.add_argument("--process", type=int)
    parser.add_argument("--coordinator")
    return parser.parse_args()


def run(given: argparse.Namespace, planted: Planted, loop: Loop) -> None:
    """Runs the loop and captures it, or serves a profiler while it runs."""
    import jax

    loop(2)
    if given.port is not None:
        _serve(given.port, loop)
        return
    for way, level in (("traced", 1), ("untraced", 0)):
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = level
        planted.seconds, began = 0.0, time.perf_counter()
        with jax.profiler.trace(str(given.folder / way), profiler_options=options):
            began = time.perf_counter()
            loop(STEPS)
            planted.fraction[way] = planted.seconds / (time.perf_counter() - began)
    (given.folder / "truth.json").write_text(json.dumps(asdict(planted)))


def _serve(port: int, loop: Loop) -> None:
    import jax

    jax.profiler.start_server(port)
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    print("ready", flush=True)
    while not ended.is_set():
        loop(3)


def step(number: int) -> Any:
    """Marks a step."""
    import jax

    return jax.profiler.StepTraceAnnotation("train", step_num=number)


def products(size: int = 256, count: int = 4) -> tuple[Callable[[Any], Any], Any]:
    """A compiled program of some matrix products, and what to begin with."""
    import jax
    import jax.numpy as jnp

    def forward(x: Any) -> Any:
        for _ in range(count):
            x = jnp.tanh(x @ x / size)
        return x

    return jax.jit(forward), jnp.ones((size, size))
