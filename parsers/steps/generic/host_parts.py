"""What the host does of a step's time besides the step's own code: Python that ops call, and that of other threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Intervals, intersect, overlap, subtract, union_of
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.ops.host_events.activity import waits_for_python
from tpuprof.parsers.ops.host_events.events import HostEvents, HostThread
from tpuprof.parsers.ops.streams.attribution import StreamOp
from tpuprof.parsers.ops.streams.devices import StreamDevice
from tpuprof.parsers.steps.accounts.cpu import HostFunction, HostPart
from tpuprof.parsers.steps.generic.functions import MOST_FUNCTIONS, are_named, functions_in, names_on, spans_of


@dataclass(frozen=True, slots=True)
class Part:
    """When it went on, on each thread; and what ops called it, most time first."""

    cause: Literal["callback", "interpreter"]
    threads: Sequence[tuple[HostThread, Intervals]]
    ops: tuple[str, ...] = ()

    @property
    def during(self) -> Intervals:
        """Disjoint intervals in order."""
        return union_of(spans for _, spans in self.threads)


def callbacks(cpu: StreamDevice | None) -> Part:
    """The ops that call a function of the host's Python."""
    if cpu is None:
        return Part("callback", ())
    calls = np.array([op.is_callback for op in cpu.attribution.ops], np.bool_)
    threads, times = [], np.zeros(len(calls), np.int64)
    for stream, number in zip(cpu.streams, cpu.attribution.numbers, strict=True):
        mine = calls[number]
        if mine.any():
            threads.append((stream, spans_of(stream, mine)))
            np.add.at(times, number[mine], (stream.end_ps - stream.start_ps)[mine])
    names = [cpu.attribution.ops[row] for row in np.argsort(-times, kind="stable").tolist() if times[row]]
    return Part("callback", threads, tuple(_called(op) for op in names))


def _called(op: StreamOp) -> str:
    return f"{op.name} ({op.source.rpartition('/')[2]})" if op.source else op.name


def other_python(host: HostEvents, cpu: StreamDevice | None, thread: HostThread) -> Part:
    """Python code of threads that run no ops, while the step's thread does not wait by itself.

    One thread at a time runs Python. What waits, or is compiled code, which may release the interpreter, is left out:
    the innermost function has to be one of a Python file, or of Python itself.

    Args:
        thread: the one that marks the steps.
    """
    with_ops = set() if cpu is None else {stream.line.id for stream in cpu.streams}
    ids = names_on(host, thread)
    waiting = spans_of(thread, are_named(thread, ids, waits_for_python))
    threads = []
    for other in host.threads:
        if other is not thread and other.line.id not in with_ops:
            ids = names_on(host, other)
            python = spans_of(other, are_named(other, ids, _is_python))
            if len(python[0]):
                others = spans_of(other, are_named(other, ids, lambda name: not _is_python(name)))
                threads.append((other, subtract(*subtract(*python, *others), *waiting)))
    return Part("interpreter", threads)


def _is_python(name: str) -> bool:
    is_of_file = name.startswith("$") and ".py:" in name
    return (is_of_file or name.startswith("$builtins ")) and not waits_for_python(name)


def part_of(
    host: HostEvents, thread: HostThread, part: Part, spans: Intervals, step: Intervals, between: Intervals
) -> HostPart:
    """The part in steps and between them.

    Args:
        thread: the one that marks the steps.
        spans: what counts for it, disjoint and in order.
        step, between: the steps, and the times between them.
    """
    by_line = {thread.line.id: thread for thread in host.threads}
    found: list[HostFunction] = []
    for stream, during in part.threads:
        on = by_line[stream.line.id]
        no_marks: Bools = np.zeros(len(on), np.bool_)
        name = "" if on is thread else f"Thread {on.line.name}" if on.line.name else "A thread without a name"
        functions = functions_in(host, on, "host", intersect(*during, *spans), no_marks, part.cause == "callback")
        found += [replace(each, thread=name) for each in functions]
    found.sort(key=lambda each: -each.time_ps)
    of_steps, of_between = (overlap(*each, *spans) for each in (step, between))
    return HostPart(part.cause, of_steps, of_between, tuple(found[:MOST_FUNCTIONS]), part.ops)
