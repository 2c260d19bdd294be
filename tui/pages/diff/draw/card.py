"""All about one change, and a summary to paste elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tpuprof.parsers.diff.model import Diff, MatchedBy, OpChange
from tpuprof.parsers.ops.table import OpTable
from tpuprof.tui.draw.bars import CLASS_STYLE
from tpuprof.tui.draw.layout import clean, fit, wrap
from tpuprof.tui.draw.spans import ASCII, CLASS_LETTER, Glyphs, Line
from tpuprof.tui.pages.diff.draw.table import Entry, entries, shown
from tpuprof.tui.pages.diff.draw.verdict import verdict
from tpuprof.tui.pages.diff.draw.words import MARK_WORDS, figure, per_unit, plus_minus, relative, side_figure, signed

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
    ascii_only = glyphs.name == "ascii"
    lines = wrap(clean(row.name, ascii_only), width, "strong", glyphs)
    change = row.change
    lines += _entry("change", f"{MARK_WORDS[change.mark]}  {_sizes(row, ascii_only)}", width, glyphs)
    for name, value in (("A", change.before), ("B", change.after)):
        lines += _entry(name, side_figure(change, value, row.kind, ascii_only, "not there"), width, glyphs)
    if row.kind == "time":
        noise = "unknown" if change.noise is None else plus_minus(glyphs) + figure(change.noise, "time", ascii_only)
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
    ascii_only = glyphs.name == "ascii"
    category = clean(op.category or "category unknown", ascii_only)
    words = f"{category} {glyphs.dot} {op.op_class} {glyphs.dot} {clean(op.program, ascii_only)}"
    lines = [fit([(f"{CLASS_LETTER[op.op_class]} ", CLASS_STYLE[op.op_class]), (words, "dim")], width, glyphs)]
    counts = [None if value is None else f"{value:.6g}" for value in (op.count.before, op.count.after)]
    known = [value for value in counts if value is not None]
    number = known[0] if len(set(known)) == 1 else f" {glyphs.arrow} ".join(known)
    times = "time" if number == "1" else "times"
    lines += _entry("runs", f"{number} {times} {per_unit(diff)}", width, glyphs)
    if op.old_name:
        lines += _entry("in A", clean(op.old_name, ascii_only), width, glyphs)
    if _MATCHED[op.matched_by]:
        lines += _entry("matched", _MATCHED[op.matched_by], width, glyphs)
    elif op.time.mark == "same":
        lines += _entry("note", "it runs outside of the typical steps only", width, glyphs)
    if op.framework_op:
        lines += _entry("op", clean(op.framework_op, ascii_only), width, glyphs)
    for label, found in _of_both(diff, op, _source):
        lines += _entry(f"source{label}", found, width, glyphs)
    for label, found in _of_both(diff, op, _expression):
        lines += [fit([], width, glyphs), *_entry(f"HLO{label}", found, width, glyphs)]
    return lines


def _source(table: OpTable, row: int) -> str:
    return table.texts("source", np.array([row], np.int64))[0]


def _expression(table: OpTable, row: int) -> str:
    return table.expression(row)


_Ask = Callable[[OpTable, int], str]


def _of_both(diff: Diff, op: OpChange, ask: _Ask) -> list[tuple[str, str]]:
    """A text of both sides with their letters; once, without one, where both say the same."""
    found: list[tuple[str, str]] = []
    for letter, side, row in zip("AB", (diff.before, diff.after), op.rows, strict=True):
        text = ask(side.table, row) if row is not None else ""
        if text:
            found.append((f" {letter}", text))
    return [("", found[0][1])] if len(found) == 2 and found[0][1] == found[1][1] else found


def _entry(label: str, words: str, width: int, glyphs: Glyphs) -> list[Line]:
    return wrap(words, width, "text", glyphs, [(f"{label:<{LABEL}}", "dim")])


def summary(diff: Diff) -> str:
    """A few lines of plain ASCII for a chat: the runs, the verdict, the ops that changed most."""
    lines = [f"A {clean(diff.before.name, True)} -> B {clean(diff.after.name, True)}", verdict(diff, ASCII)]
    changed = shown(diff, entries(diff, "ops"), hides_same=True)[:_SUMMARY_OPS]
    for row in changed:
        words = (
            f"{MARK_WORDS[row.change.mark]:<5} {signed(row.change.delta, 'time', True):>9} {relative(row.change):>7}"
        )
        lines.append(f"{words}  {clean(row.name, True)}")
    lines += [f"! {clean(sentence, True)}" for sentence in diff.warnings]
    return "\n".join(lines)
