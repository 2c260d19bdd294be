"""Which block size: kernels of a run that do one thing in blocks of different sizes.

They are ordered by the device's time of their median run. What makes one slower than the best is measured where spans
say what it waits for, and else read from its module: bytes that it copies, steps of its grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import size, time
from tpuprof.parsers.pages.ops.kernels.tpu import TpuKernel

LEAST_MORE = 0.02
"""A part that differs by less than this share of the best run does not say why another is slower."""

NO_REASON = "n/a: neither spans nor modules of both say what differs"


@dataclass(frozen=True, slots=True)
class Variant:
    """A kernel among others that do the same on arrays of the same sizes.

    Attributes:
        place: 1 for the fastest.
        slower: how much longer its median run takes than that of the best (0 for the best; 1: twice as long).
        why: what takes longer than in the best; empty for that one.
    """

    kernel: TpuKernel
    place: int
    slower: float
    why: str


def variants(kernels: Iterable[TpuKernel]) -> tuple[Variant, ...]:
    """Those of each kernel that has blocks of several sizes, the fastest first; what comes first among all stays so."""
    sized = (of for of in kernels if of.runs.median_ps and (of.block_sizes or of.parameters))
    groups = grouped(((kernel.kernel, kernel.arrays), kernel) for kernel in sized)
    return tuple(variant for group in groups.values() if _differ(group) for variant in _ordered(group))


def _differ(group: Sequence[TpuKernel]) -> bool:
    return len({(kernel.block_sizes, kernel.grid, kernel.parameters) for kernel in group}) > 1


def _ordered(group: Sequence[TpuKernel]) -> list[Variant]:
    ordered = sorted(group, key=lambda kernel: (kernel.runs.median_ps or 0, kernel.op, kernel.program))
    best = ordered[0]
    least = best.runs.median_ps or 1
    return [
        Variant(each, place, (each.runs.median_ps or 0) / least - 1, why_slower(each, best) if each is not best else "")
        for place, each in enumerate(ordered, 1)
    ]


def why_slower(kernel: TpuKernel, best: TpuKernel) -> str:
    """What takes longer in a kernel than in the best one, the largest part first, as a clause."""
    least = LEAST_MORE * (best.mean_ps or 0.0)
    parts = [
        ("waits for copies in", kernel.wait_in, best.wait_in),
        ("waits for copies out", kernel.wait_out, best.wait_out),
        ("computes", kernel.body, best.body),
    ]
    longer: list[tuple[float, str]] = []
    for what, part, of_best in parts:
        if part is not None and of_best is not None and kernel.mean_ps and best.mean_ps:
            more = part * kernel.mean_ps - of_best * best.mean_ps
            if more > least:
                longer.append((more, f"{what} {time(more)} longer"))
    words = [*(text for _, text in sorted(longer, reverse=True)), *_static(kernel, best)]
    return "; ".join(words) or NO_REASON


def _static(kernel: TpuKernel, best: TpuKernel) -> list[str]:
    """What the modules of both say: bytes that they copy, and steps."""
    words: list[str] = []
    moved, of_best = kernel.bytes.value, best.bytes.value
    if moved and of_best and kernel.bytes.witness == best.bytes.witness == "shapes" and moved > of_best * 1.02:
        words.append(f"copies {size(moved)} where the best copies {size(of_best)}")
    steps, least = kernel.steps, best.steps
    if steps and least and steps > least:
        words.append(f"{steps:,} steps where the best has {least:,}")
    return words
