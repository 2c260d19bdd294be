"""What to do first, and what could be tried: each with what it would save, which is an estimate always."""

from __future__ import annotations

import os

from tpuprof.parsers.memory.oom.model import Advice
from tpuprof.parsers.memory.oom.triage import Triage, Trial
from tpuprof.tui.draw.format import binary_short
from tpuprof.tui.draw.pen import Pen, cut_words
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, line_width
from tpuprof.tui.pages.commands.oom.draw.bars import with_right

_SAVING = 7
_LEAD = 4 + _SAVING + 1  # cells before the words: mark, number, saving
MOST_DIGIT = 9  # the largest number that is a key
_LEAST_ROOM = 36  # cells of words below which the source line is left out


def advice_lines(triage: Triage, pen: Pen, height: int | None, selected: int | None = None) -> list[Line]:
    """The advice, the most worthwhile first: a line each, and of the selected one all.

    Where there is room, the others get what to do about it too, then the words that did not fit into their lines.

    Args:
        height: lines at most; None for everything about all of it.
        selected: index of the advice that was chosen.
    """
    if not triage.advice:
        return nothing_known(triage, pen, height)
    if height is None:
        return [line for index in range(len(triage.advice)) for line in _in_full(triage, index, pen, False)]
    chosen = -1 if selected is None else selected
    blocks = [[_title(triage, index, pen, index == chosen)] for index in range(len(triage.advice))]
    left = height - len(blocks)
    order = sorted(range(len(blocks)), key=lambda index: index != chosen)
    longer = [(index, _in_full(triage, index, pen, True)) for index in order[:1] if index == chosen]
    longer += [(index, _brief(triage, index, pen, index == chosen)) for index in order]
    longer += [(index, _wrapped(triage, index, pen, index == chosen)) for index in order]
    for index, block in longer:
        if 0 < len(block) - len(blocks[index]) <= left:
            left -= len(block) - len(blocks[index])
            blocks[index] = block
    return [line for block in blocks for line in block][: max(0, height)]


def most_advice_lines(triage: Triage, pen: Pen) -> int:
    """Lines of `advice_lines` with no word cut off, and nothing selected."""
    return sum(len(_wrapped(triage, index, pen, False)) for index in range(len(triage.advice)))


def toggle_lines(triage: Triage, trial: Trial | None, pen: Pen, height: int | None, cursor: int = -1) -> list[Line]:
    """What can be tried, as boxes to tick; what each saves alone, and what the ticked ones save in their order."""
    if not triage.toggles:
        return pen.wrap(why_nothing_to_try(triage), "dim", [(" ", "text")])
    lines = []
    numbers = triage.toggle_numbers
    digits = len(str(max(numbers)))
    for index, (toggle, number) in enumerate(zip(triage.toggles, numbers, strict=True)):
        is_on, here = trial is not None and toggle.key in trial.chosen, index == cursor
        savings = {} if trial is None else trial.estimate.saved_by if is_on else trial.alone
        count = len(toggle.buffers)
        spans: list[Span] = [
            (pen.glyphs.mark if here else " ", "mark"),
            (f"{number:<{digits}} ", "key" if number <= MOST_DIGIT else "dim"),
            ("[x] " if is_on else "[ ] ", "strong" if is_on else "text"),
            (f"{_saving(savings.get(toggle.key, 0)):>{_SAVING}} ", "good" if is_on else "dim"),
            (toggle.title, "cursor" if here else "text"),
        ]
        lines.append(with_right(spans, f"{count} buffer{'s' * (count != 1)}", pen))
    return lines if height is None else lines[: max(0, height)]


