"""What reports say of the command line, in the words of tools: who asks over MCP has no command line."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.cli.arguments.options import PROGRAM

_OF_SENTENCES = ("advice", "basis", "evidence", "how", "missing", "next", "notes", "sentence", "why", "why_none")
_OF_OURS = frozenset((*_OF_SENTENCES, "hint", "more", "problems", "unknown", "warnings"))
"""Keys below which an answer's texts are this program's own; other texts are data of the profile."""

_OPTION = re.compile(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*(?![\w-])")
"""An option of a command; those of the compiler have underscores."""

_COMMAND = re.compile(rf"(?:\b{PROGRAM} )?\breport ([a-z-]+)(?!\w)|\b{PROGRAM} ([a-z-]+)(?![\w/.])")
_GROUP = re.compile(r"--group ([A-Z0-9]+)(?![\w-])")
_CLAUSE = re.compile(r"(?<=[,;:.]) | (?=\()")


@dataclass(frozen=True)
class Speech:
    """Rewrites what is said of commands and their options.

    Attributes:
        arguments: of tools, by options: ``--from`` is ``from_ms``.
        tools: names of tools by those of pages and commands.
        named: how an answer names a path.
    """

    arguments: Mapping[str, str]
    tools: Mapping[str, str]
    named: Callable[[str], str]

    def answer(self, value: Any, key: str = "", is_ours: bool = False) -> Any:  # noqa: ANN401 - what JSON holds
        """An answer with its sentences rewritten and its paths named."""
        if isinstance(value, dict):
            return {name: self.answer(item, name, is_ours or name in _OF_OURS) for name, item in value.items()}
        if isinstance(value, list):
            return [self.answer(item, key, is_ours) for item in value]
        if isinstance(value, str) and (is_ours or value.startswith(PROGRAM)):
            return self.said(value)
        return self.named(value) if isinstance(value, str) and key == "path" else value

    def said(self, text: str) -> str:
        """A text without words of the command line; clauses on what no tool does are left out."""
        if PROGRAM not in text and "--" not in text and "report " not in text:
            return text
        if text.startswith(PROGRAM) and (call := self._call(text)):
            return call
        text = _COMMAND.sub(lambda found: self._tool(found[1] or found[2]) or found[0], text)
        text = _GROUP.sub(r"core 'group \1'", text)
        text = _OPTION.sub(lambda found: self.arguments.get(found[0], found[0]), text)
        clauses = _CLAUSE.split(text)
        kept = [clause for clause in clauses if PROGRAM not in clause and not _OPTION.search(clause)]
        return text if len(kept) == len(clauses) else " ".join(kept).rstrip(",;:").removeprefix("or ")

    def _tool(self, name: str) -> str:
        tool = self.tools.get(name, "")
        return f"{tool} with page {name}" if tool == "query" != name else tool

    def _call(self, command: str) -> str:
        """The call of a tool that does what a whole command does; empty where there is none."""
        words = shlex.split(command)[1:]
        words = words[1:] if words[:1] == ["report"] else words
        tool = self.tools.get(words[0], "") if words else ""
        given: dict[str, object] = {"page": words[0]} if tool == "query" else {}
        rest = iter(words[1:])
        for word in rest:
            name = self.arguments.get(word, "" if word.startswith("-") or "path" in given else "path")
            value = next(rest, "") if word in self.arguments else self.named(word)
            if not name:
                return ""
            given[name] = json.loads(value) if name.endswith("_ms") else value
        return f"{tool} {json.dumps(given, ensure_ascii=False)}" if tool else ""
