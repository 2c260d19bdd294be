"""The C core under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.core.sanitizer import NoSanitizerError, built_core, preloaded
from tests.parsers.formats.xspace.core import fuzz_core

CASES = int(os.environ.get("TPUPROF_FUZZ_CASES", "4000"))


@pytest.mark.slow
def test_no_input_makes_the_c_core_leave_its_buffers(tmp_path: Path) -> None:
    try:
        module = built_core(tmp_path)
    except NoSanitizerError as error:
        pytest.skip(str(error))
    ran = subprocess.run(
        [sys.executable, "-S", fuzz_core.__file__, str(module), str(CASES), "20240711"],
        capture_output=True,
        text=True,
        env=preloaded(),
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
