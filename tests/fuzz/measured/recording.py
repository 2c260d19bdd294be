"""Runs the fuzzer so that coverage.py, and gcov for the compiled core, see which branches it takes."""

from __future__ import annotations

import contextlib
import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.fuzz.core import sanitizer
from tests.fuzz.measured.branches import include, reached, report_of, table
from tests.parsers.formats.xspace.core import fuzz_core

CORE_CASES = 200_000
"""Cases of the core's own fuzzer that are counted."""


@contextlib.contextmanager
def recorded(data: Path) -> Iterator[None]:
    """Writes which branches are taken meanwhile to a file."""
    import coverage

    tracer = coverage.Coverage(data_file=str(data), branch=True, include=include(), config_file=False)
    tracer.start()
    try:
        yield
    finally:
        tracer.stop()
        tracer.save()


def with_branches(words: Sequence[str], minutes: float) -> str:
    """Runs `tests.fuzz` with these words, each core half of the time, and the core's own fuzzer; the tables."""
    import coverage

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build = folder / "core"
        build.mkdir()
        core = sanitizer.counting_core(build)
        subprocess.run([sys.executable, fuzz_core.__file__, str(core), str(CORE_CASES), "1"], check=True)
        for kind, more in (("c", ["--core", str(core)]), ("fallback", ["--fallback", "--from", "1000000"])):
            command = [sys.executable, "-m", "tests.fuzz", *words, "--minutes", str(minutes / 2), *more]
            command += ["--data", str(folder / kind)]
            subprocess.run(command, check=False)
        tracer = coverage.Coverage(data_file=str(folder / "all"), branch=True, config_file=False)
        tracer.combine([str(folder / "c"), str(folder / "fallback")])
        tracer.json_report(outfile=str(folder / "report.json"))
        return table(list(reached(report_of(folder / "report.json")))) + "\n" + _core_branches(build)


def _core_branches(build: Path) -> str:
    """How many of the compiled core's branches were taken, and the lines of those that were not."""
    command = ["gcov", "--json-format", "--branch-probabilities", str(next(build.glob("*.gcda")))]
    subprocess.run(command, cwd=build, check=True, capture_output=True)
    report = json.loads(gzip.decompress(next(build.glob("*.gcov.json.gz")).read_bytes()))
    return _of_core([line for file in report["files"] if file["file"].endswith("_core.c") for line in file["lines"]])


def _of_core(lines: Sequence[dict[str, Any]]) -> str:
    branches = [(line["line_number"], branch["count"]) for line in lines for branch in line["branches"]]
    done = sum(count > 0 for _, count in branches)
    source = sanitizer.SOURCE.read_text("utf-8").splitlines()
    missing = sorted({number for number, count in branches if not count})
    texts = [f"_core.c:{number}: {source[number - 1].strip()[:90]}" for number in missing]
    return "\n".join(
        [f"compiled core: {len(branches):,} branches, {done:,} reached, {done / len(branches):.1%}", *texts]
    )
