"""Steps over several cores and hosts: which belong together.

It matches the steps of a host's cores by name, or by time where names repeat. As in XProf it leaves out a step that a
core lacks, and also a step in which a core ran no op although another did: that core's ops were lost. A core that ran
nothing in any step, such as a chip that the program does not use, takes no part. It leaves out and names a first or
last step that the capture cut into; XProf counts it.

How steps of several hosts are matched is in `parsers.steps.boundaries.matching`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, interval_index, no_ints, without
from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.base.text import examples
from tpuprof.parsers.files.core_names import host_of
from tpuprof.parsers.steps.accounts.core import where_known
from tpuprof.parsers.steps.boundaries.markers import CoreSteps
from tpuprof.parsers.steps.boundaries.matching import HostSteps, by_name, matched, repeats
from tpuprof.parsers.steps.boundaries.sparse_core import joined_times
from tpuprof.parsers.steps.model import StepSource
from tpuprof.parsers.steps.times import INFEED, STEADY, CoreStepTimes, SlowOp, cut_steps

if TYPE_CHECKING:
    from typing_extensions import Self

InputSource = Literal["infeed", "host"]
"""What the time that a step waits for input is measured by: infeed ops, or idle time while the host waits for input."""

_MOST_NAMED = 4  # cores or steps in a sentence


@dataclass(frozen=True, slots=True)
class LostOps:
    """A core that lost ops, or a host that lost events, all or some, and the names of the steps in which it did."""

    core: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AlignedSteps(Sized):
    """The steps that all cores share, and what the cores do in them.

    Attributes:
        names: name of each step.
        source: whether steps are marked or inferred.
        is_numbered: whether the program numbers the steps, by markers or by annotations on the host; else names count
            them from where the host's capture began.
        start_ps: int64[steps], the earliest core's start.
        core_start_ps, core_end_ps: int64[cores, steps], each core's own, on its host's clock.
        duration_ps: int64[cores, steps].
        core_names: ``host:ordinal`` of each core.
        hosts: int64[cores], the host of each core.
        dropped: number of steps that some cores have and others lack.
        incomplete: sentences on what else is left out: cores, steps with lost ops, steps that the capture cut into.
        lost: the cores that lost ops, or hosts that lost events, and the steps that are left out for it.
        are_lost: whether each step lost ops on some core: then they are all kept, and only their durations are known.
        part_ps: int64[cores, steps, PART_COUNT], columns as in `parsers.steps.times`. Where the program has no infeed
            ops, INFEED is the idle time in which the host waited for input or sent it. No part is longer than the step,
            although an op may outlast it.
        class_ps: int64[cores, steps, len(OP_CLASSES)], idle time included; it adds up to the duration.
        owner_ps, between_ps: int64[cores, steps, len(OWNERS)]; each core's account of its steps, and of the time from
            each step to the next of these (`parsers.steps.step_account`).
        work, feed_work: float64[cores, steps, WORK_COUNT].
        all_reduce: step, id and duration of each core's all-reduces, as in `CoreStepTimes`.
        collective_names, collective_ps: the collectives with most time, and int64[cores, steps, k], their self time;
            the others together stand under an empty name.
        hops: int64[cores, 3, k], see `CoreStepTimes`.
        slow_ops: the ops that the slowest step spends most additional time on, on the core where that is most.
        input_source: what INFEED is measured by; None where nothing measures it.
        sparse_core: float64[3, steps], as `sparse_core_times` returns it; None without SparseCores with steps.
        is_partial: whether cores that these depend on have other steps: how long any waits is unknown then.
    """

    names: tuple[str, ...]
    source: StepSource
    is_numbered: bool
    start_ps: Int64s
    core_start_ps: Int64s
    core_end_ps: Int64s
    duration_ps: Int64s
    core_names: tuple[str, ...]
    hosts: Int64s
    dropped: int
    incomplete: tuple[str, ...]
    lost: tuple[LostOps, ...]
    are_lost: bool
    part_ps: Int64s
    class_ps: Int64s
    owner_ps: Int64s
    between_ps: Int64s
    work: Floats
    feed_work: Floats
    all_reduce: tuple[tuple[Int64s, Int64s, Int64s], ...]
    collective_names: tuple[str, ...]
    collective_ps: Int64s
    hops: Int64s
    slow_ops: tuple[SlowOp, ...]
    input_source: InputSource | None
    sparse_core: Floats | None
    is_partial: bool = False

    @property
    def longest_ps(self) -> Int64s:
        """int64[steps]: duration on the slowest core."""
        longest: Int64s = self.duration_ps.max(axis=0)
        return longest

    @property
    def longest_of_host_ps(self) -> Int64s:
        """int64[cores, steps]: duration on the slowest core of each core's host."""
        longest = np.zeros((int(self.hosts.max(initial=0)) + 1, len(self)), np.int64)
        np.maximum.at(longest, self.hosts, self.duration_ps)
        return longest[self.hosts]

    @property
    def end_ps(self) -> Int64s:
        """int64[steps]: the last core's end."""
        end: Int64s = self.core_end_ps.max(axis=0)
        return end

    def periods(self) -> Self:
        """The same steps from the end of one to the end of the next, as inferred ones are; the first has no start."""
        later, gap_ps = self.take(np.arange(1, len(self))), self.between_ps[:, :-1]
        class_ps, more_ps = later.class_ps.copy(), gap_ps.sum(axis=2)
        class_ps[:, :, OP_CLASSES.index("idle")] += more_ps
        return replace(
            later,
            source="modules",
            start_ps=(later.core_start_ps - more_ps).min(axis=0),
            core_start_ps=later.core_start_ps - more_ps,
            duration_ps=later.duration_ps + more_ps,
            class_ps=class_ps,
            owner_ps=later.owner_ps + gap_ps,
            between_ps=np.zeros_like(gap_ps),
        )

    def take(self, rows: NDArray[np.intp]) -> Self:
        if np.array_equal(rows, np.arange(len(self))):  # each of many hosts has them all
            return self
        of_cores: dict[str, Any] = {
            name: getattr(self, name)[:, rows] for name in (*_SPANS, *_OF_CORES, "collective_ps")
        }
        return replace(
            self,
            names=tuple(self.names[row] for row in rows.tolist()),
            start_ps=self.start_ps[rows],
            **of_cores | {"between_ps": _between(of_cores["between_ps"], [rows] * len(self.core_names))},
            all_reduce=tuple(_renumbered(part, rows, len(self)) for part in self.all_reduce),
            sparse_core=None if self.sparse_core is None else self.sparse_core[:, rows],
        )


