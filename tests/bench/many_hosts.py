"""How long the overview of many hosts takes, and how much memory, with one process and with several.

    python -m tests.bench.many_hosts [--hosts 64] [--size 50MB] [--distinct 3] [--workers 1 2 4] [--keep]

Makes a few distinct profiles with the demo script and copies them until there are enough (3.2 GB by default, below
`.work`, removed at the end unless kept), then makes the overview in a fresh process for each number of workers; `auto`
is what the program would choose. Prints wall time, when the first partial overview was there, CPU time of all
processes, peak memory of the parent and of the largest worker. The second look is the overview once more, from what the
first one left in the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.processes import PLAIN, said_load
from tests.demo.make_profile import parse_size, write_profile
from tests.demo.profile.timeline import DemoSpec
from tpuprof.parsers.hosts.cache import SETTLED_SECONDS
from tpuprof.parsers.hosts.plan import WORKERS_VARIABLE, available_cores

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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--size", default="50MB")
    parser.add_argument("--distinct", type=int, default=3)
    parser.add_argument("--workers", nargs="+", default=["1", "2", "4", "auto"])
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
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
