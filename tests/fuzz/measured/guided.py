"""Fuzzing that is guided by coverage: libFuzzer, by way of atheris, drives a reader and keeps what takes new branches.

    python -m tests.fuzz.measured.guided READER CORPUS_FOLDER [-max_total_time=300 and other options of libFuzzer]

By hand: it needs atheris. Half of the inputs are libFuzzer's own mutations of the corpus, half are made as `tests.fuzz`
makes them, so that checksums do not stop it. It stops at an exception that no reader may raise, and leaves the input in
a file ``crash-…``. The compiled core has a harness of its own, `tests/fuzz/core/guided.py`.
"""

from __future__ import annotations

import contextlib
import io
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

Read = Callable[[bytes], object]

FOLDER = Path(tempfile.mkdtemp())
with atheris.instrument_imports(include=["tpuprof.parsers"]):
    from tests.fuzz.mutate import mutated
    from tests.fuzz.targets import TARGETS
    from tpuprof.parsers.base.errors import ProfileError
    from tpuprof.parsers.files.archives import unpacked
    from tpuprof.parsers.formats.hlo.files import find_hlo_files, read_hlo_file
    from tpuprof.parsers.formats.hlo.graph import HloGraph
    from tpuprof.parsers.formats.hlo.parse import read_module_text
    from tpuprof.parsers.formats.pprof.messages import read_pprof
    from tpuprof.parsers.formats.xspace.trace import Trace
    from tpuprof.parsers.hosts import codec
    from tpuprof.parsers.memory.oom.read.scan import scan_log


def _of_file(name: str, read: Callable[[str], object]) -> Read:
    """Reads bytes as a file of that name."""
    path = FOLDER / name

    def of_bytes(data: bytes) -> object:
        path.write_bytes(data)
        return read(str(path))

    return of_bytes


def _trace(path: str) -> None:
    trace = Trace.open(path)
    for plane in trace.planes:
        plane.event_metadata, plane.stat_metadata  # noqa: B018 - it is read when it is asked for
        for line in plane.lines:
            line.events()
    trace.close()


READERS: dict[str, Read] = {
    "xspace": _of_file("host0.xplane.pb", _trace),
    "riegeli": _of_file("host0.xplane.riegeli", _trace),
    "trace": _of_file("host0.trace.json.gz", _trace),
    "hlo": _of_file("m.hlo_proto.pb", lambda path: HloGraph(read_hlo_file(find_hlo_files(path)[0]))),
    "hlo-text": lambda data: read_module_text("m", data.decode("utf-8", "replace").splitlines()),
    "pprof": _of_file("memory.prof", read_pprof),
    "archive": _of_file("logs.tar.gz", unpacked),
    "oom": lambda data: scan_log(io.BytesIO(data)),
    "cache": lambda data: codec.decode(memoryview(data), lambda _: b"kept"),
}


def main() -> None:
    """See the module's text."""
    name, corpus, *options = sys.argv[1:]
    read, target = READERS[name], next(each for each in TARGETS if each.name == name)
    refusals: tuple[type[BaseException], ...] = (ProfileError, *codec.DAMAGED) if name == "cache" else (ProfileError,)
    Path(corpus).mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (Path(corpus) / f"seed{number}").write_bytes(seed)

    def one_input(data: bytes) -> None:
        with contextlib.suppress(*refusals):
            read(data)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            made: Any = atheris.Mutate(data, most)
            return bytes(made)
        return (target.case(seed) if rng.random() < 0.7 else mutated(rng, data))[:most]

    atheris.Setup(
        [sys.argv[0], corpus, "-max_len=60000", "-timeout=30", "-rss_limit_mb=1500", *options],
        one_input,
        custom_mutator=mutate,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
