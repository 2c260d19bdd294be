"""The quantities of the inference page."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.pages.shared.latencies import NO_PERCENTILES, NO_PHASE, PERCENTILES, Bin, InferencePage, LatencyRow
from tpuprof.tui.report.fields import NO_REASON, Field, Metric, Table, attribute, listed, nested, object_table
from tpuprof.tui.report.shared.quantities import LATENCIES, PERCENTILE, latency_metrics, latency_table, queued
from tpuprof.tui.report.units import COUNT, FLAG, NUMBER, SHARE, TEXTS, TIME_MS, TIME_PS, VERBATIM

SIZES: Table[Sequence[int]] = Table(
    "percentiles",
    (
        Field("percentile", PERCENTILE, lambda _, rows: [PERCENTILES[row] for row in rows], "of the runs"),
        Field("total_ms", TIME_MS, lambda sizes, rows: [sizes[row] for row in rows], "the whole run or session"),
    ),
    len,
)

HISTOGRAM: Table[Sequence[Bin]] = object_table(
    "histogram",
    (
        attribute("low_ms", TIME_MS, "sessions of the bin take at least this long"),
        attribute("high_ms", TIME_MS, "and less than this; in the last bin, at most this"),
        attribute("count", COUNT, "sessions in the bin"),
    ),
)
_HISTOGRAM = attribute("histogram", listed(HISTOGRAM), "sessions by latency; bins have equal widths, or equal ratios")


def _at(place: int) -> Metric[LatencyRow]:
    """The latency at one of `PERCENTILES`, as a column of Markdown."""
    name = f"{PERCENTILES[place]:g}%"
    return Metric(name, TIME_PS, lambda row: row.at(place), f"at {name}", NO_PERCENTILES, name)


_OF_ROWS = "of the time of all rows, 0-1; of modules over all cores, each core's runs added up"
_PHASE = "what the module does, by its name: prefill, decode, sampling"
_INPUTS = "arguments that show the module's batch: integers, and those that differ from its other shapes"


def rows_of(kind: str, key: str = "rows") -> Table[Sequence[LatencyRow]]:
    """The table of models or modules, `kind` says which; only modules run on cores."""
    metrics: tuple[Metric[LatencyRow], ...] = (
        attribute("name", VERBATIM, "of the model or module", kind),
        attribute("runs", COUNT, "how many", "runs"),
        attribute("average_ms", TIME_MS, "mean latency", "average"),
        attribute("minimum_ms", TIME_MS, "the shortest"),
        attribute("maximum_ms", TIME_MS, "the longest", "longest"),
        attribute("percentiles", listed(SIZES), "latencies; none of one", name="percentiles_ps"),
        attribute("total_ms", TIME_MS, "all together"),
        attribute("time_fraction", SHARE, _OF_ROWS, "share", name="fraction"),
        attribute("cores", COUNT, "that ran the module", "cores", null=NO_REASON),
        attribute("phase", VERBATIM, _PHASE, "phase", null=NO_PHASE),
        attribute("inputs", TEXTS, _INPUTS, "inputs"),
        *((_HISTOGRAM,) if key == "modules" else ()),
    )
    columns = [_at(place) for place in range(len(PERCENTILES))]
    markdown = ("name", "time_fraction", "runs", "average_ms", *(column.key for column in columns), "maximum_ms")
    return object_table(key, metrics, columns, markdown=(*markdown, *_OF_MODULES * (kind == "module")))


_OF_MODULES = ("cores", "phase", "inputs")
MODELS, ROWS, MODULES = rows_of("model"), rows_of("module"), rows_of("module", "modules")

_PARTS = ("total_ms", "host_ms", "queued_ms", "device_ms", "communication_ms")
LAUNCHED = latency_table(queued("latency."), markdown=_PARTS)
LAUNCHES = (
    attribute("count", COUNT, "runs whose launch is known"),
    attribute("of", COUNT, "all runs"),
    attribute("average", nested((*latency_metrics(), queued())), "mean over these"),
    attribute("percentiles", listed(LAUNCHED), "latencies from the launch on the host to the end of the run"),
)
_PER_SECOND = "sessions over the time from a host's first start to its last end"
BEFORE_ROWS: tuple[Metric[InferencePage], ...] = (
    attribute("source", VERBATIM, "what a session is: requests, annotated spans, or module runs", null=NO_REASON),
    attribute("subject", VERBATIM, "the name of the request events, of the annotation, or of the module"),
    attribute("is_training", FLAG, "as on the overview", null=NO_REASON, short="training"),
    attribute("sessions", COUNT, "how many there are"),
    attribute("batches", COUNT, "that requests were put into"),
    attribute("sessions_per_second", NUMBER, _PER_SECOND, null=NO_REASON, short="sessions per second"),
    attribute("average", nested(latency_metrics()), "mean over the sessions", null=NO_REASON, short="latency"),
    attribute("minimum_ms", TIME_MS, "the shortest session", null=NO_REASON),
    attribute("maximum_ms", TIME_MS, "the longest session", null=NO_REASON),
    attribute("percentiles", listed(LATENCIES), "latencies of sessions; none of one"),
    _HISTOGRAM,
    attribute("launches", nested(LAUNCHES), "of the module's runs", null=NO_REASON, short="latency from launch to end"),
)
OFFERS: Table[Sequence[InferencePage]] = object_table(
    "offers",
    (
        attribute("name", VERBATIM, "of an annotation whose spans may be the requests", name="subject"),
        attribute("spans", COUNT, "how many there are", name="sessions"),
    ),
)
NOTE: Metric[InferencePage] = attribute("note", VERBATIM, "what the sessions are, in a sentence or two")
