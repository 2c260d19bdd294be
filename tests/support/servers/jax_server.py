"""A JAX program with a profiler server, in a process of its own.

Run as a script in the interpreter that has JAX: ``python jax_server.py PORT`` starts the server, prints ``ready`` and
computes on the CPU until its standard input ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PYTHON = "TPUPROF_JAX_PYTHON"
"""The environment variable that may name the interpreter which has JAX."""

LONGEST_SECONDS = 120.0


def interpreter() -> str:
    return os.environ.get(PYTHON) or sys.executable


def has_jax() -> bool:
    found = subprocess.run([interpreter(), "-c", "import jax, jaxlib"], capture_output=True, check=False)
    return found.returncode == 0


@contextmanager
def jax_program(port: int, *command: str) -> Iterator[None]:
    """A program that computes, with a server at the port; ended at the end.

    Args:
        command: what the interpreter runs in place of this file; it prints ``ready`` and ends with its standard input.

    Raises:
        RuntimeError: it did not start; with what it said.
    """
    environ = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    program = subprocess.Popen(
        [interpreter(), *(command or (str(Path(__file__).resolve()), str(port)))],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        text=True,
    )
    killer = threading.Timer(LONGEST_SECONDS, program.kill)
    killer.start()
    try:
        assert program.stdin is not None and program.stdout is not None and program.stderr is not None
        if program.stdout.readline() != "ready\n":
            program.kill()
            raise RuntimeError(f"JAX did not start: {program.stderr.read()[-2000:]}")
        yield
        program.stdin.close()
        program.wait(LONGEST_SECONDS)
    finally:
        killer.cancel()
        program.kill()
        program.wait()
        for stream in (program.stdin, program.stdout, program.stderr):
            if stream is not None:
                stream.close()


def main(port: int) -> None:
    """Computes until standard input ends."""
    import jax  # type: ignore[import-not-found,unused-ignore]

    jax.profiler.start_server(port)
    step = jax.jit(lambda x: x @ x / 64)
    x = step(jax.numpy.ones((64, 64))).block_until_ready()
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    print("ready", flush=True)
    number = 0
    while not ended.wait(0.005):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            x = step(x).block_until_ready()
        number += 1


if __name__ == "__main__":
    main(int(sys.argv[1]))
