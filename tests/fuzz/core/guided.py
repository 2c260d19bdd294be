"""Fuzzing of the compiled core that is guided by coverage: libFuzzer with the sanitizers of addresses and behaviour.

    python -m tests.fuzz.core.guided CORPUS_FOLDER [-max_total_time=300 and other options of libFuzzer]

By hand: it needs clang with its sanitizers, and Python's headers and library.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from tests.fuzz.core.sanitizer import SOURCE
from tests.fuzz.targets import TARGETS
from tpuprof.parsers.formats.xspace.trace import Trace

HARNESS = Path(__file__).with_name("harness.c")


def built_harness(folder: Path) -> Path:
    """The program, built into a folder."""
    program, library = folder / "guided", sysconfig.get_config_var("LIBDIR")
    flags = ["-O1", "-g", "-w", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=undefined"]
    flags += [f'-DCORE="{SOURCE}"', f"-I{sysconfig.get_paths()['include']}"]
    python = [f"-L{library}", f"-Wl,-rpath,{library}", f"-lpython{sysconfig.get_config_var('LDVERSION')}"]
    subprocess.run(["clang", *flags, str(HARNESS), "-o", str(program), *python], check=True)
    return program


def write_seeds(corpus: Path) -> None:
    """Lines of the fuzzer's profiles, for each function."""
    corpus.mkdir(parents=True, exist_ok=True)
    profiles = next(target for target in TARGETS if target.name == "xspace").seeds()
    for number, data in enumerate(profiles):
        for plane in Trace.from_bytes(data).planes:
            for at, line in enumerate(plane.lines[:6]):
                for how in (0xC8, 0xC9, 0xCA, 0xDB):
                    name = f"seed{number}-{at}-{how}"
                    (corpus / name).write_bytes(bytes((how,)) + data[line.begin : line.end][:4000])


def main() -> int:
    """See the module's text."""
    corpus, *options = sys.argv[1:]
    write_seeds(Path(corpus))
    with tempfile.TemporaryDirectory() as folder:
        command = [str(built_harness(Path(folder))), corpus, "-max_len=4096", "-detect_leaks=0", *options]
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # the interpreter keeps what it made
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
