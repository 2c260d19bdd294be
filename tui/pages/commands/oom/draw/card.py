"""All about one buffer, or those of one source line; the matter in twelve lines, for a chat; what the numbers mean."""

from __future__ import annotations

from tpuprof.parsers.base.text import by_reason
from tpuprof.parsers.files.source_lines import SourceExcerpt
from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.triage import Triage
from tpuprof.tui.draw.buffers import words
from tpuprof.tui.draw.buffers.words import PADDED, expansion_words, short_shape
from tpuprof.tui.draw.format import binary_size, limit_size, percent
from tpuprof.tui.draw.pen import Card, Pen, clean, cut_begin
from tpuprof.tui.draw.spans import ASCII, Line, plain
from tpuprof.tui.pages.commands.oom.draw.bars import KIND_WORDS, verdict_line
from tpuprof.tui.pages.commands.oom.draw.table import BufferRow, instruction_of, place_of
from tpuprof.tui.pages.commands.oom.fields import CALLED

_MOST_LISTED = 12  # buffers that a card lists
_MOST_LETTERS = 2000  # of a label or tag that are shown; the rest is said to be there
SUMMARY_WIDTH = 100


def buffer_card(triage: Triage, row: BufferRow, pen: Pen, excerpt: SourceExcerpt | None = None) -> list[Line]:
    """Everything about the row's buffer, in the memory tab's words; of a group its buffers in a line each, then its
    largest one.
    """
    buffers = triage.need.buffers
    buffer = buffers[row.buffers[0]]
    card = Card(pen)
    if len(row.buffers) > 1:
        card.head(row.title)
        _list(card, triage, row.buffers)
        card.title("The largest of them")
    kind = (words.CATEGORY_PHRASES[buffer.category], buffer.opcode)
    card.head(instruction_of(buffer) or short_shape(buffer.shape), [*filter(None, kind)])
    whole = "peak" if triage.kind == "module" else "need"
    size = binary_size(buffer.size_bytes)
    if triage.wanted_bytes:
        size += f", as much as {percent(100 * buffer.size_bytes / triage.wanted_bytes)} of the {whole}"
    card.entry("size", size, "strong")
    _write_padding(card, buffer)
    card.known("shape", buffer.shape, "strong")
    alike = [other.size_bytes for other in buffers if buffer.shape and other.shape == buffer.shape]
    if alike:  # layers kept for the backward pass, mostly
        where = "at the peak" if triage.kind == "module" else "in the list"
        words.alike_entry(card, len(alike) - 1, sum(alike), where)
    card.known("op", (buffer.framework_op or "").rstrip(":"))
    card.known("op type", buffer.operator)
    words.source_entry(card, buffer)
    card.lines += pen.excerpt(excerpt) if excerpt is not None else []
    place = [buffer.allocation_type] if buffer.allocation_type else []
    if buffer.offset_bytes is not None:
        place.append(f"from {binary_size(buffer.offset_bytes) if buffer.offset_bytes else 'its beginning'} on")
    card.known("allocated", ", ".join(place))
    card.known("tag", _short(buffer.tag))
    card.known("label", _short(buffer.label), "dim")
    for number, advice in enumerate(triage.advice, 1):
        if row.buffers[0] in advice.buffers:
            saving = f"saves {binary_size(advice.saving_bytes)} (estimate): " if advice.saving_bytes else ""
            card.entry(f"advice {number}", f"{saving}{advice.how or advice.sentence}", "good")
    return card.lines


def advice_card(triage: Triage, index: int, pen: Pen) -> list[Line]:
    """All of one piece of advice, and the buffers that it is about."""
    advice = triage.advice[index]
    card = Card(pen)
    card.head(advice.sentence)
    saving = f"{binary_size(advice.saving_bytes)}, an estimate" if advice.saving_bytes else "can't be estimated"
    card.entry("saves", saving)
    card.known("how", advice.how)
    card.known("sum", advice.arithmetic)
    card.known("source", advice.source)
    if advice.buffers:
        card.title("The buffers")
    _list(card, triage, advice.buffers)
    return card.lines


