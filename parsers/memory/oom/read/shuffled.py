"""Copies of one text whose lines got mixed, with nothing in front to show which copy a line is from: which text was it?

Every copy prints the same lines in the same order. So a line is either what one of the copies behind the foremost one
has to print next, or the foremost one's, if such a line can follow there; where both may be, both are tried.
"""

from __future__ import annotations

from dataclasses import replace

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.oom.read.forms import Piece
from tpuprof.parsers.memory.oom.read.partial_report import PartialReport

MOST_COPIES, MOST_PIECES = 64, 1000
_LONGEST_PIECE = 4096
_MOST_DRAFTS, _MOST_CHARACTERS = 256, 1 << 23
_MOST_GUESSES = 32
_FEW_ODD = 4  # pieces of others that may be among those of the text
_ODD_SHARE = 4  # one piece in this many may fit nowhere; with more these are no copies of one text

_BEFORE = {
    "operator": ("size",),
    "shape": ("size", "operator"),
    "unpadded": ("shape",),
    "extra": ("unpadded",),
    "tag": ("size", "operator", "shape", "unpadded", "extra"),
    "label": ("size", "operator", "shape", "unpadded", "extra", "tag"),
    "type": ("size", "operator", "shape", "unpadded", "extra", "tag", "label"),
    "rule": ("label", "type"),
    "size": ("largest", "label", "type", "rule"),
}
"""Part of an entry to what may stand in front of it."""
_IGNORED = ("see", "payload")


@dataclass(slots=True)
class _Guess:
    """One way to assign the lines to copies.

    Attributes:
        text: pieces of the foremost copy so far.
        places: of the copies behind it, how many pieces each has printed.
        odd: how many pieces fitted nowhere.
        said: what the text has before its list: each part comes once.
        table, entry: the latest table, and the number of the latest entry.
    """

    text: list[Piece]
    places: tuple[int, ...]
    odd: int
    said: set[str]
    table: str = ""
    entry: int = 0

    def copy(self) -> _Guess:
        return _Guess(list(self.text), self.places, self.odd, set(self.said), self.table, self.entry)

    def may_append(self, piece: Piece) -> bool:
        """Whether a piece can follow in the foremost copy."""
        form = piece.form
        if form not in _BEFORE:
            return not self.entry and self._name(piece) not in self.said
        return self.text[-1].form in _BEFORE[form] and piece.number in (None, self.entry + 1)

    def append(self, piece: Piece) -> None:
        """Gives a piece to the foremost copy."""
        if piece.form == "size":
            self.entry += 1
        elif piece.form not in _BEFORE:
            self.said.add(self._name(piece))
        if piece.form in ("total", "requirement"):
            self.table = piece.form
        self.text.append(piece)

    def _name(self, piece: Piece) -> str:
        return f"{self.table} {piece.text[: piece.head].strip()}" if piece.form == "row" else piece.form

    def lag(self) -> int:
        """How much the copies behind have still to print."""
        return sum(len(self.text) - place for place in self.places)


class InterleavedCopies:
    """Takes the pieces of several copies as they come.

    Attributes:
        copies: how many there are.
        is_open: how many partial reports are read of them still.
        partials: those that are read, as far as that works without separating the copies.
    """

    def __init__(self, first: PartialReport) -> None:
        self.copies = self.is_open = 1
        self.partials: list[PartialReport] = []
        self._fed = 0
        self._first = first
        guess = _Guess(first.pieces[:1], (), 0, {first.form})
        self._guesses = [guess]
        for piece in first.pieces[1:]:
            if not guess.may_append(piece):
                self._guesses = []
                break
            guess.append(piece)

    def feed(self, piece: Piece) -> None:
        """Takes the next piece of any of them."""
        if piece.form in _IGNORED or not self._guesses:
            return
        if piece.form == self._first.form:
            self.copies += 1
            for guess in self._guesses:
                guess.places = tuple(sorted((*guess.places, 1)))
            return
        self._fed += 1
        piece = replace(piece, text=piece.text[:_LONGEST_PIECE])  # nobody reads more of it
        ways: dict[tuple[object, ...], _Guess] = {}
        for guess in self._guesses:
            for each in _ways(guess, piece):
                key = (each.places, len(each.text), each.text[-1].text)
                if key not in ways or ways[key].odd > each.odd:
                    ways[key] = each
        best = sorted(ways.values(), key=lambda guess: (guess.odd, guess.lag()))[:_MOST_GUESSES]
        self._guesses = best if not best or len(best[0].text) <= MOST_PIECES else []

    def close(self, partial: PartialReport) -> list[PartialReport]:
        """Takes a partial report that is read; gives what is sure then."""
        self.partials.append(partial)
        self.is_open -= 1
        size = sum(each.characters for each in self.partials)
        if len(self.partials) > _MOST_DRAFTS or size > _MOST_CHARACTERS:
            self._guesses = []
        if self.is_open and self._guesses:
            return []
        found, self.partials = self._result(), []
        return found

    def _result(self) -> list[PartialReport]:
        """The text, if the copies could be separated; else what was read without that."""
        if not self._guesses:
            return self.partials
        best = min(self._guesses, key=lambda guess: (guess.odd, guess.lag()))
        is_torn = any(_is_torn(partial) for partial in self.partials)
        if best.odd > (max(_FEW_ODD, self._fed // _ODD_SHARE) if is_torn else 0):
            return self.partials
        first, last_line = self._first, max(partial.last_line for partial in self.partials)
        whole = PartialReport(first.form, first.head, first.at_line, last_line, count=self.copies)
        whole.code, whole.program, whole.loading = first.code, first.program, first.loading
        for piece in best.text:
            whole.take(piece)
            if piece.ends_log:
                whole.cut_here()
        whole.finish()
        if best.odd > _FEW_ODD:  # so some are in the wrong place
            whole.cut_here()
        return [whole]


def _ways(guess: _Guess, piece: Piece) -> list[_Guess]:
    """How a guess may go on."""
    places = [place for place in sorted(set(guess.places)) if _is_next(guess, place, piece)]
    if not places:  # the commonest, without a copy
        if guess.may_append(piece):
            guess.append(piece)
        else:
            guess.odd += 1
        return [guess]
    ways: list[_Guess] = []
    if guess.may_append(piece):
        ways.append(guess.copy())
        ways[0].append(piece)
    for place in places:
        way = guess if place == places[-1] else guess.copy()
        number = way.places.index(place)
        way.places = tuple(sorted((*way.places[:number], place + 1, *way.places[number + 1 :])))
        ways.append(way)
    return ways


def _is_next(guess: _Guess, place: int, piece: Piece) -> bool:
    """Whether a copy that has printed `place` pieces prints this one next."""
    if place >= len(guess.text):
        return False
    expected, text = guess.text[place], piece.text.strip()
    whole = expected.text.strip()
    return expected.form == piece.form and (whole == text or (piece.ends_log and whole.startswith(text)))


def _is_torn(partial: PartialReport) -> bool:
    """Whether lines seem to be in the wrong text, or missing."""
    before_last = partial.entries[:-1]  # which may be cut
    return partial.form != "ran" or any(entry.size is None or entry.label is None for entry in before_last)
