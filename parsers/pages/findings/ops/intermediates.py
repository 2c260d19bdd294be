"""Arrays between ops that need not go through HBM: scores of attention, and what ops in a row pass to each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import share, size
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import shape_of_proto
from tpuprof.parsers.ops.roofline import holds_ops
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.claims import Rows
from tpuprof.parsers.pages.findings.finding import HLO, PEAKS, JumpTarget, Kind
from tpuprof.parsers.pages.findings.ops import arrays
from tpuprof.parsers.pages.findings.ops import groups as op_groups
from tpuprof.parsers.pages.findings.ops.products import Products, products_of

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

_NUMBER = pattern(r"\d+")

_LONGER = 4
"""Both sides of an array of scores are so many times as long as the contraction that makes it, at least: a result that
is hardly larger than its operands has to be written."""

ADVICE = (
    "Compute attention in one kernel that keeps the scores on the chip: splash_attention or flash_attention of "
    "jax.experimental.pallas.ops.tpu, or jax.nn.dot_product_attention with an implementation= that is fused on "
    "this device."
)


@dataclass(frozen=True, slots=True)
class _Scores:
    """The ops around the scores of one attention, forward or backward; bytes: of one array of scores, the largest."""

    ops: tuple[arrays.OpArrays, ...]
    count: int
    bytes: int


UNFUSED = Kind(
    "unfused",
    "ops that are not fused",
    advice="Let the compiler fuse them: one jit, no barrier between them, and the same layout.",
    rank=31,
    needs=(HLO, PEAKS),
)


@detects(UNFUSED)
def scores_in_hbm(budget: Budget) -> Claimed:
    """Attention that writes its scores to HBM and reads them again.

    A batched product of a short contraction writes more than it reads, so memory limits it; then come ops on
    arrays of that size, and batched products that use them up. One kernel for all of them keeps the arrays on the chip.
    """
    products = budget.once(products_of)
    ridge, rates = budget.evidence.peaks.ridge_point, budget.evidence.rates
    made = {row: count for row in products.rows.tolist() if ridge and (count := _scores_of(products, row, ridge))}
    rows, times = budget.ops("compute", "vector", "copy")
    own = dict(zip(rows.tolist(), times.tolist(), strict=True))
    made = {row: count for row, count in made.items() if row in own}
    if not made:
        return NOTHING
    works = {row: products.products[products.at(row)].works for row in products.rows.tolist()}
    batched = {row for row, of in works.items() if any((work.batch or 0) > 1 for work in of)}
    others = works.keys() - batched
    free = own.keys() - others
    found = [
        each for program in budget.once(arrays.large_arrays) for each in _of_program(program.of(free), made, batched)
    ]
    if not found:
        return NOTHING
    flops = np.nan_to_num(op_groups.capped(rates.flops_utilization))
    moved = np.nan_to_num(op_groups.capped(rates.bandwidth_utilization[:, op_groups.HBM]))
    place = {row: at for at, row in enumerate(rows.tolist())}
    saved = np.zeros(len(rows))
    for each in found:
        before = sum(own[of.row] for of in each.ops)
        computing = sum(own[of.row] * float(flops[of.row]) for of in each.ops) / op_groups.USUAL
        moving = (
            sum(own[of.row] * float(moved[of.row]) * _beside(budget, of, each.count) for of in each.ops)
            / op_groups.REACHED
        )
        part = max(0.0, 1 - max(computing, moving) / before) if before > 0 else 0.0
        for of in each.ops:
            saved[place[of.row]] = own[of.row] * part

    losing = op_groups.worthwhile(budget, rows, saved, goes_away=True)
    largest = max(found, key=lambda each: each.bytes)
    of_products = sorted((of.row for of in largest.ops if of.row in batched), key=lambda row: -own[row])
    first, ops = of_products[0], sum(len(each.ops) for each in found)
    return losing.finding(
        UNFUSED,
        f"{op_groups.code_name(budget.evidence.table, of_products)} keeps its scores in HBM",
        f"The ops' time beyond what their FLOPs need at {share(op_groups.USUAL)} of peak, or their other arrays "
        f"at {share(op_groups.REACHED)} of HBM's. The scores need not move at all.",
        [
            losing.words(f"{counted(ops, 'op')} on score arrays (of up to {size(largest.bytes)})"),
            budget.largest(first, own[first], "The slowest matrix product"),
        ],
        JumpTarget("op-profile", budget.evidence.table.name[first]),
        advice=ADVICE,
    )


def _scores_of(products: Products, row: int, ridge: float) -> int:
    """How many elements of scores a product makes; 0 where it is no such product.

    Args:
        ridge: FLOPs a byte below which memory bounds an op. A contraction of that many elements takes as long as
            writing its result in 16 bits; one of twice as many does so in 32.
    """
    for work in products.products[products.at(row)].works:
        if work.m and work.n and work.k and work.batch and work.batch > 1:
            is_short = work.k <= 2 * ridge and _LONGER * work.k <= min(work.m, work.n)
            if is_short:
                return work.batch * work.m * work.n
    return 0


def _of_program(program: arrays.ModuleArrays, made: Mapping[int, int], batched: set[int]) -> Iterator[_Scores]:
    """The attentions of a program: ops that pass arrays of one size to each other, from a product to a product.

    Args:
        made: elements of the scores that some rows make.
        batched: rows of batched products.
    """
    users = grouped((array.key, number) for number, of in program.ops.items() for array in (*of.reads, *of.writes))
    seen: set[int] = set()
    for start, first in program.ops.items():
        count = made.get(first.row, 0)
        if not count or start in seen or not any(array.count == count for array in first.writes):
            continue
        members, waiting = {start: first}, [first]
        while waiting:
            of = waiting.pop()
            for array in (*of.reads, *of.writes):
                for number in users[array.key] if array.count == count else ():
                    other = program.ops[number]
                    if number not in members and other.computation == first.computation:
                        members[number] = other
                        waiting.append(other)
        seen |= members.keys()
        uses_up = [of for of in members.values() if of.row in batched and _uses_up(of, count)]
        if uses_up:
            sizes = [array.bytes for of in members.values() for array in of.writes if array.count == count]
            yield _Scores(tuple(members.values()), count, max(sizes))


def _uses_up(of: arrays.OpArrays, count: int) -> bool:
    """Whether an op makes a smaller array of scores."""
    return any(array.count == count for array in of.reads) and all(array.count != count for array in of.writes)


def _beside(budget: Budget, of: arrays.OpArrays, count: int) -> float:
    """The part (0-1) of the bytes of an op that are no scores."""
    table = budget.evidence.table
    moved = float(table.hbm_bytes[of.row]) / max(int(table.occurrences[of.row]), 1)
    scores = sum(array.bytes for array in (*of.reads, *of.writes) if array.count == count)
    return max(0.0, 1 - scores / moved) if moved > 0 else 0.0


# --- ops in a row

_LEAST_MOVED = 0.4
"""Bandwidth slows an op down from this share of HBM's peak on; below, latency or the op's size does."""

_ROW = 4 << 20
"""A row that a reduction sums up stays on the chip up to this size, so that the next op finds it there."""

_NOT_FUSED = pattern(r"custom|sort|scatter|gather|convolution|rng|while|conditional|call")
"""Categories of ops that the compiler fuses nothing with."""


@detects(UNFUSED)
def unfused(budget: Budget) -> list[Claimed]:
    """Memory-bound ops that pass arrays to each other through HBM, or read one array several times: a finding a place.

    Fused, they would read once what comes from elsewhere and write once what goes there.
    """
    programs = budget.once(arrays.large_arrays)
    table, rates, rows = budget.evidence.table, budget.evidence.rates, budget.rows["vector"]
    times = budget.op_ps(rows)
    used = np.nan_to_num(op_groups.capped(rates.bandwidth_utilization[rows, op_groups.HBM]))
    large = times >= arrays.LEAST_OP * budget.whole_ps
    chosen = (used >= _LEAST_MOVED) & large & ~holds_ops(table)[rows]
    fuses = {category: not _NOT_FUSED.search(category or "custom") for category in set(table.category)}
    chosen[chosen] = [fuses[table.category[row]] for row in rows[chosen].tolist()]
    if not programs or times[chosen].sum() < op_groups.LEAST_WORTH * budget.whole_ps or chosen.sum() < 2:
        return []
    own = dict(zip(rows[chosen].tolist(), times[chosen].tolist(), strict=True))
    unfused = (row for row in rows[~large].tolist() if fuses[table.category[row]])
    small = grouped((int(table.program_id[row]), table.name[row]) for row in unfused)
    of_place: dict[str, list[_Chain]] = {}
    for program in programs:
        first = next(iter(program.ops.values()), None)
        names = [] if first is None else small.get(int(table.program_id[first.row]), [])
        part = program.of(own.keys())
        for chain in part.once("chains", partial(_chains, small=names), frozenset(names)):
            place = _NUMBER.sub("#", op_groups.code_name(table, [of.row for of in chain.ops]))
            of_place.setdefault(place, []).append(chain)
    found: list[Claimed] = []
    for chains in of_place.values():
        finding, claim = _of_place(budget, chains, rows, own)
        if finding is not None:
            found.append((finding, claim))
            budget = budget.after(claim)
    return found


@dataclass(frozen=True, slots=True)
class _Chain:
    """Ops of one computation that could be one, with the bytes that each would no longer move.

    Attributes:
        between: arrays that would be neither written nor read; passed: that would be written, for others, but not read;
            shared: that would be read once instead of often.
    """

    ops: tuple[arrays.OpArrays, ...]
    saved_bytes: Mapping[int, int]
    between: tuple[tuple[arrays.Array, arrays.OpArrays], ...]
    passed: tuple[tuple[arrays.Array, arrays.OpArrays], ...]
    shared: tuple[arrays.Array, ...]


def _of_place(budget: Budget, chains: Sequence[_Chain], rows: Rows, own: Mapping[int, float]) -> Claimed:
    table = budget.evidence.table
    saved: dict[int, float] = {}
    for chain in chains:
        for of in chain.ops:
            moved = float(table.hbm_bytes[of.row]) / max(int(table.occurrences[of.row]), 1)
            saved[of.row] = own[of.row] * min(1.0, chain.saved_bytes[of.row] / moved) if moved > 0 else 0.0
    out = np.array([saved.get(row, 0.0) for row in rows.tolist()])

    losing = op_groups.losing_of(budget, rows, out, goes_away=True)
    if losing is None:
        return NOTHING
    first = max(chains, key=lambda chain: sum(saved[of.row] for of in chain.ops))
    members = [of.row for of in first.ops]
    between, shared = sum(len(chain.between) for chain in chains), sum(len(chain.shared) for chain in chains)
    count = sum(len(chain.ops) for chain in chains)
    longest = max(members, key=own.__getitem__)
    read_alike = shared and not between
    return losing.finding(
        UNFUSED,
        f"{count} memory-bound ops {'read the same arrays' if read_alike else 'in a row are not fused'}: "
        f"{op_groups.code_name(table, members)}",
        "Time to write and read the arrays between them, and to read an array again, at each op's rate: these "
        "bytes need not move.",
        [
            losing.words(more=" together"),
            _between_words(budget, first),
            f"{counted(between, 'array')} between them would be neither written nor read." if between else "",
            f"{counted(shared, 'array')} would be read once." if shared else "",
        ],
        JumpTarget("op-profile", table.name[longest]),
    )


def _between_words(budget: Budget, chain: _Chain) -> str:
    """A sentence on the largest array of a chain."""
    written = chain.between or (() if chain.shared else chain.passed) or [(array, None) for array in chain.shared]
    array, of = max(written, key=lambda pair: pair[0].bytes)
    readers = [other for other in chain.ops if any(read.key == array.key for read in other.reads)]
    if of is not None:
        only = "only " if chain.between else ""
        reads = f"{only}{budget.described(readers[0].row)} reads" if readers else "only ops of little time read"
        if len(readers) > 1:
            reads = f"{only}{counted(len(readers), 'op')} of them read"
        return f"{budget.described(of.row)} writes {size(array.bytes)} that {reads}."
    return f"{counted(len(readers), 'op')} read the same {size(array.bytes)}, {budget.described(readers[0].row)} first."


def _chains(program: arrays.ModuleArrays, small: Sequence[str]) -> Iterator[_Chain]:
    """The chains of a program, computation by computation.

    Args:
        small: names of its ops that the compiler could fuse, and that take hardly any time.
    """
    wanted = Counter(of.computation for of in program.ops.values())
    protos = [program.module.instruction_proto(name) for name in small]
    ids = {proto.id for proto in protos if proto is not None}
    for number, count in wanted.items():
        computation = program.module.computation(number)
        if count > 1 and computation is not None:
            groups = _Groups(program, ids)
            for proto in computation.instructions:
                groups.take(proto)
            readers = arrays.readers_of(program.module, computation)
            for group, members in enumerate(groups.members):
                chain = _chain([program.ops[member] for member in members], readers, groups.small.get(group, set()))
                if chain is not None:
                    yield chain


def _chain(ops: Sequence[arrays.OpArrays], readers: Mapping[arrays.Key, set[int]], small: set[int]) -> _Chain | None:
    """What a group of ops would save as one; None for a single op, or where they would save nothing.

    Args:
        small: ids of what else is in the group.
    """
    ids = {of.proto.id for of in ops} | small
    made = {array.key: of for of in ops for array in of.writes}
    saved = {of.row: 0 for of in ops}
    between: list[tuple[arrays.Array, arrays.OpArrays]] = []
    passed: dict[arrays.Key, tuple[arrays.Array, arrays.OpArrays]] = {}
    shared: dict[arrays.Key, arrays.Array] = {}
    once: set[arrays.Key] = set()
    for of in ops:
        for array in of.reads:
            if array.key in made:
                saved[of.row] += array.bytes
                passed[array.key] = array, made[array.key]
            elif array.key in once:
                saved[of.row] += array.bytes
                shared[array.key] = array
            once.add(array.key)
        for array in of.writes:
            by = readers.get(array.key, set()) | readers.get((array.key[0], -1), set())
            if by and by <= ids:
                saved[of.row] += array.bytes
                between.append((array, of))
    return (
        _Chain(tuple(ops), saved, tuple(between), tuple(passed.values()), tuple(shared.values()))
        if len(ops) > 1 and any(saved.values())
        else None
    )


class _Groups:
    """Ops of a computation in groups, each of which could be one op.

    An op joins a group that makes or reads one of its arrays, unless it depends on that group by way of another op,
    because then the two can't be one. Of each instruction it is known, as bits, on which groups it depends, and on
    which of them by way of something outside. An op that takes hardly any time belongs to the last group on which it
    depends, such as the shortest levels of a scan by halves, between the way there and the way back.

    Args:
        small: ids of such ops.
    """

    def __init__(self, program: arrays.ModuleArrays, small: Collection[int]) -> None:
        self.members: list[list[int]] = []
        self.small: dict[int, set[int]] = {}
        self._program, self._small = program, small
        self._depends: dict[int, int] = {}
        self._beyond: dict[int, int] = {}
        self._touched: dict[arrays.Key, list[int]] = {}

    def take(self, proto: hlo_pb2.HloInstructionProto) -> None:
        """The next instruction; operands come first."""
        depends = beyond = 0
        for operand in proto.operand_ids:
            depends |= self._depends.get(operand, 0)
            beyond |= self._beyond.get(operand, 0)
        of = self._program.ops.get(proto.id)
        if of is not None:
            group = self._join(of, beyond)
            own = 1 << group
            beyond |= depends & ~own
            depends |= own
            beyond |= own if _ends(self._program.module, proto) else 0
        elif proto.id in self._small and depends & ~beyond:
            group = (depends & ~beyond).bit_length() - 1
            self.small.setdefault(group, set()).add(proto.id)
            beyond |= depends if _ends(self._program.module, proto) else depends & ~(1 << group)
        elif proto.opcode not in arrays.HANDS_ON:
            beyond |= depends
        self._depends[proto.id], self._beyond[proto.id] = depends, beyond

    def _join(self, of: arrays.OpArrays, beyond: int) -> int:
        near = [group for array in of.reads for group in self._touched.get(array.key, ()) if not beyond >> group & 1]
        group = max(near, default=len(self.members))
        if group == len(self.members):
            self.members.append([])
        self.members[group].append(of.proto.id)
        for array in (*of.reads, *of.writes):
            self._touched.setdefault(array.key, []).append(group)
        return group


def _ends(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> bool:
    """Whether what follows an op has to wait for all of it: it sums up over more than a row that stays on the chip."""
    for inside in module.inside(proto):
        if inside.opcode == b"reduce":
            operand = module.operand_protos(inside)[0] if inside.operand_ids else None
            shape = shape_of_proto(operand.shape) if operand is not None else None
            if shape is None:
                return True
            minor = set(shape.minor_to_major[: len(inside.dimensions)])
            row = prod(shape.dimensions[number] for number in minor if number < len(shape.dimensions)) * 4
            if minor != set(inside.dimensions) or row > _ROW:
                return True
    return False
