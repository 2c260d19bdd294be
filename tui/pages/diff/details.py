"""All about one change, a summary to paste elsewhere, the keys, and what the figures mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tpuprof.parsers.diff.model import Diff, MatchedBy, OpChange
from tpuprof.parsers.diff.noise import CONFIDENCE, MOST_BATCHES
from tpuprof.parsers.ops.table import OpTable
from tpuprof.tui.draw.bars import CLASS_STYLE
from tpuprof.tui.draw.layout import clean, fit, wrap
from tpuprof.tui.draw.spans import CLASS_LETTER, Glyphs, Line
from tpuprof.tui.pages.diff.changes import HIDING, Entry, entries
from tpuprof.tui.pages.diff.drawing import View, shown
from tpuprof.tui.pages.diff.words import (
    MARK_WORDS,
    figure,
    per_unit,
    plus_minus,
    relative,
    side_figure,
    signed,
    verdict,
)

LABEL = 9
_SUMMARY_OPS = 8

_MATCHED: dict[MatchedBy, str] = {
    "name": "by program and name",
    "text": "by its HLO text: the compiler numbered it anew",
    "origin": "by category, shape and framework op: its HLO has changed",
    "none": "",
}


def card(diff: Diff, row: Entry, width: int, glyphs: Glyphs) -> list[Line]:
    """Everything about a row."""
    lines = wrap(clean(row.name, glyphs.is_ascii), width, "strong", glyphs)
    change = row.change
    lines += _entry("change", f"{MARK_WORDS[change.mark]}  {_sizes(row, glyphs.is_ascii)}", width, glyphs)
    for name, value in (("A", change.before), ("B", change.after)):
        lines += _entry(name, side_figure(change, value, row.kind, glyphs.is_ascii, "not there"), width, glyphs)
    if row.kind == "time":
        noise = (
            "unknown"
            if change.noise is None
            else plus_minus(glyphs.is_ascii) + figure(change.noise, "time", glyphs.is_ascii)
        )
        lines += _entry("noise", noise, width, glyphs)
        lines += _entry("per", f"{per_unit(diff)}, on the mean core", width, glyphs)
    if row.note and row.op is None:
        lines += _entry("note", row.note, width, glyphs)
    return lines if row.op is None else lines + _op(diff, diff.ops[row.op], width, glyphs)


def _sizes(row: Entry, ascii_only: bool) -> str:
    words = signed(row.change.delta, row.kind, ascii_only)
    share = relative(row.change)
    return f"{words} ({share})" if share and row.kind != "percent" else words


def _op(diff: Diff, op: OpChange, width: int, glyphs: Glyphs) -> list[Line]:
    category = clean(op.category or "category unknown", glyphs.is_ascii)
    words = f"{category} {glyphs.dot} {op.op_class} {glyphs.dot} {clean(op.program, glyphs.is_ascii)}"
    lines = [fit([(f"{CLASS_LETTER[op.op_class]} ", CLASS_STYLE[op.op_class]), (words, "dim")], width, glyphs)]
    counts = [None if value is None else f"{value:.6g}" for value in (op.count.before, op.count.after)]
    known = [value for value in counts if value is not None]
    number = known[0] if len(set(known)) == 1 else f" {glyphs.arrow} ".join(known)
    times = "time" if number == "1" else "times"
    lines += _entry("runs", f"{number} {times} {per_unit(diff)}", width, glyphs)
    if op.old_name:
        lines += _entry("in A", clean(op.old_name, glyphs.is_ascii), width, glyphs)
    if _MATCHED[op.matched_by]:
        lines += _entry("matched", _MATCHED[op.matched_by], width, glyphs)
    elif op.time.mark == "same":
        lines += _entry("note", "it runs outside of the typical steps only", width, glyphs)
    if op.framework_op:
        lines += _entry("op", clean(op.framework_op, glyphs.is_ascii), width, glyphs)
    for label, text in _of_both(diff, op, _source):
        lines += _entry(f"source{label}", text, width, glyphs)
    for label, text in _of_both(diff, op, OpTable.expression):
        lines += [fit([], width, glyphs), *_entry(f"HLO{label}", text, width, glyphs)]
    return lines


def _source(table: OpTable, row: int) -> str:
    return table.texts("source", np.array([row], np.int64))[0]


def _of_both(diff: Diff, op: OpChange, read: Callable[[OpTable, int], str]) -> list[tuple[str, str]]:
    """A text of both sides with their letters; once, without one, where both say the same."""
    texts: list[tuple[str, str]] = []
    for letter, side, row in zip("AB", (diff.before, diff.after), op.rows, strict=True):
        text = read(side.table, row) if row is not None else ""
        if text:
            texts.append((f" {letter}", text))
    return [("", texts[0][1])] if len(texts) == 2 and texts[0][1] == texts[1][1] else texts


def _entry(label: str, words: str, width: int, glyphs: Glyphs) -> list[Line]:
    return wrap(words, width, "text", glyphs, [(f"{label:<{LABEL}}", "dim")])


def summary(diff: Diff) -> str:
    """A few lines of plain ASCII for a chat: the runs, the verdict, the ops that changed most."""
    lines = [f"A {clean(diff.before.name, True)} -> B {clean(diff.after.name, True)}", verdict(diff, ascii_only=True)]
    changed = shown(diff, entries(diff, "ops"), hides_same=True)[:_SUMMARY_OPS]
    for row in changed:
        words = (
            f"{MARK_WORDS[row.change.mark]:<5} {signed(row.change.delta, 'time', True):>9} {relative(row.change):>7}"
        )
        lines.append(f"{words}  {clean(row.name, True)}")
    lines += [f"! {clean(sentence, True)}" for sentence in diff.warnings]
    return "\n".join(lines)


# --- help

_KEYS = (
    ("1-6, tab", "Ops, categories, time, steps, memory, figures"),
    ("j k, down up", "Next, previous row"),
    ("PgDn PgUp, Home End", "One screen down, up; first, last"),
    ("Enter", "All about the row: sources, HLO of both"),
    ("i", "Show or hide what is the same within the noise"),
    ("s S", "Sort by the next, previous order"),
    ("/", "Only rows with these words"),
    ("y", "Copy a summary"),
    ("T", "Light or dark background"),
    ("Esc", "Back one level"),
)

_MEANING = (
    "Run B is compared with run A: A is before, B is after. All times are of one step on the mean core, so that runs "
    "of other lengths and other numbers of cores compare.",
    "A typical step is one within five deviations (median absolute ones) of the median, or within 3 % of it. Odd steps "
    "are left out and told apart, unless they are more than a quarter of a run. Ops are those of typical steps.",
    f"The noise is half of the interval that {CONFIDENCE:.0%} of the differences of two equal runs lie in, from how "
    f"much the steps (in at most {MOST_BATCHES} batches) of each run differ; of ops, for all of them together. A "
    "change within it is called the same. What differs from run to run but not from step to step, as another machine "
    "does, is not in it.",
    "Ops are matched by name and HLO text, then by HLO text without its numbers (a compiler numbers ops anew whenever "
    "a program changes), then by category, shape and framework op. What is left is new or gone.",
    "The changes of all ops, of idle time and of waiting for the slowest core add up to that of the typical step.",
)


def foot_keys(view: View, is_alone: bool) -> list[tuple[str, str]]:
    """Keys for the footer and what they do, the most useful first; the last one always shows."""
    keys = [("1-6", "view")]
    if view.name != "steps":
        keys.append(("Enter", "details"))
    if view.name in HIDING:
        keys.append(("i", "show same" if view.hides_same else "hide same"))
    keys += [("y", "copy"), ("?", "help")]
    if view.name in HIDING:
        keys += [("/", "filter"), ("s", "sort")]
    return [*keys, ("q", "quit" if is_alone else "back")]


def help_lines(diff: Diff, is_alone: bool, width: int, glyphs: Glyphs) -> list[Line]:
    """The keys, what the figures mean, and what is unknown."""
    lines = [fit([("Keys", "title")], width, glyphs)]
    for keys, words in (*_KEYS, ("q", "Quit" if is_alone else "Back")):
        lines.append(fit([(f"{keys:<21}", "key"), (words, "text")], width, glyphs))
    lines += [fit([], width, glyphs), fit([("What the figures mean", "title")], width, glyphs)]
    for words in _MEANING:
        lines += wrap(words, width, "text", glyphs)
    notes = [(name, note) for name, side in (("A", diff.before), ("B", diff.after)) for note in side.warnings]
    if notes or diff.warnings:
        lines += [fit([], width, glyphs), fit([("Notes", "title")], width, glyphs)]
        for sentence in diff.warnings:
            lines += wrap(sentence, width, "text", glyphs, [("! ", "warn")])
        for name, note in notes:
            lines += wrap(note, width, "text", glyphs, [(f"{name} ", "dim")])
    if diff.unknown:
        lines += [fit([], width, glyphs), fit([("What is not known", "title")], width, glyphs)]
        for key, why in diff.unknown.items():
            lines += wrap(why, width, "text", glyphs, [(f"{key}: ", "dim")])
    return lines
