"""The words of a list: what a begun word may become, and what is nearest to words that no row has.

Lists that are filtered by words ask here with their texts; what tables with a filter by columns add is in `nearest`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import islice

from tpuprof.parsers.base.text import has_words, printable

NO_ROW = "no row"
_WORD = re.compile(r"[A-Za-z_][\w.]{2,}|\d+_[\w.]+")
_MOST_TEXTS = 4_000
_MOST_OFFERED = 12
_LEAST_ALIKE = 0.6


def words_of(texts: Iterable[str]) -> list[str]:
    """The words of some texts, those of most texts first; each text counts once, however many rows have it."""
    counts = Counter(word for text in dict.fromkeys(texts) for word in {*_WORD.findall(text)})
    return [word for word, _ in counts.most_common()]


def beginning(begun: str, words: Iterable[str], before: str = "") -> list[str]:
    """The words that begin with some letters, whatever their case, a dozen at most; `before` is put before each."""
    wanted = begun.casefold()
    found = (word for word in dict.fromkeys(words) if word.casefold().startswith(wanted))
    return [f"{before}{word}" for word in islice(found, _MOST_OFFERED)]


def completions_of(begun: str, texts: Iterable[str]) -> Sequence[str]:
    """What a begun word may become in a filter by words; nothing for no letters."""
    return beginning(begun, words_of(islice(texts, _MOST_TEXTS))) if begun else ()


def alike(word: str, words: Iterable[str]) -> str:
    """The word that is most like another one; empty where none is."""
    by_fold = {each.casefold(): each for each in words}
    found = import_module("difflib").get_close_matches(word.casefold(), list(by_fold), 1, _LEAST_ALIKE)
    return printable(by_fold[found[0]]) if found else ""


def nearest_words(text: str, texts: Iterable[str]) -> str:
    """The words nearest to some that no text has: like the first that none has, else without the last of them.

    Empty where nothing is near.
    """
    known, words = list(texts), text.split()
    folded = [each.casefold() for each in known]

    def has_row(wanted: Sequence[str]) -> bool:
        return any(map(has_words(" ".join(wanted)), folded))

    for word in words:
        if not has_row([word]):
            return alike(word, words_of(known[:_MOST_TEXTS]))
    kept = next((words[:end] for end in range(len(words) - 1, 0, -1) if has_row(words[:end])), [])
    return printable(" ".join(kept))


def nothing_found(near: str) -> str:
    """What is said of a filter that keeps no row; `near` is the nearest that keeps some, or empty."""
    return f"{NO_ROW}; {near} has some" if near else NO_ROW


def said_of(text: str, found: str, count: int, texts: Callable[[], Iterable[str]]) -> str:
    """What is said of a filter by words: what it finds, or the nearest that finds something.

    Args:
        found: says how many there are.
        count: how many these are.
        texts: makes the texts that were looked at, where none has the words.
    """
    return found if count or not text.strip() else nothing_found(nearest_words(text, texts()))
