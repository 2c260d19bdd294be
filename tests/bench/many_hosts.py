"""How long the overview of many hosts takes, and how much memory, with one process and with several.

    python tests/bench/many_hosts.py [--hosts 64] [--size 50MB] [--distinct 3] [--workers 1 2 4] [--keep]

Makes a few distinct profiles with the demo script and copies them until there are enough (3.2 GB by default, below
`.work`, removed at the end unless kept), then makes the overview in a fresh process for each number of workers; `auto`
is what the program would choose. Prints wall time, when the first partial overview was there, CPU time of all
processes, peak memory of the parent and of the largest worker.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.demo.make_profile import parse_size, write_profile
from tests.demo.profile.timeline import DemoSpec
from tpuprof.parsers.hosts.plan import WORKERS_VARIABLE, available_cores

WORK = Path(__file__).parent / ".work"
ONE_RUN = """
import json, multiprocessing, resource, sys, time
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.session.session import Session
if __name__ == "__main__":
    begin, partials = time.perf_counter(), []
    session = Session(open_logdir(sys.argv[1]).find_run(None))
    page = session.overview_as_read(None, lambda *_: partials.append(time.perf_counter() - begin))
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
    return folder


def measured(folder: Path, workers: str) -> Figures:
    """The overview once, in a fresh process."""
    environment = {**os.environ, WORKERS_VARIABLE: "" if workers == "auto" else workers}
    command = [sys.executable, "-c", ONE_RUN, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    wall, first, cpu, parent, worker, hosts, partials = json.loads(done.stdout)
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return Figures(workers, hosts, wall, first[0] if first else None, partials, cpu, parent / unit, worker / unit)


def main() -> None:
    """Makes, measures, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--size", default="50MB")
    parser.add_argument("--distinct", type=int, default=3)
    parser.add_argument("--workers", nargs="+", default=["1", "2", "4", "auto"])
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    folder = logdir(given.hosts, given.size, given.distinct)
    print(f"{given.hosts} hosts of {given.size}, {available_cores()} cores, load {os.getloadavg()[0]:.1f}")
    try:
        for workers in given.workers:
            print(
                json.dumps(
                    {
                        k: round(v, 2) if isinstance(v, float) else v
                        for k, v in asdict(measured(folder, workers)).items()
                    }
                )
            )
    finally:
        if not given.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
