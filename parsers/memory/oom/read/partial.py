"""Puts lines together again that a container's runtime wrote in parts, as it does with every line over 16 KiB."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tpuprof.parsers.memory.oom.read.stream import LONGEST_LINE, Line

_MOST_STREAMS = 8
_MOST_WAIT = 64
_SPLIT_AT = 16_000
"""A record this long without a line end in it is a part, whatever the others are like."""

# Docker: a record is a part of a line where what was logged has no line end
_RECORD = re.compile(rb'\{[^{}]*?"log"\s{0,9}:\s{0,9}"([^"\\]*(?:\\.[^"\\]*)*)"\s{0,9}[,}]')
_STREAM = re.compile(rb'"(?:stream|source)"\s*:\s*"(\w{1,20})"')
_TAG = re.compile(rb'"logtag"\s*:\s*"([PF])"')
# the container runtime interface: P marks a part, F the last one
_MARKED = re.compile(rb"(?:\S{1,80} )?[0-9]{4}-[0-9]{2}-[0-9]{2}T\S{1,40} (stdout|stderr) ([PF])(?: |$)")


@dataclass(slots=True)
class _Open:
    """A line of which parts were read.

    Attributes:
        first: the line of the log with the first part.
        end: where that part ends in it.
        parts: what the others add.
        size: bytes so far.
        length: of every part as it was written.
        is_sure: whether these are parts at all.
    """

    first: Line
    end: int
    parts: list[Line]
    texts: list[bytes]
    size: int
    length: int
    is_sure: bool

    def whole(self) -> Line:
        """One line with all parts."""
        content = self.first.content
        return replace(self.first, content=b"".join([content[: self.end], *self.texts, content[self.end :]]))


class Joiner:
    """Takes lines and gives them, parts put together; those of standard output and error may take turns.

    Attributes:
        is_waiting: whether the rest of a line is to come.
    """

    def __init__(self) -> None:
        self._open: dict[bytes, _Open] = {}
        self._has_line_ends: bool | None = None  # whether records have those of their lines

    @property
    def is_waiting(self) -> bool:
        """Whether the rest of a line is to come."""
        return bool(self._open)

    def add(self, line: Line) -> Iterator[Line]:
        """What is complete with a line."""
        if self._open:
            yield from self._flush(line.number - _MOST_WAIT)
        content = line.content
        if line.continues:
            yield line
        elif content[:1] == b"{" and content[-9:].rstrip().endswith(b"}"):
            yield from self._record(line)
        elif not line.is_whole:
            yield from self._flush(None)
            yield line
        elif b" P" in content[:200] or (self._open and b" F" in content[:200]):
            yield from self._marked(line)
        else:
            yield line

    def finish(self) -> Iterator[Line]:
        """What is left at the end."""
        yield from self._flush(None)

    def _record(self, line: Line) -> Iterator[Line]:
        match = _RECORD.match(line.content)
        if match is None:
            yield line
            return
        stream, tag = _STREAM.search(line.content), _TAG.search(line.content)
        key = stream[1] if stream is not None else b""
        text = match[1]
        if tag is not None:
            is_part, is_sure = tag[1] == b"P", True
        else:
            ended = text.endswith(b"\\n")
            if ended:
                self._has_line_ends = True
            is_part = not ended and (self._has_line_ends is not False or len(text) >= _SPLIT_AT)
            is_sure = self._has_line_ends is True or len(text) >= _SPLIT_AT
        yield from self._part(line, key, match.end(1), text, is_part, is_sure)

    def _marked(self, line: Line) -> Iterator[Line]:
        match = _MARKED.match(line.content)
        if match is None:
            yield line
            return
        text = line.content[match.end() :].rstrip(b"\r")
        # put together, it is like all other lines
        line = replace(line, content=line.content[: match.start(2)] + b"F" + line.content[match.end(2) :])
        yield from self._part(line, b"cri " + match[1], match.end() + len(text), text, match[2] == b"P", True)

    def _part(self, line: Line, key: bytes, end: int, text: bytes, is_part: bool, is_sure: bool) -> Iterator[Line]:
        open_ = self._open.get(key)
        if open_ is None:
            if not is_part:
                yield line
            elif len(self._open) < _MOST_STREAMS:
                self._open[key] = _Open(line, end, [], [], len(line.content), _length(text), is_sure)
            else:
                yield line
            return
        if not open_.is_sure and (_length(text) != open_.length if is_part else _length(text) > open_.length):
            # parts are of one length, a last one is shorter: these are lines whose ends were taken away
            self._has_line_ends = self._has_line_ends or False
            yield from self._flush(None)
            yield line
            return
        open_.parts.append(line)
        open_.texts.append(text)
        open_.size += len(text)
        open_.is_sure |= is_sure
        if not is_part or open_.size > LONGEST_LINE:
            del self._open[key]
            yield open_.whole()

    def _flush(self, before: int | None) -> Iterator[Line]:
        """Gives up what has waited since a line, or all."""
        for key in [k for k, each in self._open.items() if before is None or each.first.number < before]:
            open_ = self._open.pop(key)
            if open_.is_sure:
                yield open_.whole()
            else:
                yield open_.first
                yield from open_.parts


def _length(text: bytes) -> int:
    """Bytes of a part before it was written as JSON."""
    try:
        return len(json.loads(b'"' + text + b'"').encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return len(text)
