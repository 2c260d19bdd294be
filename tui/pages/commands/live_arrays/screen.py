"""The screen of live arrays, of one device memory profile or two that are compared, and the app around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.memory.live_arrays import BY, LiveArrays
from tpuprof.parsers.session.diff.live_arrays import LiveArraysDiff
from tpuprof.tui.draw.layout import Composed
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.commands.live_arrays import changes, drawing
from tpuprof.tui.pages.commands.live_arrays.card import group_card, meaning_lines, summary
from tpuprof.tui.pages.commands.live_arrays.changes import Content, Row, group_of, sorts
from tpuprof.tui.pages.commands.live_arrays.drawing import ListedArrays, LiveArraysView
from tpuprof.tui.pages.commands.live_arrays.fields import BY_WORDS
from tpuprof.tui.report.choice import sort_text
from tpuprof.tui.report.shared.exporting import Shown, run_of_file
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import ROW_KEYS, KeyRow
from tpuprof.tui.widgets.page_screen import HELPS, PageApp, PageScreen
from tpuprof.tui.widgets.popup import TextPopup, meanings

ABOUT = meanings(
    ("", "Arrays that were alive in device memory when the file was written, those of one row."),
    ("size", "of all of them together, and their share of all live arrays."),
    ("kind", "what holds the memory, according to the file: arrays, or compiled programs."),
    ("stack", "the calls that made them, innermost first; `e` opens the line in $EDITOR from the list below."),
    ("change", "if two files are compared: how much more or less the later one holds."),
)


class LiveArraysScreen(PageScreen[Row]):
    """Shows who holds device memory, or what grew."""

    content: Content
    view: LiveArraysView = LiveArraysView()

    @property
    def listed(self) -> ListedArrays:
        """What the table shows."""
        view = self.view.anew()
        return self.kept(view, lambda: drawing.listed(self.content, view))

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows that show."""
        return self.listed.rows

    @property
    def searched(self) -> Sequence[str]:
        """What a filter looks at in each row that can show."""
        every = drawing.listed(self.content, self.view.anew(words="")).rows
        return [drawing.searched_text(self.content, row) for row in every]

    @property
    def shown_table(self) -> Shown:
        """The rows as they are filtered and sorted."""
        content, by, rows = self.content, self.view.by, self.rows
        table, sort, descending = drawing.sorting(content, self.view)
        run = run_of_file(content.name, content.path) if isinstance(content, LiveArrays) else _both(content)
        source = changes.group_rows(rows, by)
        if isinstance(content, LiveArrays):
            source = replace(source, whole_bytes=content.total.size_bytes)
        order = sort_text(sort, descending)
        name = "live-arrays" if isinstance(content, LiveArrays) else "live-arrays-diff"
        return Shown(name, table, source, range(len(rows)), (), self.view.words, order, run)

    def head_line(self, pen: Pen) -> AnyLine:
        """The file, or both."""
        return drawing.head_line(self.content, pen)

    def compose_page(self, pen: Pen, height: int) -> Composed:
        """The sentence, the devices and the table."""
        return drawing.compose(self.content, self.view, self.listed, pen, height)

    def meaning_lines(self, pen: Pen) -> list[Line]:
        """What the columns and the numbers mean."""
        return meaning_lines(self.content, pen)

    @property
    def keys(self) -> Sequence[KeyRow]:
        """The keys of the view."""
        view, is_diff = self.view, isinstance(self.content, LiveArraysDiff)
        of_kinds, of_devices = drawing.kinds(self.content), drawing.devices(self.content)
        has_kinds, has_devices = len(of_kinds) > 1, len(of_devices) > 1
        next_kind, next_device = partial(self._next, "kind", of_kinds), partial(self._next, "device", of_devices)
        by = {"group": partial(self._group, 1)}
        same = ("show same" if view.hides_same else "hide same") if is_diff else ""
        hiding = "Show or hide what is the same" if is_diff else ""
        kind = (f"{view.kind}s" if view.kind else "kinds") if has_kinds else ""
        early, late = 2, HELPS + 1  # the footer has one of three before help
        of_kind, of_device = late if is_diff else early, late if is_diff or has_kinds else early
        by_words = "By source line, function, stack, device, kind"
        stacks = "The whole stack, with the lines of code"
        device, devices_words = "device" if has_devices else "", "All devices, or one at a time"
        words = "Only rows with these words anywhere on their stacks"
        return (
            *ROW_KEYS,
            KeyRow("open", "stack", stacks, {"open": self.enter} if self.row is not None else {}, rank=1),
            KeyRow("group", f"by {BY_WORDS[view.by]}", by_words, by),
            KeyRow("view", kind, "Buffers and executables, or one kind only", {"view": next_kind}, rank=of_kind),
            KeyRow("next_step", device, devices_words, {"next_step": next_device}, rank=of_device),
            KeyRow("exclude", same, hiding, {"exclude": self._hide}, rank=early),
            self.sorting_key("Sort by the next column; reverse", "sort", late),
            KeyRow("search", "filter", words, {"search": self.begin_filter}, rank=late),
            KeyRow("edit", title="Open the source line in $EDITOR", acts={"edit": self._edit}),
            KeyRow(
                "copy",
                "copy",
                "Copy a summary",
                {"copy": lambda: self.copy(summary(self.content, self.rows))},
                rank=late,
            ),
            *self.last_keys(),
        )

    def enter(self) -> None:
        """The whole stack, and all else of the row under the cursor."""
        if self.row is not None:
            self.open(
                TextPopup(self.look, "Live arrays", partial(group_card, self.content, self.row, self.view.by), ABOUT)
            )

    def _show(self, words: str, **changes: object) -> None:
        self.view, self.flash = self.view.anew(**changes), words

    def _group(self, by: int) -> None:
        now = BY[(BY.index(self.view.by) + by) % len(BY)]
        self._show(f"By {BY_WORDS[now]}.", by=now)

    def _next(self, what: Literal["kind", "device"], there: Sequence[str | None]) -> None:
        """Only the next kind or device of those that are there, or all of them."""
        if len(there) == 1:
            self.flash = f"There is only one {what}."
            return
        now = there[(there.index(getattr(self.view, what)) + 1) % len(there)]
        words = f"All {what}s." if now is None else f"Only {now}." if what == "device" else f"{now.capitalize()}s only."
        self._show(words, **{what: now})

    def _hide(self) -> None:
        """Shows or hides what is the same."""
        if not isinstance(self.content, LiveArraysDiff):
            self.flash = "All rows show here."
            return
        self.view = self.view.anew(hides_same=not self.view.hides_same)

    @property
    def orders(self) -> Mapping[str, str]:
        """The columns."""
        return {name: name for name in sorts(self.content)}

    @property
    def opened(self) -> Mapping[str, Callable[[], object]]:
        """The filter, one device, one kind."""
        opened = dict(super().opened)
        if self.view.device is not None:
            opened["device"] = partial(self._show, "All devices.", device=None)
        if self.view.kind is not None:
            opened["kind"] = partial(self._show, "All kinds.", kind=None)
        return opened

    def _edit(self) -> None:
        """Opens the user's editor at the source line, where that file is here."""
        source = group_of(self.row).source if self.row is not None else None
        self.flash = self.edit_source(source) if source else "It has no single known source line."


def _both(diff: LiveArraysDiff) -> Run:
    """Both files, as the head of a report names them."""
    return run_of_file(f"{diff.before.name} and {diff.after.name}", diff.after.path)


APP = partial(PageApp, LiveArraysScreen)
