"""Whose the time of steps on the host's CPU is, and in which functions of the program the step's own thread spent it.

The ops of XLA:CPU run on threads of their own, and the thread that marks the steps launches them and waits for them. A
moment counts for an op that computes, on any thread; else for a collective; else for the time between the ops of one
run of a program; else for what the step's thread does: it compiles, waits for input or makes it, launches, or runs the
program's own code. Where none of its events says what it does, the host has the time too, and `untraced_ps` says how
much that is: without the Python tracer a function that sleeps, reads or logs leaves no event.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import (
    Bools,
    Int64s,
    Intervals,
    in_nesting_order,
    intersect,
    is_among,
    no_ints,
    numbered,
    overlap,
    place,
    subtract,
    union,
    union_of,
)
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.hlo.shapes import shapes_in
from tpuprof.parsers.formats.xspace.core.api import nest, sum_by_key
from tpuprof.parsers.ops.device import op_class
from tpuprof.parsers.ops.host.activity import compiling, is_compilation
from tpuprof.parsers.ops.host.events import HostEvents, HostThread
from tpuprof.parsers.ops.streams.attribution import StreamOp
from tpuprof.parsers.ops.streams.devices import StreamDevice
from tpuprof.parsers.steps.accounts.cpu import CpuAccount, HostFunction
from tpuprof.parsers.steps.accounts.owners import OWNERS, Owner, owner_index

MOST_FUNCTIONS = 6
"""How many functions are kept of each owner."""

LATENCY_PS, SLOWEST_BYTES, PS_PER_SECOND = 1_000_000_000, 100_000_000, 10**12
"""A collective between processes moves its bytes at this many a second at least, after a millisecond: what it takes
beyond that is waiting for the other process. A rule of thumb: one process alone cannot show when the others came."""

_OWN: tuple[Owner, ...] = ("compile", "input", "dispatch", "host")
"""Whose time the step's thread can explain."""

_FUNCTION = re.compile(r"\$(?P<file>[^:]+\.py):(?P<line>\d+) (?P<name>.+)\Z")
"""How the Python tracer names a function: its file without the folder, and the line that it begins in."""

_LAUNCHES = re.compile(r"PjitFunction\(|ExecuteReplicated|(?:\w+::)*\w*LoadedExecutable::Execute")
_COMPILED = re.compile(r"PjitFunction\((.*)\)\Z")
_RUNTIME = re.compile(
    r"::|\b(?:Pjit|Pjrt|PjRt|Xla|Execute|Dispatch)"
    r"|^(?:end: |Handle |Wait |Allocate|ParseArguments|DevicePut|shard_args)"
)
"""Events of JAX's runtime and not of the program."""

_LIBRARY = re.compile(
    r"(?:__init__|_array|_asarray_impl|_base|_format_impl|_function_base_impl|_methods|_npyio_impl|_shape_base_impl"
    r"|array_constructors|array_methods|base_dataset|fromnumeric|iter_dataset|lax_numpy|linear_util|mp_prefetch"
    r"|multiarray|numeric|partial_eval|pjit|prefetch|profiler|pxla|reductions|shape_base|shard_map|source_info_util"
    r"|traceback_util|tree_lib|tree_util|ufunc_api|ufuncs|xla_bridge)\.py:"
    r"|(?:api|array|dispatch|_?core|stages|compiler)\.py:\d+ (?:block_until_ready|try_to_block|device_(?:get|put)\w*"
    r"|_value|_single_device_array_to_np_array_did_copy|__(?:array|float|int|bool|index)__|item|tolist|apply_primitive|bind\w*"
    r"|cache_miss|_python_pjit_helper|_device_put_\w+|_batched_device_put_\w+|reraise_with_filtered_traceback)\Z"
    r"|(?:en|de)coder\.py:\d+ (?:_?iterencode\w*|encode|decode|raw_decode|default|floatstr)\Z"
)
"""Functions of JAX, NumPy, Grain and json, which are not the program's own; those of the standard library's modules
count beside them."""


