"""The screen of a compiled program: what it takes at least and as its tiles tell, its ops, its arrays, and others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from textual import work

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.parsers.formats.hlo.files import HloFile
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.ops.filtering.filter import OpColumns
from tpuprof.parsers.pages.graph.programs import Programs as Graphs
from tpuprof.parsers.pages.memory.compiled import CompiledModules, ModuleSource
from tpuprof.parsers.pages.program.changes import compare_programs
from tpuprof.parsers.pages.program.ops import ProgramRow
from tpuprof.parsers.session.hlo import HloSession
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import view_at, views_line
from tpuprof.tui.pages import command_named, load_above
from tpuprof.tui.pages.graph import program
from tpuprof.tui.pages.graph.program import REPORT, Programs
from tpuprof.tui.pages.graph.program_card import LABEL, card_lines, label
from tpuprof.tui.report.choice import row_texts
from tpuprof.tui.report.declared import Declared, Section
from tpuprof.tui.report.fields import Field, Metric
from tpuprof.tui.report.page import ReportRequest, TextLook
from tpuprof.tui.report.shared.exporting import ShownTable
from tpuprof.tui.report.units import words_of_key
from tpuprof.tui.terminal.grammar import BY_NAME, Verb
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import ROW_KEYS, KeyRow, title_line, verb_row
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.lists.popup import Act, ChoiceList, ChoiceRow, ListPopup, Named, sort_rows
from tpuprof.tui.widgets.lists.screen import ListScreen
from tpuprof.tui.widgets.lists.table import RowsView
from tpuprof.tui.widgets.popup import Lines, TextPopup, meanings
from tpuprof.tui.widgets.tab import Jump, op_rows

if TYPE_CHECKING:
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.pages import Publish

_MODULES, _TALL, _NONE = "modules", 28, dict[str, Any]()
_TITLES = {_MODULES: "Programs"}
_WORDS = {"ops": "tiles told least", "arrays": "traffic moves bytes reads", _MODULES: "programs"}
_OF_RUNS = ("there", "timeline")
"""Keys that lead to pages of a run."""
_ABOUT = meanings(("", "Other programs of the same place. The one that you choose is A, the one that is shown is B."))


def load(session: Pages, run: Run, host: str | None, publish: Publish) -> None:
    """Reads the programs of a run, or of the files at its path, and publishes them, or why there are none."""
    of_files = {"device": session.device_type, "poll": session.poll} if isinstance(session, HloSession) else {}
    asked = _asked(run, host, session, of_files)
    try:
        page = program.read(asked)
        publish("program", (page, program.declare(page, asked)))
    except ProfileError as error:
        publish("program", error)


def _asked(run: Run, host: str | None = None, session: Any = None, options: Mapping[str, Any] = _NONE) -> ReportRequest:  # noqa: ANN401 - pages of a session
    """What the report is asked for; of files where the run has no hosts."""
    logdir, look = Logdir(run.path, (run,), (), ()), TextLook(120, False, False)
    return ReportRequest(logdir, None, host, lambda _: session, "text", look, 0, options, not run.hosts)


def _meanings_of(figures: Iterable[Field[Any] | Metric[Any]]) -> Lines:
    """What figures mean, for help."""
    return meanings(*((label(each), f"{each.meaning}.") for each in figures), cells=LABEL)


class ProgramTable(RowsView):
    """A table of the report as a list."""

    FIRST_SORT = ""
    NO_ROWS = "nothing here"

    def __init__(self, part: Section[Any], run: Run) -> None:
        self._part, self._run = part, run
        super().__init__()

    def table(self) -> tuple[Any, Any]:
        return self._part.table, self._part.source

    @property
    def is_long(self) -> bool:
        return False

    @cached_property
    def search_columns(self) -> OpColumns:
        return replace(super().search_columns, name=row_texts(*self.table()))

    @property
    def shown_table(self) -> ShownTable:
        return replace(super().shown_table, page=f"program-{self._part.table.key}", run=self._run)

    @property
    def name(self) -> str | None:
        """Name of what is under the cursor."""
        table, source = self.table()
        return None if self.row is None else str(table.fields[0].read(source, [self.row])[0])


class ProgramScreen(ListScreen):
    """Shows one of the compiled programs of a place.

    Args:
        content: the programs and what their report holds, which of them and of its ops to show first, and the run, or
            the file, that they are of.
    """

    def __init__(
        self,
        content: tuple[tuple[Programs, Declared], Jump, Run],
        look: ScreenLook,
        **options: Any,  # noqa: ANN401 - those of every page
    ) -> None:
        super().__init__(content, look, **options)
        (self._page, declared), wanted, self._run = content
        self._first = _wanted(self._page.rows, wanted) or self._page.chosen
        self._op = wanted.name
        self._is_reading = self._first is not self._page.chosen
        self._take(self._page, declared)

    # --- what it shows

    def on_mount(self) -> None:
        super().on_mount()
        if self._is_reading:
            self._read(self._first)

    def _open(self, row: ProgramRow) -> None:
        self.at = next(iter(self.views))
        self._is_reading = row is not self._page.chosen
        if self._is_reading:
            self._read(row)

    @work(thread=True, exclusive=True, group="program", description="program")
    def _read(self, row: ProgramRow) -> None:
        page = program.of_program(self._page.rows, row, self._page.warnings, self._page.simulated)
        self.call_later(self._shown, page, program.declare(page, _asked(self._run)))

    def _shown(self, page: Programs, declared: Declared) -> None:
        self._is_reading = False
        self._take(page, declared)
        self.type_kept("program")
        self.redraw()

    def _take(self, page: Programs, declared: Declared) -> None:
        """Shows a program, at the op that was asked for."""
        self._page, self.declared = page, declared
        parts = [part for part in self.declared.parts if isinstance(part, Section)]
        parts.sort(key=lambda part: part.table.key == _MODULES)
        self.views = {
            part.table.key: ProgramTable(part, self._run)
            for part in parts
            if part.table.screen and (part.table.key != _MODULES or len(page.rows) > 1)
        }
        self.at = next(iter(self.views))
        ops = [op.name for op in page.chosen.ops]
        if self._op in ops:
            self.listed.point(ops.index(self._op))
        elif self._op and ops and not self._is_reading:
            self.flash = f"{printable(self._op)} is none of its ops: {BY_NAME['graph'].key} shows what it is part of."

    @property
    def listed(self) -> ProgramTable:
        return self.views[self.at]

    @property
    def opened(self) -> Mapping[str, Callable[[], object]]:
        is_first = self._page.chosen is self._first
        return {**({} if is_first else {"program": partial(self._open, self._first)}), **super().opened}

    @property
    def awaited(self) -> str:
        return "program" if self._is_reading else ""

    def waits(self, key: str) -> bool:
        return key != "q"

    # --- drawing

    def head_line(self, pen: Pen) -> AnyLine:
        row = self._page.chosen
        alike, origin = f"{row.count:,} alike" if row.count > 1 else "", "" if self._run.hosts else row.origin
        facts = (row.chip or "", alike, origin, self._run.name)
        return title_line(pen, " PROGRAM  ", row.name, facts, self._page.simulated)

    def draw_page(self, pen: Pen, height: int) -> Sequence[AnyLine]:
        if self._is_reading:
            return [pen.fit([]), pen.fit([("  Reading the compiled program", "title")])]
        most = 3 if height < _TALL else 6
        lines = pen.narrower(1).cut_after(self._said(pen.narrower(1)), most, BY_NAME["notes"].key)
        lines = [*map(pen.fit, lines), views_line(self._titles, self.at, self.listed.status(), pen)]
        self._above = len(lines)
        return [*lines, *self.listed.draw(pen, height - len(lines))]

    def _said(self, pen: Pen) -> list[Line]:
        """The program in a sentence, and what went wrong."""
        said = self.declared.statement, *self.declared.notes
        return [*pen.wrap_all(said, "text", [(" ", "text")]), *pen.notes(self._page.warnings, ())]

    @property
    def _titles(self) -> Mapping[str, str]:
        return {key: _TITLES.get(key, words_of_key(key).capitalize()) for key in self.views}

    def click_on(self, x: int, y: int, again: bool) -> str | None:
        if y >= self._above:
            return super().click_on(x, y - self._above, again)
        view = view_at(self.body.lines[y], self._titles, x) if y == self._above - 1 else None
        return None if view is None else str(1 + [*self.views].index(view))

    def meaning_lines(self, pen: Pen) -> list[Line]:
        return meanings(*self.listed.help_rows())(pen)

    @property
    def card_of_row(self) -> tuple[str, Lines, Lines] | None:
        table, source = self.listed.table()
        if self.listed.row is None:
            return None
        return "Program", partial(card_lines, table, source, self.listed.row), _meanings_of(table.chosen(table.json))

    # --- keys

    @property
    def keys(self) -> Sequence[KeyRow]:
        names = [*self.views]
        there = names[(names.index(self.at) + 1) % len(names)]
        views: dict[str, Callable[..., object]] = {
            "pick": self._pick,
            **dict.fromkeys(("view", "next_tab"), partial(self._turn, 1)),
            **dict.fromkeys(("previous_view", "previous_tab"), partial(self._turn, -1)),
        }
        across = {"right": partial(self._across, 1), "left": partial(self._across, -1)}
        name = self.listed.name
        opens = "open" if self.at == _MODULES else "details"
        words = "Show the program" if self.at == _MODULES else "All about the row: tiles, operands, what moves"
        figures = partial(self._tell, "Figures of the program", self._figure_lines, _meanings_of(REPORT.metrics))
        notes = partial(self._tell, "The program in full", self._said, None)
        return (
            KeyRow("view pick next_tab", _TITLES.get(there, there).lower(), "Ops, arrays, other programs", views, "v"),
            *ROW_KEYS,
            KeyRow("right left", title="Show other columns", acts=across),
            KeyRow("open", opens, words, {"open": self.enter}, rank=1),
            self.listed.sorting_key(),
            KeyRow("search", "filter", "Only rows with these words", {"search": self.begin_filter}, rank=2),
            *self._op_keys(),
            verb_row("edit", lambda: self.edit_source(self.listed.source_line)),
            *([] if name is None else [verb_row("copy", partial(self.copy, name))]),
            verb_row("figures", figures),
            verb_row("runs", partial(Jump, "runs")),
            verb_row("compare", self._compare, "Compare with another program, or another run or dump"),
            verb_row("notes", notes, "The sentence in full, and what went wrong"),
            *self.last_keys(),
        )

    def _op_keys(self) -> Sequence[KeyRow]:
        """Keys that lead to more on the op, or on what makes the array, under the cursor."""
        if self.at == _MODULES or self.listed.name is None:
            return ()
        row, op = self._page.chosen, re.sub(r"\[\d+\]$", "", self.listed.name)
        number = re.search(r"\((\d+)\)$", row.origin)
        left_out = () if self._run.hosts else _OF_RUNS
        rows = op_rows(op, int(number[1]) if number else None, ("graph", "program", *left_out))
        graph = Jump("graph", "op", op, module=row.origin)
        return (*rows, verb_row("graph", lambda: graph, short="graph", rank=3))

    def why_not(self, verb: Verb) -> str:
        if verb.name in _OF_RUNS and not self._run.hosts:
            return "It has not run: a profile of a run has its times."
        return "This is the program." if verb.name == "program" else verb.absent

    def _pick(self, number: int) -> str:
        names = [*self.views]
        if number > len(names):
            return BY_NAME["pick"].absent
        said, self.at = "It is already shown." if self.at == names[number - 1] else "", names[number - 1]
        return said

    @property
    def named(self) -> Named:  # type: ignore[override]
        """The views too, by what they are about."""
        texts = {key: (f"Show {_TITLES.get(key, key).lower()}", _WORDS.get(key, "")) for key in self.views}

        def found(is_wanted: Callable[[str], bool]) -> Iterator[ChoiceRow[Act]]:
            for key, (title, words) in texts.items():
                if is_wanted(f"{title} {words}".casefold()):
                    yield ChoiceRow((title, "v"), partial(setattr, self, "at", key), synonyms=words)
            yield from sort_rows(self.listed, is_wanted)

        return found

    def _turn(self, by: int) -> None:
        names = [*self.views]
        self.at = names[(names.index(self.at) + by) % len(names)]

    def _across(self, by: int) -> str:
        before = self.listed.shift
        self.listed.move(by, 0)
        return BY_NAME["left"].absent if self.listed.shift == before else ""

    def enter(self) -> None:
        if self.at == _MODULES and self.listed.row is not None:
            self._op = ""
            self._open(self._page.rows[self.listed.row])
        else:
            super().enter()

    def _tell(self, title: str, lines: Lines, about: Lines | None) -> None:
        self.open(TextPopup(self.look, title, lines, about))

    def _figure_lines(self, pen: Pen) -> list[Line]:
        return pen.labelled(self.declared.metrics())

    def _compare(self) -> Jump | None:
        """Compares with another program of the same place, which is chosen; without one with another run or file."""
        shown = self._page.chosen
        others = [row for row in self._page.rows if row is not shown]
        if not others:
            return Jump("compare")
        rows = [ChoiceRow((row.origin, row.name), row) for row in others]
        listed = ChoiceList(("of", "program"), rows, lambda row: self._judge(row, shown), _ABOUT)
        self.open(ListPopup(self.look, f"Compare {printable(shown.origin)} with", listed))
        return None

    @work(thread=True, exclusive=True, group="compare", description="compare")
    def _judge(self, before: ProgramRow, after: ProgramRow) -> None:
        one, other = ([] if row.compiled is None else [row.compiled] for row in (before, after))
        made = compare_programs((before.origin, after.origin), one, other)
        lines = partial(command_named("diff-program").load_report().lines, made)
        self.call_later(self._tell, "What changed", lines, None)

    def words_for(self, begun: str) -> Sequence[str]:
        return self.listed.words_for(begun)

    def leave_for(self, jump: Jump) -> str:
        """Goes to a page of the run; to a graph of what is in files at once, which is read already."""
        row = self._page.chosen
        if jump.tab != "graph" or self._run.hosts or row.module is None:
            return super().leave_for(jump)
        file = HloFile(row.origin.removesuffix(".txt"), row.name, None, 0, "")
        source = ModuleSource(row.origin, HloModules({0: (row.name, lambda _: row.module or "")}, {0: file}))
        wanted = replace(jump, module="", program=None)
        content = Graphs(CompiledModules([source]), None), wanted, self._run
        screen = load_above("graph")(content, self.look, environ=self.environ)
        screen.lead = self.lead
        self.app.push_screen(screen)
        return ""


def _wanted(rows: Sequence[ProgramRow], jump: Jump) -> ProgramRow | None:
    """The program that a jump leads to: by its id, or by the file that some stage of it is in."""
    stem = jump.module.partition(".after_")[0]

    def is_meant(origin: str) -> bool:
        is_file = bool(stem) and origin.partition(".after_")[0] == stem
        return is_file or (jump.program is not None and origin.endswith(f"({jump.program})"))

    return next((row for row in rows if any(map(is_meant, row.origins))), None)
