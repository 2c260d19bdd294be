"""Requests that a host served, and the latency of what its cores ran.

What a request is, and what of its time counts as what, is XProf's (`inference_stats.cc`): a group of events
(`parsers.steps.groups.groups`) with an event `BatchingSessionRun`, else `TfrtModelRun`, `ServingModelRun`, `SessionRun`
or `RunGraph`, or one that the server marked itself (``_r`` -1, or ``ModelServerRequest_…``). It lasts from the first
host event of its group to the last, or to the end of the last batch that it is part of. Device time is that of the
module runs of its group and its batches; communication that of their transfers; where both happen at once it is device
time. In these places XProf errs:

- It counts device time and transfers outside of a request too, so that host time can be negative; here they are cut.
- Of a request in several batches it takes the end of one of them, here it is that of the last.
- With several models it leaves out requests without a model's name; here they count.
- Where the request events have no groups it shows nothing; here each outermost one is a request, its parts unknown.

Where a profile has no request events, as of plain JAX, there are the runs of HLO modules
(`parsers.steps.requests.module_latency`), and annotations that a user may take for requests
(`parsers.steps.requests.annotated`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, distinct, in_nesting_order, is_among, no_ints, positions, without
from tpuprof.parsers.base.record import Sized, dataclass, field, replace
from tpuprof.parsers.formats.xspace.core.api import nest
from tpuprof.parsers.formats.xspace.metadata import KIND_INT64, KIND_UINT64
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.core.ops import FAR_PS
from tpuprof.parsers.ops.host_events.events import HostEvents, HostThread
from tpuprof.parsers.steps.groups.groups import EventGroups
from tpuprof.parsers.steps.launches import LaunchedRuns
from tpuprof.parsers.steps.requests import spans
from tpuprof.parsers.steps.requests.annotated import AnnotatedSpans, annotated_spans, is_request
from tpuprof.parsers.steps.requests.module_latency import ModuleLatency, module_latencies

MODEL_ID = "model_id"
REQUEST_STATS = (MODEL_ID, "_r", "_pt", "_p", "_ct", "_c", "run_id", "device_ordinal")
"""Stats of host events that are needed here."""

_ROOT = "_r"
_KINDS: tuple[tuple[str, ...], ...] = (
    ("BatchingSessionRun",),
    ("TfrtModelRun",),
    ("ServingModelRun",),
    ("SessionRun", "RunGraph"),
)
"""Names of request events; the first of these that a profile has count."""

_SERVER = "ModelServerRequest_"
_BATCHES = ("ProcessBatch", "OrbaxServing::ProcessBatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRequests(Sized):
    """What a host served.

    Attributes:
        modules: the runs of each module, the one with the most time first.
        event: name of the request events, such as ``SessionRun``; empty without requests.
        models: names of models.
        model: int64[n], the model that each request asked, -1 where it does not say.
        start_ps: int64[n], in order.
        total_ps: int64[n], more than 0.
        device_ps, to_device_ps, from_device_ps: int64[n]; they do not overlap, and lie within the request.
        batches: number of groups of requests that ran together.
        has_device: whether a module run belongs to a request, so that device time is known.
        has_transfers: whether a transfer belongs to a request.
        is_grouped: whether events are linked to their requests; otherwise only `total_ps` is known.
        annotated: without requests, the annotations that a user may take for them.
    """

    sized_by = "start_ps"
    modules: tuple[ModuleLatency, ...] = ()
    event: str = ""
    models: tuple[str, ...] = ()
    model: Int64s = field(default_factory=no_ints)
    start_ps: Int64s = field(default_factory=no_ints)
    total_ps: Int64s = field(default_factory=no_ints)
    device_ps: Int64s = field(default_factory=no_ints)
    to_device_ps: Int64s = field(default_factory=no_ints)
    from_device_ps: Int64s = field(default_factory=no_ints)
    batches: int = 0
    has_device: bool = False
    has_transfers: bool = False
    is_grouped: bool = False
    annotated: tuple[AnnotatedSpans, ...] = ()

    @property
    def known_ps(self) -> Int64s:
        """The starts of the requests, or of the annotation with most time whose name says that it is a request."""
        named = (spans.start_ps for spans in self.annotated if is_request(spans.name))
        return self.start_ps if len(self) else next(named, self.start_ps)


def host_requests(
    host: HostEvents | None,
    groups: EventGroups | None,
    cores: Sequence[Plane],
    launched: Sequence[LaunchedRuns],
    durations: Sequence[Int64s] | None = None,
    lead_ps: int = 0,
) -> HostRequests:
    """The requests of a host, and the runs of its cores' modules.

    Args:
        host: decoded with `REQUEST_STATS` and `groups.GROUP_STATS`; None without a host plane.
        groups: the groups of the host and these cores; None where nobody made them, as without requests.
        cores: planes of TensorCores.
        launched: the runs of each.
        durations: durations of each core's module runs by the device's clock, see `module_latencies`.
        lead_ps: how far the devices' clocks run ahead of the host's.
    """
    modules = module_latencies(launched, durations, lead_ps)
    names = _request_names(host) if host is not None else None
    if host is None or names is None:
        return HostRequests(modules=modules, annotated=() if host is None else annotated_spans(host))
    requests = no_ints() if groups is None else _find(host, names, groups)
    if groups is None or not len(requests):
        return replace(_ungrouped(host, names), modules=modules)
    return replace(_grouped(host, names, groups, cores, launched, requests), modules=modules)


def has_requests(host: HostEvents | None) -> bool:
    """Whether a host has request events, whose parts only groups show."""
    return host is not None and _request_names(host) is not None


# --- which events are requests -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Names:
    """Metadata ids of the events that matter, int64[k] each.

    Attributes:
        event: name of the request events.
        requests: events that make their groups requests.
        server: events that do so where the server marked them as roots.
        batches: events that process a batch.
    """

    event: str
    requests: Int64s
    server: Int64s
    batches: Int64s


def _request_names(host: HostEvents) -> _Names | None:
    """The names of a host's request events; None where there can be no requests."""
    event, requests = request_ids(host)
    server = spans.ids_named(host, (), _SERVER)
    has_own = any((thread.stat(_ROOT).values.integers() == -1).any() for thread in host.threads)
    if not len(requests) and not len(server) and not has_own:
        return None
    event = event or (host.name(int(server[0])) if len(server) == 1 else "requests of the server")
    return _Names(event, requests, server, spans.ids_named(host, _BATCHES))


