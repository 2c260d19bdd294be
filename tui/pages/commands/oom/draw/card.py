"""All about one buffer, or those of one source line; the matter in twelve lines, for a chat; what the numbers mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpuprof.parsers.files.source_lines import SourceExcerpt
from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.triage import Triage
from tpuprof.tui.draw.buffers import words
from tpuprof.tui.draw.buffers.sizes import binary_size, limit_size
from tpuprof.tui.draw.buffers.words import PADDED, entry, expansion_words, short_shape
from tpuprof.tui.draw.format import percent
from tpuprof.tui.draw.layout import clean, cut_begin
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, Line, StyleKey, plain
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
    lines: list[Line] = []
    if len(row.buffers) > 1:
        lines += pen.wrap(row.title, "strong")
        lines += _listed(triage, row.buffers, pen)
        lines += [pen.fit([]), pen.fit([("The largest of them", "title")])]
    kind = [words.CATEGORY_PHRASES[buffer.category], buffer.opcode]
    facts = f" {pen.glyphs.dot} ".join(word for word in kind if word)
    lines += pen.wrap(instruction_of(buffer) or short_shape(buffer.shape), "strong")
    lines.append(pen.fit([(facts, "dim")]))
    whole = "peak" if triage.kind == "module" else "need"
    size = binary_size(buffer.size_bytes)
    if triage.wanted_bytes:
        size += f", as much as {percent(100 * buffer.size_bytes / triage.wanted_bytes)} of the {whole}"
    lines += entry("size", size, pen, "strong")
    lines += _padding(buffer, pen)
    lines += _entries({"shape": buffer.shape}, pen, "strong")
    alike = [other.size_bytes for other in buffers if buffer.shape and other.shape == buffer.shape]
    if alike:  # layers kept for the backward pass, mostly
        where = "at the peak" if triage.kind == "module" else "in the list"
        lines += words.alike_entry(len(alike) - 1, sum(alike), where, pen)
    op = (buffer.framework_op or "").rstrip(":")
    lines += _entries({"op": op, "op type": buffer.operator}, pen)
    lines += words.source_entry(buffer, pen)
    lines += pen.excerpt(excerpt) if excerpt is not None else []
    place = [buffer.allocation_type] if buffer.allocation_type else []
    if buffer.offset_bytes is not None:
        place.append(f"from {binary_size(buffer.offset_bytes) if buffer.offset_bytes else 'its beginning'} on")
    lines += _entries({"allocated": ", ".join(place), "tag": _short(buffer.tag)}, pen)
    lines += _entries({"label": _short(buffer.label)}, pen, "dim")
    for number, advice in enumerate(triage.advice, 1):
        if row.buffers[0] in advice.buffers:
            saving = f"saves {binary_size(advice.saving_bytes)} (estimate): " if advice.saving_bytes else ""
            lines += entry(f"advice {number}", f"{saving}{advice.how or advice.sentence}", pen, "good")
    return lines


def advice_card(triage: Triage, index: int, pen: Pen) -> list[Line]:
    """All of one piece of advice, and the buffers that it is about."""
    advice = triage.advice[index]
    saving = f"{binary_size(advice.saving_bytes)}, an estimate" if advice.saving_bytes else "can't be estimated"
    facts = {"saves": saving, "how": advice.how, "sum": advice.arithmetic, "source": advice.source}
    lines = pen.wrap(advice.sentence, "strong") + _entries(facts, pen)
    if advice.buffers:
        lines += [pen.fit([]), pen.fit([("The buffers", "title")])]
    return lines + _listed(triage, advice.buffers, pen)


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


def _entries(facts: Mapping[str, str | None], pen: Pen, key: StyleKey = "text") -> list[Line]:
    """Those facts, each under its label, of which there is something to say."""
    return [line for label, text in facts.items() if text for line in entry(label, text, pen, key)]


def _padding(buffer: Buffer, pen: Pen) -> list[Line]:
    """What padding adds, and which dimensions are padded."""
    expansion, padding = buffer.expansion, buffer.padding_bytes
    if padding is None:
        return entry("padding", "unknown: the size of its elements is not known", pen, "dim")
    if expansion is None or not padding:
        return entry("padding", "none", pen, "dim")
    return words.padding_entry(buffer, words.expansion_style(expansion) if expansion >= PADDED else "text", pen)


def _listed(triage: Triage, indices: tuple[int, ...], pen: Pen) -> list[Line]:
    lines = []
    for index in indices[:_MOST_LISTED]:
        buffer = triage.need.buffers[index]
        head = f"{pen.text(short_shape(buffer.shape))}  "
        op = buffer.framework_op or instruction_of(buffer)
        size = f"{binary_size(buffer.size_bytes):>9}  "
        text = head + cut_begin(op, max(0, pen.width - len(size) - len(head)), pen.glyphs)
        lines.append(pen.fit([(size, "strong"), (text, "text")]))
    if len(indices) > _MOST_LISTED:
        lines.append(pen.fit([(f"and {len(indices) - _MOST_LISTED} more", "dim")]))
    return lines


def _short(text: str | None) -> str | None:
    rest = len(text or "") - _MOST_LETTERS
    return f"{(text or '')[:_MOST_LETTERS]} ({rest:,} more letters)" if rest > 0 else text


# --- help

_NEEDS = (
    "needs: what the compiler or the runtime says the program takes; the limit is what there is for it. What the "
    "system reserves is counted beside both, as newer compilers do, or in both, as older ones did."
)
_NEEDS_OF_MODULE = (
    "needs: the module's peak, the most that is in memory at once; the limit is what there is for programs."
)

_MEANING = (
    "The bars are the parts of the need, each beginning where the one before it ends, in the colours of the memory "
    "tab; what is beyond the red line does not fit. Padding is no further part: it is in the others, drawn at their "
    "end.",
    "pad: size in memory over the size of the elements. A TPU stores the last two dimensions in tiles, 8 by 128 for "
    "32-bit types, and fills up what an array leaves of them.",
    "Savings are estimates: arithmetic on the listed buffers, before the compiler has looked at the changed program. "
    "Savings of different advice may overlap; what-if counts every byte once. A change to try has the number of its "
    "advice. Where lines are few, the arithmetic of an advice shows once its digit is pressed.",
)


def meaning_lines(triage: Triage, pen: Pen) -> list[Line]:
    """What the numbers mean, and what is unknown."""
    lines = [pen.fit([("What the numbers mean", "title")])]
    for sentence in (_NEEDS_OF_MODULE if triage.kind == "module" else _NEEDS, *_MEANING):
        lines += pen.wrap(sentence, "text")
    if triage.unknown:
        lines += [pen.fit([]), pen.fit([("What is not known", "title")])]
        for why, names in _by_reason(triage.unknown).items():
            lines += pen.wrap(f"{', '.join(names)}: {why}", "text")
    return lines


def _by_reason(unknown: Mapping[str, str]) -> Mapping[str, Iterable[str]]:
    """What is unknown in words, by why."""
    by_reason: dict[str, dict[str, None]] = {}
    for name, why in sorted(unknown.items()):
        words = CALLED.get(name) or name.removesuffix("_bytes").replace("_", " ")
        by_reason.setdefault(why, {})[words] = None
    return by_reason
