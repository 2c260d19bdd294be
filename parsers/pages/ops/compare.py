"""Two HLO ops side by side: what is different, and what that says of the difference in time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import share
from tpuprof.parsers.formats.hlo.shapes import shapes_in
from tpuprof.parsers.ops.roofline import AT_THE_PEAK
from tpuprof.parsers.pages.ops.details import MOST_TEXT
from tpuprof.parsers.pages.ops.ops import OpsPage

ALIKE = 0.05
"""Figures that differ by less count as the same."""

MUCH = 1.5
"""A ratio of work from which on it is worth a sentence of its own."""

MOST_ARRAYS = 12
"""Arrays of an op that are compared one by one."""


@dataclass(frozen=True, slots=True)
class Array:
    """An array that an op writes or reads: its type and dimensions, its layout and memory, and what padding adds.

    Attributes:
        text: as the HLO text has it, ``bf16[8,128]{1,0:T(8,128)}``.
        shape, layout: the parts of it, ``bf16[8,128]`` and ``{1,0:T(8,128)}``.
        padding: bytes that tiling adds; None where the layout does not say.
        plain: bytes of its elements; None where unknown.
    """

    text: str
    shape: str
    layout: str
    padding: int | None
    plain: int | None


@dataclass(frozen=True, slots=True)
class ComparedOp:
    """One of two ops.

    Attributes:
        row: its row in the page of ops.
        arrays: of its HLO text in order, the results first; at most `MOST_ARRAYS`.
        seconds: of one run; None without any.
        flops, bytes_moved: of one run; None where unknown. Bytes are HBM's.
        padding: bytes that tiling adds to all arrays; None where no layout says.
    """

    row: int
    arrays: tuple[Array, ...]
    seconds: float | None
    flops: float | None
    bytes_moved: float | None
    padding: int | None


@dataclass(frozen=True, slots=True)
class OpComparison:
    """Two ops of a page, and the sentences on what is different; the first is the marked one."""

    page: OpsPage
    left: ComparedOp
    right: ComparedOp
    sentences: tuple[str, ...]


def compare_ops(page: OpsPage, left: int, right: int) -> OpComparison:
    """Compares two rows of a page of ops."""
    pair = _compared(page, left), _compared(page, right)
    return OpComparison(page, *pair, tuple(_sentences(page, *pair)))


def _compared(page: OpsPage, row: int) -> ComparedOp:
    table = page.table
    runs, arrays = int(table.occurrences[row]), arrays_of(table.expression(row))
    known = [array.padding for array in arrays if array.padding is not None]

    def of_one(value: float) -> float | None:
        return value / runs if runs and math.isfinite(value) else None

    return ComparedOp(
        row=row,
        arrays=arrays,
        seconds=int(table.total_ps[row]) / 1e12 / runs if runs else None,
        flops=of_one(float(table.flops[row])),
        bytes_moved=of_one(float(table.hbm_bytes[row])),
        padding=sum(known) if known else None,
    )


def arrays_of(expression: str) -> tuple[Array, ...]:
    """The arrays in an HLO text, in its order: what it writes, then what it reads."""
    arrays = []
    for found in shapes_in(expression[:MOST_TEXT]):
        text = expression[found.begin : found.end]
        shape, brace, layout = text.partition("{")
        padded, plain = found.shape.padded_bytes, found.shape.unpadded_bytes
        padding = None if padded is None or plain is None else padded - plain
        arrays.append(Array(text, shape, brace + layout, padding, plain))
        if len(arrays) == MOST_ARRAYS:
            break
    return tuple(arrays)


def ratio(left: float | None, right: float | None) -> float | None:
    """The right figure over the left one; None where one of them is unknown or 0."""
    return right / left if left and right and math.isfinite(left) and math.isfinite(right) else None


def is_alike(left: float | None, right: float | None) -> bool:
    """Whether two figures are the same, or both unknown, or nearly the same."""
    if left == right:
        return True
    times = ratio(left, right)
    return times is not None and abs(times - 1) < ALIKE


def _sentences(page: OpsPage, left: ComparedOp, right: ComparedOp) -> list[str]:
    """What is different about the time of a run, why, and what of the ops' making is different."""
    times = ratio(left.seconds, right.seconds)
    made = _made_differently(page, left, right)
    if times is None:
        return ["The profile has no time for one of them.", *made]
    if times < 1:
        return _sentences(page, right, left)
    fast, slow = page.table.name[left.row], page.table.name[right.row]
    if abs(times - 1) < ALIKE:
        return [f"A run of either takes the same time, within {share(ALIKE)}.", *made]
    why = f"A run of {slow} takes {times:.3g} times as long as one of {fast}: {_why(page, left, right)}."
    return [why, *_other_work(page, left, right), *made]


