"""The manual: a Markdown file for each topic, which lies beside this file; what tables of the program say is added."""

from __future__ import annotations

import os

from tpuprof.tui.terminal.grammar import GROUPS, written

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_ENDING = ".md"


def topics() -> list[str]:
    """The names of all topics, in alphabetical order."""
    return sorted(name.removesuffix(_ENDING) for name in os.listdir(_FOLDER) if name.endswith(_ENDING))


def manual(topic: str) -> str:
    """A topic as Markdown: its title in the first line, then what it says."""
    with open(os.path.join(_FOLDER, topic + _ENDING), encoding="utf-8") as file:
        text = file.read()
    return text + _keys() if topic == "keys" else text


def _keys() -> str:
    """All keys and what they do, by the groups of the grammar."""
    lines = list[str]()
    for title, verbs in GROUPS:
        lines += ["", f"## {title}", ""]
        lines += [f"- {' '.join(f'`{key}`' for key in written(verb))} {verb.meaning}" for verb in verbs]
    return "\n".join([*lines, ""])