def nothing_known(triage: Triage, pen: Pen, height: int | None) -> list[Line]:
    """Why there is no advice."""
    if triage.kind == "module" and triage.need.memory_space != "hbm":
        words = f"The compiler chooses what a compiled module keeps in {triage.space}: there is no advice."
    elif triage.kind == "module" and not triage.need.buffers:
        words = f"The module has no buffers in {triage.space}."
    elif triage.need.buffers:
        words = "None of the listed buffers stands out: they are small, or unknown."
    elif triage.kind == "runtime" or triage.is_request:
        words = (
            "The message names no buffers: the memory was full before this request. A profile of the running "
            "program shows its allocations: tpuprof-tui report memory-profile LOGDIR."
        )
    else:
        words = (
            "Without a list of buffers there is no advice. The dump of the compile that failed has them all: "
            "tpuprof-tui oom LOG FOLDER."
        )
    lines = pen.wrap(words, "text", [(" ", "text")])
    return lines if height is None else lines[: max(0, height)]


def why_nothing_to_try(triage: Triage) -> str:
    """Why there are no toggles, a sentence."""
    if triage.kind == "module" and triage.need.memory_space != "hbm":
        return f"There is nothing to try: the compiler chooses what a module keeps in {triage.space}."
    if triage.need.buffers:
        return "There is nothing to try: no known change would make these buffers smaller."
    owner = "the module has none" if triage.kind == "module" else "the text lists none"
    return f"There is nothing to try without buffers, and {owner}."


def _brief(triage: Triage, index: int, pen: Pen, selected: bool) -> list[Line]:
    """The advice and what to do about it, a line each."""
    lines = [_title(triage, index, pen, selected)]
    if how := triage.advice[index].how:
        lines.append(pen.fit([(" " * _LEAD, "text"), (cut_words(how, pen.width - _LEAD, pen.glyphs), "dim")]))
    return lines


def _wrapped(triage: Triage, index: int, pen: Pen, selected: bool) -> list[Line]:
    how = triage.advice[index].how
    lines = _whole_title(triage, index, pen, selected)
    return lines + (pen.wrap(how, "dim", [(" " * _LEAD, "text")]) if how else [])


def _in_full(triage: Triage, index: int, pen: Pen, selected: bool) -> list[Line]:
    advice = triage.advice[index]
    lines = _whole_title(triage, index, pen, selected)
    texts: tuple[tuple[str, StyleKey], ...] = ((advice.how, "text"), (advice.arithmetic, "dim"))
    for text, key in texts:
        lines += pen.wrap(text, key, [(" " * _LEAD, "text")]) if text else []
    return lines


def _whole_title(triage: Triage, index: int, pen: Pen, selected: bool) -> list[Line]:
    advice = triage.advice[index]
    source, words = _source(advice, pen), pen.text(advice.sentence)
    lines = [_title(triage, index, pen, selected)]
    if len(words) > pen.width - _LEAD - len(source) - 2:  # the sentence in full, and the source line behind it
        words += f"  ({source})" if source else ""
        lines = pen.wrap(words, "strong", _head(triage, index, pen.glyphs, selected))
    return lines


def _head(triage: Triage, index: int, glyphs: Glyphs, selected: bool) -> list[Span]:
    saving, is_range = triage.advice[index].saving_bytes, triage.advice[index].least_bytes is not None
    return [
        (glyphs.mark if selected else " ", "mark"),
        (f"{index + 1:<2}", "key"),
        (f"{'~' * is_range + _saving(saving):>{_SAVING}}  ", "good" if saving else "dim"),
    ]


def _title(triage: Triage, index: int, pen: Pen, selected: bool) -> Line:
    advice = triage.advice[index]
    source, head = _source(advice, pen), _head(triage, index, pen.glyphs, selected)
    room = pen.width - line_width(tuple(head)) - (len(source) + 3 if source else 1)
    if room < _LEAST_ROOM:
        source, room = "", pen.width - line_width(tuple(head)) - 1
    words = cut_words(advice.sentence, room, pen.glyphs)
    return with_right([*head, (words, "cursor" if selected else "strong")], source, pen)


def _source(advice: Advice, pen: Pen) -> str:
    return pen.text(os.path.basename(advice.source or ""))


def _saving(value: int | None) -> str:
    if value is None:
        return "?"
    return f"-{binary_short(value)}" if value > 0 else "0"
