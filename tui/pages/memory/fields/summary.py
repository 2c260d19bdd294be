"""The quantities of what a memory space comes to: whose its bytes are, the plan, and how large the batch may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tpuprof.parsers.memory.batch.fit import BatchFit, BatchNeed
from tpuprof.parsers.memory.summary import SpaceSummary
from tpuprof.tui.report.fields import Metric, Table, attribute, object_table
from tpuprof.tui.report.units import BYTES, BYTES_BY_NAME, COUNT, FLAG, VERBATIM, Unit


class Summed(Protocol):
    """What has a summary, or not, and says how large the batch may be."""

    @property
    def summary(self) -> SpaceSummary | None:
        """What the memory space comes to; None without one."""
        ...

    @property
    def fit(self) -> BatchFit: ...


def _of_fit(key: str, unit: Unit, name: str, meaning: str, null: str = "fit_unknown says why") -> Metric[Summed]:
    return attribute(key, unit, meaning, null=null, name=f"fit.{name}")


_NO_PLAN = "it fits as it is, or the limit is unknown"
_ADDS_UP = "bytes at the peak by owner, which add up to the peak"
_CHEAPEST = "the cheapest combination of changes that fits, or the one that comes closest"

FIT: tuple[Metric[Summed], ...] = (
    attribute("owners_bytes", BYTES_BY_NAME, _ADDS_UP, null="no module has figures", name="summary.account.owners"),
    attribute("plan", VERBATIM, _CHEAPEST, null=_NO_PLAN, name="summary.plan.sentence"),
    _of_fit("fit_batch", COUNT, "batch", "the batch as it is compiled, on one device"),
    Metric(
        "fit_inputs", VERBATIM, lambda of: list(of.fit.inputs), "the arguments whose leading dimension is the batch"
    ),
    _of_fit("fit_growing_bytes", BYTES, "growing_bytes", "the part of the peak that grows with the batch"),
    _of_fit("fit_largest_batch", COUNT, "largest", "the largest batch that fits, by arithmetic over shapes"),
    _of_fit("fit_largest_bytes", BYTES, "largest_bytes", "the peak at that batch"),
    _of_fit("fit_next_batch", COUNT, "next", "the next round batch, which does not fit"),
    _of_fit("fit_next_bytes", BYTES, "next_bytes", "the peak at that batch"),
    _of_fit("fit_may_recompute", FLAG, "may_recompute", "the compiler may make it fit by recomputing", ""),
    Metric("fit_unknown", VERBATIM, lambda of: of.fit.unknown or None, "why that is unknown", "it is known"),
)

BATCHES: Table[Sequence[BatchNeed]] = object_table(
    "batches",
    (
        attribute("batch", COUNT, "a batch, on one device"),
        attribute("peak_bytes", BYTES, "the peak at that batch, by arithmetic over shapes"),
        attribute("over_bytes", BYTES, "how much too large that is; negative if it fits"),
        attribute("what", VERBATIM, "which batch it is"),
    ),
)
