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
- A rhythm, such as a checkpoint every ninth step, is no noise: see `by_design`.
- No floor is below `RESOLUTION` of the larger of the two figures: clocks of two runs do not agree better than that.

Simulated, of two equal runs 4 to 6 % are found to differ, for step times with a tail as for normal ones. Only where a
run of very few such steps meets one of many (5 and 60) it is nearly 10 %.

What the floor of two runs cannot hold is what makes them differ and not the steps of one: another machine, another
memory layout, another neighbour on the network. Where a side has several launches, each launch is one observation with
the weight 1: the floor is that of Welch's t-test (Biometrika 34, 1947) on the means of launches. One launch against n
with the spread s has the standard error s sqrt(1 + 1/n) and n - 1 degrees of freedom. How many launches find a
difference d is Stein's rule (Annals of Mathematical Statistics 16, 1945): the standard error has to be at most
d / (t of the confidence + t of the power), both with the degrees of freedom that there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, median
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.findings.when import rhythm

CONFIDENCE = 0.95
POWER = 0.8
"""How often a difference of the wanted size is to be found."""

MOST_LAUNCHES = 1000
"""More launches than this are not counted."""

MOST_BATCHES = 32
RESOLUTION = 0.001
FEW_STEPS = 5
"""Fewer steps than this show so little of the noise that the page says so."""

MAD_TO_SIGMA = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""

MEDIAN_TO_MEAN = math.sqrt(math.pi / 2)
"""The standard error of a normal distribution's median over that of its mean."""

_SEVERAL = 3
"""That so many odd steps all fall to one of two equal runs is rare enough, as tried: fewer say nothing."""

_ODD_SIGMAS = 5.0
_ODD_SHARE = 0.03
_MOST_ODD = 0.25


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean over steps or launches, in picoseconds.

    Attributes:
        mean: per step.
        error: its standard error; None where one batch alone, or none, does not show the spread.
        freedom: degrees of freedom of the error, 0 without one.
        is_of_launches: whether it is a mean over launches: one alone is taken to be as spread as those of the other
            side.
    """

    mean: float
    error: float | None = None
    freedom: int = 0
    is_of_launches: bool = False


def batches(count: int) -> Int64s:
    """int64[count]: which batch of consecutive steps each step is in; as even as can be."""
    number = min(count, MOST_BATCHES)
    return np.arange(count, dtype=np.int64) * number // max(count, 1)


def estimate(sums: Floats, units: Floats, of_launches: bool = False) -> MeanEstimate:
    """The mean over all units; formulas in the module's text.

    Args:
        sums: float64[batches], times added up.
        units: float64[batches], steps in each batch, all more than 0.
        of_launches: whether a batch is a launch.
    """
    everything = float(units.sum())
    mean = float(sums.sum()) / everything
    if len(sums) < 2:
        return MeanEstimate(mean, is_of_launches=of_launches)
    error = math.sqrt(float(units @ (sums / units - mean) ** 2) / everything / (len(sums) - 1))
    return MeanEstimate(mean, error, len(sums) - 1, of_launches)


def estimate_steps(values: Floats, *by_design: Bools) -> MeanEstimate:
    """The mean over single steps, float64[steps], at least one.

    Args:
        by_design: bool[steps] each, classes of steps that are no chance, and that no step has two of. How many they are
            has no noise then: each class counts with its share p, so that the error is sqrt(sum(p^2 e^2)) with the
            error e of the class's mean, which two steps do not show.
    """
    others = ~np.any(by_design, axis=0) if by_design else np.ones(len(values), np.bool_)
    parts = [(values[mask], mask is others or np.count_nonzero(mask) >= _SEVERAL) for mask in (*by_design, others)]
    found = [(len(of) / len(values), _estimate_class(of)) for of, shows_error in parts if len(of) and shows_error]
    if len(found) == 1 and found[0][0] == 1.0:
        return found[0][1]
    variances = [(share * (each.error or 0.0)) ** 2 for share, each in found]
    terms = sum(part**2 / each.freedom for part, (_, each) in zip(variances, found, strict=True) if each.freedom)
    freedom = int(sum(variances) ** 2 / terms) if terms else max((each.freedom for _, each in found), default=1)
    return MeanEstimate(float(values.mean()), math.sqrt(sum(variances)), max(1, freedom))


def _estimate_class(values: Floats) -> MeanEstimate:
    """The mean of steps that are alike; formulas in the module's text."""
    batch = batches(len(values))
    sums: Floats = np.bincount(batch, values).astype(np.float64)
    return estimate(sums, np.bincount(batch).astype(np.float64))


def estimate_both(
    before: Floats, after: Floats, special: Sequence[Bools | None] = (None, None)
) -> tuple[MeanEstimate, MeanEstimate]:
    """The means over all steps of two runs, what comes by design apart from what comes by chance.

    Args:
        special: bool[steps] of each run, the steps that do something of their own, such as compile: no chance where
            the other run has none.
    """
    odd = [~within(values, usual_bounds(values)) for values in (before, after)]
    named = [np.zeros(len(of), np.bool_) if own is None else own for of, own in zip(odd, special, strict=True)]
    chance = []
    means = list[MeanEstimate]()
    for values, at in ((before, 0), (after, 1)):
        of_name = named[at] & (not named[1 - at].any())
        other = odd[at] & ~of_name
        is_design = by_design(other, odd[1 - at])
        means.append(estimate_steps(values, of_name, other & is_design))
        chance.append(other & (not is_design))
    return _with_chance(means, (before, after), chance)


