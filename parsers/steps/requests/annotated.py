"""Annotated spans of the host that recur and launch programs: what a user may take for the requests of a server.

Nothing in a profile says that an annotation is a request. So these are only offered, by name, where a profile has no
request events: `jax.profiler.TraceAnnotation("request")` around what answers one. An annotation is an event that
neither the runtime nor the Python tracer writes; one counts if most of its spans hold the launch of a program, or if
its name says that it is a request, for another thread may launch.
"""

from __future__ import annotations

import re

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, in_nesting_order, is_among, no_ints, shared
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.xspace.core.api import nest
from tpuprof.parsers.ops.host_events.activity import is_compilation
from tpuprof.parsers.ops.host_events.events import HostEvents, HostThread

LEAST_SPANS = 3
"""A name that occurs less often does not recur."""

MOST_NAMES, MOST_SPANS = 12, 200_000
"""Names that are offered, those with most time, and spans of all of them that are kept."""

WAITING = "wait|poll|idle|queue|next|recv|receive|listen|accept|get_"
"""Words of the names of events in which a thread waits for a request."""

_LAUNCH = pattern(
    r"PjitFunction\(|ExecuteReplicated|(?:\w+::)*\w*LoadedExecutable::Execute|DoEnqueueProgram|TpuExecute|ExecuteComputation"
    r"|SyncTensorsGraph"
)
_OF_THE_RUNTIME = pattern(
    r"[$<]|end: |Iterator|.*(?:::|Pjit|Pjrt|PjRt|Xla|XLA|[Ee]xecut|Dispatch|Enqueue|Transfer|Threadpool|ThreadPool|Tpu"
    r"|Buffer|Compile|Infeed|Outfeed|TraceContext|Handle |Wait |Allocate|ParseArguments|DevicePut|shard_args|Linearize"
    r"|SyncTensors|np\.asarray|BlockUntil|block_until|TFE_|FunctionRun|SessionRun|convert_to_tensor|__inference_|MarkStep)"
)

_REQUEST = pattern(rf"(?!.*(?:{WAITING})).*(?:request|query|rpc)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnnotatedSpans(Sized):
    """The outermost spans of one name.

    Attributes:
        name: of the annotation.
        start_ps, total_ps: int64[n], by time of start.
    """

    sized_by = "start_ps"
    name: str
    start_ps: Int64s
    total_ps: Int64s


def annotated_spans(host: HostEvents) -> tuple[AnnotatedSpans, ...]:
    """Annotations that may be requests, the one with most time first; those of steps are none."""
    launches = host.ids_named(lambda name: _LAUNCH.match(name) is not None)
    names = host.ids_named(lambda name: bool(name) and not is_of_runtime(name) and not is_compilation(name))
    parts: dict[int, list[tuple[Int64s, Int64s, int]]] = {}
    for thread in host.threads:
        at = np.sort(thread.start_ps[thread.rows_of(launches)])
        for number in shared(thread.metadata_id.astype(np.int64), names).tolist():
            start, end = _outermost(thread, number)
            holding = int((np.searchsorted(at, end) > np.searchsorted(at, start)).sum())
            parts.setdefault(number, []).append((start, end, len(start) if is_request(host.name(number)) else holding))
    found = []
    for number, of in parts.items():
        start, end = (np.concatenate([each[side] for each in of]) for side in (0, 1))
        if len(start) >= LEAST_SPANS and 2 * sum(holding for *_, holding in of) >= len(start):
            order = np.argsort(start, kind="stable")
            found.append(AnnotatedSpans(host.name(number), start[order], (end - start)[order]))
    found.sort(key=lambda spans: (-int(spans.total_ps.sum()), spans.name))
    kept = found[:MOST_NAMES]
    return tuple(spans for at, spans in enumerate(kept) if sum(map(len, kept[: at + 1])) <= MOST_SPANS)


def is_request(name: str) -> bool:
    """Whether the name of an annotation says that it is a request."""
    return _REQUEST.match(name) is not None and not is_of_runtime(name)


def is_of_runtime(name: str) -> bool:
    """Whether the runtime or the Python tracer names an event so."""
    return _OF_THE_RUNTIME.match(name) is not None


def _outermost(thread: HostThread, number: int) -> tuple[Int64s, Int64s]:
    """Start and end of the events of an id that lie in no other of them; none of those that an op or a step is."""
    rows = thread.rows_of([number])
    for name in ("hlo_op", "step_num", "_r"):
        if len(thread.stat(name).rows):
            rows = rows[~is_among(rows, thread.stat(name).rows)]
    start, end = in_nesting_order(thread.start_ps[rows], thread.end_ps[rows])
    if not len(start):
        return no_ints(), no_ints()
    outer = (nest(start, end).parent < 0) & (end > start)
    return start[outer], end[outer]
