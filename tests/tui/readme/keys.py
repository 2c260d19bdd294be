"""The README's table of keys, from the grammar: ``python -m tests.tui.readme.keys`` writes it."""

from __future__ import annotations

import re

from tests.support.imports import ROOT
from tpuprof.tui.terminal.grammar import GROUPS, written

BEGIN, END = "| where | keys |\n|---|---|\n", "\n\n"
_PATH = ROOT / "README.md"


def table() -> str:
    """A row for each group of verbs: their keys, and what they do."""
    rows = []
    for title, verbs in GROUPS:
        cells = [f"{' '.join(f'`{key}`' for key in written(verb))} {_begun_small(verb.meaning)}" for verb in verbs]
        rows.append(f"| {title.lower()} | {'; '.join(cells)} |")
    return BEGIN + "\n".join(rows)


def _begun_small(text: str) -> str:
    return text if re.match("[A-Z]{2}", text) else text[:1].lower() + text[1:]


def main() -> None:
    """Puts the table into the README."""
    text = _PATH.read_text()
    before, begin, after = text.partition(BEGIN)
    assert begin, "the README has a table of keys"
    _PATH.write_text(before + table() + END + after.partition(END)[2])


if __name__ == "__main__":
    main()
