"""One line on the terminal while something goes on, such as decoding; gone when the work is done."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tpuprof.tui.cli.common import can_redraw, line_width
from tpuprof.tui.report.output import write_stderr
from tpuprof.tui.terminal.progress import ProgressLine

if TYPE_CHECKING:
    from tpuprof.parsers.hosts.progress import Progress


@contextlib.contextmanager
def decoding_shown() -> Iterator[Callable[[Progress], None]]:
    """What to report to how far decoding is: a line on standard error where that is a terminal, else nothing."""
    if not can_redraw():
        yield lambda _: None
        return
    line = ProgressLine(write_stderr, width=line_width())
    try:
        yield line
    finally:
        line.clear()
