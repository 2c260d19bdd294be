"""All about one buffer, or the buffers of one source line; and the whole matter in twelve lines, for a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.triage import Triage
from tpuprof.tui.draw.buffers.sizes import binary_size, limit_size
from tpuprof.tui.draw.buffers.words import (
    CATEGORY_PHRASES,
    CATEGORY_WORDS,
    PADDED,
    alike_entry,
    entry,
    expansion_style,
    expansion_words,
    padding_entry,
    short_shape,
    source_entry,
)
from tpuprof.tui.draw.format import percent
from tpuprof.tui.draw.layout import clean, cut_begin, fit, wrap
from tpuprof.tui.draw.source_lines import excerpt_lines
from tpuprof.tui.draw.spans import ASCII, Glyphs, Line, plain
from tpuprof.tui.pages.oom.draw.bars import KIND_WORDS, verdict_line
from tpuprof.tui.pages.oom.draw.table import Row, instruction_of, place_of

if TYPE_CHECKING:
    from tpuprof.tui.draw.source_lines import SourceExcerpt

_MOST_LISTED = 12
_MOST_LETTERS = 2000
"""Letters of a label or tag that are shown; the rest is said to be there."""

SUMMARY_WIDTH = 100


def buffer_card(
    triage: Triage, row: Row, width: int, glyphs: Glyphs, excerpt: SourceExcerpt | None = None
) -> list[Line]:
    """Everything about the row's buffer, in the memory tab's words; of a group its buffers in a line each, then its
    largest one.
    """
    buffers = triage.need.buffers
    buffer = buffers[row.buffers[0]]
    lines: list[Line] = []
    if len(row.buffers) > 1:
        lines += wrap(row.title, width, "strong", glyphs)
        lines += _listed(triage, row.buffers, width, glyphs)
        lines += [fit([], width, glyphs), fit([("The largest of them", "title")], width, glyphs)]
    ascii_only = glyphs.is_ascii
    lines += wrap(instruction_of(buffer) or short_shape(buffer.shape), width, "strong", glyphs)
    words = [CATEGORY_PHRASES[buffer.category], buffer.opcode]
    facts = f" {glyphs.dot} ".join(clean(word, ascii_only) for word in words if word)
    lines.append(fit([(facts, "dim")], width, glyphs))
    lines += entry("size", _size_words(triage, buffer), width, glyphs, "strong")
    lines += _padding(buffer, width, glyphs)
    if buffer.shape:
        lines += entry("shape", buffer.shape, width, glyphs, "strong")
    lines += _others(triage, row.buffers[0], width, glyphs)
    if buffer.framework_op:
        lines += entry("op", buffer.framework_op.rstrip(":"), width, glyphs)
    if buffer.operator:
        lines += entry("op type", buffer.operator, width, glyphs)
    lines += source_entry(buffer, width, glyphs)
    lines += excerpt_lines(excerpt, width, glyphs) if excerpt is not None else []
    lines += _place(buffer, width, glyphs)
    if buffer.tag:
        lines += entry("tag", _short(buffer.tag), width, glyphs)
    if buffer.label:
        lines += entry("label", _short(buffer.label), width, glyphs, "dim")
    return lines + _advised(triage, row.buffers[0], width, glyphs)


def advice_card(triage: Triage, index: int, width: int, glyphs: Glyphs) -> list[Line]:
    """All of one piece of advice, and the buffers that it is about."""
    advice = triage.advice[index]
    lines = wrap(advice.sentence, width, "strong", glyphs)
    saving = f"{binary_size(advice.saving_bytes)}, an estimate" if advice.saving_bytes else "can't be estimated"
    lines += entry("saves", saving, width, glyphs)
    lines += entry("how", advice.how, width, glyphs) if advice.how else []
    lines += entry("sum", advice.arithmetic, width, glyphs) if advice.arithmetic else []
    lines += entry("source", advice.source, width, glyphs) if advice.source else []
    if advice.buffers:
        lines += [fit([], width, glyphs), fit([("The buffers", "title")], width, glyphs)]
    return lines + _listed(triage, advice.buffers, width, glyphs)


def summary(triage: Triage) -> str:
    """The matter in at most twelve lines of plain text: the verdict, what to do first, the largest buffers."""
    ascii_glyphs = ASCII
    head = " ".join(filter(None, ("OOM" if triage.kind != "module" else "memory", clean(triage.title or ""))))
    lines = [f"{head}, {KIND_WORDS[triage.kind]} ({clean(triage.where)})"]
    lines.append(plain(verdict_line(triage, None, SUMMARY_WIDTH, ascii_glyphs)).strip())
    parts = ", ".join(f"{part.name} {limit_size(part.size_bytes)}" for part in triage.parts)
    if len(triage.parts) > 1:
        padding = f"; padding {limit_size(triage.padding_bytes)}" if triage.padding_bytes else ""
        lines.append(f"{parts}{padding}")
    for index, advice in enumerate(triage.advice[:3]):
        saving = f"-{binary_size(advice.saving_bytes)} (estimate): " if advice.saving_bytes else ""
        source = f" [{clean(advice.source)}]" if advice.source else ""
        lines.append(f"{index + 1}. {saving}{clean(advice.sentence)}{source}")
    shown = sorted(triage.need.buffers, key=lambda buffer: -buffer.size_bytes)[: 12 - len(lines)]
    for buffer in shown:
        padded = f" {expansion_words(buffer.expansion)} padded" if (buffer.expansion or 1) >= PADDED else ""
        kind, shape = CATEGORY_WORDS[buffer.category], clean(short_shape(buffer.shape))
        place = clean(" ".join(place_of(buffer)).strip())
        lines.append(f"{binary_size(buffer.size_bytes):>9} {kind} {shape}{padded}  {place}")
    return "\n".join(line[: 2 * SUMMARY_WIDTH] for line in lines[:12])


# --- parts ---------------------------------------------------------------------------------------------------------


def _whole(triage: Triage) -> str:
    """What buffers are held against."""
    return "peak" if triage.kind == "module" else "need"


def _size_words(triage: Triage, buffer: Buffer) -> str:
    words = binary_size(buffer.size_bytes)
    if triage.wanted_bytes:
        share = percent(100 * buffer.size_bytes / triage.wanted_bytes)
        words += f", as much as {share} of the {_whole(triage)}"
    return words


def _padding(buffer: Buffer, width: int, glyphs: Glyphs) -> list[Line]:
    """What padding adds, and which dimensions are padded."""
    expansion, padding = buffer.expansion, buffer.padding_bytes
    if padding is None:
        return entry("padding", "unknown: the size of its elements is not known", width, glyphs, "dim")
    if expansion is None or not padding:
        return entry("padding", "none", width, glyphs, "dim")
    return padding_entry(buffer, expansion_style(expansion) if expansion >= PADDED else "text", width, glyphs)


def _others(triage: Triage, index: int, width: int, glyphs: Glyphs) -> list[Line]:
    """Whether others have the same shape: layers kept for the backward pass, mostly."""
    buffers = triage.need.buffers
    shape = buffers[index].shape
    if not shape:
        return []
    where = "at the peak" if triage.kind == "module" else "in the list"
    same = [place for place, other in enumerate(buffers) if other.shape == shape]
    total = sum(buffers[place].size_bytes for place in same)
    return alike_entry(len(same) - 1, total, where, width, glyphs)


def _place(buffer: Buffer, width: int, glyphs: Glyphs) -> list[Line]:
    """The kind of its allocation, and where in it."""
    words = [buffer.allocation_type] if buffer.allocation_type else []
    if buffer.offset_bytes is not None:
        words.append(f"from {binary_size(buffer.offset_bytes)} on" if buffer.offset_bytes else "from its beginning on")
    return entry("allocated", ", ".join(words), width, glyphs) if words else []


def _listed(triage: Triage, indices: tuple[int, ...], width: int, glyphs: Glyphs) -> list[Line]:
    lines, ascii_only = [], glyphs.is_ascii
    for index in indices[:_MOST_LISTED]:
        buffer = triage.need.buffers[index]
        head = f"{clean(short_shape(buffer.shape), ascii_only)}  "
        op = clean(buffer.framework_op or instruction_of(buffer), ascii_only)
        size = f"{binary_size(buffer.size_bytes):>9}  "
        words = head + cut_begin(op, max(0, width - len(size) - len(head)), glyphs)
        lines.append(fit([(size, "strong"), (words, "text")], width, glyphs))
    if len(indices) > _MOST_LISTED:
        lines.append(fit([(f"and {len(indices) - _MOST_LISTED} more", "dim")], width, glyphs))
    return lines


def _advised(triage: Triage, index: int, width: int, glyphs: Glyphs) -> list[Line]:
    lines: list[Line] = []
    for number, advice in enumerate(triage.advice):
        if index in advice.buffers:
            saving = f"saves {binary_size(advice.saving_bytes)} (estimate): " if advice.saving_bytes else ""
            lines += entry(f"advice {number + 1}", f"{saving}{advice.how or advice.sentence}", width, glyphs, "good")
    return lines


def _short(text: str) -> str:
    rest = len(text) - _MOST_LETTERS
    return text if rest <= 0 else f"{text[:_MOST_LETTERS]} ({rest:,} more letters)"
