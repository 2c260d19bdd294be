"""How sure a difference of two runs is, from how much the steps of each run differ among themselves.

Formulas, from first principles:

- A figure of a run is the mean over its steps. The steps are put into at most `MOST_BATCHES` batches of consecutive
  ones; a batch counts with the number of its steps. With batch means m_b and weights w_b (adding up to 1) the mean is
  M = sum(w_b m_b), and its standard error is e = sqrt(sum(w_b (m_b - M)^2) / (B - 1)), with B - 1 degrees of freedom.
  Batches instead of steps make e honest where neighbouring steps resemble each other, as in a run that slows down.
- The difference of two runs has the standard error sqrt(e_A^2 + e_B^2) and the degrees of freedom of Welch and
  Satterthwaite, (e_A^2 + e_B^2)^2 / (e_A^4 / f_A + e_B^4 / f_B).
- The noise floor is that error times Student's t for `CONFIDENCE`. Of two runs of one program the difference lies
  within it with that probability. Where many ops are compared at once the probability is that of all together
  (Bonferroni), so that an op is not called changed just because there are a thousand of them.
- No floor is below `RESOLUTION` of the larger of the two figures: clocks of two runs do not agree better than that.

Simulated, of two equal runs 4 to 6 % are found to differ, for step times with a tail as for normal ones. Only where a
run of very few such steps meets one of many (5 and 60) it is nearly 10 %.

What the floor cannot hold is what makes two *runs* differ and not the steps of one: another machine, another memory
layout, another neighbour on the network.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, median
from tpuprof.parsers.base.record import dataclass

CONFIDENCE = 0.95
MOST_BATCHES = 32
RESOLUTION = 0.001
FEW_STEPS = 5
"""Fewer steps than this show so little of the noise that the page says so."""

MAD_TO_SIGMA = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""

MEDIAN_TO_MEAN = math.sqrt(math.pi / 2)
"""The standard error of a normal distribution's median over that of its mean."""

_ODD_SIGMAS = 5.0
_ODD_SHARE = 0.03
_MOST_ODD = 0.25


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean over steps, in picoseconds.

    Attributes:
        mean: per step.
        error: its standard error; None where one batch alone, or none, does not show the spread.
        freedom: degrees of freedom of the error, 0 without one.
    """

    mean: float
    error: float | None = None
    freedom: int = 0


def batches(count: int) -> Int64s:
    """int64[count]: which batch of consecutive steps each step is in; as even as can be."""
    number = min(count, MOST_BATCHES)
    return np.arange(count, dtype=np.int64) * number // max(count, 1)


def estimate(sums: Floats, units: Floats) -> MeanEstimate:
    """The mean over all units; formulas in the module's text.

    Args:
        sums: float64[batches], times added up.
        units: float64[batches], steps in each batch, all more than 0.
    """
    everything = float(units.sum())
    mean = float(sums.sum()) / everything
    if len(sums) < 2:
        return MeanEstimate(mean)
    error = math.sqrt(float(units @ (sums / units - mean) ** 2) / everything / (len(sums) - 1))
    return MeanEstimate(mean, error, len(sums) - 1)


def estimate_steps(values: Floats) -> MeanEstimate:
    """The mean over single steps, float64[steps], at least one."""
    batch = batches(len(values))
    sums: Floats = np.bincount(batch, values).astype(np.float64)
    return estimate(sums, np.bincount(batch).astype(np.float64))


def estimate_median(values: Floats) -> MeanEstimate:
    """The median of at least one step, its error by the median absolute deviation s: 1.2533 · 1.4826 s / sqrt(n).

    Few steps in a majority that are all alike have no deviation; then the error is 0.
    """
    middle = median(values)
    if len(values) < 2:
        return MeanEstimate(middle)
    spread = MAD_TO_SIGMA * median(np.abs(values - middle))
    return MeanEstimate(middle, MEDIAN_TO_MEAN * spread / math.sqrt(len(values)), len(values) - 1)


def noise_floor(before: MeanEstimate, after: MeanEstimate, comparisons: int = 1) -> float | None:
    """Half the width of the interval around no difference that two equal runs stay in, in picoseconds.

    Args:
        comparisons: how many differences are looked at together.

    Returns:
        None where the spread of a run is unknown.
    """
    if before.error is None or after.error is None:
        return None
    variance, other_variance = before.error**2, after.error**2
    floor = 0.0
    if variance + other_variance > 0:
        freedom = (variance + other_variance) ** 2 / (variance**2 / before.freedom + other_variance**2 / after.freedom)
        floor = math.sqrt(variance + other_variance) * student(1 - (1 - CONFIDENCE) / max(1, comparisons), freedom)
    return max(floor, RESOLUTION * max(abs(before.mean), abs(after.mean)))


def student(confidence: float, freedom: float) -> float:
    """Student's t that a difference stays within, to both sides, with that probability.

    Wallace's approximation turned around: t = sqrt(f (exp(z^2 (8f + 3)^2 / (8f + 1)^2 / f) - 1)) with the normal
    distribution's z. From 3 degrees of freedom on it is within 1 %, below it is too large: on the safe side.
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2) * (8 * freedom + 3) / (8 * freedom + 1)
    return math.sqrt(freedom * math.expm1(min(z * z / freedom, 600.0)))


Bounds = tuple[float, float]
"""The shortest and the longest time of a typical step, both included."""

EVERY_STEP: Bounds = (-math.inf, math.inf)
"""Any step is typical."""


def usual_bounds(values: Floats) -> Bounds:
    """What lies within five deviations of the median, or within 3 % of it.

    The deviation is the median absolute one, which a few odd steps do not move.
    """
    if not len(values):
        return EVERY_STEP
    middle = median(values)
    reach = max(_ODD_SIGMAS * MAD_TO_SIGMA * median(np.abs(values - middle)), _ODD_SHARE * abs(middle))
    return middle - reach, middle + reach


def typical_bounds(before: Floats, after: Floats) -> tuple[Bounds, Bounds]:
    """How long the typical steps of two runs are; any step is typical, of both, where more than a quarter of either
    would not be.

    What every fourth step does is how the program runs, and what goes for one run goes for the other as well.
    """
    bounds = usual_bounds(before), usual_bounds(after)
    sides = zip((before, after), bounds, strict=True)
    is_odd = any(np.count_nonzero(~within(part, of)) > _MOST_ODD * len(part) for part, of in sides)
    return (EVERY_STEP, EVERY_STEP) if is_odd else bounds


def within(values: Floats, bounds: Bounds) -> Bools:
    """bool[steps]: which steps are typical."""
    inside: Bools = (values >= bounds[0]) & (values <= bounds[1])
    return inside
