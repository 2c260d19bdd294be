"""Compares text with a committed file; ``UPDATE_GOLDEN=1`` rewrites the file instead."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tpuprof.tui.draw.spans import Line, plain


def frame(lines: Iterable[Line]) -> str:
    """Lines as text."""
    return "".join(plain(line).rstrip() + "\n" for line in lines)


def check_golden(path: Path, text: str) -> None:
    """Fails where the text is not what the file holds; a missing file fails too, unless it is to be written."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    assert path.exists(), f"{path} is missing: run with UPDATE_GOLDEN=1 and read what it writes"
    assert text == path.read_text(encoding="utf-8")
