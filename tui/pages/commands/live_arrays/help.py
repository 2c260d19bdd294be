"""Keys of the screen of live arrays, what its numbers mean, and the matter in a few lines for a chat."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.session.diff.live_arrays import GroupChange, LiveArraysDiff
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.commands.live_arrays.changes import (
    CHANGES,
    Content,
    Row,
    group_of,
    pages_of,
    signed_count,
    signed_size,
)
from tpuprof.tui.pages.commands.live_arrays.drawing import headline, sorts
from tpuprof.tui.pages.commands.live_arrays.fields import GROUPS
from tpuprof.tui.report.fields import help_rows
from tpuprof.tui.report.shared.holders import group_name

_COPIED = 8  # rows of a summary

_MEANING = (
    "A device memory profile lists what is alive when it is written: the buffers of arrays, and compiled programs "
    "(executables). jax.profiler.save_device_memory_profile writes it. An array has a buffer on each device that holds "
    "a shard of it, and is counted there.",
    "What a program needs while it runs, its temporaries, is not alive between two steps, and not in the file: the "
    "memory tab of a profile, or a log that ran out of memory, has that.",
    "The line of code is the innermost one on the stack that is no installed package's and not Python's own. Where all "
    "are, it is the innermost that is not JAX's.",
)
_COMPARED = (
    "B is compared with A. What a line holds more of each time the file is written is kept by something: a list, a "
    "cache, a closure. Numbers are exact; a line that moved in an edited file is found by its stack.",
)


def meaning_lines(content: Content, pen: Pen) -> list[Line]:
    """What the columns and the numbers mean."""
    is_diff = isinstance(content, LiveArraysDiff)
    lines = [pen.fit([("What the columns mean", "title")])]
    for title, words in help_rows(CHANGES if is_diff else GROUPS, sorts(content)[0]):
        lines += pen.wrap(words, "text", [(f"{title:<10}", "strong")])
    lines += [pen.fit([]), pen.fit([("What the numbers mean", "title")])]
    for words in (*_MEANING, *(_COMPARED if is_diff else ())):
        lines += pen.wrap(words, "text")
    return lines


def summary(content: Content, rows: Sequence[Row]) -> str:
    """The matter in one line of a few parts: the sentence, and the largest rows."""
    parts = [" -> ".join(page.name for page in pages_of(content)), headline(content, True)]
    for row in rows[:_COPIED]:
        name = group_name(group_of(row), "source", False)
        if isinstance(row, GroupChange):
            parts.append(f"{signed_size(row.size_change)} {signed_count(row.count_change)} {name}")
        else:
            parts.append(f"{binary_size(row.total.size_bytes)} in {row.total.count:,} {name}")
    return " | ".join(parts)
