"""The inference page: how long requests took, or where a profile has none, the runs of HLO modules.

Percentiles are XProf's (`compute_inference_latency.cc`): it sorts the sessions by their whole latency and takes the
session at place ⌊p·n/100⌋, counted from 0, with that session's own parts. So 99.9 % of few sessions is the slowest.

A session's host time is the time that is neither device time nor communication. Throughput is a host's number of
sessions over the time from its first start to its last end, summed over hosts; XProf sums it over models too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, grouped
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.base.words import NO_SCOPES, shortened
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.steps.boundaries.runs import busiest_often
from tpuprof.parsers.steps.requests.annotated import LEAST_SPANS, AnnotatedSpans
from tpuprof.parsers.steps.requests.module_latency import ModuleLatency, module_shares
from tpuprof.parsers.steps.requests.requests import HostRequests
from tpuprof.parsers.steps.requests.serving import batch_inputs, phase_of

PERCENTILES = (50.0, 75.0, 90.0, 99.0, 99.9)

InferenceSource = Literal["requests", "annotated spans", "module runs"]
"""What a session is: a request that the host served, a span of the annotation that the user takes for one, or a run of
the module that takes most of the device's time."""

OFFERED = f"at least {LEAST_SPANS} spans of one name, most of which hold a launch unless the name says request"
"""What annotations may be taken for requests."""

NO_SESSIONS = "the profile has neither request events nor runs of HLO modules"
NO_PARTS = "the request events are not linked to what they ran"
NO_DEVICE_TIME = "no run of an HLO module is linked to a request"
NO_TRANSFERS = "no transfer event is linked to a request; transfers count as host time"
NO_HOST_TIME = "the profile has no request events, so what the host did for one run is unknown"
NO_COMMUNICATION = "the profile has no request events, so which transfers belong to one run is unknown"
TOO_SHORT = "at least two sessions are needed"
NO_PERCENTILES = "one run has no percentiles"
NO_PHASE = "the module's name does not say"
NO_LAUNCH = "no host event launches these runs"
NOT_LINKED = "an annotation does not say what it launched"
NO_RUNS = "sessions are requests here, not runs of a module"

_MOST_NAMED = 4
"""Annotations that the note names."""

NO_MODEL = "(no model name)"


@dataclass(frozen=True, slots=True)
class Latency:
    """One session, or the average of some, in picoseconds.

    The parts add up to the total, unless device time is unknown. `queued_ps` is the time after a launch in which the
    core was busy with earlier runs; only launches have it.
    """

    total_ps: float
    host_ps: float | None
    device_ps: float | None
    communication_ps: float | None
    queued_ps: float | None = None


@dataclass(frozen=True, slots=True)
class Percentile:
    """The session at a percentile, 50 for the median."""

    percentile: float
    latency: Latency


@dataclass(frozen=True, slots=True)
class LaunchLatency:
    """Latency from the start of a launch on the host to the end of the run.

    Attributes:
        count: number of runs whose launch is known.
        of: number of all runs.
        average, percentiles: over the runs whose launch is known.
    """

    count: int
    of: int
    average: Latency
    percentiles: tuple[Percentile, ...]


@dataclass(frozen=True, slots=True)
class Bin:
    """How many sessions took from `low_ps` up to `high_ps`; the last bin of a histogram has its upper edge too."""

    low_ps: float
    high_ps: float
    count: int


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """The sessions of one model, or the runs of one module.

    Attributes:
        name: the model's or module's name.
        runs: number of sessions or runs.
        average_ps, minimum_ps, maximum_ps: over the whole latencies.
        percentiles_ps: the latency at each of `PERCENTILES`; () of one.
        total_ps: all latencies together.
        fraction: share of the total of all models, 0-1; of a module that of the time of all modules' runs on all cores
            (`module_shares`).
        cores: how many cores ran the module; None for a model.
        phase: what the module does according to its name (`phase_of`); None for others, and for a model.
        histogram: its sessions or runs as `InferencePage.histogram` has them.
        inputs: the module's arguments that show its batch, such as ``tokens s32[8,1]``; empty where that is unknown.
    """

    name: str
    runs: int
    average_ps: float
    minimum_ps: int
    maximum_ps: int
    percentiles_ps: tuple[int, ...]
    total_ps: int
    fraction: float
    cores: int | None
    phase: str | None = None
    inputs: tuple[str, ...] = ()
    histogram: tuple[Bin, ...] = ()

    def at(self, place: int) -> int | None:
        """The latency at the percentile of a place in `PERCENTILES`; None of one."""
        return self.percentiles_ps[place] if self.percentiles_ps else None


