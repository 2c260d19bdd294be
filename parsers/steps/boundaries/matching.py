"""Which steps of several hosts belong together.

Steps are matched by name, as long as names do not repeat and the matched steps run at the same time. Otherwise they are
matched by time, as XProf does (`step_intersection.cc`), with the offset at which the hosts' spans overlap most.

Clocks of hosts are some milliseconds apart, which may be several steps. Hosts that work on one program end each step
together, so the periods from end to end show which steps belong together, and then how far the clocks are apart. Where
all periods are alike, the numbers that the program gives its steps show it, and otherwise the clocks have to do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, Intervals, ranges
from tpuprof.parsers.base.record import Sized, dataclass

CLOCKS_APART_PS = 20 * 10**9
"""Clocks of hosts that work together are no further apart than this: steps that are, run at different times."""

_MOST_OFFSETS = 64
"""How far from the offset with the most overlap a better one is looked for, in steps."""

_LEAST_STEPS = 4
"""Fewer steps have no pattern."""

_ALIKE = 4
"""Periods belong together if they differ so many times less than those that the numbers, or the clocks, suggest."""


@dataclass(frozen=True, slots=True)
class HostSteps(Sized):
    """The steps of one host, at least one, in order.

    Attributes:
        names: of the steps.
        is_numbered: whether the program numbers them; else names count them from where the host's capture began.
        start_ps, end_ps: int64[steps], on the host's clock.
    """

    names: tuple[str, ...]
    is_numbered: bool
    start_ps: Int64s
    end_ps: Int64s

    def span(self, ahead_ps: int = 0) -> Intervals:
        """When the steps are by a clock that this one is ahead of."""
        return self.start_ps - ahead_ps, self.end_ps - ahead_ps


def matched(hosts: Sequence[HostSteps]) -> list[NDArray[np.intp]]:
    """Where each host has the steps that all of them share, in order."""
    chief = hosts[int(np.argmin([int(host.end_ps.max() - host.start_ps.min()) for host in hosts]))]
    spans = [host.span(clock_ahead(chief, host)) for host in hosts]
    by_time = _by_time(chief.span(), spans)
    if any(repeats(host.names) for host in hosts):
        return by_time
    _, named = by_name([host.names for host in hosts])
    together, overlap = _overlap(spans, named), _overlap(spans, by_time)
    # clocks that have nothing in common: names are all there is
    return named if not overlap or (together and together >= overlap / 2) else by_time


def repeats(names: Sequence[str]) -> bool:
    """Whether a name stands for several steps."""
    return len(set(names)) < len(names)


def by_name(names: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], list[NDArray[np.intp]]]:
    """The names that all have, in the first one's order, and where each has them."""
    shared = set(names[0]).intersection(*names[1:])
    kept = tuple(name for name in names[0] if name in shared)
    places = [{name: index for index, name in reversed(list(enumerate(of_each)))} for of_each in names]
    return kept, [np.array([place[name] for name in kept], np.intp) for place in places]


def clock_ahead(chief: HostSteps, other: HostSteps) -> int:
    """How far the clock of a host is ahead of the chief's, as far as their steps show, in picoseconds.

    At most `CLOCKS_APART_PS`, and 0 where they show nothing.
    """
    if chief is other:
        return 0
    by_time = _best_offset(chief.span(), other.span())
    found: dict[int, tuple[float, float]] = {}  # by offset: by how much periods differ, how far the clock is ahead
    for offset in range(by_time - _MOST_OFFSETS, by_time + _MOST_OFFSETS + 1):
        first, last = max(0, offset), min(len(chief), len(other) + offset)
        if 2 * (last - first) < min(len(chief), len(other)) or last - first < _LEAST_STEPS:
            continue
        apart = other.end_ps[first - offset : last - offset] - chief.end_ps[first:last]
        ahead = float(np.median(apart))
        if abs(ahead) <= CLOCKS_APART_PS:
            found[offset] = float(np.abs(np.diff(apart)).mean()), ahead
    numbered = _offsets_of_numbers(chief, other)
    usual = next((offset for offset in (*(numbered or ()), by_time) if offset in found), None)
    if usual is None:
        return 0
    best = min(found, key=lambda offset: found[offset][0])
    if _ALIKE * found[best][0] < found[usual][0]:
        return round(found[best][1])
    meet = chief.start_ps[0] < other.end_ps[-1] and other.start_ps[0] < chief.end_ps[-1]
    is_known = usual in numbered if numbered is not None else meet
    return round(found[usual][1]) if is_known else 0


def _offsets_of_numbers(chief: HostSteps, other: HostSteps) -> set[int] | None:
    """Each step's index in the chief minus that of the same number in the other host; None where they have no numbers.

    One offset unless a host lacks a step among others, none where they share no step.
    """
    if not (chief.is_numbered and other.is_numbered) or repeats(chief.names) or repeats(other.names):
        return None
    _, (mine, its) = by_name([chief.names, other.names])
    return set((mine - its).tolist())


def _overlap(spans: Sequence[Intervals], index: Sequence[NDArray[np.intp]]) -> int:
    """Time in which all hosts run the same step, over all steps."""
    if not len(index[0]):
        return 0
    last = np.max([start[rows] for (start, _), rows in zip(spans, index, strict=True)], axis=0)
    first = np.min([end[rows] for (_, end), rows in zip(spans, index, strict=True)], axis=0)
    return int(np.maximum(first - last, 0).sum())


def _by_time(chief: Intervals, spans: Sequence[Intervals]) -> list[NDArray[np.intp]]:
    """Where each host has the shared steps, by the offset to the chief with the most overlap."""
    offsets = [_best_offset(chief, span) for span in spans]
    first = max(max(0, offset) for offset in offsets)
    last = min(min(len(chief[0]), len(start) + offset) for (start, _), offset in zip(spans, offsets, strict=True))
    steps = np.arange(first, max(first, last))
    return [steps - offset for offset in offsets]


def _best_offset(chief: Intervals, other: Intervals) -> int:
    """A step's index in the chief minus its index in the other host."""
    (chief_start, chief_end), (start, end) = chief, other
    mine, its = ranges(np.searchsorted(end, chief_start, side="right"), np.searchsorted(start, chief_end, side="left"))
    common = np.minimum(chief_end[mine], end[its]) - np.maximum(chief_start[mine], start[its])
    zero = len(start) - 1
    size = len(chief_start) + zero
    overlap = np.bincount(mine - its + zero, np.maximum(common, 0).astype(np.float64), minlength=size)
    best = int(np.concatenate([overlap[zero:], overlap[:zero][::-1]]).argmax())  # ties: 0, 1, ..., then -1, -2, ...
    return best if best < len(chief_start) else len(chief_start) - 1 - best
