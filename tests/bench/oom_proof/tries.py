"""One run of the bench: every advice about every program, taken and compiled; what is kept of it, and its table."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from tests.bench.oom_proof.applied import knobs_after
from tests.bench.oom_proof.cases import CASES, Case
from tests.bench.oom_proof.compiler import Outcome, compile_program
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.model import HBM
from tpuprof.parsers.memory.modules.capacity import capacity_of
from tpuprof.parsers.memory.oom.dumps import Dumped, read_dumps, with_dumps
from tpuprof.parsers.memory.oom.model import Change, OomLog
from tpuprof.parsers.memory.oom.read.scan import scan_log
from tpuprof.parsers.memory.oom.triage import Triage, triage_of_report

DATA = Path(__file__).parent / "data"
NEAR, FAR = 0.1, 0.25


@dataclass(frozen=True, slots=True)
class Try:
    """A change, or several, that the compiler was asked about.

    Attributes:
        case, half: which program.
        changes: keys and targets of what was changed.
        needed_bytes, capacity_bytes: before it.
        predicted_bytes: what it should need after it; None where nothing was said.
        least_bytes: of a saving that was given as a range, the least; None of another.
        said_fits: whether it was said to fit.
        compiled_bytes: what the compiler says it needs then; None of a kernel that fits.
        fits: whether it does.
    """

    case: str
    half: str
    changes: tuple[tuple[str, int | None], ...]
    needed_bytes: int
    capacity_bytes: int
    predicted_bytes: int | None
    said_fits: bool
    compiled_bytes: int | None
    fits: bool
    least_bytes: int | None = None

    @property
    def is_near(self) -> bool:
        """Whether the saving is within 10 %, or inside of the range that was given, if one was."""
        if self.error is None or self.error <= NEAR or self.compiled_bytes is None or self.predicted_bytes is None:
            return self.error is not None
        saved, most = self.needed_bytes - self.compiled_bytes, self.needed_bytes - self.predicted_bytes
        return self.least_bytes is not None and (1 - NEAR) * self.least_bytes <= saved <= (1 + NEAR) * most

    @property
    def error(self) -> float | None:
        """How far the predicted saving is off, as a share of the larger of both; None where either is unknown."""
        if self.predicted_bytes is None or self.compiled_bytes is None:
            return None
        predicted, compiled = self.needed_bytes - self.predicted_bytes, self.needed_bytes - self.compiled_bytes
        return abs(predicted - compiled) / max(abs(predicted), abs(compiled), 1)


def file_name(case: Case) -> str:
    """The name of a case's files."""
    return case.name.replace(",", "").replace(" ", "_")


def read_triage(text: str, dump: tuple[Dumped, ...]) -> Triage:
    """What a user is shown of an error's text with the dump beside it."""
    log = scan_log(io.BytesIO(text.encode()))
    whole = with_dumps(log if log.reports else OomLog((), (), 0, 0), dump)
    return triage_of_report(whole.reports[0], "train.log")


def tries_of(case: Case) -> Iterator[Try]:
    """Compiles a case, keeps its text and module, and takes every advice about it, and the plan, in turn."""
    base = compile_program(case, case.knobs)
    if base.fits:
        raise RuntimeError(f"{case.name} fits: nothing to advise")
    (DATA / f"{file_name(case)}.txt").write_text(base.error + "\n")
    if base.module:
        (DATA / f"{file_name(case)}.pb.gz").write_bytes(base.module)
    triage = read_triage(base.error, base.dump)
    yield from tried(case, triage, {})


def kept_triage(case: Case) -> Triage:
    """What is advised now of the text and the module that the last run kept of a case."""
    text = (DATA / f"{file_name(case)}.txt").read_text()
    module = DATA / f"{file_name(case)}.pb.gz"
    dumps = read_dumps([str(module)]) if module.exists() else ()
    capacity = capacity_of(f"TPU {case.chip}", HBM)
    return read_triage(text, tuple(replace(one, memory=replace(one.memory, capacity=capacity)) for one in dumps))


def new_tries_of(case: Case) -> Iterator[Try]:
    """As `tries_of`, with the last run's answers where the same change of the same program was compiled then."""
    if not (DATA / f"{file_name(case)}.txt").exists():
        yield from tries_of(case)
        return
    yield from tried(case, kept_triage(case), {each.changes: each for each in kept() if each.case == case.name})


def tried(case: Case, triage: Triage, known: Mapping[tuple[tuple[str, int | None], ...], Try]) -> Iterator[Try]:
    """What the compiler says of each change; of those that are known what it said then."""
    need, seen = triage.need, set[tuple[Change, ...]]()
    assert need.used_bytes is not None and need.capacity_bytes is not None
    plan = (triage.plan.changes,) if triage.plan is not None and triage.plan.changes else ()
    for changes in (*((one.change,) for one in triage.advice if one.change is not None), *plan):
        knobs = knobs_after(case, changes)
        if knobs is None or changes in seen:
            continue
        seen.add(changes)
        saving = next((one.saving_bytes for one in triage.advice if (one.change,) == changes), None)
        predicted = None if saving is None else need.used_bytes - saving
        says = any((one.change,) == changes and "this alone is enough" in one.how for one in triage.advice)
        if plan and changes == plan[0] and triage.plan is not None:
            predicted, says = triage.plan.used_bytes, triage.plan.fits
        key = tuple((change.key, change.target) for change in changes)
        if key in known:
            compiled, fits = known[key].compiled_bytes, known[key].fits
        else:
            after = compile_program(case, knobs)
            compiled, fits = _needed(after, need.memory_space), after.fits
        yield Try(
            case=case.name,
            half=case.half,
            changes=key,
            needed_bytes=need.used_bytes,
            capacity_bytes=need.capacity_bytes,
            predicted_bytes=predicted,
            said_fits=says,
            compiled_bytes=compiled,
            fits=fits,
            least_bytes=next((one.least_bytes for one in triage.advice if (one.change,) == changes), None),
        )


def _needed(after: Outcome, space: str) -> int | None:
    """What the changed program needs of a memory; None of a kernel that fits, whose text says nothing then."""
    if space == "hbm":
        return after.peak_bytes
    if after.fits:
        return None
    (report,) = scan_log(io.BytesIO(after.error.encode())).reports
    return report.used_bytes


def kept() -> tuple[Try, ...]:
    """The tries of the last run."""
    read = json.loads((DATA / "tries.json").read_text())
    halves = {case.name: case.half for case in CASES}
    return tuple(
        Try(**{**each, "changes": tuple(map(tuple, each["changes"])), "half": halves[each["case"]]}) for each in read
    )


def keep(tries: Iterable[Try], cases: Iterable[str]) -> None:
    """Keeps a run's tries in place of those of the same cases."""
    path, names = DATA / "tries.json", set(cases)
    before = [each for each in kept() if each.case not in names] if path.exists() else []
    places = [case.name for case in CASES]
    whole = sorted([*before, *tries], key=lambda each: (places.index(each.case), len(each.changes), each.changes[0][0]))
    path.write_text(json.dumps([asdict(each) for each in whole], indent=1) + "\n")
