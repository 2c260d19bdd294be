"""The quantities of two device memory profiles that are compared, and what came of it in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.memory.live_arrays import AllocationGroup, By
from tpuprof.parsers.session.diff.live_arrays import GroupChange, LiveArraysDiff, Mark, changes
from tpuprof.tui.draw.buffers.sizes import binary_short, binary_size
from tpuprof.tui.draw.layout import clean
from tpuprof.tui.draw.spans import Glyphs, Key, StyleKey
from tpuprof.tui.draw.table import Cells, each
from tpuprof.tui.pages.commands.live_arrays.fields import TEXT_OR_NONE, held_words
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Table, attribute
from tpuprof.tui.report.shared.holders import group_name, share_of
from tpuprof.tui.report.units import BYTES, COUNT, PERCENT, TEXTS, VERBATIM, Unit, plain

if TYPE_CHECKING:
    from tpuprof.tui.report.fields import Rows

_MOST_NAMED = 3
_STYLES: dict[Mark, StyleKey] = {"more": "bad", "new": "bad", "less": "good", "gone": "good", "same": "dim"}


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """Changes as a table shows them; `by` and `width` as of `GroupRows`."""

    changes: Sequence[GroupChange]
    by: By
    width: int = 0

    def __len__(self) -> int:
        return len(self.changes)


def signed_size(value: int) -> str:
    """``+320 KiB``, ``-4.00 MiB``, ``0``."""
    return f"{'+' if value > 0 else ''}{binary_size(value)}" if value else "0"


def signed_count(value: int) -> str:
    """``+5``, ``-4``, ``0``."""
    return f"{value:+,}" if value else "0"


def change_style(value: int) -> StyleKey:
    """Growth is bad, in memory that should stay as it is."""
    return "bad" if value > 0 else "good" if value < 0 else "dim"


def _read(read: Callable[[GroupChange], Any]) -> Callable[[ChangeRows, Rows], list[Any]]:
    return lambda source, rows: [read(source.changes[row]) for row in rows]


def _size(group: AllocationGroup | None) -> int | None:
    return None if group is None else group.total.size_bytes


def _count(group: AllocationGroup | None) -> int | None:
    return None if group is None else group.total.count


def _fraction(change: GroupChange) -> float | None:
    return None if change.before is None else share_of(change.size_change, change.before.total.size_bytes)


def _names(source: ChangeRows, glyphs: Glyphs) -> Cells:
    is_wide = source.width >= 100
    return each(lambda row: (group_name(source.changes[row].group, source.by, is_wide), "text"))


def _devices(source: ChangeRows, glyphs: Glyphs) -> Cells:
    return each(lambda row: (held_words(source.changes[row].group), "dim"))


def _style(value: Any) -> Key:  # noqa: ANN401 - a stored figure
    return change_style(value)


def _short(value: int | None, _: bool) -> str:
    return "-" if value is None else binary_short(value)


_ONE_SIDED = "the group is in one of the two only"
_NO_TRACEBACK = "the program kept no traceback of it"
_SIGNED_SIZE = Unit("bytes", plain, lambda value, _: signed_size(value))
_SIGNED_COUNT = Unit("count", plain, lambda value, _: signed_count(value))


def _looks(name: str, title: str, width: int, words: Callable[[Any, bool], str], style: Any = None) -> ColumnSpec[Any]:  # noqa: ANN401
    return ColumnSpec(name, title, width, words=words, **({"style": style} if style else {}))


CHANGE_FIELDS: tuple[Field[ChangeRows], ...] = (
    Field(
        "mark",
        VERBATIM,
        _read(lambda change: change.mark),
        "same, more, less, new or gone: by bytes, by count where these are the same",
        "",
        " ",
        ColumnSpec("", "", 4, lambda mark: _STYLES[mark]),
    ),
    Field(
        "name",
        TEXT_OR_NONE,
        _read(lambda change: change.group.title),
        "what is put together: a source line, a function, a stack, a device or a kind",
        _NO_TRACEBACK,
        "where it was made",
        ColumnSpec("name", "where it was made", 20, cells=_names, is_left=True, grows=True),
    ),
    Field(
        "source",
        TEXT_OR_NONE,
        _read(lambda change: change.group.source),
        "the innermost source line on the stack that is no library's",
        f"several lines, or {_NO_TRACEBACK}",
        "source",
    ),
    Field(
        "function",
        TEXT_OR_NONE,
        _read(lambda change: change.group.function),
        "the function that this line is in",
        f"several functions, or {_NO_TRACEBACK}",
        "function",
    ),
    Field(
        "kind",
        TEXT_OR_NONE,
        _read(lambda change: change.group.kind),
        "buffer of an array, or executable",
        "the file does not say; JAX's files do",
        "kind",
        _looks("", "kind", 10, lambda value, _: value or ""),
    ),
    Field(
        "devices",
        TEXTS,
        _read(lambda change: change.group.devices),
        "the devices that hold it; none for executables",
        "",
        "devices",
        ColumnSpec("", "device", 8, cells=_devices),
    ),
    Field("before_count", COUNT, _read(lambda change: _count(change.before)), "how many in A", _ONE_SIDED),
    Field("after_count", COUNT, _read(lambda change: _count(change.after)), "how many in B", _ONE_SIDED),
    Field(
        "count_change",
        _SIGNED_COUNT,
        _read(lambda change: change.count_change),
        "how many more in B",
        "",
        "count",
        _looks("count", "count", 7, lambda value, _: signed_count(value), _style),
    ),
    Field(
        "before_bytes",
        BYTES,
        _read(lambda change: _size(change.before)),
        "what they take in A",
        _ONE_SIDED,
        "before",
        _looks("", "before", 6, _short),
    ),
    Field(
        "after_bytes",
        BYTES,
        _read(lambda change: _size(change.after)),
        "what they take in B",
        _ONE_SIDED,
        "after",
        _looks("size", "after", 6, _short),
    ),
    Field(
        "change_bytes",
        _SIGNED_SIZE,
        _read(lambda change: change.size_change),
        "how much more in B",
        "",
        "change",
        _looks(
            "change",
            "change",
            7,
            lambda value, _: ("+" if value > 0 else "") + binary_short(value) if value else "0",
            _style,
        ),
    ),
    Field(
        "change_percent",
        PERCENT,
        _read(_fraction),
        "the change, of what it was in A",
        "it was nothing in A",
    ),
)

CHANGES: Table[ChangeRows] = Table(
    "changes",
    CHANGE_FIELDS,
    len,
    json=tuple(field.key for field in CHANGE_FIELDS),
    markdown=("mark", "change_bytes", "count_change", "before_bytes", "after_bytes", "kind", "name", "function"),
    screen=("change_bytes", "count_change", "mark", "before_bytes", "after_bytes", "devices", "kind", "name"),
)
"""What became of each group."""


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


METRICS: tuple[Metric[LiveArraysDiff], ...] = (
    Metric("before_bytes", BYTES, lambda diff: diff.before.total.size_bytes, "what is live in A", heading="before"),
    Metric("after_bytes", BYTES, lambda diff: diff.after.total.size_bytes, "what is live in B", heading="after"),
    attribute("change_bytes", _SIGNED_SIZE, "how much more in B", "change", name="size_change"),
    Metric(
        "change_percent",
        PERCENT,
        lambda diff: share_of(diff.size_change, diff.before.total.size_bytes),
        "the change, of what was live in A",
        "nothing was live in A",
    ),
    Metric("before_count", COUNT, lambda diff: diff.before.total.count, "how many are alive in A"),
    Metric("after_count", COUNT, lambda diff: diff.after.total.count, "how many are alive in B"),
    attribute("count_change", _SIGNED_COUNT, "how many more in B", "count"),
    Metric("verdict", VERBATIM, verdict, "what grew, in a sentence"),
)
"""What a comparison has one of."""
