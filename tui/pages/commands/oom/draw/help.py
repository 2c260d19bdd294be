"""Keys of the screen for memory that is full, and what its numbers mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpuprof.parsers.memory.oom.triage import Triage
from tpuprof.tui.draw.layout import label_span
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.commands.oom.draw.page import View
from tpuprof.tui.pages.commands.oom.fields import CALLED

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


def foot_keys(
    triage: Triage, view: View, total: int, is_alone: bool, with_arrays: bool = False
) -> list[tuple[str, str]]:
    """Keys for the footer and what they do, the most useful first; the last one always shows."""
    leave = ("q", "quit" if is_alone else "back")
    if view.is_trying:
        return [("space", "try"), ("j k", "move"), ("w", "advice"), ("?", "help"), leave]
    count, buffers = len(triage.advice), triage.need.buffers
    keys = {
        f"1-{min(9, count)}" if count > 1 else "1": "advice" if count else "",
        "Enter": "details" if buffers else "",
        "w": "what if" if triage.toggles else "",
        "a": "who holds it" if with_arrays else "",
        "n": "next error" if total > 1 else "",
        "y": "copy",
        "?": "help",
    }
    more = [("b", "by source"), ("s", "sort"), ("/", "filter"), ("e", "edit source")] if buffers else []
    return [*((key, words) for key, words in keys.items() if words), *more, leave]


def help_lines(triage: Triage, total: int, is_alone: bool, pen: Pen, with_arrays: bool = False) -> list[Line]:
    """The keys that do something here, and what the numbers mean."""
    rows = {
        "1-9": "Choose advice: its sums, its buffer; again: all of it",
        "j k, down up": "Next, previous buffer",
        "PgDn PgUp, Home End": "One screen down, up; first, last",
        "Enter": "All about the buffer, and its source lines",
        "e": "Open the source line in $EDITOR",
        "s S": "Sort by the next, previous column",
        "b, g": "Group by source line",
        "/": "Only buffers with these words",
        "w": "What if: try changes (space or digits)",
        "a": "Who holds the memory: the device memory profile" if with_arrays else "",
        "n N, ] [": "Next, previous error of the log" if total > 1 else "",
        "y": "Copy a summary of twelve lines",
        "T": "Light or dark background",
        "Esc": "Back one level",
        "q": "Quit" if is_alone else "Back",
    }
    lines = [pen.fit([("Keys", "title")])]
    lines += [pen.fit([label_span(keys, 21, "key"), (words, "text")]) for keys, words in rows.items() if words]
    lines += [pen.fit([]), pen.fit([("What the numbers mean", "title")])]
    for words in (_NEEDS_OF_MODULE if triage.kind == "module" else _NEEDS, *_MEANING):
        lines += pen.wrap(words, "text")
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
