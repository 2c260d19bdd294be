"""Asks the compiler about the largest batch that fits: ``TPUPROF_JAX_PYTHON=… python -m tests.bench.oom_proof.fits``.

Each program is compiled at a batch that fits; what is said of that module then stands against compiles at the largest
batch that is said to fit and at the next round one. Keeps modules and answers in ``data``; prints the totals, and
of the half that is tuned each program.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from tests.bench.oom_proof.cases import CASES, Case, Knob
from tests.bench.oom_proof.compiler import compile_program
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.batch.fit import BatchFit, batch_fit
from tpuprof.parsers.memory.batch.growth import growth_of
from tpuprof.parsers.memory.model import HBM, ModuleLabel
from tpuprof.parsers.memory.modules.capacity import capacity_of
from tpuprof.parsers.memory.modules.space_memory import space_memory

DATA = Path(__file__).parent / "data/fits"
ANSWERS = DATA.parent / "fits.json"
_GIB = 1 << 30


def _case(name: str, **knobs: Knob) -> Case:
    """A program of `CASES` with other knobs, so that it fits."""
    case = next(case for case in CASES if case.name == name)
    return Case(case.name, case.program, case.half, case.chip, {**case.knobs, **knobs})


FITTING = (
    _case("decoder, scan", length=1024, batch=4),
    _case("decoder, no scan", length=1024, batch=16),
    _case("decoder, checkpoint", length=1024, batch=16, vocab=32000),
    _case("decoder, flash, loss in chunks", batch=6),
    _case("decoder, Adafactor", length=1024, batch=6),
    _case("decoder, FSDP on 8", length=1024, batch=2),
    _case("decoder, tensors on 4", width=2048, hidden=8192, heads=16, batch=3),
    _case("mixture of experts", batch=8),
    _case("vision transformer", pixels=256, batch=96),
    _case("U-Net", batch=48),
    _case("serving, KV cache", layers=8, length=2048, batch=16),
    _case("Adam, state too large", layers=12, width=4096, batch=16384),
    _case("llama, scan", layers=4, batch=2),
    _case("llama, FSDP on 4", layers=8, batch=2),
    _case("llama, tensors on 8", layers=4, batch=2),
    _case("llama, flash, checkpoint", batch=4),
    _case("llama, serving", batch=8, length=4096),
    _case("residual network", batch=96),
    _case("denoiser", batch=128),
    _case("encoder", batch=16),
    _case("recurrent network", batch=256),
    _case("mixture, not donated", batch=8),
)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What the compiler said of a program at a batch."""

    batch: int
    fits: bool
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A program of the bench: what the compiler said of it at its batch, and at those that were asked about."""

    case: str
    half: str
    batch: int
    compiled: tuple[Compiled, ...]

    def fits(self, batch: int) -> bool | None:
        """Whether a batch fits, by what is known of smaller and larger ones; None where that is not known."""
        if any(one.fits and one.batch >= batch for one in self.compiled):
            return True
        return False if any(not one.fits and one.batch <= batch for one in self.compiled) else None


@dataclass(frozen=True, slots=True)
class FitScore:
    """Counts over some answers.

    Attributes:
        programs: how many there are.
        largest: of which the largest batch fits that is said to.
        next: of which the next one does not fit, as is said.
        again: of which it fits because the compiler computes things again, as is said to be possible.
        right: of which both hold.
        near: of which the peak at the largest batch is within 5 %.
    """

    programs: int
    largest: int
    next: int
    again: int
    right: int
    near: int

    @classmethod
    def of(cls, answers: Iterable[tuple[Answer, BatchFit]]) -> FitScore:
        every = list(answers)
        largest = [fit.largest is not None and answer.fits(fit.largest) is True for answer, fit in every]
        beyond = [fit.next is not None and answer.fits(fit.next) is False for answer, fit in every]
        again = [fit.may_recompute and not is_over for (_, fit), is_over in zip(every, beyond, strict=True)]
        right = [one and (two or three) for one, two, three in zip(largest, beyond, again, strict=True)]
        near = [_is_near(answer, fit) for answer, fit in every]
        return cls(len(every), sum(largest), sum(beyond), sum(again), sum(right), sum(near))


def _is_near(answer: Answer, fit: BatchFit) -> bool:
    peaks = [one.peak_bytes for one in answer.compiled if one.batch == fit.largest]
    return bool(peaks) and fit.largest_bytes is not None and abs(fit.largest_bytes / peaks[0] - 1) <= 0.05


def file_of(case: str) -> Path:
    """Where the module of a case is kept."""
    return DATA / f"{case.replace(',', '').replace(' ', '_')}.pb.gz"


def fit_of(case: str) -> BatchFit:
    """What is said now of a kept module."""
    chip = next(one.chip for one in FITTING if one.name == case)
    proto = hlo_pb2.HloProto.FromString(gzip.decompress(file_of(case).read_bytes()))
    hlo = HloModule(proto)
    memory = space_memory(hlo, ModuleLabel(case, None, "bench"), HBM, capacity_of(f"TPU {chip}", HBM))
    return batch_fit(memory, growth_of(hlo, memory))


def kept() -> tuple[Answer, ...]:
    """The answers of the last run."""
    read, halves = json.loads(ANSWERS.read_text()), {case.name: case.half for case in FITTING}
    return tuple(
        Answer(**{**each, "compiled": tuple(Compiled(**one) for one in each["compiled"]), "half": halves[each["case"]]})
        for each in read
    )


def keep(answer: Answer) -> None:
    """Keeps an answer in place of the same program's."""
    path = ANSWERS
    before = [each for each in kept() if each.case != answer.case] if path.exists() else []
    places = [case.name for case in FITTING]
    every = sorted([*before, answer], key=lambda each: places.index(each.case))
    path.write_text(json.dumps([asdict(each) for each in every], indent=1) + "\n")


