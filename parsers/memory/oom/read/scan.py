"""Finds every out-of-memory error of a TPU in a log."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.memory.oom.model import OomLog
from tpuprof.parsers.memory.oom.read.blocks import Blocks
from tpuprof.parsers.memory.oom.read.others import Others
from tpuprof.parsers.memory.oom.read.partial import Joiner
from tpuprof.parsers.memory.oom.read.reports import Collector
from tpuprof.parsers.memory.oom.read.stream import LogReader


def scan_log(
    stream: BinaryIO,
    on_progress: Callable[[int], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> OomLog:
    """Reads a log to its end, in constant memory whatever is in it; one that gzip compressed too, or in UTF-16.

    Args:
        stream: of bytes; read once, from where it stands.
        on_progress: called with the bytes taken from the stream so far, compressed ones maybe, every chunk.
        is_cancelled: polled every chunk.

    Raises:
        Cancelled: `is_cancelled` said so.
        OSError: the stream can't be read.
    """
    return scan(LogReader(stream, on_progress, is_cancelled))


def scan(reader: LogReader) -> OomLog:
    """`scan_log` of a reader that nothing was read from yet."""
    found, others = Collector(), Others()
    blocks, joiner = Blocks(found.add, others.see), Joiner()
    while reader.seek():
        while True:
            line = reader.line()
            if line is None:
                break
            for whole in joiner.add(line):
                blocks.add(whole, reader.at_end and not whole.is_whole)
            if blocks.is_idle and not joiner.is_waiting:
                break
    for whole in joiner.finish():
        blocks.add(whole, False)
    blocks.finish()
    notes = [*reader.notes, *others.notes()]
    if found.left_out:
        more = counted(found.left_out, "further error is", "further errors are")
        notes.append(f"The log has too many different errors: {more} left out.")
    if found.entries_dropped:
        listed = counted(found.entries_dropped, "listed allocation", "listed allocations")
        notes.append(f"{listed} of the errors' lists are left out: too many to keep.")
    return OomLog(found.reports(), tuple(notes), reader.lines, reader.bytes_read)