def _why(page: OpsPage, fast: ComparedOp, slow: ComparedOp) -> str:
    """How much of the ratio of times is more work, and how much a lower rate, for what bounds the slower op."""
    bound, used = page.rates.bound_name(slow.row), float(page.rates.efficiency[slow.row])
    other = float(page.rates.efficiency[fast.row])
    if bound == "unknown":
        return "the profile counts no work for it that would explain this"
    if used > AT_THE_PEAK or other > AT_THE_PEAK:
        return "one of them does not do its counted work in its own time, so its rates mean nothing"
    compute = bound == "compute"
    work = ratio(fast.flops, slow.flops) if compute else ratio(fast.bytes_moved, slow.bytes_moved)
    times = ratio(fast.seconds, slow.seconds)
    what = "FLOPs" if compute else "bytes of HBM"
    if work is None or times is None:
        return f"it is bound by {bound}, and that work is unknown for the other"
    rates = f"{share(used)} of the roof against {share(other)}"
    if abs(work - 1) < ALIKE:
        return f"it does as much work ({what}) at a lower rate, {rates}"
    if abs(times / work - 1) < 2 * ALIKE:
        return f"it has {work:.3g} times the {what}, at about the same rate"
    if work > 1 and times > work:
        return f"{work:.3g} times of that is more {what}, the rest a lower rate ({rates})"
    if work > 1:
        return f"it has {work:.3g} times the {what}, done at a higher rate ({rates})"
    return f"it has only {work:.3g} times the {what}, at a much lower rate ({rates})"


def _other_work(page: OpsPage, fast: ComparedOp, slow: ComparedOp) -> list[str]:
    """A sentence on the work that does not bound the slower op, where it differs much."""
    compute = page.rates.bound_name(slow.row) == "compute"
    of = (fast.bytes_moved, slow.bytes_moved) if compute else (fast.flops, slow.flops)
    times = ratio(*of)
    if times is None or max(times, 1 / times) < MUCH:
        return []
    more = page.table.name[(slow if times > 1 else fast).row]
    return [f"{more} has {max(times, 1 / times):.3g} times the {'bytes of HBM' if compute else 'FLOPs'} of the other."]


def _made_differently(page: OpsPage, left: ComparedOp, right: ComparedOp) -> list[str]:
    """Sentences on kinds, shapes, layouts and padding."""
    table, found = page.table, []
    categories = [table.category[op.row] or "unknown" for op in (left, right)]
    if categories[0] != categories[1]:
        found.append(f"They are of different kinds: {categories[0]} and {categories[1]}.")
    if not left.arrays or not right.arrays:
        return [*found, "The profile lacks the HLO text of one of them, so shapes can't be compared."]
    shapes = [[array.shape for array in op.arrays] for op in (left, right)]
    if shapes[0] != shapes[1]:
        found.append("Their shapes differ.")
    elif [array.layout for array in left.arrays] != [array.layout for array in right.arrays]:
        found.append("Their shapes are the same, their layouts or memories are not.")
    else:
        found.append("Their shapes and layouts are the same.")
    padding = [_padded_share(op.arrays) for op in (left, right)]
    if padding[0] is not None and padding[1] is not None and abs(padding[0] - padding[1]) > ALIKE:
        more, less = max(padding[0], padding[1]), min(padding[0], padding[1])
        worse = left if padding[0] == more else right
        found.append(
            f"Padding adds {share(more)} to the bytes of {table.name[worse.row]}, {share(less)} to the other's."
        )
    return found


def _padded_share(arrays: Sequence[Array]) -> float | None:
    """What padding adds to the arrays, of their elements' bytes."""
    known = [(array.padding, array.plain) for array in arrays if array.padding is not None and array.plain]
    plain = sum(size for _, size in known if size is not None)
    return sum(padding for padding, _ in known if padding is not None) / plain if plain else None
