"""Asks an installed XProf for the static schedules of a profile, in a process of its own.

Run as a script in the interpreter that has the package `xprof`: ``live_schedules.py PROFILE FOLDER NAME…`` leaves an
answer for each mode and instruction in FOLDER.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __name__ != "__main__":  # XProf's interpreter need not know the tests
    from tests.parity.oracle.live import run_in_xprof

MODES = ("region_tree", "bundle_util", "opcodes", "spills")


def ask_schedules(profile: bytes, folder: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What XProf says of the schedule of each instruction, by mode."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "host0.xplane.pb"
    file.write_bytes(profile)
    run_in_xprof(__file__, file, folder, *names)
    return {
        name: {mode: json.loads((folder / f"{name}.{mode}.json").read_bytes())["data"] for mode in MODES}
        for name in names
    }


def main(profile: str, folder: str, *names: str) -> None:
    """Writes an answer a mode and instruction."""
    from xprof.convert import _pywrap_profiler_plugin as plugin  # type: ignore[import-not-found]

    for name in names:
        for mode in MODES:
            answer = plugin.get_llo_static_analysis_json(profile, mode=mode, hlo_op=name, bundle=0)
            Path(folder, f"{name}.{mode}.json").write_text(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
