"""Logs whose newest records stand first, as viewers of logs in a cloud export them, put into order of time.

A record is a line with a time and the lines without one behind it or, where records are written over several lines
(JSON, YAML), what stands between two lines that begin one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

MOST_BYTES = 1 << 26
"""A log of more bytes is read as it is."""

_LOOKED_AT = 1 << 16
_LEAST_PAIRS, _MOSTLY = 3, 4
_TIME = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?")
_BEGINS = re.compile(rb"([ \t]*)(?:\{|---)[ \t]*\r?$")


def oldest_first(texts: Iterator[bytes], notes: list[str], numbers: list[int]) -> Iterator[bytes]:
    """The text in order of time; as it is where its times do not fall.

    Args:
        notes: receives a sentence on a log that is turned round, or is too large for that.
        numbers: receives the line of the file, from 1, of each line of a log that is turned round.
    """
    begin = b""
    while len(begin) < _LOOKED_AT and (more := next(texts, b"")):
        begin += more
    lines = begin[:_LOOKED_AT].splitlines(keepends=True)
    if not _falls(_records(lines), lines):
        yield from chain((begin,), texts)
        return
    pieces, size = [begin], len(begin)
    for piece in texts:
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            notes.append("The log has its newest lines first, and is too large to be read from its end.")
            yield from chain(pieces, texts)
            return
    notes.append("The log has its newest lines first: it is read from its end.")
    lines = b"".join(pieces).splitlines(keepends=True)
    for first, end in reversed([*pairwise([*_records(lines), len(lines)])]):
        numbers += range(first + 1, end + 1)
        text = b"".join(lines[first:end])
        yield text if text.endswith(b"\n") else text + b"\n"


def _records(lines: Sequence[bytes]) -> list[int]:
    """The lines with which records begin; what stands before the first one is one too."""
    found = [(at, match[1]) for at, line in enumerate(lines) if (match := _BEGINS.match(line)) is not None]
    if len(found) > 1:
        begins = [at for at, indent in found if indent == found[0][1]]
    else:
        begins = [at for at, line in enumerate(lines) if _TIME.search(line)]
    return begins if begins[:1] == [0] else [0, *begins]


def _falls(begins: Sequence[int], lines: Sequence[bytes]) -> bool:
    """Whether most records are older than the one before them."""
    found = (_TIME.search(b"".join(lines[first:end])) for first, end in pairwise([*begins, len(lines)]))
    times = [each[0].replace(b" ", b"T") for each in found if each is not None]
    falls = sum(first > second for first, second in pairwise(times))
    rises = sum(first < second for first, second in pairwise(times))
    return falls >= _LEAST_PAIRS and falls >= _MOSTLY * rises
