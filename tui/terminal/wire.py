"""What goes over the wire: of each frame that is written, only the cells that differ from those on the screen.

Textual writes whole regions, with all colours of each piece of text. `Wire` keeps the cells that the terminal shows,
reads what is written, and gives the shortest text it finds that turns the one into the other: moves of the cursor,
changes of colour, characters. What draws nothing passes as it is, in its order. So does what it can't read; after that
no cell counts as known until it is written again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from operator import ne
from typing import NamedTuple

SYNC_START, SYNC_END = "\x1b[?2026h", "\x1b[?2026l"

# A place; a look; text; a line feed; what draws nothing: modes, requests, titles, the clipboard, a bell.
_TOKEN = re.compile(
    r"\x1b\[(?P<place>[0-9]+;[0-9]+|)H|\x1b\[(?P<look>[0-9;]*)m|(?P<text>[^\x00-\x1f\x7f-\x9f]+)|(?P<feed>\n)"
    r"|(?P<silent>\x1b\[\?(?:7|12|25|100[0-7]|101[56]|2004|2026|2027|2031|2048)[hl]|\x1b\[\?[0-9]+\$p"
    r"|\x1b\[[<>=][0-9;]*u|\x1b\[[0-9]*[nc]|\x1b\[[0-9]* q|\x1b\][^\x00-\x1f]*(?:\x07|\x1b\\)|\x07)"
)
_ATTRIBUTES = (1, 2, 3, 4, 5, 7, 8, 9)  # bold, dim, italic, underline, blink, reverse, hidden, struck
_BITS = {str(code): 1 << place for place, code in enumerate(_ATTRIBUTES)}
_ENDS = {"22": 0b11, **{str(20 + code): 1 << place for place, code in enumerate(_ATTRIBUTES) if code > 2}}
_SEEN_ON_BLANKS = _BITS["4"] | _BITS["5"] | _BITS["7"] | _BITS["9"]
_GAP = 4  # cells that did not change and are written again in place of a move
_FEW = 60  # pieces of which the next one is looked for among all that are left
_NEAR = 3  # rows down, or cells to the left, that cost no more as a character each than as one sequence
_LONG = 10  # blanks within a text that cost more than to erase them and to move behind them
_SHORT = 4  # blanks at its end that cost no more than to erase them
_BLANKS = " " * (_SHORT + 1)
_LONG_BLANKS = re.compile(rf"( {{{_LONG + 1},}}| {{{_SHORT + 1},}}$)")
_UNKNOWN = ""  # the character of a cell that may show anything


class _Look(NamedTuple):
    """Parameters of the ink and of the ground, empty for the terminal's own, and a bit an attribute."""

    ink: str = ""
    ground: str = ""
    attributes: int = 0

    @property
    def on_blank(self) -> _Look:
        """The plainest look in which a blank looks the same."""
        if self.attributes & _SEEN_ON_BLANKS:
            return self
        return _Look("", self.ground, 0)

    @property
    def parameters(self) -> list[str]:
        """What sets it, after a reset."""
        on = [code for code, bit in _BITS.items() if self.attributes & bit]
        return on + [part for part in (self.ink, self.ground) if part]

    def after(self, parameters: str) -> _Look | None:
        """The look after a sequence; None where it has a parameter that isn't known."""
        ink, ground, attributes = self
        codes = iter((parameters or "0").split(";"))
        for code in codes:
            if code in ("", "0"):
                ink, ground, attributes = "", "", 0
            elif code in _BITS:
                attributes |= _BITS[code]
            elif code in _ENDS:
                attributes &= ~_ENDS[code]
            elif code in ("39", "49"):
                ink, ground = ("", ground) if code == "39" else (ink, "")
            elif code in ("38", "48"):
                kind = next(codes, "")
                numbers = [next(codes, "") for _ in range({"5": 1, "2": 3}.get(kind, 0))]
                if not numbers or not all(numbers):
                    return None
                whole = ";".join((code, kind, *numbers))
                ink, ground = (whole, ground) if code == "38" else (ink, whole)
            elif code.isdigit() and (30 <= int(code) <= 37 or 90 <= int(code) <= 97):
                ink = code
            elif code.isdigit() and (40 <= int(code) <= 47 or 100 <= int(code) <= 107):
                ground = code
            else:
                return None
        return _Look(ink, ground, attributes)

    def turned_into(self, new: _Look) -> str:
        """The shorter of the sequences that make this look into another."""
        off = self.attributes & ~new.attributes
        parts: list[str] = []
        for code, bits in _ENDS.items():
            if off & bits:
                parts.append(code)
                off |= bits & new.attributes  # what ends with it begins again
        begin = new.attributes & (~self.attributes | off)
        parts += [code for code, bit in _BITS.items() if begin & bit]
        parts += [] if self.ink == new.ink else [new.ink or "39"]
        parts += [] if self.ground == new.ground else [new.ground or "49"]
        return min(_sequence(parts), new.from_reset, key=len) if parts else ""

    @property
    def from_reset(self) -> str:
        """The sequence that makes any look into this one."""
        return _sequence(["0", *self.parameters] if self.parameters else [""])


