"""Keys of the screen for memory that is full, and what its numbers mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpuprof.parsers.memory.oom.triage import Triage
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
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


def meaning_lines(triage: Triage, pen: Pen) -> list[Line]:
    """What the numbers mean, and what is unknown."""
    lines = [pen.fit([("What the numbers mean", "title")])]
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
