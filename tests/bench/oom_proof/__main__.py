"""Asks the compiler about every advice: ``TPUPROF_JAX_PYTHON=… python -m tests.bench.oom_proof --half tuned``.

Needs an interpreter with `jax[tpu]` and no TPU. Writes what it finds to ``data``, and prints the table of README.md.
"""

from __future__ import annotations

import argparse
import sys

from tests.bench.oom_proof.cases import CASES
from tests.bench.oom_proof.score import table
from tests.bench.oom_proof.tries import Try, keep, kept, new_tries_of, tries_of


def words(each: Try) -> str:
    """A try in a line."""
    gib = 1 << 30 if each.capacity_bytes > 1 << 28 else 1 << 20
    changes = ", ".join(key if target is None else f"{key} {target}" for key, target in each.changes)
    sizes = [each.needed_bytes, each.predicted_bytes, each.compiled_bytes, each.capacity_bytes]
    shown = " ".join("     ?" if size is None else f"{size / gib:6.2f}" for size in sizes)
    error = "" if each.error is None else f"off {100 * each.error:.0f} %"
    said = f"{'said' if each.said_fits else 'not said'} to fit, {'fits' if each.fits else 'does not'}"
    return f"{each.case:32} {changes:28} {shown}  {error:8} {said}"


def main() -> int:
    """Runs the cases, tells every try of the half that is tuned, and the totals of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("tuned", "held", "all"), default="all")
    new = "compile only changes that the last run, with the same compiler and programs, has not"
    parser.add_argument("--new", action="store_true", help=new)
    parser.add_argument("names", nargs="*", help="of cases, or parts of them")
    args = parser.parse_args()
    for case in CASES:
        if args.half not in ("all", case.half) or (args.names and not any(name in case.name for name in args.names)):
            continue
        tries = []
        try:
            for each in new_tries_of(case) if args.new else tries_of(case):
                tries.append(each)
                if case.half == "tuned":
                    print(words(each), flush=True)
        except RuntimeError as error:
            print(f"{case.name}: {str(error)[-300:]}", file=sys.stderr, flush=True)
            continue
        keep(tries, [case.name])
    print(table(kept()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
