"""Compares `tpuprof-tui report PAGE` with XProf's own conversion to the same page, and with xprof-rs.

    python -m tests.bench.compare_with_peers [--sizes 50MB 250MB] [--pages overview ops] [--repeat 3] [--readme]

Installs xprof and xprof-rs from PyPI, each in an environment of its own, makes the profiles with the demo script, and
runs all in turn as fresh processes without caches; prints medians and ranges of wall time, and the medians of CPU time
and peak memory. The second look is ours with the cache that the first one left. The profiles lack the plane with the
HLO protos: xprof-rs stops at its metadata ids. XProf takes some minutes and 18 GB for 500 MB; run it on an otherwise
idle machine. `--xprof-repeat` sets how often it runs, `--readme` writes the table into README.md.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tests.bench.processes import ROOT, Cost, environment_with, load, machine, measure, write_readme

WORK = Path(__file__).parent / ".work"
XPROF, XPROF_RS = "xprof==2.24.2", "xprof-rs==0.1.3"
BEGIN, END = "<!-- benchmark: begin -->", "<!-- benchmark: end -->"

XPROF_PAGE = """
import json, sys
from xprof.convert.raw_to_tool_data import xspace_to_tool_data
data, _ = xspace_to_tool_data([sys.argv[1]], sys.argv[2], json.loads(sys.argv[3]))
assert data and len(data) > 1000, "XProf gave no page"
"""

PAGES: dict[str, tuple[str, str, str | None]] = {
    "overview": ("overview_page", "{}", "get_overview"),
    "ops": ("hlo_stats", "{}", "get_hlo_stats"),
    "op-profile": ("op_profile", '{"group_by": "program"}', "get_hlo_op_profile"),
    "input": ("input_pipeline_analyzer", "{}", None),
    "roofline": ("roofline_model", "{}", "get_roofline_model"),
    "memory-profile": ("memory_profile", "{}", "get_memory_profile"),
}
"""Our pages; XProf's tool and its parameters for the same page; and xprof-rs's command, where it has one."""

LEAVE_OUT = ("--leave-out", "/host:metadata")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a page of a profile, and what each side took for it."""

    page: str
    size: str
    xprof: Sequence[Cost]
    xprof_rs: Sequence[Cost]
    ours: Sequence[Cost]
    again: Sequence[Cost]

    def cells(self) -> list[str]:
        """The line's cells."""
        sides = (self.xprof, self.xprof_rs, self.ours, self.again)
        ratios = [f"**{wall(side) / wall(self.ours):.1f}×**" if side and self.ours else "–" for side in sides[:2]]
        return [self.page, self.size, *map(cell, sides), *ratios]


SETTLED = 3
"""After so many seconds the cache keeps what is read of a file that has changed; its module would bring numpy here."""
HEAD = ("page", "profile", "XProf", "xprof-rs", "tpuprof-tui", "second look", "XProf/ours", "xprof-rs/ours")


def wall(costs: Sequence[Cost]) -> float:
    """The median wall time in seconds."""
    return statistics.median(cost.wall for cost in costs)


def cell(costs: Sequence[Cost]) -> str:
    """Median and range of wall time, medians of CPU time and memory."""
    if not costs:
        return "–"
    times = sorted(cost.wall for cost in costs)
    spread = f" ({times[0]:.2f}–{times[-1]:.2f})" if len(times) > 1 else ""
    cpu, peak = (statistics.median(getattr(cost, name) for cost in costs) for name in ("cpu", "peak"))
    return f"{wall(costs):.2f} s{spread}, CPU {cpu:.2f} s, {peak / 1e6:,.0f} MB"


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    return "\n".join(lines + ["| " + " | ".join(row.cells()) + " |" for row in rows])


def make_profile(size: str) -> Path:
    """A profile of about this size, made by the demo script once, without the plane of HLO protos."""
    path = WORK / f"demo-{size}" / "plugins" / "profile" / "bench" / "demo-vm.xplane.pb"
    if not path.exists():
        path.parent.mkdir(parents=True)
        whole = WORK / "whole.xplane.pb"
        script = ROOT / "tests" / "demo" / "make_profile.py"
        subprocess.run([sys.executable, str(script), str(whole), "--size", size], check=True)
        copy = [sys.executable, "-m", "tests.bench.compare_with_peers", *LEAVE_OUT, str(whole), str(path)]
        subprocess.run(copy, cwd=ROOT, check=True)
        whole.unlink()
    return path


