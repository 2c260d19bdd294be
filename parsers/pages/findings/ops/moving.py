"""Findings about data that is moved without being computed on: copies, shuffles, transfers to and from the host."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from tpuprof.parsers.base.intervals import Floats, is_among, totals, without
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import NO_SCOPES, factor_text, sentence_name, share, shortened, size, time
from tpuprof.parsers.formats.hlo.shapes import HOST_MEMORY, MOST_TEXT, Shape, shapes_in
from tpuprof.parsers.ops.device import HOST_TRANSFER
from tpuprof.parsers.ops.framework_op import scope_end
from tpuprof.parsers.ops.host_events.activity import Activity, IdleTime, is_of_runtime
from tpuprof.parsers.ops.roofline import holds_ops, is_start
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.claims import Rows
from tpuprof.parsers.pages.findings.finding import JumpTarget, Kind, Need
from tpuprof.parsers.pages.findings.idle.meanwhile import EXPLAINS, is_wait, titled
from tpuprof.parsers.pages.findings.ops.arrays import argument_of, donated
from tpuprof.parsers.pages.findings.ops.groups import groups_of, inside, module_of, named, worthwhile
from tpuprof.parsers.pages.findings.subject import base_name
from tpuprof.parsers.pages.shared.copies import is_copy_half, route, served
from tpuprof.parsers.steps.accounts.owners import copies_of_host_memory

LEAST_COPIES = 0.02
"""Every program copies a little; from this share of the time on it pays to find layouts that disagree."""

PADDED = 1.1
"""Padding is named from this expansion on; a large array's last tile alone expands it by less."""

_LEAST_WASTE = 16 << 10  # bytes of padding that nobody cares about, as in the op card

LEAST_NAMED = 0.03
"""What copies are for is named from this share of the time on."""

LEAST_OFFLOAD = 0.03
"""The same for transfers; one that runs beside the computation takes hardly any time on the XLA Ops line."""

_LAYOUT = pattern(r"^(copy|transpose|reshape|bitcast-convert|loop)( fusion)?$|data formatting")
"""Categories of ops that change a layout; of loop fusions those that do nothing else are copies at all."""


def op_shapes(table: OpTable, row: int) -> tuple[Shape, ...]:
    """Array shapes in an op's HLO text, the result's first; empty where the profile has lost the text."""
    return tuple(in_text.shape for in_text in shapes_in(table.expression(row)[:MOST_TEXT]))


def _of_categories(table: OpTable, rows: Rows, pattern: re.Pattern[str]) -> Rows:
    """The rows whose HLO category matches, in their order."""
    wanted = {category for category in set(table.category) if category and pattern.search(category)}
    return np.array([row for row in rows.tolist() if table.category[row] in wanted], np.intp)


def in_host_memory(budget: Budget) -> Rows:
    """Rows of copies (asynchronous ones and slices included) to or from the host's memory."""
    return copies_of_host_memory(budget.evidence.table, budget.rows["copy"])


COPY = Kind(
    "copy",
    "layout copies",
    advice="Give producer and consumer the same layout, donate buffers, and avoid transposes between them.",
    rank=21,
    owners=("copy",),
)


@detects(COPY)
def layout_copies(budget: Budget) -> Claimed:
    """Ops that only copy data or change its layout, other than those of host memory, which another finding counts."""
    table = budget.evidence.table
    rows = without(_of_categories(table, budget.rows["copy"], _LAYOUT), budget.once(in_host_memory))
    rows = rows[np.argsort(-table.self_ps[rows], kind="stable")]
    op_ps = budget.op_ps(rows)
    claim = budget.take_ops(rows, op_ps)
    worth = claim.worth_ps
    if worth < LEAST_COPIES * budget.whole_ps or not len(rows):
        return NOTHING
    kept = np.array([_keeps_layout(table, row, op_shapes(table, row)) for row in rows[:_MOST_READ].tolist()], np.bool_)
    kept = np.append(kept, np.zeros(len(rows) - len(kept), np.bool_))
    kept_ps = float(op_ps[kept].sum())
    are_kept = 2 * kept_ps >= float(op_ps.sum())
    at = int(np.flatnonzero(kept == are_kept)[0])
    first = int(rows[at])
    shapes = op_shapes(table, first)
    factor = _padding(shapes)
    is_argument = are_kept and _copies_argument(budget, first)
    what = "Copies that keep the layout" if are_kept else "Layout copies"
    what = "Copies of arguments that are not donated" if is_argument else what
    more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
    padded = "" if factor is None else f" (padded {factor_text(factor)})"
    return budget.finding(
        COPY,
        claim,
        f"{what}: {shortened(table.name[first])}{padded}{more}",
        "Self time of copies, transposes and data formatting, mean over cores; how much of it is needed is unknown.",
        [
            f"Ops that only move data on the device take {budget.amount(worth)}: {counted(len(rows), 'op')}.",
            f"{budget.amount(kept_ps)} of this time is copies into the same layout."
            if 0 < kept_ps < op_ps.sum()
            else "",
            budget.largest(first, float(op_ps[at]), "The largest" if at == 0 else "The largest of these"),
            *_shape_words(table, first, shapes, is_argument),
        ],
        JumpTarget("op-profile", table.name[first]),
        advice=_DONATE if are_kept else "",
    )


