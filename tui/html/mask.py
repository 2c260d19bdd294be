"""Masks what a text names of hosts and paths, so that it can be shown to others."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tpuprof.parsers.base.record import dataclass

_FILE = r"[^\s/\"'<>|,;:()\[\]]+"
_ADDRESS = re.compile(r"\b([a-z][a-z0-9+.-]*)://[^\s\"'<>|,;()]+", re.IGNORECASE)
_ABSOLUTE = re.compile(rf"(?<![^\s\"'=,;:|(\[])(?:~[\w.-]*|\.{{0,2}})/(?:{_FILE}/)*({_FILE})/?")
_RELATIVE = re.compile(r"(?<![\w./…-])(?:[\w.@+-]+/)+(?=[\w.@+-]+\.\w{1,4}(?::\d|\b))")
_IPV4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")


@dataclass(frozen=True)
class Mask:
    """What stands for names: pairs of a pattern and of what takes its place, the longest names first."""

    names: tuple[tuple[re.Pattern[str], str], ...]

    @classmethod
    def of(cls, hosts: Iterable[str], others: Iterable[tuple[str, str]] = ()) -> Mask:
        """A mask of hosts, which become ``host1`` and so on, and of other names with what takes their place."""
        named = {host: f"host{number}" for number, host in enumerate(dict.fromkeys(hosts), 1)}
        named |= {name: instead for name, instead in others if name and name not in named}
        longest = sorted((name for name in named if name), key=len, reverse=True)
        return cls(tuple((re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])"), named[name]) for name in longest))

    def __call__(self, text: str) -> str:
        """The text without them: of a path a file's own name stays, of an address its scheme."""
        for pattern, instead in self.names:
            text = pattern.sub(instead, text)
        text = _ADDRESS.sub(r"\1:…", text)
        text = _IPV4.sub("…", text)
        return _RELATIVE.sub("…/", _ABSOLUTE.sub(_file_alone, text))


def _file_alone(path: re.Match[str]) -> str:
    """A path without its folders; a last part without an ending is a folder."""
    return f"…/{path[1]}" if "." in path[1] else "…"
