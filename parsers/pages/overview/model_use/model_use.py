"""What of a device's peak a model uses: from the peak down to HFU, and from there to MFU.

Both are shares of what the cores could compute at their peak in the mean step. HFU counts all FLOPs that ran, MFU those
that the model asks for: not what is computed a second time to save memory, nor what a higher precision takes in more
passes. The step's own account (`ledger`) says where the rest went, so that all parts add up to the peak.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.words import NO_TIMED_STEPS
from tpuprof.parsers.pages.overview.accounts_of_ops import NOT_IN_STEPS, OpAccounts
from tpuprof.parsers.pages.overview.ledger import MeanStep
from tpuprof.parsers.steps.accounts.owners import OWNER_WORDS, Owner, owner_index

UsePart = Literal[
    "idle", "input", "waiting", "collectives", "transfers", "copies", "uncounted", "padding", "below_roof", "memory",
    "recomputed", "passes", "other", "mfu",
]  # fmt: skip
"""Where the peak goes, in the order of the waterfall (see `PART_WORDS`)."""

PARTS: tuple[UsePart, ...] = get_args(UsePart)

_OWNERS: Mapping[UsePart, tuple[Owner, ...]] = {
    "idle": ("compile", "host", "dispatch", "between_ops"),
    "input": ("input",),
    "waiting": ("barrier", "collective_wait"),
    "collectives": ("collective_transfer",),
    "transfers": ("host_transfer",),
    "copies": ("copy",),
    "uncounted": ("uncounted",),
}
"""The owners of a step's time that some parts are."""

PART_TITLES: Mapping[UsePart, str] = {
    "idle": "no op ran",
    "input": "input wait",
    "waiting": "waiting for other cores",
    "collectives": "collectives, moving",
    "transfers": "host transfers",
    "copies": "copies",
    "uncounted": "not counted",
    "padding": "padding",
    "below_roof": "below the roof",
    "memory": "memory-bound, at the roof",
    "recomputed": "recomputed",
    "passes": "extra passes",
    "other": "beyond the model's count",
    "mfu": "MFU",
}
"""What each part is called."""

PART_WORDS: Mapping[UsePart, str] = {
    **{part: "; ".join(OWNER_WORDS[owner] for owner in owners) for part, owners in _OWNERS.items()},
    "padding": "time that matrix products lose because their dimensions do not fill the matrix unit's tiles",
    "below_roof": "other time of compute ops beyond the time at their roof",
    "memory": "time of ops at their roof beyond the time of their FLOPs at the peak: their bytes take longer",
    "recomputed": "FLOPs of ops that are computed a second time to save memory, recognised by their names",
    "passes": "FLOPs that the compiler counts beyond those of the model, such as extra passes for precision",
    "other": "FLOPs that ran minus those of --model-flops, without recomputed ones and extra passes; below 0 where "
    "fewer are counted than given",
    "mfu": "FLOPs of the model",
}
"""What each part is."""

NO_PEAK = "the profile does not give the device's peak FLOP/s"
NO_COUNT = "no FLOPs are counted for the ops of a step"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the peak.

    Attributes:
        fraction: of the peak over the mean step; time_ps: as long as that of the step.
    """

    part: UsePart
    fraction: float
    time_ps: float


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What of the peak the model uses.

    Attributes:
        step_ps, period_ps: the mean step, and that with the time up to the next one; None without steps.
        cores: how many took part, None without steps; peak: FLOP/s of one.
        hfu, mfu: fractions of the peak; None where they are unknown, and `unknown` says why.
        parts: those with any time, in the order of `PARTS`; they add up to 1. Empty where HFU is unknown.
        uncounted: the fraction of the step in ops whose work nobody counted; None where HFU is unknown.
        model_flops: of a step over all cores, as given or as counted; is_given: which.
        tokens: of a step, as given.
        unknown: why something is None, by its name.
    """

    step_ps: float | None
    period_ps: float | None
    cores: int | None
    peak: float | None
    hfu: float | None
    mfu: float | None
    parts: tuple[Part, ...]
    uncounted: float | None
    model_flops: float | None
    is_given: bool
    tokens: float | None
    unknown: Mapping[str, str]

    @property
    def step_flops(self) -> float | None:
        """FLOPs that ran in a step, over all cores."""
        return None if self.hfu is None else self.hfu * (self._most or 0.0)

    @property
    def tokens_per_second(self) -> float | None:
        """By the time from one step to the next."""
        return None if self.tokens is None or not self.period_ps else self.tokens / (self.period_ps / 1e12)

    @property
    def _most(self) -> float | None:
        """FLOPs that all cores could compute in a step."""
        if not self.step_ps or self.peak is None or self.cores is None:
            return None
        return self.cores * self.peak * self.step_ps / 1e12