def summary(triage: Triage) -> str:
    """The matter in one line of at most twelve parts: the verdict, what to do first, the largest buffers."""
    head = " ".join(filter(None, ("OOM" if triage.kind != "module" else "memory", triage.title or "")))
    lines = [f"{head}, {KIND_WORDS[triage.kind]} ({triage.where})"]
    lines.append(plain(verdict_line(triage, None, Pen(SUMMARY_WIDTH, ASCII))).strip())
    if len(triage.parts) > 1:
        parts = ", ".join(f"{part.name} {limit_size(part.size_bytes)}" for part in triage.parts)
        lines.append(parts + (f"; padding {limit_size(triage.padding_bytes)}" if triage.padding_bytes else ""))
    for number, advice in enumerate(triage.advice[:3], 1):
        saving = f"-{binary_size(advice.saving_bytes)} (estimate): " if advice.saving_bytes else ""
        source = f" [{advice.source}]" if advice.source else ""
        lines.append(f"{number}. {saving}{advice.sentence}{source}")
    for buffer in sorted(triage.need.buffers, key=lambda buffer: -buffer.size_bytes)[: 12 - len(lines)]:
        padded = f" {expansion_words(buffer.expansion)} padded" if (buffer.expansion or 1) >= PADDED else ""
        kind, shape = words.CATEGORY_WORDS[buffer.category], short_shape(buffer.shape)
        place = " ".join(place_of(buffer)).strip()
        lines.append(f"{binary_size(buffer.size_bytes):>9} {kind} {shape}{padded}  {place}")
    return clean(" | ".join(" ".join(line[: 2 * SUMMARY_WIDTH].split()) for line in lines[:12]))


def _write_padding(card: Card, buffer: Buffer) -> None:
    expansion, padding = buffer.expansion, buffer.padding_bytes
    if padding is None:
        card.entry("padding", "unknown: the size of its elements is unknown", "dim")
    elif expansion is None or not padding:
        card.entry("padding", "none", "dim")
    else:
        words.padding_entry(card, buffer, words.expansion_style(expansion) if expansion >= PADDED else "text")


def _list(card: Card, triage: Triage, indices: tuple[int, ...]) -> None:
    pen = card.pen
    for index in indices[:_MOST_LISTED]:
        buffer = triage.need.buffers[index]
        head = f"{pen.text(short_shape(buffer.shape))}  "
        op = buffer.framework_op or instruction_of(buffer)
        size = f"{binary_size(buffer.size_bytes):>9}  "
        text = head + cut_begin(op, max(0, pen.width - len(size) - len(head)), pen.glyphs)
        card.lines.append(pen.fit([(size, "strong"), (text, "text")]))
    card.more(len(indices) - _MOST_LISTED)


def _short(text: str | None) -> str | None:
    rest = len(text or "") - _MOST_LETTERS
    return f"{(text or '')[:_MOST_LETTERS]} ({rest:,} more letters)" if rest > 0 else text


# --- help

_NEEDS = (
    "needs: the program's memory according to the compiler or the runtime; limit: the memory available to it. "
    "Newer compilers count what the system reserves beside both, older ones in both."
)
_NEEDS_OF_MODULE = "needs: the module's peak, the most in memory at once; limit: the memory available to programs."

_MEANING = (
    "The bars are the parts of the need, each starting where the previous one ends, in the colours of the memory "
    "tab; parts beyond the red line do not fit. Padding is not a separate part: it is drawn at the end of the others.",
    "pad: size in memory over the size of the elements. A TPU stores the last two dimensions in tiles, 8 by 128 for "
    "32-bit types, and pads arrays that do not fill them.",
    "Savings are estimates: arithmetic on the listed buffers, before the compiler has seen the changed program. "
    "Savings of different advice may overlap; what-if counts every byte once. A change to try has the number of its "
    "advice. On a low screen, press the digit of an advice to see its arithmetic.",
)


def meaning_lines(triage: Triage, pen: Pen) -> list[Line]:
    """What the numbers mean, and what is unknown."""
    card = Card(pen)
    card.title("What the numbers mean")
    card.paragraphs(_NEEDS_OF_MODULE if triage.kind == "module" else _NEEDS, *_MEANING)
    if triage.unknown:
        card.title("What is unknown")
        card.paragraphs(*by_reason((_called(name), why) for name, why in sorted(triage.unknown.items())))
    return card.lines


def _called(name: str) -> str:
    return CALLED.get(name) or name.removesuffix("_bytes").replace("_", " ")