def estimate_steady(values: Floats) -> MeanEstimate:
    """The mean over the steps of a run without those that are odd by chance: a rhythm is how the program runs."""
    typical = within(values, typical_bounds(values, values)[0])
    odd = ~typical & by_design(~typical, ~typical)
    kept = typical | odd
    return estimate_steps(values[kept], odd[kept])


def _with_chance(
    means: Sequence[MeanEstimate], values: Sequence[Floats], odd: Sequence[Bools]
) -> tuple[MeanEstimate, MeanEstimate]:
    """The same where a run has fewer odd steps than both have on average: that it has so few may be chance.

    Of two equal runs each has odd steps with the probability p of both together; their number varies by p(1 - p)n.

    Args:
        odd: bool[steps] of each run, steps that are longer by chance.
    """
    steps, number = sum(map(len, odd)), sum(int(of.sum()) for of in odd)
    before, after = means
    if not number or number == steps:
        return before, after
    longer = [float(of[mask].mean() - of[~mask].mean()) for of, mask in zip(values, odd, strict=True) if mask.any()]
    spread = math.sqrt(number / steps * (1 - number / steps)) * max(map(abs, longer))
    return _at_least(before, spread, len(odd[0])), _at_least(after, spread, len(odd[1]))


def _at_least(mean: MeanEstimate, spread: float, steps: int) -> MeanEstimate:
    if mean.error is None:
        return mean
    return MeanEstimate(mean.mean, max(mean.error, spread / math.sqrt(steps)), mean.freedom)


def odd_by_design(before: Floats, after: Floats) -> tuple[Bools, Bools]:
    """bool[steps] of each run: the odd steps that are no chance (`by_design`)."""
    odd = [~within(values, usual_bounds(values)) for values in (before, after)]
    return odd[0] & by_design(odd[0], odd[1]), odd[1] & by_design(odd[1], odd[0])


def by_design(odd: Bools, others: Bools) -> bool:
    """Whether the odd steps of a run are no chance: they are in a row or a rhythm, or a run as long has none.

    Args:
        odd: bool[steps], which steps of the run are no typical ones; others: the same of the other run.
    """
    places = np.flatnonzero(odd)
    if len(places) < _SEVERAL:
        return False
    in_a_row = bool(places[-1] - places[0] < len(places))
    has_none = len(odd) <= len(others) and not others.any()
    return in_a_row or has_none or rhythm(places, len(odd)) > 0


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
    found = _of_difference(before, after)
    if found is None:
        return None
    error, freedom = found
    floor = error * student(1 - (1 - CONFIDENCE) / max(1, comparisons), freedom) if error > 0 else 0.0
    return max(floor, RESOLUTION * max(abs(before.mean), abs(after.mean)))


def _of_difference(before: MeanEstimate, after: MeanEstimate) -> tuple[float, float] | None:
    """The standard error of a difference and its degrees of freedom; None where the spread of a run is unknown."""
    errors = [(of.error, of.freedom) for of in (before, after) if of.error is not None]
    if len(errors) == 1 and before.is_of_launches and after.is_of_launches:
        ((error, freedom),) = errors
        return error * math.sqrt(freedom + 2), freedom  # of n = freedom + 1 launches: s = error sqrt(n)
    if len(errors) < 2:
        return None
    variances = [error**2 for error, _ in errors]
    terms = sum(variance**2 / freedom for variance, (_, freedom) in zip(variances, errors, strict=True))
    return math.sqrt(sum(variances)), sum(variances) ** 2 / terms if terms else 1.0


def launches_needed(before: MeanEstimate, after: MeanEstimate, wanted_ps: float) -> int | None:
    """How many more launches of each side find a difference of that size with the probability `POWER`.

    Returns:
        None where the spread of launches is unknown, or more than `MOST_LAUNCHES` are needed.
    """
    found = _of_difference(before, after)
    if found is None or wanted_ps <= RESOLUTION * before.mean:
        return None
    spreads = [of.error * math.sqrt(of.freedom + 1) for of in (before, after) if of.error is not None]
    reach = student(CONFIDENCE, found[1]) + student(2 * POWER - 1, found[1])
    more = np.arange(MOST_LAUNCHES + 1)
    counts = (max(1, before.freedom + 1) + more, max(1, after.freedom + 1) + more)
    error = np.sqrt(spreads[0] ** 2 / counts[0] + spreads[-1] ** 2 / counts[1])
    enough = np.flatnonzero(reach * error <= wanted_ps)
    return int(enough[0]) if len(enough) else None


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
    """How long the typical steps of two runs are; see `launch_bounds`."""
    (one,), (other,) = launch_bounds(([before], [after]))
    return one, other


def launch_bounds(sides: Sequence[Sequence[Floats]]) -> list[list[Bounds]]:
    """How long the typical steps of each launch are; any step is typical, of all, where more than a quarter of either
    side would not be.

    What every fourth step does is how the program runs, and what goes for one run goes for the other as well.
    """
    bounds = [[usual_bounds(values) for values in side] for side in sides]
    for side, each in zip(sides, bounds, strict=True):
        odd = np.concatenate([~within(values, of) for values, of in zip(side, each, strict=True)])
        if np.count_nonzero(odd) > _MOST_ODD * len(odd):
            return [[EVERY_STEP] * len(part) for part in sides]
    return bounds


def within(values: Floats, bounds: Bounds) -> Bools:
    """bool[steps]: which steps are typical."""
    return (values >= bounds[0]) & (values <= bounds[1])
