"""Findings about matrix products: padded ones, ones in more precision than needed, and ones on the vector unit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.intervals import Floats, is_among
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import multiple, share
from tpuprof.parsers.formats.hlo.matrix import MatrixWork, matrix_types, matrix_works, mxu_side
from tpuprof.parsers.formats.hlo.shapes import element_bits, element_type
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.claims import Rows
from tpuprof.parsers.pages.findings.finding import HLO, PEAKS, Kind
from tpuprof.parsers.pages.findings.ops import groups as op_groups

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

_LEAST_OP = 2e-4
"""It looks at the shapes of ops from this share of the time on; smaller ones are not worth the parsing."""

_MOST_OPS = 4000

_PLAUSIBLE = 1.05
"""The compiler laid out an op otherwise if it is faster than its padded shape allows; then the estimate is wrong."""

_NARROW = frozenset({"bf16", "f16", "s8", "u8", "s4", "u4", "f8e4m3fn", "f8e5m2"})
_SLOWER = 0.6
"""Operands in 32 bits cost time where a product reaches less than this share of what products in 16 bits do."""

_ON_HBM = 0.6  # share of HBM's peak from which on an op waits for memory and not for the matrix unit
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Product:
    """A matrix op: what it fills of the matrix unit (0-1, None where unknown), its products, operand types, passes."""

    filled: float | None
    works: tuple[MatrixWork, ...]
    types: frozenset[str]
    passes: int


@dataclass(frozen=True, slots=True)
class Products:
    """The large matrix ops of a program.

    Attributes:
        rows: their rows in the op table, those with most time first.
        times: float64[rows], their time in the budget.
        products: what the compiled program says of each.
        used: float64[rows], the share of the peak FLOP/s; NaN where unknown.
        bandwidth: float64[rows], the share of HBM's peak; NaN where unknown.
    """

    rows: Rows
    times: Floats
    products: tuple[_Product, ...]
    used: Floats
    bandwidth: Floats

    def at(self, row: int) -> int:
        """Where a row of the table stands here."""
        return int(np.flatnonzero(self.rows == row)[0])

    def sizes(self, row: int) -> tuple[int, int, int] | None:
        """m, k and n of an op's only product; None where it has several, batched ones, or unknown ones."""
        works = self.products[self.at(row)].works
        if len(works) != 1 or works[0].batch != 1:
            return None
        work = works[0]
        return (work.m, work.k, work.n) if work.m and work.k and work.n else None

    @property
    def filled(self) -> Floats:
        """float64[rows]: what each fills of the matrix unit; 1 where unknown."""
        return np.array([1.0 if product.filled is None else product.filled for product in self.products])


def products_of(budget: Budget) -> Products:
    """Reads the shapes and types of the large matrix ops, of duplicates once; empty without HLO or a matrix unit."""
    evidence = budget.evidence
    side, rows = mxu_side(evidence.device_type) or 0, budget.rows["compute"]
    times = budget.op_ps(rows)
    rows = rows[times >= _LEAST_OP * budget.whole_ps][: _MOST_OPS if side and evidence.modules else 0]
    known: dict[tuple[int, str], _Product] = {}
    products = []
    for row, duplicate in zip(rows.tolist(), evidence.table.texts("deduplicated_name", rows), strict=True):
        key = int(evidence.table.program_id[row]), duplicate or evidence.table.name[row]
        if key not in known:
            known[key] = _product(budget, row, side)
        products.append(known[key])
    used = op_groups.capped(evidence.rates.flops_utilization[rows])
    bandwidth = op_groups.capped(evidence.rates.bandwidth_utilization[rows, op_groups.HBM])
    return Products(rows, budget.op_ps(rows), tuple(products), used, bandwidth)


def _product(budget: Budget, row: int, side: int) -> _Product:
    module, name = op_groups.module_of(budget.evidence, row), budget.evidence.table.name[row]
    if module is None:
        return _Product(None, (), frozenset(), 1)
    works = matrix_works(module, name, side)
    return _Product(_filled(works), works, *matrix_types(module, name))


def _filled(works: Iterable[MatrixWork]) -> float | None:
    """The share of some products' multiplications that is not padding; None where one product is unknown."""
    plain = padded = 0
    for work in works:
        if (
            work.m is None or work.k is None or work.n is None or work.batch is None
            or work.padded_m is None or work.padded_k is None or work.padded_n is None
        ):  # fmt: skip
            return None
        plain += work.batch * work.m * work.k * work.n
        padded += work.batch * work.padded_m * work.padded_k * work.padded_n
    return plain / padded if padded else None


