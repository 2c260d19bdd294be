"""Input that once broke a promise, by target: a line each, ``NUMBER BASE64``; the number says how it is read.

    python -m tests.fuzz.corpus ~/.cache/tpuprof-tui/faults/xspace-1234 ...

adds what `python -m tests.fuzz` has kept.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent


def past_failures() -> Iterator[tuple[str, int, bytes]]:
    """Target, number and bytes of each."""
    for file in sorted(FOLDER.glob("*.txt")):
        for line in file.read_text("ascii").splitlines():
            number, text = line.split()
            yield file.stem, int(number), base64.b64decode(text, validate=True)


def keep(target: str, number: int, data: bytes) -> None:
    """Adds one, unless it is there."""
    file = FOLDER / f"{target}.txt"
    lines = file.read_text("ascii").splitlines() if file.exists() else []
    line = f"{number} {base64.b64encode(data).decode()}"
    if line not in lines:
        file.write_text("".join(f"{line}\n" for line in [*lines, line]), "ascii")
