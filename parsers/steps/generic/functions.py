"""In which functions of the program a thread of the host spent some time, and which functions it compiled.

It also finds Python code that ops call, and Python code of other threads.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base import intervals
from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.xspace.core.api import nest, sum_by_key
from tpuprof.parsers.ops.host_events.activity import callers, is_compilation, waits_for_python
from tpuprof.parsers.ops.host_events.events import HostEvents, HostThread
from tpuprof.parsers.ops.streams.devices import StreamDevice
from tpuprof.parsers.steps.accounts.cpu import HostFunction, HostPart
from tpuprof.parsers.steps.accounts.owners import Owner

MOST_FUNCTIONS = 6
"""How many functions are kept of each owner."""

_FUNCTION = re.compile(r"\$(?P<file>[^:]+\.py):(?P<line>\d+) (?P<name>.+)\Z")
"""How the Python tracer names a function: its file without the folder, and the line that it begins in."""

_BUILT_IN = re.compile(r"\$(?P<module>[a-z_]+) (?P<name>[a-z_]+)\Z")
"""How it names a function that is compiled into Python, such as ``$time sleep``."""

LAUNCHES = re.compile(r"PjitFunction\(|ExecuteReplicated|(?:\w+::)*\w*LoadedExecutable::Execute")
_COMPILED = re.compile(r"PjitFunction\((.*)\)\Z")
_RUNTIME = re.compile(
    r"::|\b(?:Pjit|Pjrt|PjRt|Xla|Execute|Dispatch)"
    r"|^(?:end: |Handle |Wait |Allocate|ParseArguments|DevicePut|shard_args)"
    r"|^(?:Eager\w*Execute|TFE_|__inference_|FunctionRun|BlockUntilReady|convert_to_tensor|tf\.constant)"
)
"""Events of the runtimes of JAX and TensorFlow and not of the program."""

GETS_INPUT = re.compile(r"IteratorGetNextOp::")
"""How TensorFlow's runtime names waiting for the next batch: what stands for the program's own call of it."""

_LIBRARY = re.compile(
    r"(?:__init__|_array|_asarray_impl|_base|_format_impl|_function_base_impl|_methods|_npyio_impl|_shape_base_impl"
    r"|array_constructors|array_methods|base_dataset|fromnumeric|iter_dataset|lax_numpy|linear_util|mp_prefetch"
    r"|multiarray|numeric|partial_eval|pjit|prefetch|profiler|pxla|reductions|shape_base|shard_map|source_info_util"
    r"|traceback_util|tree_lib|tree_util|ufunc_api|ufuncs|xla_bridge)\.py:"
    r"|(?:api|array|dispatch|_?core|stages|compiler)\.py:\d+ (?:block_until_ready|try_to_block|device_(?:get|put)\w*"
    r"|_value|_single_device_array_to_np_array_did_copy|__(?:array|float|int|bool|index)__|item|tolist|apply_primitive|bind\w*"
    r"|cache_miss|_python_pjit_helper|_device_put_\w+|_batched_device_put_\w+|reraise_with_filtered_traceback)\Z"
    r"|(?:callback|debugging)\.py:\d+ (?:_wrapped_callback|_callback|_flat_callback|\w+_callback_impl|__call__)\Z"
    r"|(?:en|de)coder\.py:\d+ (?:_?iterencode\w*|encode|decode|raw_decode|default|floatstr)\Z"
)
"""Functions of JAX, NumPy, Grain and json, which are not the program's own; those of the standard library's modules
count beside them."""


def names_on(host: HostEvents, thread: HostThread) -> dict[int, str]:
    """The names of a thread's events by their metadata ids, ascending."""
    return {number: host.name(number) for number in np.unique(thread.metadata_id).tolist()}


def are_named(thread: HostThread, ids: dict[int, str], is_wanted: Callable[[str], bool]) -> Bools:
    """bool[n]: which events of a thread have a name that is wanted. It asks about each name once."""
    wanted = np.array([is_wanted(name) for name in ids.values()], np.bool_)
    which = np.searchsorted(np.fromiter(ids, np.int64, len(ids)), thread.metadata_id.astype(np.int64))
    return wanted[which]