@dataclass(frozen=True, slots=True, kw_only=True)
class InferencePage:
    """The inference page. `unknown` says under its dotted JSON key why a figure is None.

    Attributes:
        hosts: the hosts that the figures cover.
        is_training: whether the program trains, as on the overview.
        source: what the sessions are; None without any.
        subject: the name of the request events or of the module.
        sessions: number of sessions.
        batches: number of batches that requests were put into.
        average, minimum_ps, maximum_ps: None without sessions.
        percentiles: one for each of `PERCENTILES`, none of less than two sessions.
        histogram: the sessions by latency, in `BINS` bins of one width, or of one ratio where the longest session takes
            more than `WIDE_RATIO` times the shortest; one bin where all take as long.
        launches: latency from the launches of the module's runs; None for requests, or where no launch is known.
        sessions_per_second: throughput; None for fewer than two sessions.
        rows: the models or modules, by total time.
        modules: the modules that ran, also where the sessions are requests.
        note: what the sessions are, in a sentence or two.
        offers: without request events, annotations of the program that may be requests, that with most time first: a
            page of each that takes its spans for the sessions (`chosen`).
    """

    hosts: tuple[str, ...] = ()
    is_training: bool | None = None
    source: InferenceSource | None = None
    subject: str = ""
    sessions: int = 0
    batches: int = 0
    average: Latency | None = None
    minimum_ps: int | None = None
    maximum_ps: int | None = None
    percentiles: tuple[Percentile, ...] = ()
    histogram: tuple[Bin, ...] = ()
    launches: LaunchLatency | None = None
    sessions_per_second: float | None = None
    rows: tuple[LatencyRow, ...] = ()
    modules: tuple[LatencyRow, ...] = ()
    note: str
    unknown: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    offers: tuple[InferencePage, ...] = ()

    def chosen(self, name: str | None) -> InferencePage | None:
        """The page whose sessions are the spans of an annotation, itself for none; None where that is not offered."""
        if name is None:
            return self
        return next((replace(page, offers=self.offers) for page in self.offers if page.subject == name), None)


@dataclass(frozen=True, slots=True)
class _Sessions:
    """Sessions as columns, int64[n] each; None is a part that is unknown for all sessions."""

    total: Int64s
    host: Int64s | None
    device: Int64s | None
    communication: Int64s | None
    queued: Int64s | None = None


def latencies(
    parts: Sequence[HostRequests],
    hosts: Sequence[str],
    is_training: bool | None,
    why_none: str = "",
    warnings: Sequence[str] = (),
    programs: Sequence[HloModules] = (),
) -> InferencePage:
    """The page over some hosts.

    Args:
        parts: each host's requests and module runs.
        hosts: the hosts' names.
        is_training: whether the program trains; None where that is unknown.
        why_none: why nothing could have run, such as the lack of a device; empty where something could.
        warnings: what is wrong with the profile.
        programs: the hosts' HLO modules, for the batches of the largest modules; parsed as they are needed.
    """
    serving = [part for part in parts if len(part)]
    modules = _module_rows(parts, programs)
    page = _of_requests(serving) if serving else _of_modules(parts, modules, why_none or NO_SESSIONS)
    offers = () if serving else _offers(parts)

    def of_run(page: InferencePage) -> InferencePage:
        return replace(page, modules=modules, hosts=tuple(hosts), is_training=is_training, warnings=tuple(warnings))

    note, unknown = page.note + _offered(offers), dict(page.unknown)
    if any(row.phase is None for row in modules):
        unknown |= {"modules[].phase": NO_PHASE, **({} if serving else {"rows[].phase": NO_PHASE})}
    if is_training is None:
        unknown["is_training"] = NO_SCOPES
    if is_training and page.sessions:
        note = f"This is a training profile, not a server's. {note}"
    return replace(of_run(page), note=note, unknown=unknown, offers=tuple(map(of_run, offers)))