def cpu_account(
    host: HostEvents,
    cpu: StreamDevice | None,
    modules: HloModules,
    waits: Intervals,
    names: Sequence[str],
    start: Int64s,
    end: Int64s,
    marks: Int64s,
    thread: HostThread,
) -> CpuAccount:
    """The account of some steps.

    Args:
        cpu: the ops; None for none.
        modules: the programs of the profile.
        waits: when the host waited for input or sent it, disjoint and in order.
        names, start, end: the steps, in the order of time.
        marks: metadata ids of the events that mark steps.
        thread: the one that marks the steps.
    """
    end = np.minimum(end, np.append(start[1:], end[-1:]))
    step, between = (start, end), (end, np.append(start[1:], end[-1:]))
    computing, moving = (ops_of(cpu, is_collective) for is_collective in (False, True))
    ids = _names(host, thread)
    is_mark = is_among(thread.metadata_id, marks)
    launches = np.array([_LAUNCHES.match(name) is not None for name in ids.values()], np.bool_)[_which(thread, ids)]
    causes: list[tuple[Owner, Intervals]] = [
        ("uncounted", computing),
        ("collective_transfer", moving),
        ("between_ops", program_runs(host)),
        ("compile", compiling(HostEvents(host.plane, (thread,)))),
        ("input", waits),
        ("dispatch", _spans(thread, launches)),
        ("host", _spans(thread, ~is_mark)),
    ]
    whole = union_of((step, between))
    divided, left = dict[Owner, Intervals](), whole
    for owner, of in causes:
        divided[owner] = intersect(*left, *of)
        left = subtract(*left, *divided[owner])
    columns = np.zeros((2, len(names), len(OWNERS)), np.int64)
    untraced = np.zeros((2, len(names)), np.int64)
    for which, spans in enumerate((step, between)):
        for owner, of in divided.items():
            columns[which, :, owner_index(owner)] = overlap(*spans, *of)
        untraced[which] = overlap(*spans, *left)
        columns[which, :, owner_index("host")] += untraced[which]
    found = [function for owner in _OWN for function in _functions(thread, ids, is_mark, owner, divided[owner])]
    collectives = _collectives(cpu)
    alone = [overlap(*step, *subtract(*union(each.start, each.end), *computing)) for each in collectives]
    devices = max((_devices(modules, each.op) for each in collectives), default=0)
    local = max((each.at_a_time for each in collectives), default=0)
    beyond = [each.beyond_transfer(*step, ps) for each, ps in zip(collectives, alone, strict=True)]
    waited = np.sum(beyond, axis=0, dtype=np.int64) if beyond and local < devices else np.zeros(len(names), np.int64)
    return CpuAccount(
        names=tuple(names),
        start_ps=start,
        step_ps=end - start,
        owner_ps=columns[0],
        between_ps=columns[1],
        untraced_ps=untraced[0],
        untraced_between_ps=untraced[1],
        functions=tuple(found),
        compiled=_compiled(thread, ids, divided["compile"]),
        collective_names=tuple(each.op.name for each in collectives),
        collective_ps=np.stack(alone, axis=1) if alone else np.zeros((len(names), 0), np.int64),
        waits_ps=np.minimum(waited, columns[0][:, owner_index("collective_transfer")]),
        devices=devices,
        local_devices=local,
        is_traced=any(name.startswith("$") for name in ids.values()),
    )


# ---- ops -------------------------------------------------------------------------------------------------------------


def ops_of(cpu: StreamDevice | None, is_collective: bool) -> Intervals:
    """When some thread ran an op that is a collective, or one that is none; a loop counts by the ops in it."""
    return union_of((stream.start_ps[chosen], stream.end_ps[chosen]) for stream, chosen in _chosen(cpu, is_collective))


def _chosen(cpu: StreamDevice | None, is_collective: bool) -> Iterator[tuple[HostThread, Bools]]:
    if cpu is None:
        return
    of_op = np.array([op_class(op.category, op.name) == "collective" for op in cpu.attribution.ops], np.bool_)
    for stream, number, is_leaf in zip(cpu.streams, cpu.attribution.numbers, cpu.leaves(), strict=True):
        yield stream, is_leaf & (of_op[number] == is_collective)


