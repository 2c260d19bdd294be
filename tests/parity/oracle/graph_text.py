"""Instructions of a compiled module as XProf's text has them, which its command line's `get_hlo_neighborhood` reads."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from dataclasses import dataclass, field

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