_OF_CORES = ("part_ps", "class_ps", "owner_ps", "between_ps", "work", "feed_work")
"""What there is of each core by step, in `CoreStepTimes` too."""

_SPANS = ("core_start_ps", "core_end_ps", "duration_ps")


def align(
    cores: Sequence[CoreStepTimes], source: StepSource, core_names: Sequence[str], input_source: InputSource | None
) -> AlignedSteps | None:
    """Matches the steps of a host's cores by name where each core's names are unique, else by time or in lock step.

    Returns:
        None where there is nothing to match: no core has steps, or no step is on all cores with steps.
    """
    steps = [core.steps for core in cores]
    marked = [index for index, of in enumerate(steps) if len(of)]
    taking = [index for index in marked if cores[index].op_count.any()] or marked  # with ops, if any core has some
    names, seen, index = _shared([steps[core] for core in taking])
    if not names:
        return None
    pairs = [(cores[core], rows) for core, rows in zip(taking, index, strict=True)]
    collectives = _by_collective([(core.collective_names, core.collective_ps[rows][None]) for core, rows in pairs])
    duration_ps = np.stack([core.steps.duration_ps[rows] for core, rows in pairs])
    columns: dict[str, Any] = {
        name: np.stack([getattr(core, name)[rows] for core, rows in pairs]) for name in _OF_CORES
    }
    if input_source == "host":
        columns["part_ps"][:, :, INFEED] = np.stack([core.input_ps[rows] for core, rows in pairs])
    columns["part_ps"] = np.minimum(columns["part_ps"], duration_ps[:, :, None])
    columns["between_ps"] = _between(columns["between_ps"], [rows for _, rows in pairs])
    grid = AlignedSteps(
        names=names,
        source=source,
        is_numbered=source == "steps",
        start_ps=np.min([core.steps.start_ps[rows] for core, rows in pairs], axis=0),
        core_start_ps=np.stack([core.steps.start_ps[rows] for core, rows in pairs]),
        core_end_ps=np.stack([core.steps.end_ps[rows] for core, rows in pairs]),
        duration_ps=duration_ps,
        core_names=tuple(core_names[core] for core in taking),
        hosts=np.zeros(len(taking), np.int64),
        dropped=seen - len(names),
        incomplete=_without_cores([name for core, name in enumerate(core_names) if core not in taking]),
        lost=(),
        are_lost=False,
        **columns,
        all_reduce=tuple(
            _renumbered((core.all_reduce_step, core.all_reduce_id, core.all_reduce_ps), rows, len(core.steps))
            for core, rows in pairs
        ),
        collective_names=collectives[0],
        collective_ps=collectives[1],
        hops=_by_collective([(core.collective_names, core.hops[None]) for core, _ in pairs])[1],
        slow_ops=max((core.slow_ops for core, _ in pairs), key=lambda ops: sum(op.excess_ps for op in ops)),
        input_source=input_source,
        sparse_core=None,
    )
    return _whole_steps(
        grid, [core.op_count[rows] for core, rows in pairs], [of.steps.lost_among(rows) for of, rows in pairs]
    )


