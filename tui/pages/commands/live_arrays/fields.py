"""The quantities of live arrays: of groups of them, of each, of devices, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.live_arrays import EXECUTABLE, Allocation, AllocationGroup, By, LiveArrays
from tpuprof.tui.draw.bars import small_bar
from tpuprof.tui.draw.buffers.sizes import binary_short, binary_size
from tpuprof.tui.draw.format import count, utc
from tpuprof.tui.draw.spans import Glyphs, Span
from tpuprof.tui.draw.table import Cells, each
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Table, attribute, object_table
from tpuprof.tui.report.shared.buffers import BAR_WIDTH, rank_field, size_look, whole_share
from tpuprof.tui.report.shared.holders import group_name, share_of, short_device
from tpuprof.tui.report.units import BYTES, COUNT, PERCENT, TEXTS, VERBATIM, Unit, plain

if TYPE_CHECKING:
    from tpuprof.tui.report.fields import Rows

BY_TITLES: dict[By, str] = {
    "source": "Source lines",
    "function": "Functions",
    "stack": "Stacks",
    "device": "Devices",
    "kind": "Kinds",
}
"""What a table of groups is called."""

BY_WORDS: dict[By, str] = {by: title.rstrip("s").lower() for by, title in BY_TITLES.items()}

_NO_STACK = "the program kept no traceback of it"
_NO_DEVICE = "executables are of no device"
_NO_KIND = "the file does not say; JAX's files do"
TEXT_OR_NONE = Unit("text", lambda values: [value or None for value in values], lambda value, _: value or "", True)


@dataclass(frozen=True, slots=True)
class GroupRows:
    """Groups of a page as a table shows them.

    Attributes:
        groups: by row.
        whole_bytes: what sizes are shares of.
        by: what they are grouped by.
        width: of the table in cells.
    """

    groups: Sequence[AllocationGroup]
    whole_bytes: int
    by: By
    width: int = 0

    def __len__(self) -> int:
        return len(self.groups)


def devices_words(devices: Sequence[str]) -> str:
    """The device, or how many there are."""
    return "" if not devices else short_device(devices[0]) if len(devices) == 1 else f"{len(devices)} dev."


def held_words(group: AllocationGroup) -> str:
    """Where it lies: a device, how many, or that it is a program."""
    return devices_words(group.devices) or ("program" if group.kind == EXECUTABLE else "")


def _of_groups(read: Callable[[AllocationGroup], Any]) -> Callable[[GroupRows, Rows], list[Any]]:
    return lambda source, rows: [read(source.groups[row]) for row in rows]


def _shares(source: GroupRows, rows: Rows) -> list[float | None]:
    return [share_of(source.groups[row].total.size_bytes, source.whole_bytes) for row in rows]


def _bars(source: GroupRows, glyphs: Glyphs) -> Cells:
    most = max((group.total.size_bytes for group in source.groups), default=0)

    def bar(row: int) -> Span:
        return small_bar(source.groups[row].total.size_bytes / most if most > 0 else 0.0, BAR_WIDTH, glyphs)[0], "text"

    return each(bar)


def _names(source: GroupRows, glyphs: Glyphs) -> Cells:
    is_wide = source.width >= 100
    return each(lambda row: (group_name(source.groups[row], source.by, is_wide), "text"))


_NAME: ColumnSpec[GroupRows] = ColumnSpec("name", "where it was made", 20, cells=_names, is_left=True, grows=True)
_COUNT_LOOK: ColumnSpec[Any] = ColumnSpec("count", "count", 6, words=lambda value, _: count(value))
_KIND_LOOK: ColumnSpec[Any] = ColumnSpec("", "kind", 10, words=lambda value, _: value or "")
_DEVICES_LOOK: ColumnSpec[GroupRows] = ColumnSpec(
    "",
    "device",
    8,
    cells=lambda source, glyphs: each(lambda row: (held_words(source.groups[row]), "dim")),
)
_SHARE_LOOK: ColumnSpec[Any] = ColumnSpec("", "%", 5, words=whole_share)
_EACH_LOOK: ColumnSpec[Any] = ColumnSpec(
    "each", "each", 6, words=lambda value, _: "" if value is None else binary_short(value)
)

_KIND_MEANING = "buffer: an array's memory on one device; executable: a compiled program's code"
_COUNT_MEANING = "how many are alive; an array is counted on each device that holds a shard of it"


def _each(group: AllocationGroup) -> int | None:
    total = group.total
    return total.size_bytes // total.count if len(group.members) == 1 and total.count > 0 else None


GROUP_FIELDS: tuple[Field[GroupRows], ...] = (
    rank_field(3),
    Field(
        "name",
        TEXT_OR_NONE,
        _of_groups(lambda group: group.title),
        "what is put together: a source line, a function, a stack from its innermost own call out, a device or a kind",
        f"{_NO_STACK}, or {_NO_DEVICE}",
        "where it was made",
        _NAME,
    ),
    Field(
        "source",
        TEXT_OR_NONE,
        _of_groups(lambda group: group.source),
        "the innermost source line on the stack that is no library's",
        f"several lines, or {_NO_STACK}",
        "source",
        filter=("source",),
    ),
    Field(
        "function",
        TEXT_OR_NONE,
        _of_groups(lambda group: group.function),
        "the function that this line is in",
        f"several functions, or {_NO_STACK}",
        "function",
        filter=("function",),
    ),
    Field("kind", TEXT_OR_NONE, _of_groups(lambda group: group.kind), _KIND_MEANING, _NO_KIND, "kind", _KIND_LOOK),
    Field(
        "devices",
        TEXTS,
        _of_groups(lambda group: group.devices),
        "the devices that hold it; none for executables",
        "",
        "devices",
        _DEVICES_LOOK,
    ),
    Field("count", COUNT, _of_groups(lambda group: group.total.count), _COUNT_MEANING, "", "count", _COUNT_LOOK),
    Field(
        "size_bytes",
        BYTES,
        _of_groups(lambda group: group.total.size_bytes),
        "what all of them take together",
        "",
        "size",
        size_look(),
    ),
    Field(
        "share_percent",
        PERCENT,
        _shares,
        "its size, of all that is shown",
        "nothing that is shown takes memory",
        "of all",
        _SHARE_LOOK,
    ),
    Field(
        "size_bar",
        PERCENT,
        lambda _, rows: [None for _ in rows],
        "its size as a bar; that of the largest is the longest",
        screen=ColumnSpec("", "", BAR_WIDTH, cells=_bars, is_left=True, keeps_style=True),
    ),
    Field(
        "each_bytes",
        BYTES,
        _of_groups(_each),
        "the size of one of them",
        "they differ in stack, size, device or kind",
        "each",
        _EACH_LOOK,
    ),
)

GROUPS: Table[GroupRows] = Table(
    "groups",
    GROUP_FIELDS,
    len,
    json=(
        "rank",
        "name",
        "source",
        "function",
        "kind",
        "devices",
        "count",
        "size_bytes",
        "share_percent",
        "each_bytes",
    ),
    markdown=("size_bytes", "share_percent", "count", "kind", "devices", "name", "function"),
    screen=("rank", "size_bytes", "share_percent", "size_bar", "count", "devices", "kind", "each_bytes", "name"),
)
"""Allocations put together."""


def _stack(one: Allocation) -> list[str]:
    return [" ".join(filter(None, (frame.place, frame.function))) for frame in one.stack]


ALLOCATIONS: Table[Sequence[Allocation]] = object_table(
    "allocations",
    (
        attribute("kind", VERBATIM, _KIND_MEANING, null=_NO_KIND),
        attribute("device", VERBATIM, "the device that holds it", null=_NO_DEVICE),
        attribute("count", COUNT, _COUNT_MEANING),
        attribute("size_bytes", BYTES, "what all of them take together"),
        attribute("each_bytes", BYTES, "the size of one of them", null="they differ"),
        Metric(
            "source",
            TEXT_OR_NONE,
            lambda one: one.frame.place if one.frame else "",
            "the innermost source line on the stack that is no library's",
            _NO_STACK,
        ),
        Metric(
            "stack",
            Unit("list of texts", plain, lambda value, _: " < ".join(value)),
            _stack,
            "the stack that made it, the innermost call first",
        ),
    ),
)
"""Each stack, size and device."""

_DEVICE = attribute("device", VERBATIM, "its name, as JAX writes it", "device")
DEVICES: Table[Any] = object_table(
    "devices",
    (
        _DEVICE,
        attribute("count", COUNT, "buffers that are alive on it", "buffers", name="total.count"),
        attribute("size_bytes", BYTES, "what they take", "size", name="total.size_bytes"),
    ),
    markdown=("device", "count", "size_bytes"),
)
"""What is alive on each device."""


def _time(page: LiveArrays) -> str | None:
    return None if page.time_ns is None else utc(page.time_ns / 1e9)


METRICS: tuple[Metric[LiveArrays], ...] = (
    attribute("total_bytes", BYTES, "what all of it takes", "all", name="total.size_bytes"),
    attribute("total_count", COUNT, "how many there are of all", name="total.count"),
    attribute("buffers_bytes", BYTES, "what buffers of arrays take", "buffers of arrays", name="buffers.size_bytes"),
    attribute("buffers_count", COUNT, "how many of these there are", name="buffers.count"),
    attribute(
        "executables_bytes", BYTES, "the code of compiled programs", "executables", name="executables.size_bytes"
    ),
    attribute("executables_count", COUNT, "how many of these there are", name="executables.count"),
    Metric("written", VERBATIM, _time, "when it was written", "the file does not say when; JAX's never do"),
)
"""What a page has one of."""


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