def launches(name: str) -> bool:
    """Whether an event of this name launches a program."""
    return LAUNCHES.match(name) is not None


def spans_of(thread: HostThread, chosen: Bools) -> Intervals:
    """When some of a thread's events went on; disjoint and in order."""
    return intervals.union(thread.start_ps[chosen], thread.end_ps[chosen])


def functions_in(
    host: HostEvents, thread: HostThread, owner: Owner, spans: Intervals, is_mark: Bools, of_ops: bool = False
) -> list[HostFunction]:
    """What a thread was in during some time: functions and annotations of the program, most time first.

    Those inside a launch are left out: what JAX does there, and the functions that it traces, are the caller's time.

    Args:
        is_mark: which of its events mark steps.
        of_ops: whether it is about functions that ops of the program call: these begin then, and may run in a launch.
    """
    ids = names_on(host, thread)
    own = are_named(thread, ids, lambda name: bool(_title(name))) & ~is_mark
    own[thread.stat("hlo_op").rows] = False
    of_python = are_named(thread, ids, lambda name: bool(_title_of_python(name)))
    of_python &= intervals.interval_index(thread.start_ps, *spans_of(thread, own)) < 0
    own[_outermost(thread, np.flatnonzero(of_python))] = True
    if of_ops:
        own &= intervals.interval_index(thread.start_ps, *spans) >= 0
    else:
        own &= intervals.interval_index(thread.start_ps, *spans_of(thread, are_named(thread, ids, launches))) < 0
    found = _self_times(thread, own, spans)
    largest = sorted(found, key=lambda number: -found[number][0])[:MOST_FUNCTIONS]
    inside = _innermost(thread, own, ~is_mark, spans)
    out = []
    for number in largest:
        time, count = found[number]
        inner, inner_ps = inside.get(number, (number, 0))
        most = ids[inner if 2 * inner_ps >= time else number]
        leaf = "" if most == ids[number] else most.removeprefix("$").removeprefix("<unknown> ")
        title = _title(ids[number]) or _title_of_python(ids[number])
        out.append(HostFunction(owner, title, time, count, leaf, waits=waits_for_python(most)))
    return out