def _speed(products: Products) -> Floats:
    """float64[rows]: the share of what the unit can do for the padded shape; NaN where unknown or impossible."""
    speed = products.used / products.filled
    return np.where(speed <= _PLAUSIBLE, np.minimum(speed, 1.0), np.nan)


PRECISION = Kind(
    "precision",
    "needless precision",
    advice="Use bfloat16 operands, or the default precision, if the model's accuracy allows it.",
    rank=23,
    needs=(HLO,),
)


@detects(PRECISION)
def needless_precision(budget: Budget) -> Claimed:
    """Products of 32-bit operands, or at a higher precision, that take longer than such in bfloat16 do."""
    products = budget.once(products_of)
    wide = np.array(["f32" in product.types for product in products.products], np.bool_)
    if not wide.any():
        return NOTHING
    narrow = np.array([product.types <= _NARROW for product in products.products], np.bool_)
    passes = np.array([product.passes for product in products.products], np.float64)
    speed = _speed(products)
    best = op_groups.reached(budget, speed[narrow], products.times[narrow])
    # by one pass at the speed of the others, or by half the bytes where these take longer; not below what passes allow
    after = np.maximum(np.nan_to_num(speed) / best, np.nan_to_num(products.bandwidth) / 2 / op_groups.REACHED)
    after = np.maximum(after, 1 / np.where(passes > 1, passes, 6))
    slow = wide & (speed > 0) & (speed < _SLOWER * best) & (np.nan_to_num(products.bandwidth) < _ON_HBM)
    saved = np.where(slow, products.times * np.maximum(1 - after, 0.0), 0.0)

    losing = op_groups.worthwhile(budget, products.rows, saved, goes_away=True)
    product = products.products[products.at(losing.first)]
    how = {6: "at the highest precision, six passes", 3: "at high precision, three passes"}.get(product.passes, "")
    count = losing.count
    what = (
        f"{count} matrix ops run" if count > 1 else f"{op_groups.subject(budget.evidence.table, losing.groups[0])} runs"
    )
    return losing.finding(
        PRECISION,
        f"{what} in f32{' at the highest precision' if product.passes == 6 else ''}, not in bfloat16",
        f"Time of these products above one pass in bfloat16 at {share(best)} of the peak, which other ops "
        "reach; or above the time of half their bytes.",
        [
            losing.words("Matrix ops with f32 operands"),
            f"{budget.described(losing.first)} multiplies f32 by f32{f' {how}' if how else ''}, "
            f"at {share(float(products.used[products.at(losing.first)]))} of the peak.",
        ],
    )


PADDING = Kind(
    "padding",
    "padded matrix products",
    advice="Choose sizes that are multiples of the matrix unit's width, or fold small dimensions together.",
    rank=24,
    needs=(HLO,),
)


@detects(PADDING)
def padded_products(budget: Budget) -> Claimed:
    """Products whose sizes are no multiples of the matrix unit's side, over all of a group."""
    products = budget.once(products_of)
    filled, speed = products.filled, _speed(products)
    free = is_among(products.rows, budget.rows["compute"])
    best = op_groups.reached(budget, speed, products.times)
    # only as much of the time as the unit is at work
    at_work = np.minimum(np.nan_to_num(speed, nan=0.0) / best, 1.0)
    at_work = np.where(np.isnan(products.used), 1.0, at_work)
    saved = products.times * (1 - filled) * at_work
    # without padding it would still have to move its bytes
    saved = np.minimum(
        saved, products.times * np.maximum(0.0, 1 - np.nan_to_num(products.bandwidth) / op_groups.REACHED)
    )
    saved = np.where(free, saved, 0.0)

    losing = op_groups.worthwhile(budget, products.rows, saved)
    first, more = losing.groups[0], len(losing.groups) - 1
    fills = share(float(filled[products.at(first.first)]))
    verb = "fill" if len(first.rows) > 1 else "fills"
    return losing.finding(
        PADDING,
        f"{op_groups.subject(budget.evidence.table, first)} {verb} {fills} of the matrix unit"
        + (f", {more} more pad it too" if more else ""),
        "Their time times the share of multiplications that are padding, in a matrix unit "
        f"{mxu_side(budget.evidence.device_type)} wide; less where padding does not explain all of their slowness.",
        list(_padded_words(budget, products, losing.groups[:_MOST_NAMED])),
    )


