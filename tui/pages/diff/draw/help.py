"""Keys of the comparison, and what its figures mean."""

from __future__ import annotations

from tpuprof.parsers.diff.model import Diff
from tpuprof.parsers.diff.noise import CONFIDENCE, MOST_BATCHES
from tpuprof.tui.draw.layout import fit, wrap
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.diff.draw.page import View
from tpuprof.tui.pages.diff.draw.table import HIDING

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
