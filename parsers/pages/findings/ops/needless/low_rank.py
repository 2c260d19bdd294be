"""Products of a low rank beside a layer's own: they pass over its activations again for next to no multiplications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import share
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import elements
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.ops.arrays import Key, ModuleArrays, OpArrays, large_arrays
from tpuprof.parsers.pages.findings.ops.groups import place_name, reached, worthwhile
from tpuprof.parsers.pages.findings.ops.intermediates import UNFUSED
from tpuprof.parsers.pages.findings.ops.needless.uses import Uses, fusion_inputs, hands_on, is_product
from tpuprof.parsers.pages.findings.ops.products import products_of

_LOW = 8
"""A rank is low where the sides of the product that it stands for are so many times as long, at least."""

_AS_IT_IS = frozenset((b"bitcast", b"convert", b"reshape", b"copy"))

_ADVICE = (
    "Merge the two low-rank factors into the layer's weights (W + A B, once a step where they are trained), or compute "
    "both products in one kernel that reads the activations once and adds on the chip."
)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """A product of [m, k] by [k, n], whichever operand comes first."""

    short: int
    long: int
    inner: int


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two products with a low rank between them, whose result is added to that of a larger product.

    Attributes:
        ops: the second one, and the first one too where it reads what the larger product reads as well.
    """

    ops: tuple[OpArrays, ...]
    rank: int


@detects(UNFUSED)
def low_rank(budget: Budget) -> Claimed:
    """Products x A and (x A) B of a low rank, added to x W through HBM, as adapters leave them.

    Memory limits both: the first reads all activations for a few columns, the second reads and writes the layer's
    result to add to it.
    """
    products = budget.once(products_of)
    own = dict(zip(products.rows.tolist(), products.times.tolist(), strict=True))
    sizes = {row: _Sizes(min(m, n), max(m, n), k) for row in own for m, k, n in filter(None, [products.sizes(row)])}
    used, bandwidth = np.nan_to_num(products.used), np.nan_to_num(products.bandwidth)
    in_memory = {row for row in sizes if bandwidth[products.at(row)] > used[products.at(row)]}
    pairs = [pair for program in budget.once(large_arrays) for pair in _pairs(program, sizes)]
    ranks = {of.row: pair.rank for pair in pairs for of in pair.ops if of.row in in_memory}
    if not ranks:
        return NOTHING
    best = reached(budget, products.used, products.times)
    saved = products.times * np.maximum(0.0, 1 - used / best)
    saved = np.where([row in ranks for row in products.rows.tolist()], saved, 0.0)

    losing = worthwhile(budget, products.rows, saved, goes_away=True)
    name, ending = place_name(budget.evidence.table, losing.groups)
    at_peak = sum(own[row] * used[products.at(row)] for group in losing.groups for row in group.rows.tolist())
    lowest, highest = min(ranks.values()), max(ranks.values())
    return losing.finding(
        UNFUSED,
        f"{name} add{ending} products of rank {highest:,} through HBM",
        f"Time of these products above what their multiplications take at {share(best)} of the peak FLOP/s.",
        [
            losing.words(more=f", at {share(at_peak / losing.ps)} of the peak FLOP/s"),
            budget.largest(losing.first, own[losing.first]),
            f"Their ranks are {lowest:,} to {highest:,}. " * (lowest < highest)
            + "Each pair is added to a larger product of the same size, which is read or written once more.",
        ],
        advice=_ADVICE,
    )


def _pairs(program: ModuleArrays, sizes: Mapping[int, _Sizes]) -> Iterator[_Pair]:
    """The pairs of a program: x A and (x A) B, beside a product x W of the same contraction that they are added to."""
    module, uses = program.module, Uses(program.module)
    downs = {
        number: of
        for number, of in program.ops.items()
        if of.row in sizes and _LOW * sizes[of.row].short <= min(sizes[of.row].long, sizes[of.row].inner)
    }
    for up in program.ops.values() if downs else ():
        size = sizes.get(up.row)
        down = next((downs[key[0]] for key in _given(module, up) if key[0] in downs), None)
        if down is None or size is None or size.inner != sizes[down.row].short or _LOW * size.inner > size.short:
            continue
        larger = [of for of in _added_to(program, uses, up, size) if of.row in sizes]
        larger = [of for of in larger if sizes[of.row].inner == sizes[down.row].inner]
        if larger:
            activations = _given(module, down, sizes[down.row].long * sizes[down.row].inner)
            shared = activations.intersection(*(_given(module, of) for of in larger))
            yield _Pair((down, up) if shared else (up,), size.inner)


def _given(module: HloModule, of: OpArrays, count: int = 0) -> set[Key]:
    """The arrays that an op is given; of so many elements alone, unless that is 0."""
    given = (each for each in fusion_inputs(module, of.proto) if count in (0, elements(each.inner.shape)))
    return {each.outer for each in given if each.outer is not None}


def _added_to(program: ModuleArrays, uses: Uses, up: OpArrays, size: _Sizes) -> list[OpArrays]:
    """The products whose result an op's is added to: by the op itself, by the product, or by one op that reads both."""
    module, count = program.module, size.short * size.long

    def products_read_by(of: OpArrays) -> list[OpArrays]:
        keys = [key for key in _given(module, of, count) if key[0] in program.ops and _adds(module, of, key)]
        makers = [program.ops[key[0]] for key in sorted(keys)]
        return [each for each in makers if each is not up and is_product(module, each.proto)]

    before = [each for each in products_read_by(up) if _readers(program, uses, each) == [up]]
    readers = _readers(program, uses, up)
    if before or len(readers) != 1 or not any(_adds(module, readers[0], array.key) for array in up.writes):
        return before
    return readers if is_product(module, readers[0].proto) else products_read_by(readers[0])


def _readers(program: ModuleArrays, uses: Uses, of: OpArrays) -> list[OpArrays]:
    """The ops that read what an op writes; none where anything else does."""
    found = [uses.of(array.key, of.computation) for array in of.writes]
    readers = [each.id for each in found[0] or ()] if len(found) == 1 else []
    return [program.ops[number] for number in readers] if all(number in program.ops for number in readers) else []


def _adds(module: HloModule, of: OpArrays, key: Key) -> bool:
    """Whether an op adds an array to something, scaled perhaps, and does not multiply by it."""
    same = {each.inner.id for each in fusion_inputs(module, of.proto) if each.outer == key}
    for proto in module.inside(of.proto):
        operands = set(proto.operand_ids)
        if not operands & same:
            continue
        if proto.opcode == b"add":
            return True
        others = [module.instruction_by_id(number) for number in operands - same]
        scaled = proto.opcode == b"multiply" and all(
            other is not None and other.opcode == b"broadcast" and not other.dimensions for other in others
        )
        if scaled or hands_on(module, proto, _AS_IT_IS):
            same.add(proto.id)
    return False
