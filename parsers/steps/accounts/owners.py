"""Who owns the time of a step: the one place that says what an op's time, or a moment without any op, is spent on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.hlo.shapes import is_in_host_memory
from tpuprof.parsers.ops.device import HOST_TRANSFER, Peaks
from tpuprof.parsers.ops.roofline import holds_ops, table_rates, uncounted
from tpuprof.parsers.ops.table import OpTable

Owner = Literal[
    "input",
    "compile",
    "host",
    "dispatch",
    "barrier",
    "collective_wait",
    "collective_transfer",
    "host_transfer",
    "copy",
    "loss",
    "uncounted",
    "between_ops",
    "ideal",
]
"""Who owns a part of a step (see `OWNER_WORDS`)."""

OWNERS: tuple[Owner, ...] = get_args(Owner)

OWNER_TITLES: Mapping[Owner, str] = {
    "input": "input wait",
    "compile": "compiling",
    "host": "host",
    "dispatch": "dispatch",
    "barrier": "barriers",
    "collective_wait": "collectives, waiting",
    "collective_transfer": "collectives, moving",
    "host_transfer": "host transfers",
    "copy": "copies",
    "loss": "below the roof",
    "uncounted": "not counted",
    "between_ops": "between ops",
    "ideal": "at the roof",
}
"""What each owner is called on the screen and in reports."""

OWNER_WORDS: Mapping[Owner, str] = {
    "input": "waiting for input: infeed ops or, if there are none, time without an op while the host waited for "
    "input or sent input",
    "compile": "no op ran while the host traced, lowered or compiled a program",
    "host": "no program ran, and the host had not launched the next one; without a TPU, all other time in which no "
    "op ran",
    "dispatch": "no program ran, although the host had launched the next one",
    "barrier": "no op ran while the core waited for others: at a barrier, after its step ended first, or while the "
    "host waited for another core's result",
    "collective_wait": "time in collectives, and in receives from other slices, beyond the time on the core that waits "
    "least",
    "collective_transfer": "time in collectives, and in sends and receives between slices, on the XLA Ops line, up "
    "to the time on the core that waits least; not hidden by compute",
    "host_transfer": "outfeed, sends to and receives from the host, and copies to and from host memory",
    "copy": "moving data within the device: copies, slices, reshapes, and waiting for asynchronous copies",
    "loss": "compute time beyond the time at the roof",
    "uncounted": "compute ops without a count of FLOPs and bytes, or on a device whose peaks are unknown",
    "between_ops": "no op ran, though a program did or no program is known",
    "ideal": "the time of compute ops at the roof: the larger of FLOPs over peak FLOP/s and bytes over peak bandwidth",
}
"""The definition of each owner. Every moment of a step has one; where two would fit, the order of `OWNERS` decides for
moments without an op, and the op's kind for the others."""

WAITS: tuple[Owner, ...] = ("barrier", "collective_wait")
"""The owners of the time that a core spends waiting for other cores."""

WITHOUT_OPS: tuple[Owner, ...] = ("compile", "host", "dispatch", "barrier", "between_ops")
"""The owners of moments without an op alone. So is input where no op waits for it (`has_input_ops`)."""

OWNER_GROUPS: Mapping[str, tuple[Owner, ...]] = {
    "input": ("input",),
    "host": ("host", "dispatch"),
    "collective": ("collective_transfer",),
    "transfer": ("host_transfer",),
    "copy": ("copy",),
    "loss": ("loss",),
    "waiting": WAITS,
    "idle": ("between_ops",),
}
"""Owners that a verdict counts together, by the short name of the group."""

_MOST_READ = 200  # copies whose text is read for the host's memory: the rest of them take no time
_INPUT = frozenset({"infeed", "sparsecorev0 infeed", "memcpy host to device"})  # the latter on GPUs

Modules = Callable[[], Iterable[HloModules]]
"""Gives the compiled programs of a profile; called only where they are needed."""


def owner_index(owner: Owner) -> int:
    """The column of an owner."""
    return OWNERS.index(owner)


@dataclass(frozen=True, slots=True)
class OpOwners:
    """Who owns the time of each op of a table.

    Attributes:
        owner: int64[ops], indices into `OWNERS`. Collectives are `collective_transfer` here: how much of it is waiting
            shows only beside other cores. Computing ops are `loss`.
        ideal: float64[ops], the part (0-1) of a computing op's time that is ideal; 0 for other ops.
    """

    owner: Int64s
    ideal: Floats

    def are(self, owner: Owner) -> Bools:
        own: Bools = self.owner == owner_index(owner)
        return own


def has_input_ops(table: OpTable) -> bool:
    """Whether some ops wait for input, or bring it."""
    return any(category in _INPUT for category in table.category)


def op_owners(table: OpTable, peaks: Peaks, modules: Modules = tuple) -> OpOwners:
    """Who owns each op's self time, and which part of that is ideal.

    Args:
        peaks: the peaks of one core. Where it gives none, computing ops are `uncounted`.
        modules: the compiled programs, which distinguish sends to other slices from sends to the host; asked only for
            those.
    """
    classes = table.classes()
    out = np.full(len(table), owner_index("loss"), np.int64)
    for name, owner in _OF_CLASS.items():
        out[[row for row, of in enumerate(classes) if of == name]] = owner_index(owner)
    out[[row for row, category in enumerate(table.category) if category in _INPUT]] = owner_index("input")
    out[copies_of_host_memory(table, np.flatnonzero(out == owner_index("copy")))] = owner_index("host_transfer")
    sends = [row for row, category in enumerate(table.category) if category and HOST_TRANSFER.search(category)]
    out[[row for row in sends if table.is_across_slices(row, modules)]] = owner_index("collective_transfer")
    computes = out == owner_index("loss")
    efficiency = table_rates(table, peaks).efficiency
    is_holder = holds_ops(table)  # a loop's own time does no work: it is lost as a whole
    has_roof = np.isfinite(efficiency) & ~is_holder
    out[(computes & ~has_roof & ~is_holder) | (computes & uncounted(table))] = owner_index("uncounted")
    ideal = np.where((out == owner_index("loss")) & has_roof, np.clip(np.nan_to_num(efficiency), 0.0, 1.0), 0.0)
    return OpOwners(out, ideal)


_OF_CLASS: Mapping[str, Owner] = {
    "copy": "copy",
    "collective": "collective_transfer",
    "host": "host_transfer",
    "unknown": "uncounted",
}


def copies_of_host_memory(table: OpTable, rows: NDArray[np.integer]) -> NDArray[np.intp]:
    """Those of some copies that move data to or from the host's memory, by the memory spaces in their HLO text.

    Args:
        rows: copies, asynchronous ones and slices included. Of many only those with most self time are looked at.
    """
    largest = rows[np.argsort(-table.self_ps[rows], kind="stable")][:_MOST_READ]
    return np.array([row for row in largest.tolist() if is_in_host_memory(table.expression(row))], np.intp)
