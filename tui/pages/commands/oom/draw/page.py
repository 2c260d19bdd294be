"""Memory that is full, on one screen: by how much, what for, what to do first, and the largest buffers.

`compose` fits it to a screen; without a height it draws all of it, as the report does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from tpuprof.parsers.files.source_lines import SourceExcerpt
from tpuprof.parsers.memory.account.owners import MemoryAccount
from tpuprof.parsers.memory.oom.model import Advice
from tpuprof.parsers.memory.oom.triage import Triage, Trial
from tpuprof.tui.draw.buffers.owners import fit_words, notable, owner_words
from tpuprof.tui.draw.format import binary_short
from tpuprof.tui.draw.pen import Composed, Pen, cut_middle, cut_words, filled, gutter_lines, hstack
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, line_width
from tpuprof.tui.pages.commands.oom.draw.bars import KIND_WORDS, composition, most_lines, verdict_line, with_right
from tpuprof.tui.pages.commands.oom.draw.card import buffer_card
from tpuprof.tui.pages.commands.oom.draw.table import BufferRow, OomView, rows_of, table_lines

_LEAST_ROWS = 4  # rows of the table that it keeps when lines are few
_AROUND = 8  # lines of the verdict, the plan, whose the memory is, and headings
_CARD = 150  # cells from which on the card of the buffer under the cursor stands beside the table
_REMARK, _MOST_REMARKS = 18, 3  # lines from which on a remark is shown above a table, and how many with many lines
_AIRY = 34  # lines from which on blank lines stand between the sections


def compose(
    triage: Triage,
    trial: Trial | None,
    view: OomView,
    pen: Pen,
    height: int | None,
    rows: tuple[BufferRow, ...] | None = None,
    excerpt: SourceExcerpt | None = None,
    held: Sequence[Line] = (),
) -> Composed:
    """The page.

    Args:
        trial: what the toggles come to; None before any was looked at.
        height: lines that there are; None for as many as it takes.
        rows: the table's rows where they are known already.
        excerpt: source lines of the buffer under the cursor, for its card.
        held: who holds the memory, by a device memory profile, in a line, and as a section where there is no table.
    """
    if rows is None:
        rows = rows_of(triage, trial, view)
    lines = [verdict_line(triage, trial, pen), *_remarks(triage, pen, height)]
    lines += held[:1] if triage.need.buffers else []
    lines += _plan_lines(triage, pen, height)
    bars, advice_room, gaps = _shares(triage, pen, height, len(lines), view.is_trying)
    lines += composition(triage, trial, pen, bars)
    blank = [pen.fit([])] * gaps
    if view.is_trying:
        title, remark = "What if?", "estimates from the listed buffers"
        drawn = toggle_lines(triage, trial, pen, advice_room, view.tries.cursor if view.cursor >= 0 else -1)
    else:
        title, remark = "What to do first", "savings are estimates" if triage.advice else ""
        drawn = advice_lines(triage, pen, advice_room, view.advice)
    lines += [*blank, pen.rule(title, remark), *drawn]
    if not triage.need.buffers:
        lines += held[1:]
        return Composed(tuple(filled(lines, pen.width, len(lines) if height is None else height)), -1, 0, 0)
    words = f"/{view.words}" if view.words else ""
    lines += [*blank, pen.rule(_table_title(triage, len(rows), view), words)]
    start, room = len(lines) + 1, len(rows) if height is None else max(1, height - len(lines) - 1)
    first = view.shown_first(room, len(rows))
    with_card = pen.width >= _CARD and 0 <= view.cursor < len(rows) and not view.is_trying
    left = pen.width * 11 // 20 if with_card else pen.width
    shown = range(first, min(len(rows), first + room))
    table = table_lines(triage, rows, shown, pen.at(left), None if height is None else view)
    if with_card:
        card = buffer_card(triage, rows[view.cursor], pen.at(pen.width - left - 3), excerpt)[: room + 1]
        table = hstack((table, gutter_lines(room + 1, pen.glyphs), card), (left, 3, pen.width - left - 3))
    lines += table
    if not rows:
        lines.append(pen.fit([(" no buffer has these words", "dim")]))
    lines = filled(lines, pen.width, len(lines) if height is None else height)
    return Composed(tuple(lines), start if rows else -1, first, room)


def head_line(triage: Triage, index: int, total: int, pen: Pen) -> Line:
    """Where we are: which error of how many, in which log and line, of which program, and how often it is there."""
    spans: list[Span] = [(" OOM " if triage.kind != "module" else " MEMORY ", "badge"), (" ", "text")]
    times = f"{triage.count:,} times in the log" if triage.count > 1 else ""
    tail = f"error {index + 1} of {total}" if total > 1 else ""
    names = [name for name in (pen.text(triage.where), pen.text(triage.title or "")) if name]
    room = pen.width - line_width(tuple(spans)) - (len(tail) + 2 if tail else 1)
    each = max(8, (room - 4 * len(names)) // max(1, len(names)))
    if sum(map(len, names)) + 3 * len(names) > room:
        spare = sum(max(0, each - len(name)) for name in names)
        names = [cut_middle(name, each + spare, pen.glyphs) for name in names]
    for place, name in enumerate(names):
        spans += [(f"  {pen.glyphs.dot}  " if place else "", "dim"), (name, "text" if place else "strong")]
    for fact in filter(None, (KIND_WORDS[triage.kind], triage.device, times)):
        words = f"  {pen.glyphs.dot}  {pen.text(fact)}"
        if line_width(tuple(spans)) + len(words) + (len(tail) + 2 if tail else 0) <= pen.width:
            spans.append((words, "dim"))
    if tail:
        gap = max(1, pen.width - line_width(tuple(spans)) - len(tail) - 1)
        spans += [(" " * gap, "text"), (tail, "warn")]
    return pen.fit(spans)


def _remarks(triage: Triage, pen: Pen, height: int | None) -> list[Line]:
    """What to know before the figures: the error's own words where there are no figures, and what is missing."""
    lines: list[Line] = []
    if triage.sentence and (height is None or triage.wanted_bytes is None or not triage.need.buffers):
        code = f"{triage.code} " if triage.code and triage.code not in triage.sentence else ""
        lines += pen.wrap(code + triage.sentence, "dim", [(" ", "text")])[: None if height is None else 3]
    cut_remark = ["The text is cut off: it may have listed more."] if triage.is_cut else []
    texts = [*cut_remark, *triage.notes]
    if height is None or not triage.need.buffers:  # without a table there is room for all that there is to say
        room = None if height is None else max(0, height - len(lines) - _LEAST_ROWS)
        return lines + pen.wrap_all(texts, "warn", [(" ! ", "warn")])[:room]
    shown = texts[: 0 if height < _REMARK else 1 if height < _AIRY else _MOST_REMARKS]
    rows = min(len(triage.need.buffers), _LEAST_ROWS)
    spare = height - len(lines) - len(shown) - most_lines(triage) - 2 * len(triage.advice) - rows - _AROUND
    for text in shown:
        wrapped = pen.wrap(text, "warn", [(" ! ", "warn")])
        if len(wrapped) - 1 > max(spare, 0):
            wrapped = [pen.fit([(" ! ", "warn"), (cut_words(text, pen.width - 3, pen.glyphs), "warn")])]
        spare -= len(wrapped) - 1
        lines += wrapped
    return lines


