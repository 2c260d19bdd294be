"""Figures of a finding's sentences as data, so that none is in words alone.

Amounts carry their exact figures while a finding is made. Other numbers of its title and evidence are read out of the
words, as exact as these have them, and named by the words around.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from math import isclose

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.words import time

MS, FRACTION, COUNT, BYTES, STEP = "ms", "fraction", "count", "bytes", "step"
UNITS = (MS, FRACTION, COUNT, BYTES, STEP)
"""Units of figures; `step` is the name of a step."""

_NAME_SEEN = 60
"""Characters of a name, those next to the number."""

_LEAST_WORDS = 4

_BEGIN, _END = f"\x02{os.urandom(6).hex()}:", "\x03"
_FIGURES = pattern(rf"{_BEGIN}([^{_END}]*){_END}")
"""What stands behind an amount in a sentence while a finding is made: nothing of a profile can write it."""

_AMOUNT = pattern(r"~?[0-9.,<]+ ?[a-zµ]+( a step)? \([^()]*\)\Z")

_OF_A_STEP = pattern(
    rf"[0-9.,]+ ?[a-zµ]* a step \((?P<share>[^()]*)\){_BEGIN}(?P<ms>[^ ;]+) {MS};(?P<part>[^ ;]+) {FRACTION}{_END}"
)
_PS_PER_MS = 1e9

_SCALES = {
    **{"s": (1e3, MS), "ms": (1.0, MS), "µs": (1e-3, MS), "ns": (1e-6, MS), "ps": (1e-9, MS), "%": (0.01, FRACTION)},
    **{"TB": (1e12, BYTES), "GB": (1e9, BYTES), "MB": (1e6, BYTES), "KB": (1e3, BYTES), "B": (1.0, BYTES)},
    "": (1.0, COUNT),
}
_NUMBER = pattern(
    r"(?<![^\s(~])(?P<number>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?:(?P<percent>%)| (?P<unit>s|ms|µs|ns|ps|[KMGT]?B)\b)?"
    r"(?=(?:x|st|nd|rd|th)?[\s,;:)]|(?:x|st|nd|rd|th)?[.?]?(?:\s|\Z))"
)
"""A number that stands by itself, with its unit: no part of a name, and none behind `<`, which only bounds one."""

_CLAUSE = pattern(r"[.;:](?=\s|\Z)|, ")
_OF_STEP = pattern(r"\b[Ss]tep\Z")
_CLOSE = 0.006
"""How far a number in words, of three digits, may be off its exact figure, as a share."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the evidence, in the unit that is named."""

    name: str
    value: float
    unit: str


def with_figures(text: str, *figures: tuple[float, str]) -> str:
    """An amount for a sentence with its exact figures and their units, which `without_figures` takes out again."""
    return f"{text}{_BEGIN}{';'.join(f'{value!r} {unit}' for value, unit in figures)}{_END}"


def of_unit(sentence: str, name: str, per_step: float) -> str:
    """A sentence whose amounts of a step are told of something of which a step has so many."""

    def told(match: re.Match[str]) -> str:
        ms = float(match["ms"]) / per_step
        words = f"{time(ms * _PS_PER_MS)} a {name} ({match['share']})"
        return with_figures(words, (ms, MS), (float(match["part"]), FRACTION))

    return _OF_A_STEP.sub(told, sentence)


def without_figures(sentence: str) -> tuple[str, tuple[Figure, ...]]:
    """A sentence as people read it, and its figures, each named by the words before it."""
    found: list[Figure] = []
    begin = 0
    for match in _FIGURES.finditer(sentence):
        words = _AMOUNT.sub("", sentence[begin : match.start()]).strip(" ,;:.")
        name = _whole_words(words, len(words) - 2 * _NAME_SEEN, len(words))
        begin = match.end()
        for part in match[1].split(";"):
            value, _, unit = part.partition(" ")
            found.append(Figure(name, float(value), unit))
    return _FIGURES.sub("", sentence), tuple(found)


def other_figures(evidence: Iterable[str], others: Iterable[str], known: Iterable[Figure]) -> tuple[Figure, ...]:
    """The numbers of sentences that no known figure is, as exact as the words have them.

    Args:
        evidence: sentences whose counts are all figures: two that are the same number seldom count the same thing.
        others: sentences that may repeat the evidence, such as a title.
        known: the exact figures.
    """
    found = list(known)
    count = len(found)
    numbers = [(figure, figure.unit == COUNT) for sentence in evidence for figure in figures_of_words(sentence)]
    numbers += [(figure, False) for sentence in others for figure in figures_of_words(sentence)]
    for figure, is_count in numbers:
        alike = (each for each in found if is_same(figure, each))
        if not any(each.name == figure.name or not is_count for each in alike):
            found.append(figure)
    return tuple(found[count:])


def is_same(figure: Figure, exact: Figure) -> bool:
    """Whether a number in words says what an exact figure is."""
    is_close = isclose(figure.value, exact.value, rel_tol=_CLOSE, abs_tol=0.0006 if figure.unit == FRACTION else 0.0)
    return figure.unit == exact.unit and is_close


def figures_of_words(sentence: str) -> Iterator[Figure]:
    """The numbers that stand by themselves in a sentence, each named by the words around it."""
    begin, whole = 0, ""
    for end in [*(match.start() for match in _CLAUSE.finditer(sentence)), len(sentence)]:
        clause = sentence[begin:end].strip(" ,;:.")
        for match in _NUMBER.finditer(clause):
            factor, unit = _SCALES[match["percent"] or match["unit"] or ""]
            is_step = unit == COUNT and bool(_OF_STEP.search(clause[: match.start()].rstrip()))
            value = float(f"{float(match['number'].replace(',', '')) * factor:.9g}")
            yield Figure(_name(clause, match, whole), value, STEP if is_step else unit)
        begin, whole = end, clause if _is_whole(clause) else whole


def _name(clause: str, match: re.Match[str], before: str) -> str:
    """``# compilations took 114 ms`` of ``3 compilations took 114 ms``: the clause, `#` in place of the number; behind
    the last one that stands by itself where it does not.
    """
    marked = f"{clause[: match.start('number')]}#{clause[match.end() :]}"
    words = f"{before}, {marked}" if before and not _is_whole(clause) else marked
    at = words.index("#", len(words) - len(marked))
    begin = max(min(at - _NAME_SEEN // 2, len(words) - _NAME_SEEN), 0)
    return _whole_words(words, begin, begin + _NAME_SEEN)


def _whole_words(text: str, begin: int, end: int) -> str:
    """The words of a text between two places, without those that a place falls into; one longer than that is cut."""
    inside = text[max(begin, 0) : end].strip()
    if begin > 0 and not text[begin - 1].isspace() and not text[begin].isspace():
        inside = inside.partition(" ")[2] or inside
    if end < len(text) and not text[end - 1].isspace() and not text[end].isspace():
        inside = inside.rpartition(" ")[0] or inside
    return inside


def _is_whole(clause: str) -> bool:
    """Whether a clause says something without the one before it."""
    return clause.count(" ") >= _LEAST_WORDS - 1
