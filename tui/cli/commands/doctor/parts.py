"""What a doctor says: parts with rows for people and facts for programs, and what of both is nobody's business."""

from __future__ import annotations

import json
import os
import platform
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from tpuprof.parsers.base.errors import EXIT_OK
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.base.urls import masked
from tpuprof.tui.cli.arguments.options import PROGRAM

SCHEMA = "tpuprof.doctor/1"
WIDTH = 80
_NAME_CELLS = 14
_NO_SECRETS = frozenset({"root", "localhost"})
_SHORTEST = 3  # shorter names of people and machines stand in too many other words


@dataclass(frozen=True, slots=True)
class DoctorLine:
    """A line, wrapped behind its name; it `is_wrong` where somebody should do something about it."""

    name: str
    text: str
    is_wrong: bool = False


@dataclass(frozen=True, slots=True)
class DoctorSection:
    """What is said of one thing.

    Attributes:
        key: its name in JSON; title: its heading.
        facts: what JSON has of it, with units in the names, and reasons for what is None under ``unknown``; its rows
            where there are none.
        parts: what it consists of; their facts are a list under the key of the first.
        exit_code: what the command ends with for it.
    """

    key: str
    title: str
    rows: Sequence[DoctorLine]
    facts: Mapping[str, object] = field(default_factory=dict)
    parts: Sequence[DoctorSection] = ()
    exit_code: int = EXIT_OK

    def problems(self) -> Iterator[str]:
        for row in self.rows:
            if row.is_wrong:
                yield f"{self.title}: {row.name}: {row.text}"
        for part in self.parts:
            yield from part.problems()


class Mask:
    """Takes out of a text what identifies somebody, or lets others in: see `Mask.text`.

    Args:
        env: its HOME, USER and LOGNAME are taken out.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        home = env.get("HOME", "").rstrip("/")
        homes = {home, os.path.realpath(home)} if home.startswith("/") else set()
        self._rules = [
            (re.compile(re.escape(printable(folder)) + r"(?![\w.-])"), "~")
            for folder in sorted(homes - {"/"}, key=len, reverse=True)
        ]
        for name in {env.get("USER", ""), env.get("LOGNAME", "")} - _NO_SECRETS:
            if len(name) >= _SHORTEST:
                self._rules.append((re.compile(rf"(?<=/){re.escape(name)}(?![\w.-])"), "<user>"))
        if (machine := platform.node()) not in _NO_SECRETS and len(machine) >= _SHORTEST:
            self._rules.append((re.compile(rf"(?<![\w-]){re.escape(machine)}(?![\w-])"), "<this machine>"))

    def text(self, text: str) -> str:
        """The text, on one line, with ``~`` for the home folder, and without user, machine, logins and tokens."""
        return reduce(lambda done, rule: rule[0].sub(rule[1], done), self._rules, masked(printable(text)))

    def value(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return [self.value(item) for item in value] if isinstance(value, (list, tuple)) else value


def as_text(version: str, parts: Sequence[DoctorSection], mask: Mask) -> str:
    """All that is said, no line wider than `WIDTH`; rows that are wrong begin with ``!``."""
    count = sum(1 for part in parts for _ in part.problems())
    verdict = f"{counted(count, 'problem')}, marked with !" if count else "nothing is wrong"
    return "\n".join([f"{PROGRAM} {version}: {verdict}\n", *(_lines(part, mask) for part in parts)])


def _lines(part: DoctorSection, mask: Mask, indent: int = 0) -> str:
    text = " " * indent + textwrap.shorten(mask.text(part.title), WIDTH - indent, placeholder="…") + "\n"
    lead = indent + 2 + _NAME_CELLS
    for row in part.rows:
        mark = f"{'!' if row.is_wrong else '':<{indent + 2}}"
        pieces = textwrap.wrap(mask.text(row.text), WIDTH - lead, break_on_hyphens=False) or [""]
        text += f"{mark}{row.name:<{_NAME_CELLS - 1}} " + f"\n{' ' * lead}".join(pieces) + "\n"
    return text + "".join("\n" + _lines(inner, mask, indent + 2) for inner in part.parts)


def fenced(text: str) -> str:
    """The text as a block of Markdown, behind a fence that is longer than any within."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}{fence}\n"


def as_json(version: str, parts: Sequence[DoctorSection], mask: Mask) -> str:
    """The same for programs."""
    problems = [problem for part in parts for problem in part.problems()]
    told: dict[str, object] = {"schema": SCHEMA, "version": version, "problems": problems}
    told |= {part.key: _facts(part) for part in parts}
    return json.dumps(mask.value(told), indent=1, ensure_ascii=False) + "\n"


def _facts(part: DoctorSection) -> dict[str, object]:
    inner = {part.parts[0].key: [_facts(one) for one in part.parts]} if part.parts else {}
    return {**(part.facts or {"rows": [[row.name, row.text] for row in part.rows]}), **inner}


FORMS = {
    "text": as_text,
    "md": lambda *said: fenced(as_text(*said)),
    "json": as_json,
}  # makes a text of the program's version and what is said
