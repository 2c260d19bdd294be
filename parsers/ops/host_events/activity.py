"""What the host did while the device was idle, by name, and what it compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpuprof.parsers.base import intervals
from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals, no_ints
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.xspace.core.api import nest, sum_by_key
from tpuprof.parsers.ops.host_events.events import HostEvents, HostThread

MOST_ACTIVITIES = 12

_COMPILE = pattern(
    r"^((?:\$\S+\.py:\d+ )?(?:backend_compile(_and_load)?|compile_or_get_cached|lower_sharding_computation"
    r"|lower_jaxpr_to_module|trace_to_jaxpr\w*)"
    r"|XlaCompil\w*|TpuCompil\w*|CompileAndLoad|\w*Compiler::Compile\w*|\w*Client::Compile\w*|XlaCompilationCache::\w+)$"
)
"""Names of events in which JAX, PyTorch/XLA, TensorFlow and PJRT trace, lower or compile a program; JAX's functions as
its own events, or as the Python tracer's ``$compiler.py:318 backend_compile``."""

_LAUNCHES = ("DoEnqueueProgram", "PjRtCApiLoadedExecutable::Execute", "TpuExecute", "TfrtTpuExecutable::Execute")
_LAUNCHES_ON_CPU = pattern(r"(?:TfrtCpu|PjRtCpu)\w*::Execute\w*\Z")

LAUNCHES = pattern(r"LoadedExecutable::Execute\Z|PjitFunction\(|ExecuteReplicated|SyncTensorsGraph|ExecuteComputation")
"""Names of host events in which a thread launches programs."""

READS = pattern(
    r"block_until_?ready|np\.asarray|__array__|device_get|TransferFromDevice|ToLiteral|copy_to_host|[ .]item\Z"
)
"""Names of host events in which a thread waits for a result of the device and fetches it."""

_WAITS_OF_PYTHON = pattern(
    r"^\$(?:(?:threading|queue|selectors|time|thread|_base)\.py:\d+ "
    r"|\S+ (?:accept|acquire|poll|recv|select|sleep|wait)\Z)"
)
"""Names that the Python tracer gives to functions of the modules threading, queue, selectors, time and
concurrent.futures, and to the built-in functions that wait: whoever calls them is what waits."""

_SENDS = pattern(r"DevicePut|device_put\b|BufferFromHost|TransferToDevice|CopyFromHost|LinearizeInto")
"""Names of events in which the runtime sends something to a device."""

_RUNTIME = pattern(
    r"PjitFunction|PjRt|Pjit|ParseArguments|Execute|Enqueue|Dispatch|Transfer|Threadpool|tpu::|Tpu|Xla|xla::|ThunkExecutor|Buffer"
)


def is_compilation(name: str) -> bool:
    """Whether a host event traces, lowers or compiles a program."""
    return _COMPILE.match(name) is not None


def waits_for_python(name: str) -> bool:
    """Whether a host event is a function of Python's own library in which a thread waits for another or for a time."""
    return _WAITS_OF_PYTHON.match(name) is not None


def is_of_program(name: str) -> bool:
    """Whether a host event is the program's own: not the runtime's that launches it, nor a step's annotation."""
    return not _RUNTIME.search(name) and ("$" in name or ":" in name or "(" in name or "." in name)


def is_of_runtime(name: str) -> bool:
    """Whether a host event is one in which the runtime compiles or launches a program, or fetches a result."""
    return is_compilation(name) or any(of.search(name) for of in (_RUNTIME, LAUNCHES, READS))


@dataclass(frozen=True, slots=True)
class Activity:
    """What one thread did during some intervals: time in events of this name, without the events inside them.

    `marks_step` says whether these are annotations that number steps or span them: they hold whatever the loop does.
    """

    thread: str
    name: str
    overlap_ps: int
    occurrences: int
    marks_step: bool = False


@dataclass(frozen=True, slots=True)
class Compilation:
    """The host traced, lowered or compiled a program; for `idle_ps` of that time the device ran nothing."""

    name: str
    start_ps: int
    duration_ps: int
    idle_ps: int

    @property
    def end_ps(self) -> int:
        return self.start_ps + self.duration_ps


@dataclass(frozen=True, slots=True)
class IdleTime:
    """The long gaps of the core that is idle most, without waits for input, and what went on in them.

    Attributes:
        gap_ps: the time of all gaps together.
        count: how many gaps there are.
        longest: start and end of the longest gap.
        activities: what the host's threads did, by time.
        inside: the outermost events inside annotations that mark steps, with the time of the events inside these.
        in_flight: asynchronous ops and for how much of the gaps they were in flight, by time.
        core: the core's ordinal.
        unlaunched_ps: the part of `gap_ps` in which no module ran.
        feeding: what the host's threads did while the core waited for input, for `feeding_ps`, by time.
        serving: what they did while it was in transfers to or from the host, for `serving_ps`, and hardly at other
            times, by time.
    """

    gap_ps: int = 0
    count: int = 0
    longest: tuple[int, int] = (0, 0)
    activities: tuple[Activity, ...] = ()
    in_flight: Mapping[str, int] = field(default_factory=dict)
    core: int = 0
    unlaunched_ps: int = 0
    inside: tuple[Activity, ...] = ()
    feeding: tuple[Activity, ...] = ()
    feeding_ps: int = 0
    serving: tuple[Activity, ...] = ()
    serving_ps: int = 0


