"""Advice about memory inside a kernel: windows of operands in VMEM, scratch operands in VMEM and SMEM.

A Pallas kernel's operands pass through windows of a block each, held twice while the next block is fetched (two
buffering levels). What an error's ``Tag`` says of a window is where the names and shapes here come from. The compiler
gives scoped memory a limit below what the chip has; ``--xla_tpu_scoped_vmem_limit_kib`` in ``LIBTPU_INIT_ARGS`` and a
Pallas call's ``vmem_limit_bytes`` raise it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tpuprof.parsers.formats.hlo.shapes import Shape, parse_shape
from tpuprof.parsers.memory.oom.advice.roles import BufferFacts, NeedFacts
from tpuprof.parsers.memory.oom.advice.rule import AdviceText, Cuts, Rule, advice_of, saving_of
from tpuprof.parsers.memory.oom.advice.words import amount, capacity, short_name, short_shape, size_of, some
from tpuprof.parsers.memory.oom.model import Advice, Need

PHYSICAL_VMEM = 128 << 20  # VMEM of v5e and v6e, the largest that there is; a limit above it is of no use
_MOST_HALVINGS, _LIMIT_STEP, _MUCH = 6, 1 << 20, 0.1
_WINDOW = re.compile(
    r"(input|output) window allocation for operator (?:input|output) (\d{1,6})\. "
    r"The window shape is ([a-z0-9]{1,12}\[[0-9,]{0,400}\])"
)
_LEVELS = re.compile(r"has (\d{1,4}) buffering levels?")


class _Window(NamedTuple):
    """A block of an operand: ``input 0``, its shape, and how often it is held."""

    operand: str
    shape: Shape
    levels: int


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
    of = f"{_of_capacity(need)} of {need.memory_space.upper()}"
    sentence = f"registers that the compiler ran out of (spill slots) take {amount(size)}{of}"
    how = "too much is computed at once: unroll loops less, use smaller blocks, split the operation"
    words = AdviceText(sentence, how, f"{amount(size)} of {amount(facts.whole_bytes)}")
    return [advice_of(facts, "scoped", None, words, items)]


def _of_capacity(need: Need) -> str:
    """`` of 16 MiB``, what there is; nothing where that is unknown."""
    return f" of {capacity(need.capacity_bytes)}" if need.capacity_bytes is not None else ""


def _divisor(facts: NeedFacts) -> int:
    """By which power of two blocks must shrink so that all fits, with something to spare.

    A kernel that takes the last byte does not compile: the compiler has a use for some itself.
    """
    whole, over = size_of(_scoped_items(facts)), facts.need.over_bytes
    for halvings in range(1, _MOST_HALVINGS + 1):
        if over is None or whole - whole // (1 << halvings) > over:
            return 1 << halvings
    return 2


def _scoped_cuts(facts: NeedFacts) -> Cuts:
    """Blocks, divided."""
    by = _divisor(facts)
    return {item.index: -(-item.size // by) for item in _scoped_items(facts)}


def _scoped_advice(facts: NeedFacts) -> list[Advice]:
    """Smaller blocks, fewer buffers of them, or a higher limit."""
    items, saving, by = _scoped_items(facts), saving_of(facts, _scoped_cuts(facts)), _divisor(facts)
    windows = [(item, window) for item in items if (window := _window(item)) is not None]
    whole = size_of(items)
    left = f"{amount(whole)} / {by} = {amount(whole - saving)}{_exact(facts, whole, by)}"
    advice = []
    if saving:
        words = _block_words(windows, items, by, left) if windows else _plain_words(facts.need, items, by, left)
        advice.append(advice_of(facts, "scoped", saving, words, items))
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


def _exact(facts: NeedFacts, whole: int, by: int) -> str:
    """Why half of the divisor is not enough, where by arithmetic it is."""
    there = facts.need.capacity_bytes
    if there is None or whole - whole * 2 // by != facts.need.over_bytes:
        return ""
    return f"; 1/{by // 2} would fill all {capacity(there)} and leave the compiler nothing"


def _block_words(
    windows: Sequence[tuple[BufferFacts, _Window]], items: Sequence[BufferFacts], by: int, left: str
) -> AdviceText:
    blocks = ", ".join(
        f"{window.operand} {short_shape(window.shape.element_type, window.shape.dimensions)}"
        + (f" x {window.levels} buffers" if window.levels > 1 else "")
        for _, window in windows[:3]
    )
    sentence = f"blocks of {_kernel(items)}: {blocks}" + (f" and {len(windows) - 3} more" if len(windows) > 3 else "")
    how = f"make the blocks 1/{by}: {_smaller(windows[0][1].shape, by)}"
    others = ""
    if any(window.levels > 1 for _, window in windows):
        single = sum(item.size - item.size // window.levels for item, window in windows if window.levels > 1)
        others = f"or one buffer each (pipeline_mode=pl.Buffered(1)) -{amount(single)}"
    shapes = [f"{amount(item.size)} {window.operand}" for item, window in windows[:3]]
    return AdviceText(sentence, how, f"{' + '.join(shapes)}; {left}", others)


def _plain_words(need: Need, items: Sequence[BufferFacts], by: int, left: str) -> AdviceText:
    largest, space = items[0], need.memory_space.upper()
    scratch = "scratch" in (largest.buffer.tag or "").lower()
    what = "scratch operand " if scratch else ""
    shape = short_shape(largest.element, largest.dims) if largest.element else short_name(largest.buffer.name)
    of = _of_capacity(need)
    sentence = f"{what}{shape} of {_kernel(items)} takes {amount(largest.size)}{of} of {space}"
    if not scratch:
        sentence = f"{_kernel(items)} holds {amount(size_of(items))} on its stack{of} of {space}"
    how = f"make the {'scratch' if scratch else 'blocks'} smaller, 1/{by} or less"
    if scratch and largest.shape is not None and largest.dims:
        how += f": {_smaller(largest.shape, by)}"
    if need.memory_space == "smem":
        how += "; SMEM is for scalars, arrays belong into VMEM"
    return AdviceText(sentence, how, left)


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
    """A higher limit, where the limit is what was exceeded: by as much as the chip may have."""
    need, used = facts.need, facts.need.used_bytes
    if not need.is_scoped_limit or used is None or need.memory_space != "vmem":
        return []
    by = 1
    while used // by >= PHYSICAL_VMEM and by < 1 << _MOST_HALVINGS:
        by *= 2
    kib = -(-(used // by) // _LIMIT_STEP) * _LIMIT_STEP >> 10
    of = _of_capacity(need)
    sentence = f"it is the compiler's limit{of} for scoped VMEM that is exceeded, not the chip's memory"
    how = f"raise it: LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib={kib}, or vmem_limit_bytes of the Pallas call"
    if by > 1:
        how = f"blocks 1/{by}, and {how}"
    words = AdviceText(sentence, how, f"{amount(used)} needed; v5e and v6e have 128 MiB")
    return [advice_of(facts, "scoped", None, words, items)]


def _smaller(shape: Shape, by: int) -> str:
    """``16384 -> 4096``: the longest dimension, divided."""
    longest = max(shape.dimensions, default=0)
    return f"{longest} -> {longest // by}" if longest >= by else f"{longest} -> 1"


def _kernel(items: Sequence[BufferFacts]) -> str:
    """The kernel's name: of the instruction, or of the function in its op."""
    item = items[0]
    parts = [part for part in item.op.split("/") if part and part != "pallas_call"]
    label = (item.buffer.label or "").partition(" = ")[0].lstrip("%")
    return short_name(label or (parts[-1] if parts else item.buffer.name)) or some([item.buffer.name])


def _window(item: BufferFacts) -> _Window | None:
    """What a tag says of a window."""
    tag = (item.buffer.tag or "")[:4096]
    match = _WINDOW.search(tag)
    shape = parse_shape(match[3]) if match is not None else None
    if match is None or shape is None:
        return None
    levels = _LEVELS.search(tag)
    return _Window(f"{match[1]} {match[2]}", shape, int(levels[1]) if levels is not None else 1)