def asked(case: Case) -> Answer:
    """Compiles a case, and then at the batches that are said to be the largest and the next one."""
    base = compile_program(case, case.knobs)
    if not base.fits or base.peak_bytes is None:
        raise RuntimeError(f"{case.name} does not fit: {base.error[:200]}")
    DATA.mkdir(parents=True, exist_ok=True)
    file_of(case.name).write_bytes(base.module)
    batch = int(case.knobs["batch"])
    compiled, fit = [Compiled(batch, True, base.peak_bytes)], fit_of(case.name)
    for other in filter(None, (fit.largest, fit.next)):
        knobs: Mapping[str, Knob] = {**case.knobs, "batch": other}
        answer = compile_program(case, knobs)
        compiled.append(Compiled(other, answer.fits, answer.peak_bytes or 0))
    return Answer(case.name, case.half, batch, tuple(compiled))


def words(answer: Answer, fit: BatchFit) -> str:
    """An answer in a line."""
    said = fit.unknown or (
        f"largest {fit.largest} ({(fit.largest_bytes or 0) / _GIB:.2f} GiB), next {fit.next} over by "
        f"{(fit.over_bytes or 0) / _GIB:.2f}{', may compute again' if fit.may_recompute else ''}"
    )
    found = ", ".join(
        f"{one.batch} {'fits' if one.fits else 'does not'} ({one.peak_bytes / _GIB:.2f})" for one in answer.compiled
    )
    return f"{answer.case:32} {said}: {found}"


def main() -> int:
    """Runs the programs, shows those of the tuned half, and the totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of programs, or parts of them")
    args = parser.parse_args()
    for case in FITTING:
        if args.names and not any(name in case.name for name in args.names):
            continue
        try:
            answer = asked(case)
        except RuntimeError as error:
            print(f"{case.name}: {str(error)[-300:]}", file=sys.stderr, flush=True)
            continue
        keep(answer)
        if case.half == "tuned":
            print(words(answer, fit_of(case.name)), flush=True)
    for half in ("tuned", "held"):
        print(half, FitScore.of((answer, fit_of(answer.case)) for answer in kept() if answer.half == half))
    return 0


if __name__ == "__main__":
    sys.exit(main())
