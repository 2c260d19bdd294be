"""Device memory profiles that JAX itself writes, on the CPU.

The interpreter that has JAX is this one, or the one that TPUPROF_JAX_PYTHON names.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.servers.jax_server import has_jax, interpreter
from tpuprof.parsers.memory.live_arrays import groups, read_live_arrays

PROGRAM = """
import json, sys
import jax, jax.numpy as jnp

def held():
    return sum(array.nbytes for array in jax.live_arrays()), len(jax.live_arrays())

kept = []
def keep(x):
    kept.append(x * 2.0)  # this line leaks

x = jnp.ones((64, 256))
keep(x)
jax.profiler.save_device_memory_profile(sys.argv[1])
before = held()
for _ in range(5):
    keep(x)
jax.profiler.save_device_memory_profile(sys.argv[2])
print(json.dumps([before, held()]))
"""


def test_what_jax_writes_is_what_jax_holds(tmp_path: Path) -> None:
    if not has_jax():
        pytest.skip(f"no JAX in {interpreter()}: TPUPROF_JAX_PYTHON may name an interpreter that has it")
    program = tmp_path / "leak.py"
    program.write_text(PROGRAM)
    paths = [str(tmp_path / name) for name in ("before.prof", "after.prof")]
    environ = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [interpreter(), str(program), *paths], env=environ, capture_output=True, check=True, text=True
    )
    pages = [read_live_arrays(path) for path in paths]
    assert [[page.buffers.size_bytes, page.buffers.count] for page in pages] == json.loads(done.stdout)
    assert [one.device for one in pages[1].devices] == ["cpu:0"] or "Cpu" in pages[1].devices[0].device
    line = f"{program}:{PROGRAM.splitlines().index('    kept.append(x * 2.0)  # this line leaks') + 1}"
    first, last = (
        next(group for group in groups(page) if (group.source, group.kind) == (line, "buffer")) for page in pages
    )
    assert last.function == "keep" and last.total.count - first.total.count == 5
    assert last.total.size_bytes - first.total.size_bytes == 5 * 64 * 256 * 4
    assert any(group.kind == "executable" for group in groups(pages[1]))