# --- requests ------------------------------------------------------------------------------------------------------


def _of_requests(serving: Sequence[HostRequests]) -> InferencePage:
    total, device, to_device, from_device = (
        np.concatenate([getattr(part, name) for part in serving])
        for name in ("total_ps", "device_ps", "to_device_ps", "from_device_ps")
    )
    is_grouped = all(part.is_grouped for part in serving)
    has_device = is_grouped and any(part.has_device for part in serving)
    has_transfers = is_grouped and any(part.has_transfers for part in serving)
    communication = to_device + from_device
    sessions = _Sessions(
        total=total,
        host=total - device - communication if has_device else None,
        device=device if has_device else None,
        communication=communication if has_transfers else None,
    )
    why_parts = (NO_DEVICE_TIME, NO_DEVICE_TIME, NO_TRANSFERS) if is_grouped else (NO_PARTS,) * 3
    events = " and ".join(dict.fromkeys(part.event for part in serving))
    batches = sum(part.batches for part in serving)
    in_batches = f", run in {counted(batches, 'batch', 'batches')}" if batches else ""
    rows = _rows([_row(name, sizes, None) for name, sizes in _by_model(serving).items()])
    spans = [(part.start_ps, part.start_ps + part.total_ps) for part in serving]
    unknown = dict.fromkeys(("launches", "rows[].cores", "rows[].phase"), NO_RUNS)
    page = _page(sessions, why_parts, spans, rows, f"A session is a request: {events}{in_batches}.", unknown)
    return replace(page, source="requests", subject=events, batches=batches)


def _by_model(parts: Sequence[HostRequests]) -> dict[str, Int64s]:
    """Latencies by the model's name, or by the event's name where no request names its model."""
    found: dict[str, list[Int64s]] = {}
    for part in parts:
        names = [*part.models, NO_MODEL if any(other.models for other in parts) else part.event]
        for number in np.unique(part.model).tolist():
            found.setdefault(names[number], []).append(part.total_ps[part.model == number])
    return {name: np.concatenate(sizes) for name, sizes in found.items()}


# --- annotated spans ---------------------------------------------------------------------------------------------


def _offers(parts: Sequence[HostRequests]) -> tuple[InferencePage, ...]:
    """A page for each annotation of some hosts, that with most time first."""
    by_name = grouped((spans.name, spans) for part in parts for spans in part.annotated)
    pages = [_of_spans(name, of) for name, of in by_name.items()]
    return tuple(sorted(pages, key=lambda page: -sum(row.total_ps for row in page.rows)))


def _of_spans(name: str, of: Sequence[AnnotatedSpans]) -> InferencePage:
    total = np.concatenate([spans.total_ps for spans in of])
    note = f"A session is a span of the annotation {shortened(name)}, which the profile does not call a request."
    unknown = dict.fromkeys(("launches", "rows[].cores", "rows[].phase"), NO_RUNS)
    ends = [(spans.start_ps, spans.start_ps + spans.total_ps) for spans in of]
    rows = _rows([_row(name, total, None)])
    page = _page(_Sessions(total, None, None, None), (NOT_LINKED,) * 3, ends, rows, note, unknown)
    return replace(page, source="annotated spans", subject=name)


def _offered(offers: Sequence[InferencePage]) -> str:
    """A sentence on what may be taken for requests; empty where nothing may."""
    if not offers:
        return ""
    names = [f"{shortened(page.subject)} ({page.sessions:,})" for page in offers]
    words = f" Annotations that may be requests: {examples(names, _MOST_NAMED)}"
    return f"{words}; --requests NAME treats one as the requests."


# --- module runs ---------------------------------------------------------------------------------------------------