_MOST_READ = 24  # copies whose text is read for layouts

_DONATE = (
    "Donate the arrays that the program changes (donate_argnums of jax.jit), and do not use them afterwards: the "
    "program then updates them in place."
)


def _copies_argument(budget: Budget, row: int) -> bool:
    """Whether an op copies an argument of the program that is not donated, as far as the profile holds the program."""
    module = module_of(budget.evidence, row)
    copied = module.instruction_proto(budget.evidence.table.name[row]) if module is not None else None
    if module is None or copied is None or not copied.operand_ids:
        return False
    argument = argument_of(module, copied.operand_ids[0])
    return argument is not None and argument not in donated(module)


def _served(budget: Budget, row: int) -> str:
    """What waits for an asynchronous copy, by the last scopes of its framework op; empty where nothing says so."""
    table = budget.evidence.table
    place = scope_end(served(module_of(budget.evidence, row), table.name[row]) or table.framework_op[row])
    return "" if place == table.name[row] else place


COPY_WAIT = Kind(
    "copy-wait",
    "waits for copies",
    advice=(
        "Start the copy earlier: a lower xla_tpu_scoped_vmem_limit_kib leaves the compiler more VMEM to prefetch into; "
        "or give the copy more work to hide behind."
    ),
    rank=20,
    owners=("copy",),
    can_overlap=True,
)


@detects(COPY_WAIT)
def copy_waits(budget: Budget) -> Claimed:
    """Waiting for asynchronous copies between the device's memories, such as prefetches into VMEM."""
    table = budget.evidence.table
    rows, times = budget.ops("copy")
    is_half = np.array([is_copy_half(table.category[row], table.name[row]) for row in rows.tolist()], np.bool_)
    saved = np.where(is_half & ~is_among(rows, budget.once(in_host_memory)), times, 0.0)

    losing = worthwhile(budget, rows, saved, goes_away=True)
    first = losing.first
    count = sum(not is_start(table, int(row)) for row in losing.claim.rows) or losing.count
    what = f"{count} copies" if count > 1 else shortened(table.name[first])
    places = totals((_served(budget, group.first), group.ps) for group in losing.groups)
    ahead = max(places, key=lambda place: places[place])
    least = LEAST_NAMED * budget.whole_ps
    large = [f"{sentence_name(place)} {budget.amount(ps)}" for place, ps in places.items() if place and ps >= least]
    return budget.finding(
        COPY_WAIT,
        losing.claim,
        f"The core waits for {what} that should run ahead{' of ' * bool(ahead)}{shortened(ahead)}",
        "Self time of the starts and ends of copies on the cores' XLA Ops lines; what other ops hide is not counted.",
        [
            f"Waiting for copies between the device's memories takes {budget.amount(losing.claim.worth_ps)}: "
            f"{named(losing.groups)}.",
            f"What waits for them: {', '.join(large)}." if len(large) > 1 else "",
            budget.largest(first, float(times[rows == first][0])),
            *_moved(budget, first),
        ],
        JumpTarget("timeline", table.name[first]),
    )


