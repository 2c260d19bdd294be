"""The screen of live arrays, of a device memory profile, and the app around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Literal

from tpuprof.parsers.memory.live_arrays import BY, AllocationGroup, LiveArrays
from tpuprof.tui.draw.pen import Composed, Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.commands.live_arrays import drawing
from tpuprof.tui.pages.commands.live_arrays.card import group_card, meaning_lines, summary
from tpuprof.tui.pages.commands.live_arrays.drawing import ListedArrays, LiveArraysView
from tpuprof.tui.pages.commands.live_arrays.fields import BY_WORDS, GROUPS, NAMED, GroupRows
from tpuprof.tui.report.shared.exporting import ShownTable, order_text, run_of_file
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import HELPS, ROW_KEYS, KeyRow
from tpuprof.tui.widgets.lists.screen import ListScreen, PageApp
from tpuprof.tui.widgets.lists.view import ListView
from tpuprof.tui.widgets.popup import Lines, meanings

ABOUT = meanings(
    ("", "Arrays that were alive in device memory when the file was written, those of one row."),
    ("size", "of all of them together, and their share of all live arrays."),
    ("kind", "what holds the memory, according to the file: arrays, or compiled programs."),
    ("stack", "the calls that made them, innermost first; e opens the line in $EDITOR from the list below."),
)


class ArraysList(ListView[AllocationGroup]):
    """Who holds device memory."""

    listing: LiveArraysView

    def __init__(self, content: LiveArrays) -> None:
        self.content, self.listing = content, LiveArraysView()

    @property
    def shown(self) -> ListedArrays:
        view = self.listing.anew()
        return self.kept(view, lambda: drawing.listed(self.content, view))

    @property
    def rows(self) -> tuple[AllocationGroup, ...]:
        return self.shown.rows

    @property
    def searched(self) -> Sequence[str]:
        every = drawing.listed(self.content, self.listing.anew(words="")).rows
        return [drawing.searched_text(self.content, row) for row in every]

    @property
    def shown_table(self) -> ShownTable:
        content, rows = self.content, self.rows
        source = GroupRows(rows, content.total.size_bytes, self.listing.by)
        order, run = order_text(GROUPS, self.listing), run_of_file(content.name, content.path)
        return ShownTable("live-arrays", GROUPS, source, range(len(rows)), (), self.listing.words, order, run)

    def compose(self, pen: Pen, height: int) -> Composed:
        return drawing.compose(self.content, self.listing, self.shown, pen, height)

    @property
    def orders(self) -> Mapping[str, str]:
        by = self.listing.by
        named = {NAMED: by if by in ("device", "kind") else NAMED}
        return {title: named.get(title, title) for title in GROUPS.sorted_by if title != by}

    @property
    def opened(self) -> dict[str, Callable[[], object]]:
        chosen = {"device": self.listing.device, "kind": self.listing.kind}
        return {what: partial(self._show, f"All {what}s.", **{what: None}) for what, one in chosen.items() if one}

    @property
    def keys(self) -> Sequence[KeyRow]:
        view = self.listing
        of_kinds, of_devices = drawing.kinds(self.content), drawing.devices(self.content)
        has_kinds, has_devices = len(of_kinds) > 1, len(of_devices) > 1
        next_kind, next_device = partial(self._next, "kind", of_kinds), partial(self._next, "device", of_devices)
        kind = (f"{view.kind}s" if view.kind else "kinds") if has_kinds else ""
        early, late = 2, HELPS + 1  # the footer has one of two before help
        of_device = late if has_kinds else early
        by_words = "By source line, function, stack, device, kind"
        device, devices_words = "device" if has_devices else "", "All devices, or one at a time"
        return (
            KeyRow("group", f"by {BY_WORDS[view.by]}", by_words, {"group": self._group}),
            KeyRow("view", kind, "Buffers and executables, or one kind only", {"view": next_kind}, rank=early),
            KeyRow("next_step", device, devices_words, {"next_step": next_device}, rank=of_device),
            self.sorting_key(rank=late),
        )

    def _show(self, words: str, **changes: object) -> str:
        self.listing = self.listing.anew(**changes)
        return words

    def _group(self) -> str:
        by = BY[(BY.index(self.listing.by) + 1) % len(BY)]
        return self._show(f"By {BY_WORDS[by]}.", by=by)

    def _next(self, what: Literal["kind", "device"], there: Sequence[str | None]) -> str:
        """Only the next kind or device of those that are there, or all of them."""
        if len(there) == 1:
            return f"There is only one {what}."
        now = there[(there.index(getattr(self.listing, what)) + 1) % len(there)]
        words = f"All {what}s." if now is None else f"Only {now}." if what == "device" else f"{now.capitalize()}s only."
        return self._show(words, **{what: now})


class LiveArraysScreen(ListScreen):
    """The screen of live arrays."""

    content: LiveArrays

    @cached_property
    def listed(self) -> ArraysList:
        return ArraysList(self.content)

    def head_line(self, pen: Pen) -> AnyLine:
        return drawing.head_line(self.content, pen)

    def meaning_lines(self, pen: Pen) -> list[Line]:
        return meaning_lines(pen)

    @property
    def keys(self) -> Sequence[KeyRow]:
        late, words = HELPS + 1, "Only rows with these words anywhere on their stacks"
        copied = partial(summary, self.content, self.listed.rows)
        stacks, opens = "The whole stack, with the lines of code", self.listed.row is not None
        return (
            *ROW_KEYS,
            KeyRow("open", "stack", stacks, {"open": self.enter} if opens else {}, rank=1),
            *self.listed.keys,
            KeyRow("search", "filter", words, {"search": self.begin_filter}, rank=late),
            KeyRow("edit", title="Open the source line in $EDITOR", acts={"edit": self._edit}),
            KeyRow("copy", "copy", "Copy a summary", {"copy": lambda: self.copy(copied())}, rank=late),
            *self.last_keys(),
        )

    @property
    def card_of_row(self) -> tuple[str, Lines, Lines] | None:
        row, by = self.listed.row, self.listed.listing.by
        return None if row is None else ("Live arrays", partial(group_card, self.content, row, by), ABOUT)

    def _edit(self) -> str:
        source = self.listed.row.source if self.listed.row is not None else None
        return self.edit_source(source) if source else "It has no single known source line."


APP = partial(PageApp, LiveArraysScreen)