def activities(host: HostEvents, gaps: Intervals) -> tuple[Activity, ...]:
    """What the host's threads did during disjoint intervals in order; the activity with most time comes first.

    The thread that launches programs waits in Python's own library for the function that calls it, which gets the time;
    so does a function that sends something to the device, and launches nothing.
    """
    return host_during(host, gaps)[0]


def host_during(host: HostEvents, gaps: Intervals) -> tuple[tuple[Activity, ...], tuple[Activity, ...]]:
    """See `activities`, and `IdleTime.inside`."""
    launches = host.ids_named(lambda name: LAUNCHES.search(name) is not None)
    waits = host.ids_named(waits_for_python) if len(launches) else no_ints()
    sends = host.ids_named(lambda name: _SENDS.search(name) is not None) if len(launches) else no_ints()
    found: tuple[list[Activity], list[Activity]] = ([], [])
    for thread in host.threads:
        of_thread = _of_thread(host, thread, gaps, waits, sends, launches)
        found[0].extend(of_thread[0])
        found[1].extend(of_thread[1])
    return _by_time(found[0]), _by_time(found[1])


def _by_time(found: Sequence[Activity]) -> tuple[Activity, ...]:
    return tuple(sorted(found, key=lambda each: (-each.overlap_ps, each.thread, each.name))[:MOST_ACTIVITIES])


def _of_thread(
    host: HostEvents, thread: HostThread, gaps: Intervals, waits: Int64s, sends: Int64s, launches: Int64s
) -> tuple[list[Activity], list[Activity]]:
    """What one thread did; and what it did directly inside annotations that mark steps.

    Args:
        waits: metadata ids of the events whose time is that of the innermost other event around them, if there is one,
            on a thread that launches programs. sends: those of which it is so if that launches nothing.
        launches: metadata ids of launches.
    """
    in_gaps = intervals.overlap(thread.start_ps, thread.end_ps, *gaps)
    chosen = np.flatnonzero(in_gaps > 0)
    start, end, chosen = intervals.in_nesting_order(thread.start_ps[chosen], thread.end_ps[chosen], chosen)
    in_gaps, parent = in_gaps[chosen], nest(start, end).parent
    inside = parent >= 0
    alone = in_gaps - sum_by_key(parent[inside], in_gaps[inside], len(chosen))
    ids, key = np.unique(thread.metadata_id[chosen], return_inverse=True)
    launched = np.sort(thread.start_ps[thread.rows_of(launches)])
    if len(launched):
        sending = intervals.is_among(thread.metadata_id[chosen], sends)
        of = callers(parent, intervals.is_among(thread.metadata_id[chosen], waits) | sending)
        launches_too = np.searchsorted(launched, end[of]) > np.searchsorted(launched, start[of])
        of = np.where(sending & launches_too, np.arange(len(of)), of)
        alone = sum_by_key(of, np.maximum(alone, 0), len(chosen))
    marks = set(thread.metadata_id[thread.stat("step_num").rows].tolist())
    wholes = sum_by_key(key, in_gaps, len(ids))
    least = _SPANS * int((gaps[1] - gaps[0]).sum())
    marks |= {number for number in ids[wholes >= least].tolist() if _spans_steps(host, thread, number, launched, gaps)}
    elsewhere = sum_by_key(key, end - start, len(ids)) - wholes
    is_all = (wholes >= least) & (elsewhere > _ELSEWHERE * (elsewhere + wholes)) & (np.bincount(key) == 1)
    marks |= {number for number in ids[is_all].tolist() if _is_annotation(host.name(number))}
    marked = np.array([number in marks for number in ids.tolist()], np.bool_)[key]
    outermost = np.where((parent >= 0) & marked[parent] & ~marked, in_gaps, 0)
    counts = np.bincount(key, minlength=len(ids))

    def longest(times: Int64s) -> list[Activity]:
        rows = [row for row in np.argsort(-times, kind="stable")[:MOST_ACTIVITIES].tolist() if times[row] > 0]
        names = {row: host.name(int(ids[row])) for row in rows}
        return [
            Activity(thread.line.name, names[row], int(times[row]), int(counts[row]), int(ids[row]) in marks)
            for row in rows
        ]

    return longest(sum_by_key(key, np.maximum(alone, 0), len(ids))), longest(sum_by_key(key, outermost, len(ids)))


_ELSEWHERE = 0.2
"""An annotation that comes once and has this share of its time elsewhere spans whatever the program does."""

_SPANS = 0.8
"""An annotation spans steps if it covers this share of the time between the launches, and holds this share of them."""

_LEAST_LAUNCHES = 3


