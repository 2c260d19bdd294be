"""The figures of collectives as a whole, of steps, and of those between slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.collectives.bandwidth import NO_PEAK
from tpuprof.parsers.collectives.slices import SliceCollective
from tpuprof.parsers.pages.collectives.model import CollectivesPage
from tpuprof.tui.pages.collectives.fields import RATE
from tpuprof.tui.report.fields import Metric, Table, attribute, in_order, object_table
from tpuprof.tui.report.units import BYTES, COUNT, SHARE_PERCENT, TEXT, TEXTS, TIME_MS, VERBATIM


@dataclass(frozen=True, slots=True)
class CollectiveStep:
    """One step: its name, and means over cores in picoseconds."""

    name: str
    step_time_ps: float
    hidden_ps: float
    exposed_ps: float
    stalled_ps: float


def steps_of(page: CollectivesPage) -> list[CollectiveStep]:
    """The steps of a page."""
    columns = (page.step_ps.tolist(), *(np.asarray(part).tolist() for part in page.totals))
    return [CollectiveStep(*row) for row in zip(page.step_names, *columns, strict=True)] if not page.why_none else []


STEPS = object_table(
    "steps",
    (
        attribute("name", TEXT, "the step", "step"),
        Metric("step_time_ms", TIME_MS, lambda step: step.step_time_ps, "mean over cores", heading="time"),
        Metric("hidden_time_ms", TIME_MS, lambda step: step.hidden_ps, "as the page's, of this step", heading="hidden"),
        Metric("exposed_time_ms", TIME_MS, lambda step: step.exposed_ps, "the same", heading="exposed"),
        Metric("beside_time_ms", TIME_MS, lambda step: step.stalled_ps, "the same", heading="beside"),
    ),
    markdown=in_order("name step_time_ms hidden_time_ms exposed_time_ms beside_time_ms"),
)


# --- between slices

_NO_BYTES = "the profile does not tell how many slices take part, or in what kind of transfer"
_NO_SLACK = "there is no slack, or the bytes are unknown"


def _mean(name: str) -> Callable[[SliceCollective], float]:
    return lambda row: getattr(row, name) / row.occurrences


def required_rate(row: SliceCollective) -> float | None:
    """Bytes/s that the network must carry so that nothing stalls: the bytes over the slack; None where unknown."""
    slack = row.slack_ps / row.occurrences
    return row.network_bytes / slack * 1e12 if row.network_bytes is not None and slack > 0 else None


SLICES: Table[Sequence[SliceCollective]] = object_table(
    "slices",
    (
        attribute("rendezvous", TEXT, "the collective's name", "collective"),
        attribute("transfer_type", TEXT, "what it does", "kind", null="the compiled HLO does not say"),
        attribute("send_op", TEXT, "the op that begins it", "send"),
        attribute("recv_op", TEXT, "the op that ends it", "recv-done"),
        attribute(
            "occurrences", COUNT, "sends with the recv-done that ends them, over the hosts' first cores", "count"
        ),
        Metric(
            "slack_ms",
            TIME_MS,
            _mean("slack_ps"),
            "from the send's begin to the recv-done's, without the time in any collective's ops between slices: what "
            "the network may take without stalling the core",
            heading="slack",
        ),
        Metric(
            "observed_ms",
            TIME_MS,
            _mean("observed_ps"),
            "from the begin of the send to the end of the recv-done",
            heading="observed",
        ),
        Metric("stall_ms", TIME_MS, _mean("stall_ps"), "time in the collective's four ops", heading="stall"),
        Metric("send_stall_ms", TIME_MS, _mean("send_ps"), "time in the send"),
        Metric("send_done_stall_ms", TIME_MS, _mean("send_done_ps"), "time in the send-done"),
        Metric("recv_stall_ms", TIME_MS, _mean("recv_ps"), "time in the recv"),
        Metric("recv_done_stall_ms", TIME_MS, _mean("recv_done_ps"), "time in the recv-done"),
        Metric("total_stall_ms", TIME_MS, lambda row: row.stall_ps, "stall of all occurrences", heading="total stall"),
        Metric(
            "network_bytes",
            BYTES,
            lambda row: row.network_bytes,
            "what a core sends over the network each time, by XProf's formulas",
            _NO_BYTES,
            "bytes",
        ),
        Metric(
            "required_gigabytes_per_second",
            RATE,
            required_rate,
            "the bytes over the slack; XProf gives it in Gbit/s",
            _NO_SLACK,
            "needed GB/s",
        ),
    ),
    markdown=in_order(
        "rendezvous transfer_type slack_ms observed_ms stall_ms occurrences network_bytes required_gigabytes_per_second"
    ),
)


# --- figures of the page

_NONE = "no collective ran in a step"

METRICS: tuple[Metric[CollectivesPage], ...] = (
    attribute("log_line", VERBATIM, "how much is hidden and exposed, in a line for logs"),
    attribute("statement", VERBATIM, "the same, and who waits for whom, in a sentence or two"),
    attribute("notes", TEXTS, "what to know of these figures"),
    Metric(
        "hidden_percent",
        SHARE_PERCENT,
        lambda page: page.hidden_share,
        "the part of the time in transfers in which the core works",
        _NONE,
        "hidden, of the time in transfers",
    ),
    Metric(
        "exposed_percent",
        SHARE_PERCENT,
        lambda page: page.exposed_share,
        "time in collectives' own ops, of the step",
        _NONE,
        "exposed, of the step",
    ),
    Metric(
        "hidden_time_ms",
        TIME_MS,
        lambda page: page.hidden_ps,
        "time a step in which a transfer is under way and the core works",
        _NONE,
        "hidden",
    ),
    Metric(
        "exposed_time_ms",
        TIME_MS,
        lambda page: page.exposed_ps,
        "time a step in which the core does nothing but collectives; the finding on exposed collectives has the same, "
        "without those between slices",
        _NONE,
        "exposed",
    ),
    Metric(
        "beside_time_ms",
        TIME_MS,
        lambda page: page.stalled_ps,
        "time a step in which a transfer is under way and the core does neither",
        _NONE,
        "beside",
    ),
    Metric(
        "waiting_time_ms",
        TIME_MS,
        lambda page: page.waiting_ps,
        "the part of the exposed time in which cores wait for the last one",
        _NONE,
        "waiting for late cores",
    ),
    Metric(
        "step_time_ms",
        TIME_MS,
        lambda page: page.step_time_ps,
        "mean over steps and cores",
        "no device, or no step",
        "step",
    ),
    Metric(
        "peak_gigabytes_per_second",
        RATE,
        lambda page: page.peak,
        "what a chip can send over all its ICI links",
        NO_PEAK,
        "peak of the links, GB/s",
    ),
    Metric("core_count", COUNT, lambda page: len(page.cores), "cores that the means are over"),
    Metric(
        "step_count",
        COUNT,
        lambda page: len(page.step_names) if page.has_steps else None,
        "steps that the means are over",
        "each core's whole time counts as one step",
    ),
    Metric(
        "device_type",
        TEXT,
        lambda page: page.device_type,
        "as the profile names it",
        "the profile does not tell",
        "device",
    ),
)