def _moved(budget: Budget, row: int) -> Iterator[str]:
    """A sentence on what an asynchronous copy moves, from where to where, and how long that takes at the least."""
    text, hbm = budget.evidence.table.expression(row), budget.evidence.peaks.hbm
    moved = next((each.padded_bytes for each in op_shapes(budget.evidence.table, row)), None)
    if moved:
        at_peak = f", {time(moved / hbm * 1e12)} at HBM's peak" if hbm else ""
        yield f"It moves {size(moved)} from {route(text)} each time{at_peak}."


def _keeps_layout(table: OpTable, row: int, shapes: tuple[Shape, ...]) -> bool:
    """Whether a plain copy has a result like its operand: the layout is not the reason for it."""
    is_copy = table.category[row] == "copy" or _PLAIN_COPY.match(table.expression(row)[:MOST_TEXT])
    return bool(is_copy) and len(shapes) > 1 and shapes[0] == shapes[1] and shapes[0].layout_known


_PLAIN_COPY = pattern(r"%\S+ = \S+ copy\(")  # its category is "data formatting", as that of a transpose is


def _waste(shape: Shape) -> int:
    """Bytes of padding."""
    return (shape.padded_bytes or 0) - (shape.unpadded_bytes or 0)


def _padding(shapes: tuple[Shape, ...]) -> float | None:
    """The largest expansion of an op's arrays by their tiles; None where there is none worth naming."""
    most = max((shape.expansion or 1.0 for shape in shapes if _waste(shape) >= _LEAST_WASTE), default=1.0)
    return most if most > PADDED else None


def _shape_words(table: OpTable, row: int, shapes: tuple[Shape, ...], is_argument: bool) -> Iterator[str]:
    if is_argument:
        yield f"It copies {_text(shapes[0])}, an argument that is not donated, unchanged."
    elif _keeps_layout(table, row, shapes):
        yield f"It copies {_text(shapes[0])} unchanged: its buffer can't be reused, perhaps because it is not donated."
    elif table.category[row] == "copy" and len(shapes) > 1 and shapes[0].dimensions == shapes[1].dimensions:
        yield f"It makes {_text(shapes[0])} from {_text(shapes[1])}."
    if _padding(shapes) is not None:
        worst = max(shapes, key=_waste)
        yield (
            f"{_text(worst)} holds {size(worst.unpadded_bytes or 0)} of data in {size(worst.padded_bytes or 0)} "
            f"with its padding ({factor_text(worst.expansion or 1.0)})."
        )


def _text(shape: Shape) -> str:
    return sentence_name(str(shape))


HOST_OFFLOAD = Kind(
    "host-offload",
    "transfers to and from the host",
    advice="Offload less, or fetch earlier, so that the transfer overlaps compute.",
    rank=19,
    owners=("host_transfer",),
    can_overlap=True,
)


@detects(HOST_OFFLOAD)
def host_offload(budget: Budget) -> Claimed:
    """Time on the XLA Ops line in copies to or from the host's memory, and in sends and receives of the host."""
    table, offloaded = budget.evidence.table, budget.once(in_host_memory)
    sent_rows = _of_categories(table, budget.rows["host"], HOST_TRANSFER)
    copy_ps, sent_ps = budget.op_ps(offloaded), budget.op_ps(sent_rows)
    sent, copied = float(sent_ps.sum()), float(copy_ps.sum())
    claim = budget.take_ops(np.concatenate([offloaded, sent_rows]), np.concatenate([copy_ps, sent_ps]))
    worth = claim.worth_ps
    budget.needs(worth, LEAST_OFFLOAD)
    rows, op_ps = np.concatenate([offloaded, sent_rows]), np.concatenate([copy_ps, sent_ps])
    title, place, largest, advice = "Transfers to and from the host stall the device", JumpTarget("timeline"), "", ""
    if len(rows):
        row = int(rows[op_ps.argmax()])
        name = table.name[row]
        what = _served(budget, row) if row in offloaded else ""
        title, place = f"Host transfers stall the device: {shortened(name)}", JumpTarget("timeline", name)
        title += f" feeds {shortened(what)}" if what else ""
        advice = _FETCH_EARLIER if row in offloaded else ""
        largest = budget.largest(row, float(op_ps.max()))
    called = _called(budget) if 2 * sent > worth else None
    if called is not None:
        title = f"Host transfers stall the device while the host runs {titled(called.name)}"
        advice = _CALL_LESS.format(sentence_name(called.name))
    return budget.finding(
        HOST_OFFLOAD,
        claim,
        title,
        "Mean time on the cores' XLA Ops lines, without transfer time hidden by compute.",
        [
            f"Copies to and from host memory, S({HOST_MEMORY}), take {budget.amount(copied)}." if copied > 0 else "",
            f"Host sends and receives (callbacks, outside compilation) take {budget.amount(sent)}." if sent > 0 else "",
            largest,
            f"Meanwhile {sentence_name(called.thread) or 'a host thread'} is in {sentence_name(called.name)} for "
            f"{share(min(1.0, called.overlap_ps / (budget.evidence.gaps or IdleTime()).serving_ps))} of that time "
            f"({counted(called.occurrences, 'time')})."
            if called is not None
            else "",
            f"{share(copied / worth)} of this time is waiting for offloaded arrays." if copied > 0 and sent > 0 else "",
            *(_rates(budget, offloaded, copy_ps) if len(offloaded) else ()),
        ],
        place,
        advice=advice,
    )