def _sequence(parameters: Sequence[str]) -> str:
    return f"\x1b[{';'.join(parameters)}m"


class _Piece(NamedTuple):
    """Neighbouring cells to write in one look; any look with that ground will do where they are blank."""

    x: int
    y: int
    text: str
    look: int
    is_blank: bool


class Wire:
    """The cells that a terminal shows.

    Args:
        width, height: its size in cells.
        cells_of: how many cells a character takes. Text with one that does not take one goes as it is.
        erases: it gives cells that it erases the ground that it writes with (terminfo's ``bce``).
    """

    def __init__(self, width: int, height: int, cells_of: Callable[[str], int], erases: bool = False) -> None:
        self._cells_of, self._erases = cells_of, erases
        self._single: set[str] = set()  # characters that are known to take one cell
        self._looks: list[_Look] = [_Look()]
        self._numbers = {_Look(): 0}
        self._blanks = [0]  # of each look, the one of its blanks
        self._after: dict[tuple[int, str], int | None] = {}
        self._turns: dict[tuple[int | None, int], str] = {}
        self._sync = ""  # the begin of an update of which nothing is sent yet
        self.resize(width, height)

    def resize(self, width: int, height: int) -> None:
        """The terminal has this size, and may show anything: what is written from now on is sent whole."""
        self._width, self._height = width, height
        self._characters = [[_UNKNOWN] * width for _ in range(height)]
        self._styles = [[0] * width for _ in range(height)]
        self._before: dict[int, tuple[list[str], list[int]]] = {}  # rows that are written to, as the terminal has them
        self._at: tuple[int, int] | None = None  # column and row where the writer has the cursor
        self._look = 0  # in which look it writes
        self._cursor: tuple[int | None, int] | None = None  # where the terminal has it; past the end in no column
        self._pen: int | None = None  # its look

    def sent(self, data: str) -> str:
        """What to send in place of what is written."""
        if data == SYNC_START:
            self._sync = data
            return ""
        if data == SYNC_END:
            unsent, self._sync = self._sync, ""
            return "" if unsent else data
        out = "".join(self._read(data))
        if out and self._sync:
            out, self._sync = self._sync + out, ""
        return out

    # --- what is written

    def _read(self, data: str) -> Iterator[str]:
        """Takes what is written into the cells; gives what is to be sent for it."""
        position, match_at = 0, _TOKEN.match
        while (found := match_at(data, position)) is not None:
            if (out := self._take(found)) is None:
                break
            yield out
            position = found.end()
        yield self._changes()
        if position < len(data):
            yield from self._pass_all(data[position:])
        elif self._at is not None and self._at != (0, 0) and self._at[0] < self._width:  # at (0, 0) it rests
            yield self._move(*self._at)

    def _take(self, found: re.Match[str]) -> str | None:
        """What is to be sent at once for a part of what is written; None where the screen can't be known after it."""
        kind, data = found.lastgroup, found[0]
        if kind == "place":
            row, _, column = (found["place"] or "1;1").partition(";")
            return self._go_to(int(column) - 1, int(row) - 1)
        if kind == "look":
            look = self._look_after(found["look"])
            self._look = self._look if look is None else look
            return None if look is None else ""
        if kind == "text":
            return self._put(data) if self._is_single(data) else self._put_wide(data)
        if kind == "feed":
            return None if self._at is None else self._go_to(0, self._at[1] + 1)
        return self._changes() + data

    def _go_to(self, x: int, y: int) -> str | None:
        if not (0 <= x < self._width and 0 <= y < self._height):
            return None
        self._at = (x, y)
        return ""

    def _pass_all(self, rest: str) -> Iterator[str]:
        """Sends a text as it is, from where the writer takes the cursor to be."""
        if self._at is not None and self._at[0] < self._width:
            yield self._move(*self._at)
        elif self._at is not None:  # past the end of a row, where only a character takes it
            x, y = self._width - 1, self._at[1]
            if (last := self._characters[y][x]) != _UNKNOWN:
                yield self._write(_Piece(x, y, last, self._styles[y][x], False))
        yield self._turned(self._pen, self._look) + rest
        self.resize(self._width, self._height)

    def _look_after(self, parameters: str) -> int | None:
        key = (self._look, parameters)
        if key not in self._after:
            look = self._looks[self._look].after(parameters)
            self._after[key] = None if look is None else self._number(look)
        return self._after[key]

    def _number(self, look: _Look) -> int:
        number = self._numbers.get(look)
        if number is None:
            number = self._numbers[look] = len(self._looks)
            self._looks.append(look)
            self._blanks.append(number)
            self._blanks[number] = self._number(look.on_blank)
        return number

    def _is_single(self, text: str) -> bool:
        """Whether each character takes one cell."""
        if text.isascii():
            return True
        new = set(text) - self._single
        self._single.update(each for each in new if self._cells_of(each) == 1)
        return new <= self._single

    def _put(self, text: str) -> str | None:
        if self._at is None or self._at[0] + len(text) > self._width:
            return None
        x, y = self._at
        self._open(y)
        end, look, blank = x + len(text), self._look, self._blanks[self._look]
        self._characters[y][x:end] = text
        if blank == look:
            self._styles[y][x:end] = [look] * len(text)
        else:
            self._styles[y][x:end] = [blank if character == " " else look for character in text]
        self._at = (end, y)
        return ""

    def _put_wide(self, text: str) -> str | None:
        """Sends text of which the terminal may think otherwise how wide it is; the rest of its row is unknown then."""
        if self._at is None:
            return None
        (x, y), out = self._at, self._changes()
        end = x + sum(map(self._cells_of, text))
        if end > self._width:
            return None
        out += self._move(x, y) + self._turned(self._pen, self._look) + text
        first = max(0, x - 1)  # it may have covered half of another
        self._characters[y][first:] = [_UNKNOWN] * (self._width - first)
        self._at, self._cursor, self._pen = (end, y), None, self._look
        return out

    def _open(self, y: int) -> None:
        if y not in self._before:
            self._before[y] = (self._characters[y].copy(), self._styles[y].copy())

    # --- what is sent

    def _changes(self) -> str:
        """What turns the rows that the terminal has into those that were written since."""
        pieces = [piece for y in sorted(self._before) for piece in self._pieces(y)]
        self._before.clear()
        if not pieces:
            return ""
        ways = [pieces]
        order: dict[int, int] = {}
        for piece in pieces:
            order.setdefault(piece.look, len(order))
        if len(order) < len(pieces):  # each look once costs less, where moves are shorter than turns
            ways.append(sorted(pieces, key=lambda piece: order[piece.look]))
        start, written = (self._cursor, self._pen), []
        for way in (*ways, *([self._nearest(pieces)] if len(pieces) <= _FEW else [])):
            self._cursor, self._pen = start
            written.append(("".join(map(self._write, way)), self._cursor, self._pen))
        text, self._cursor, self._pen = min(written, key=lambda each: len(each[0].encode()))
        return text

    def _nearest(self, pieces: Sequence[_Piece]) -> Iterator[_Piece]:
        """The same, each time the one that costs least to go on with."""
        left = list(pieces)
        while left:
            yield left.pop(min(range(len(left)), key=lambda place: self._cost(left[place])))

    def _cost(self, piece: _Piece) -> int:
        """Characters of the way to a piece."""
        turn = "" if self._suits(piece) else self._turned(self._pen, piece.look)
        return len(self._way(piece.x, piece.y)) + len(turn)

    def _suits(self, piece: _Piece) -> bool:
        """Whether it can be written in the look that is set."""
        if piece.is_blank and self._pen is not None:
            return self._blanks[self._pen] == piece.look
        return self._pen == piece.look

    def _pieces(self, y: int) -> Iterator[_Piece]:
        """The cells of a row that changed, as far as neighbours can be written in one look."""
        before, old_looks = self._before[y]
        characters, looks = self._characters[y], self._styles[y]
        if before == characters and old_looks == looks:
            return
        differ = map(ne, zip(characters, looks, strict=True), zip(before, old_looks, strict=True))
        changed = list(compress(range(self._width), differ))
        end, are_changed = 0, set(changed)
        for start in changed:
            if start < end:
                continue
            end, ink = start + 1, (looks[start], characters[start] == " ")
            now = ink
            for x in range(start + 1, self._width):
                joined = self._joined(*now, characters[x], looks[x])
                if joined is None:
                    break
                now = joined
                if x in are_changed:
                    end, ink = x + 1, now
                elif x - end >= _GAP:
                    break
            yield _Piece(start, y, "".join(characters[start:end]), *ink)

    def _joined(self, look: int, is_blank: bool, character: str, own: int) -> tuple[int, bool] | None:
        """How a piece is written that the next cell joins; None where that can't be in one look."""
        if character == " ":
            return (look, is_blank) if self._blanks[look] == own else None
        if character == _UNKNOWN or (look != own and not (is_blank and self._blanks[own] == look)):
            return None
        return own, False

    def _write(self, piece: _Piece) -> str:
        """Writes a piece, from where the cursor is."""
        out = self._move(piece.x, piece.y)
        if not self._suits(piece):
            out += self._turned(self._pen, piece.look)
            self._pen = piece.look
        look = self._looks[piece.look]
        can_erase = _BLANKS in piece.text and not look.attributes & _SEEN_ON_BLANKS
        if not can_erase or (look.ground and not self._erases):
            return out + self._write_text(piece.x, piece.y, piece.text)
        x = piece.x
        for part in _LONG_BLANKS.split(piece.text):
            end = x + len(part)
            is_last = end == piece.x + len(piece.text)
            if part.isspace() and len(part) > _SHORT and (is_last or len(part) > _LONG):
                out += self._move(x, piece.y) + ("\x1b[K" if end == self._width else f"\x1b[{len(part)}X")
            elif part:
                out += self._move(x, piece.y) + self._write_text(x, piece.y, part)
            x = end
        return out

    def _write_text(self, x: int, y: int, text: str) -> str:
        end = x + len(text)
        self._cursor = (end if end < self._width else None, y)
        return text

    def _turned(self, old: int | None, new: int) -> str:
        """The sequence from one look to another; from none that is known, a reset first."""
        if (old, new) not in self._turns:
            look = self._looks[new]
            self._turns[old, new] = look.from_reset if old is None else self._looks[old].turned_into(look)
        return self._turns[old, new]

    def _move(self, x: int, y: int) -> str:
        """Moves the cursor to a cell."""
        out = self._way(x, y)
        self._cursor = (x, y)
        return out

    def _way(self, x: int, y: int) -> str:
        """The shortest move of the cursor to a cell."""
        if self._cursor == (x, y):
            return ""
        if self._cursor is None:
            return _place(x, y)
        column, row = self._cursor
        if row == y and column is not None and column < x:
            return _steps(x - column, "C", "D")
        by = y - row
        steps = "\v" * by if 0 < by <= _NEAR else _steps(by, "B", "A")
        ways = [_place(x, y), f"\r{steps}{_steps(x, 'C', 'D')}"]
        if column is not None:
            ways.append(steps + ("\b" * (column - x) if 0 < column - x <= _NEAR else _steps(x - column, "C", "D")))
        return min(ways, key=len)


def _place(x: int, y: int) -> str:
    """A move from anywhere."""
    return f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H" if y else "\x1b[H"


def _steps(by: int, forth: str, back: str) -> str:
    """A move by some cells along one axis."""
    count = "" if abs(by) == 1 else str(abs(by))
    return f"\x1b[{count}{forth if by > 0 else back}" if by else ""
