"""How long collectives take to read, and a key in their view to be answered.

    python tests/bench/views/collectives.py [--collectives 10000] [--steps 20] [--cores 4]

It composes a host whose cores run so many collectives a step, a third of them asynchronous. No check, the machine
decides.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.bench.processes import least_seconds, said_load
from tests.support.build import PlaneBuilder
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.session.pages import COLLECTIVES, OVERVIEW
from tpuprof.parsers.session.session import Session
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.pages.collectives.view import CollectivesView

_NS = 1000
_SHAPE = "bf16[1024,1024]{1,0:T(8,128)(2,1)}"


def composed(collectives: int, steps: int, cores: int) -> bytes:
    """A profile: in each step compute and collectives in turn."""
    space = XSpace()
    for core in range(cores):
        plane = PlaneBuilder(space, f"/device:TPU:{core}", core + 1)
        plane.stat("device_type_string", "TPU v5e")
        markers, ops = plane.line("Steps"), plane.line("XLA Ops")
        at = 0
        for step in range(steps):
            begin = at
            for number in range(collectives):
                for name, category, duration in _of(number):
                    metadata = plane.event_id(
                        _text(name), name, program_id=7, symbol_id=number + 1, hlo_category=category
                    )
                    plane.event(ops, metadata, at, duration * _NS)
                    at += duration * _NS
            plane.event(markers, plane.event_id(str(step)), begin, at - begin)
    return space.SerializeToString()


def _of(number: int) -> list[tuple[str, str, int]]:
    """Name, category and nanoseconds of the ops of a collective."""
    work = (f"fusion.{number}", "convolution fusion", 900)
    if number % 3:
        return [work, (f"all-reduce.{number}", "all-reduce", 300)]
    start, done = f"all-gather-start.{number}", f"all-gather-done.{number}"
    return [(start, "all-gather-start", 10), work, (done, "all-gather-done", 60)]


def _text(name: str) -> str:
    opcode, _, number = name.rpartition(".")
    operand = f"%all-gather-start.{number}" if opcode.endswith("-done") else "%p"
    groups = "replica_groups={{0,1},{2,3}}" if int(number) % 2 else "replica_groups={{0,2},{1,3}}"
    return f"%{name} = {_SHAPE} {opcode}({_SHAPE} {operand}), channel_id={int(number) + 1}, {groups}"


def timed(title: str, work: Callable[[], object], repeat: int = 1) -> None:
    """Prints the CPU time of some work, the best of some runs."""
    print(f"{title:<22} {1e3 * least_seconds(work, repeat, time.process_time):8.1f} ms")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, number in (("collectives", 10_000), ("steps", 20), ("cores", 4)):
        parser.add_argument(f"--{name}", type=int, default=number)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "host0.xplane.pb")
        path.write_bytes(composed(args.collectives, args.steps, args.cores))
        session = Session(open_logdir(str(path)).find_run(None))
        timed("overview", lambda: session.page(OVERVIEW))
        timed("collectives, then", lambda: session.page(COLLECTIVES))
        page = session.page(COLLECTIVES)
    print(page.log_line)
    views: list[CollectivesView] = []
    timed("open the view", lambda: views.append(CollectivesView(page)), 3)
    view = views[0]

    def drawn() -> None:
        view.lines(Pen(70, BLOCK), 20)
        view.card(Pen(48, BLOCK))
        _ = view.op_name

    def pressed(*commands: str) -> None:
        for name in commands:
            if name == "enter":
                view.enter()
            elif name in ("row", "step"):
                view.move(int(name == "step"), int(name == "row"))
            else:
                view.command(name)
        drawn()

    timed("next row", lambda: pressed("row"), 20)
    timed("next step", lambda: pressed("step"), 20)
    timed("group by", lambda: pressed("group"), 8)
    timed("back, each one", lambda: pressed("group", "enter"), 6)
    timed("next row of them", lambda: pressed("row"), 20)
    timed("sort them", lambda: pressed("sort"), 6)


if __name__ == "__main__":
    with said_load():
        main(sys.argv[1:])