def _padded_words(budget: Budget, products: Products, groups: Sequence[op_groups.CloneGroup]) -> Iterable[str]:
    for group in groups:
        product = products.products[products.at(group.first)]
        work = min(product.works, key=lambda work: work.share if work.share is not None else 1.0)
        sizes = " x ".join(
            f"{letter} {plain or 0:,}" + ("" if plain == full else f" (padded to {full or 0:,})")
            for letter, plain, full in zip(
                "mkn", (work.m, work.k, work.n), (work.padded_m, work.padded_k, work.padded_n), strict=True
            )
        )
        most = f", most in {work.padded_dimension} ({work.meaning})" if work.padded_dimension else ""
        alike = f", and {len(group.rows) - 1} alike, take" if len(group.rows) > 1 else " takes"
        filled = product.filled if product.filled is not None else math.nan
        name = budget.described(group.first)
        yield f"{name}{alike} {budget.amount(group.ps)} and fills {share(filled)}: {sizes}{most}."


# --- products on the vector unit -----------------------------------------------------------------------------------

_SLOW_VECTOR = 0.1
"""The vector unit has some 2 to 5 % of the matrix unit's rate: an op in it uses less than this share of the peak."""

_MUCH = 4.0
"""FLOPs a byte of HBM traffic from which on an op multiplies each element often, as a product does."""

VECTOR_WORK = Kind(
    "vector-work",
    "products and running sums on the vector unit",
    advice="Write it as a dot product, so that it runs on the matrix unit.",
    rank=30,
    needs=(HLO, PEAKS),
)


@detects(VECTOR_WORK)
def vector_work(budget: Budget) -> Claimed:
    """Products that the vector unit computes: sums of products of broadcast arrays."""
    evidence, rows = budget.evidence, budget.rows["vector"]
    times = budget.op_ps(rows)
    used = op_groups.capped(evidence.rates.flops_utilization[rows])
    bandwidth = op_groups.capped(evidence.rates.bandwidth_utilization[rows, op_groups.HBM])
    intensity = np.nan_to_num(evidence.rates.hbm_intensity[rows], nan=math.inf)
    large = (times >= _LEAST_OP * budget.whole_ps) & (used > 0) & (used < _SLOW_VECTOR) & (intensity >= _MUCH)
    large &= ~(bandwidth > _ON_HBM)
    holds = {row: {each.opcode for each in op_groups.inside(evidence, row)} for row in rows[large].tolist()}
    large[large] = [{b"reduce", b"multiply", b"broadcast"} <= opcodes for opcodes in holds.values()]
    windows = (times >= _LEAST_OP * budget.whole_ps) & (used < _SLOW_VECTOR) & ~large & ~(bandwidth > _ON_HBM)
    of_windows = [{each.opcode for each in op_groups.inside(evidence, row)} for row in rows[windows].tolist()]
    windows[windows] = [b"reduce-window" in opcodes for opcodes in of_windows]
    large |= windows
    after = np.maximum(np.nan_to_num(used), np.nan_to_num(bandwidth)) / op_groups.REACHED
    saved = np.where(large, times * np.maximum(1 - after, 0.0), 0.0)

    losing = op_groups.worthwhile(budget, rows, saved)
    first = rows == losing.first
    rate, per_byte = float(used[first][0]), float(intensity[first][0])
    if windows[first].any():
        return losing.finding(
            VECTOR_WORK,
            f"{op_groups.subject(evidence.table, losing.groups[0])} adds up window by window",
            f"The ops' time beyond what HBM needs for their arrays, at {share(op_groups.REACHED)} of its peak.",
            [
                losing.words(more=" together"),
                f"{budget.described(losing.first)} adds each element once for each window.",
            ],
            advice=_RUNNING_SUM,
        )
    return losing.finding(
        VECTOR_WORK,
        f"{op_groups.subject(evidence.table, losing.groups[0])} multiplies and sums on the vector unit",
        f"The ops' time beyond what the matrix unit or HBM needs for the same work, at "
        f"{share(op_groups.REACHED)} of the peak.",
        [
            losing.words(more=" together"),
            f"{budget.described(losing.first)} sums products of broadcast arrays at {share(rate)} of the matrix "
            f"unit's peak, {multiple(per_byte)} FLOPs a byte."
            if math.isfinite(per_byte)
            else "",
        ],
    )


