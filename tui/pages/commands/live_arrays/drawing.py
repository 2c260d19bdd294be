"""Live arrays on one screen: a sentence, the devices, and a table of what holds memory.

`compose` fits it to a screen; without a height it draws all of it, as the report does.
"""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted, has_words
from tpuprof.parsers.memory import live_arrays
from tpuprof.tui.draw.format import binary_size
from tpuprof.tui.draw.pen import LOW, NARROW, Composed, Pen, cut, cut_middle, filled, gutter_lines, hstack
from tpuprof.tui.draw.spans import Glyphs, Line, Span, line_width, small_bar
from tpuprof.tui.draw.table import Column, Listing, chosen_columns, header_line, row_lines
from tpuprof.tui.pages.commands.live_arrays.card import group_card
from tpuprof.tui.pages.commands.live_arrays.fields import BY_TITLES, GROUPS, GroupRows, totals_words
from tpuprof.tui.report.fields import order, screen_columns

CARD = 150  # cells from which on the card of the row under the cursor stands beside the table
_MOST_DEVICES, _LOW_DEVICES = 8, 2
_DEVICE = 12  # cells of a device's name


@dataclass(frozen=True, slots=True)
class LiveArraysView(Listing):
    """What the user looks at.

    Attributes:
        kind, device: only of this kind or device; None for all.
    """

    sort: str = "size"
    by: live_arrays.By = "source"
    kind: str | None = None
    device: str | None = None


def kinds(page: live_arrays.LiveArrays) -> list[str | None]:
    """What `LiveArraysView.kind` may be: all, and each kind that there is."""
    there = {one.kind for one in page.allocations}
    return [None, *(kind for kind in (live_arrays.BUFFER, live_arrays.EXECUTABLE) if kind in there and len(there) > 1)]


def devices(page: live_arrays.LiveArrays) -> list[str | None]:
    """What `LiveArraysView.device` may be: all, and each device, the fullest first."""
    names = [one.device for one in page.devices]
    return [None, *(names if len(names) > 1 else ())]


@dataclass(frozen=True, slots=True)
class ListedArrays:
    """The rows that show, in their order, and what they are some of.

    Attributes:
        whole: how many there are without the filter.
        whole_bytes: what these take.
    """

    rows: tuple[live_arrays.AllocationGroup, ...]
    whole: int
    whole_bytes: int


def listed(page: live_arrays.LiveArrays, view: LiveArraysView) -> ListedArrays:
    """What the table shows."""
    kept = made = live_arrays.groups(page, view.by, view.device, view.kind)
    if view.words.strip():
        is_wanted = has_words(view.words)
        kept = tuple(group for group in made if is_wanted(searched_text(page, group).casefold()))
    whole = sum(max(0, group.total.size_bytes) for group in made)
    places = order(GROUPS, GroupRows(kept, whole, view.by), view.sort, GROUPS.is_down(view))
    return ListedArrays(tuple(kept[place] for place in places.tolist()), len(made), whole)


def searched_text(page: live_arrays.LiveArrays, group: live_arrays.AllocationGroup) -> str:
    """What a filter looks at in a row: all that is known of its group, its stacks included."""
    frames = {frame for member in group.members for frame in page.allocations[member].stack}
    return "\n".join(
        [group.title, group.kind or "", *group.devices, *(f"{frame.place} {frame.function}" for frame in frames)]
    )


def compose(
    page: live_arrays.LiveArrays, view: LiveArraysView, listed: ListedArrays, pen: Pen, height: int | None
) -> Composed:
    """The page; `height` is None for as many lines as it takes."""
    rows = listed.rows
    lines = _summary(page, pen, height)
    lines.append(pen.rule(_table_title(view, listed), _restricted(view)))
    start = len(lines) + 1
    room = len(rows) if height is None else max(1, height - start)
    first = view.shown_first(room, len(rows))
    with_card = pen.width >= CARD and 0 <= view.cursor < len(rows)
    left = pen.width * 11 // 20 if with_card else pen.width
    table = table_lines(page, view, listed, range(first, min(len(rows), first + room)), pen.at(left))
    if with_card:
        drawn = group_card(page, rows[view.cursor], view.by, pen.at(pen.width - left - 3))
        shown = pen.at(pen.width - left - 3).shortened(drawn, room + 1)
        table = hstack((table, gutter_lines(room + 1, pen.glyphs), shown), (left, 3, pen.width - left - 3))
    lines += table
    if not rows:
        why = "no row has these words" if view.words else "the file lists no live arrays"
        lines.append(pen.fit([(f" {why}", "dim")]))
    lines = filled(lines, pen.width, len(lines) if height is None else height)
    return Composed(tuple(lines), start if rows else -1, first, room)


