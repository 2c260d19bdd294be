"""The quantities of the chips right now."""

from __future__ import annotations

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.capture.runtime_metrics import Device, Reading, collectives_between, headline
from tpuprof.tui.draw.format import utc
from tpuprof.tui.report.fields import Metric, attribute, in_order, nested, object_table
from tpuprof.tui.report.units import BYTES, COUNT, NUMBER, PERCENT, TEXTS, VERBATIM


@dataclass(frozen=True, slots=True)
class ReadingPair:
    """A reading, and the one before it, to see what happened between; None for the first."""

    reading: Reading
    before: Reading | None


@dataclass(frozen=True, slots=True)
class EndedCollectives:
    """Collectives between slices that ended between two readings."""

    count: int
    mean_latency_us: float


def _ended(pair: ReadingPair) -> EndedCollectives | None:
    between = collectives_between(pair.before, pair.reading) if pair.before is not None else None
    return None if between is None else EndedCollectives(*between)


def _silent(pair: ReadingPair) -> list[str]:
    return [f"{address}: {reason}" for address, reason in pair.reading.silent.items()]


_NONE_ENDED = "the runtime counts none, none ended since the previous reading, or this is the first reading"
_TOLD = "the runtime does not report it"
_DEVICE: tuple[Metric[Device], ...] = (
    attribute("address", VERBATIM, "of the process's metric service", "address"),
    attribute("id", COUNT, "the runtime's number of the device; each process counts from 0", "device"),
    attribute("chip", COUNT, "number of its chip", "chip"),
    attribute("duty_percent", PERCENT, "share of the last interval in which the TensorCore worked", "duty", null=_TOLD),
    attribute("hbm_used_bytes", BYTES, "allocated of its memory", "HBM used", null=_TOLD),
    attribute("hbm_total_bytes", BYTES, "all of its memory", "HBM", null=_TOLD),
    attribute("bandwidth_percent", PERCENT, "share of HBM's peak bandwidth in use", "bandwidth", null=_TOLD),
    attribute("idle_seconds", NUMBER, "how long it has been idle", "idle s", null=_TOLD),
    attribute("queued_programs", COUNT, "programs that wait for it", "queue", null=_TOLD),
)
DEVICES = object_table(
    "devices",
    _DEVICE,
    markdown=in_order("id chip duty_percent hbm_used_bytes hbm_total_bytes bandwidth_percent queued_programs"),
)

_ENDED: tuple[Metric[EndedCollectives], ...] = (
    attribute("count", COUNT, "that ended since the previous reading"),
    attribute("mean_latency_us", NUMBER, "mean time from end to end, microseconds"),
)
BEFORE_DEVICES: tuple[Metric[ReadingPair], ...] = (
    Metric("time", VERBATIM, lambda pair: utc(pair.reading.time_seconds), "when, UTC"),
    Metric("headline", VERBATIM, lambda pair: headline(pair.reading), "the answer in a sentence"),
)
AFTER_DEVICES: tuple[Metric[ReadingPair], ...] = (
    Metric("collectives", nested(_ENDED), _ended, "between slices", _NONE_ENDED),
    Metric("silent", TEXTS, _silent, "servers that did not answer, and why"),
)
