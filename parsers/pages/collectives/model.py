"""The model of the page of collectives: what moves between cores, what compute hides of it, and who comes late.

All times are means over the cores, of one step each unless a sentence says otherwise. How they are measured is in
`parsers.pages.collectives.transfers` and `parsers.pages.collectives.host`.
"""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Floats, Int64s
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.pages.collectives.host_sums import WAITING, Sums
from tpuprof.parsers.pages.collectives.slices import SliceCollective

NO_LATE = "no core comes last in most steps, or there is only one core"
ONE_STEP = "each core's whole time counts as one step"
OUTSIDE = "collectives run outside the steps: "
NEVER_SEEN = "collectives between slices (DCN) are untested on hardware: they are read as XProf's source reads them"
NO_PARTNERS = "the collectives run over devices that are not shown: waiting for them is an unknown part of it"
ON_GPUS = "no kernel of this profile is a collective (NCCL, RCCL)"
ON_CPU = "no op of this profile that XLA ran on the CPU moves data between devices"
NO_COLLECTIVE = "no op of this profile moves data between cores"
NO_COPY = "no op of this profile copies asynchronously"
CUT = ", as far as it could be read"


@dataclass(frozen=True, slots=True)
class Rows(Sized):
    """Collectives, or groups of them: a row each. Times and bytes are means over cores, of one step.

    Attributes:
        name: of the op, or kind of the group; ops: the names of its ops, with commas between them.
        kind, axis, groups, pass_name, network: as of `Collective`; empty where unknown or where a group's differ.
        collectives: how many collectives the row sums.
        members: which of the page's groups, or -1 for single collectives.
        count: float64[n], occurrences.
        payload: float64[n], bytes; NaN where unknown.
        sent: float64[n], bytes that a core sends at least (`bandwidth.bus_factor`); NaN where unknown.
        hidden_ps, exposed_ps, stalled_ps: float64[n], the parts of the time in transfers.
        waiting_ps: float64[n], the part of `exposed_ps` in which cores wait for the last one.
        late_core: index of the core that comes last in most steps, -1 where none does.
        late_ps: float64[n], how much longer the others' median is in the collectives' own ops; NaN without such a core.
        late_steps: int64[n], in how many steps it comes last.
        peak: bytes/s that the row's links can carry; NaN where unknown.
    """

    name: tuple[str, ...]
    ops: tuple[str, ...]
    kind: tuple[str, ...]
    axis: tuple[str, ...]
    groups: tuple[str, ...]
    pass_name: tuple[str, ...]
    network: tuple[str, ...]
    is_async: tuple[bool, ...]
    collectives: Int64s
    members: tuple[tuple[int, ...], ...]
    count: Floats
    payload: Floats
    sent: Floats
    hidden_ps: Floats
    exposed_ps: Floats
    stalled_ps: Floats
    waiting_ps: Floats
    late_core: Int64s
    late_ps: Floats
    late_steps: Int64s
    peak: Floats
    cores: tuple[str, ...]

    @property
    def span_ps(self) -> Floats:
        """float64[n], the time in transfers."""
        return self.hidden_ps + self.exposed_ps + self.stalled_ps

    @property
    def payload_each(self) -> Floats:
        """float64[n], bytes of one occurrence, the mean of a group's."""
        return np.rint(_over(self.payload, self.count))

    @property
    def hidden_share(self) -> Floats:
        """float64[n], the hidden part of that."""
        return _over(self.hidden_ps, self.span_ps)

    @property
    def algorithm_rate(self) -> Floats:
        """float64[n], algbw in bytes/s: payload over the time without waiting."""
        return _over(self.payload, self.span_ps - self.waiting_ps) * 1e12

    @property
    def bus_rate(self) -> Floats:
        """float64[n], busbw in bytes/s: what a core sends at least over the same time."""
        return _over(self.sent, self.span_ps - self.waiting_ps) * 1e12

    @property
    def peak_share(self) -> Floats:
        """float64[n], that over the links' peak."""
        return _over(self.bus_rate, self.peak)

    @property
    def late(self) -> tuple[str | None, ...]:
        """The core that comes last, ``host:3``; None where none does."""
        return tuple(self.cores[core] if core >= 0 else None for core in self.late_core.tolist())


