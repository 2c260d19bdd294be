"""How long the overview of many hosts takes, and how much memory, with one process and with several.

    python -m tests.bench.many_hosts [--hosts 64] [--size 50MB] [--distinct 3] [--workers 1 2 4] [--keep]
    python -m tests.bench.many_hosts --merge 1024
    python -m tests.bench.many_hosts --timeline 1 8 64 [--size 2MB]

Makes a few distinct profiles with the demo script and copies them until there are enough (3.2 GB by default, below
`.work`, removed at the end unless kept), then makes the overview in a fresh process for each number of workers; `auto`
is what the program would choose. Prints wall time, when the first partial overview was there, CPU time of all
processes, peak memory of the parent and of the largest worker. The second look is the overview once more, from what the
first one left in the cache.

`--merge` makes pages of so many hosts from summaries alone: those of the demo, each host's a copy with other names and
times. Nothing is read or decoded.

`--timeline` opens the timeline of so many hosts in a fresh process: wall and CPU time until the first frame stands, and
until all hosts that are a row each on a screen of fifty rows are read; and the peak memory at either time.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.bench.processes import PLAIN, said_load
from tests.demo.make_profile import parse_size, write_profile
from tests.demo.profile.timeline import DemoSpec
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.cache import SETTLED_SECONDS
from tpuprof.parsers.hosts.plan import WORKERS_VARIABLE, available_cores
from tpuprof.parsers.hosts.reader import HostReader, ReadOptions
from tpuprof.parsers.hosts.summary import SUMMARY_OF_HOST, HostSummary, summarise
from tpuprof.parsers.pages.hosts.hosts import hosts_page
from tpuprof.parsers.pages.ops.ops import ops_page
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.tui.demo import demo_path

WORK = Path(__file__).parent / ".work"
ONE_RUN = """
import json, multiprocessing, resource, sys, time
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.session import Session
if __name__ == "__main__":
    begin, partials = time.perf_counter(), []
    session = Session(open_logdir(sys.argv[1]).find_run(None), cache=HostCache())
    page = session.page_as_read(OVERVIEW, None, lambda *_: partials.append(time.perf_counter() - begin))
    wall = time.perf_counter() - begin
    for child in multiprocessing.active_children():
        child.join()
    mine, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in (mine, theirs))
    print(json.dumps([wall, partials[:1], cpu, mine.ru_maxrss, theirs.ru_maxrss, len(page.hosts), len(partials)]))