def _module_rows(parts: Sequence[HostRequests], programs: Sequence[HloModules]) -> tuple[LatencyRow, ...]:
    """A row for each module, the one with the most time over the cores first."""
    of_hosts = [module for part in parts for module in part.modules]
    shares, modules = module_shares(of_hosts), grouped((module.name, module) for module in of_hosts)
    rows = [
        replace(
            _row(name, np.concatenate([run.duration_ps for run in runs]), max(run.cores for run in runs)),
            fraction=shares[name],
            phase=phase_of(name),
        )
        for name, runs in modules.items()
    ]
    rows.sort(key=lambda row: (-row.fraction, -row.total_ps, row.name))
    inputs = batch_inputs([row.name for row in rows], programs)
    return tuple(replace(row, inputs=inputs.get(row.name, ())) for row in rows)


def _of_modules(parts: Sequence[HostRequests], rows: tuple[LatencyRow, ...], why_none: str) -> InferencePage:
    if not rows:
        keys = ("source", "average", "minimum_ms", "maximum_ms", "launches", "sessions_per_second")
        return InferencePage(note=f"There are no sessions: {why_none}.", unknown=dict.fromkeys(keys, why_none))
    of_modules = grouped((module.name, module) for part in parts for module in part.modules)
    counts = {name: [*map(len, runs)] for name, runs in of_modules.items()}
    often = busiest_often({row.name: row.fraction for row in rows}, counts)
    shown = next((row for row in rows if row.name == often), rows[0])
    runs = of_modules[shown.name]
    duration = np.concatenate([run.duration_ps for run in runs])
    spans = [(run.start_ps, run.start_ps + run.duration_ps) for run in runs]
    launches = _launches(runs)
    unknown = {} if launches else {"launches": NO_LAUNCH}
    why_parts, note = (NO_HOST_TIME, "", NO_COMMUNICATION), _module_note(shown, runs, len(parts))
    page = _page(_Sessions(duration, None, duration, None), why_parts, spans, rows, note, unknown, launches)
    return replace(page, source="module runs", subject=shown.name)


def _module_note(shown: LatencyRow, runs: Sequence[ModuleLatency], hosts: int) -> str:
    """What a session is taken to be, and how sure that is."""
    note = (
        "This profile has no request events, as plain JAX records none. A session is one run of "
        f"{shown.name.partition('(')[0]}, from its first core's start to its last core's end. Of the modules that run "
        f"often, it takes the most time ({100 * shown.fraction:.1f}% of module time, over all cores). A session's time "
        "is device time, not a client's wait."
    )
    if any(run.cores > 1 and not run.is_joined for run in runs):
        note += " Its runs on several cores do not run at the same time, so each core's run counts by itself."
    if hosts > 1 and len(runs) > 1:
        note += " A run over several hosts counts on each of them."
    return note


def _launches(runs: Sequence[ModuleLatency]) -> LaunchLatency | None:
    """Latency from the launch: host time until the core could start, time behind earlier runs, and the run."""
    wait = np.concatenate([run.wait_ps for run in runs])
    if not len(wait):
        return None
    queued = np.concatenate([run.queued_ps for run in runs])
    device = np.concatenate([run.duration_ps[run.launched] for run in runs])
    sessions = _Sessions(wait + device, wait - queued, device, None, queued)
    return LaunchLatency(len(wait), sum(map(len, runs)), _latency(sessions, _mean), _percentiles(sessions))


# --- figures -------------------------------------------------------------------------------------------------------


def _page(
    sessions: _Sessions,
    why_parts: Sequence[str],
    spans: Sequence[tuple[Int64s, Int64s]],
    rows: tuple[LatencyRow, ...],
    note: str,
    unknown: dict[str, str],
    launches: LaunchLatency | None = None,
) -> InferencePage:
    """The figures of the page; `why_parts` say why a part of the latency is unknown: host, device, communication."""
    average, per_second = _latency(sessions, _mean), _per_second(spans)
    for part, why in zip(("host", "device", "communication"), why_parts, strict=True):
        if getattr(average, f"{part}_ps") is None:
            unknown |= dict.fromkeys((f"average.{part}_ms", f"percentiles[].{part}_ms"), why)
    if launches is not None:
        keys = ("launches.average.communication_ms", "launches.percentiles[].communication_ms")
        unknown |= dict.fromkeys(keys, NO_COMMUNICATION)
    if per_second is None:
        unknown["sessions_per_second"] = TOO_SHORT
    return InferencePage(
        sessions=len(sessions.total),
        average=average,
        minimum_ps=int(sessions.total.min()),
        maximum_ps=int(sessions.total.max()),
        percentiles=_percentiles(sessions),
        histogram=_histogram(sessions.total),
        launches=launches,
        sessions_per_second=per_second,
        rows=rows,
        note=note + _few(len(sessions.total)),
        unknown=unknown,
    )


