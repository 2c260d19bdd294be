"""Compares `tpuprof-tui report PAGE` with XProf's own conversion to the same page.

    python tests/bench/compare_with_xprof.py [--sizes 50MB 250MB] [--pages overview op-profile] [--repeat 3] [--readme]

Installs xprof from PyPI in an environment of its own, makes the profiles with the demo script, runs both in turn as
fresh processes without caches, and prints ratios of wall time, CPU time and peak memory. XProf takes a minute and 10 GB
for 250 MB: run it on an otherwise idle machine. `--readme` writes the table into the README.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.processes import Cost, best, environment_with, measure
from tests.demo.profile.hlo_module import Module

ROOT = Path(__file__).parents[2]
WORK = Path(__file__).parent / ".work"
XPROF = "xprof==2.24.2"
BEGIN, END = "<!-- benchmark: begin -->", "<!-- benchmark: end -->"

XPROF_PAGE = """
import json, sys
from xprof.convert.raw_to_tool_data import xspace_to_tool_data, xspace_to_tool_names
if sys.argv[2] == "memory_viewer":
    xspace_to_tool_names([sys.argv[1]])  # writes the modules beside the profile, where the tool looks for them
data, _ = xspace_to_tool_data([sys.argv[1]], sys.argv[2], json.loads(sys.argv[3]))
assert data and len(data) > 1000, "XProf gave no page"
"""

PAGES: dict[str, tuple[str, str]] = {
    "overview": ("overview_page", "{}"),
    "input": ("input_pipeline_analyzer", "{}"),
    "op-profile": ("op_profile", '{"group_by": "program"}'),
    "ops": ("hlo_stats", "{}"),
    "roofline": ("roofline_model", "{}"),
    "memory": ("memory_viewer", json.dumps({"module_name": Module("jit_train_step").full_name})),
    "memory-profile": ("memory_profile", "{}"),
}
"""Our pages, and the tool and its parameters for the same page in XProf (of our three trees it makes one)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a page of a profile and what each side took for it."""

    page: str
    size: str
    core: str
    theirs: Cost
    ours: Cost

    def cells(self) -> list[str]:
        """The line's cells."""
        a, b = self.theirs, self.ours
        return [
            self.page,
            self.size,
            self.core,
            f"{a.wall:.1f} s, {a.peak / 1e9:.1f} GB",
            f"{b.wall:.2f} s, {b.peak / 1e6:.0f} MB",
            f"**{a.wall / b.wall:.0f}×**",
            f"{a.cpu / b.cpu:.0f}×",
            f"1/{a.peak / b.peak:.0f}",
        ]


HEAD = ["page", "profile", "core", "XProf", "tpuprof-tui", "wall time", "CPU time", "memory"]


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    return "\n".join(lines + ["| " + " | ".join(row.cells()) + " |" for row in rows])


def make_profile(size: str) -> Path:
    """A profile of about this size, made by the demo script once."""
    path = WORK / f"demo-{size}" / "plugins" / "profile" / "bench" / "demo-vm.xplane.pb"
    if not path.exists():
        path.parent.mkdir(parents=True)
        script = ROOT / "tests" / "demo" / "make_profile.py"
        subprocess.run([sys.executable, str(script), str(path), "--size", size], check=True)
    return path


def warm(profile: Path) -> None:
    """Reads the file once, so that both find it in memory; piece by piece, for a process is born with our size."""
    with profile.open("rb") as file:
        while file.read(1 << 20):
            pass


def run_xprof(python: Path, profile: Path, page: str) -> Cost:
    """One conversion by XProf, from a folder of its own so that no cache is found or left."""
    folder = WORK / "fresh"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    link = folder / profile.name
    link.hardlink_to(profile)
    try:
        return measure([str(python), "-c", XPROF_PAGE, str(link), *PAGES[page]])
    finally:
        shutil.rmtree(folder)


def run_ours(profile: Path, page: str, core: str) -> Cost:
    """One page by this project, as a user would call it."""
    program = str(Path(sys.executable).parent / "tpuprof-tui")
    return measure([program, "report", page, str(profile), "--format", "json"], {"TPUPROF_CORE": core})


def compare(pages: Sequence[str], sizes: Sequence[str], cores: Sequence[str], repeat: int) -> list[Row]:
    """Runs both sides in turn."""
    python = environment_with(WORK / "xprof", XPROF)
    rows = []
    for page, size in product(pages, sizes):
        profile = make_profile(size)
        warm(profile)
        theirs: list[Cost] = []
        ours: dict[str, list[Cost]] = {core: [] for core in cores}
        for turn in range(repeat):
            print(f"{page}, {size}: turn {turn + 1} of {repeat}", file=sys.stderr)
            theirs.append(run_xprof(python, profile, page))
            for core in cores:
                ours[core].append(run_ours(profile, page, core))
        label = f"{profile.stat().st_size / 1e6:.0f} MB"
        rows += [Row(page, label, core, best(theirs), best(ours[core])) for core in cores]
    return rows


def write_readme(text: str) -> None:
    """Puts the table between the README's benchmark marks."""
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main() -> None:
    """Runs the comparison and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["50MB", "250MB"])
    parser.add_argument("--pages", nargs="+", default=["overview", "input", "op-profile"], choices=PAGES)
    parser.add_argument("--cores", nargs="+", default=["c", "numpy"], choices=["c", "numpy"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--readme", action="store_true", help="write the table into the README")
    arguments = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    rows = compare(arguments.pages, arguments.sizes, arguments.cores, arguments.repeat)
    text = table(rows)
    print(text)
    print(f"\nPython {platform.python_version()}, {platform.machine()}, best of {arguments.repeat} runs each.")
    if arguments.readme:
        write_readme(text)


if __name__ == "__main__":
    main()
