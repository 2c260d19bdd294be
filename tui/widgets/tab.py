"""What every tab can do, so that one set of keys works on all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from textual.message import Message

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import completions_of
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.terminal.grammar import BY_NAME, FORWARD, Verb, verbs_of
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import HELPS, TABS_KEY, KeyRow, Searching, State, motion_keys, verb_row
from tpuprof.tui.widgets.line_canvas import LineCanvas
from tpuprof.tui.widgets.popup import Popup, meanings

if TYPE_CHECKING:
    from tpuprof.tui.report.page import ShownPage
    from tpuprof.tui.report.shared.exporting import ShownTable

Payload: TypeAlias = Any  # a part of a page: each tab knows what its own parts are

UNREAD = "Nothing is read here; r looks again."


@dataclass(frozen=True, slots=True)
class Jump:
    """Where another tab has more on what is under the cursor.

    Attributes:
        tab: name of the tab.
        what, name: what to go to there, such as "op" or "step", and its name; empty where the tab itself is all.
        program: id of the op's program; None where that is not known.
        module: the program's name, or the file that it is in, where that identifies it instead.
        run: path of the run; empty for the one that is shown.
    """

    tab: str
    what: str = ""
    name: str = ""
    program: int | None = None
    module: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class FilterWanted:
    """What a key returns to have the text that is typed next filter the tab (`Tab.filter`)."""


def jump_row(verb: str, jump: Jump | None, short: str = "", rank: int = 0) -> list[KeyRow]:
    """The row of a key that leads to another tab, or to the graph, which every footer names; none without a jump."""
    if verb == "graph":
        short, rank = "graph", HELPS
    return [] if jump is None else [verb_row(verb, lambda: jump, short=short, rank=rank)]


_TABS = {"there": "op-profile", "timeline": "timeline", "graph": "graph", "program": "program", "buffers": "memory"}
"""What has more on an op, by the verb that leads there."""


def op_rows(op: str | None, program: int | None = None, but: Sequence[str] = (), run: str = "") -> list[KeyRow]:
    """The rows of the keys that lead to more on an op, `but` some of these verbs; none without an op."""
    tabs = _TABS.items() if op is not None else ()
    jumps = ((verb, Jump(tab, "op", op or "", program, run=run)) for verb, tab in tabs if verb not in but)
    return [row for verb, jump in jumps for row in jump_row(verb, jump)]


class Tab(LineCanvas):
    """One page of the app. The app calls these on the shown tab; a tab without a cursor only scrolls."""

    MEANINGS: ClassVar[Mapping[str, str]] = {}  # what the figures are called and mean, for help
    CARD: ClassVar[tuple[tuple[str, str], ...]] = ()
    """What the figures on the card that Enter opens are called and mean, for its help."""
    NAME_CELLS: ClassVar[int] = 13  # cells of what they are called
    card_is_open: bool = False  # a popup shows it in full, so that its place on the page stays blank
    _page: Any = None
    _state: State = Searching("")  # what it shows, and what is going on while that is not there

    def cover_card(self, is_open: bool) -> None:
        if self.card_is_open != is_open and (self.display or not is_open):
            self.card_is_open = is_open
            self.redraw()

    @property
    def meanings(self) -> Iterable[tuple[str, str]]:
        return self.MEANINGS.items()

    @property
    def keys(self) -> Sequence[KeyRow]:
        """The keys that it takes now, before those of all tabs: for footer, help and command list, and to be pressed.

        What a key does returns a sentence, a `Jump`, `FilterWanted`, or nothing. Rows of motions do nothing
        themselves: the app calls `motions` and `enter`.
        """
        return (TABS_KEY, *motion_keys())

    def do(self, act: Callable[[], object]) -> object:
        """Does what one of its keys does, and draws what that changed; returns what it returned."""
        answer = act()
        if not isinstance(answer, Jump):
            self.redraw()
        return answer

    @property
    def motions(self) -> Mapping[str, Callable[[], str | None]]:
        """What the verbs that move the cursor do; each says why if nothing moved."""
        moves: Mapping[str, Callable[[], object]] = {
            "down": partial(self.move, 0, 1),
            "up": partial(self.move, 0, -1),
            "right": partial(self.move, 1, 0),
            "left": partial(self.move, -1, 0),
            "first": partial(self.ends, -1),
            "last": partial(self.ends, 1),
            "page_down": partial(self.page, 1.0),
            "page_up": partial(self.page, -1.0),
            "half_down": partial(self.page, 0.5),
            "half_up": partial(self.page, -0.5),
        }
        return {verb: partial(self._motion, verb, move) for verb, move in moves.items()}

    def _motion(self, verb: str, move: Callable[[], object]) -> str | None:
        before = self.lines, self.scroll_offset
        move()
        return self._absent(BY_NAME[verb]) if (self.lines, self.scroll_offset) == before else None

    def _absent(self, verb: Verb) -> str:
        return verb.absent if self.has_page else UNREAD

    def why_nothing(self, key: str) -> str:
        """Why a key of the grammar does nothing now: in its own words, else in those of the grammar."""
        verbs = verbs_of(key)
        names = (name for verb in verbs for name in (verb.name, FORWARD.get(verb.name)) if name)
        return next(filter(None, (*map(self.why_not, names), *map(self._absent, verbs))), "")

    @property
    def has_page(self) -> bool:
        return self._page is not None

    @property
    def is_ready(self) -> bool:
        """Whether what it shows takes keys; what is typed before that waits for it."""
        return self.has_page

    @property
    def view_name(self) -> str:
        """Name of the view that is shown; what is searched for is of one view."""
        return ""

    @property
    def views(self) -> Mapping[str, str]:
        """Titles of its views by name, in the order of their key; none where there is only one."""
        return {}

    @property
    def shown_view(self) -> str:
        """Name of that among them which is shown."""
        return self.view_name

    def next_view(self, by: int = 1) -> str:
        names = [*self.views]
        return names[(names.index(self.shown_view) + by) % len(names)]

    def view_keys(self, title: str, short: str = "", rank: int = 0) -> tuple[KeyRow, ...]:
        """The keys of the next view, which help calls by `title` and the footer `short`, and of the one before."""
        view, previous = (partial(self.go_to, self.next_view(by), "") for by in (1, -1))
        return verb_row("view", view, title, short, rank=rank), verb_row("previous_view", previous)

    @property
    def names(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """Names to be found on it, by the tab that shows what is called so and what that is (`Jump`)."""
        return {}

    @property
    def has_matches(self) -> bool:
        """Whether there is more than what was typed to step through, such as the runs of an op."""
        return False

    @property
    def opened(self) -> Mapping[str, Callable[[], object]]:
        """What is open on it besides a search, such as a group or a mark, by its name: how to close it."""
        return {}

    @property
    def source(self) -> str | None:
        """The source line of what is under the cursor, ``path:line``; None where it knows none."""
        return None

    def source_of(self, op: str) -> str:
        """The source line of an op that it lists; empty where it knows none."""
        return ""

    @property
    def op_elsewhere(self) -> str | None:
        """Name of the op under the cursor, whose source line the ops tab knows."""
        return None

    @property
    def shown_table(self) -> ShownTable | ShownPage | None:
        """The table or the page as it shows it; None where it shows none."""
        return None

    @property
    def syntax(self) -> str:
        return ""

    @property
    def searched(self) -> Sequence[str]:
        """What a search by words looks at, a text each for what it can find."""
        return ()

    def words_for(self, begun: str) -> Sequence[str]:
        """What a word that is begun in a search may become."""
        return completions_of(begun, self.searched)

    def why_not(self, verb: str) -> str:
        """Why a verb does nothing here now, where there is more to say than the grammar has."""
        return ""

    @property
    def is_whole(self) -> bool:
        return self.has_page

    def show(self, part: str, payload: Payload) -> str | None:
        """Shows a part of its page, as `load` published it; what came of it, or None to leave what was said before."""

    @property
    def wanted(self) -> str:
        """Name of a page that one of its views shows and that is to be read now; empty where there is none."""
        return ""

    @property
    def wanted_host(self) -> str | None:
        """Of which host that page is to be read; None for the one that is shown, or all."""
        return None

    def ask_for_page(self) -> None:
        """Asks for the page that is wanted, if any is."""
        if self.wanted:
            self.post_message(PageWanted())

    def show_failure(self, page: str, error: ProfileError) -> None:
        """Shows in the view of that page why it could not be read."""

    def show_state(self, state: State) -> None:
        self._page, self._state = None, state
        self.redraw()

    @property
    def selection(self) -> str | None:
        return None

    def move(self, across: int, down: int) -> None:
        self.scroll_lines_to(self.scroll_offset.y + down)

    def ends(self, direction: int) -> None:
        """To the first (-1) or last (1) of what the cursor moves over."""
        self.move(0, direction * (1 << 40))

    def page(self, screens: float) -> None:
        """Scrolls or moves the cursor `screens` screens down."""
        self.scroll_lines_to(self.scroll_offset.y + round(screens * self.size.height))

    def enter(self) -> str:
        """One level deeper: empty where that is done, "details" where `details` are to be opened; else why not."""
        return "details"

    def search(self, text: str) -> str:
        """Looks for a text and moves to its first match; says what was found. An empty text ends the search."""
        return ""

    def end_search(self) -> None:
        self.search("")

    def filter(self, text: str) -> str:
        """Shows only what has a text in its name, for tabs with a key for that; says how much that is."""
        return ""

    @property
    def found_list(self) -> Popup | None:
        """A list of what a search finds, which opens where Enter ends it; None where what it finds shows itself."""
        return None

    def next_match(self, direction: int) -> str:
        """Moves to the next (1) or previous (-1) match and says which one it is."""
        return ""

    def go_to(self, what: str, name: str, program: int | None = None) -> str:
        """Goes to what a `Jump` leads to, or to a view of that name, now or when it is read; says what is not there."""
        return ""

    def rule_place(self, width: int) -> tuple[int, int] | None:
        """Column and line from which on a rule parts a list from what stands beside it; None without one."""
        return None

    def unknown_lines(self, pen: Pen) -> list[Line]:
        return []

    @property
    def details(self) -> tuple[str, Callable[[Pen], list[Line]]] | None:
        """Title and text of what Enter opens on what is under the cursor."""
        return None

    def verdict_lines(self, pen: Pen) -> list[Line]:
        """What it says of the program, in full, for the notes; nothing where the overview's verdict stands."""
        return []

    @property
    def note(self) -> str:
        return ""

    @property
    def search_failed(self) -> bool:
        return False

    def detail_line(self, width: int) -> AnyLine:
        """One line on what is under the cursor, where there is room for it."""
        return Pen(width, self.look.glyphs).fit([])

    def column_help(self) -> Sequence[tuple[str, str]]:
        """What the columns of its table mean: titles and sentences."""
        return ()

    def meaning_lines(self, pen: Pen) -> list[Line]:
        return meanings(*self.column_help(), *self.meanings, cells=self.NAME_CELLS)(pen)

    def card_help_lines(self, pen: Pen) -> list[Line]:
        """What the card that Enter opens is, and what its numbers mean: those of the page mean the same there."""
        words = "Everything in the profile about the row under the cursor. Unknown is n/a, never 0."
        lines = meanings(("", words), *self.CARD)(pen)
        return [*lines, pen.fit([]), *self.meaning_lines(pen)]


@dataclass()
class OpenPopup(Message):
    """Something is to be opened above the page."""

    popup: Popup


@dataclass()
class OpenScreen(Message):
    """A screen of the registry of pages is to be opened, which shows `content`."""

    name: str
    content: object


@dataclass()
class PageWanted(Message):
    """What a tab shows now is not read yet (`Tab.wanted`)."""


@dataclass()
class CursorMoved(Message):
    """Something else than a key has moved the cursor, or has brought another page; `said` is what to say of it."""

    said: str = ""


@dataclass()
class Yanked(Message):
    """A text was copied: to tmux too, and to a file (`where`: its path, or why not)."""

    text: str
    in_tmux: bool
    where: str
