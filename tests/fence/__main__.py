"""Shows how reports differ from those of another revision.

python -m tests.fence --against REVISION [NAME …]

Both revisions make the reports of their own fence, this one in the working tree as it is, the other one in a temporary
work tree; what differs is printed as a unified diff. Names are those of the files with hashes, such as ``demo``.
"""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import SHARED
from tests.fence.reports import DUMP, rounded

ROOT = Path(__file__).parents[2]
CORE = Path("parsers", "formats", "xspace", "core")
FENCES = ("tests/fence", "tests/parity/fence", "tests/insight/test_score.py")


def main() -> int:
    """Command line; returns 1 where reports differ, 2 where a revision made none."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fence", description="Shows how reports differ from those of another revision."
    )
    parser.add_argument("--against", metavar="REVISION", default="HEAD", help="of git (default: HEAD)")
    parser.add_argument("names", metavar="NAME", nargs="*", help="a file with hashes, without .json (default: all)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, work_tree(given.against, Path(folder)) as tree:
        before, after = Path(folder) / "before", Path(folder) / "after"
        for root, reports in ((tree, before), (ROOT, after)):
            if output := made(root, reports, given.names):
                print(f"{root} made no reports:\n{output}", file=sys.stderr)
                return 2
        lines = list(differences(before, after, given.names))
    try:
        print(*lines, sep="\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1 if lines else 0


@contextmanager
def work_tree(revision: str, folder: Path) -> Iterator[Path]:
    """A revision's files in a folder, with the reference data beside them where it is at hand."""
    tree = folder / "tree"
    git = ("git", "-C", str(ROOT), "worktree")
    subprocess.run([*git, "add", "--quiet", "--detach", str(tree), revision], check=True)
    try:
        if SHARED.is_dir():
            (folder / "shared").symlink_to(SHARED)
        for built in (ROOT / CORE).glob("_core*.so"):  # git does not have it, and the tests ask for it
            shutil.copy(built, tree / CORE)
        yield tree
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def made(root: Path, reports: Path, names: Sequence[str]) -> str:
    """Makes the reports of a work tree; returns what pytest said where there are none.

    Args:
        reports: the folder that they are written to.
        names: of the profiles; all without any.
    """
    with tempfile.TemporaryDirectory() as library:
        package = Path(library) / "tpuprof"  # comes before the installed one
        package.mkdir()
        (package / "__init__.py").symlink_to(root / "tui/api/package/__init__.py")
        for folder in ("parsers", "tui"):
            (package / folder).symlink_to(root / folder)
        chosen = ["-k", " or ".join(names)] if names else []
        fences = [fence for fence in FENCES if (root / fence).exists()]
        path = os.pathsep.join((library, str(root)))
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *fences],
            cwd=root,
            env={**os.environ, DUMP: str(reports), "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )  # fails where the reports are not those of the hashes
    return "" if reports.is_dir() else ran.stdout + ran.stderr


def differences(before: Path, after: Path, names: Sequence[str] = ()) -> Iterator[str]:
    """Lines of unified diffs of the reports in two folders.

    Args:
        names: of the profiles that are compared; all without any.
    """
    paths = {path.relative_to(top) for top in (before, after) for path in top.glob("*/*")}
    for name in sorted(path for path in paths if not names or path.parent.name in names):
        old, new = (lines_of(top / name) for top in (before, after))
        if old != new:
            yield from difflib.unified_diff(old, new, f"before/{name}", f"after/{name}", lineterm="")


def lines_of(path: Path) -> list[str]:
    """A report's lines; none where there is no such report."""
    return rounded(path.read_text("utf-8")).splitlines() if path.exists() else []


if __name__ == "__main__":
    sys.exit(main())
