"""What each page takes: CPU and wall time, memory, and how that compares with the overview and with the file.

    python -m tests.bench.pages [--size 250MB] [--other 125MB] [--repeat 3] [--pages overview timeline] [--readme]

Makes a profile with the demo script, and another one for `diff`; then runs `report PAGE --format json` for
every page in turn, without caches, each in a fresh process, and again. Of each figure it prints the least. CPU is that
of all threads. `--readme` writes the table into README.md beside this.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.processes import ROOT, Cost, best, load, machine, measure, write_readme

WORK = Path(__file__).parent / ".work" / "pages"
BEGIN, END = "<!-- pages: begin -->", "<!-- pages: end -->"
PAGES = (
    *("overview", "findings", "ledger", "model", "input", "inference", "hosts", "cores", "ops", "op", "op-profile"),
    *("sources", "framework-ops", "roofline", "collectives", "sparse-core", "kernels", "counters", "graph", "memory"),
    *("timeline", "diff"),
)
HEAD = ("page", "CPU", "of the overview's", "wall time", "memory", "of the overview's", "of the file")


def made(name: str, size: str) -> Path:
    """The file of a new run of about this size.

    Another process makes it: those that are measured are born with the size of this one, which has to stay small.
    """
    path = WORK / name / "plugins" / "profile" / "bench" / "host.xplane.pb"
    path.parent.mkdir(parents=True)
    script = ROOT / "tests" / "demo" / "make_profile.py"
    subprocess.run([sys.executable, str(script), str(path), "--size", size], check=True, stdout=sys.stderr)
    return path


def command(page: str, run: Path, other: Path) -> list[str]:
    """What makes a page of a run, or compares it with another."""
    program = str(Path(sys.executable).parent / "tpuprof-tui")
    what = ["diff", str(other), str(run)] if page == "diff" else ["report", page, str(run)]
    return [program, *what, "--format", "json", "--no-cache"]


def costs(pages: Sequence[str], run: Path, other: Path, repeat: int) -> dict[str, Cost]:
    """The least that each page takes; of the other run, the overview."""
    commands = {page: command(page, run, other) for page in pages}
    commands["other"] = command("overview", other, other)
    taken: dict[str, list[Cost]] = {page: [] for page in commands}
    for turn in range(repeat):
        for page, words in commands.items():
            print(f"turn {turn + 1}: {page}", file=sys.stderr)
            taken[page].append(measure(words))
    return {page: best(of) for page, of in taken.items()}


def table(found: dict[str, Cost], run_bytes: int, other_bytes: int) -> str:
    """The costs as Markdown. The row of `diff` is relative to the overviews and the files of both runs."""
    lines = ["| " + " | ".join(HEAD) + " |", "|---|" + "---:|" * (len(HEAD) - 1)]
    one, other = found["overview"], found["other"]
    for page, cost in found.items():
        if page == "other":
            continue
        cpu, peak, size = one.cpu, one.peak, run_bytes
        if page == "diff":
            cpu, peak, size = cpu + other.cpu, max(peak, other.peak), size + other_bytes
        cells = (
            *(f"{cost.cpu:.2f} s", f"{cost.cpu / cpu:.2f}", f"{cost.wall:.2f} s"),
            *(f"{cost.peak / 1e6:,.0f} MB", f"{cost.peak / peak:.2f}", f"{cost.peak / size:.2f}"),
        )
        lines.append(f"| {page} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="250MB")
    parser.add_argument("--other", default="125MB", help="size of the run that diff compares it with")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--pages", nargs="+", default=PAGES, choices=PAGES)
    parser.add_argument("--readme", action="store_true", help="write the table into README.md beside this")
    given = parser.parse_args()
    pages = tuple(dict.fromkeys(("overview", *given.pages)))  # what the others are compared with
    shutil.rmtree(WORK, ignore_errors=True)
    try:
        run, other = made("run", given.size), made("other", given.other)
        before = load()
        found = costs(pages, run, other, given.repeat)
        sizes = run.stat().st_size, other.stat().st_size
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    text = (
        f"{table(found, *sizes)}\n\nA run of {sizes[0] / 1e6:.0f} MB; `diff` compares it with one of "
        f"{sizes[1] / 1e6:.0f} MB, and its row is relative to both overviews. {machine()}; the least of "
        f"{given.repeat}. Load {before} before, {load()} after."
    )
    print(text)
    if given.readme:
        write_readme(Path(__file__).with_name("README.md"), BEGIN, END, text)


if __name__ == "__main__":
    main()
