"""Asks an installed XProf for its answers about a profile, in a process of its own.

Run as a script in the interpreter that has the package `xprof`: ``python live.py PROFILE FOLDER`` leaves an answer a
tool in FOLDER. XProf writes its caches beside the profile, so it gets a copy.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

PAGE_TOOLS = (
    *("overview_page", "hlo_stats", "framework_op_stats", "roofline_model", "kernel_stats", "input_pipeline_analyzer"),
    *("op_profile.by_program", "op_profile.by_category", "op_profile.by_provenance"),
)
"""The tools that the tests of the pages ask together, with what an op profile is to be grouped by."""

PYTHON = "TPUPROF_XPROF_PYTHON"
"""The environment variable that may name the interpreter which has XProf."""

LONGEST_SECONDS = 300

RIEGELI = b"\x83\xaf\x70\xd1"
"""How a profile in records begins; this runs without the program, too."""


def interpreter() -> str:
    """The interpreter to run XProf in."""
    return os.environ.get(PYTHON) or sys.executable


@cache
def has_xprof() -> bool:
    """Whether that interpreter has XProf."""
    found = subprocess.run(
        [interpreter(), "-c", "import xprof.convert.raw_to_tool_data"], capture_output=True, check=False
    )
    return found.returncode == 0


def run_in_xprof(script: str, *arguments: str | Path) -> None:
    """Runs a script in that interpreter, or skips the test where the interpreter has no XProf.

    Raises:
        RuntimeError: XProf failed; with what it said.
    """
    import pytest  # XProf's interpreter need not have it

    if not has_xprof():
        pytest.skip(f"XProf is not installed here, and {PYTHON} names no interpreter that has it")
    command = [interpreter(), str(Path(script).resolve()), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=LONGEST_SECONDS)
    if done.returncode:
        raise RuntimeError(f"xprof gave no answers: {done.stderr[-2000:]}")


def ask(profile: bytes, folder: Path, tools: Sequence[str] = PAGE_TOOLS) -> dict[str, Any]:
    """XProf's answers about a profile (plain or compressed bytes of an ``.xplane.pb``, or an ``.xplane.riegeli``).

    Args:
        tools: by the names of their answers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / ("host0.xplane.riegeli" if profile.startswith(RIEGELI) else "host0.xplane.pb")
    file.write_bytes(gzip.decompress(profile) if profile[:2] == b"\x1f\x8b" else profile)
    run_in_xprof(__file__, file, folder, *tools)
    return {name: json.loads((folder / f"{name}.json").read_bytes()) for name in tools}


def ask_of_slices(profiles: Mapping[str, bytes], folder: Path) -> list[dict[str, Any]]:
    """XProf's Megascale Stats of all hosts of a run, given the profile of each: a row a collective between slices."""
    folder.mkdir(parents=True, exist_ok=True)
    for host, profile in profiles.items():
        (folder / f"{host}.xplane.pb").write_bytes(profile)
    run_in_xprof(__file__, "megascale", folder)
    table = json.loads((folder / "megascale.json").read_bytes())[0]
    columns = [column["id"] for column in table["cols"]]
    return [dict(zip(columns, [cell["v"] for cell in row["c"]], strict=True)) for row in table["rows"]]


def main(profile: str, folder: str, *tools: str) -> None:
    """Writes an answer a tool; with ``megascale`` for a profile that of all profiles in the folder."""
    from xprof.convert.raw_to_tool_data import xspace_to_tool_data  # type: ignore[import-not-found]

    if profile == "megascale":
        paths = sorted(str(path) for path in Path(folder).glob("*.xplane.pb"))
        answer, _ = xspace_to_tool_data(paths, "megascale_stats", {"host": "ALL_HOSTS"})
        Path(folder, "megascale.json").write_bytes(answer)
        return
    for name in tools or PAGE_TOOLS:
        tool, _, by = name.partition(".by_")
        answer, _ = xspace_to_tool_data([profile], tool, {"group_by": by} if by else {})
        Path(folder, f"{name}.json").write_bytes(answer.encode() if isinstance(answer, str) else answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