def _outermost(thread: HostThread, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Those of some events that lie in none of the others."""
    start, end, rows = intervals.in_nesting_order(thread.start_ps[rows], thread.end_ps[rows], rows)
    return rows[nest(start, end).parent < 0]


def _innermost(thread: HostThread, own: Bools, chosen: Bools, spans: Intervals) -> dict[int, tuple[int, int]]:
    """For each function the event inside it that has most self time during some time, and this time.

    Args:
        own: the functions; an event counts for the innermost of them around it.
        chosen: the events that count.

    Returns:
        Metadata ids of events by those of the functions that hold them; none where the function itself has most.
    """
    rows, parent, alone = _self_time(thread, chosen | own, spans)
    function = thread.metadata_id[rows[callers(parent, ~own[rows])]].astype(np.int64)
    event = thread.metadata_id[rows].astype(np.int64)
    pair = intervals.numbered(function, event)
    time = sum_by_key(pair, alone, int(pair.max(initial=-1)) + 1)
    _, first = np.unique(pair, return_index=True)
    out: dict[int, tuple[int, int]] = {}
    for at in first[np.argsort(time, kind="stable")].tolist():  # the one with most time comes last, and stays
        out[int(function[at])] = int(event[at]), int(time[pair[at]])
    return {of: (inner, ps) for of, (inner, ps) in out.items() if inner != of}


def _title_of_python(name: str) -> str:
    """What a function of Python itself is called in a sentence; it counts where the program's own code calls it."""
    if built_in := _BUILT_IN.match(name):
        return f"{built_in['module']}.{built_in['name']}"
    found = _FUNCTION.match(name)
    return _called(found) if found is not None and _is_of_python(found) else ""


def _is_of_python(found: re.Match[str]) -> bool:
    """Whether a function is one of the standard library, by the file that it stands in."""
    return found["file"].removesuffix(".py").rpartition("/")[2] in sys.stdlib_module_names


def _called(found: re.Match[str]) -> str:
    return f"{found['name']} ({found['file']}:{found['line']})"


def _title(name: str) -> str:
    """What a function or an annotation of the program is called in a sentence; empty for all others' events."""
    found = _FUNCTION.match(name)
    if found is None:
        if GETS_INPUT.match(name):
            return name
        return "" if name.startswith("$") or _RUNTIME.search(name) or is_compilation(name) else name
    is_library = _is_of_python(found) or _LIBRARY.match(name, 1) is not None
    return "" if is_library or found["name"].startswith("<") else _called(found)


def _self_time(thread: HostThread, chosen: Bools, spans: Intervals) -> tuple[NDArray[np.intp], Int64s, Int64s]:
    """Of some events that go on during some time, in nesting order: rows, the place of each's parent, and self time."""
    rows = np.flatnonzero(chosen)
    inside = intervals.overlap(thread.start_ps[rows], thread.end_ps[rows], *spans)
    rows, inside = rows[inside > 0], inside[inside > 0]
    start, end, rows, inside = intervals.in_nesting_order(thread.start_ps[rows], thread.end_ps[rows], rows, inside)
    parent = nest(start, end).parent
    held = parent >= 0
    return rows, parent, np.maximum(inside - sum_by_key(parent[held], inside[held], len(rows)), 0)


def _self_times(thread: HostThread, chosen: Bools, spans: Intervals) -> dict[int, tuple[int, int]]:
    """Time and number of some events during some time, without others of them inside, by metadata id."""
    rows, _, alone = _self_time(thread, chosen, spans)
    ids, key = np.unique(thread.metadata_id[rows], return_inverse=True)
    times, counts = sum_by_key(key, alone, len(ids)), np.bincount(key, minlength=len(ids))
    columns = zip(ids.tolist(), times.tolist(), counts.tolist(), strict=True)
    return {number: (time, count) for number, time, count in columns if time > 0}


def compiled_on(thread: HostThread, ids: dict[int, str], spans: Intervals) -> tuple[str, ...]:
    """The functions that were compiled: those whose call holds the compiling, and no other such call inside."""
    calls = are_named(thread, ids, lambda name: _COMPILED.match(name) is not None)
    found = _self_times(thread, calls, spans)
    names = (_COMPILED.match(ids[number]) for number in sorted(found, key=lambda number: -found[number][0]))
    return tuple(name[1] for name in names if name is not None)[:MOST_FUNCTIONS]


@dataclass(frozen=True, slots=True)
class Part:
    """When a callback, or another thread's Python, ran, by thread; and the ops that called it, most time first."""

    cause: Literal["callback", "interpreter"]
    threads: Sequence[tuple[HostThread, Intervals]]
    ops: tuple[str, ...] = ()

    @property
    def during(self) -> Intervals:
        """Disjoint intervals in order."""
        return intervals.union_of(spans for _, spans in self.threads)


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
    return Part(
        "callback",
        threads,
        tuple(f"{op.name} ({op.source.rpartition('/')[2]})" if op.source else op.name for op in names),
    )


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
                threads.append((other, intervals.subtract(*intervals.subtract(*python, *others), *waiting)))
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
        functions = functions_in(
            host, on, "host", intervals.intersect(*during, *spans), no_marks, part.cause == "callback"
        )
        found += [replace(each, thread=name) for each in functions]
    found.sort(key=lambda each: -each.time_ps)
    of_steps, of_between = (intervals.overlap(*each, *spans) for each in (step, between))
    return HostPart(part.cause, of_steps, of_between, tuple(found[:MOST_FUNCTIONS]), part.ops)
