"""All about one change, a summary to paste elsewhere, the keys, and what the figures mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.session.diff.model import Diff, MatchedBy, OpChange, OpGroupChange
from tpuprof.parsers.session.diff.noise import CONFIDENCE, MOST_BATCHES
from tpuprof.parsers.steps.accounts.owners import OWNER_WORDS
from tpuprof.tui.draw.pen import Card, Pen, clean
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.commands.diff.changes import ChangeRow
from tpuprof.tui.pages.commands.diff.drawing import changed
from tpuprof.tui.pages.commands.diff.verdict import verdict
from tpuprof.tui.pages.commands.diff.words import MARKS, noise_time, per_unit, relative, side_figure, signed

LABEL = 9
_SUMMARY_OPS = 8
_MOST_CLONES = 3

_MATCHED: dict[MatchedBy, str] = {
    "name": "by program and name",
    "text": "by its HLO text: the compiler renumbered it",
    "origin": "by category, shape and framework op: its HLO has changed",
    "none": "",
}


def change_card(diff: Diff, row: ChangeRow, pen: Pen) -> list[Line]:
    """Everything about a row."""
    card = Card(pen, LABEL)
    card.head(row.name)
    if row.texts is not None:  # a setting, with its whole values
        card.entry("change", MARKS[row.change.mark].word)
        card.entry("kind", row.note)
        for side, text in zip("AB", row.texts, strict=True):
            card.entry(side, text or "unknown")
        return card.lines
    change, is_ascii, share = row.change, pen.glyphs.is_ascii, relative(row.change)
    size = signed(change.delta, row.kind, is_ascii) + (f" ({share})" if share and row.kind != "percent" else "")
    card.entry("change", f"{MARKS[change.mark].word}  {size}")
    for name, value in (("A", change.before), ("B", change.after)):
        card.entry(name, side_figure(change, value, row.kind, is_ascii, "not there"))
    if row.kind == "time":
        card.entry("noise", "unknown" if change.noise is None else noise_time(change, is_ascii))
        card.entry("per", f"{'a step' if row.owner else per_unit(diff)}, on the mean core")
    if row.owner is not None:
        card.paragraphs(f"{OWNER_WORDS[row.owner]}.")
    card.known("note", row.note if row.op is None else None)
    if row.group is not None:
        _write_clones(card, diff, row.group)
    if row.op is not None:
        _write_op(card, diff, row.op)
    return card.lines


def _write_clones(card: Card, diff: Diff, group: OpGroupChange) -> None:
    """Which ops a group adds up, those with the largest changes, and whose texts are below."""
    changes = [diff.ops[number] for number in group.members]
    counts = Counter(MARKS[op.time.mark].word for op in changes)
    words = ", ".join(f"{number:,} {word}" for word, number in counts.most_common())
    card.entry("clones", f"{len(changes):,}, separately: {words}; texts are those of one of them")
    for number, op in enumerate(changes[:_MOST_CLONES]):
        size = f"{signed(op.time.delta, 'time', card.pen.glyphs.is_ascii)} {relative(op.time)}".rstrip()
        card.entry("" if number else "largest", f"{size}  {op.name}")


def _write_op(card: Card, diff: Diff, op: OpChange) -> None:
    card.kind((op.category or "category unknown", op.op_class, op.program), op.op_class)
    known = [f"{value:.6g}" for value in (op.count.before, op.count.after) if value is not None]
    number = known[0] if len(set(known)) == 1 else f" {card.pen.glyphs.arrow} ".join(known)
    card.entry("runs", f"{number} {'time' if number == '1' else 'times'} {per_unit(diff)}")
    card.known("in A", op.old_name)
    card.known("matched", _MATCHED[op.matched_by])
    if op.time.mark == "same" and not _MATCHED[op.matched_by]:
        card.entry("note", "it runs only outside the typical steps")
    card.known("op", op.framework_op)
    for label, text in _of_both(diff, op, lambda table, row: table.texts("source", np.array([row], np.int64))[0]):
        card.entry(f"source{label}", text)
    for label, text in _of_both(diff, op, OpTable.expression):
        card.lines.append(card.pen.fit([]))
        card.entry(f"HLO{label}", text)


def _of_both(diff: Diff, op: OpChange, read: Callable[[OpTable, int], str]) -> list[tuple[str, str]]:
    """A text of both sides with their letters; once, without one, where both say the same."""
    sides = zip((" A", " B"), (diff.before, diff.after), op.rows, strict=True)
    texts = [(letter, read(side.table, row)) for letter, side, row in sides if row is not None]
    texts = [(letter, text) for letter, text in texts if text]
    return [("", texts[0][1])] if len(texts) == 2 and texts[0][1] == texts[1][1] else texts


def summary(diff: Diff) -> str:
    """A line of plain ASCII for a chat: the runs, the verdict, the ops that changed most."""
    lines = [f"A {diff.before.name} -> B {diff.after.name}", verdict(diff, ascii_only=True)]
    for row in changed(diff, "ops")[:_SUMMARY_OPS]:
        word, size = MARKS[row.change.mark].word, signed(row.change.delta, "time", True)
        lines.append(" ".join(f"{word} {size} {relative(row.change)} {row.name}".split()))
    lines += [f"! {sentence}" for sentence in diff.warnings]
    return clean(" | ".join(lines), ascii_only=True)


# --- help

_MEANING = (
    "Run B is compared with run A: A is before, B is after. All times are of one step on the mean core, so that runs "
    "of other lengths and other numbers of cores compare.",
    "A typical step is one within five deviations (median absolute ones) of the median, or within 3% of it. Odd "
    "steps are left out and listed separately, unless they are more than a quarter of a run. Ops are those of "
    "typical steps.",
    f"The noise is half of the interval that {CONFIDENCE:.0%} of the differences of two equal runs lie in, from how "
    f"much the steps (in at most {MOST_BATCHES} batches) of each run differ; of ops, for all of them together. A "
    "change within the noise is called the same. The noise of two runs does not include what differs from run to run "
    "but not from step to step, such as another machine; that of several launches is what differs between them.",
    "Ops are matched by name and HLO text, then by HLO text without its numbers (a compiler renumbers ops whenever "
    "a program changes), then by category, shape and framework op. All other ops are new or gone.",
    "Clones, which are copies of an op and the same op of other layers, are one row: their changes add up, and "
    "their noise is that of the sum, so a change that is lost in the noise of each may show.",
    "Where time goes is the account of the mean step: its owners' changes add up to that of the mean step, odd steps "
    "included. The changes of all ops and of the owners of moments without an op add up to that of the typical step.",
    "Phases are the programs of a run, such as prefill and decode. Each is compared with its counterpart, the program "
    "of the same name or the program that contains most of its ops: the time of a typical run on its slowest core, "
    "and its ops divided by its runs instead of steps. The noise is that of the runs.",
    "Setup shows versions, flags and the profiler's options that the profiles contain: the stats of the Task "
    "Environment plane and of planes with such names, and what JAX attached to the main programs. Most profiles "
    "contain little. Values of settings that are named like secrets are left out.",
)

OF_CARDS = (
    ("", "One row of the comparison: what it is in A (before) and in B (after)."),
    ("change", "B minus A; more, less, new or gone only if it is beyond the noise."),
    ("noise", "half of the interval that contains 95% of the differences of two equal runs; unknown with one step."),
    ("per", "the divisor of times, besides cores."),
    ("runs", "how often the op runs per that unit."),
    ("clones", "copies of the op, and the same op of other layers: their changes added up."),
    ("matched", "how the op was found in the other run, if its name or HLO differs."),
    ("HLO", "its text; of A and of B where they differ."),
)


def meaning_lines(diff: Diff, pen: Pen) -> list[Line]:
    """What the figures mean, and what is unknown."""
    card = Card(pen)
    card.title("What the figures mean")
    card.paragraphs(*_MEANING)
    notes = [(name, note) for name, side in (("A", diff.before), ("B", diff.after)) for note in side.warnings]
    if notes or diff.warnings:
        card.title("Notes")
        card.lines += pen.wrap_all(diff.warnings, "text", [("! ", "warn")])
        for name, note in notes:
            card.lines += pen.wrap(note, "text", [(f"{name} ", "dim")])
    if diff.unknown:
        card.title("What is unknown")
        for key, why in diff.unknown.items():
            card.lines += pen.wrap(why, "text", [(f"{key}: ", "dim")])
    return card.lines
