"""The compiler, as the bench asks it: what became of a program, and the module that it made of it."""

from __future__ import annotations

import functools
import gzip
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.oom_proof.cases import Case, Knob
from tests.demo.compile_modules import without_other_sources
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.files import find_hlo_files, read_hlo_file
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.oom.dumps import Dumped, read_dumps

HERE = Path(__file__).parent
PYTHON = os.environ.get("TPUPROF_JAX_PYTHON", "python")
_PLACED = ".after_optimizations_after_buffer_assignment.hlo.pb"
_LONGEST = 400.0
_RAN_OUT = ("Ran out of memory", "would exceed memory")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the compiler made of a program.

    Attributes:
        fits: whether all memory spaces have room for it.
        error: what it said otherwise.
        peak_bytes, total_bytes: of HBM, by the dump; None for a kernel that fails before it has one.
        figures: of `memory_analysis()`, where it was asked for that.
        module: the module with its buffer assignment, without paths of this machine; empty without one.
        dump: as a user's tool reads it.
    """

    fits: bool
    error: str
    peak_bytes: int | None
    total_bytes: int | None
    figures: Mapping[str, int]
    module: bytes
    dump: tuple[Dumped, ...]


def compile_program(case: Case, knobs: Mapping[str, Knob]) -> Outcome:
    """Compiles a case with these knobs.

    Whether HBM has room for a program is decided once its buffers have their places, and code for it takes minutes: the
    compiler is stopped there. A kernel's own memory is looked at later.

    Raises:
        RuntimeError: the compiler says something else than that memory ran out, or nothing at all.
    """
    told = json.dumps({"program": case.program, "chip": case.chip, "knobs": dict(knobs)})
    with tempfile.TemporaryDirectory() as folder:
        command = [PYTHON, str(HERE / "worker.py"), told, folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            answer = _answer(process, Path(folder), case.program == "kernels")
        if answer["error"] and not any(words in answer["error"] for words in _RAN_OUT):
            raise RuntimeError(f"{case.name}: {answer['error']}")
        names = sorted(path.name for path in Path(folder).iterdir())
        has_module = any(".after_optimizations.hlo.pb" in name for name in names)
        found = read_dumps((folder,)) if has_module else ()
        main = max(found, key=lambda one: one.memory.peak_bytes, default=None)
        return Outcome(
            fits=answer["fits"],
            error=answer["error"],
            peak_bytes=None if main is None else main.memory.peak_bytes,
            total_bytes=None if main is None else main.memory.total_allocation_bytes,
            figures={key: value for key, value in answer.items() if key.endswith("_in_bytes")},
            module=_clean(folder, main.name) if main is not None else b"",
            dump=found,
        )


def _answer(process: subprocess.Popen[str], folder: Path, to_the_end: bool) -> dict[str, Any]:
    """What the worker prints; where the buffers have their places before that, that it fits."""
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < _LONGEST:
        time.sleep(0.3)
        if not to_the_end and any(path.name.endswith(_PLACED) for path in folder.iterdir()):
            time.sleep(1)
            process.kill()
            return {"fits": True, "error": ""}
    process.kill()
    out, err = process.communicate()
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if not lines:
        raise RuntimeError(err[-2000:])
    read: dict[str, Any] = json.loads(lines[-1])
    return read


def _clean(folder: str, name: str) -> bytes:
    """The module as a gzipped proto, with lines of the programs alone."""
    file = next(file for file in find_hlo_files(folder) if file.name == name)
    proto = hlo_pb2.HloProto()
    proto.CopyFrom(read_hlo_file(file).proto)
    without_other_sources(proto, _sources())
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.ClearField("backend_config")
    del proto.hlo_module.payloads[:]
    return gzip.compress(proto.SerializeToString(deterministic=True), 9, mtime=0)


@functools.cache
def _sources() -> frozenset[bytes]:
    return frozenset(path.name.encode() for path in (HERE / "programs").glob("*.py"))
