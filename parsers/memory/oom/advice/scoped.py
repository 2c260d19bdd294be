"""Advice about memory inside a kernel: windows of operands in VMEM, scratch operands in VMEM and SMEM.

A Pallas kernel's operands pass through windows of a block each, held twice while the next block is fetched (two
buffering levels). What an error's ``Tag`` says of a window is where the names and shapes here come from. The compiler
gives scoped memory a limit below what the chip has; ``--xla_tpu_scoped_vmem_limit_kib`` in ``LIBTPU_INIT_ARGS`` and a
Pallas call's ``vmem_limit_bytes`` raise it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.shapes import Shape, parse_shape, plain_shape
from tpuprof.parsers.memory.account.need import Need
from tpuprof.parsers.memory.account.roles import BufferFacts, NeedFacts
from tpuprof.parsers.memory.oom.advice.moments import Cuts
from tpuprof.parsers.memory.oom.advice.rule import AdviceText, Rule, advice_of, saving_of
from tpuprof.parsers.memory.oom.advice.words import amount, capacity, listed_names, short_name, size_of
from tpuprof.parsers.memory.oom.model import Advice

_NAME = pattern(r"%?[\w.\-]{1,80}")
VMEM_OF = {"v5e": 128 << 20, "v6e": 128 << 20, "v5p": 64 << 20, "7x": 64 << 20}
"""VMEM that each chip has: a limit above it is of no use, and blocks and all else of a program share it."""

_MOST_HALVINGS, _MUCH = 6, 0.1
_SCALAR = 4  # bytes
_NEAR = 55 / 64  # of a chip's VMEM that a kernel's limit can be
_LEAST_ROWS = 8  # a block's axis is not halved below a tile
_WINDOW = pattern(
    r"(input|output) window allocation for operator (?:input|output) (\d{1,6})\. "
    r"The window shape is ([a-z0-9]{1,12}\[[0-9,]{0,400}\])"
    r"(?:, while the full shape is ([a-z0-9]{1,12}\[[0-9,]{0,400}\]))?"
)
_LEVELS = pattern(r"has (\d{1,4}) buffering levels?")


class _Window(NamedTuple):
    """A block of an operand: ``input 0``, its shape, the operand's own, and how often the block is held."""

    operand: str
    shape: Shape
    full: Shape | None
    levels: int


class _Axis(NamedTuple):
    """An axis that blocks are cut along: its place and length in them, and the items that have it."""

    place: int
    length: int
    items: tuple[BufferFacts, ...]


def _scoped_items(facts: NeedFacts) -> list[BufferFacts]:
    """What a kernel holds, where that is what ran out."""
    if facts.need.memory_space not in ("vmem", "smem", "cmem") or facts.need.kind is None:
        return []
    items = facts.of("scoped") or facts.of("other", "forward", "activation")[:1]
    return [item for item in items if not _is_spill(item)]


def _is_spill(item: BufferFacts) -> bool:
    """Whether registers are kept there that the compiler ran out of, which no block or scratch operand is."""
    return "spill slots" in f"{item.buffer.tag} {item.buffer.label} {item.buffer.name}"


def _spill_advice(facts: NeedFacts) -> list[Advice]:
    """What the compiler spills, where it is a good part of the need."""
    need = facts.need
    items = [item for item in facts.of("scoped") if _is_spill(item)] if need.kind is not None else []
    size = size_of(items)
    if not items or size < _MUCH * facts.whole_bytes:
        return []
    sentence = f"registers that the compiler ran out of (spill slots) take {amount(size)}{_in(need)}"
    how = "too much is computed at once: unroll loops less, use smaller blocks, split the operation"
    words = AdviceText(sentence, how, f"{amount(size)} of {amount(facts.whole_bytes)}")
    return [advice_of(facts, "scoped", None, words, items)]


def _of_capacity(need: Need) -> str:
    """`` of 16 MiB``, what there is; nothing where that is unknown."""
    return f" of {capacity(need.capacity_bytes)}" if need.capacity_bytes is not None else ""