def model_use(account: MeanStep | None, of_ops: OpAccounts | None, peak: float | None) -> ModelUse:
    """What of the peak the program uses, by the FLOPs that the compiler counts.

    Args:
        account, of_ops: the mean step, and the same by op.
        peak: FLOP/s of one core.
    """
    if account is None or not account.step_ps:
        return _unknown(None, None, None, peak, NO_TIMED_STEPS)
    why = NO_PEAK if peak is None else NOT_IN_STEPS if of_ops is None else ""
    known = _unknown(account.step_ps, account.period_ps, len(account.cores), peak, why)
    if why or of_ops is None:
        return known
    at_peak = of_ops.owner_ps[:, owner_index("ideal")] * of_ops.flops_part
    if not at_peak.any():
        return replace(known, unknown=_why(NO_COUNT))
    again = of_ops.is_recomputed
    asked = at_peak * of_ops.model_part
    computed, recomputed = float(at_peak.sum()), float(at_peak[again].sum())
    passes = float((at_peak - asked)[~again].sum())
    lost = {loss.cause: loss.time_ps for loss in account.losses}
    padding = lost.get("padding", 0.0) + lost.get("small_dimensions", 0.0)
    of_owner = {each.owner: each.time_ps for each in account.owners}
    times: dict[UsePart, float] = {
        **{part: sum(of_owner.get(owner, 0.0) for owner in owners) for part, owners in _OWNERS.items()},
        "padding": padding,
        "below_roof": of_owner.get("loss", 0.0) - padding,
        "memory": of_owner.get("ideal", 0.0) - computed,
        "recomputed": recomputed,
        "passes": passes,
        "mfu": computed - recomputed - passes,
    }
    step = account.step_ps
    parts = tuple(Part(part, times[part] / step, times[part]) for part in PARTS if times.get(part))
    hfu, mfu, uncounted = computed / step, times["mfu"] / step, times["uncounted"] / step
    found = replace(known, parts=parts, uncounted=uncounted, hfu=hfu, mfu=mfu, unknown={})
    return replace(found, model_flops=(found.mfu or 0.0) * (found._most or 0.0))


def with_given(use: ModelUse, model_flops: float | None, tokens: float | None) -> ModelUse:
    """The same with what the user knows of a step, over all cores: its FLOPs, its tokens or samples."""
    use = replace(use, tokens=tokens)
    most = use._most
    if model_flops is None:
        return use
    unknown = {name: why for name, why in use.unknown.items() if name != "model_flops"}
    use = replace(use, model_flops=model_flops, is_given=True, unknown=unknown)
    if not most:
        return use
    mfu, step = model_flops / most, use.step_ps or 0.0
    unknown = {name: why for name, why in unknown.items() if name != "mfu"}
    if not use.parts:
        return replace(use, mfu=mfu, unknown=unknown)
    kept = [each for each in use.parts if each.part != "mfu"]
    other = 1.0 - mfu - sum(each.fraction for each in kept)
    kept += [Part("other", other, other * step), Part("mfu", mfu, mfu * step)]
    return replace(use, mfu=mfu, parts=tuple(kept), unknown=unknown)


def _unknown(
    step_ps: float | None, period_ps: float | None, cores: int | None, peak: float | None, why: str
) -> ModelUse:
    return ModelUse(step_ps, period_ps, cores, peak, None, None, (), None, None, False, None, _why(why))


def _why(reason: str) -> dict[str, str]:
    return dict.fromkeys(("hfu", "mfu", "step_flops", "model_flops", "uncounted"), reason)
