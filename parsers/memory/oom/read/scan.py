"""Finds every out-of-memory error of a TPU in a log, and notes errors about other memory, which are not read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import BinaryIO

from tpuprof.parsers.base.budget import steps_room
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.memory.oom.model import OomLog, OomReport
from tpuprof.parsers.memory.oom.read.blocks import Blocks
from tpuprof.parsers.memory.oom.read.forms import DUMP, OTHERS
from tpuprof.parsers.memory.oom.read.reports import Collector
from tpuprof.parsers.memory.oom.read.stream import LogLine, LogReader

_MOST_DUMPS = 20
_LONGEST_REPEATED = 1 << 18  # bytes of an error's text up to which its repetitions are looked for

_STEPS_A_LINE = 20
"""A line that is looked at takes some turns of a loop; `Blocks` counts what it does with it."""

_ANY = re.compile("|".join(f"(?P<{kind}>{forms})" for kind, (forms, _) in OTHERS.items()))


def scan_log(stream: BinaryIO, on_progress: Callable[[int], None] | None = None) -> OomLog:
    """Reads a log to its end, in constant memory whatever is in it; one that gzip compressed too, or in UTF-16.

    A few bytes may stand for millions of lines about memory: those beyond the steps that a file of this size may take
    are not read, and a note says so.

    Args:
        stream: of bytes; read once, from where it stands.
        on_progress: called with the bytes taken from the stream so far, compressed ones maybe, every chunk.

    Raises:
        OSError: the stream can't be read.
    """
    return scan(LogReader(stream, on_progress))


def scan(reader: LogReader) -> OomLog:
    """`scan_log` of a reader that nothing was read from yet."""
    errors, others, dumps = Collector(), OtherErrors(), dict[str, None]()
    blocks = Blocks(errors.add, others.see)
    lines, notes = 0, list[str]()
    since = b""  # from the line on with which the latest error begins
    while not notes and reader.seek():
        while (line := reader.line()) is not None:
            lines += 1
            if _STEPS_A_LINE * lines + blocks.steps > steps_room(reader.bytes_read):
                notes.append(
                    f"The log is compressed so much that {reader.bytes_read:,} bytes stand for more lines "
                    f"about memory than are read from so few: nothing is read from line {line.number:,} on."
                )
                break
            if len(dumps) < _MOST_DUMPS and (named := DUMP.search(line.content)) is not None:
                dumps[named[1].decode("utf-8", "replace")] = None
            blocks.add(line, reader.at_end and not line.is_whole)
            if blocks.is_idle:
                since = b""
                break
            since = _without_repetitions(reader, blocks, line, since)
    blocks.finish()
    notes += [*reader.notes, *others.notes()]
    if errors.left_out:
        more = counted(errors.left_out, "further error is", "further errors are")
        notes.append(f"The log has too many different errors: {more} left out.")
    if errors.entries_dropped:
        listed = counted(errors.entries_dropped, "listed allocation")
        notes.append(f"{listed} of the errors' lists are left out: too many to keep.")
    reports = errors.reports()
    if reader.numbers:
        reports = tuple(replace(each, at_line=reader.numbers[each.at_line - 1]) for each in reports)
    return OomLog(reports, tuple(notes), reader.lines, reader.bytes_read, tuple(dumps))


def _without_repetitions(reader: LogReader, blocks: Blocks, line: LogLine, since: bytes) -> bytes:
    """Counts an error's exact repetitions without reading them; takes and returns what was read since it began."""
    content = line.content + b"\n"
    begun = blocks.begun(line.number)
    if begun is None:
        return since + content if 0 < len(since) < _LONGEST_REPEATED and blocks.began < line.number else b""
    if since.startswith(content) and _ANY.search(since.decode("utf-8", "replace")) is None:
        times = reader.skip(since.removeprefix(content) + content)
        begun.count *= 1 + times
        begun.last_line += times * since.count(b"\n")
    return content


class OtherErrors:
    """Collects what is no TPU error, a kind at a time."""

    def __init__(self) -> None:
        self._lines: dict[str, list[int]] = {}  # of each kind the first one, and how many there are

    def see(self, text: str, number: int) -> None:
        for match in _ANY.finditer(text):
            self._lines.setdefault(match.lastgroup or "", [number, 0])[1] += 1

    def notes(self) -> Iterator[str]:
        for kind, (number, count) in sorted(self._lines.items(), key=lambda item: item[1][0]):
            where = f"Line {number:,}{f', one of {count:,}' if count > 1 else ''}:"
            yield f"{where} {OTHERS[kind][1]}; this is not a TPU error, and only those are read."


def joined(names: Sequence[str], logs: Sequence[OomLog]) -> OomLog:
    """The errors of some logs, each once, in order of the logs; one log stays as it is.

    Args:
        names: what people call each log.
    """
    if len(logs) == 1:
        return logs[0]
    keys, kept = list[OomReport](), list[OomReport]()
    for name, log in zip(names, logs, strict=True):
        for report in log.reports:
            key = replace(report, at_line=0, count=1, device=None, unknown={})
            if key in keys:
                place = keys.index(key)
                kept[place] = replace(kept[place], count=kept[place].count + report.count)
            else:
                keys.append(key)
                kept.append(replace(report, log=name))
    return OomLog(
        reports=tuple(kept),
        notes=tuple(f"{name}: {note}" for name, log in zip(names, logs, strict=True) for note in log.notes),
        lines=sum(log.lines for log in logs),
        bytes_read=sum(log.bytes_read for log in logs),
        dumps=tuple(dict.fromkeys(chain.from_iterable(log.dumps for log in logs))),
    )
