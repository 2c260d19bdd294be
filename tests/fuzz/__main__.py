"""Runs damaged input through every reader for as long as asked, and keeps what breaks a promise.

    python -m tests.fuzz [--minutes 60] [--only xspace,oom] [--from 0] [--asan] [--fallback] [--costs]
        [--coverage]

With `--fallback` the readers do without the compiled core; with `--asan` that is built with AddressSanitizer and
UndefinedBehaviorSanitizer first. Prints for each target how many inputs were read and how many refused, and which took
most memory and time by its size; a fault is written to a file in `--keep`, from where `python -m tests.fuzz.corpus
FILE...` puts it among the past failures that the suite runs. Exits with 1 where there was one.

With `--coverage` it counts which branches of each reader are reached, by fuzzing alone, half of the time without the
compiled core, and then those of the core (it needs coverage.py and gcov).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.core.sanitizer import CORE, built_core, preloaded, with_core
from tests.fuzz.measured.costs import Worst, kept_costs
from tests.fuzz.measured.recording import recorded, with_branches
from tests.fuzz.targets import TARGETS, Target
from tpuprof.parsers.base.folders import cache_folder


def main() -> int:
    """Runs the command; the exit code."""
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="of the processor's time, in all (default: 1)")
    parser.add_argument("--only", default="", help=f"targets, of {', '.join(target.name for target in TARGETS)}")
    parser.add_argument("--from", dest="begin", type=int, default=0, help="number of the first input (default: 0)")
    keep = Path(cache_folder()) / "faults"
    parser.add_argument("--keep", type=Path, default=keep, help="folder for faults (default: one in the cache)")
    parser.add_argument("--asan", action="store_true", help="with a compiled core that watches its memory")
    parser.add_argument("--fallback", action="store_true", help="without the compiled core")
    parser.add_argument("--costs", action="store_true", help="keep the inputs that cost most, for the suite")
    parser.add_argument("--coverage", action="store_true", help="count the branches of each reader that are reached")
    parser.add_argument("--core", help=argparse.SUPPRESS)
    parser.add_argument("--data", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.coverage:
        _say(with_branches([word for word in sys.argv[1:] if word != "--coverage"], args.minutes))
        return 0
    if args.asan:
        with tempfile.TemporaryDirectory() as folder:
            core = built_core(Path(folder))
            words = [word for word in sys.argv[1:] if word != "--asan"]
            return subprocess.run(
                [sys.executable, "-m", "tests.fuzz", *words, "--core", str(core)], env=preloaded(), check=False
            ).returncode
    if args.core:
        with_core(Path(args.core))
    if args.fallback:
        sys.modules[CORE] = None  # type: ignore[assignment]
    chosen = [target for target in TARGETS if not args.only or target.name in args.only.split(",")]
    worst = Worst()
    if args.costs:
        _read_again(chosen, worst)
    with recorded(Path(args.data)) if args.data else contextlib.nullcontext():
        code = run(chosen, args.begin, 60 * args.minutes, args.keep, worst)
    _say(worst.table())
    if args.costs:
        worst.keep()
    return code


def run(chosen: list[Target], begin: int, seconds: float, keep: Path, worst: Worst) -> int:
    """Goes through the targets in turn until it has had so much of the processor's time."""
    end = time.process_time() + seconds
    counts = {target.name: Counter[str]() for target in chosen}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = folder
        for number, target in _turns(chosen, begin):
            if time.process_time() > end:
                break
            data = target.case(number)
            outcome = target.run(Path(folder), data, number)
            counts[target.name][outcome.kind] += 1
            worst.add(target.name, number, data, outcome)
            if outcome.is_fault:
                keep.mkdir(exist_ok=True)
                (keep / f"{target.name}-{number}").write_bytes(data)
                _say(f"{target.name} {number}: {outcome.kind}: {outcome.detail}")
    for name, kinds in counts.items():
        _say(f"{name}: {sum(kinds.values()):,} inputs: {', '.join(f'{kind} {n:,}' for kind, n in kinds.most_common())}")
    return int(any(kind not in ("read", "refused") for kinds in counts.values() for kind in kinds))


def _read_again(chosen: list[Target], worst: Worst) -> None:
    """Reads what cost most before, so that it stays unless something costs more."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = folder
        for cost in kept_costs():
            for target in chosen:
                if target.name == cost.target:
                    worst.add(target.name, cost.number, cost.data, target.run(Path(folder), cost.data, cost.number))


def _turns(chosen: list[Target], begin: int) -> Iterator[tuple[int, Target]]:
    number = begin
    while True:
        yield from ((number, target) for target in chosen if number % target.turns == 0)
        number += 1


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
