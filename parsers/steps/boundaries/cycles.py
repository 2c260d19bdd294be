"""A cycle of programs: several programs that follow each other again and again make one step.

Such are the graphs of a step that PyTorch/XLA cuts into several, 16 runs of a policy and one update, or gradients of
some microbatches and the program that applies them. The shortest repeating sequence counts. The ends of the capture may
cut it, and programs that run rarely, such as an evaluation, may lie in between.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, is_among
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.steps.boundaries.markers import CoreSteps, ends_of, inferred_steps
from tpuprof.parsers.steps.boundaries.runs import MINIMUM_RUNS, ModuleRuns

MOST_BLOCKS = 64
"""A cycle has at most so many blocks of runs of one program."""

_MOST_WORDS = 6
"""Blocks of a cycle that a sentence names, the last ones among them."""

_REPEATS = 0.9
"""A cycle repeats if so many of its blocks are like those a cycle later."""

_RARE = 0.25
"""A program is no part of the cycle if it has less than this share of the blocks of the program with most."""

_TINY = 0.01
"""Nor is one that has less than this share of the time, unless its name says that it updates something."""

_BESIDE = pattern(r"eval|valid|test|checkpoint|ckpt|save|metric|(?:^|_)log(?!its)", re.IGNORECASE)
_UPDATES = pattern(r"apply|update|optim|learn|adam|sgd|accum|train", re.IGNORECASE)
_WHOLE_STEP = pattern(r"train|step", re.IGNORECASE)
"""What programs do, by their names: something beside the step, its last part, or a whole step."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """The programs of a step.

    Attributes:
        blocks: each program with how often it runs in a row, in order of time; the last one ends the step.
        varies: whether that differs from step to step.
    """

    blocks: tuple[tuple[str, int], ...]
    varies: bool = False

    def words(self) -> str:
        """``16 x jit_act, jit_update``."""
        names = ((name.partition("(")[0], count) for name, count in self.blocks)
        about = "about " * self.varies
        words = [name if count == 1 else f"{about}{count} x {name}" for name, count in names]
        left_out = len(words) - _MOST_WORDS
        return ", ".join(words if left_out <= 0 else [*words[:2], f"{left_out} more", *words[2 - _MOST_WORDS :]])

    def steps(self, runs: ModuleRuns) -> CoreSteps:
        """The steps of a core: each from the end of one cycle to the end of the next. The first one has no start."""
        last, count = self.blocks[-1]
        if count == 1:
            return inferred_steps(runs, last)
        programs = [number for number, name in enumerate(runs.names) if name in dict(self.blocks)]
        rows = np.flatnonzero(is_among(runs.module, programs))
        at, size = _blocks(runs.module[rows])
        is_last = np.array([name == last for name in runs.names], np.bool_)[runs.module[rows[at]]]
        if len(at) and size[-1] < count:
            is_last[-1] = False  # the capture ends within these runs
        return ends_of(runs.end_ps[rows[(at + size - 1)[is_last]]])


def cycle_of(cores: Sequence[ModuleRuns]) -> Cycle | None:
    """The cycle of programs that all cores run; None where they run none."""
    cores = [core for core in cores if len(core)]
    if not cores:
        return None
    cycle = _cycle(max(cores, key=len))
    if cycle is None or any(len(cycle.steps(core)) < MINIMUM_RUNS - 1 for core in cores):
        return None
    return cycle


def marks_each_run(steps: CoreSteps, runs: ModuleRuns) -> bool:
    """Whether a core's markers are runs of several programs in turn, and no steps.

    So the profiler marks them where nothing says which runs belong together.
    """
    step = np.searchsorted(steps.start_ps, runs.start_ps, side="right") - 1
    inside = (step >= 0) & (runs.start_ps < np.append(steps.end_ps, 0)[step])
    held = np.bincount(step[inside], minlength=len(steps))
    if len(held) != len(steps) or held.max(initial=0) != 1 or 2 * int(held.sum()) < len(steps):
        return False
    common = np.sort(np.bincount(runs.module[inside], minlength=2))[::-1]
    return bool(common[1] > 0 and 2 * common[1] > common[0])


def _cycle(runs: ModuleRuns) -> Cycle | None:
    names, times = runs.names, runs.module_ps
    counts = np.bincount(runs.module, minlength=len(names))
    named = np.array([_UPDATES.search(name) is not None for name in names], np.bool_)
    beside = np.array([_BESIDE.search(name) is not None for name in names], np.bool_)
    kept = (counts >= MINIMUM_RUNS) & ~beside & (named | (times >= _TINY * times.sum()))
    sequence = runs.module[kept[runs.module]]
    blocks = np.bincount(sequence[_blocks(sequence)[0]], minlength=len(names))
    frequent = blocks >= _RARE * blocks.max()
    found = repeating(sequence[frequent[sequence]])
    if found is None:
        found = repeating(sequence)
    cycle = None if found is None else _ended(*found, names, times)
    if cycle is not None:
        return cycle
    found = repeating(sequence, varies=True)
    cycle = None if found is None else _ended(*found, names, times)
    if cycle is None or cycle.blocks[-1][1] > 1 or not _UPDATES.search(cycle.blocks[-1][0]):
        return None
    return replace(cycle, varies=True)


def _ended(what: Int64s, size: Int64s, names: Sequence[str], times: Int64s) -> Cycle | None:
    """The cycle of some blocks, turned so that it ends with the program that ends a step.

    That is one with a single block, and with a single run if there is such a one; of several the one with most time.
    None where no program has a single block, or where the rest only lies between runs that are steps by themselves.
    """
    alone = np.flatnonzero(np.bincount(what, minlength=len(names))[what] == 1)
    if not len(alone):
        return None
    last = max(alone.tolist(), key=lambda place: (size[place] == 1, times[what[place]], -place))
    busiest = int(what[np.argmax(times[what])])
    is_repeated = int(size[what == busiest].sum()) > 1
    if is_repeated and _WHOLE_STEP.search(names[busiest]) and not _UPDATES.search(names[int(what[last])]):
        return None
    turned = np.roll(np.arange(len(what)), -last - 1)
    return Cycle(tuple((names[int(what[place])], int(size[place])) for place in turned.tolist()))


def repeating(sequence: Int64s, varies: bool = False) -> tuple[Int64s, Int64s] | None:
    """The shortest sequence of at least two blocks that most of a longer one repeats: what each is of, and its length.

    The first and the last block may be cut. None where nothing repeats.

    Args:
        varies: whether blocks of several runs may have more of them or fewer from one time to the next.
    """
    at, size = _blocks(sequence)
    what = sequence[at]
    for period in range(2, min(MOST_BLOCKS, (len(at) - 1) // 2) + 1):
        alike = (size[period:] == size[:-period]) | (varies & (size[period:] > 1) & (size[:-period] > 1))
        same = (what[period:] == what[:-period]) & alike
        same[0] |= what[period] == what[0] and size[0] <= size[period]
        same[-1] |= what[-1] == what[-1 - period] and size[-1] <= size[-1 - period]
        if same.mean() < _REPEATS:
            continue
        steady = np.convolve(same[1:], np.ones(period, np.int64), "valid") == period
        if steady.any():
            first = 1 + int(steady.argmax())
            return what[first : first + period], size[first : first + period]
    return None


def _blocks(sequence: Int64s) -> tuple[Int64s, Int64s]:
    """Where each block of equal values begins, and how long it is."""
    at = np.flatnonzero(np.append(np.ones(min(len(sequence), 1), np.bool_), np.diff(sequence) != 0))
    return at, np.diff(np.append(at, len(sequence)))
