"""The page of SparseCores: what they do beside the TensorCores, and whether these wait for them.

Figures of a step are means over the steps and over the TensorCores with SparseCores beside them. They add up: a
TensorCore's work is work alone and work beside a SparseCore, and the same holds the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.words import share, time
from tpuprof.parsers.hosts.op_summary import OPS_OF_HOST
from tpuprof.parsers.hosts.reduction import left_out
from tpuprof.parsers.ops.table import EMPTY_TABLE, OpTable, merge_tables
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.shared.host_files import each_host, opened
from tpuprof.parsers.pages.shared.key import PageKey, PageSession
from tpuprof.parsers.pages.shared.summaries import read
from tpuprof.parsers.pages.sparse_core.host import (
    BESIDE,
    BOTH,
    BUSY,
    INFEED,
    OUTFEED,
    SPARSE,
    SPARSE_CORES_OF_HOST,
    SYNC,
    WAIT,
    WAIT_BESIDE,
    WORK,
    SparseHost,
    SparseWait,
    StepSpans,
    has_sparse_cores,
    steps_of,
)

if TYPE_CHECKING:
    from tpuprof.parsers.files.places import HostFile
    from tpuprof.parsers.hosts.progress import Meter
    from tpuprof.parsers.hosts.summary import HostSummary

Verdict = Literal["bottleneck", "not_bottleneck", "idle", "unknown"]

NO_SPARSE_CORES = "the profile has no SparseCores"
NO_TENSOR_CORE = "the profile has no ops of the TensorCore beside the SparseCore"
NO_FEEDS = "no SparseCore ran an op of the category infeed or outfeed"
NO_SYNCS = "no SparseCore has a line Sparse Core Syncs"
NO_STEPS = "no op ran"

UNSEEN = (
    "Untested on hardware: no profile of a SparseCore was available. Planes, lines and stats are read as XProf's "
    "source describes them, and tested only on made-up profiles."
)
"""What the page says of itself."""

MUCH_PERCENT = 10.0
"""Percent of the step from which on SparseCores are the bottleneck (XProf's `kSparseCoreTimeThresholdInPercent`).

XProf compares with it the SparseCores' whole step, in which they may be idle, or beside the TensorCore.
"""

_LITTLE_PERCENT = 0.5


@dataclass(frozen=True, slots=True)
class StepSplit:
    """How the time of a step is spent, or the mean over steps and cores; picoseconds.

    Attributes:
        step_ps: its time.
        sparse_ps: a SparseCore works.
        tensor_ps: the TensorCore works: it runs an op that does not wait for a SparseCore; None without its ops, as
            with all that follows.
        both_ps: both work.
        wait_ps: the TensorCore waits for a SparseCore, in an op that does nothing else; wait_beside_ps: as long as a
            SparseCore works meanwhile.
    """

    step_ps: float
    sparse_ps: float
    tensor_ps: float | None
    both_ps: float | None
    wait_ps: float | None
    wait_beside_ps: float | None

    @property
    def tensor_alone_ps(self) -> float | None:
        return None if self.tensor_ps is None or self.both_ps is None else self.tensor_ps - self.both_ps

    @property
    def sparse_alone_ps(self) -> float | None:
        return None if self.both_ps is None else self.sparse_ps - self.both_ps

    @property
    def idle_beside_ps(self) -> float | None:
        """A SparseCore works and the TensorCore runs no op at all."""
        alone = self.sparse_alone_ps
        return None if alone is None or self.wait_beside_ps is None else alone - self.wait_beside_ps

    @property
    def held_ps(self) -> float | None:
        """The TensorCore waits for a SparseCore, or runs no op while one works."""
        idle = self.idle_beside_ps
        return None if idle is None or self.wait_ps is None else self.wait_ps + idle

    @property
    def neither_ps(self) -> float | None:
        return None if self.tensor_alone_ps is None else self.step_ps - self.tensor_alone_ps - self.sparse_ps

    def percent(self, part: str) -> float | None:
        value: float | None = getattr(self, f"{part}_ps")
        return 100 * value / self.step_ps if value is not None and self.step_ps > 0 else None


@dataclass(frozen=True, slots=True)
class SparseStep:
    """A step: its name, its start on the trace's clock, the mean over the cores, and the core that waits longest.

    Attributes:
        strip: uint8[3, cells]; percent of each part of the step that `SparseCorePage.strip_core` works and waits, and
            that a SparseCore beside it works; None where the page keeps none.
    """

    name: str
    start_ps: int
    split: StepSplit
    core: str | None
    strip: NDArray[np.uint8] | None


@dataclass(frozen=True, slots=True)
class SparseCore:
    """One SparseCore, means over its steps.

    Attributes:
        name: ``host:0 SparseCore 1``; core: the TensorCore that it is beside.
        busy_ps: it works; both_ps: the TensorCore does so too, None without its ops.
        infeed_ps, outfeed_ps, sync_ps: in such ops, and with a sync event; None where no SparseCore has any.
        step_ps: the step's time.
    """

    name: str
    core: str
    step_ps: float
    busy_ps: float
    both_ps: float | None
    infeed_ps: float | None
    outfeed_ps: float | None
    sync_ps: float | None

    @property
    def busy_percent(self) -> float | None:
        """Its work, of the step's time."""
        return 100 * self.busy_ps / self.step_ps if self.step_ps > 0 else None

    @property
    def alone_ps(self) -> float | None:
        return None if self.both_ps is None else self.busy_ps - self.both_ps


@dataclass(frozen=True, slots=True)
class SparseCorePage:
    """What SparseCores do beside the TensorCores.

    Attributes:
        hosts: that the figures cover.
        verdict: whether they delay the TensorCores; None without SparseCores.
        statement: the same in a sentence or two.
        mean: of steps and cores; None without steps.
        step_source: where steps come from, as of a `StepSource`: or the SparseCores' own (``Sparse Core Steps``), or
            none (``whole profile``, from the first op to the last).
        cores: how many TensorCores have SparseCores beside them.
        sparse_cores: each of them.
        steps: in order of time.
        waits: the TensorCores' ops that wait for SparseCores, over all steps and cores, longest first.
        ops: those of the SparseCores by self time, over the whole profile.
        strip_core: the core that the steps' strips are of; empty without any.
        unknown: dotted JSON key to the reason why a figure is missing.
        warnings: plain sentences about the profile itself.
    """

    hosts: tuple[str, ...]
    verdict: Verdict | None
    statement: str
    mean: StepSplit | None
    step_source: str | None
    cores: int
    sparse_cores: tuple[SparseCore, ...]
    steps: tuple[SparseStep, ...]
    waits: tuple[SparseWait, ...]
    ops: OpTable
    strip_core: str
    unknown: Mapping[str, str]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def no_sparse_cores(hosts: Sequence[str], warnings: Sequence[str] = ()) -> SparseCorePage:
    """The page of a profile without SparseCores; `warnings` name what could not be read, which may have had some."""
    keys = ("verdict", "mean", "step_source", "sparse_cores")
    return SparseCorePage(
        tuple(hosts),
        None,
        f"{'The readable part of this' if warnings else 'This'} profile has no SparseCores.",
        None,
        None,
        0,
        (),
        (),
        (),
        EMPTY_TABLE,
        "",
        dict.fromkeys(keys, NO_SPARSE_CORES),
        tuple(warnings),
        (),
    )


def sparse_core_page(parts: Sequence[SparseHost], hosts: Sequence[str], warnings: Sequence[str] = ()) -> SparseCorePage:
    """Makes the page.

    Args:
        parts: what was read of each host with SparseCores.
        hosts: all hosts.
    """
    parts = [part for part in parts if len(part.cores)]
    if not parts:
        return no_sparse_cores(hosts, warnings)
    table = merge_tables([part.ops for part in parts])
    by_self_time = sorted(range(len(table)), key=lambda row: (-int(table.self_ps[row]), table.name[row]))
    worst = max(parts, key=_held_alone)
    steps = _steps(parts, worst)
    mean = _mean(parts)
    cores = tuple(core for part in parts for core in _sparse_cores(part))
    verdict, statement = _verdict(mean, cores, bool(steps) and steps[0].name == "whole profile")
    sources = list(dict.fromkeys(part.step_source for part in parts))
    page = SparseCorePage(
        hosts=tuple(hosts),
        verdict=verdict,
        statement=statement,
        mean=mean,
        step_source=", ".join(sources),
        cores=sum(len(part.cores) for part in parts),
        sparse_cores=cores,
        steps=steps,
        waits=_waits(parts),
        ops=table.take(np.array(by_self_time, np.intp)),
        strip_core=worst.cores[worst.strip_core],
        unknown={},
        warnings=tuple(warnings),
        notes=(UNSEEN,),
    )
    return replace(page, unknown=_unknown(page))


def _held_alone(part: SparseHost) -> int:
    """The longest time of one of a host's cores in which a SparseCore works and the core does not."""
    alone = (part.times[:, :, SPARSE] - part.times[:, :, BOTH]).sum(axis=1)
    return int(alone.max()) if len(alone) else -1


# --- sums


def _split(step_ps: float, sums: Floats, of_tensor: Floats, tensors: int, count: int) -> StepSplit:
    """A mean of sums: over `count` pairs of step and core, `tensors` of them with a TensorCore."""
    known = [float(value) / tensors if tensors else None for value in of_tensor]
    sparse = float(sums[SPARSE]) / count
    if 0 < tensors < count:  # what is beside TensorCores is compared with what those do
        sparse = float(of_tensor[SPARSE]) / tensors
    return StepSplit(step_ps, sparse, known[WORK], known[BOTH], known[WAIT], known[WAIT_BESIDE])


def _mean(parts: Sequence[SparseHost]) -> StepSplit | None:
    pairs = [(part, len(part.cores) * len(part.step_names)) for part in parts]
    count = sum(number for _, number in pairs)
    if not count:
        return None
    time = sum(int(part.duration_ps.sum()) * len(part.cores) for part in parts)
    sums = np.sum([part.times.sum(axis=(0, 1)) for part in parts], axis=0).astype(np.float64)
    with_tensor = [part.times[part.has_tensor_core] for part in parts]
    of_tensor = np.sum([times.sum(axis=(0, 1)) for times in with_tensor], axis=0).astype(np.float64)
    tensors = sum(times.shape[0] * times.shape[1] for times in with_tensor)
    return _split(time / count, sums, of_tensor, tensors, count)


def _steps(parts: Sequence[SparseHost], worst: SparseHost) -> tuple[SparseStep, ...]:
    """The steps of all hosts by name, or by their place where names repeat."""
    is_named = all(len(set(part.step_names)) == len(part.step_names) for part in parts)
    keys = [part.step_names if is_named else tuple(map(str, range(len(part.step_names)))) for part in parts]
    at = [{key: index for index, key in enumerate(names)} for names in keys]
    order = list(dict.fromkeys(key for names in keys for key in names))
    rows = []
    for key in order:
        held = [(part, places[key]) for part, places in zip(parts, at, strict=True) if key in places]
        rows.append(_step(held, next((index for part, index in held if part is worst), None), worst))
    return tuple(rows)


def _step(held: Sequence[tuple[SparseHost, int]], drawn: int | None, worst: SparseHost) -> SparseStep:
    times = np.concatenate([part.times[:, index] for part, index in held]).astype(np.float64)
    has_tensor = np.concatenate([part.has_tensor_core for part, _ in held])
    names = [name for part, _ in held for name in part.cores]
    step_ps = sum(int(part.duration_ps[index]) * len(part.cores) for part, index in held) / len(names)
    of_tensor = times[has_tensor]
    split = _split(step_ps, times.sum(axis=0), of_tensor.sum(axis=0), len(of_tensor), len(names))
    waits = np.where(has_tensor, times[:, WAIT] + times[:, SPARSE] - times[:, BOTH] - times[:, WAIT_BESIDE], -1.0)
    first, index = held[0]
    longest = int(waits.argmax())
    return SparseStep(
        first.step_names[index],
        min(int(part.start_ps[place]) for part, place in held),
        split,
        names[longest] if waits[longest] > 0 else None,
        worst.strips[drawn] if drawn is not None and drawn < len(worst.strips) else None,
    )


def _sparse_cores(part: SparseHost) -> list[SparseCore]:
    count = len(part.step_names)
    rows = []
    for place, name in enumerate(part.sparse_cores):
        core = int(part.beside[place])
        means = part.sparse_times[place].sum(axis=0) / count if count else np.zeros(5)
        infeed, outfeed = (float(means[kind]) if part.has_feeds else None for kind in (INFEED, OUTFEED))
        both = float(means[BESIDE]) if part.has_tensor_core[core] else None
        sync = float(means[SYNC]) if part.has_syncs else None
        step_ps = float(part.duration_ps.mean()) if count else 0.0
        rows.append(SparseCore(name, part.cores[core], step_ps, float(means[BUSY]), both, infeed, outfeed, sync))
    return rows


def _waits(parts: Sequence[SparseHost]) -> tuple[SparseWait, ...]:
    rows: dict[tuple[str, str], SparseWait] = {}
    for wait in (wait for part in parts for wait in part.waits):
        key = wait.op, wait.started_by
        known = rows.get(key, SparseWait(*key, 0, 0, 0))
        sums = (known.occurrences + wait.occurrences, known.wait_ps + wait.wait_ps, known.beside_ps + wait.beside_ps)
        rows[key] = SparseWait(*key, *sums)
    return tuple(sorted(rows.values(), key=lambda wait: (-wait.wait_ps, wait.op)))


# --- words


def _verdict(mean: StepSplit | None, cores: Sequence[SparseCore], is_whole: bool) -> tuple[Verdict, str]:
    """Whether SparseCores hold the program up, and why that is said."""
    number = len(cores)
    if mean is None or mean.step_ps <= 0 or not mean.sparse_ps:
        what = "The SparseCore is idle: it" if number == 1 else f"The {number} SparseCores are idle: none of them"
        ran = "ran no op" if number == 1 else "ran an op"
        return "idle", f"{what} {ran} in {'this profile' if is_whole or mean is None else 'any step'}."
    whole = "time" if is_whole else "step"
    works = f"{_percent(mean.percent('sparse'))} of the {whole}"
    held, both = mean.percent("held"), mean.percent("both")
    if held is None or both is None:
        return "unknown", f"Whether the SparseCore is the bottleneck is unknown: {NO_TENSOR_CORE}. It works {works}."
    verdict: Verdict = "bottleneck" if held >= MUCH_PERCENT else "not_bottleneck"
    wait, idle = mean.percent("wait") or 0.0, mean.percent("idle_beside") or 0.0
    waits = f"waits {time(mean.wait_ps)} ({_percent(wait)}) for it" if mean.wait_ps else "never waits for it in an op"
    if idle >= _LITTLE_PERCENT:
        waits += f" and runs no op in {time(mean.idle_beside_ps or 0.0)} ({_percent(idle)}) of its work"
    sentences = [
        f"The SparseCore is {'the' if verdict == 'bottleneck' else 'not the'} bottleneck: the TensorCore {waits}.",
        f"It works {works}, {_percent(both)} beside the TensorCore.",
    ]
    idle_cores = [core for core in cores if not core.busy_ps]
    sentences += [f"{len(idle_cores)} of {number} SparseCores ran no op."] if idle_cores else []
    return verdict, " ".join(sentences)


def _percent(value: float | None) -> str:
    return "unknown" if value is None else share(value / 100)


def _unknown(page: SparseCorePage) -> dict[str, str]:
    """Why figures are missing, by dotted JSON key."""
    why: dict[str, str] = {}
    if page.mean is None:
        why["mean"] = NO_STEPS
    cores = page.sparse_cores
    for key, reason in (("infeed", NO_FEEDS), ("outfeed", NO_FEEDS), ("sync", NO_SYNCS), ("both", NO_TENSOR_CORE)):
        if any(getattr(core, f"{key}_ps") is None for core in cores):
            why[f"sparse_cores[].{key}_ms"] = reason
    return why


def sparse_core_of_run(session: PageSession, host: str | None) -> SparseCorePage:
    """What SparseCores do beside the TensorCores."""
    files = session.run.files(host)
    damages: list[str] = []

    def look(file: HostFile, meter: Meter) -> tuple[HostFile, bool]:
        with closing(opened(file, meter)) as trace:
            has = has_sparse_cores(trace)
            if not has:
                damages.extend(problem.sentence for problem in trace.problems)
            return file, has

    found, failures = each_host(files, session.meter(files), look)
    having = [file for file, has in found if has]
    if not having and found:
        notes = [*damages, *left_out(failures), *session.problems]
        return no_sparse_cores([file.label for file, _ in found], notes)
    warnings = session.page(OVERVIEW, host).warnings
    steps = {file: _step_spans(summary) for file, summary in read(session, host)}
    reduced = session.reduced_with(SPARSE_CORES_OF_HOST, {file: steps[file] for file in having if file in steps})
    if reduced.failed and not reduced.read:
        raise reduced.failed[0][1]
    lost = {*having} - {*reduced.files}
    hosts = [file.label for file, _ in found if file not in lost]
    return sparse_core_page(reduced.summaries, hosts, [*warnings, *reduced.left_out])


def _step_spans(summary: HostSummary) -> StepSpans | None:
    """The steps of a host's overview."""
    grid = summary.steps
    if grid is None or not len(grid):
        return None
    return steps_of(grid.names, grid.start_ps, grid.longest_ps, grid.source)


def has_any(session: PageSession, host: str | None) -> bool:
    """Whether a profile of one host, or of any, has SparseCores; reads what the pages of ops need."""
    return any(summary.sparse_core_count for summary in session.reduced(OPS_OF_HOST, host).summaries)


SPARSE_CORE = PageKey(sparse_core_of_run)
HAS_SPARSE_CORES = PageKey(has_any)