def _spans_steps(host: HostEvents, thread: HostThread, number: int, launched: Int64s, gaps: Intervals) -> bool:
    """Whether the events of an id are annotations of the program that cover whole steps, and all that these launch.

    Where the thread launches nothing, each has to last through several gaps and what runs between them: one long gap is
    not enough.
    """
    rows = thread.rows_of([number])
    if not _is_annotation(host.name(number)):
        return False
    spans = intervals.union(thread.start_ps[rows], thread.end_ps[rows])
    if len(launched) < _LEAST_LAUNCHES:
        whole, covers = gaps[1][-1:] - gaps[0][:1], intervals.overlap(gaps[0][:1], gaps[1][-1:], *spans)
        of_each = np.searchsorted(gaps[0], spans[1]) - np.searchsorted(gaps[1], spans[0])
        last = len(gaps[0]) >= _LEAST_LAUNCHES * len(rows) and bool((of_each >= _LEAST_LAUNCHES).all())
        return last and bool((covers >= _SPANS * whole).all())
    held = int((np.searchsorted(launched, spans[1]) - np.searchsorted(launched, spans[0])).sum())
    between = int(intervals.overlap(launched[:1], launched[-1:], *spans)[0])
    return held >= _SPANS * len(launched) and between >= _SPANS * int(launched[-1] - launched[0])


def _is_annotation(name: str) -> bool:
    """Whether the program itself names an event so."""
    return not name.startswith("$") and not is_of_runtime(name)


def callers(parent: Int64s, waits: Bools) -> Int64s:
    """int64[n]: for each event that waits the innermost one around it that does not, or the outermost; else itself."""
    of: Int64s = np.where(waits & (parent >= 0), parent, np.arange(len(parent)))
    while (of != of[of]).any():
        of = of[of]
    return of


def compilations(host: HostEvents, idle: Intervals) -> tuple[Compilation, ...]:
    """The outermost compilations of each thread, in order of time.

    Args:
        idle: disjoint intervals in order in which no core ran anything.
    """
    wanted = host.ids_named(is_compilation)
    compiled: list[Compilation] = []
    for thread in host.threads if len(wanted) else ():
        rows = thread.rows_of(wanted)
        for start, end in np.stack(intervals.union(thread.start_ps[rows], thread.end_ps[rows]), axis=1).tolist():
            of = rows[(thread.start_ps[rows] >= start) & (thread.end_ps[rows] <= end)]
            longest = of[np.argmax(thread.end_ps[of] - thread.start_ps[of])]
            idle_ps = int(np.diff(intervals.covered(np.array([start, end]), *idle))[0])
            name = host.name(int(thread.metadata_id[longest]))
            compiled.append(Compilation(name, start, end - start, idle_ps))
    return tuple(sorted(compiled, key=lambda compilation: compilation.start_ps))


def compiling(host: HostEvents | None) -> Intervals:
    """When some thread of the host traced, lowered or compiled a program; disjoint and in order."""
    wanted = no_ints() if host is None else host.ids_named(is_compilation)
    threads = host.threads if host is not None and len(wanted) else ()
    return intervals.union_of(_spans(thread, thread.rows_of(wanted)) for thread in threads)


def reading(host: HostEvents | None) -> Intervals:
    """When a thread that launches programs waited for a result of the device; disjoint and in order."""
    spans: list[Intervals] = []
    wanted = no_ints() if host is None else host.ids_named(lambda name: READS.search(name) is not None)
    if host is not None and len(wanted):
        launches = host.ids_named(lambda name: LAUNCHES.search(name) is not None)
        for thread in host.threads:
            rows = thread.rows_of(wanted)
            if len(rows) and len(thread.rows_of(launches)):
                spans.append(_spans(thread, rows))
    return intervals.union_of(spans)


def _spans(thread: HostThread, rows: Int64s) -> Intervals:
    return thread.start_ps[rows], thread.end_ps[rows]


def launches(host: HostEvents) -> int:
    """How often the host launched a program on a device."""
    counts = [0]
    for is_wanted in (lambda name: name in _LAUNCHES, lambda name: name.startswith("PjitFunction(")):
        ids = host.ids_named(is_wanted)
        counts.append(sum(len(thread.rows_of(ids)) for thread in host.threads))
    return max(counts)


def launches_on_cpu(host: HostEvents) -> int:
    """How often the host ran a program on its own CPU."""
    ids = host.ids_named(lambda name: _LAUNCHES_ON_CPU.match(name) is not None)
    counts = (sum(len(thread.rows_of([number])) for thread in host.threads) for number in ids.tolist())
    return max(counts, default=0)  # one of them lies inside another


def in_flight(names: Sequence[str], starts: Int64s, ends: Int64s, gaps: Intervals) -> dict[str, int]:
    """How long each asynchronous op was in flight during the gaps, by name, longest first.

    Args:
        names, starts, ends: name and span of each event.
    """
    times = intervals.totals(zip(names, intervals.overlap(starts, ends, *gaps).tolist(), strict=True))
    return {name: time for name, time in sorted(times.items(), key=lambda pair: (-pair[1], pair[0])) if time > 0}