"""

TIMELINE_RUN = """
import json, resource, sys, time
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.session.session import Session
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.pages import load_of
from tpuprof.tui.pages.timeline.draw.frame import TimelinePage
if __name__ == "__main__":
    run = open_logdir(sys.argv[1]).find_run(None)
    session, shown, taken = Session(run), {}, []
    begin = time.perf_counter()
    def measure():
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
        taken.append((time.perf_counter() - begin, time.process_time(), peak))
    def publish(part, payload):
        hosts = shown.get("hosts")
        if part == "hosts":
            shown["hosts"] = payload
        elif part == "timeline":
            shown["page"] = TimelinePage(payload.timeline)
        elif part == "host" and payload.read.timeline is not None:
            hosts.take(payload.number, payload.read)
            if "page" in shown:
                shown["page"].extend(hosts.timeline)
            else:
                shown["page"] = TimelinePage(hosts.timeline, len(hosts.reads), hosts)
            hosts.trim(shown["page"].view.rows.hosts_in_sight)
        if part in ("host", "timeline"):
            shown["page"].lines(Pen(160, BLOCK), 60)
            if not taken:
                measure()
    load_of("timeline")(session, run, None, publish)
    view = shown["page"].view
    if view.hosts is not None:
        view.fold_all()
        while wanted := view.hosts.wanted(view.rows.hosts_in_sight, view.rows.folding.hosts):
            load_of(wanted[0])(session, run, wanted[1], publish)
    measure()
    print(json.dumps([round(figure, 2) for figures in taken for figure in figures]))
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run took; sizes in megabytes, `first` is when a page over the first hosts was there."""

    workers: str
    hosts: int
    wall: float
    first: float | None
    partials: int
    cpu: float
    parent: float
    worker: float


def logdir(hosts: int, size: str, distinct: int) -> Path:
    """A logdir with one run of so many hosts; made where it is not there yet."""
    folder = WORK / f"hosts-{hosts}x{size}"
    run = folder / "plugins" / "profile" / "bench"
    if len(list(run.glob("*.xplane.pb"))) == hosts:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    run.mkdir(parents=True)
    spec = DemoSpec(size_bytes=parse_size(size), hosts=max(2, min(distinct, hosts)))
    made = write_profile(WORK / f"many-{os.getpid()}.xplane.pb", spec)
    for number in range(hosts):  # a link would be taken for the same host
        shutil.copyfile(made[number % len(made)], run / f"host{number:03}.xplane.pb")
    for path in made:
        path.unlink()
    time.sleep(SETTLED_SECONDS + 1)  # what is read of younger files is not kept: a second look would read it again
    return folder


def measured(folder: Path, workers: str, is_second: bool = False) -> Figures:
    """The overview once, in a fresh process; a second look finds what the one before has left."""
    cache = WORK / "cache"
    if not is_second:
        shutil.rmtree(cache, ignore_errors=True)
    environment = {
        "XDG_CACHE_HOME": str(cache),
        **os.environ,
        **PLAIN,
        WORKERS_VARIABLE: "" if workers == "auto" else workers,
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", ONE_RUN, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    wall, first, cpu, parent, worker, hosts, partials = json.loads(done.stdout)
    unit = 1e6 if sys.platform == "darwin" else 1e3
    workers += " again" if is_second else ""
    return Figures(workers, hosts, wall, first[0] if first else None, partials, cpu, parent / unit, worker / unit)


def timelines(counts: Sequence[int], size: str, distinct: int) -> None:
    """Opens the timelines of so many hosts, and prints how long that took."""
    for hosts in counts:
        folder = logdir(hosts, size, distinct)
        environment = {**os.environ, **PLAIN, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-c", TIMELINE_RUN, str(folder)]
        done = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(3)]
        best = [min(figures) for figures in zip(*(json.loads(each.stdout) for each in done), strict=True)]
        shutil.rmtree(folder)
        first, first_cpu, first_peak, whole, whole_cpu, peak = best
        print(f"{hosts} hosts of {size}: first frame {first} s ({first_cpu} s CPU, {first_peak:.0f} MB)", end="; ")
        print(f"all in sight {whole} s ({whole_cpu} s CPU, {peak:.0f} MB)", flush=True)


def merge(hosts: int) -> None:
    """Makes pages of many hosts' summaries; prints CPU seconds, and the peak memory so far."""
    with closing(Trace.open(demo_path())) as trace:
        one = summarise(trace, "host0")
    reader = HostReader(SUMMARY_OF_HOST, ReadOptions(), lambda _: None)  # what hosts have in common is kept once
    summaries = [reader.sharing(_host(one, number)) for number in range(hosts)]
    print(f"{hosts} hosts' summaries: {hosts * len(pickle.dumps(one)) / 1e6:,.0f} MB pickled, {_peak():,.0f} MB")
    for name, page in (("overview", overview), ("hosts", lambda all_: hosts_page(all_, [])), ("ops", ops_page)):
        begin = time.process_time()
        page(summaries)
        print(f"{name}: {time.process_time() - begin:.2f} s, {_peak():,.0f} MB")


def _host(summary: HostSummary, number: int) -> HostSummary:
    """The same host under another name, with arrays of its own and steps that begin a little later."""
    copied: HostSummary = pickle.loads(pickle.dumps(summary))
    assert copied.steps is not None
    names = tuple(name.replace("host0", f"host{number}") for name in copied.steps.core_names)
    steps = replace(copied.steps, core_names=names, start_ps=copied.steps.start_ps + 1000 * number)
    return replace(copied, host=f"host{number}", steps=steps)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--size", default="50MB")
    parser.add_argument("--distinct", type=int, default=3)
    parser.add_argument("--workers", nargs="+", default=["1", "2", "4", "auto"])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--merge", type=int, metavar="HOSTS", help="make pages of so many hosts' summaries instead")
    parser.add_argument("--timeline", type=int, nargs="+", metavar="HOSTS", help="open the timeline of so many hosts")
    given = parser.parse_args()
    if given.timeline:
        timelines(given.timeline, given.size, given.distinct)
        return
    if given.merge:
        merge(given.merge)
        return
    folder = logdir(given.hosts, given.size, given.distinct)
    print(f"{given.hosts} hosts of {given.size}, {available_cores()} cores")
    try:
        for workers, is_second in [(workers, False) for workers in given.workers] + [(given.workers[-1], True)]:
            figures = asdict(measured(folder, workers, is_second)).items()
            print(json.dumps({key: round(value, 2) if isinstance(value, float) else value for key, value in figures}))
    finally:
        if not given.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    with said_load():
        main()