def _few(count: int) -> str:
    """A sentence that says which percentiles are the slowest session, where it is worth saying."""
    slowest = [percentile for percentile in PERCENTILES if _place(percentile, count) == count - 1]
    if count < 2 or slowest[:1] in ([], [PERCENTILES[-1]]):
        return ""
    return f" With {count:,} sessions, percentiles from p{slowest[0]:g} up show the slowest one."


_MEDIAN = 50.0


def _place(percentile: float, count: int) -> int:
    """Which of `count` sessions in order is at a percentile."""
    return min(int(percentile / 100.0 * count), count - 1)


def _at(percentile: float, count: int) -> slice:
    """The sessions at a percentile: the median of an even number is between two."""
    place = _place(percentile, count)
    return slice(place - (percentile == _MEDIAN and count % 2 == 0), place + 1)


def _percentiles(sessions: _Sessions) -> tuple[Percentile, ...]:
    """The sessions at each of `PERCENTILES`; none of one session."""
    order = np.argsort(sessions.total, kind="stable")

    def at(percentile: float) -> Percentile:
        chosen = order[_at(percentile, len(order))]
        return Percentile(percentile, _latency(sessions, lambda column: _mean(column[chosen])))

    return tuple(map(at, PERCENTILES)) if len(order) > 1 else ()


def _latency(sessions: _Sessions, figure: Callable[[Int64s], float]) -> Latency:
    parts = (sessions.host, sessions.device, sessions.communication, sessions.queued)
    return Latency(figure(sessions.total), *(None if part is None else figure(part) for part in parts))


def _mean(values: Int64s) -> float:
    """The mean. It sums floats, because sums of a damaged profile may not fit 64 bits."""
    return float(np.mean(values.astype(np.float64)))


def _per_second(spans: Sequence[tuple[Int64s, Int64s]]) -> float | None:
    """Sessions per second: each host's sessions over the time from its first start to its last end, summed."""
    rates = [
        len(start) * 1e12 / (int(end.max()) - int(start.min()))
        for start, end in spans
        if len(start) > 1 and int(end.max()) > int(start.min())
    ]
    return sum(rates) if rates else None


def _rows(rows: Sequence[LatencyRow]) -> tuple[LatencyRow, ...]:
    """The rows with their shares of all latencies, the one with the most time first."""
    whole = sum(row.total_ps for row in rows)
    shared = [replace(row, fraction=row.total_ps / whole if whole else 0.0) for row in rows]
    return tuple(sorted(shared, key=lambda row: (-row.total_ps, row.name)))


def _row(name: str, sizes: Int64s, cores: int | None) -> LatencyRow:
    """The row of some latencies, without its share."""
    ordered = np.sort(sizes)
    return LatencyRow(
        name=name,
        runs=len(sizes),
        average_ps=_mean(sizes),
        minimum_ps=int(ordered[0]),
        maximum_ps=int(ordered[-1]),
        percentiles_ps=tuple(int(_mean(ordered[_at(at, len(sizes))])) for at in PERCENTILES if len(sizes) > 1),
        total_ps=sum(sizes.tolist()),  # exact, however large
        fraction=0.0,
        cores=cores,
        histogram=_histogram(sizes),
    )


BINS = 32
WIDE_RATIO = 10.0


def _histogram(total: Int64s) -> tuple[Bin, ...]:
    """The sessions by their whole latency."""
    low, high = float(total.min()), float(total.max())
    if low == high:
        return (Bin(low, high, len(total)),)
    edges = np.geomspace(low, high, BINS + 1) if high > WIDE_RATIO * low > 0 else np.linspace(low, high, BINS + 1)
    place = np.clip(np.searchsorted(edges, total.astype(np.float64), side="right") - 1, 0, BINS - 1)
    counts = np.bincount(place, minlength=BINS).tolist()
    return tuple(map(Bin, edges[:-1].tolist(), edges[1:].tolist(), counts))
