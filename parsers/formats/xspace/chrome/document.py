"""The events of a Chrome trace, one after the other, from its text piece by piece.

The trace is an object with `traceEvents` among its values, or a list of events alone, which need not be closed. One
value is held at a time, and none may be larger than `MOST_VALUE` characters.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tpuprof.parsers.base.text import counted

MOST_VALUE = 2 << 20
"""Characters of one event, or of what stands beside them; XProf's have some thousand."""

_MOST_SKIPPED = 100
"""Values that are passed over: looking for the end of each may take `MOST_VALUE` characters."""

_EVENTS = "traceEvents"
_BEGINS = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*(?:\{[ \t\r\n]*(?:\"|\})|\[[ \t\r\n]*(?:\{|\]))")
_NEXT_EVENT = re.compile(r"\}[ \t\r\n]{0,9},[ \t\r\n]{0,9}(?=\{)")
_ONE_SPACE = frozenset(" \n")
_SPACE = re.compile(r"[ \t\r\n]*")
_NEXT = re.compile(r"[ \t\r\n]*(?:,[ \t\r\n]*)?")


def begins_like_trace(data: bytes) -> bool:
    """Whether a file's first bytes are those of a JSON object, or of a list of objects; no XSpace begins so."""
    return _BEGINS.match(data[:256]) is not None


class Broken(ValueError):
    """The text is no JSON from here on, or ends."""


class Document:
    """A Chrome trace that is being read.

    Args:
        pieces: its bytes; those that are not UTF-8 are replaced.

    Attributes:
        note: after `events`: what of the text could not be read; empty where it was whole.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.note = ""
        self._pieces = iter(pieces)
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        decoder: Any = json.JSONDecoder(strict=False, parse_float=str)
        self._scan: Callable[[str, int], tuple[object, int]] = decoder.scan_once
        self._text, self._at, self._ended = "", 0, False

    def events(self) -> Iterator[object]:
        """Every event, as far as the text can be read; numbers with a point are text, to the last digit.

        Raises:
            Broken: there is no list of events.
        """
        if self._past(_SPACE) == "[":
            self._at += 1
            yield from self._list()
            return
        if self._past(_SPACE) != "{":
            raise Broken
        self._at += 1
        found = False
        while self._past(_NEXT) not in ("}", ""):
            try:
                key = self._value()
                if self._past(_SPACE) != ":":
                    raise Broken
                self._at += 1
                if key == _EVENTS and not found and self._past(_SPACE) == "[":
                    found = True
                    self._at += 1
                    yield from self._list()
                    if self.note:
                        return
                else:
                    self._past(_SPACE)
                    self._value()
            except Broken:
                if not found:
                    raise
                break  # what stands behind the events is not needed
        if not found:
            raise Broken

    def _list(self) -> Iterator[object]:
        """The values of a list, behind its bracket, but those that are no JSON; reads as far as it can."""
        scan, count, self._skipped = self._scan, 0, 0
        while (following := self._past(_NEXT)) and following != "]":
            text, at, before = self._text, self._at, count
            try:
                while True:  # nearly all values: one follows the other within the text at hand
                    value, end = scan(text, at)
                    count += 1
                    self._at = end
                    yield value
                    if text[end : end + 1] != ",":
                        break
                    at = end + 1 + (text[end + 1 : end + 2] in _ONE_SPACE)
            except RecursionError:
                if not self._skip():
                    break
            except (StopIteration, ValueError):
                if (count == before or text[at : at + 1] == "{") and not self._may_grow() and not self._skip():
                    break
        if following == "]":
            self._at += 1
            self.note = f"{counted(self._skipped, 'event')} of its list can't be read" if self._skipped else ""
        else:
            is_end = self._ended and len(self._text) - self._at <= MOST_VALUE
            self.note = f"its list of events {'ends early, ' if is_end else 'is damaged '}after {count:,} events"

    def _skip(self) -> bool:
        """Goes past a value that can't be read, to the next that begins as an event; whether there is one."""
        self._skipped += 1
        passed = 0
        while self._skipped <= _MOST_SKIPPED and passed < MOST_VALUE:
            if (match := _NEXT_EVENT.search(self._text, self._at + 1)) is not None:
                self._at = match.end()
                return True
            before, self._at = self._at, max(self._at, len(self._text) - 20)  # the end of one may be there
            passed += self._at - before
            if not self._may_grow():
                return False
        return False

    def _value(self) -> object:
        """The value that begins here.

        Raises:
            Broken: it is none, it ends early, or it is too large.
        """
        while True:
            try:
                value, self._at = self._scan(self._text, self._at)
            except RecursionError as error:
                raise Broken from error
            except (StopIteration, ValueError) as error:
                if not self._may_grow():
                    raise Broken from error
                continue
            return value

    def _past(self, pattern: re.Pattern[str]) -> str:
        """Goes past what a pattern matches, which may be nothing; the character there, empty at the end."""
        while True:
            match = pattern.match(self._text, self._at)
            end = self._at if match is None else match.end()
            if end < len(self._text):
                self._at = end
                return self._text[end]
            if pattern is _SPACE:
                self._at = end
            if not self._may_grow():
                return ""

    def _may_grow(self) -> bool:
        """Adds text, at least as much as is left; False at the end, or where so much is left that no value has it."""
        if len(self._text) - self._at > MOST_VALUE:
            return False
        left = len(self._text) - self._at
        parts, size = [self._text[self._at :]], 0
        while size <= left and not self._ended:
            piece = next(self._pieces, None)
            self._ended = piece is None
            part = self._decode(piece or b"", self._ended)
            parts.append(part)
            size += len(part)
        self._text, self._at = "".join(parts), 0
        return size > 0
