"""Reports are the same without the compiled loops."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.build import write_run
from tests.support.composed import slices
from tpuprof.parsers.formats.xspace.core import compiled

pytestmark = pytest.mark.skipif(compiled.CORE is None, reason="the compiled loops are not built")


@pytest.mark.parametrize("page", ["overview", "collectives", "timeline"])
def test_reports_are_the_same(page: str, tmp_path: Path) -> None:
    folder = write_run(tmp_path, host0=slices.host_space("slice0-host0"))
    script = "import sys; {}; from tpuprof.tui.__main__ import run; sys.exit(run())"
    texts = [
        subprocess.run(
            [sys.executable, "-c", script.format(hiding), "report", page, str(folder), "--format", "json"],
            capture_output=True,
            text=True,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / name)},
            check=True,
        ).stdout
        for name, hiding in (("compiled", "pass"), ("fallback", f"sys.modules['{compiled.NAME}'] = None"))
    ]
    assert texts[0] == texts[1] and len(texts[0]) > 500