def table_lines(
    page: live_arrays.LiveArrays, view: LiveArraysView, listed: ListedArrays, shown: range, pen: Pen
) -> list[Line]:
    """Headings and rows."""
    source = GroupRows(listed.rows, listed.whole_bytes, view.by, pen.width)
    left_out = _left_out(page, view, source, pen.width)
    looks: dict[str, dict[str, object]] = {key: {} for key in GROUPS.screen if key not in left_out}
    looks["name"] = {"title": view.by} if view.by in ("device", "kind") else {}
    columns = chosen_columns(screen_columns(GROUPS, source, pen.glyphs, looks), pen.width, sort=view.sort)
    columns = [_begun(column, pen.glyphs) for column in columns]
    heading = header_line(columns, pen, view.sort if view.cursor >= 0 else "", GROUPS.is_down(view))
    return [heading, *row_lines(columns, shown, view.cursor, pen)]


def _begun(column: Column, glyphs: Glyphs) -> Column:
    """The column of names, cut at their ends: they begin with the source line."""
    if not column.grows:
        return column
    return replace(
        column, cells=lambda rows: [(cut(text, column.width, glyphs), key) for text, key in column.cells(rows)]
    )


def _left_out(page: live_arrays.LiveArrays, view: LiveArraysView, source: GroupRows, width: int) -> set[str]:
    """Columns that say nothing here, or give way to names."""
    out = {"each_bytes", "kind"} if width < 100 else set()
    out |= {"size_bar", "devices"} if width < NARROW else set()
    out |= set() if any(group.devices for group in source.groups) else {"devices"}
    out |= set() if page.executables.count else {"kind"}
    out |= {"devices"} if view.by == "device" or view.device is not None else set()
    out |= {"kind"} if view.by == "kind" or view.kind is not None else set()
    return out


def _table_title(view: LiveArraysView, listed: ListedArrays) -> str:
    count = len(listed.rows)
    words = f"{count} of {listed.whole}" if count < listed.whole else f"{count}"
    return f"{BY_TITLES[view.by]} ({words})"


def _restricted(view: LiveArraysView) -> str:
    only = [f"{view.kind}s only" if view.kind else "", live_arrays.short_device(view.device) if view.device else ""]
    return ", ".join(filter(None, (*only, f"/{view.words}" if view.words else "")))


# --- what stands above the table


def _summary(page: live_arrays.LiveArrays, pen: Pen, height: int | None) -> list[Line]:
    wrapped = pen.narrower(1).wrap(totals_words(page), "strong", [(" ", "text")])
    lines = wrapped if height is None else wrapped[: 2 if height < LOW else 4]
    most = None if height is None else _LOW_DEVICES if height < LOW else _MOST_DEVICES if height >= 30 else 4
    lines += device_lines(page.devices, most, pen)
    for text in page.warnings[: None if height is None else 1]:
        lines.append(pen.fit([(" ! ", "warn"), (text, "warn")]))
    return lines


def device_lines(totals: Sequence[live_arrays.DeviceTotal], most: int | None, pen: Pen) -> list[Line]:
    """A bar for each device, that of the fullest as long as there is room for."""
    largest = max((one.total.size_bytes for one in totals), default=0)

    def line(one: live_arrays.DeviceTotal) -> Line:
        share = one.total.size_bytes / largest if largest > 0 else 0.0
        metrics = f" {binary_size(one.total.size_bytes):>9}  {counted(one.total.count, 'buffer')}"
        bar = small_bar(share, max(8, min(60, pen.width - _DEVICE - 32)), pen.glyphs)
        name = f" {cut_middle(live_arrays.short_device(one.device), _DEVICE - 2, pen.glyphs):<{_DEVICE - 1}}"
        return pen.fit([(name, "dim"), (bar[0], "text"), (bar[1], "rule"), (metrics, "text")])

    if most is None or len(totals) <= most:
        return [line(one) for one in totals]
    words = f" {pen.glyphs.ellipsis} and {len(totals) - most + 1} more devices: ] shows one at a time"
    return [*(line(one) for one in totals[: most - 1]), pen.fit([(words, "dim")])]


def head_line(page: live_arrays.LiveArrays, pen: Pen) -> Line:
    """Which file it is."""
    lead = " LIVE ARRAYS "
    name = cut_middle(page.name, max(8, pen.width - len(lead) - 6), pen.glyphs)
    spans: list[Span] = [(lead, "badge"), ("  ", "text"), (name, "strong")]
    what = f"  {pen.glyphs.dot}  device memory profile"
    if line_width(tuple(spans)) + len(what) < pen.width:
        spans.append((what, "dim"))
    return pen.fit(spans)
