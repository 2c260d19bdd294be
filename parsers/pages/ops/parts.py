"""How a run is narrowed to a part of its capture: some steps, or an interval of the trace's clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.files.places import HostFile, TimePart
from tpuprof.parsers.hosts.summary import SUMMARY_OF_HOST
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.shared.key import PageSession
from tpuprof.parsers.pages.shared.steps import chosen_steps, common_steps

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.steps.aligned import AlignedSteps

NO_STEPS_OF_STREAMS = "only TPU cores have times by step"
_BEGIN, _END = -(1 << 62), 1 << 62  # before and after all of a trace


def steps_asked(session: PageSession, host: str | None, steps: str) -> AlignedSteps:
    """The steps that a call asks for, of those that the cores share.

    Raises:
        ProfileError: `no_steps`, `unknown_step`, exit code 3.
    """
    common = common_steps(session.reduced(SUMMARY_OF_HOST, host).summaries)  # the ops are made of them
    grid, why = common.spans, common.note
    if session.page(OPS, host).runs_on != "core":
        grid, why = None, NO_STEPS_OF_STREAMS
    if grid is None or not len(grid):
        sentence = f"--step needs steps: {why}."
        hint = "leave --step out for the whole capture; --from MS --to MS takes an interval"
        raise ProfileError("no_steps", sentence, hint, EXIT_NOT_FOUND)
    inside = chosen_steps(steps, grid.names)
    return grid.take(np.arange(len(grid))[inside])


def interval_of_steps(session: PageSession, host: str | None, steps: str) -> tuple[int, int]:
    """See `parsers.session.session.Session.interval_of_steps`."""
    grid = steps_asked(session, host, steps)
    first = grid.hosts == grid.hosts[0]
    return int(grid.core_start_ps[first].min()), int(grid.core_end_ps[first].max())


def in_steps(session: PageSession, host: str | None, steps: str) -> Run:
    """See `parsers.session.session.Session.in_steps`."""
    grid = steps_asked(session, host, steps)
    files = [_in_steps(file, grid, words_of_steps(grid)) for file in session.run.files(host)]
    return replace(session.run, hosts=tuple(files))


def words_of_steps(grid: AlignedSteps) -> str:
    """Which steps these are: ``step 104``, ``steps 104 to 108``."""
    first, last = printable(grid.names[0]), printable(grid.names[-1])
    return f"step {first}" if len(grid) == 1 else f"steps {first} to {last}"


def _in_steps(file: HostFile, grid: AlignedSteps, words: str) -> HostFile:
    """A host's file with the steps of its cores; other threads and devices have the time from the first to the last."""
    begins, ends = grid.core_start_ps.tolist(), grid.core_end_ps.tolist()
    cores = {
        int(name.rpartition(":")[2]): tuple(zip(begin, end, strict=True))
        for name, begin, end in zip(grid.core_names, begins, ends, strict=True)
        if name == core_label(file.host, name.rpartition(":")[2])
    }
    of_steps = zip(*cores.values(), strict=True)
    spans = tuple((min(begin for begin, _ in step), max(end for _, end in step)) for step in of_steps)
    return replace(file, part=TimePart(words, spans, tuple(cores.items()) or ((-1, ()),)))


def between(session: PageSession, host: str | None, start_ps: int | None, end_ps: int | None) -> Run:
    """See `parsers.session.session.Session.between`."""
    files: Sequence[HostFile] = session.run.files(host)
    if len(files) > 1:
        sentence = f"Run {printable(session.run.name)} has {len(files)} hosts, each with a clock of its own."
        few = examples([file.host for file in files], 4)
        raise ProfileError("usage", sentence, f"--host with one of: {few}", EXIT_USAGE)
    bounds = (("from", start_ps), ("up to", end_ps))
    words = " ".join(["the time", *(f"{which} {at / 1e9:.12g} ms" for which, at in bounds if at is not None)])
    span = _BEGIN if start_ps is None else start_ps, _END if end_ps is None else end_ps
    return replace(
        session.run, hosts=tuple(replace(file, part=TimePart(words, (span,), cuts_events=True)) for file in files)
    )
