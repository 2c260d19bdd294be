"""Runs damaged input through every reader for as long as asked, and keeps what breaks a promise.

    python -m tests.fuzz [--minutes 60 | --each 20] [--only xspace,oom] [--from 0] [--asan] [--fallback] [--costs]

Inputs have numbers, from a random one on, which it prints; the same number makes the same input. With `--each` every
target gets so many seconds, in a process of its own, and as many run at once as there are cores. With `--fallback`
the readers do without the compiled core; with `--asan` that is built with AddressSanitizer and
UndefinedBehaviorSanitizer first. Prints for each target how many inputs were read and how many refused, and which took
most memory and time by its size. Each input lies in a file in `--keep` while it is read, and a fault stays there, also
one that ends the process; `python -m tests.fuzz.corpus FILE...` puts it among the past failures that the suite runs.
The faults that lie there are read first, and go when they are mended. Exits with 1 where there was a fault.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.core.sanitizer import CORE, built_core, preloaded, with_core
from tests.fuzz.measured.costs import Worst, kept_costs
from tests.fuzz.targets import TARGETS, Target
from tpuprof.parsers.base.folders import cache_folder


def main() -> int:
    """Runs the command; the exit code."""
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="of the processor's time, in all (default: 1)")
    parser.add_argument("--only", default="", help=f"targets, of {', '.join(target.name for target in TARGETS)}")
    parser.add_argument("--each", type=float, default=0, help="seconds for each target, beside one another")
    parser.add_argument("--from", dest="begin", type=int, help="number of the first input (default: a random one)")
    keep = Path(cache_folder()) / "faults"
    parser.add_argument("--keep", type=Path, default=keep, help="folder for faults (default: one in the cache)")
    parser.add_argument("--asan", action="store_true", help="with a compiled core that watches its memory")
    parser.add_argument("--fallback", action="store_true", help="without the compiled core")
    parser.add_argument("--costs", action="store_true", help="keep the inputs that cost most, for the suite")
    parser.add_argument("--core", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.begin is None:
        args.begin = secrets.randbelow(1 << 40)
        sys.argv += ["--from", str(args.begin)]
        _say(f"inputs from number {args.begin} on: --from {args.begin} gives the same")
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
    if args.each:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            codes = [*pool.map(lambda target: _alone(target, args.each, args.keep), chosen)]
        return int(any(codes))
    worst = Worst()
    if args.costs:
        _read_again(chosen, worst)
    code = run(chosen, args.begin, 60 * args.minutes, args.keep, worst)
    _say(worst.table())
    if args.costs:
        worst.keep()
    return code


def run(chosen: list[Target], begin: int, seconds: float, keep: Path, worst: Worst) -> int:
    """Goes through the targets in turn until it has had so much of the processor's time."""
    counts = {target.name: Counter[str]() for target in chosen}
    keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = folder
        end = time.process_time() + seconds
        for target, number, data in _inputs(chosen, begin, keep):
            if time.process_time() > end:
                break
            file = keep / f"{target.name}-{number}"
            file.write_bytes(data)
            outcome = target.run(Path(folder), data, number)
            counts[target.name][outcome.kind] += 1
            worst.add(target.name, number, data, outcome)
            if outcome.is_fault:
                _say(f"{target.name} {number}: {outcome.kind}: {outcome.detail}\n{_kept(file)}")
            else:
                file.unlink()
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


def _alone(target: Target, seconds: float, keep: Path) -> int:
    """Runs a target in a process of its own; its exit code, 1 where it does not end."""
    words = [word for word in sys.argv[1:] if word != "--costs"]
    command = [sys.executable, "-m", "tests.fuzz", *words, "--each", "0", "--only", target.name]
    command += ["--minutes", str(seconds / 60)]
    before = {*_faults(target, keep)}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600 + 20 * seconds)
        text, code = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired:
        text, code = f"{target.name}: does not end\n", 1
    if code not in (0, 1):
        text += f"{target.name}: the process ended with {code}\n"
    _say(text + "".join(f"{_kept(file)}\n" for file in {*_faults(target, keep)} - before if str(file) not in text))
    return code


def _faults(target: Target, keep: Path) -> list[Path]:
    return sorted(keep.glob(f"{target.name}-[0-9]*"))


def _kept(file: Path) -> str:
    return f"The fault is in {file}: the next commit must turn it into a test (python -m tests.fuzz.corpus {file})."


def _inputs(chosen: list[Target], begin: int, keep: Path) -> Iterator[tuple[Target, int, bytes]]:
    """The faults that were kept, then inputs from a number on, a target after the other; without an end."""
    for target in chosen:
        for file in _faults(target, keep):
            yield target, int(file.name.rpartition("-")[2]), file.read_bytes()
    number = begin
    while True:
        yield from ((target, number, target.case(number)) for target in chosen if number % target.turns == 0)
        number += 1


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
