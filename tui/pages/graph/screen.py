"""The screen of the graph: one walks from op to op, into computations and out again, and finds the way back."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from textual import work

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.folders import state_folder
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import printable, said_of
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.hlo.printing import instruction_line
from tpuprof.parsers.pages.graph.model import CalledComputation
from tpuprof.parsers.pages.graph.neighbourhood import Neighbourhood, Side, neighbourhood
from tpuprof.parsers.pages.graph.programs import Program, Programs
from tpuprof.tui.draw.format import count
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.pages import report_named
from tpuprof.tui.pages.graph import drawing, export
from tpuprof.tui.pages.graph.drawing import DrawnGraph, GraphView, centre_lines, path_lines
from tpuprof.tui.report.declared import drawn_by
from tpuprof.tui.report.output import Produce
from tpuprof.tui.report.page import ShownPage
from tpuprof.tui.report.shared.exporting import run_of_file
from tpuprof.tui.terminal.grammar import BY_NAME, Verb
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import HELPS, LAST, ROW_KEYS, KeyRow, title_line
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.lists.popup import ChoiceList, ChoiceRow, ListPopup
from tpuprof.tui.widgets.lists.screen import PageScreen
from tpuprof.tui.widgets.popup import TextPopup, meanings
from tpuprof.tui.widgets.tab import Jump, jump_row, op_rows

_MOST_NAME = 60
_GRAPH = "graph"
_rows = drawn_by("tpuprof.tui.pages.graph.report:written")
_MEANINGS = meanings(
    (
        "operands",
        "the op's inputs; users: ops that take its result. Operands are in their order, users in the "
        "order of the schedule.",
    ),
    (
        "< >",
        "past a tuple, an element of one, a bitcast, a loop or a call: the op that produces, or uses, the "
        "value itself.",
    ),
    ("%", "self time of all its runs, of the cores' whole time; if that is almost nothing, or unknown, its size."),
    ("!", "a copy that only changes the layout: its array in another order of dimensions, or in other tiles."),
    ("order", "no value passes: one has to run before the other (a control dependency)."),
    ("waits for", "the op that computes an operand and runs last in the schedule. A done op's time is waiting."),
    ("in the loop", "users in the body of a loop that the op itself is not in."),
    ("alone", "why it is in no fusion, as far as its neighbours show: the compiler does not record its reasons."),
    ("size", "size of the result in memory, with the padding of its tiles; for a start op, of its done op's result."),
    ("path", "the computations from the entry computation to the op's; been: where you have been, Esc goes back."),
)
_WRITING = (
    "The end of the name chooses the format: .csv, .json, .md the op and its neighbours as `report graph` writes them; "
    ".svg, .html the screen; .txt the text of its computation; .hlo the text of the module; .pb the module as an "
    "HloProto.",
)
_ABOUT_WRITING = meanings(
    ("", "The file is for you alone (0600). Nothing is written among profiles, or over an existing file."),
    ("text", "is for reading: it leaves out what this program does not decode, and large constants."),
    (".pb", "is the whole proto; for a dump of texts, it contains what the texts say."),
)
_ABOUT_CALLED = meanings(("", "The computations that the op calls. Choose one to go to its result."))


class GraphScreen(PageScreen):
    """Shows an op between its operands and its users, or in the text of its computation.

    Args:
        content: the modules of a run; where to begin: the op, as another tab calls it, and its program; and the run,
            among whose files nothing is written.

    Attributes:
        here: the op in the middle; None until its module is read.
        trail: where one has been, and where the cursors were.
        problem: why there is no graph.
    """

    def __init__(
        self,
        content: tuple[Programs, Jump, Run | None],
        look: ScreenLook,
        **options: Any,  # noqa: ANN401 - those of every page
    ) -> None:
        super().__init__(content, look, **options)
        self._programs, self._wanted, self._run = content
        self.view: GraphView = GraphView()
        self.drawn: DrawnGraph | None = None
        self.here: Neighbourhood | None = None
        self.trail: list[tuple[Neighbourhood, GraphView]] = []
        self.problem: ProfileError | None = None
        self._matches: tuple[int, ...] = ()

    # --- opening

    def on_mount(self) -> None:
        super().on_mount()
        self._read()

    @work(thread=True, exclusive=True, group="graph", description="graph")
    def _read(self) -> None:
        wanted = self._wanted
        try:
            found = self._programs.find(wanted.name or None, wanted.program, wanted.module or None)
        except ProfileError as error:
            self.call_later(self._failed, error)
            return
        self.call_later(self._opened, found.program, found.row)
        found.program.graph.prepare()  # for a search, while the user looks

    def _opened(self, program: Program, row: int) -> None:
        self._stand_on(program, row)
        self.type_kept(_GRAPH)
        self.redraw()

    def _failed(self, problem: ProfileError) -> None:
        self.problem = problem
        self.ahead.forget()
        self.redraw()

    # --- drawing

    @property
    def rows(self) -> Sequence[int]:
        if self.here is None:
            return ()
        if self.view.is_text:
            return range(drawing.text_length(self.here))
        return range(len(self.here.rows(self.view.side, self.view.is_direct)))

    def head_line(self, pen: Pen) -> AnyLine:
        if self.here is None:
            return title_line(pen, " GRAPH  ", self._wanted.name, ())
        op, program = self.here.op, self.here.program
        return title_line(pen, " GRAPH  ", op.name, (op.opcode, str(program.label.name)), program.is_simulated)

    def draw_page(self, pen: Pen, height: int) -> Sequence[AnyLine]:
        if self.here is None:
            return self._without_graph(pen)
        trail = [here.op.name for here, _ in self.trail]
        made = drawing.compose(self.here, trail, self.view, pen, height)
        self.drawn = made
        self.view = self.view.scrolled(made.top)
        return made.lines

    def _without_graph(self, pen: Pen) -> list[Line]:
        blank = pen.fit([])
        if self.problem is None:
            return [blank, pen.fit([("  Reading the compiled module", "title")])]
        lines = [blank, pen.fit([("  No graph to show", "title")]), blank]
        lines += pen.narrower(2).wrap(self.problem.sentence, "text", [("  ", "text")])
        if self.problem.hint:
            lines += [blank, *pen.narrower(2).wrap(self.problem.hint, "text", [("  try: ", "key")])]
        return lines

    def meaning_lines(self, pen: Pen) -> list[Line]:
        return [pen.fit([("What this is", "title")]), *_MEANINGS(pen)]

    @property
    def keys(self) -> Sequence[KeyRow]:
        colors, palette, _, about, _, leave = self.last_keys("Back to the tab")
        table = (*self._moving_keys(), *self._finding_keys(), colors, palette, about, leave)
        silent = [leave, about] if self.view.is_text else [leave]
        if self.here is None:
            back = KeyRow("back", title="Back to the tab", acts={"back": self.leave})
            return [colors, palette, replace(about, short=""), back, leave]
        return [replace(key, short="") if key in silent else key for key in table]

    def why_not(self, verb: Verb) -> str:
        if self.here is None:
            return "There is no graph here: q goes back."
        op = self.here.op
        if verb.name in ("there", "timeline") and op.op is None:
            return f"No tab has its time: {op.why_untimed}."
        return "This is its graph." if verb.name == "graph" else verb.absent

    @property
    def awaited(self) -> str:
        return _GRAPH if self.here is None and self.problem is None else ""

    def waits(self, key: str) -> bool:
        return key != "q"

    def _moving_keys(self) -> Sequence[KeyRow]:
        is_text, here = self.view.is_text, self.here
        left, right = partial(self._across, -1), partial(self._across, 1)
        across = {"left": left, "right": right}
        calls = bool(here and here.called and not is_text)
        is_called = bool(here and here.path[-1].caller is not None and not is_text)
        calling = {"follow": self._go_in, "follow_back": self._go_out}
        inward = "Into what the op calls (fusion, loop, call); out to its caller"
        operands = "Operands, users; again: go to the op under the cursor"
        return (
            KeyRow("left right", "shift" if is_text else "side", operands, across, rank=is_text),
            KeyRow("down up", "line" if is_text else "op", "Next, previous op of the side, or line of the text"),
            ROW_KEYS[1],
            KeyRow("open", "go there" if is_text else "go", "Go to the op under the cursor", {"open": self.enter}),
            KeyRow("back", "back", "Back along the trail, at last to the tab", {"back": self.back}, rank=LAST),
            KeyRow("follow follow_back", "into" if calls else "", inward, calling, ">"),
            KeyRow("follow_back", "out" if is_called else ""),
        )

    def _finding_keys(self) -> Sequence[KeyRow]:
        view, source = self.view, self.here.op.source if self.here is not None else None
        behind = "" if view.is_text else "behind" if view.is_direct else "direct"
        further, backward = partial(self._next_match, 1), partial(self._next_match, -1)
        find: dict[str, Callable[[], object]] = {
            **{"search": self.begin_filter, "next_match": further, "previous_match": backward}
        }
        found = "Find by name, opcode or framework op; next, previous"
        written = "Write rows, text (txt, hlo), proto"
        op, number, program = None, None, None
        if self.here is not None:
            op, label = self.here.op, self.here.program.label
            number = label.program_id
            program = Jump("program", "op", op.name, number, label.origin if number is None else "")
        timeless = () if op is None or op.op is not None else ("there", "timeline")
        origins = "Real producers and users past tuples, loops and calls; or direct ones"
        text = "The computation's text with the op's line, and back"
        return (
            KeyRow("exclude", behind, origins, {"exclude": self._look_behind}, rank=HELPS + 1),
            KeyRow("search next_match previous_match", "" if view.is_text else "find", found, find, "/", HELPS + 2),
            KeyRow("next_match", "next" if self._matches and not view.is_text else ""),
            KeyRow("view", "graph" if view.is_text else "text", text, {"view": self._swap_text}, rank=view.is_text),
            KeyRow("figures", title="All that is known of the op", acts={"figures": self._tell_all}),
            *op_rows(None if op is None else op.name, number, but=("graph", "program", *timeless)),
            *jump_row("program", program),
            KeyRow("edit", title=BY_NAME["edit"].meaning, acts={"edit": partial(self.edit_source, source)}),
            KeyRow("export", "write", written, {"export": self._ask_export}, rank=HELPS + 3),
            KeyRow("copy", title="Copy the op's name; in the text its line", acts={"copy": self._copy}),
        )

    # --- walking

    def _stand_on(self, program: Program, row: int) -> None:
        self.here = neighbourhood(program, row)
        text = Listing(drawing.line_of(self.here))
        self.view = replace(self.view, operands=Listing(), users=Listing(), text=text, shift=0)

    def walk(self, row: int) -> None:
        """Goes to an instruction; Escape leads back."""
        if self.here is not None and row != self.here.op.row:
            self.trail.append((self.here, self.view))
            self._stand_on(self.here.program, row)

    def enter(self) -> None:
        here, view = self.here, self.view
        if here is None:
            return
        if not view.is_text:
            rows = here.rows(view.side, view.is_direct)
            if view.listing.cursor < len(rows):
                self.walk(rows[view.listing.cursor])
            else:
                self.flash = f"It has no {view.side}."
            return
        row = drawing.row_at(here, view.text.cursor)
        if row is None:
            self.flash = "There is no op on this line."
        else:
            self.walk(row)
            self.view = replace(self.view, is_text=False)

    def _across(self, by: int) -> None:
        """To the other column; from the outer one on, to the op under the cursor. In the text: other cells of it."""
        view = self.view
        if view.is_text:
            self.view = replace(view, shift=max(0, view.shift + 16 * by))
            return
        side: Side = "operands" if by < 0 else "users"
        if view.side == side:
            self.enter()
        else:
            self.view = replace(view, side=side)

    @property
    def place_of_cursor(self) -> object:
        return self.view

    def move(self, rows: int, screens: float) -> None:
        made = self.drawn
        room = 1 if made is None else max(1, made.room // made.entry[self.view.number])
        by = rows + round(screens * room)
        self.point(self.view.listing.cursor + by)

    def point(self, row: int) -> None:
        self.view = self.view.with_listing(self.view.listing.at(row, len(self.rows)))

    def _look_behind(self) -> None:
        """Shows who makes the operands and uses the result, behind tuples, loops and calls; or the neighbours again."""
        is_direct = not self.view.is_direct
        self.view = replace(self.view, is_direct=is_direct, operands=Listing(), users=Listing(), is_text=False)
        behind = "Real producers and users, past tuples, bitcasts, loops and calls."
        self.flash = "Operands and users themselves." if is_direct else behind

    def _go_in(self) -> None:
        """Goes into what the op calls: to what that returns."""
        called = [one for one in self.here.called if one.root is not None] if self.here is not None else []
        if not called:
            self.flash = "It calls no computation; fusions, loops and calls do."
        elif len(called) == 1:
            self._into(called[0])
        else:
            choices = [ChoiceRow((one.role, one.name, count(one.instructions)), one) for one in called]
            listed = ChoiceList(("as", "computation", "instructions"), choices, self._into, _ABOUT_CALLED)
            self.open(ListPopup(self.look, "Into which computation", listed))

    def _into(self, one: CalledComputation) -> None:
        if one.root is not None:
            self.walk(one.root)
            self.redraw()

    def _go_out(self) -> None:
        """Goes out to the instruction that calls the op's computation."""
        caller = self.here.path[-1].caller_row if self.here is not None else None
        if caller is None:
            self.flash = "It is in the program's entry computation, which nothing calls."
        else:
            self.walk(caller)

    def _swap_text(self) -> None:
        """The text of the computation with the op's line, or the columns again."""
        if self.here is not None:
            text = replace(self.view.text, cursor=drawing.line_of(self.here))
            self.view = replace(self.view, is_text=not self.view.is_text, text=text, shift=0)

    def back(self) -> None:
        if self.view.is_text:
            self._swap_text()
        elif self.trail:
            self.here, self.view = self.trail.pop()
        else:
            self.leave()

    # --- finding

    def filter(self, words: str) -> None:
        """Finds instructions by name, opcode or framework op, and stands on the first."""
        self.view = replace(self.view, words=words)
        found = self.here.program.graph.find(words.strip()) if self.here is not None else ()
        self._matches = tuple(int(row) for row in found)

    def search(self, text: str) -> str:
        self.filter(text)
        return text and said_of(text, f"{count(len(self._matches))} found", len(self._matches), lambda: self.searched)

    @property
    def searched(self) -> Sequence[str]:
        return self.here.program.graph.searched_texts if self.here is not None else ()

    def end_search(self) -> None:
        if self.view.words:
            self.filter("")

    def begin_filter(self) -> None:
        self.open_prompt("", "")

    def keep_search(self, text: str) -> bool:
        if text and not self._matches:
            return False
        if text:
            self._next_match(1)
        return True

    def _next_match(self, by: int) -> None:
        matches = self._matches
        if not matches or self.here is None:
            self.flash = "Nothing in the module matches." if self.view.words else BY_NAME["next_match"].absent
            return
        own = self.here.op.row
        later = [at for at, row in enumerate(matches) if (row > own if by > 0 else row < own)]
        at = (later[0] if by > 0 else later[-1]) if later else (0 if by > 0 else len(matches) - 1)
        self.walk(matches[at])
        self.flash = f"{count(at + 1)} of {count(len(matches))} with {self.view.words}"

    # --- other pages, files

    def _copy(self) -> None:
        if self.here is not None:
            line = drawing.text_line(self.here, self.view.text.cursor).strip()
            self.copy(line if self.view.is_text else self.here.op.name)

    def _tell_all(self) -> None:
        if self.here is not None:
            lines = partial(_all_lines, self.here)
            self.open(TextPopup(self.look, printable(self.here.op.name), lines, _MEANINGS))

    def _ask_export(self) -> None:
        if self.here is None:
            return
        here, programs = self.here, self._programs
        name = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in here.op.name)
        path = os.path.join(state_folder(), "graph", f"{name[:_MOST_NAME]}.{'txt' if self.view.is_text else 'csv'}")
        run = self._run or run_of_file(str(here.program.label), here.program.label.origin)
        page = ShownPage("graph", partial(_rows, here, programs.hosts, programs.warnings))
        own = {end: partial(_made, kind, here.program, here.op.row) for end, kind in export.ENDINGS.items()}
        made = self.export_of("graph", page, run, report_of=report_named)
        made = replace(made, path=path, kinds={**made.kinds, **own}, run=self._run, is_private=True)
        self.ask_export(made, _WRITING, _ABOUT_WRITING)

    def click_on(self, x: int, y: int, again: bool) -> str | None:
        made = self.drawn
        if made is None or not 0 <= y - made.first_row_line < made.room:
            return None
        if self.view.is_text:
            return self._click_on(made.top[0] + y - made.first_row_line, again, self.view.text.cursor)
        is_left = x < made.widths[0] + 1
        if is_left or x >= made.widths[0] + made.widths[1] + 2 * drawing.GAP - 1:
            side: Side = "operands" if is_left else "users"
            was = self.view.listing.cursor if self.view.side == side else -1
            self.view = replace(self.view, side=side)
            number = self.view.number
            at = made.top[number] + (y - made.first_row_line) // made.entry[number]
            return self._click_on(at, again, was)
        return None

    def _click_on(self, at: int, again: bool, was: int) -> str | None:
        if at >= len(self.rows):
            return None
        if again or at == was:
            return "enter"
        self.point(at)
        return ""


def _made(kind: str, program: Program, row: int) -> tuple[Produce, str]:
    return export.made(kind, program, row), ""


def _all_lines(here: Neighbourhood, pen: Pen) -> list[Line]:
    """Everything that is known of an op."""
    blank = pen.fit([])
    answers = pen.wrap_all(here.answers, "text")
    about = [*answers, blank, *centre_lines(here, pen, is_whole=True), blank, *path_lines(here, (), pen)]
    return [*about, blank, *pen.wrap(instruction_line(here.program.graph, here.op.row), "text")]