def _windows(items: Sequence[BufferFacts]) -> list[tuple[BufferFacts, _Window]]:
    return [(item, window) for item in items if (window := _window(item)) is not None]


def _shared_axis(items: Sequence[BufferFacts]) -> _Axis | None:
    """The axis whose halving halves most bytes, where it is certain which blocks have it.

    Blocks have an axis in common where it has the same place, length and whole length in them. Where the same two
    lengths stand at different places, as both outer axes of a matrix product may, nothing is certain.
    """
    axes = grouped(
        (pair, (place, item))
        for item, window in _windows(items)
        if window.full is not None
        for place, pair in enumerate(zip(window.shape.dimensions, window.full.dimensions, strict=False))
    )
    certain = [
        _Axis(having[0][0], length, tuple(item for _, item in having))
        for (length, whole), having in axes.items()
        if len({place for place, _ in having}) == 1 and length >= 2 * _LEAST_ROWS and whole >= length
    ]
    return max(certain, key=lambda axis: (size_of(axis.items), -axis.place), default=None)


def _changed(items: Sequence[BufferFacts]) -> Sequence[BufferFacts]:
    """What becomes smaller: the blocks along an axis that is certain, or the largest scratch operand."""
    if _windows(items):
        axis = _shared_axis(items)
        return () if axis is None else axis.items
    return [item for item in items[:1] if "scratch" in (item.buffer.tag or "").lower()]


def _in(need: Need) -> str:
    """`` of 32 MiB of VMEM``."""
    return f"{_of_capacity(need)} of {need.memory_space.upper()}"


def _divisor(facts: NeedFacts) -> int:
    """By which power of two blocks must shrink so that all fits, with something to spare.

    A kernel that takes the last byte does not compile: the compiler has a use for some itself.
    """
    whole, over = size_of(_changed(_scoped_items(facts))), facts.need.over_bytes
    for halvings in range(1, _MOST_HALVINGS + 1):
        if over is None or whole - whole // (1 << halvings) > over:
            return 1 << halvings
    return 2