def _shared(steps: Sequence[CoreSteps]) -> tuple[tuple[str, ...], int, list[NDArray[np.intp]]]:
    """The names of the steps that some cores share, how many any of them has, and where each core has the shared."""
    if not steps:
        return (), 0, []
    if not any(repeats(of.names) for of in steps):
        names, index = by_name([of.names for of in steps])
        return names, len(set().union(*(of.names for of in steps))), index
    index = _at_once(steps)
    return steps[0].take(index[0]).names, max(map(len, steps)), index


def _whole_steps(grid: AlignedSteps, op_count: Sequence[Int64s], lost: Sequence[Bools]) -> AlignedSteps:
    """Without the steps that the capture cut into, and those in which a core lost ops.

    Args:
        lost: of each core bool[steps], those of whose runs much was not recorded.
    """
    holes = np.stack(lost)
    if holes.any(axis=0).all():
        return replace(grid, are_lost=True)
    whole, op_counts, kept = _without_cut_steps(grid, np.stack(op_count))
    return _without_lost_ops(whole, op_counts, holes[:, kept])


def _between(between_ps: Int64s, rows: Sequence[NDArray[np.intp]]) -> Int64s:
    """int64[cores, steps, owners]: the time between steps, which is known only where no core has a step between.

    Args:
        rows: which of its steps each core keeps.
    """
    follow = np.append((np.diff(np.stack(rows), axis=1) == 1).all(axis=0), False)[: between_ps.shape[1]]
    return np.stack([where_known(of_core, follow) for of_core in between_ps])


def _by_collective(parts: Sequence[tuple[tuple[str, ...], Int64s]]) -> tuple[tuple[str, ...], Int64s]:
    """Puts the collectives of some cores together: names, and int64[cores, steps, k] of each part, steps alike."""
    names = tuple(dict.fromkeys(name for of, _ in parts for name in of))
    column = {name: at for at, name in enumerate(names)}
    times = [np.zeros((*of_cores.shape[:2], len(names)), np.int64) for _, of_cores in parts]
    for out, (of, of_cores) in zip(times, parts, strict=True):
        for at, name in enumerate(of):  # programs may have ops of one name
            out[:, :, column[name]] += of_cores[:, :, at]
    return names, np.concatenate(times)


