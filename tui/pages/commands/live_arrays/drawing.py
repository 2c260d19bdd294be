"""Live arrays on one screen, and two times of them compared: a sentence, the devices, and a table of what holds memory.

`compose` fits it to a screen; without a height it draws all of it, as the report does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, has_words
from tpuprof.parsers.memory.live_arrays import BUFFER, EXECUTABLE, By, DeviceTotal, LiveArrays, short_device
from tpuprof.parsers.session.diff.live_arrays import GroupChange, LiveArraysDiff
from tpuprof.tui.draw.bars import small_bar
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.layout import LOW, NARROW, Composed, cut, cut_middle, filled, gutter_lines, hstack
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Glyphs, Line, Span, line_width
from tpuprof.tui.draw.table import Column, Listing, chosen_columns, header_line, row_lines
from tpuprof.tui.pages.commands.live_arrays import changes
from tpuprof.tui.pages.commands.live_arrays.card import group_card
from tpuprof.tui.pages.commands.live_arrays.changes import ArraysOrDiff, Row
from tpuprof.tui.pages.commands.live_arrays.fields import BY_TITLES, GROUPS, GroupRows
from tpuprof.tui.report.fields import Table, is_descending, order, screen_columns

CARD = 150  # cells from which on the card of the row under the cursor stands beside the table
_MOST_DEVICES, _LOW_DEVICES = 8, 2
_DEVICE = 12  # cells of a device's name


@dataclass(frozen=True, slots=True)
class LiveArraysView(Listing):
    """What the user looks at.

    Attributes:
        kind, device: only of this kind or device; None for all.
        hides_same: of a comparison, whether only what changed is shown.
    """

    by: By = "source"
    kind: str | None = None
    device: str | None = None
    hides_same: bool = True


def kinds(content: ArraysOrDiff) -> list[str | None]:
    """What `LiveArraysView.kind` may be: all, and each kind that there is."""
    there = {one.kind for page in changes.pages_of(content) for one in page.allocations}
    return [None, *(kind for kind in (BUFFER, EXECUTABLE) if kind in there and len(there) > 1)]


def devices(content: ArraysOrDiff) -> list[str | None]:
    """What `LiveArraysView.device` may be: all, and each device, the fullest first."""
    names = dict.fromkeys(one.device for page in reversed(changes.pages_of(content)) for one in page.devices)
    return [None, *(names if len(names) > 1 else ())]


@dataclass(frozen=True, slots=True)
class ListedArrays:
    """The rows that show, in their order, and what they are some of.

    Attributes:
        whole: how many there are without the filter, and without hiding what is the same.
        same: how many of these are the same, in a comparison.
        whole_bytes: what they take; of one file.
    """

    rows: tuple[Row, ...]
    whole: int
    same: int
    whole_bytes: int


def listed(content: ArraysOrDiff, view: LiveArraysView) -> ListedArrays:
    """What the table shows."""
    made = changes.rows_of(content, view.by, view.device, view.kind)
    is_wanted = has_words(view.words)
    kept = [row for row in made if not (view.hides_same and _is_same(row))]
    if view.words.strip():
        kept = [row for row in kept if is_wanted(searched_text(content, row).casefold())]
    table, sort, descending = sorting(content, view)
    places = order(table, changes.group_rows(kept, view.by), sort, descending)
    whole = sum(max(0, changes.group_of(row).total.size_bytes) for row in made)
    return ListedArrays(tuple(kept[place] for place in places.tolist()), len(made), sum(map(_is_same, made)), whole)


def _is_same(row: Row) -> bool:
    return isinstance(row, GroupChange) and row.mark == "same"


def sorting(content: ArraysOrDiff, view: LiveArraysView) -> tuple[Table[GroupRows], str, bool]:
    """The table, what it is sorted by, and whether the largest comes first."""
    table, sort = GROUPS if isinstance(content, LiveArrays) else changes.CHANGES, view.sort or changes.sorts(content)[0]
    return table, sort, is_descending(table, sort) != view.is_reversed


def searched_text(content: ArraysOrDiff, row: Row) -> str:
    """What a filter looks at in a row: all that is known of its group, its stacks included."""
    page, group = changes.page_of(content, row), changes.group_of(row)
    frames = {frame for member in group.members for frame in page.allocations[member].stack}
    return "\n".join(
        [group.title, group.kind or "", *group.devices, *(f"{frame.place} {frame.function}" for frame in frames)]
    )


def compose(
    content: ArraysOrDiff, view: LiveArraysView, listed: ListedArrays, pen: Pen, height: int | None
) -> Composed:
    """The page; `height` is None for as many lines as it takes."""
    rows = listed.rows
    lines = _summary(content, view, pen, height)
    lines.append(pen.rule(_table_title(view, listed), _restricted(view)))
    start = len(lines) + 1
    room = len(rows) if height is None else max(1, height - start)
    first = view.shown_first(room, len(rows))
    with_card = pen.width >= CARD and 0 <= view.cursor < len(rows)
    left = pen.width * 11 // 20 if with_card else pen.width
    table = table_lines(content, view, listed, range(first, min(len(rows), first + room)), pen.at(left))
    if with_card:
        drawn = group_card(content, rows[view.cursor], view.by, pen.at(pen.width - left - 3))
        shown = pen.at(pen.width - left - 3).shortened(drawn, room + 1)
        table = hstack((table, gutter_lines(room + 1, pen.glyphs), shown), (left, 3, pen.width - left - 3))
    lines += table
    if not rows:
        lines.append(pen.fit([(f" {_why_nothing(content, view)}", "dim")]))
    lines = filled(lines, pen.width, len(lines) if height is None else height)
    return Composed(tuple(lines), start if rows else -1, first, room)


def table_lines(
    content: ArraysOrDiff, view: LiveArraysView, listed: ListedArrays, shown: range, pen: Pen
) -> list[Line]:
    """Headings and rows."""
    table, sort, descending = sorting(content, view)
    source = changes.group_rows(listed.rows, view.by, listed.whole_bytes, pen.width)
    left_out = _left_out(content, view, source, pen.width)
    looks: dict[str, dict[str, object]] = {key: {} for key in table.screen if key not in left_out}
    looks["name"] = {"title": view.by} if view.by in ("device", "kind") else {}
    columns = chosen_columns(screen_columns(table, source, pen.glyphs, looks), pen.width)
    columns = [_begun(column, pen.glyphs) for column in columns]
    heading = header_line(columns, pen, sort if view.cursor >= 0 else "", descending)
    return [heading, *row_lines(columns, shown, view.cursor, pen)]


def _begun(column: Column, glyphs: Glyphs) -> Column:
    """The column of names, cut at their ends: they begin with the source line."""
    if not column.grows:
        return column
    return replace(
        column, cells=lambda rows: [(cut(text, column.width, glyphs), key) for text, key in column.cells(rows)]
    )


def _left_out(content: ArraysOrDiff, view: LiveArraysView, source: GroupRows, width: int) -> set[str]:
    """Columns that say nothing here, or give way to names."""
    out = {"each_bytes", "kind"} if width < 100 else set()
    out |= {"size_bar", "devices", "before_bytes"} if width < NARROW else set()
    if isinstance(content, LiveArrays):
        out |= set() if any(group.devices for group in source.groups) else {"devices"}
        out |= set() if content.executables.count else {"kind"}
    out |= {"devices"} if view.by == "device" or view.device is not None else set()
    out |= {"kind"} if view.by == "kind" or view.kind is not None else set()
    return out


def _table_title(view: LiveArraysView, listed: ListedArrays) -> str:
    count = len(listed.rows)
    words = f"{count} of {listed.whole}" if count < listed.whole else f"{count}"
    return f"{BY_TITLES[view.by]} ({words}{f', {listed.same} the same' if view.hides_same and listed.same else ''})"


def _restricted(view: LiveArraysView) -> str:
    only = [f"{view.kind}s only" if view.kind else "", short_device(view.device) if view.device else ""]
    return ", ".join(filter(None, (*only, f"/{view.words}" if view.words else "")))


def _why_nothing(content: ArraysOrDiff, view: LiveArraysView) -> str:
    if view.words:
        return "no row has these words"
    if isinstance(content, LiveArraysDiff):
        return "nothing changed"
    return "the file lists no live arrays"


# --- what stands above the table


def _summary(content: ArraysOrDiff, view: LiveArraysView, pen: Pen, height: int | None) -> list[Line]:
    words = changes.headline(content, pen.glyphs.is_ascii)
    wrapped = pen.narrower(1).wrap(words, "strong", [(" ", "text")])
    lines = wrapped if height is None else wrapped[: 2 if height < LOW else 4]
    most = None if height is None else _LOW_DEVICES if height < LOW else _MOST_DEVICES if height >= 30 else 4
    if isinstance(content, LiveArraysDiff):
        lines += device_changes(content, most, pen)
    else:
        lines += device_lines(content.devices, most, pen)
    for text in changes.warnings_of(content)[: None if height is None else 1]:
        lines.append(pen.fit([(" ! ", "warn"), (text, "warn")]))
    return lines


def device_lines(totals: Sequence[DeviceTotal], most: int | None, pen: Pen) -> list[Line]:
    """A bar for each device, that of the fullest as long as there is room for."""
    largest = max((one.total.size_bytes for one in totals), default=0)

    def line(one: DeviceTotal) -> Line:
        share = one.total.size_bytes / largest if largest > 0 else 0.0
        metrics = f" {binary_size(one.total.size_bytes):>9}  {counted(one.total.count, 'buffer')}"
        bar = small_bar(share, max(8, min(60, pen.width - _DEVICE - 32)), pen.glyphs)
        return pen.fit([_device_name(one.device, pen.glyphs), (bar[0], "text"), (bar[1], "rule"), (metrics, "text")])

    return _listed(totals, most, line, pen)


def device_changes(diff: LiveArraysDiff, most: int | None, pen: Pen) -> list[Line]:
    """What changed on each device, the largest growth first."""
    before = {one.device: one.total.size_bytes for one in diff.before.devices}
    after = {one.device: one.total.size_bytes for one in diff.after.devices}
    names = sorted(before | after, key=lambda name: before.get(name, 0) - after.get(name, 0))

    def line(name: str) -> Line:
        old, new = before.get(name, 0), after.get(name, 0)
        metrics = f"{binary_size(old):>9} {pen.glyphs.arrow} {binary_size(new):<9} "
        change: Span = (changes.signed_size(new - old), changes.change_style(new - old))
        return pen.fit([_device_name(name, pen.glyphs), (metrics, "text"), change])

    return _listed(names, most, line, pen)


def _device_name(device: str, glyphs: Glyphs) -> Span:
    return f" {cut_middle(short_device(device), _DEVICE - 2, glyphs):<{_DEVICE - 1}}", "dim"


def _listed(items: Sequence[object], most: int | None, line: Callable[..., Line], pen: Pen) -> list[Line]:
    """A line each; the last one says how many more there are."""
    if most is None or len(items) <= most:
        return [line(item) for item in items]
    words = f" {pen.glyphs.ellipsis} and {len(items) - most + 1} more devices: ] shows one at a time"
    rest = pen.fit([(words, "dim")])
    return [*(line(item) for item in items[: most - 1]), rest]


def head_line(content: ArraysOrDiff, pen: Pen) -> Line:
    """Which file it is, or which two."""
    lead = " LIVE ARRAYS "
    names = [page.name for page in changes.pages_of(content)]
    room = max(8, (pen.width - len(lead) - 6) // len(names))
    spans: list[Span] = [(lead, "badge"), ("  ", "text")]
    for place, name in enumerate(names):
        spans += [(f"  {pen.glyphs.arrow}  ", "dim")] if place else []
        spans.append((cut_middle(name, room, pen.glyphs), "strong"))
    what = f"  {pen.glyphs.dot}  device memory profile" + ("s compared" if len(names) > 1 else "")
    if line_width(tuple(spans)) + len(what) < pen.width:
        spans.append((what, "dim"))
    return pen.fit(spans)
