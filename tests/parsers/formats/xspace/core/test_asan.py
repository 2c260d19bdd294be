"""The C core under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.parsers.formats.xspace.core import fuzz_core

SOURCE = Path(__file__).parents[5] / "parsers" / "formats" / "xspace" / "core" / "_core.c"
CASES = int(os.environ.get("TPUPROF_FUZZ_CASES", "4000"))


def asan_library(gcc: str) -> str:
    """Where gcc's libasan.so is; skips the test where there is none."""
    name = "libasan.so"
    found = subprocess.run([gcc, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
    if found == name or not Path(found).exists():
        pytest.skip("gcc has no libasan")
    return found


@pytest.mark.slow
def test_no_input_makes_the_c_core_leave_its_buffers(tmp_path: Path) -> None:
    if not SOURCE.exists():
        pytest.skip("the source of the C core is not here")
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("there is no gcc")
    library = asan_library(gcc)
    module = tmp_path / "_core.so"
    include = sysconfig.get_paths()["include"]
    if not (Path(include) / "Python.h").exists():
        pytest.skip("Python's headers are not installed")
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    warn = ["-Wall", "-Wextra", "-Werror"]
    command = [gcc, "-O1", "-g", "-shared", "-fPIC", *warn, *sanitize, f"-I{include}", str(SOURCE), "-o", str(module)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr

    environment = {
        **os.environ,
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # each buffer gets a block of its own, with a guard behind it
    }
    ran = subprocess.run(
        [sys.executable, "-S", fuzz_core.__file__, str(module), str(CASES), "20240711"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=120 + CASES // 100,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    counts = re.search(rf"{fuzz_core.MARKER} (\d+) accepted: (\d+) refused: (\d+)", ran.stdout)
    assert counts, ran.stdout
    total, accepted, refused = map(int, counts.groups())
    assert total == CASES
    assert accepted > CASES // 3  # many cases reach the loops
    assert refused > CASES // 10  # and many are turned away