def runs_after(host: HostEvents, cpu: StreamDevice | None, start: Int64s, end: Int64s, thread: HostThread) -> bool:
    """Whether the ops of some steps run for longer after the last step than within all of them.

    The thread that marks steps may launch programs without waiting for them. What runs between the last step and the
    next launch was launched by the steps; with more of it than they hold, they do not show when their ops ran.

    Args:
        start, end: the steps, all that the profile has of this thread.
        thread: the one that marks them.
    """
    if not len(start) or cpu is None:
        return False
    last = int(end.max())
    ids = _names(host, thread)
    launches = np.array([_LAUNCHES.match(name) is not None for name in ids.values()], np.bool_)[_which(thread, ids)]
    later = thread.start_ps[launches & (thread.start_ps >= last)]
    until = int(later.min()) if len(later) else np.iinfo(np.int64).max
    ops = union_of(ops_of(cpu, is_collective) for is_collective in (False, True))
    within = overlap(*union(start, end), *ops).sum()
    after = overlap(np.array([last]), np.array([max(until, last)]), *ops).sum()
    return bool(after > within)


def program_runs(host: HostEvents) -> Intervals:
    """When some run of a program was going on: from the first event that names a run (`run_id`) to the last.

    Returns:
        Start and end of disjoint intervals in order.
    """
    columns: list[tuple[Int64s, Int64s, Int64s, Int64s]] = []
    for thread in host.threads:
        stat = thread.stat("run_id")
        device, _ = thread.stat("device_ordinal").integers_at(stat.rows)
        columns.append((stat.values.integers(), device, thread.start_ps[stat.rows], thread.end_ps[stat.rows]))
    if not columns:
        return no_ints(), no_ints()
    run, device, start, end = (np.concatenate(column) for column in zip(*columns, strict=True))
    if not len(run):
        return no_ints(), no_ints()
    number = numbered(run, device)
    first = np.full(int(number.max()) + 1, np.iinfo(np.int64).max)
    last = np.full(len(first), np.iinfo(np.int64).min)
    np.minimum.at(first, number, start)
    np.maximum.at(last, number, end)
    return union(first, last)


@dataclass(frozen=True, slots=True)
class _Collective:
    """A collective and its runs on all threads: int64[n] each."""

    op: StreamOp
    start: Int64s
    end: Int64s

    @property
    def at_a_time(self) -> int:
        """On how many threads it ran at a time at most: all devices of a process are in it before it goes on."""
        times = np.concatenate([self.start, self.end])
        change = np.repeat(np.array([1, -1]), len(self.start))
        return int(np.cumsum(change[np.lexsort((change, times))]).max(initial=0))

    def beyond_transfer(self, begin: Int64s, stop: Int64s, alone_ps: Int64s) -> Int64s:
        """int64[steps]: the part of the time of each step that moving the data does not take."""
        first = np.sort(self.start)
        runs = np.searchsorted(first, stop) - np.searchsorted(first, begin)
        sizes = (found.shape.unpadded_bytes for found in shapes_in(self.op.shape))
        each_ps = LATENCY_PS + sum(filter(None, sizes)) * PS_PER_SECOND // SLOWEST_BYTES
        return np.maximum(alone_ps - runs * each_ps, 0)


def _collectives(cpu: StreamDevice | None) -> list[_Collective]:
    parts: dict[int, list[Intervals]] = {}
    chosen = list(_chosen(cpu, True))
    for (stream, mine), number in zip(chosen, cpu.attribution.numbers if cpu is not None else (), strict=True):
        for op in np.unique(number[mine]).tolist():
            rows = mine & (number == op)
            parts.setdefault(op, []).append((stream.start_ps[rows], stream.end_ps[rows]))
    if cpu is None:
        return []
    return [
        _Collective(cpu.attribution.ops[op], np.concatenate([a for a, _ in of]), np.concatenate([b for _, b in of]))
        for op, of in parts.items()
    ]


def _devices(modules: HloModules, op: StreamOp) -> int:
    """How many devices the program of an op runs on; 0 where the profile does not say."""
    module = modules.module(op.program)
    if module is None:
        return 0
    assigned = module.proto.hlo_module.device_assignment
    return max(0, assigned.replica_count) * max(0, assigned.computation_count)


