"""In which steps something happens: at a rhythm, from some step on or to some step, or in a few of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import ordinal, shortened, time

_REPEATS = 3
"""Two equal distances make a rhythm, and three steps in a row a time in which it lasts: fewer may be chance."""

_BESIDE = 2  # steps without it before it begins, and after it ends
_QUIET = 0.25  # the other steps have less than this share of it
_AMONG = 0.5  # a step has it from this share of those steps' mean on
_FEW, _LEAST_TO_TELL = 0.2, 5  # at most this share of the steps is few; of fewer steps than that none is few


@dataclass(frozen=True, slots=True)
class When:
    """In which steps something happens.

    Attributes:
        steps: bool[steps].
        words: ``every 4th step``, ``from step 106 on``, ``from step 107 to 110``, ``up to step 103`` or ``in 2 of 23
            steps``; empty where it is in most steps, or nothing distinguishes these from the others.
        period: the distance of its steps in a rhythm, else 0.
        is_regular: whether it is a rhythm, or steps in a row, which is no chance.
        inside_ps, outside_ps: the mean amount in these steps, and in the others.
    """

    steps: Bools
    words: str = ""
    period: int = 0
    is_regular: bool = False
    inside_ps: float = 0.0
    outside_ps: float = 0.0

    @property
    def after(self) -> str:
        """The words for the end of a title, with a space before them."""
        return f" {self.words}" if self.words else ""

    @property
    def first(self) -> str:
        """The words for the beginning of a sentence."""
        return self.words[:1].upper() + self.words[1:]

    def sentence(self, what: str) -> str:
        """``Every 4th step waits 40.0 ms, the others 2.00 µs on average.``; empty without words.

        Args:
            what: what happens in these steps, in words that a time can follow.
        """
        if not self.words:
            return ""
        return f"{self.first} {what} {time(self.inside_ps)}, in the other steps {time(self.outside_ps)}."


def when(amounts: Floats, names: Sequence[str], least: float) -> When:
    """In which steps something happens, by how much there is of it in each.

    Args:
        amounts: float64[steps], in picoseconds.
        names: of the steps.
        least: a step with less does not have it.
    """
    everywhere = np.ones(len(amounts), np.bool_)
    some = amounts >= max(least, 1.0)
    if not some.any():
        return When(everywhere)
    lasts = _lasts(some, names)  # it may grow step by step where it begins
    inside = some if lasts else some & (amounts >= _AMONG * amounts[some].mean())
    lasts = lasts or _lasts(inside, names)
    if inside.all():
        return When(everywhere)
    of_these, of_others = float(amounts[inside].mean()), float(amounts[~inside].mean())
    if of_others > _QUIET * of_these:
        return When(everywhere)
    places = np.flatnonzero(inside)
    words, period = "", rhythm(places, len(amounts))
    if period:
        words = f"every {ordinal(period)} step"
    elif lasts:
        words = lasts
    elif len(amounts) < _LEAST_TO_TELL or len(places) > max(1, int(_FEW * len(amounts))):
        return When(everywhere)
    regular = bool(words)
    words = words or f"in {len(places)} of {counted(len(amounts), 'step')}"
    return When(inside, words, period, regular, of_these, of_others)


def _lasts(inside: Bools, names: Sequence[str]) -> str:
    """From which step on, to which step, or both, these are all steps; empty where they are no steps in a row."""
    places = np.flatnonzero(inside)
    count = len(places)
    if count < _REPEATS or places[-1] - places[0] >= count:
        return ""
    before, after = int(places[0]), len(inside) - int(places[-1]) - 1
    first, last = (shortened(names[int(place)]) for place in (places[0], places[-1]))
    if before >= _BESIDE and not after:
        return f"from step {first} on"
    if before >= _BESIDE and after >= _BESIDE:
        return f"from step {first} to {last}"
    return f"up to step {last}" if after >= _BESIDE and not before else ""


def rhythm(places: NDArray[np.intp], count: int) -> int:
    """The distance of some steps of `count` that come in a rhythm from the first to the last; 0 where they do not."""
    if len(places) < _REPEATS:
        return 0
    distances = np.diff(places)
    period = int(distances[0])
    steady = (distances == period).all() and places[0] < period and places[-1] + period >= count
    return period if period > 1 and steady else 0