@dataclass(frozen=True, slots=True)
class CollectivesPage(Sums):
    """Collectives of a run: those that ran in the steps, over all hosts' cores.

    Attributes:
        hosts: that were read; cores: ``host:2``; step_names: those that count.
        steps_note: where the steps come from, or why there are none.
        device_type: None where the profile does not record it; peak: see `bandwidth.ici_peak`.
        totals: float64[3, steps], hidden, exposed and beside, each instant once, means over cores.
        step_ps: float64[steps], duration on the slowest core, as on the overview.
        slices: collectives between slices, of each host's first core.
        why_none: why there are none; empty where there are some.
        statement: the answer in a sentence or two.
        warnings: what is odd or left out; notes: what a reader must know of how it was read.
        lacks_partners: whether collectives wait for processes whose profiles are not there: for how long is unknown.
        copies: the same of asynchronous copies, which has none itself: there `peak` is HBM's.
    """

    hosts: tuple[str, ...]
    cores: tuple[str, ...]
    step_names: tuple[str, ...]
    steps_note: str
    has_steps: bool
    device_type: str | None
    peak: float | None
    totals: Floats
    step_ps: Floats
    slices: tuple[SliceCollective, ...]
    why_none: str
    statement: str
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    lacks_partners: bool = False
    copies: CollectivesPage | None = None

    @property
    def of_copies(self) -> CollectivesPage:
        """That of the asynchronous copies; itself where it is that."""
        return self.copies or self

    @property
    def hidden_ps(self) -> float | None:
        """Time a step in which transfers are in flight and the core works; None without transfers."""
        return self._mean(0)

    @property
    def exposed_ps(self) -> float | None:
        """Time a step in which the core does nothing but communicate."""
        return self._mean(1)

    @property
    def stalled_ps(self) -> float | None:
        """Time a step in which transfers are in flight and the core neither works nor communicates."""
        return self._mean(2)

    @property
    def step_time_ps(self) -> float | None:
        """Mean duration of a step on its slowest core; None without steps or cores."""
        return float(self.step_ps.mean()) if len(self.step_ps) else None

    @property
    def hidden_share(self) -> float | None:
        """The hidden part of the time in which transfers are in flight."""
        known = [self.hidden_ps, self.exposed_ps, self.stalled_ps]
        whole = sum(value or 0.0 for value in known)
        return (known[0] or 0.0) / whole if whole else None

    @property
    def exposed_share(self) -> float | None:
        exposed, step = self.exposed_ps, self.step_time_ps
        return exposed / step if exposed is not None and step else None

    @property
    def waiting_ps(self) -> float | None:
        """Time a step in which cores wait for the last one in collectives."""
        return (
            None
            if self.why_none or self.lacks_partners
            else float(self.sums[WAITING].sum()) / max(1, self.sums[0, 0].size)
        )

    @property
    def log_line(self) -> str:
        """One line for logs: ``82.0% of transfers hidden, 14.5% of the step exposed``; why where none are."""
        if self.hidden_share is None or self.exposed_share is None:
            return f"no collectives: {self.why_none}" if self.why_none else "no time in collectives"
        of = "the step" if self.has_steps else "the time"
        return f"{100 * self.hidden_share:.1f}% of transfers hidden, {100 * self.exposed_share:.1f}% of {of} exposed"

    def _mean(self, part: int) -> float | None:
        return float(self.totals[part].mean()) if self.totals.size and not self.why_none else None


def _over(part: Floats, whole: Floats) -> Floats:
    """A ratio; NaN where it has no denominator."""
    out: Floats = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
    return out