def _without_cores(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    have = ("", "is", "it has") if len(names) == 1 else ("s", "are", "they have")
    which = f"core{have[0]} {examples(names, _MOST_NAMED)}"
    return (f"{which} {have[1]} left out of the steps: {have[2]} no ops in them, or no Steps line",)


def _without_lost_ops(grid: AlignedSteps, op_count: Int64s, holes: Bools) -> AlignedSteps:
    """Leaves out steps in which a core lost its ops, all or some, unless these are all steps.

    Args:
        holes: bool[cores, steps], those of whose runs much was not recorded.
    """
    lost = _lost(op_count) | holes
    kept = np.flatnonzero(~lost.any(axis=0))
    if len(kept) in (0, len(grid)):
        return grid
    cores = tuple(
        LostOps(name, tuple(grid.names[step] for step in np.flatnonzero(steps).tolist()))
        for name, steps in zip(grid.core_names, lost, strict=True)
        if steps.any()
    )
    who = f"core{'s' * (len(cores) > 1)} {examples([of.core for of in cores], _MOST_NAMED)} lost ops"
    return replace(grid.take(kept), incomplete=(*grid.incomplete, _of_lost(grid.names, lost, who)), lost=cores)


_WAITS_MATTER = 0.05
"""How long a step waits for input is worth knowing where no op runs for this share of it."""


def without_unseen_waits(grid: AlignedSteps, unseen: Bools) -> AlignedSteps:
    """Leaves out steps whose waits for input are unknown, unless these are most: no op ran for part of them.

    Args:
        unseen: bool[steps], where the host's events were not recorded.
    """
    idle = grid.class_ps[:, :, OP_CLASSES.index("idle")].max(axis=0)
    unknown = unseen & (idle >= _WAITS_MATTER * grid.longest_ps)
    if not unknown.any() or grid.are_lost:
        return grid
    host = LostOps(host_of(grid.core_names[0]), tuple(np.array(grid.names, object)[unknown].tolist()))
    words = (
        f"{_of_lost(grid.names, unknown[None], f'host {host.core} lost events')}, so their waits for input are unknown"
    )
    kept = grid.take(np.flatnonzero(~unknown))
    return replace(kept, incomplete=(*grid.incomplete, words), lost=(*grid.lost, host))


def _lost(op_count: Int64s) -> NDArray[np.bool_]:
    """bool[cores, steps]: where a core ran no op and another did; and beside such steps, where it has fewer ops than
    it usually has and the other cores as many: its ops end, or begin, amid that step.
    """
    none = (op_count == 0) & (op_count.max(axis=0) > 0)
    is_usual = np.ones(op_count.shape, np.bool_)
    for core, steps in enumerate(none):
        if not steps.all():
            is_usual[core] = op_count[core] >= STEADY * np.median(op_count[core, ~steps])
    beside = np.zeros_like(none)
    beside[:, :-1] |= none[:, 1:]
    beside[:, 1:] |= none[:, :-1]
    some = beside & ~none & ~is_usual
    lost: NDArray[np.bool_] = none | (some & (some | is_usual | none).all(axis=0))
    return lost


def _of_lost(names: Sequence[str], lost: NDArray[np.bool_], who: str) -> str:
    """``6 steps were left out: core host0:2 lost ops in 106 to 111``."""
    steps = np.flatnonzero(lost.any(axis=0)).tolist()
    were = "step was" if len(steps) == 1 else "steps were"
    which = examples([names[step] for step in steps], _MOST_NAMED)
    if len(steps) > 2 and steps[-1] - steps[0] == len(steps) - 1:
        which = f"{names[steps[0]]} to {names[steps[-1]]}"
    return f"{len(steps)} {were} left out: {who} in {which}"


def _at_once(cores: Sequence[CoreSteps]) -> list[NDArray[np.intp]]:
    """Where each core has the steps that all cores run at once; in lock step where these are less than half."""
    fewest = min(cores, key=len)
    middle = fewest.start_ps + (fewest.end_ps - fewest.start_ps) // 2
    index = np.stack([interval_index(middle, core.start_ps, core.end_ps) for core in cores])
    at_first = np.diff(index, axis=1, prepend=-1) > 0  # two of them may lie in a long one of another core
    together = ((index >= 0) & at_first).all(axis=0)
    if 2 * np.count_nonzero(together) < len(fewest):
        return [np.arange(len(fewest))] * len(cores)
    return list(index[:, together])


def _renumbered(
    entries: tuple[Int64s, Int64s, Int64s], rows: NDArray[np.intp], count: int
) -> tuple[Int64s, Int64s, Int64s]:
    """Numbers a core's all-reduces by their steps' places in `rows`; leaves out those of other steps."""
    number = np.full(count, -1, np.int64)
    number[rows] = np.arange(len(rows))
    step, ids, duration = entries
    new = number[step]
    kept = new >= 0
    return new[kept], ids[kept], duration[kept]


def _without_cut_steps(grid: AlignedSteps, op_count: Int64s) -> tuple[AlignedSteps, Int64s, Int64s]:
    """Leaves out a first or last step that the capture cut into, which has fewer ops and less time than all others.

    Only marked steps can be cut.

    Returns:
        The grid, the ops of its steps, and which steps these are.
    """
    every = np.arange(len(grid))
    if grid.source != "steps":
        return grid, op_count, every
    ops = op_count.sum(axis=0)
    usual_ops, cut = np.sort(ops)[len(ops) // 2], cut_steps(ops, grid.longest_ps)
    sentences = [
        f"step {grid.names[index]} was left out: the capture {'began' if index == 0 else 'ended'} inside it "
        f"({ops[index]:,} ops; the median step has {usual_ops:,})"
        for index in cut
    ]
    if not cut:
        return grid, op_count, every
    kept = without(every, np.array(cut, np.int64))
    return replace(grid.take(kept), incomplete=(*grid.incomplete, *sentences)), op_count[:, kept], kept


def shared_steps(grids: Sequence[AlignedSteps]) -> list[NDArray[np.intp]]:
    """Which of each host's steps belong together, in the same order."""
    if len(grids) == 1:
        return [np.arange(len(grids[0]))]
    return matched([HostSteps(grid.names, grid.is_numbered, grid.start_ps, grid.end_ps) for grid in grids])


def join_hosts(grids: Sequence[AlignedSteps], index: Sequence[NDArray[np.intp]] | None = None) -> AlignedSteps:
    """The steps that the cores of all hosts share.

    The caller leaves out hosts that have nothing in common with the first; here each host has a step. `index` is their
    `shared_steps`, where these are known.

    Returns:
        A grid without steps where the hosts share none.
    """
    if len(grids) == 1:
        return grids[0]
    index = index or shared_steps(grids)
    numbered = next((at for at, grid in enumerate(grids) if grid.is_numbered), 0)
    names = tuple(grids[numbered].names[row] for row in index[numbered].tolist())
    taken = [grid.take(position) for grid, position in zip(grids, index, strict=True)]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(of, name) for of in taken]) for name in (*_SPANS, *_OF_CORES)
    }
    collectives = _by_collective([(grid.collective_names, grid.collective_ps) for grid in taken])
    sources = {grid.input_source for grid in grids}
    return AlignedSteps(
        names=names,
        source=grids[0].source,
        is_numbered=grids[numbered].is_numbered,
        start_ps=np.min([of.start_ps for of in taken], axis=0) if names else no_ints(),
        core_names=tuple(name for grid in grids for name in grid.core_names),
        hosts=np.concatenate([np.full(len(grid.hosts), position) for position, grid in enumerate(grids)]),
        dropped=max(len(grid) for grid in grids) - len(names),
        incomplete=tuple(dict.fromkeys(sentence for grid in grids for sentence in grid.incomplete)),
        lost=tuple(core for grid in grids for core in grid.lost),
        are_lost=any(grid.are_lost for grid in grids),
        **columns,
        all_reduce=tuple(part for grid in taken for part in grid.all_reduce),
        collective_names=collectives[0],
        collective_ps=collectives[1],
        hops=_by_collective([(grid.collective_names, grid.hops) for grid in taken])[1],
        slow_ops=max((grid.slow_ops for grid in taken), key=lambda ops: sum(op.excess_ps for op in ops)),
        input_source="infeed" if "infeed" in sources else "host" if "host" in sources else None,
        sparse_core=joined_times([grid.sparse_core for grid in taken if grid.sparse_core is not None]),
    )
