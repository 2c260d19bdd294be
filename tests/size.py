"""Prints how large the project is, room by room, and what the last commits added to it.

    python -m tests.size [--commits 10]

Lines are those of `.py` and `.c` files. All functions and classes are counted, and the distinct names of those that are
public.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

MOST_LINES = {"source": 133_100, "tests": 87_377}
"""Where `main` may end after a change, whatever it adds. Their sum only falls."""

PARTS = {"source": ("parsers", "tui"), "tests": ("tests",)}
"""The two parts of the project, and their top folders."""

_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Size:
    """How large some files are; `names` are the public ones that they define."""

    lines: int = 0
    functions: int = 0
    classes: int = 0
    names: frozenset[str] = frozenset()

    def __add__(self, other: Size) -> Size:
        return Size(
            self.lines + other.lines,
            self.functions + other.functions,
            self.classes + other.classes,
            self.names | other.names,
        )


def rooms() -> dict[str, Size]:
    """The size of each room, by its path: ``parsers/ops``."""
    found: dict[str, Size] = {}
    for folder in (folder for folders in PARTS.values() for folder in folders):
        for path in sorted(path for ending in ("*.py", "*.c") for path in (ROOT / folder).rglob(ending)):
            room = "/".join(path.relative_to(ROOT).parts[:-1][:2])
            found[room] = found.get(room, Size()) + _of_file(path)
    return found


def totals(of_rooms: dict[str, Size]) -> dict[str, Size]:
    """The size of each part of the project: source and tests."""
    return {
        part: sum((size for room, size in of_rooms.items() if room.split("/")[0] in folders), Size())
        for part, folders in PARTS.items()
    }


def _of_file(path: Path) -> Size:
    text = path.read_text()
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, _DEFINED)] if path.suffix == ".py" else []
    classes = sum(isinstance(node, ast.ClassDef) for node in nodes)
    names = frozenset(node.name for node in nodes if not node.name.startswith("_"))
    return Size(text.count("\n"), len(nodes) - classes, classes, names)


def added_by(commits: int) -> Iterator[tuple[str, dict[str, int]]]:
    """The last commits, the newest first: hash and subject, and the lines that each part of the project grew by."""
    form = ("--first-parent", "-m", "--numstat", "--no-renames", "--format=%x00%h %s")
    command = ["git", "log", f"-{commits}", *form]
    log = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for commit in log.split("\0")[1:]:
        subject, *rows = filter(None, commit.split("\n"))
        grown: Counter[str] = Counter()
        for added, removed, path in (row.split("\t", 2) for row in rows):
            part = next((part for part, folders in PARTS.items() if path.split("/")[0] in folders), None)
            if part is not None and path.endswith((".py", ".c")):
                grown[part] += int(added) - int(removed)
        yield subject, grown


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser("python -m tests.size", description=__doc__.split("\n")[0])
    parser.add_argument("--commits", type=int, default=10, help="how many of the last commits to show (default: 10)")
    commits = parser.parse_args().commits
    of_rooms = rooms()
    parts = totals(of_rooms)  # the room of the files in tests itself has the name of a part
    print(f"{'lines':>8} {'functions':>9} {'classes':>8} {'names':>7}")
    for name, size in (*of_rooms.items(), *parts.items()):
        limit = f"  of at most {MOST_LINES[name]:,}" if size is parts.get(name) else ""
        print(f"{size.lines:8,} {size.functions:9,} {size.classes:8,} {len(size.names):7,}  {name}{limit}")
    print(f"\n{'source':>8} {'tests':>9}  lines added by")
    for subject, grown in added_by(commits):
        print(f"{grown['source']:+8,} {grown['tests']:+9,}  {subject}")


if __name__ == "__main__":
    main()
