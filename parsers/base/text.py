"""Makes strings from files and file names safe to print: one line, nothing that a terminal obeys or hides.

Helps with sentences too: lists that end in "and 7 more", counts with a plural, names in natural order; and with
filters by words: what a begun word may become, and what is nearest to words that no row has.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import islice

from tpuprof.parsers.base.regex import pattern

# Everything that moves the cursor, starts an escape sequence, ends a line, reorders the text around it or takes no
# room at all. All of it lies in categories that str.isprintable() refuses (Cc, Cf, Cs, Zl, Zp), so that one call in C
# clears the common string; what is refused but harmless (no-break spaces, private-use glyphs) passes the expression.
_UNSAFE = pattern(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u00ad\u061c\u180e"  # soft hyphen, Arabic letter mark, Mongolian vowel separator
    "\u200b-\u200f"  # zero-width space, joiners, left-to-right and right-to-left marks
    "\u2028-\u202e"  # line and paragraph separators, bidi embeddings and overrides
    "\u2060-\u206f"  # word joiner, invisible operators, bidi isolates, deprecated format controls
    "\ufeff\ufff9-\ufffb"  # byte-order mark, interlinear annotation
    "\ud800-\udfff"  # lone surrogates
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"  # shorthand and music controls, tags
    "]"
)
_DIGITS = pattern(r"([0-9]{1,4000})")  # int() refuses longer ones


def printable(text: str) -> str:
    r"""`text` on one line, every control, direction-changing or invisible character replaced by a visible stand-in.

    C0 characters and DEL become their control pictures (``␛``, ``␊``, ``␡``), C1 ``\x9b``, the bytes of a file name
    that is not UTF-8 (lone surrogates U+DC80-DCFF) their value as ``\xff``, all else ``\u202e`` or ``\U000e0041``.
    It returns a string without such characters unchanged, and so its own results. The original cannot be recovered from
    the stand-ins.
    """
    if text.isprintable():
        return text
    return _UNSAFE.sub(_stand_in, text)


PATHS = "\0"
"""Stands between several paths that are opened together: no path can hold it."""


def examples(names: Sequence[str], limit: int = 3, total: int | None = None) -> str:
    """Returns ``a, b, c and 7 more``, fit to print; `total` counts the names where `names` does not hold all."""
    shown = ", ".join(printable(name) for name in names[:limit])
    rest = (len(names) if total is None else total) - min(len(names), limit)
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def by_reason(unknown: Iterable[tuple[str, str]], between: str = ": ") -> list[str]:
    """Names that share a reason, each once, and that reason behind them: a line for each reason."""
    names: dict[str, dict[str, None]] = {}
    for name, reason in unknown:
        names.setdefault(reason, {})[name] = None
    return [f"{', '.join(named)}{between}{reason}" for reason, named in names.items()]


def counted(number: int, noun: str, many: str = "") -> str:
    """Returns ``1 folder`` or ``2,000 folders``; `many` is the plural of nouns that do not just get an s."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def has_words(words: str) -> Callable[[str], bool]:
    """What says whether a text holds every one of some words; give it the text as `str.casefold` makes it."""
    wanted = words.casefold().split()
    return lambda text: all(word in text for word in wanted)


def natural_key(text: str) -> tuple[list[str | int], str]:
    """A sort key that compares runs of digits by value: host2 comes before host10. Only equal texts have equal keys."""
    return [int(part) if index % 2 else part for index, part in enumerate(_DIGITS.split(text))], text


def _stand_in(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def nearest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names of which one that is not among them may be a slip, and then those that have it in them.

    A slip changes at most a third of the letters: what is less alike means something else. Empty if there is none.
    """
    names = list(known)
    found: list[str] = import_module("difflib").get_close_matches(name, names, len(names) or 1, 0.4)
    near = [each for each in found if 3 * _changes(name, each) <= max(len(name), len(each))]
    return [*near, *(each for each in found if each not in near and len(name) > 2 and name in each)][:most]


def _changes(before: str, after: str) -> int:
    """How many letters one text must lose, get or change, or swap with the next, to become another."""
    above = row = list(range(len(after) + 1))
    last = ""
    for lost, letter in enumerate(before, 1):
        two_above, above, row = above, row, [lost]
        for place, other in enumerate(after):
            row.append(min(above[place] + (letter != other), above[place + 1] + 1, row[place] + 1))
            if place and letter == after[place - 1] and last == other:
                row[-1] = min(row[-1], two_above[place - 1] + 1)
        last = letter
    return row[-1]


def nearest_hint(name: str, known: Sequence[str], otherwise: str) -> str:
    """A hint with the known names that come nearest to one that is not among them; another where none is like it."""
    near = nearest(name, known)
    return f"one of: {examples(near)}" if near else otherwise


# --- the words of a list: what a begun word may become, and what is nearest to words that no row has

NO_ROW = "no row"
_WORD = pattern(r"[A-Za-z_][\w.]{2,}|\d+_[\w.]+")
_MOST_TEXTS, _MOST_OFFERED = 4_000, 12  # texts whose words are looked at, and words that are offered
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


PYTHON_FILE = pattern(r"\S+\.py(:[0-9]*)?")
"""A word that is looked for among source lines too."""

_INSTANT = pattern(r"([0-9]{1,9}|(?=\.[0-9]))(?:\.([0-9]{0,40}))? ?(ms|us|ns|s)?")
_UNIT_DIGITS = {"s": 12, "ms": 9, "us": 6, "ns": 3}  # of a picosecond


def instant_ps(text: str) -> int | None:
    """Picoseconds of ``12.5``, which is milliseconds, or of ``20.3s``; what is finer is cut. None of other texts."""
    if (match := _INSTANT.fullmatch(text)) is None:
        return None
    digits = _UNIT_DIGITS[match[3] or "ms"]
    return int((match[1] or "0") + (match[2] or "")[:digits].ljust(digits, "0"))
