"""The figures of collectives as a whole, of steps, and of those between slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.collectives.bandwidth import NO_PEAK
from tpuprof.parsers.pages.collectives.model import CollectivesPage
from tpuprof.parsers.pages.collectives.slices import SliceCollective
from tpuprof.tui.pages.collectives.fields import RATE
from tpuprof.tui.report.fields import Metric, Table, attribute, in_order, object_table
from tpuprof.tui.report.units import BYTES, COUNT, SHARE_PERCENT, TEXT, TEXTS, TIME_MS, VERBATIM, Unit


@dataclass(frozen=True, slots=True)
class CollectiveStep:
    """One step: its name, its duration on the slowest core, and means over cores, in picoseconds."""

    name: str
    step_time_ps: float
    hidden_ps: float
    exposed_ps: float
    stalled_ps: float


def steps_of(page: CollectivesPage) -> list[CollectiveStep]:
    """The steps of a page."""
    columns = (page.step_ps.tolist(), *(np.asarray(part).tolist() for part in page.totals))
    return [CollectiveStep(*row) for row in zip(page.step_names, *columns, strict=True)] if not page.why_none else []


_OUTSIDE = "where all collectives run outside of the steps, on GPUs and on the CPU, the longest core's whole time"
STEPS = object_table(
    "steps",
    (
        attribute("name", TEXT, "the step", "step"),
        attribute("step_time_ms", TIME_MS, f"its duration on the slowest core; {_OUTSIDE}", "time"),
        attribute("hidden_time_ms", TIME_MS, "as the page's, of this step", "hidden", name="hidden_ps"),
        attribute("exposed_time_ms", TIME_MS, "the same, including those between slices", "exposed", name="exposed_ps"),
        attribute("beside_time_ms", TIME_MS, "the same", "beside", name="stalled_ps"),
    ),
    markdown=in_order("name step_time_ms hidden_time_ms exposed_time_ms beside_time_ms"),
)


# --- between slices

_NO_BYTES = "the profile does not say how many slices take part, or in what kind of transfer"
_NO_SLACK = "there is no slack, or the bytes are unknown"


def _mean(key: str, name: str, meaning: str, heading: str = "") -> Metric[SliceCollective]:
    return Metric(key, TIME_MS, lambda row: getattr(row, name) / row.occurrences, meaning, heading=heading)


def required_rate(row: SliceCollective) -> float | None:
    """Bytes/s that the network must carry so that nothing stalls: the bytes over the slack; None where unknown."""
    slack = row.slack_ps / row.occurrences
    return row.network_bytes / slack * 1e12 if row.network_bytes is not None and slack > 0 else None


_OCCURRENCES = "sends with the recv-done that ends them, over the hosts' first cores"
_SLACK = (
    "from the start of the send to the start of the recv-done, without the time in any collective's ops between "
    "slices: the time that the network may take without stalling the core"
)
_BYTES = "bytes that a core sends over the network each time, by XProf's formulas"
_NEEDED = "the bytes over the slack; XProf gives it in Gbit/s"
SLICES: Table[Sequence[SliceCollective]] = object_table(
    "slices",
    (
        attribute("rendezvous", TEXT, "the collective's name", "collective"),
        attribute("transfer_type", TEXT, "what it does", "kind", null="the compiled HLO does not say"),
        attribute("send_op", TEXT, "the op that begins it", "send"),
        attribute("recv_op", TEXT, "the op that ends it", "recv-done"),
        attribute("occurrences", COUNT, _OCCURRENCES, "count"),
        _mean("slack_ms", "slack_ps", _SLACK, "slack"),
        _mean("observed_ms", "observed_ps", "from the begin of the send to the end of the recv-done", "observed"),
        _mean("stall_ms", "stall_ps", "time in the collective's four ops", "stall"),
        _mean("send_stall_ms", "send_ps", "time in the send"),
        _mean("send_done_stall_ms", "send_done_ps", "time in the send-done"),
        _mean("recv_stall_ms", "recv_ps", "time in the recv"),
        _mean("recv_done_stall_ms", "recv_done_ps", "time in the recv-done"),
        attribute("total_stall_ms", TIME_MS, "stall of all occurrences", "total stall", name="stall_ps"),
        attribute("network_bytes", BYTES, _BYTES, "bytes", null=_NO_BYTES),
        Metric("required_gigabytes_per_second", RATE, required_rate, _NEEDED, _NO_SLACK, "needed GB/s"),
    ),
    markdown=in_order(
        "rendezvous transfer_type slack_ms observed_ms stall_ms occurrences network_bytes required_gigabytes_per_second"
    ),
)


def slice_table(page: CollectivesPage) -> Sequence[SliceCollective]:
    """The collectives between slices, those that stall most first."""
    return sorted(page.slices, key=lambda each: -each.stall_ps)


# --- figures of the page

_HIDDEN_SHARE = "the part of the time in transfers in which the core works"
_EXPOSED_SHARE = "time in collectives' own ops, including those between slices, as a share of the step"
_HIDDEN_TIME = "time per step in which a transfer is in flight and the core works"
_EXPOSED_TIME = (
    "time per step in collectives that no compute hides, including those between slices, as in the ledger; the "
    "finding on exposed collectives lists those separately"
)
_BESIDE_TIME = "time per step in which a transfer is in flight and the core does neither"
_PEAK = "the peak of a chip over all its ICI links"
_WAITING_TIME = (
    "the part of the exposed time in which cores wait for the last one; without those between slices, for which it "
    "is unknown"
)


def _part(key: str, unit: Unit, name: str, meaning: str, heading: str) -> Metric[CollectivesPage]:
    return attribute(key, unit, meaning, heading, null="no collective ran in a step", name=name)


def _steps(page: CollectivesPage) -> int | None:
    return len(page.step_names) if page.has_steps else None


def _step_time(page: CollectivesPage) -> float | None:
    return page.step_time_ps if page.has_steps else None


_COPIES_HIDDEN = "the part of the time in which asynchronous copies are in flight in which the core works"
_COPIES_EXPOSED = "time per step in which the core does nothing but wait for asynchronous copies, or start them"
_NO_COPIES = "no asynchronous copy ran in a step"


def _of_copies(key: str, unit: Unit, name: str, meaning: str, heading: str) -> Metric[CollectivesPage]:
    return attribute(key, unit, meaning, heading, null=_NO_COPIES, name=f"of_copies.{name}")


_STEP_TIME = "mean duration of a step on its slowest core; where all collectives run outside of the steps, unknown"

METRICS: tuple[Metric[CollectivesPage], ...] = (
    attribute("log_line", VERBATIM, "how much is hidden and exposed, in one line for logs"),
    attribute("statement", VERBATIM, "the same, and who waits for whom, in a sentence or two"),
    attribute("notes", TEXTS, "notes on these figures"),
    _part("hidden_percent", SHARE_PERCENT, "hidden_share", _HIDDEN_SHARE, "hidden, of the time in transfers"),
    _part("exposed_percent", SHARE_PERCENT, "exposed_share", _EXPOSED_SHARE, "exposed, of the step"),
    _part("hidden_time_ms", TIME_MS, "hidden_ps", _HIDDEN_TIME, "hidden"),
    _part("exposed_time_ms", TIME_MS, "exposed_ps", _EXPOSED_TIME, "exposed"),
    _part("beside_time_ms", TIME_MS, "stalled_ps", _BESIDE_TIME, "beside"),
    _part("waiting_time_ms", TIME_MS, "waiting_ps", _WAITING_TIME, "waiting for late cores"),
    _of_copies("copies_hidden_percent", SHARE_PERCENT, "hidden_share", _COPIES_HIDDEN, "copies, hidden of their time"),
    _of_copies("copies_exposed_time_ms", TIME_MS, "exposed_ps", _COPIES_EXPOSED, "copies, exposed"),
    Metric("step_time_ms", TIME_MS, _step_time, _STEP_TIME, null="no device, or no step", heading="step"),
    attribute("peak_gigabytes_per_second", RATE, _PEAK, "peak of the links, GB/s", null=NO_PEAK, name="peak"),
    Metric("core_count", COUNT, lambda page: len(page.cores), "cores that the means are over"),
    Metric("step_count", COUNT, _steps, "steps that the means are over", "each core's whole time counts as one step"),
    attribute("device_type", TEXT, "as the profile names it", "device", null="the profile does not say"),
)
