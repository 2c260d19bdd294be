"""The commands that the README, the manual and the texts beside tests ask people to type, as they stand there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.imports import ROOT

PROGRAMS = (
    *("bash", "curl", "docker", "gcloud", "git", "pip", "pipx", "pytest", "python", "python3", "rsync", "scp", "sh"),
    *("ssh", "tmux", "tpuprof-tui", "uv", "uvx"),
)
"""What a command in a sentence begins with."""

OWN = ("capture", "diff", "oom", "report")
"""Commands of ours that the text names without the program."""

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")
_COMMENT = re.compile(r"\s+# .*$")


@dataclass(frozen=True)
class Readme:
    """What the texts hold in code.

    Attributes:
        text: all of it.
        blocks: fenced ones: the language, and the text.
        spans: code in sentences and tables, in their order.
    """

    text: str
    blocks: tuple[tuple[str, str], ...]
    spans: tuple[str, ...]

    def block(self, language: str) -> str:
        """The one block in a language."""
        (text,) = (text for other, text in self.blocks if other == language)
        return text

    def commands(self) -> list[str]:
        """Each command once: lines of the shell's blocks, and spans that begin with a program or a command of ours."""
        lines = [
            _COMMENT.sub("", line) for language, text in self.blocks if language == "sh" for line in text.splitlines()
        ]
        said = [span for span in self.spans if span.split()[0] in (*PROGRAMS, *OWN) and len(span.split()) > 1]
        whole = [f"tpuprof-tui {span}" if span.split()[0] in OWN else span for span in said]
        return list(dict.fromkeys(line for line in [*lines, *whole] if line))

    def options(self) -> set[str]:
        """Long options that a block or a sentence names."""
        code = [*self.spans, *(text for language, text in self.blocks if language == "sh")]
        return {option for text in code for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", text)}


def documents() -> list[Path]:
    """The README, the topics of the manual, and the texts beside tests."""
    topics, of_tests = (ROOT / "tui" / "cli" / "man").glob("*.md"), (ROOT / "tests").rglob("README.md")
    return [ROOT / "README.md", *sorted(topics), *sorted(of_tests)]


def read() -> Readme:
    """All texts as one."""
    text = "\n".join(path.read_text("utf-8") for path in documents())
    rest = _BLOCK.sub("", text)
    spans = tuple(" ".join(span.split()) for span in _SPAN.findall(rest))
    return Readme(text, tuple(_BLOCK.findall(text)), spans)
