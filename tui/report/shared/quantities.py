"""Figures that several pages hold: the time of steps, what limits the program, and latencies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.words import SOURCE_HELP
from tpuprof.tui.draw.format import duration
from tpuprof.tui.report.fields import NO_REASON, Field, Metric, Table, attribute, nested, object_table
from tpuprof.tui.report.units import COUNT, NUMBER, PERCENT, TEXTS, TIME_MS, VERBATIM, Unit, plain

if TYPE_CHECKING:  # for types only: an overview starts sooner without numpy
    from tpuprof.parsers.pages.program.ops import Band
    from tpuprof.parsers.pages.shared.latencies import Latency, Percentile

RANK: Field[Any] = Field("rank", NUMBER, lambda _, rows: [int(row) + 1 for row in rows], "the row's place")

STEP_TIMES = (
    attribute("average", TIME_MS, "mean over the steps, each on its slowest core", name="average_ps"),
    attribute("standard_deviation", TIME_MS, "of the sample; 0 for one step", name="standard_deviation_ps"),
    attribute("median", TIME_MS, "the median step", name="median_ps"),
    attribute("minimum", TIME_MS, "the fastest step", name="minimum_ps"),
    attribute("maximum", TIME_MS, "the slowest step", name="maximum_ps"),
)
"""The five times of a summary over steps."""

FINGERPRINT = (
    attribute("canonical", VERBATIM, "of all that the compiler decided; equal for the same program"),
    attribute("structure", VERBATIM, "the same without the backend's configurations, which hold tiles"),
    attribute("of", VERBATIM, "text or proto, what it was computed from; those of one form compare"),
)
"""What a compiled program is known by."""


def told_words(band: Band | None, ascii_only: bool) -> str:
    """What is told of a time, ``36 ms to 42 ms``."""
    return "no claim" if band is None else f"{duration(band.low, ascii_only)} to {duration(band.high, ascii_only)}"


def told(unit: Unit) -> Unit:
    """Of a time that is told, from the least to the most in another unit."""
    ends = attribute("low", unit, "the least"), attribute("high", unit, "the most")
    return replace(nested(ends), words=told_words)


STEP_COUNT = attribute("count", COUNT, "how many steps there are", short="steps")

STEP_TIME = nested(
    (
        *STEP_TIMES,
        STEP_COUNT,
        attribute("source", VERBATIM, SOURCE_HELP),
        attribute("note", VERBATIM, "how steps without markers are found; empty for marked steps"),
    )
)
"""The summary over steps, and what it is made from."""


def _of_steps(key: str, heading: str, short: str, meaning: str) -> Metric[Any]:
    return attribute(f"bottleneck.{key}", PERCENT, meaning, heading, null=NO_REASON, short=short)


_BASE = "as a share of a step (or of step to step, if much lies between)"
_OF = "of a step or up to the next"
_INPUT = f"waits for input, mean over cores, plus other cores' waits for the core that waits most, {_BASE}"
_IDLE = f"time without an op, waits for input and for other cores left out, mean over cores, {_BASE}"
BOTTLENECK = (
    attribute("bottleneck.classification", VERBATIM, "what steps wait for: host, both, device or unknown"),
    _of_steps("input_percent", f"waiting for input, {_OF}", "waiting for input", _INPUT),
    _of_steps("output_percent", f"output, {_OF}", "output time", f"handing over output, mean over cores, {_BASE}"),
    _of_steps("idle_percent", f"idle, {_OF}", "idle time", _IDLE),
    attribute("bottleneck.statement", VERBATIM, "the verdict in a sentence or two"),
    attribute("bottleneck.next_steps", TEXTS, "what to do, the most useful first"),
)
"""What limits the program of a page."""

PERCENTILE = Unit("percent", plain, lambda value, _: value if isinstance(value, str) else f"{value:g}%", is_text=True)


@dataclass(frozen=True, slots=True)
class NamedLatency:
    """A latency that is at no percentile but is, say, the ``average``."""

    percentile: str
    latency: Latency


def latencies(percentiles: Iterable[Percentile], average: Latency | None) -> list[Percentile | NamedLatency]:
    """Rows of a table of latencies; the average stands last."""
    return [*percentiles, *([NamedLatency("average", average)] if average is not None else [])]


def latency_metrics(within: str = "") -> tuple[Metric[Any], ...]:
    """One session and its parts, which add up to the whole unless device time is unknown.

    The latency is in the source `within` a dotted name, with a dot behind it.
    """
    no_host = "no request event shows what the host did for a session"
    no_device = "no run of a module is linked to a session"
    no_transfers = "no request event shows which transfers belong to a session"
    parts = (
        ("host", "time that is neither device time nor communication", no_host, "host time"),
        ("device", "runs of modules for the session", no_device, "device time"),
        ("communication", "transfers to the device and from it", no_transfers, "transfers"),
    )
    total = attribute("total_ms", TIME_MS, "the whole session", "total", name=f"{within}total_ps")
    return total, *(
        attribute(f"{part}_ms", TIME_MS, meaning, part, null=null, short=short, name=f"{within}{part}_ps")
        for part, meaning, null, short in parts
    )


def queued(within: str = "") -> Metric[Any]:
    """A part that only latencies from a launch on have."""
    meaning = "the core was busy with earlier runs"
    return attribute("queued_ms", TIME_MS, meaning, "queued", null=NO_REASON, name=f"{within}queued_ps")


def latency_table(*more: Metric[Any], markdown: tuple[str, ...]) -> Table[Sequence[Percentile | NamedLatency]]:
    """A table of latencies, a row a percentile, with more figures at the end."""
    percentile = attribute("percentile", PERCENTILE, "that share of the sessions takes no longer")
    metrics = (percentile, *latency_metrics("latency."), *more)
    return object_table("percentiles", metrics, markdown=("percentile", *markdown))


LATENCIES = latency_table(markdown=("total_ms", "host_ms", "device_ms", "communication_ms"))
