"""All about one op: its rows of the table of ops, and the spread of its runs by core and step.

A name is that of an HLO op, of a GPU's kernel, or of a framework op, which stands for all HLO ops that come from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import closing
from difflib import get_close_matches

import numpy as np

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.intervals import Int64s, interval_index, median
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.thread_pool import ThreadPool
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Trace
from tpuprof.parsers.hosts.progress import Meter
from tpuprof.parsers.hosts.reduction import left_out
from tpuprof.parsers.hosts.summary import SUMMARY_OF_HOST
from tpuprof.parsers.ops.core.ops import OPS_LINE
from tpuprof.parsers.ops.core.runs import OpRuns, ProgramOp, core_runs, joined_runs
from tpuprof.parsers.ops.device import device_ordinal, tensor_cores
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.ops.streams import devices
from tpuprof.parsers.ops.table import clone_keys
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.ops.op_profile import provenance_parts
from tpuprof.parsers.pages.ops.ops import UNKNOWN_PROGRAM, OpsPage, with_offloaded
from tpuprof.parsers.pages.ops.parts import NO_STEPS_OF_STREAMS
from tpuprof.parsers.pages.shared.host_files import each_host, opened
from tpuprof.parsers.pages.shared.key import PageSession
from tpuprof.parsers.pages.shared.steps import common_steps
from tpuprof.parsers.steps.aligned import AlignedSteps

NO_RUN = "the profile has no event of it"
SPARSE = "SparseCores ran it: the timeline has their single runs"
NO_SCOPE = "its framework op is in no scope, or the profile names none"

_SHARE = 0.9
_NEAREST = 5
_MOST_COMPARED = 20_000


@dataclass(frozen=True, slots=True)
class FoundOp:
    """The rows that a name stands for.

    Attributes:
        page: all HLO ops, those of SparseCores behind the others.
        rows: of the page, the longest first; at least one.
        is_framework_op: whether the name is that of a framework op.
        elsewhere: other modules that have an op of the name, the one with most time first.
    """

    page: OpsPage
    rows: tuple[int, ...]
    is_framework_op: bool
    elsewhere: tuple[str, ...] = ()

    @property
    def main(self) -> int:
        """The row with most time."""
        return self.rows[0]


@dataclass(frozen=True, slots=True)
class FoundRuns:
    """The single runs of an op.

    Attributes:
        found: which op it is.
        runs: of each device; () where `why_none` says why they can't be known.
        failed: hosts that can't be read any more.
    """

    found: FoundOp
    runs: Sequence[OpRuns]
    failed: Sequence[ProfileError] = ()
    why_none: str = ""


@dataclass(frozen=True, slots=True)
class Spread:
    """How long runs took; None where there are none.

    Attributes:
        name: of the core, or of the step, whose runs these are; empty for all.
        runs: how many.
        total_ps: together, over all cores.
        minimum_ps, median_ps, p90_ps, maximum_ps: the shortest, the one in the middle, the one that 90 % are not longer
            than (None of one run), and the longest; the middle of an even number is rounded.
    """

    name: str
    runs: int
    total_ps: int
    minimum_ps: int | None
    median_ps: int | None
    p90_ps: int | None
    maximum_ps: int | None


@dataclass(frozen=True, slots=True)
class OpPart:
    """A program or a scope that the op is part of.

    Attributes:
        name: None where the profile does not say.
        self_ps: self time of all ops in it.
        fraction: the op's part of that (0-1); None where it is nothing.
    """

    name: str | None
    self_ps: int | None
    fraction: float | None


@dataclass(frozen=True, slots=True)
class OpPage:
    """One op.

    Attributes:
        found: its rows in the table of ops.
        all_runs: the spread over all of its runs.
        cores, steps: by core and by step, in their order; () where `why_no_runs` or `why_no_steps` says why.
        step_ps: its time in a step, the mean over the steps and cores; None without steps.
        program, scope: what it is part of.
        clones: how many ops are the same but for numbers in their names, itself among them; clones_ps: their self time.
        why_no_runs, why_no_steps: empty where they are known.
    """

    found: FoundOp
    all_runs: Spread
    cores: tuple[Spread, ...]
    steps: tuple[Spread, ...]
    step_ps: float | None
    program: OpPart
    scope: OpPart
    clones: int
    clones_ps: int
    why_no_runs: str
    why_no_steps: str


def find_op(page: OpsPage, name: str | None, module: str | None = None) -> FoundOp:
    """The ops of a name.

    Args:
        page: with what SparseCores ran behind the others.
        name: None for the HLO op that takes most time.
        module: ``name`` or ``name(program id)`` of the one to look in.

    Raises:
        ProfileError: `unknown_op` or `unknown_module`, exit code 3, with the nearest names; `no_ops` where none ran.
    """
    inside = [row for row, program in enumerate(page.program) if module in (None, program, program.partition("(")[0])]
    if module is not None and not inside:
        sentence = f"No op ran in a module {printable(module)}."
        programs = [program for program in dict.fromkeys(page.program) if program != UNKNOWN_PROGRAM]
        raise ProfileError("unknown_module", sentence, f"one of: {examples(programs, 10)}", EXIT_NOT_FOUND)
    if not inside:
        why = page.unknown.get("ops", "no event belongs to an op")
        hint = "tpuprof-tui report timeline shows all events"
        raise ProfileError("no_ops", f"No op ran: {why}.", hint, EXIT_NOT_FOUND)
    name = page.table.name[inside[0]] if name is None else name
    wanted = name.removeprefix("%")
    names = page.table.name
    own = [row for row in inside if names[row] == wanted]
    if not own and (kernels := {kernel.op for kernel in page.kernels if wanted in (kernel.name, kernel.framework_op)}):
        own = [row for row in inside if names[row] in kernels]
    if own:
        first = page.program[own[0]]
        rows = [row for row in own if page.program[row] == first]
        return FoundOp(page, tuple(rows), False, tuple(dict.fromkeys(page.program[row] for row in own))[1:])
    known = {full: parse_framework_op(full).name for full in dict.fromkeys(page.table.framework_op) if full}
    stems = page.table.framework_op
    rows = [row for row in inside if stems[row] and name in (known[stems[row]], stems[row])]
    if rows:
        return FoundOp(page, tuple(rows), True)
    raise ProfileError(
        "unknown_op", f"No op {printable(name)} ran.", _hint(page, inside, known.values(), wanted), EXIT_NOT_FOUND
    )


def _hint(page: OpsPage, inside: Sequence[int], framework: Iterable[str], wanted: str) -> str:
    """The nearest names, those that hold the text first."""
    names = list(dict.fromkeys((*(page.table.name[row] for row in inside), *framework)))[:_MOST_COMPARED]
    holding = [each for each in names if wanted and wanted.casefold() in each.casefold()]
    near = holding[:_NEAREST] or get_close_matches(wanted, names, _NEAREST, 0.4)
    return f"one of: {examples(near, _NEAREST)}" if near else "tpuprof-tui report ops lists the ops that ran"


def op_page(
    found: FoundOp, runs: Sequence[OpRuns], grid: AlignedSteps | None, why_no_steps: str, why_no_runs: str
) -> OpPage:
    """Puts together what is known of an op.

    Args:
        runs: of each device; () where `why_no_runs` says why.
        grid: the steps of the run; None where `why_no_steps` says why.
    """
    table, rows = found.page.table, np.array(found.rows)
    everything = np.concatenate([of.duration_ps for of in runs]) if runs else np.zeros(0, np.int64)
    steps, step_ps = ((), None) if grid is None else _by_step(runs, grid)
    own = int(table.self_ps[rows].sum())
    keys = clone_keys(table)
    chosen = {keys[row] for row in found.rows}
    clones = np.array([row for row, key in enumerate(keys) if key in chosen])
    return OpPage(
        found=found,
        all_runs=duration_spread("", everything),
        cores=tuple(duration_spread(of.core, of.duration_ps) for of in runs if len(of.duration_ps)),
        steps=steps,
        step_ps=step_ps,
        program=_part(found, own, found.page.program, _program(found)),
        scope=_scope(found, own),
        clones=len(clones),
        clones_ps=int(table.self_ps[clones].sum()),
        why_no_runs=why_no_runs or ("" if len(everything) else NO_RUN),
        why_no_steps=why_no_steps or why_no_runs,
    )


def duration_spread(name: str, durations: Int64s) -> Spread:
    """The spread of some runs."""
    if not len(durations):
        return Spread(name, 0, 0, None, None, None, None)
    ordered = np.sort(durations)
    least, p90, most = (int(ordered[at]) for at in (0, math.ceil(_SHARE * len(ordered)) - 1, -1))
    middle = round(median(ordered.astype(np.float64)))
    return Spread(name, len(ordered), int(durations.sum()), least, middle, p90 if len(ordered) > 1 else None, most)


def _by_step(runs: Sequence[OpRuns], grid: AlignedSteps) -> tuple[tuple[Spread, ...], float | None]:
    """The spread in each step in which it ran, and its mean time in a step of a core."""
    number = {core: row for row, core in enumerate(grid.core_names)}
    parts: list[tuple[Int64s, Int64s]] = []
    for of in runs:
        if of.core in number:
            row = number[of.core]
            step = interval_index(of.start_ps, grid.core_start_ps[row], grid.core_end_ps[row])
            parts.append((step[step >= 0], of.duration_ps[step >= 0]))
    if not parts or not len(grid):
        return (), None
    step, duration = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(step, kind="stable")
    borders = np.searchsorted(step[order], np.arange(len(grid) + 1)).tolist()
    found = [
        duration_spread(grid.names[at], duration[order[borders[at] : borders[at + 1]]])
        for at in range(len(grid))
        if borders[at] < borders[at + 1]
    ]
    return tuple(found), float(duration.sum()) / (len(grid) * len(grid.core_names))


def _program(found: FoundOp) -> str | None:
    """The one module of the rows; None where there are several, or it is unknown."""
    names = {found.page.program[row] for row in found.rows}
    return next(iter(names)) if len(names) == 1 and UNKNOWN_PROGRAM not in names else None


def _scope(found: FoundOp, own: int) -> OpPart:
    scopes = {full: "/".join(provenance_parts(full)[:-1]) for full in set(found.page.table.framework_op)}
    labels = [scopes[full] for full in found.page.table.framework_op]
    names = {labels[row] for row in found.rows}
    return _part(found, own, labels, next(iter(names)) or None if len(names) == 1 else None)


def _part(found: FoundOp, own: int, labels: Sequence[str], name: str | None) -> OpPart:
    """What of all ops with a label the op is."""
    if name is None:
        return OpPart(None, None, None)
    inside = np.array([row for row, label in enumerate(labels) if label == name])
    everything = int(found.page.table.self_ps[inside].sum())
    return OpPart(name, everything, own / everything if everything else None)


def op_runs(session: PageSession, host: str | None, name: str | None = None, module: str | None = None) -> FoundRuns:
    """The single runs of one op or kernel, device by device; arguments and errors as of `one_op`."""
    page = session.page(OPS, host)
    found = find_op(with_offloaded(page), name, module)
    if found.main >= len(page):
        return FoundRuns(found, (), why_none=SPARSE)
    return FoundRuns(found, *_runs(session, host, found))


def one_op(session: PageSession, host: str | None, name: str | None = None, module: str | None = None) -> OpPage:
    """All about one op or kernel, with the spread of its runs; reads the events of that op alone.

    Args:
        name: of an HLO op, a kernel, or a framework op; None for the HLO op that takes most time.
        module: ``name`` or ``name(program id)``; None for the one in which it takes most time.

    Raises:
        ProfileError: `unknown_op`, `unknown_module`, exit code 3; and as for `PageSession.page`.
        Cancelled: as for that.
    """
    common = common_steps(session.reduced(SUMMARY_OF_HOST, host).summaries)  # the ops are made of them
    grid, why = common.spans, common.note if common.spans is None else ""
    those = op_runs(session, host, name, module)
    found, runs, failed, page = those.found, those.runs, those.failed, those.found.page
    if those.why_none:
        return op_page(found, (), None, those.why_none, those.why_none)
    warned = replace(found.page, warnings=(*found.page.warnings, *left_out(failed)))
    if page.runs_on != "core":
        grid, why = None, NO_STEPS_OF_STREAMS
    return op_page(replace(found, page=warned), runs, grid, why, "")


def _runs(session: PageSession, host: str | None, found: FoundOp) -> tuple[list[OpRuns], list[ProfileError]]:
    """The runs on every device of every host; hosts that can't be read any more are left out."""
    table = found.page.table
    wanted = frozenset((int(table.program_id[row]), table.name[row]) for row in found.rows)
    files = session.run.files(host)

    def work(file: HostFile, meter: Meter) -> list[OpRuns]:
        with closing(opened(file, meter)) as trace:
            cores = tensor_cores(trace)
            meter.opened(sum(line.size for plane in cores for line in plane.lines if line.name == OPS_LINE))
            if not cores:
                return _of_streams(trace, file, wanted, meter.chunk)
            with ThreadPool(session.threads) as pool:
                return pool.map(
                    lambda plane: core_runs(plane, core_label(file.host, device_ordinal(plane)), wanted, meter.chunk),
                    cores,
                )

    parts, failed = each_host(files, session.meter(files), work)
    return [runs for part in parts for runs in part], failed


def _of_streams(trace: Trace, file: HostFile, wanted: frozenset[ProgramOp], on_chunk: ChunkDone) -> list[OpRuns]:
    """The runs on GPUs, or on the host's CPU."""
    runs = []
    for device in devices.streams_of(trace, on_chunk):
        ops = device.attribution.ops
        chosen = np.array([number for number, each in enumerate(ops) if (each.program, each.name) in wanted], np.int64)
        parts = []
        for stream, numbers in zip(device.streams, device.attribution.numbers, strict=True):
            mine = np.flatnonzero(np.isin(numbers, chosen))
            parts.append((stream.start_ps[mine], stream.end_ps[mine]))
        label = file.host if device.is_host else core_label(file.host, device_ordinal(device.plane))
        runs.append(joined_runs(label, parts))
    return runs
