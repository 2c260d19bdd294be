"""The quantities of live arrays: of groups of them, of each, of devices, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.base.words import percent_of
from tpuprof.parsers.memory.live_arrays import BY, EXECUTABLE, Allocation, AllocationGroup, By, LiveArrays, short_device
from tpuprof.tui.draw.format import binary_short, binary_size, count, utc
from tpuprof.tui.draw.spans import Glyphs, Span, small_bar
from tpuprof.tui.draw.table import Cells, by_row, each
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Table, attribute, in_order, object_table, of_each
from tpuprof.tui.report.shared.buffers import BAR_WIDTH, SIZE_LOOK, bar_field, rank_field, whole_share
from tpuprof.tui.report.shared.holders import group_name
from tpuprof.tui.report.units import BYTES, COUNT, PERCENT, TEXTS, VERBATIM, Unit, plain

BY_TITLES: dict[By, str] = dict(zip(BY, ("Source lines", "Functions", "Stacks", "Devices", "Kinds"), strict=True))
"""What a table of groups is called."""

BY_WORDS: dict[By, str] = {by: title.rstrip("s").lower() for by, title in BY_TITLES.items()}

_NO_STACK = "the program kept no traceback for it"
_NO_DEVICE = "executables belong to no device"
_NO_KIND = "the file does not say; JAX's files do"
_TEXT_OR_NONE = Unit("text", lambda values: [value or None for value in values], lambda value, _: value or "", True)


@dataclass(frozen=True, slots=True)
class GroupRows(Sized):
    """Groups of a page, as a table shows them; sizes are shares of `whole_bytes`."""

    groups: Sequence[AllocationGroup]
    whole_bytes: int
    by: By
    width: int = 0


def _bars(source: GroupRows, glyphs: Glyphs) -> Cells:
    most = max((group.total.size_bytes for group in source.groups), default=0)

    def bar(row: int) -> Span:
        return small_bar(source.groups[row].total.size_bytes / most if most > 0 else 0.0, BAR_WIDTH, glyphs)[0], "text"

    return each(bar)


def _name(source: GroupRows, _: Glyphs, row: int) -> Span:
    return group_name(source.groups[row], source.by, source.width >= 100), "text"


def _place(source: GroupRows, _: Glyphs, row: int) -> Span:
    """Where a group lies: a device, how many, or that it is a program."""
    group = source.groups[row]
    one = short_device(group.devices[0]) if group.devices else "program" if group.kind == EXECUTABLE else ""
    return f"{len(group.devices)} dev." if len(group.devices) > 1 else one, "dim"


def _each(group: AllocationGroup) -> int | None:
    total = group.total
    return total.size_bytes // total.count if len(group.members) == 1 and total.count > 0 else None


def _of_group(
    key: str,
    unit: Unit,
    read: str | Callable[[Any], Any],
    meaning: str,
    null: str = "",
    screen: ColumnSpec[GroupRows] | None = None,
    heading: str = "",
) -> Field[GroupRows]:
    """A field that is read of the group, in Markdown called as on the screen if it has no heading."""
    heading = heading or (screen.title if screen is not None else key)
    return Field(key, unit, of_each(read, "groups"), meaning, null, heading, screen)


_NAMED = (
    "what the group is: a source line, a function, a stack from the user's innermost call outwards, a device or a kind"
)
NAMED = "where it was made"
_NAME: ColumnSpec[GroupRows] = ColumnSpec(NAMED, 20, cells=by_row(_name), is_left=True, grows=True)
_KIND: ColumnSpec[GroupRows] = ColumnSpec("kind", 10, words=lambda value, _: value or "")
_EACH: ColumnSpec[GroupRows] = ColumnSpec(
    "each", 6, words=lambda value, _: "" if value is None else binary_short(value)
)
_DEVICE = ColumnSpec("device", 8, cells=by_row(_place))
_HELD = "the devices that hold it; none for executables"
_OWN_LINE = "the innermost source line on the stack outside libraries"
_OF_LINE = "the function that this line is in"
_KINDS = "buffer: an array's memory on one device; executable: a compiled program's code"
_COUNTED = "how many are alive; an array is counted on each device that holds a shard of it"
_DIFFER = "they differ in stack, size, device or kind"

_SHARE: Field[GroupRows] = Field(
    "share_percent",
    PERCENT,
    lambda source, rows: [percent_of(source.groups[row].total.size_bytes, source.whole_bytes) for row in rows],
    "its size, of all that is shown",
    "the rows shown take no memory",
    "of all",
    ColumnSpec("%", 5, words=whole_share),
)
GROUPS: Table[GroupRows] = Table(
    "groups",
    (
        rank_field(3),
        _of_group("name", _TEXT_OR_NONE, "title", _NAMED, f"{_NO_STACK}, or {_NO_DEVICE}", _NAME),
        _of_group("source", _TEXT_OR_NONE, "source", _OWN_LINE, f"several lines, or {_NO_STACK}"),
        _of_group("function", _TEXT_OR_NONE, "function", _OF_LINE, f"several functions, or {_NO_STACK}"),
        _of_group("kind", _TEXT_OR_NONE, "kind", _KINDS, _NO_KIND, _KIND),
        _of_group("devices", TEXTS, "devices", _HELD, "", _DEVICE, "devices"),
        _of_group("count", COUNT, "total.count", _COUNTED, "", ColumnSpec("count", 6)),
        _of_group("size_bytes", BYTES, "total.size_bytes", "their total size", "", SIZE_LOOK),
        _SHARE,
        bar_field(_bars),
        _of_group("each_bytes", BYTES, _each, "the size of one of them", _DIFFER, _EACH),
    ),
    len,
    json=in_order("rank name source function kind devices count size_bytes share_percent each_bytes"),
    markdown=in_order("size_bytes share_percent count kind devices name function"),
    screen=in_order("rank size_bytes share_percent size_bar count devices kind each_bytes name"),
)

_STACK = Unit("list of texts", plain, lambda value, _: " < ".join(value))


def _stack(one: Allocation) -> list[str]:
    return [" ".join(filter(None, (frame.place, frame.function))) for frame in one.stack]


ALLOCATIONS: Table[Sequence[Allocation]] = object_table(
    "allocations",
    (
        attribute("kind", VERBATIM, _KINDS, null=_NO_KIND),
        attribute("device", VERBATIM, "the device that holds it", null=_NO_DEVICE),
        attribute("count", COUNT, _COUNTED),
        attribute("size_bytes", BYTES, "their total size"),
        attribute("each_bytes", BYTES, "the size of one of them", null="they differ"),
        Metric("source", _TEXT_OR_NONE, lambda one: one.frame.place if one.frame else "", _OWN_LINE, _NO_STACK),
        Metric("stack", _STACK, _stack, "the stack that made it, the innermost call first"),
    ),
)

DEVICES: Table[Any] = object_table(
    "devices",
    (
        attribute("device", VERBATIM, "its name, as JAX writes it", "device"),
        attribute("count", COUNT, "buffers that are alive on it", "buffers", name="total.count"),
        attribute("size_bytes", BYTES, "their size", "size", name="total.size_bytes"),
    ),
    markdown=("device", "count", "size_bytes"),
)


def _time(page: LiveArrays) -> str | None:
    return None if page.time_ns is None else utc(page.time_ns / 1e9)


METRICS: tuple[Metric[LiveArrays], ...] = (
    attribute("total_bytes", BYTES, "the size of all of it", "all", name="total.size_bytes"),
    attribute("total_count", COUNT, "how many there are of all", name="total.count"),
    attribute("buffers_bytes", BYTES, "the size of array buffers", "buffers of arrays", name="buffers.size_bytes"),
    attribute("buffers_count", COUNT, "how many of these there are", name="buffers.count"),
    attribute(
        "executables_bytes", BYTES, "the code of compiled programs", "executables", name="executables.size_bytes"
    ),
    attribute("executables_count", COUNT, "how many of these there are", name="executables.count"),
    Metric("written", VERBATIM, _time, "when it was written", "the file has no date; JAX never writes one"),
)


def totals_words(page: LiveArrays) -> str:
    """The page in a sentence: ``8.12 MiB are live: 10 buffers 8.12 MiB, 5 executables 0 B``."""
    parts = [f"{count(page.buffers.count)} buffers {binary_size(page.buffers.size_bytes)}"]
    if page.executables.count:
        parts.append(f"{count(page.executables.count)} executables {binary_size(page.executables.size_bytes)}")
    others = page.total.count - page.buffers.count - page.executables.count
    if others:
        rest = page.total.size_bytes - page.buffers.size_bytes - page.executables.size_bytes
        parts = [*(parts if page.buffers.count else parts[1:]), f"{count(others)} of unknown kind {binary_size(rest)}"]
    return f"{binary_size(page.total.size_bytes)} live: {', '.join(parts)}."