def request_ids(host: HostEvents) -> tuple[str, Int64s]:
    """The first kind of request events that some thread has: its name, and their ids."""
    for kinds in _KINDS:
        ids = spans.ids_named(host, kinds)
        used = ids[[any((thread.metadata_id == number).any() for thread in host.threads) for number in ids.tolist()]]
        if len(used):
            names = {host.name(number) for number in used.tolist()}
            return " and ".join(name for name in kinds if name in names), used
    return "", no_ints()


def _request_rows(thread: HostThread, names: _Names) -> Int64s:
    """Events of a thread that make their groups requests."""
    stat = thread.stat(_ROOT)
    level = stat.values.integers()
    is_server = (level == 1) & is_among(thread.metadata_id[stat.rows], names.server)
    return distinct(np.concatenate([thread.rows_of(names.requests), stat.rows[(level == -1) | is_server]]))


# --- requests with groups ------------------------------------------------------------------------------------------


def _find(host: HostEvents, names: _Names, groups: EventGroups) -> Int64s:
    """int64[n], ascending: the groups that are requests. A batch is no request."""
    groups_of_requests, batches = [no_ints()], [no_ints()]
    for thread, group in spans.grouped_threads(host, groups):
        groups_of_requests.append(group[_request_rows(thread, names)])
        batches.append(group[is_among(thread.metadata_id, names.batches)])
    return without(np.concatenate(groups_of_requests), np.append(np.concatenate(batches), -1))


