"""Pages as GitHub-flavoured Markdown, to paste into an issue; nothing in a profile's strings is taken as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tpuprof.parsers.base.text import printable

# An underscore inside a word is no markup, and names of ops are full of them.
_MARKUP = re.compile(r"[\\`|*<>\[\]~&#$]|(?<![^\W_])_|_(?![^\W_])")


def table(head: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; `sides` has an `l` or an `r` a column."""
    ruler = ["---:" if side == "r" else "---" for side in sides]
    return [_row(head), _row(ruler), *(_row([escaped(cell) for cell in row]) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Text that reads as itself: on one line, no character of it markup."""
    return _MARKUP.sub(r"\\\g<0>", printable(text))


def joined(lines: Sequence[str]) -> str:
    """The document without empty lines next to each other, and with a newline at its end."""
    kept = [line for at, line in enumerate(lines) if line or (at and lines[at - 1])]
    return "\n".join(kept).rstrip("\n") + "\n"
