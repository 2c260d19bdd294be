"""Which branches of the readers fuzzing reaches, with coverage.py for those in Python and gcov for the compiled core.

`python -m tests.fuzz --minutes 10 --coverage` prints a line a reader, and what was not reached; `never.py` says why
of what no input reaches. A branch is a pair of lines, as coverage.py counts them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tests.fuzz.measured.never import NEVER
from tpuprof.parsers.base.record import dataclass

ROOT = Path(__file__).parents[3]
READERS: dict[str, tuple[str, ...]] = {
    "XSpace": ("parsers/formats/xspace/*.py", "parsers/formats/xspace/core/*.py"),
    "gzip": ("parsers/files/inflate.py", "parsers/formats/xspace/packed.py", "parsers/formats/xspace/spool.py"),
    "Riegeli": ("parsers/formats/xspace/riegeli/*.py",),
    "Chrome traces": ("parsers/formats/xspace/chrome/*.py",),
    "HLO protos and texts": ("parsers/formats/hlo/*.py",),
    "device memory profiles": ("parsers/formats/pprof/*.py",),
    "archives (tar, zip)": ("parsers/files/archives.py",),
    "files and folders": (
        *("parsers/files/file_kinds.py", "parsers/files/logdir.py", "parsers/files/folder_search.py"),
        *("parsers/files/places.py", "parsers/files/core_names.py"),
    ),
    "buffer assignments and dumps": (
        *("parsers/memory/modules/assignment.py", "parsers/memory/modules/heap.py", "parsers/memory/modules/target.py"),
        *("parsers/memory/modules/space_memory.py", "parsers/memory/oom/dumps.py"),
    ),
    "out-of-memory logs": ("parsers/memory/oom/read/*.py",),
    "kept summaries": ("parsers/hosts/codec.py",),
}
"""The files of each reader; a file belongs to the first that names it, but ``gzip`` before ``XSpace``."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch that was not reached: from a line of a file to another, and why, if it never can be."""

    file: str
    begin: int
    end: int
    text: str
    why: str | None


@dataclass(frozen=True, slots=True)
class Reached:
    """How many branches a reader has, how many were reached, and those that were not."""

    reader: str
    branches: int
    missing: tuple[Branch, ...]

    @property
    def share(self) -> float:
        """0-1."""
        return 1 - len(self.missing) / max(1, self.branches)


def include() -> list[str]:
    """The files that are measured."""
    return [str(ROOT / pattern) for patterns in READERS.values() for pattern in patterns]


def reader_of(file: str) -> str:
    """Whose a file is."""
    exact = (reader for reader, patterns in READERS.items() if file in patterns)
    return next(exact, "") or next(
        reader
        for reader, patterns in READERS.items()
        if any(fnmatch(file, pattern) and file.count("/") == pattern.count("/") for pattern in patterns)
    )


def reached(report: Mapping[str, Any]) -> Iterator[Reached]:
    """Each reader by coverage.py's JSON report."""
    counts, missing = dict.fromkeys(READERS, 0), {reader: list[Branch]() for reader in READERS}
    for name, of_file in sorted(report["files"].items()):
        file = str(Path(name).resolve().relative_to(ROOT)) if Path(name).is_absolute() else name
        lines = (ROOT / file).read_text("utf-8").splitlines()
        reader = reader_of(file)
        counts[reader] += of_file["summary"]["num_branches"]
        for begin, end in of_file["missing_branches"]:
            text = lines[begin - 1].strip()
            missing[reader].append(Branch(file, begin, end, text, _why(file, text)))
    yield from (Reached(reader, counts[reader], tuple(missing[reader])) for reader in READERS)


def _why(file: str, begin: str) -> str | None:
    """The reason that is given for a branch, by the beginning of its line."""
    of_file = ((why, begins) for why, lines in NEVER.items() for name, begins in lines if name == file)
    return next((why for why, begins in of_file if begin.startswith(begins)), None)


def table(all_reached: list[Reached]) -> str:
    """A line a reader; then what was not reached, with its reason."""
    lines = [f"{'reader':<30} {'branches':>8} {'reached':>8}       of those that an input can reach"]
    for each in all_reached:
        can = each.branches - sum(branch.why is not None for branch in each.missing)
        done = each.branches - len(each.missing)
        lines.append(f"{each.reader:<30} {each.branches:>8,} {done:>8,} {each.share:>5.1%} {done / max(1, can):>7.1%}")
    for each in all_reached:
        for branch in each.missing:
            lines.append(
                f"{branch.file}:{branch.begin}->{branch.end}: {branch.text[:70]}: {branch.why or 'not reached'}"
            )
    return "\n".join(lines)


def report_of(file: Path) -> dict[str, Any]:
    """A report that coverage.py wrote."""
    made: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return made
