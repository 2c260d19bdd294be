"""Asks an installed XProf for the text of compiled modules, which its graph viewer and its command line's
`get_hlo_neighborhood` are made of, in a process of its own.

Run as a script in the interpreter that has the package `xprof`: ``python live_graph.py PROFILE FOLDER`` leaves a text
for each module of the profile in FOLDER, where XProf has put the modules.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import defaultdict, deque
from dataclasses import dataclass, field
from pathlib import Path

if __name__ != "__main__":  # XProf's interpreter need not know the tests
    from tests.parity.oracle.live import run_in_xprof

_SUFFIX = ".hlo_proto.pb"
_COMPUTATION = re.compile(r"(?:ENTRY )?%?(\S+) \(.*\{$")
_INSTRUCTION = re.compile(r"\s+(ROOT )?%(\S+) = (.*?) ([a-z][a-z0-9-]*)\((.*)")
_NAME = re.compile(r"%([\w.-]+)")
_CALLED = re.compile(r"(?:calls|to_apply|body|condition)=%([\w.-]+)|branch_computations=\{([^}]*)\}")


@dataclass
class Instruction:
    """What a line of XProf's text says."""

    computation: str
    is_root: bool
    shape: str
    opcode: str
    operands: list[str]
    called: set[str]
    users: set[str] = field(default_factory=set)


def ask_texts(profile: bytes, folder: Path) -> dict[str, str]:
    """XProf's text of each module of a profile, by the name that it gives the module: ``jit_step(7)``."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "host0.xplane.pb"
    file.write_bytes(gzip.decompress(profile) if profile[:2] == b"\x1f\x8b" else profile)
    run_in_xprof(__file__, file, folder)
    return {path.stem: path.read_text() for path in folder.glob("*.txt")}


def instructions_of(text: str) -> dict[str, Instruction]:
    """The instructions of a module, as XProf's command line reads them: by the names in the brackets of each."""
    found: dict[str, Instruction] = {}
    computation = ""
    for line in text.splitlines():
        if match := _INSTRUCTION.match(line):
            root, name, shape, opcode, rest = match.groups()
            inside, _, attributes = rest.partition(")")  # of constants and names, which hold no bracket
            called = {
                one for pair in _CALLED.findall(attributes) for part in pair for one in re.findall(r"[\w.-]+", part)
            }
            operands = [] if opcode == "constant" else _NAME.findall(inside)
            found[name] = Instruction(computation, bool(root), _plain(shape), opcode, operands, called)
        elif match := _COMPUTATION.match(line):
            computation = match[1]
    for name, instruction in found.items():
        for operand in instruction.operands:
            found[operand].users.add(name)
    return found


def _plain(shape: str) -> str:
    return re.sub(r"/\*index=\d+\*/", "", shape)


def neighbourhood_of(found: dict[str, Instruction], centre: str, radius: int) -> dict[str, int]:
    """Names within so many steps over operands and users, each with its distance, as `get_hlo_neighborhood` goes."""
    near: dict[str, list[str]] = defaultdict(list)
    distance, waiting = {centre: 0}, deque([centre])
    while waiting:
        here = waiting.popleft()
        if distance[here] < radius:
            near[here] = [*found[here].operands, *found[here].users]
            for name in near[here]:
                if name not in distance:
                    distance[name] = distance[here] + 1
                    waiting.append(name)
    return distance


def main(profile: str, folder: str) -> None:
    """Writes a text a module."""
    from xprof.convert.raw_to_tool_data import (  # type: ignore[import-not-found]
        xspace_to_tool_data,
        xspace_to_tool_names,
    )

    xspace_to_tool_names([profile])  # puts the modules beside the profile
    for module in Path(folder).glob(f"*{_SUFFIX}"):
        name = module.name.removesuffix(_SUFFIX)
        options = {"node_name": "", "module_name": name, "type": "long_txt", "graph_width": 1}
        answer, _ = xspace_to_tool_data([profile], "graph_viewer", {"graph_viewer_options": options})
        Path(folder, f"{name}.txt").write_bytes(answer.encode() if isinstance(answer, str) else answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