def _scoped_cuts(facts: NeedFacts) -> Cuts:
    """Blocks, divided."""
    by = _divisor(facts)
    return {item.index: -(-item.size // by) for item in _changed(_scoped_items(facts))}


def _single_cuts(facts: NeedFacts) -> Cuts:
    """One buffer for each block instead of several."""
    windows = _windows(_scoped_items(facts))
    return {item.index: item.size // window.levels for item, window in windows if window.levels > 1}


def _scoped_advice(facts: NeedFacts) -> list[Advice]:
    """Smaller blocks, fewer buffers of them, or a higher limit."""
    items, saving, by = _scoped_items(facts), saving_of(facts, _scoped_cuts(facts)), _divisor(facts)
    windows, whole = _windows(items), size_of(items)
    left = f"{amount(whole)} - {amount(saving)} = {amount(whole - saving)}{_exact(facts, saving, by)}"
    advice = []
    if windows:
        advice.append(advice_of(facts, "scoped", saving or None, _block_words(windows, items, by, left), items))
        advice += _single_advice(facts, windows)
    elif saving:
        advice.append(advice_of(facts, "scoped", saving, _plain_words(facts.need, items, by, left), items))
    elif items:
        advice.append(advice_of(facts, "scoped", None, _stack_words(facts.need, items), items))
    advice += _spill_advice(facts)
    return (advice if advice or items else _without_list(facts)) + _limit_advice(facts, items)


scoped = Rule(
    _scoped_advice,
    key="scoped",
    kind="scoped",
    changes=1,
    cuts=lambda facts: [_scoped_cuts(facts)],
    title=lambda facts, _: f"blocks 1/{_divisor(facts)}",
)

single = Rule(
    lambda _: [],  # what it says stands behind what `scoped` says of the blocks
    key="single",
    kind="scoped",
    changes=1,
    cuts=lambda facts: [_single_cuts(facts)],
    title=lambda *_: "one buffer for each block",
)


def _exact(facts: NeedFacts, saving: int, by: int) -> str:
    """Why half of the divisor is not enough, where by arithmetic it is."""
    there, over = facts.need.capacity_bytes, facts.need.over_bytes
    whole = size_of(_changed(_scoped_items(facts)))
    if there is None or by < 4 or not saving or whole - whole * 2 // by != over:
        return ""
    return f"; 1/{by // 2} would fill all {capacity(there)} and leave nothing for the compiler"


def _block_words(
    windows: Sequence[tuple[BufferFacts, _Window]], items: Sequence[BufferFacts], by: int, left: str
) -> AdviceText:
    blocks = ", ".join(
        f"{window.operand} {window.shape.plain}" + (f" x {window.levels} buffers" if window.levels > 1 else "")
        for _, window in windows[:3]
    )
    sentence = f"blocks of {_kernel(items)}: {blocks}" + (f" and {len(windows) - 3} more" if len(windows) > 3 else "")
    shapes = " + ".join(f"{amount(item.size)} {window.operand}" for item, window in windows[:3])
    axis = _shared_axis(items)
    if axis is None:
        how = "make the blocks smaller: an axis that is halved halves only the blocks that have it"
        return AdviceText(sentence, how, f"{shapes}; which blocks have which axis is unknown")
    some_only = "" if len(axis.items) == len(windows) else f" in {len(axis.items)} of {len(windows)} blocks"
    how = f"make axis {axis.place} of the blocks 1/{by}: {axis.length} -> {axis.length // by}{some_only}"
    return AdviceText(sentence, how, f"{shapes}; {left}", key="scoped", target=by)


def _single_advice(facts: NeedFacts, windows: Sequence[tuple[BufferFacts, _Window]]) -> list[Advice]:
    """One buffer for each block: what that saves, and what is missing then."""
    cuts, need = _single_cuts(facts), facts.need
    saving = saving_of(facts, cuts)
    if not saving:
        return []
    items = [item for item, _ in windows if item.index in cuts]
    over = need.over_bytes
    missing = "" if over is None or saving > over else f"; {amount(over - saving)} are missing then"
    if over is not None and saving == over:
        missing = f"; that fills all {capacity(need.capacity_bytes or 0)} and leaves nothing for the compiler"
    words = AdviceText(
        f"{len(items)} block{'s' * (len(items) != 1)} of {_kernel(items)} held more than once, to fetch the next one",
        "one buffer each (pipeline_mode=pl.Buffered(1)): the kernel then waits for every block",
        f"{amount(size_of(items))} - {amount(saving)} = {amount(size_of(items) - saving)}{missing}",
        key="single",
    )
    return [advice_of(facts, "scoped", saving, words, items)]


def _stack_words(need: Need, items: Sequence[BufferFacts]) -> AdviceText:
    """Where the text gives only the sum of what a kernel holds."""
    fetched = [item for item in items if "prefetched" in (item.buffer.tag or "")]
    if fetched:
        return AdviceText(
            f"scalars prefetched for {_kernel(items)} take {amount(size_of(fetched))}{_in(need)}, and have no blocks",
            "give it fewer entries (of block tables: fewer sequences at once, a shorter context, larger pages), split "
            "the call, or leave them in HBM and let the kernel copy parts",
            f"{(need.capacity_bytes or 0) // _SCALAR:,} of {size_of(fetched) // _SCALAR:,} s32 fit",
        )
    over = need.over_bytes
    missing = f"{amount(over)} are missing" if over is not None and over > 0 else f"{amount(size_of(items))} needed"
    return AdviceText(
        f"{_kernel(items)} holds {amount(size_of(items))} on its stack{_in(need)}",
        "make its blocks smaller: an axis that is halved halves only the blocks that have it; or hold each block once "
        "(pipeline_mode=pl.Buffered(1)), which at most halves all",
        f"{missing}; the text does not list the blocks",
    )


def _plain_words(need: Need, items: Sequence[BufferFacts], by: int, left: str) -> AdviceText:
    """A scratch operand that is too large."""
    largest = items[0]
    shape = plain_shape(largest.element, largest.dims) if largest.element else short_name(largest.buffer.name)
    sentence = f"scratch operand {shape} of {_kernel(items)} takes {amount(largest.size)}{_in(need)}"
    how = f"make the scratch smaller, 1/{by} or less"
    if largest.shape is not None and largest.dims:
        longest = max(largest.shape.dimensions, default=0)
        how += f": {longest} -> {max(1, longest // by)}"
    if need.memory_space == "smem":
        how += "; SMEM is for scalars, arrays belong in VMEM"
    return AdviceText(sentence, how, left, key="scoped", target=by)


def _without_list(facts: NeedFacts) -> list[Advice]:
    """Where the text names no buffer: the sum."""
    need = facts.need
    if need.kind is None or need.used_bytes is None or need.capacity_bytes is None:
        return []
    name, space = short_name(need.program) if need.program else "the kernel", need.memory_space.upper()
    sentence = f"{name} holds {amount(need.used_bytes)} of {capacity(need.capacity_bytes)} of {space}"
    over = need.used_bytes - need.capacity_bytes
    arithmetic = f"{amount(over)} are missing" if over > 0 else f"{amount(need.used_bytes)} needed"
    words = AdviceText(sentence, "make the blocks or the scratch operands smaller", arithmetic)
    return [advice_of(facts, "scoped", None, words)]


def _limit_advice(facts: NeedFacts, items: Sequence[BufferFacts]) -> list[Advice]:
    """A higher limit, where the limit is what was exceeded and a chip has as much."""
    need, used = facts.need, facts.need.used_bytes
    if not need.is_scoped_limit or used is None or need.memory_space != "vmem":
        return []
    sentence = f"the compiler's limit{_of_capacity(need)} for scoped VMEM is exceeded, not the chip's memory"
    limit = int(_NEAR * max(VMEM_OF.values()))
    target = limit if used < limit else None
    arithmetic = f"{amount(used)} needed; v5e and v6e have 128 MiB, v5p and 7x 64 MiB"
    how = "no chip has as much: make the blocks smaller first"
    if target is not None:
        how = "raise it near the chip's own at once, as the text may not count the kernel's own values: "
        how += f"vmem_limit_bytes={limit} of the Pallas call, or LIBTPU_INIT_ARGS="
        how += f"--xla_tpu_scoped_vmem_limit_kib={limit >> 10}, on v5e and v6e"
        how += "; half of that on v5p and 7x" if used < limit // 2 else " only"
    text = AdviceText(sentence, how, arithmetic, key="limit" if target else "", target=target)
    return [advice_of(facts, "scoped", None, text, items)]


def _kernel(items: Sequence[BufferFacts]) -> str:
    """The kernel's name: of the instruction, or of the function in its op."""
    item = items[0]
    parts = [part for part in item.op.split("/") if part and part != "pallas_call"]
    label = (item.buffer.label or "").partition(" = ")[0].lstrip("%")
    return short_name(label or (parts[-1] if parts else item.buffer.name)) or listed_names([item.buffer.name])


def kernel_name_of(need: Need) -> str:
    """The kernel whose memory on the chip ran out; empty where it is none, or the message does not name it."""
    if need.memory_space not in ("vmem", "smem") or need.kind is None:
        return ""
    labels = ((buffer.label or "").partition(" = ") for buffer in need.buffers)
    return next((name.lstrip("%") for name, _, text in labels if "custom-call(" in text and _NAME.fullmatch(name)), "")


def _window(item: BufferFacts) -> _Window | None:
    """What a tag says of a window."""
    tag = (item.buffer.tag or "")[:4096]
    match = _WINDOW.search(tag)
    shape = parse_shape(match[3]) if match is not None else None
    if match is None or shape is None:
        return None
    levels = _LEVELS.search(tag)
    full = parse_shape(match[4]) if match[4] else None
    return _Window(f"{match[1]} {match[2]}", shape, full, int(levels[1]) if levels is not None else 1)