def _grouped(
    host: HostEvents,
    names: _Names,
    groups: EventGroups,
    cores: Sequence[Plane],
    launched: Sequence[LaunchedRuns],
    requests: Int64s,
) -> HostRequests:
    start, end, batch = _hulls(host, names, groups, requests)
    members = spans.membership(host, groups, requests)
    in_batches = members.of(batch)
    np.maximum.at(end, in_batches.group, in_batches.end)
    device = members.of(spans.run_spans(groups, cores, [core.runs for core in launched]))
    to_device, from_device = (members.of(spans.transfer_spans(host, groups, way)) for way in spans.WAYS)
    device_ps, from_ps, to_ps = spans.exclusive(start, end, (device, from_device, to_device))
    models, model = _models(host, groups, members)
    order = np.argsort(start, kind="stable")
    order = order[end[order] > start[order]]
    return HostRequests(
        event=names.event,
        models=models,
        model=model[order],
        start_ps=start[order],
        total_ps=(end - start)[order],
        device_ps=device_ps[order],
        to_device_ps=to_ps[order],
        from_device_ps=from_ps[order],
        batches=len(distinct(batch.group)),
        has_device=len(device) > 0,
        has_transfers=len(to_device) + len(from_device) > 0,
        is_grouped=True,
    )


def _hulls(
    host: HostEvents, names: _Names, groups: EventGroups, requests: Int64s
) -> tuple[Int64s, Int64s, spans.Spans]:
    """First start and last end of each request's host events; and the processed batches, by group."""
    start, end = np.full(len(requests), FAR_PS, np.int64), np.full(len(requests), -FAR_PS, np.int64)
    batches = []
    for thread, group in spans.grouped_threads(host, groups):
        request = positions(group, requests)
        rows = np.flatnonzero(request >= 0)
        np.minimum.at(start, request[rows], thread.start_ps[rows])
        np.maximum.at(end, request[rows], thread.end_ps[rows])
        rows = thread.rows_of(names.batches)
        batches.append(spans.Spans.of(thread, group, rows[group[rows] >= 0]))
    return start, end, spans.Spans.joined(batches)


def _models(host: HostEvents, groups: EventGroups, members: spans.Membership) -> tuple[tuple[str, ...], Int64s]:
    """The models' names, and which of them each request asked, by its own events or else by its batch's."""
    names: dict[str, int] = {}
    owners = distinct(np.concatenate([members.found, members.child]))
    model_of = np.full(len(owners), -1, np.int64)
    for thread, group in spans.grouped_threads(host, groups):
        model, index = _model_numbers(host, thread, names), positions(group[thread.stat(MODEL_ID).rows], owners)
        tells = (model >= 0) & (index >= 0)
        model_of[index[tells]] = model[tells]
    own = model_of[positions(members.found, owners)]
    of_child = model_of[positions(members.child, owners)]
    silent = (own[members.request] < 0) & (of_child >= 0)
    own[members.request[silent]] = of_child[silent]
    order = sorted(names)
    number = np.full(len(names) + 1, -1, np.int64)  # the last one for a request that does not say
    number[[names[name] for name in order]] = np.arange(len(order))
    return tuple(order), number[own]


def _model_numbers(host: HostEvents, thread: HostThread, names: dict[str, int]) -> Int64s:
    """Number of the model that each event with a `model_id` names, -1 for none; it adds new names to `names`."""
    column = thread.stat(MODEL_ID).values
    texts = host.plane.texts(column)
    for row in np.flatnonzero(is_among(column.kind, (KIND_INT64, KIND_UINT64))).tolist():
        texts[row] = str(int(column.value[row]))
    return np.array([names.setdefault(text, len(names)) if text else -1 for text in texts], np.int64)


# --- requests without groups ---------------------------------------------------------------------------------------


def _ungrouped(host: HostEvents, names: _Names) -> HostRequests:
    """Takes each outermost request event as a request whose parts are unknown."""
    parts = [(no_ints(), no_ints())]
    for thread in host.threads:
        rows = _request_rows(thread, names)
        start, end = in_nesting_order(thread.start_ps[rows], thread.end_ps[rows])
        outer = (nest(start, end).parent < 0) & (end > start)
        parts.append((start[outer], end[outer]))
    start, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    if not len(start):
        return HostRequests()
    order = np.argsort(start, kind="stable")
    none = np.zeros(len(start), np.int64)
    return HostRequests(
        event=names.event,
        model=none - 1,
        start_ps=start[order],
        total_ps=(end - start)[order],
        device_ps=none,
        to_device_ps=none,
        from_device_ps=none,
    )