def leave_out(name: str, source: Path, target: Path) -> None:
    """Copies a profile without one of its planes.

    Another process does it: those that are measured are born with the size of this one, which has to stay small.
    """
    from tpuprof.parsers.formats.xspace.trace import Trace
    from tpuprof.parsers.formats.xspace.walk import windows

    trace = Trace.open(str(source))
    left_out = {plane.begin for plane in trace.planes if plane.name == name}
    with source.open("rb") as file, target.open("wb") as out:
        for window in windows(trace.source, 0, trace.source.size):
            for tag, begin, end in zip(window.tag.tolist(), window.begin.tolist(), window.end.tolist(), strict=True):
                if begin not in left_out:
                    file.seek(tag)
                    for at in range(tag, end, 1 << 20):
                        out.write(file.read(min(1 << 20, end - at)))


def warm(profile: Path) -> None:
    """Reads the file once, so that all find it in memory; piece by piece, for a process is born with our size."""
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
        return measure([str(python), "-c", XPROF_PAGE, str(link), *PAGES[page][:2]])
    finally:
        shutil.rmtree(folder)


def run_ours(profile: Path, page: str, *options: str) -> Cost:
    program = str(Path(sys.executable).parent / "tpuprof-tui")
    environment = {"XDG_CACHE_HOME": str(WORK / "cache")}
    return measure([program, "report", page, str(profile), "--format", "json", *options], environment)


def first_look(profile: Path, page: str) -> None:
    """Leaves a page in the cache, which keeps nothing of a file that has just changed."""
    time.sleep(SETTLED)
    run_ours(profile, page)


def compare(pages: Sequence[str], sizes: Sequence[str], repeat: int, xprof_repeat: int) -> list[Row]:
    """Runs all sides in turn."""
    xprof = environment_with(WORK / "xprof", XPROF) if xprof_repeat else None
    xprof_rs = environment_with(WORK / "xprof-rs", XPROF_RS).parent / "xprof-rs"
    rows = []
    for size, page in product(sizes, pages):
        profile = make_profile(size)
        warm(profile)
        first_look(profile, page)
        costs: dict[str, list[Cost]] = {name: [] for name in ("xprof", "xprof_rs", "ours", "again")}
        for turn in range(max(repeat, xprof_repeat)):
            print(f"{page}, {size}: turn {turn + 1}", file=sys.stderr)
            if xprof is not None and turn < xprof_repeat:
                costs["xprof"].append(run_xprof(xprof, profile, page))
                first_look(profile, page)  # the link for XProf has changed the file: ours would read it again
            command = PAGES[page][2]
            if turn < repeat:
                if command is not None:
                    costs["xprof_rs"].append(measure([str(xprof_rs), command, str(profile)]))
                costs["ours"].append(run_ours(profile, page, "--no-cache"))
                costs["again"].append(run_ours(profile, page))
        label = f"{profile.stat().st_size / 1e6:.0f} MB"
        rows.append(Row(page, label, *costs.values()))
        print("| " + " | ".join(rows[-1].cells()) + " |", file=sys.stderr)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["50MB", "250MB"])
    parser.add_argument("--pages", nargs="+", default=["overview", "ops", "op-profile", "input"], choices=PAGES)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--xprof-repeat", type=int, default=1)
    parser.add_argument("--readme", action="store_true", help="write the table into README.md beside this")
    parser.add_argument(LEAVE_OUT[0], nargs=3, metavar=("PLANE", "SOURCE", "TARGET"), help="only copy a profile")
    arguments = parser.parse_args()
    if arguments.leave_out:
        plane, *paths = arguments.leave_out
        leave_out(plane, *map(Path, paths))
        return
    WORK.mkdir(exist_ok=True)
    before = load()
    rows = compare(arguments.pages, arguments.sizes, arguments.repeat, arguments.xprof_repeat)
    text = f"{table(rows)}\n\n{machine()}; medians (ranges). Load {before} before, {load()} after."
    print(text)
    if arguments.readme:
        write_readme(Path(__file__).with_name("README.md"), BEGIN, END, text)


if __name__ == "__main__":
    main()