# ---- the step's thread -----------------------------------------------------------------------------------------------


def _names(host: HostEvents, thread: HostThread) -> dict[int, str]:
    return {number: host.name(number) for number in np.unique(thread.metadata_id).tolist()}


def _which(thread: HostThread, ids: dict[int, str]) -> Int64s:
    return np.searchsorted(np.fromiter(ids, np.int64, len(ids)), thread.metadata_id.astype(np.int64)).astype(np.int64)


def _spans(thread: HostThread, chosen: Bools) -> Intervals:
    return union(thread.start_ps[chosen], thread.end_ps[chosen])


def _functions(
    thread: HostThread, ids: dict[int, str], is_mark: Bools, owner: Owner, spans: Intervals
) -> list[HostFunction]:
    """What the thread was in during some time: functions and annotations of the program, most time first.

    Those inside a launch are left out: what JAX does there, and the functions that it traces, are the caller's time.
    """
    which = _which(thread, ids)
    own = np.array([bool(_title(name)) for name in ids.values()], np.bool_)[which] & ~is_mark
    launches = _spans(thread, np.array([_LAUNCHES.match(name) is not None for name in ids.values()], np.bool_)[which])
    own &= place(thread.start_ps, *launches) < 0
    found = _self_times(thread, own, spans)
    inner = _self_times(thread, ~is_mark, spans)
    innermost = max(inner, key=lambda number: inner[number][0], default=None)
    leaf = "" if innermost is None else ids[innermost].removeprefix("$").removeprefix("<unknown> ")
    largest = sorted(found, key=lambda number: -found[number][0])[:MOST_FUNCTIONS]
    out = []
    for number in largest:
        time, count = found[number]
        is_leaf = innermost == number or innermost is None or 2 * inner[innermost][0] < time
        out.append(HostFunction(owner, _title(ids[number]), time, count, "" if is_leaf else leaf))
    return out


def _title(name: str) -> str:
    """What a function or an annotation of the program is called in a sentence; empty for all others' events."""
    found = _FUNCTION.match(name)
    if found is None:
        return "" if name.startswith("$") or _RUNTIME.search(name) or is_compilation(name) else name
    module = found["file"].removesuffix(".py").rpartition("/")[2]
    is_library = module in sys.stdlib_module_names or _LIBRARY.match(name, 1) is not None
    if is_library or found["name"].startswith("<"):
        return ""
    return f"{found['name']} ({found['file']}:{found['line']})"


def _self_times(thread: HostThread, chosen: Bools, spans: Intervals) -> dict[int, tuple[int, int]]:
    """Time and number of some events during some time, without others of them inside, by metadata id."""
    rows = np.flatnonzero(chosen)
    inside = overlap(thread.start_ps[rows], thread.end_ps[rows], *spans)
    rows, inside = rows[inside > 0], inside[inside > 0]
    start, end, rows, inside = in_nesting_order(thread.start_ps[rows], thread.end_ps[rows], rows, inside)
    parent = nest(start, end).parent
    held = parent >= 0
    alone = np.maximum(inside - sum_by_key(parent[held], inside[held], len(rows)), 0)
    ids, key = np.unique(thread.metadata_id[rows], return_inverse=True)
    times, counts = sum_by_key(key, alone, len(ids)), np.bincount(key, minlength=len(ids))
    columns = zip(ids.tolist(), times.tolist(), counts.tolist(), strict=True)
    return {number: (time, count) for number, time, count in columns if time > 0}


def _compiled(thread: HostThread, ids: dict[int, str], spans: Intervals) -> tuple[str, ...]:
    """The functions that were compiled: those whose call holds the compiling, and no other such call inside."""
    calls = np.array([_COMPILED.match(name) is not None for name in ids.values()], np.bool_)[_which(thread, ids)]
    found = _self_times(thread, calls, spans)
    names = (_COMPILED.match(ids[number]) for number in sorted(found, key=lambda number: -found[number][0]))
    return tuple(name[1] for name in names if name is not None)[:MOST_FUNCTIONS]