def _plan_lines(triage: Triage, pen: Pen, height: int | None) -> list[Line]:
    """What to change so that it fits, in a line, and whose the memory is; of few lines the plan alone."""
    lines: list[Line] = []
    if triage.plan is not None:
        costs = f" ({'; '.join(triage.plan.costs)})" if triage.plan.costs else ""
        style: StyleKey = "good" if triage.plan.fits else "warn"
        wrapped = pen.wrap(triage.plan.sentence + costs, style, [(" plan: ", "strong")])
        lines += wrapped if height is None else wrapped[: 1 if height < _REMARK else 3]
    elif triage.fit is not None:
        style = "dim" if triage.fit.unknown else "text"
        wrapped = pen.wrap(fit_words(triage.fit), style, [(" ", "text")])
        is_cut = height is not None and len(wrapped) > 1
        lines += pen.wrap(fit_words(triage.fit, is_short=True), style, [(" ", "text")])[:1] if is_cut else wrapped
    if triage.account is not None and triage.kind in ("compile", "module") and triage.need.buffers:
        most = None if height is None else 0 if height < _REMARK else 1 if height < _AIRY else 2
        lines += _owner_lines(triage.account, pen, most)
    return lines


def _owner_lines(account: MemoryAccount, pen: Pen, most: int | None) -> list[Line]:
    """Whose the memory is, the largest first, as far as there is room for; the rest together."""
    owners = notable(account)
    left, lines = account.total_bytes, list[Line]()
    named: list[str] = []
    for number, (owner, size) in enumerate(owners, 1):
        words = [*named, f"{owner_words(owner, most == 1)} {binary_short(size)}"]
        left -= size
        rest = [f"others {binary_short(left)}"] if number < len(owners) else []
        longer = pen.wrap(", ".join(words + rest), "text", [(" whose: ", "strong")])
        if most is not None and len(longer) > most:
            break
        lines, named = longer, words
    return lines


def _shares(
    triage: Triage, pen: Pen, height: int | None, taken: int, is_trying: bool
) -> tuple[int | None, int | None, int]:
    """Lines of the bars, lines of the advice, and blank lines before each section."""
    if height is None:
        return None, None, 1
    bars_wanted = most_lines(triage)
    entries = max(1, len(triage.toggles if is_trying else triage.advice))
    if not triage.need.buffers:
        bars = min(bars_wanted, max(0, height - taken - 4))
        return bars, max(1, height - taken - bars - 1), 0
    gaps = 1 if height >= _AIRY else 0
    least = min(_LEAST_ROWS, len(triage.need.buffers))
    free = height - taken - 3 - 2 * gaps - least  # two rules and the headings
    bars = min(bars_wanted, max(2, free - entries)) if free - entries >= 1 else min(bars_wanted, 2)
    advice = max(1, min(entries, free - bars))
    spare = free - bars - advice
    rows = max(0, min(len(triage.need.buffers) - least, spare // 2))
    more = 0 if is_trying else min(max(0, spare - rows), max(2 * entries, most_advice_lines(triage, pen) - advice))
    return bars, advice + more, gaps


def _table_title(triage: Triage, count: int, view: OomView) -> str:
    total = len(triage.need.buffers)
    if view.grouped:
        return f"Source lines ({count} of {total} buffers)"
    shown = f"{count} of {total}" if view.words else f"{total}"
    return f"{'All buffers at the peak' if triage.need.is_whole else 'Largest buffers'} ({shown})"


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
