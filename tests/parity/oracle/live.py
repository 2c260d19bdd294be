"""Asks an installed XProf for its answers about a profile, in a process of its own.

Run as a script in the interpreter that has the package `xprof`: ``python live.py WHAT FOLDER [NAME…]`` leaves answers
in FOLDER, about what lies there. XProf writes its caches beside a profile, so it gets a copy.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
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

SPACES = (0, 1, 2, 4, 6)
"""Memory spaces that the memory viewer is asked about."""

SCHEDULE_MODES = ("region_tree", "bundle_util", "opcodes", "spills")

LONGEST_SECONDS = 300

_MODULE = ".hlo_proto.pb"
"""How XProf names the modules that it writes beside a profile, and looks for."""

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


def _run(what: str, folder: Path, *names: str) -> None:
    """Runs this script in that interpreter, or skips the test where the interpreter has no XProf.

    Raises:
        RuntimeError: XProf failed; with what it said.
    """
    import pytest  # XProf's interpreter need not have it

    if not has_xprof():
        pytest.skip(f"XProf is not installed here, and {PYTHON} names no interpreter that has it")
    command = [interpreter(), str(Path(__file__).resolve()), what, str(folder), *names]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=LONGEST_SECONDS)
    if done.returncode:
        raise RuntimeError(f"xprof gave no answers: {done.stderr[-2000:]}")


def _put(profile: bytes, folder: Path) -> None:
    """Puts a profile, an ``.xplane.pb`` (compressed or not) or an ``.xplane.riegeli``, where XProf gets it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / ("host0.xplane.riegeli" if profile.startswith(RIEGELI) else "host0.xplane.pb")
    file.write_bytes(gzip.decompress(profile) if profile[:2] == b"\x1f\x8b" else profile)


def ask(profile: bytes, folder: Path, tools: Sequence[str] = PAGE_TOOLS) -> dict[str, Any]:
    """XProf's answers about a profile, by the names of its tools."""
    _put(profile, folder)
    _run("pages", folder, *tools)
    return {name: json.loads((folder / f"{name}.json").read_bytes()) for name in tools}


def ask_of_slices(profiles: Mapping[str, bytes], folder: Path) -> list[dict[str, Any]]:
    """XProf's Megascale Stats of all hosts of a run, given the profile of each: a row a collective between slices."""
    folder.mkdir(parents=True, exist_ok=True)
    for host, profile in profiles.items():
        (folder / f"{host}.xplane.pb").write_bytes(profile)
    _run("megascale", folder)
    table = json.loads((folder / "megascale.json").read_bytes())[0]
    columns = [column["id"] for column in table["cols"]]
    return [dict(zip(columns, [cell["v"] for cell in row["c"]], strict=True)) for row in table["rows"]]


def ask_texts(profile: bytes, folder: Path) -> dict[str, str]:
    """XProf's text of each module of a profile, by the name that it gives the module: ``jit_step(7)``.

    Its graph viewer and its command line's `get_hlo_neighborhood` are made of these.
    """
    _put(profile, folder)
    _run("texts", folder)
    return {path.stem: path.read_text() for path in folder.glob("*.txt")}


def ask_memory(modules: Mapping[str, bytes], folder: Path) -> dict[tuple[str, int], Any]:
    """XProf's memory viewer by module and memory space; `modules` is the serialised `HloProto` of each."""
    _put(b"", folder)  # XProf looks for modules beside a profile
    for name, module in modules.items():
        (folder / f"{name}{_MODULE}").write_bytes(module)
    _run("memory", folder)
    asked = [(name, space) for name in modules for space in SPACES]
    return {(name, space): json.loads((folder / f"{name}.{space}.json").read_bytes()) for name, space in asked}


def ask_schedules(profile: bytes, folder: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What XProf says of the static schedule of each instruction, by mode."""
    _put(profile, folder)
    _run("schedules", folder, *names)
    return {
        name: {mode: json.loads((folder / f"{name}.{mode}.json").read_bytes())["data"] for mode in SCHEDULE_MODES}
        for name in names
    }


Answers = Iterable[tuple[str, str | bytes]]
"""Names of files, with what is in each."""


def _pages(profiles: Sequence[str], _: Path, *tools: str) -> Answers:
    for name in tools:
        tool, by = name.partition(".by_")[::2]
        yield f"{name}.json", _answer(profiles, tool, {"group_by": by} if by else {})


def _megascale(profiles: Sequence[str], _: Path) -> Answers:
    yield "megascale.json", _answer(profiles, "megascale_stats", {"host": "ALL_HOSTS"})


def _texts(profiles: Sequence[str], folder: Path) -> Answers:
    from xprof.convert.raw_to_tool_data import xspace_to_tool_names  # type: ignore[import-not-found]

    xspace_to_tool_names(profiles)  # puts the modules beside the profile
    for name in _modules(folder):
        options = {"node_name": "", "module_name": name, "type": "long_txt", "graph_width": 1}
        yield f"{name}.txt", _answer(profiles, "graph_viewer", {"graph_viewer_options": options})


def _memory(profiles: Sequence[str], folder: Path) -> Answers:
    for name in _modules(folder):
        for space in SPACES:
            options = {"module_name": name, "memory_space": str(space)}
            yield f"{name}.{space}.json", _answer(profiles, "memory_viewer", options)


def _schedules(profiles: Sequence[str], _: Path, *names: str) -> Answers:
    from xprof.convert import _pywrap_profiler_plugin as plugin  # type: ignore[import-not-found]

    for name in names:
        for mode in SCHEDULE_MODES:
            answer = plugin.get_llo_static_analysis_json(profiles[0], mode=mode, hlo_op=name, bundle=0)
            yield f"{name}.{mode}.json", answer


def _modules(folder: Path) -> list[str]:
    return [path.name.removesuffix(_MODULE) for path in folder.glob(f"*{_MODULE}")]


def _answer(profiles: Sequence[str], tool: str, options: Mapping[str, Any]) -> str | bytes:
    from xprof.convert.raw_to_tool_data import xspace_to_tool_data

    answer: str | bytes = xspace_to_tool_data(profiles, tool, options)[0]
    return answer


WHAT: Mapping[str, Callable[..., Answers]] = {
    "pages": _pages,
    "megascale": _megascale,
    "texts": _texts,
    "memory": _memory,
    "schedules": _schedules,
}


def main(what: str, at: str, *names: str) -> None:
    """Writes what XProf answers about the profiles of a folder."""
    folder = Path(at)
    for name, answer in WHAT[what](sorted(map(str, folder.glob("*.xplane.*"))), folder, *names):
        (folder / name).write_bytes(answer.encode() if isinstance(answer, str) else answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
