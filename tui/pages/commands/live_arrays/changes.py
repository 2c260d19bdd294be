"""The quantities of two device memory profiles that are compared, and what came of it in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import percent_of
from tpuprof.parsers.memory.live_arrays import AllocationGroup, By, LiveArrays, groups
from tpuprof.parsers.session.diff.live_arrays import GroupChange, LiveArraysDiff, Mark, changes
from tpuprof.tui.draw.buffers.sizes import binary_short, binary_size
from tpuprof.tui.draw.layout import clean
from tpuprof.tui.draw.spans import StyleKey
from tpuprof.tui.pages.commands.live_arrays.fields import NO_STACK, SHARED, GroupRows, of_group, totals_words
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Table, attribute, in_order
from tpuprof.tui.report.shared.holders import group_name
from tpuprof.tui.report.units import BYTES, COUNT, PERCENT, VERBATIM, Unit, plain

ArraysOrDiff = LiveArrays | LiveArraysDiff
Row = AllocationGroup | GroupChange

_MOST_NAMED = 3
_GROUP_SORTS, _CHANGE_SORTS = ("size", "count", "each", "name"), ("change", "size", "count", "name")
_STYLES: dict[Mark, StyleKey] = {"more": "bad", "new": "bad", "less": "good", "gone": "good", "same": "dim"}


def pages_of(content: ArraysOrDiff) -> tuple[LiveArrays, ...]:
    """The one page, or the page before and the page after."""
    return (content,) if isinstance(content, LiveArrays) else (content.before, content.after)


def rows_of(content: ArraysOrDiff, by: By, device: str | None, kind: str | None) -> Sequence[Row]:
    """The groups of a page, or what became of the groups of two."""
    if isinstance(content, LiveArrays):
        return groups(content, by, device, kind)
    return changes(content, by, device, kind)


def page_of(content: ArraysOrDiff, row: Row) -> LiveArrays:
    """The page that the group of a row is of."""
    if isinstance(content, LiveArrays):
        return content
    return content.after if isinstance(row, GroupChange) and row.after else content.before


def group_of(row: Row) -> AllocationGroup:
    """The group of a row."""
    return row.group if isinstance(row, GroupChange) else row


def group_rows(rows: Sequence[Row], by: By, whole_bytes: int = 0, width: int = 0) -> GroupRows:
    """Rows as a table shows them."""
    changed = [row for row in rows if isinstance(row, GroupChange)]
    return GroupRows([group_of(row) for row in rows], whole_bytes, by, width, changed)


def sorts(content: ArraysOrDiff) -> tuple[str, ...]:
    """What the rows can be sorted by, the first at first."""
    return _GROUP_SORTS if isinstance(content, LiveArrays) else _CHANGE_SORTS


def warnings_of(content: ArraysOrDiff) -> list[str]:
    """What is wrong with the files, each with its letter where there are two."""
    letters = ("",) if isinstance(content, LiveArrays) else ("A: ", "B: ")
    pages = zip(letters, pages_of(content), strict=True)
    return [f"{letter}{text}" for letter, page in pages for text in page.warnings]


def signed_size(value: int) -> str:
    """``+320 KiB``, ``-4.00 MiB``, ``0``."""
    return f"{'+' if value > 0 else ''}{binary_size(value)}" if value else "0"


def signed_count(value: int) -> str:
    """``+5``, ``-4``, ``0``."""
    return f"{value:+,}" if value else "0"


def change_style(value: int) -> StyleKey:
    """Growth is bad, in memory that should stay as it is."""
    return "bad" if value > 0 else "good" if value < 0 else "dim"


def _total(side: str, name: str) -> Callable[[GroupChange], int | None]:
    """Reads a total of the group before or after; None where it is not there."""
    group, total = attrgetter(side), attrgetter(f"{side}.total.{name}")
    return lambda change: None if group(change) is None else total(change)


def _fraction(change: GroupChange) -> float | None:
    return None if change.before is None else percent_of(change.size_change, change.before.total.size_bytes)


def _short(value: int | None, _: bool) -> str:
    return "-" if value is None else binary_short(value)


def _signed_short(value: int, _: bool) -> str:
    return ("+" if value > 0 else "") + binary_short(value) if value else "0"


_of_change = partial(of_group, of="changes")
_ONE_SIDED = "only one of the two files has the group"
_SIGNED_SIZE = Unit("bytes", plain, lambda value, _: signed_size(value))
_SIGNED_COUNT = Unit("count", plain, lambda value, _: signed_count(value))
_MARK: ColumnSpec[GroupRows] = ColumnSpec("", "", 4, lambda mark: _STYLES[mark])
_COUNT: ColumnSpec[GroupRows] = ColumnSpec("count", "count", 7, change_style)
_BEFORE: ColumnSpec[GroupRows] = ColumnSpec("", "before", 6, words=_short)
_AFTER: ColumnSpec[GroupRows] = ColumnSpec("size", "after", 6, words=_short)
_CHANGE: ColumnSpec[GroupRows] = ColumnSpec("change", "change", 7, change_style, _signed_short)
_BY_MARK = "same, more, less, new or gone: by bytes, by count where these are the same"
_NAME, *_ORIGIN, _KIND, _DEVICES = SHARED

CHANGE_FIELDS: tuple[Field[GroupRows], ...] = (
    _of_change("mark", VERBATIM, lambda change: change.mark, _BY_MARK, "", _MARK, " "),
    replace(_NAME, meaning="what the group is: a source line, a function, a stack, a device or a kind", null=NO_STACK),
    *_ORIGIN,
    replace(_KIND, meaning="buffer of an array, or executable"),
    _DEVICES,
    _of_change("before_count", COUNT, _total("before", "count"), "how many in A", _ONE_SIDED),
    _of_change("after_count", COUNT, _total("after", "count"), "how many in B", _ONE_SIDED),
    _of_change("count_change", _SIGNED_COUNT, lambda change: change.count_change, "how many more in B", "", _COUNT),
    _of_change("before_bytes", BYTES, _total("before", "size_bytes"), "their size in A", _ONE_SIDED, _BEFORE),
    _of_change("after_bytes", BYTES, _total("after", "size_bytes"), "their size in B", _ONE_SIDED, _AFTER),
    _of_change("change_bytes", _SIGNED_SIZE, lambda change: change.size_change, "how much more in B", "", _CHANGE),
    _of_change("change_percent", PERCENT, _fraction, "the change as a share of A", "it was 0 in A"),
)

CHANGES: Table[GroupRows] = Table(
    "changes",
    CHANGE_FIELDS,
    len,
    json=tuple(field.key for field in CHANGE_FIELDS),
    markdown=in_order("mark change_bytes count_change before_bytes after_bytes kind name function"),
    screen=in_order("change_bytes count_change mark before_bytes after_bytes devices kind name"),
)


def headline(content: ArraysOrDiff, ascii_only: bool) -> str:
    """The page in a sentence."""
    return verdict(content, ascii_only) if isinstance(content, LiveArraysDiff) else totals_words(content)


def verdict(diff: LiveArraysDiff, ascii_only: bool = False) -> str:
    """What grew, in a sentence or two."""
    before, after = (binary_size(page.total.size_bytes) for page in (diff.before, diff.after))
    every = changes(diff)
    grown = [one for one in every if one.size_change > 0]
    if diff.size_change == 0 and not any(one.size_change or one.count_change for one in every):
        return f"The same: {before} live in both, {counted(diff.after.total.count, 'buffer')} and executables in all."
    if not diff.size_change:
        words = f"Live memory is as much as before, {after}"
    else:
        fraction = diff.fraction
        percent = "" if fraction is None else f" ({100 * fraction:+.1f}%)"
        how = "grew" if diff.size_change > 0 else "shrank"
        words = f"Live memory {how} by {binary_size(abs(diff.size_change))}{percent}: {before} before, {after} after"
    named = [_named(one, ascii_only) for one in grown[:_MOST_NAMED]]
    rest = sum(one.size_change for one in grown[_MOST_NAMED:])
    named += [f"{counted(len(grown) - _MOST_NAMED, 'other line')} {signed_size(rest)}"] if rest else []
    shrunk = sum(one.size_change for one in every if one.size_change < 0)
    sentences = [f"{words}."]
    if named:
        sentences.append(f"Grown: {', '.join(named)}.")
    if shrunk and diff.size_change >= 0:
        sentences.append(f"Elsewhere {signed_size(shrunk)}.")
    return " ".join(sentences)


def _named(change: GroupChange, ascii_only: bool) -> str:
    name = clean(group_name(change.group, "source", False), ascii_only)
    how = "new" if change.mark == "new" else "more" if change.count_change > 0 else "fewer"
    noun = change.group.kind or "allocation"
    number = counted(abs(change.count_change), f"{how} {noun}") if change.count_change else f"larger {noun}s"
    return f"{name} {signed_size(change.size_change)} ({number})"


def _grown(diff: LiveArraysDiff) -> float | None:
    return percent_of(diff.size_change, diff.before.total.size_bytes)


METRICS: tuple[Metric[LiveArraysDiff], ...] = (
    attribute("before_bytes", BYTES, "live bytes in A", "before", name="before.total.size_bytes"),
    attribute("after_bytes", BYTES, "live bytes in B", "after", name="after.total.size_bytes"),
    attribute("change_bytes", _SIGNED_SIZE, "how much more in B", "change", name="size_change"),
    Metric("change_percent", PERCENT, _grown, "the change as a share of A", "nothing was live in A"),
    attribute("before_count", COUNT, "how many are alive in A", name="before.total.count"),
    attribute("after_count", COUNT, "how many are alive in B", name="after.total.count"),
    attribute("count_change", _SIGNED_COUNT, "how many more in B", "count"),
    Metric("verdict", VERBATIM, verdict, "what grew, in a sentence"),
)
