"""Why computing ops take longer than at their roof: the loss of a step by cause.

Each op's loss is divided once, by the first cause that explains it: a loop's own time, bytes that need not move,
matrices that do not fill the matrix unit, passes at a higher precision, accesses one after the other, random bits, and
what no op reaches. The rest is unexplained.

Bytes that need not move cost more than an op loses: without them its roof is another one. Here only the loss counts,
against the roof that it has; the worth of a finding about them holds the time at that roof as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.words import share
from tpuprof.parsers.formats.hlo.matrix import mxu_side
from tpuprof.parsers.ops.roofline import BOUNDS, holds_ops
from tpuprof.parsers.pages.findings.budget import Budget, Detector
from tpuprof.parsers.pages.findings.claims import Rows
from tpuprof.parsers.pages.findings.ops.groups import REACHED
from tpuprof.parsers.pages.findings.ops.intermediates import scores_in_hbm, unfused
from tpuprof.parsers.pages.findings.ops.needless.expanded import expanded
from tpuprof.parsers.pages.findings.ops.needless.low_rank import low_rank
from tpuprof.parsers.pages.findings.ops.needless.repeated import few_rows, repeated_casts
from tpuprof.parsers.pages.findings.ops.products import products_of

LossCause = Literal[
    "loops",
    "repeated",
    "intermediates",
    "small_dimensions",
    "padding",
    "precision",
    "latency",
    "random_bits",
    "unreachable",
    "unexplained_compute",
    "unexplained_memory",
]
"""Why an op takes longer than at its roof (see `CAUSE_WORDS`)."""

CAUSES: tuple[LossCause, ...] = get_args(LossCause)

CAUSE_WORDS: Mapping[LossCause, str] = {
    "loops": "self time of loops, calls and conditionals, which do no work of their own",
    "repeated": "work that every trip of a loop repeats: casts of the same weights, and products that read their "
    "weights "
    "for the few rows of a micro-batch",
    "intermediates": "ops that pass arrays to each other through HBM, which a single op would keep on the chip: "
    "scores of "
    "attention, memory-bound ops in a row, several passes over one array, arrays that are unpacked or repeated for the "
    "products or kernels that read them, products of a low rank beside larger ones",
    "small_dimensions": "matrix products with a dimension smaller than the matrix unit's width",
    "padding": "matrix products with dimensions that are not multiples of the matrix unit's tile",
    "precision": "matrix products in several passes, for a higher precision",
    "latency": "gathers, scatters and sorts, which access memory one element at a time",
    "random_bits": "random bits",
    "unreachable": f"time between the roof and {share(REACHED)} of it, the most that ops reach",
    "unexplained_compute": "loss that none of these explains, in ops bound by peak FLOP/s",
    "unexplained_memory": "loss that none of these explains, in ops bound by memory bandwidth",
}

CAUSE_TITLES: Mapping[LossCause, str] = {
    "loops": "loops",
    "repeated": "repeated in loops",
    "intermediates": "arrays between ops",
    "small_dimensions": "small dimensions",
    "padding": "padding",
    "precision": "precision",
    "latency": "latency",
    "random_bits": "random bits",
    "unreachable": "beyond reach",
    "unexplained_compute": "unexplained, compute",
    "unexplained_memory": "unexplained, memory",
}
"""What each cause is called on the screen and in reports."""

_LATENCY = pattern(r"gather|scatter|^sort$")
_RANDOM = pattern(r"random_bits|threefry|rng_bit_generator|/rng")


@dataclass(frozen=True, slots=True)
class Loss:
    """What computing ops lose for one cause.

    Attributes:
        time_ps: mean over cores, of a step, or of the capture without steps.
        op: the op that loses most for it; ops: how many do.
    """

    cause: LossCause
    time_ps: float
    op: str
    ops: int


def losses(whole: Budget, total_ps: float, failed: list[str]) -> tuple[Loss, ...]:
    """The loss of a step by cause, the largest first; together they are the loss that the account has.

    Args:
        total_ps: the loss of the mean step, which the account has. Times by op give its shares alone.
        failed: gets a sentence on each detector that fails.
    """
    if not total_ps > 0:
        return ()
    rows, _ = whole.ops("compute", "vector")
    rows = rows[whole.owners.are("loss")[rows]]  # those whose work is counted
    times = whole.op_ps(rows)
    by_cause = _by_cause(whole, rows, times, times * (1.0 - whole.owners.ideal[rows]), _avoidable(whole, failed))
    together = float(by_cause.sum())
    scale = total_ps / together if together > 0 else 0.0
    found = [
        Loss(
            cause, float(of.sum()) * scale, whole.evidence.table.name[int(rows[of.argmax()])], int(np.count_nonzero(of))
        )
        for cause, of in zip(CAUSES, by_cause, strict=True)
        if of.any()
    ]
    return tuple(sorted(found, key=lambda loss: -loss.time_ps))


def _avoidable(whole: Budget, failed: list[str]) -> dict[LossCause, frozenset[int]]:
    """Rows of the ops that move bytes that need not move, by cause."""
    detectors: dict[LossCause, tuple[Detector, ...]] = {
        "repeated": (repeated_casts, few_rows),
        "intermediates": (unfused, expanded, low_rank, scores_in_hbm),
    }
    found = {cause: [each for of in some for each in of.claims(whole, failed)] for cause, some in detectors.items()}
    return {cause: frozenset(row for _, claim in of for row in claim.rows.tolist()) for cause, of in found.items()}


def _by_cause(
    whole: Budget, rows: Rows, times: Floats, lost: Floats, avoidable: Mapping[LossCause, frozenset[int]]
) -> Floats:
    """float64[causes, rows]: each op's loss by cause."""
    out, rest, table = np.zeros((len(CAUSES), len(rows))), lost.copy(), whole.evidence.table

    def claim(cause: LossCause, wanted: Floats) -> None:
        taken = np.clip(wanted, 0.0, rest)
        out[CAUSES.index(cause)] += taken
        rest[:] -= taken

    categories = [table.category[row] or "" for row in rows.tolist()]
    claim("loops", np.where(holds_ops(table)[rows], lost, 0.0))
    for cause, ops in avoidable.items():
        claim(cause, np.where([row in ops for row in rows.tolist()], rest, 0.0))
    for cause, extra in _of_products(whole, rows, times).items():
        claim(cause, extra)
    claim("latency", np.where([bool(_LATENCY.search(category)) for category in categories], rest, 0.0))
    is_random = [bool(_RANDOM.search(table.framework_op[row])) for row in rows.tolist()]
    claim("random_bits", np.where(is_random, rest, 0.0))
    claim("unreachable", (times - lost) * (1.0 / REACHED - 1.0))
    in_compute = whole.evidence.rates.bound_by[rows] == BOUNDS.index("compute")
    claim("unexplained_compute", np.where(in_compute, rest, 0.0))
    claim("unexplained_memory", rest.copy())
    return out


def _of_products(whole: Budget, rows: Rows, times: Floats) -> dict[LossCause, Floats]:
    """What products lose by the sizes of their matrices and by their passes: float64[rows] by cause, in this order."""
    out: dict[LossCause, Floats] = {
        "small_dimensions": np.zeros(len(rows)),
        "padding": np.zeros(len(rows)),
        "precision": np.zeros(len(rows)),
    }
    products, side = whole.once(products_of), mxu_side(whole.evidence.device_type)
    if side is None:
        return out
    place = {row: at for at, row in enumerate(rows.tolist())}
    used = np.nan_to_num(products.used)
    for at, (row, product) in enumerate(zip(products.rows.tolist(), products.products, strict=True)):
        if row not in place:
            continue
        here = place[row]
        plain = times[here] * used[at]  # what its multiplications take at the peak
        filled = product.filled or 1.0
        is_small = any(size is not None and size < side for work in product.works for size in (work.k, work.n))
        out["small_dimensions" if is_small else "padding"][here] = plain * (1 / filled - 1)
        out["precision"][here] = plain / filled * (product.passes - 1)
    return out
