"""The runs of programs in a profile without TPUs, as those of a core.

XLA's ops on the CPU name the run that they are of. TensorFlow's runs have no number, and GPUs' kernels none: there an
op that most runs end with, which each run has once, ends a run. TensorFlow without XLA has no ops at all, but events of
its functions' calls.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, is_among, no_ints, numbered
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.ops.host_events.events import Ends, HostEvents
from tpuprof.parsers.ops.streams.devices import StreamDevice
from tpuprof.parsers.steps.boundaries.runs import MINIMUM_RUNS, ModuleRuns
from tpuprof.parsers.steps.generic.op_events import NO_RUN, OpEvents

CALL = "tf_function_call"
"""Stat of a call of a function of TensorFlow."""

NOT_MARKED = "no annotation of the host (StepTraceAnnotation) marks steps"


def runs_on(device: StreamDevice, modules: HloModules, ops: OpEvents) -> ModuleRuns:
    """The runs of programs on the host's CPU or a GPU, in order of start; `ops` are the events there."""
    return _joined(_numbered_runs(modules, device, ops))


def calls_on(host: HostEvents) -> ModuleRuns:
    """The outermost calls of functions of TensorFlow on a host, on the thread that makes most, in order of start."""
    thread = max(host.threads, key=lambda thread: len(thread.stat(CALL).rows), default=None)
    if thread is None or not len(thread.stat(CALL).rows):
        return _joined([])
    rows = thread.stat(CALL).rows
    rows = rows[np.argsort(thread.start_ps[rows], kind="stable")]
    until = np.maximum.accumulate(thread.end_ps[rows])
    rows = rows[thread.end_ps[rows] > np.append(np.iinfo(np.int64).min, until[:-1])]
    ids = thread.metadata_id[rows]
    of_names = [(host.name(int(each)), rows[is_among(ids, [each])]) for each in np.unique(ids).tolist()]
    return _joined([(name, thread.start_ps[its], thread.end_ps[its]) for name, its in of_names])


def _joined(columns: _Runs) -> ModuleRuns:
    names = {name: number for number, name in enumerate(dict.fromkeys(name for name, _, _ in columns))}
    module = np.concatenate([no_ints(), *(np.full(len(start), names[name]) for name, start, _ in columns)])
    start, end = (np.concatenate([no_ints(), *(column[which] for column in columns)]) for which in (1, 2))
    order = np.argsort(start, kind="stable")
    unknown = np.full(len(order), NO_RUN)
    nothing = Ends.joined([])
    return ModuleRuns(0, tuple(names), module[order], start[order], end[order], unknown, nothing, order)


_Runs = list[tuple[str, Int64s, Int64s]]
"""Name of a program, start and end of its runs."""


def programs_on(device: StreamDevice) -> tuple[list[tuple[str, int]], Int64s]:
    """The programs that ran on a device, by name and id, and int64[ops]: the number of each op's, -1 for none."""
    of_ops = [(op.module, op.program) for op in device.attribution.ops]
    programs = dict.fromkeys(of for of in of_ops if device.is_host or any(of))  # a GPU's copies are of no program
    place = {program: number for number, program in enumerate(programs)}
    return list(programs), np.array([place.get(of, -1) for of in of_ops], np.int64)


def _numbered_runs(modules: HloModules, device: StreamDevice, ops: OpEvents) -> _Runs:
    programs, of_op = programs_on(device)
    out: _Runs = []
    for number, (module, program) in enumerate(programs):
        mine = ops.take(of_op[ops.op] == number)
        name = module or _name(modules.names, program)
        known = mine.take(mine.run != NO_RUN)
        if len(known):
            out.append((name, *bounds(numbered(known.run), known.start, known.end)))
        else:
            first = mine.take(mine.device == mine.device.min())
            out.append((name, *_by_last_op(first.op, first.start, first.end)))
    return out


def _name(names: Mapping[int, str], program: int) -> str:
    number = program & 2**64 - 1
    return names.get(number) or f"program {number}"


def bounds(key: Int64s, start: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """The first start and the last end of each run."""
    count = int(key.max(initial=-1)) + 1
    first, last = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, key, start)
    np.maximum.at(last, key, end)
    return first, last


def _by_last_op(op: Int64s, start: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """The runs of a program whose events do not number them, by an op that each run has once.

    That is one that ran from the beginning to the end of the program's time, and least often of those; of several the
    one that ran last.
    """
    count, (first, last) = np.bincount(op), bounds(op, start, end)
    apart = (int(end.max()) - int(start.min())) // 4
    lasts = (count >= MINIMUM_RUNS) & (first <= int(start.min()) + apart) & (last >= int(end.max()) - apart)
    if not lasts.any():
        return no_ints(), no_ints()
    rarest = np.flatnonzero(lasts & (count == count[lasts].min()))
    ends = np.sort(end[op == rarest[last[rarest].argmax()]])
    of = np.searchsorted(ends, end)
    whole = of < len(ends)
    return bounds(of[whole], start[whole], end[whole])