def _called(budget: Budget) -> Activity | None:
    """What the host runs for most of the time in which the core sends to it or receives from it, as a callback is."""
    gaps = budget.evidence.gaps or IdleTime()
    of_program = (
        each for each in gaps.serving if not (each.marks_step or is_of_runtime(each.name) or is_wait(each.name))
    )
    return next((each for each in of_program if each.overlap_ps >= EXPLAINS * gaps.serving_ps), None)


_CALL_LESS = "Do less in {}, call it every few steps, or do not wait for its result (jax.debug.callback)."
_FETCH_EARLIER = f"{HOST_OFFLOAD.advice} xla_tpu_host_transfer_overlap_limit sets how many transfers may run at once."


def _rates(budget: Budget, rows: Rows, times: Floats) -> Iterator[str]:
    """Sentences on how much each copy of host memory moves, which way and how fast; the longest ones.

    The start of one lasts until it is in flight, so only its end says how long it takes.
    """
    table = budget.evidence.table
    moving = [row for row in rows[np.argsort(-times, kind="stable")].tolist() if not is_start(table, row)]
    for row in moving[:_MOST_RATED]:
        shape = next(iter(op_shapes(table, row)), None)
        once = float(table.self_ps[row]) / max(int(table.occurrences[row]), 1)
        if shape is None or not shape.padded_bytes or once <= 0:
            continue
        way = "to the host" if shape.is_in_host_memory else "from the host"
        rate = shape.padded_bytes / once * 1e12
        yield (
            f"{sentence_name(table.name[row])} moves {size(shape.padded_bytes)} {way} at {rate / 1e9:.1f} GB/s at "
            "most: part of the transfer may overlap compute."
        )


_MOST_RATED = 2


# --- debug prints --------------------------------------------------------------------------------------------------

_DEBUG = pattern(r"(?:^|/)debug_(?:print|callback)(?=[/:\[.]|$)")
"""The primitives of jax.debug.print and jax.debug.callback in a framework op, or a scope that a user named so."""

_CALLS: tuple[OpClass, ...] = ("host", "unknown", "vector", "copy")

SCOPES = Need(NO_SCOPES, lambda of: any(of.table.framework_op))
DEBUG_PRINT = Kind(
    "debug-print",
    "debug prints",
    advice=(
        "Take jax.debug.print and debugging callbacks out of the step, or print only every hundredth step "
        "(jax.lax.cond)."
    ),
    rank=18,
    owners=("host_transfer",),
    needs=(SCOPES,),
    on_hardware=False,
)


