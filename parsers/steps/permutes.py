"""How long it takes from one core to another: a link that is slower than the others of the same permute.

What a core sends begins with its collective-permute, or the start of it. The target has it when its own one, or the
done, ends: exactly then where it waits there, else some time before. A ring waits for its slowest link as a whole, each
core for the one before, so that the cores' waits are alike and do not show which link it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s, distinct, median
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.ops.core.traced import OTHER, TRACED, OpRoles, TracedEvents
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.steps.boundaries.replica_groups import pairs_in

_CATEGORY = "collective-permute"
PERMUTES = OpRoles(
    lambda category: TRACED if (category or "").startswith(_CATEGORY) else OTHER,
    lambda table: np.full(len(table), TRACED, np.uint8),
)
"""Traces collective-permutes alone."""

SLOWER = 1.5
"""A link is slow from this multiple of the time of the others on."""

_LEAST_PS = 20_000_000
"""And by more than this: the clocks of cores differ by some 10 microseconds."""

_LEAST_TIMES, _LEAST_OTHERS = 3, 2
_WAITED = 0.01  # share of a transfer's time from which on the target waits for it
_STARTED = pattern(r"-done\([^%]*%([\w.\-]+)")


@dataclass(frozen=True, slots=True)
class SlowLink:
    """A link between two cores of a host over which transfers take longer than between the others.

    Attributes:
        source, target: ``host:ordinal`` of the cores.
        count: how many transfers of the capture went over it.
        link_ps, others_ps: the mean time of one of these, and that of the same permutes between other cores.
    """

    source: str
    target: str
    count: int
    link_ps: float
    others_ps: float

    @property
    def excess_ps(self) -> float:
        """How much longer its transfers took, all together."""
        return self.count * (self.link_ps - self.others_ps)


@dataclass(frozen=True, slots=True)
class Permute:
    """The transfers of one collective-permute as a core sees them, in order.

    Attributes:
        pairs: the ids of the devices that it sends from and to.
        begin_ps, end_ps: int64[n], from where the core begins to send to where it has what is sent to it.
        waits: bool[n], whether the core waits for that at the end.
    """

    pairs: tuple[tuple[int, int], ...]
    begin_ps: Int64s
    end_ps: Int64s
    waits: Bools


def permutes_of(table: OpTable, events: TracedEvents) -> Mapping[str, Permute]:
    """The collective-permutes of a core, by program and name.

    Args:
        table: of the core; events: of its traced ops.
    """
    starts, dones = dict[str, int](), dict[str, int]()
    for row in distinct(events.row).tolist():
        category = table.category[row] or ""
        if category.startswith(_CATEGORY):
            started = _STARTED.search(table.expression(row))
            name = f"{table.program_id[row]} {table.name[row] if started is None else started[1]}"
            (dones if category.endswith("-done") else starts)[name] = row
    found = {}
    for name, row in starts.items():
        begun = np.flatnonzero(events.row == row)
        ended = np.flatnonzero(events.row == dones.get(name, row))
        ended = ended[events.end_ps[ended] >= events.end_ps[begun[0]]]  # the capture may begin with a done alone
        begun, ended = begun[: len(ended)], ended[: len(begun)]
        begin, end = events.start_ps[begun], events.end_ps[ended]
        waits = events.self_ps[ended] >= _WAITED * (end - begin)
        found[name] = Permute(pairs_in(table.expression(row)), begin, end, waits)
    return found


def slow_link(names: Sequence[str], cores: Sequence[Mapping[str, Permute]]) -> SlowLink | None:
    """The link between cores of a host that costs most, of those that are slow; None where nothing shows one.

    Args:
        names: of the cores, in the order of their devices' ids; cores: the permutes of each.
    """
    slow: dict[tuple[int, int], list[tuple[int, float, float]]] = {}
    seen = Counter[tuple[int, int]]()
    for name in cores[0] if cores else ():
        of_cores = [core[name] for core in cores if name in core]
        if len(of_cores) < len(cores) or len({len(of.begin_ps) for of in of_cores}) > 1:
            continue  # the capture cuts them differently
        links = sorted(_local(of_cores[0].pairs, len(cores)))
        took = {(source, target): of_cores[target].end_ps - of_cores[source].begin_ps for source, target in links}
        seen.update(links)
        for link, times in took.items():
            waits = of_cores[link[1]].waits & (times > 0)
            others = [max(int(of.min()), 0) for other, of in took.items() if other != link]
            if np.count_nonzero(waits) < _LEAST_TIMES or len(others) < _LEAST_OTHERS:
                continue
            usual, own = median(np.array(others, np.float64)), median(times[waits].astype(np.float64))
            if int(times.min()) >= max(SLOWER * usual, usual + _LEAST_PS):  # stages of a pipeline wait now and then
                slow.setdefault(link, []).append((len(times), own, usual))
    found = []
    for (source, target), of in slow.items():
        count = sum(number for number, _, _ in of)
        own, usual = (sum(each[0] * each[which] for each in of) / count for which in (1, 2))
        if 2 * len(of) > seen[source, target]:
            found.append(SlowLink(names[source], names[target], count, own, usual))
    return max(found, key=lambda link: link.excess_ps, default=None)


def _local(pairs: Sequence[tuple[int, int]], cores: int) -> set[tuple[int, int]]:
    """The places of the cores of one host in pairs of devices: as in each part of so many ids, where all are alike."""
    parts: dict[int, set[tuple[int, int]]] = {}
    for source, target in pairs:
        if source // cores == target // cores and source != target:
            parts.setdefault(source // cores, set()).add((source % cores, target % cores))
    are_alike = all(first == second for first, second in pairwise(parts.values()))
    return next(iter(parts.values()), set()) if are_alike else set()
