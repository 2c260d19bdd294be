"""Compares text with a committed file; ``UPDATE_GOLDEN=1`` rewrites the file instead."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from tpuprof.tui.draw.spans import ASCII, BLOCK, Glyphs, Line, line_width, plain

MOST_LINES = 120
"""Of a diff; more would bury the name of the test."""


def frame(lines: Iterable[Line]) -> str:
    return "".join(plain(line).rstrip() + "\n" for line in lines)


def check_lines(lines: Iterable[Line], width: int, glyphs: Glyphs = BLOCK) -> str:
    """The text of lines; each is exactly as wide as asked and can be printed, in ASCII where the glyphs are that."""
    shown = list(lines)
    assert {line_width(line) for line in shown} <= {width}
    text = "".join(map(plain, shown))
    assert text.isprintable() and (glyphs is not ASCII or text.isascii())
    return text


def check_golden(path: Path, text: str) -> None:
    """Fails where the text is not what the file holds; a missing file fails too, unless it is to be written."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    if not path.exists():
        pytest.fail(f"{path} is missing: run with UPDATE_GOLDEN=1 and read what it writes", pytrace=False)
    stored = path.read_text(encoding="utf-8")
    if text != stored:
        pytest.fail(f"{path} differs; UPDATE_GOLDEN=1 rewrites it\n{difference(stored, text)}", pytrace=False)


def difference(stored: str, found: str, most: int = MOST_LINES) -> str:
    """A unified diff of two texts, cut to its first lines.

    Args:
        most: so many lines of the diff are shown; a last line counts the others.
    """
    before, after = (text.splitlines(keepends=True) for text in (stored, found))
    lines = [_shown(line) for line in difflib.unified_diff(before, after, "stored", "found")]
    more = [f"… and {len(lines) - most} more lines"] if len(lines) > most else []
    return "\n".join(lines[:most] + more)


def _shown(line: str) -> str:
    """A line of a diff; what is invisible at its end is escaped."""
    body = line.removesuffix("\n")
    text = body.rstrip() or body
    end = "" if line.endswith("\n") else " (no newline)"
    return text + body[len(text) :].encode("unicode_escape").decode().replace(" ", r"\x20") + end
