"""Asks an installed XProf for its memory viewer's answers about compiled modules, in a process of its own.

Run as a script in the interpreter that has the package `xprof`: ``python live_memory.py FOLDER`` leaves an answer for
each module of FOLDER (``NAME.hlo_proto.pb``, as XProf itself writes them beside a profile) and each memory space.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if __name__ != "__main__":  # XProf's interpreter need not know the tests
    from tests.parity.oracle.live import run_in_xprof

SPACES = (0, 1, 2, 4, 6)

_SUFFIX = ".hlo_proto.pb"


def ask_memory(modules: Mapping[str, bytes], folder: Path) -> dict[tuple[str, int], Any]:
    """XProf's answers by module and memory space; `modules` is the serialised `HloProto` of each."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "host0.xplane.pb").write_bytes(b"")  # XProf looks for modules beside a profile
    for name, module in modules.items():
        (folder / f"{name}{_SUFFIX}").write_bytes(module)
    run_in_xprof(__file__, folder)
    return {
        (name, space): json.loads((folder / f"{name}.{space}.json").read_bytes())
        for name in modules
        for space in SPACES
    }


def main(folder: str) -> None:
    """Writes an answer a module and memory space."""
    from xprof.convert.raw_to_tool_data import xspace_to_tool_data  # type: ignore[import-not-found]

    profile = str(Path(folder, "host0.xplane.pb"))
    for module in Path(folder).glob(f"*{_SUFFIX}"):
        name = module.name.removesuffix(_SUFFIX)
        for space in SPACES:
            parameters = {"module_name": name, "memory_space": str(space)}
            answer, _ = xspace_to_tool_data([profile], "memory_viewer", parameters)
            Path(folder, f"{name}.{space}.json").write_bytes(answer.encode() if isinstance(answer, str) else answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