_RUNNING_SUM = (
    "Take the running sum with jax.lax.associative_scan, or as a product with a triangular matrix of ones: a "
    "reduce-window over n elements adds n times n."
)


# --- random bits ---------------------------------------------------------------------------------------------------

_LEAST_ROUNDS = 8
"""Generators of random numbers mix the bits of their counters in this many rounds or more (threefry in 20), hashes of
keys in three or four."""

_SHIFTS = frozenset({b"shift-left", b"shift-right-logical"})
_WORDS_OF_BITS = frozenset({"u32", "u64"})

_BITS_ADVICE = (
    "Use the chip's own generator (jax_default_prng_impl: rbg or unsafe_rbg), or draw fewer bits: 8 or 16 an element, "
    "or one mask for several layers."
)


@dataclass(frozen=True, slots=True)
class _Mixed:
    """A fusion that mixes bits: rounds an element, the type of the words, and the bytes that move without that.

    The bits are written once; where something else comes out, they and what else the fusion reads are read to make it.
    """

    rounds: int
    words: str
    bytes: int


@detects(VECTOR_WORK)
def random_bits(budget: Budget) -> Claimed:
    """Random bits that the vector unit makes by mixing counters, where the chip has a generator of its own."""
    evidence, rows = budget.evidence, budget.rows["vector"]
    times, peak = budget.op_ps(rows), evidence.peaks.hbm
    if peak is None:
        return NOTHING
    large = rows[times >= _LEAST_OP * budget.whole_ps].tolist()
    mixed = {row: found for row in large if (found := _mixed(budget, row)) is not None}
    if not mixed:
        return NOTHING
    best = op_groups.reached(budget, op_groups.capped(evidence.rates.bandwidth_utilization[rows, op_groups.HBM]), times)
    runs = np.maximum(evidence.table.occurrences[rows], 1)
    once = evidence.table.self_ps[rows] / runs
    needed = np.array([mixed[row].bytes if row in mixed else math.inf for row in rows.tolist()]) / (peak * best) * 1e12
    saved = times * np.maximum(1 - needed / np.maximum(once, 1.0), 0.0)

    losing = op_groups.worthwhile(budget, rows, saved, goes_away=True)
    of = mixed[losing.first]
    return losing.finding(
        VECTOR_WORK,
        f"{op_groups.subject(evidence.table, losing.groups[0])} generates random bits on the vector unit",
        f"The ops' time beyond what the bytes of their results need at {share(best)} of HBM's peak.",
        [
            losing.words(more=" together"),
            f"{budget.described(losing.first)} mixes {of.words} in {of.rounds} rounds of shift and xor per "
            "element, as threefry does for random numbers.",
        ],
        advice=_BITS_ADVICE,
    )


def _mixed(budget: Budget, row: int) -> _Mixed | None:
    """What a fusion mixes; None for an op that does not, by the shifts and xors of words that it holds."""
    module, name = op_groups.module_of(budget.evidence, row), budget.evidence.table.name[row]
    proto = module.instruction_proto(name) if module is not None else None
    if module is None or proto is None:
        return None
    fused = module.inside(proto)
    words = [each for each in fused if element_type(each.shape) in _WORDS_OF_BITS]
    rounds = min(sum(each.opcode == b"xor" for each in words), sum(each.opcode in _SHIFTS for each in words))
    if rounds < _LEAST_ROUNDS:
        return None
    xor = max((each for each in words if each.opcode == b"xor"), key=lambda each: math.prod(each.shape.dimensions))
    moved = _bytes_of(proto.shape)
    if not all(element_type(part) in _WORDS_OF_BITS for part in proto.shape.tuple_shapes or [proto.shape]):
        read = [each.shape for each in fused if each.opcode == b"parameter"]
        moved += 2 * _bytes_of(xor.shape)
        moved += sum(_bytes_of(shape) for shape in read if element_type(shape) not in _WORDS_OF_BITS)
    return _Mixed(rounds, element_type(xor.shape), moved)


def _bytes_of(shape: hlo_pb2.ShapeProto) -> int:
    """Bytes of an array, or of all of a tuple."""
    return sum(math.prod(part.dimensions) * element_bits(part) // 8 for part in shape.tuple_shapes or [shape])