@detects(DEBUG_PRINT)
def debug_prints(budget: Budget) -> Claimed:
    """Time on the XLA Ops line in calls of Python that debug: from 1 % on, as nothing of it is the program's result.

    XProf looks for ``debug_print`` in the names of events, and speaks from 5 % of the step on.
    """
    table = budget.evidence.table
    debugging = {name for name in set(table.framework_op) if "debug_" in name and _DEBUG.search(name)}
    if not debugging:
        return NOTHING
    rows, times = budget.ops(*_CALLS)
    is_debug = np.array([table.framework_op[row] in debugging for row in rows.tolist()], np.bool_)

    losing = worthwhile(budget, rows, np.where(is_debug, times, 0.0), goes_away=True)
    first = losing.first
    return budget.finding(
        DEBUG_PRINT,
        losing.claim,
        f"Debug prints delay the step: {shortened(base_name(table, first))}",
        "Self time of the transfers and calls of debugging callbacks on the cores' XLA Ops lines.",
        [
            f"{counted(losing.count, 'op')} of debugging callbacks delay the device by "
            f"{budget.amount(losing.claim.worth_ps)}: {named(losing.groups)}.",
            budget.largest(first, float(times[rows == first][0])),
            "Other cores' waits for the core that prints are not counted." if budget.evidence.core_count > 1 else "",
        ],
        JumpTarget("timeline", table.name[first]),
    )


# --- shuffles ------------------------------------------------------------------------------------------------------

LEAST_SHUFFLED = 0.03
"""Every program slices and pads a little; from this share of the time on it matters. XProf speaks from 30 % on."""

_REARRANGES = pattern(r"^(concatenate|pad|reverse|slice|sort)$")
_REARRANGING = frozenset({b"concatenate", b"pad", b"reverse", b"slice", b"sort"})
_BESIDE = frozenset(
    {
        *(b"parameter", b"constant", b"bitcast", b"tuple", b"get-tuple-element", b"broadcast", b"iota", b"reshape"),
        *(b"transpose", b"copy", b"convert", b"compare", b"select", b"dynamic-slice", b"gather"),
    }
)
"""What a fusion that only rearranges has beside that. Alone, gathers and dynamic slices (of weights and of what is kept
for the backward pass, in a loop over layers) are what a program needs; slow ones are another finding."""

_FUSED = pattern(r"^(loop|custom|input) fusion$")
_LEAST_OP = 2e-4  # share of the time below which an op's fusion is not searched

SHUFFLE = Kind(
    "shuffle",
    "rearranged data",
    advice=(
        "Index instead of concatenating, padding and slicing, keep one layout from op to op, and choose sizes"
        " that are multiples of 128."
    ),
    rank=22,
)


@detects(SHUFFLE)
def shuffles(budget: Budget) -> Claimed:
    """Ops that put data elsewhere without computing on it, other than copies into another layout."""
    table = budget.evidence.table
    rows, times = budget.ops(*_SHUFFLING)
    moved = (times >= _LEAST_OP * budget.whole_ps) & ~holds_ops(table)[rows]
    moved[moved] = [_only_moves(budget, row) for row in rows[moved].tolist()]
    kept, kept_ps = rows[moved], times[moved]
    claim = budget.take_ops(kept, kept_ps, goes_away=True)
    together = claim.worth_ps
    budget.needs(together, LEAST_SHUFFLED)
    groups = groups_of(table, kept, kept_ps)
    first = groups[0]
    return budget.finding(
        SHUFFLE,
        claim,
        f"Rearranging data takes {share(together / budget.whole_ps)}, mostly {shortened(first.label)}",
        "Self time of ops that only slice, pad, join or sort; how much of it is needed is unknown.",
        [
            f"Slices, pads, joins and sorts, which compute nothing, take {budget.amount(together)}: {named(groups)}.",
            budget.largest(first.first, float(kept_ps[kept == first.first][0])),
        ],
        JumpTarget("op-profile", table.name[first.first]),
    )


_SHUFFLING: tuple[OpClass, ...] = ("vector", "copy")


def _only_moves(budget: Budget, row: int) -> bool:
    """Whether an op rearranges and does nothing else, by its category or by all that is fused in it.

    So does one that holds nothing but transposes and copies, beside what costs nothing.
    """
    table = budget.evidence.table
    category = table.category[row] or ""
    if _REARRANGES.match(category):
        return True
    if not _FUSED.match(category):
        return False
    held = {each.opcode for each in inside(budget.evidence, row)}
    opcodes = held - _BESIDE
    if not opcodes:
        return bool(held & _TURNS) and held <= _TURNS | _FREE
    return opcodes <= _REARRANGING


_TURNS = frozenset({b"transpose", b"copy"})
_FREE = frozenset({b"parameter", b"constant", b"bitcast", b"reshape", b"tuple", b"get-tuple-element"})
