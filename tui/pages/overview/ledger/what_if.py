"""What if: which owners of a step are taken away on the screen, and what the step would be without them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS, Owner
from tpuprof.parsers.steps.what_if import Without
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Glyphs, Span

NAMED_BETWEEN = 0.01
"""Steps follow each other closely: what lies between them is named from this share of the period on."""


@dataclass(frozen=True)
class WhatIf:
    """The step without some owners.

    Attributes:
        owners: who is taken away; none where the step is shown as it is.
        left: what remains of the steps; None where nobody is taken away, or it is still being computed.
    """

    owners: frozenset[Owner] = frozenset()
    left: Without | None = None

    def toggled(self, owners: frozenset[Owner]) -> WhatIf:
        """The same with more owners taken away, or with these put back where all of them are."""
        return replace(self, owners=self.owners - owners if owners <= self.owners else self.owners | owners)

    def takes(self, owners: Collection[Owner]) -> bool:
        return self.owners.issuperset(owners)

    @property
    def is_whole(self) -> bool:
        return self.owners == (frozenset() if self.left is None else frozenset(self.left.owners))


AS_IT_IS = WhatIf()


def taken_words(owners: Collection[Owner]) -> str:
    """Owners in a sentence: ``input, collectives``, or ``collectives (waiting)`` where only that is meant."""
    titles = [OWNER_TITLES[owner].split(", ") for owner in OWNERS if owner in owners]
    parts: dict[str, list[str]] = {}
    for title, *part in titles:
        parts.setdefault(title, []).extend(part)
    return ", ".join(f"{title} ({of[0]})" if len(of) == 1 else title for title, of in parts.items())


def now_and_then(of: Without) -> tuple[str, float, float]:
    """What is compared: a step or, where steps lie apart, the time from one to the next; as it is, and without some."""
    if of.of.steps_lie_apart:
        return "a step every", of.of.mean_whole_ps, of.mean_period_ps
    return "mean step", of.of.mean_step_ps, of.mean_step_ps


def change(of: Without, glyphs: Glyphs) -> str:
    """``mean step 255 ms → 218 ms``."""
    words, before, after = now_and_then(of)
    return f"{words} {duration(before, glyphs.is_ascii)} {glyphs.arrow} {duration(after, glyphs.is_ascii)}"


def sentence(of: Without, glyphs: Glyphs) -> str:
    """``mean step 255 ms → 218 ms without collectives``."""
    return f"{change(of, glyphs)} without {taken_words(of.owners)}"


def what_if_card(of: Without, pen: Pen) -> list[list[Span]]:
    """Three rows in place of the step time's: what is compared, before and after, and what is saved."""
    words, before, after = now_and_then(of)
    ascii_only = pen.glyphs.is_ascii
    share = percent(100 * (before - after) / before) if before else percent(None)
    saved = f" {duration(before - after, ascii_only)} less, {share}"
    times: list[Span] = [(f" {duration(before, ascii_only)} {pen.glyphs.arrow} ", "text")]
    return [
        [(f" {words.upper()} ", "dim"), ("what if", "warn")],
        [*times, (duration(after, ascii_only), "strong")],
        [(saved, "good")],
    ]
