"""The grammar of keys: each verb has one key on every page, and each key one verb. Every table of keys is made from it.

A key is written as people write it: a sign, or such as ``ctrl+d``, ``PgDn``, ``space``. What keys have
opened, and what was typed ahead of a page, is kept here too.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from tpuprof.parsers.base.record import dataclass

_WRITTEN = {"PgDn": "pagedown", "PgUp": "pageup", "Esc": "escape", "Enter": "enter", "Home": "home", "End": "end"}
_SIGNS = {"/": "slash", "+": "plus", "-": "minus"}
"""Signs that Textual calls otherwise than Unicode does."""


@dataclass(frozen=True, slots=True)
class Verb:
    """Something that a key does, wherever it does something.

    Attributes:
        name: what tables of keys call it.
        keys: its key; more than one only for a reason (`why_keys`).
        meaning: what it does, as a sentence without its full stop.
        absent: what the last line says where there is nothing for it to do.
        why_keys: why it has more than one key.
        page: the one page that has it; empty for a verb of all pages.
        why_shared: why its key is another verb's elsewhere.
        words: synonyms by which ctrl+p finds it.
    """

    name: str
    keys: tuple[str, ...]
    meaning: str
    absent: str
    why_keys: str = ""
    page: str = ""
    why_shared: str = ""
    words: str = ""

    @property
    def key(self) -> str:
        return self.keys[0]

    @property
    def typed(self) -> tuple[str, ...]:
        return tuple(map(typed_name, self.keys))


def typed_name(key: str) -> str:
    """What Textual calls a key that people write: ``pagedown`` for ``PgDn``, ``full_stop`` for ``.``."""
    if len(key) > 1:
        return _WRITTEN.get(key, key.lower())
    if key.isalnum():
        return key
    return _SIGNS.get(key) or unicodedata.name(key).lower().replace("-", "_").replace(" ", "_")


_ARROWS = "Letters for hands that stay on the keyboard, arrows for all others."
_WASD = "The zoom and pan keys of XProf's trace viewer and of Perfetto, which hands know."
_WAY_OUT = "The way out stays, whatever is open and whatever terminals keep for themselves."
_DIGITS, _ONE_EACH = tuple("123456789"), "One verb for each number."
_NO_ARRAYS = "No *.prof is beside it: jax.profiler.save_device_memory_profile() makes one."
_NO_OP = "There is no op under the cursor."
_NO_PROGRAM, _OF_PROGRAMS = "There is no compiled program here.", "traffic fits roof dump tiles hlo moves"
_END = "The cursor is at the end."
_ZOOMS, _MARKED = "It zooms the timeline; notes are W.", "Intervals are marked on the timeline."
_TRACKS, _RELATIVE = "Tracks are on the timeline.", "Times are relative on the timeline."
_HOSTS = "Hosts stand below each other on the timeline; H lists them."
_TYPED = "While letters are typed into a list's filter, letters can't move the cursor."

MOTIONS: tuple[Verb, ...] = (
    Verb("down", ("j", "down"), "Next row", "This is the last row.", _ARROWS),
    Verb("up", ("k", "up"), "Previous row", "This is the first row.", _ARROWS),
    Verb("left", ("h", "left"), "Left, close; the previous step, core or point", "Nothing is to the left.", _ARROWS),
    Verb("right", ("l", "right"), "Right, open; the next step, core or point", "Nothing is to the right.", _ARROWS),
    Verb("first", ("g", "Home"), "First row", "This is the first.", _ARROWS),
    Verb("last", ("G", "End"), "Last row", "This is the last.", _ARROWS),
    Verb("page_down", ("PgDn",), "One screen down", _END),
    Verb("page_up", ("PgUp",), "One screen up", _END),
    Verb("half_down", ("ctrl+d",), "Half a screen down", _END),
    Verb("half_up", ("ctrl+u",), "Half a screen up", _END),
)

GOING: tuple[Verb, ...] = (
    Verb("open", ("Enter",), "Open what is under the cursor", "There is nothing to open here.", words="details expand"),
    Verb("back", ("Esc",), "Close what was opened last", "Nothing is open; q quits.", words="close undo"),
    Verb("pick", _DIGITS, "The tab, view or advice of that number", "Nothing here has that number.", _ONE_EACH),
    Verb("next_tab", ("Tab",), "Next tab", "There are no tabs here."),
    Verb("previous_tab", ("shift+Tab",), "Previous tab", "There are no tabs here."),
    Verb("view", ("v",), "Next view of the page", "This page has only one view."),
    Verb("previous_view", ("V",), "Previous view", "This page has only one view."),
    Verb("there", ("o",), "Go to the page with more on the op, step, bar or finding", "No other page has more on it."),
    Verb("timeline", ("O",), "The op's longest run on the timeline; n N its other runs", "It has no run there."),
    Verb("graph", ("u",), "The op's graph: operands, users, text of the HLO", _NO_OP),
    Verb("program", ("P",), "The compiled program: told, at least, arrays, tiles", _NO_PROGRAM, words=_OF_PROGRAMS),
    Verb("buffers", ("B",), "The op's buffers in memory", _NO_OP),
    Verb("edit", ("e",), "Its source line in your editor", "It has no known source line.", words="source code vim"),
)

ROWS: tuple[Verb, ...] = (
    Verb("sort", ("s",), "Choose the column to sort by", "These rows have a fixed order.", words="order rank"),
    Verb("reverse", ("S",), "Reverse the order", "These rows have a fixed order."),
    Verb("group", ("b",), "Group by source line, scope, program or category; clones", "These rows have no groups."),
    Verb("search", ("/",), "Search; in a table, filter", "There is nothing to search here.", words="find grep"),
    Verb("next_match", ("n",), "Next match, or next run of the op", "There is no search yet: / starts one."),
    Verb("previous_match", ("N",), "Previous match or run", "There is no search yet: / starts one."),
    Verb("exclude", ("x",), "Leave out idle time, rows of less interest; and back", "There is nothing to hide here."),
    Verb("top", ("t",), "Ten children of a row, those that make up 90%, or all", "Nothing is cut to ten rows here."),
    Verb("compare_runs", ("c",), "Mark a run; on another one: compare both", "Runs are compared in their list: R."),
    Verb("mark", ("space",), "Mark it: try it, begin or end an interval", "Nothing here can be marked."),
)

PLACES: tuple[Verb, ...] = (
    Verb("previous_step", ("[",), "Previous step, program, error or space", "There is only one."),
    Verb("next_step", ("]",), "Next step, program, error or space", "There is only one."),
    Verb("previous_peak", ("{",), "Previous gap or peak", "There are no gaps or peaks here."),
    Verb("next_peak", ("}",), "Next gap or peak", "There are no gaps or peaks here."),
    Verb("whole", ("0",), "Everything again: the whole trace, the highest peak, all hosts", "Everything is shown."),
    Verb("follow", (">",), "Follow an arrow or a call", "No arrow leads on from here."),
    Verb("follow_back", ("<",), "Follow it back", "No arrow leads here."),
    Verb("hold", ("p",), "Hold a track in place, at the top", "Nothing here can be held."),
)

GENERAL: tuple[Verb, ...] = (
    Verb("figures", ("i",), "Every figure, with what it means", "All figures of this page are shown.", words="metrics"),
    Verb(
        "copy", ("y",), "Copy the name or summary", "There is nothing to copy under the cursor.", words="yank clipboard"
    ),
    Verb("export", ("E",), "Write what is shown to a file", "There is nothing to write.", words="csv save screenshot"),
    Verb("notes", ("W",), "Verdict in full, notes and problems", "There are no notes here.", words="warnings errors"),
    Verb("runs", ("R",), "Choose a run", "No runs were found.", words="run history switch"),
    Verb(
        "compare",
        ("D",),
        "Compare with another run",
        "There is only one run: tpuprof-tui diff A B compares any two profiles.",
        words="diff baseline yesterday before after regression",
    ),
    Verb("hosts", ("H",), "Hosts and cores: compare, choose one", "No hosts were read.", words="straggler late core"),
    Verb("live_arrays", ("L",), "Live arrays: who holds the memory", _NO_ARRAYS),
    Verb("capture", ("C",), "Capture a profile of a running program", "A capture can't begin here."),
    Verb("reload", ("r",), "Look for runs again and reload", "There is nothing to read again.", words="refresh update"),
    Verb("background", ("T",), "Light or dark background", "There are no colours.", words="theme colour settings"),
    Verb("help", ("?",), "Keys, and what the numbers mean", "This is the help: Esc closes it.", words="options mouse"),
    Verb("palette", ("ctrl+p",), "All commands that work now", "Close this first: Esc."),
    Verb("quit", ("q",), "Quit", "Close this first: Esc.", words="exit leave"),
    Verb("leave", ("Q", "ctrl+c", "ctrl+q"), "Quit from anywhere", "", _WAY_OUT),
    Verb("suspend", ("ctrl+z",), "Suspend (fg brings it back)", ""),
    Verb("repaint", ("ctrl+l",), "Repaint the whole screen", ""),
)

_of_timeline = partial(Verb, page="timeline")
OWN: tuple[Verb, ...] = (
    Verb("module", ("m",), "Choose a module or an allocator", "Modules are chosen on the memory tab.", page="memory"),
    Verb("advice", ("a",), "What to do first", "Advice on memory is on the memory tab.", page="memory"),
    _of_timeline("zoom_in", ("w", "+", "="), "Zoom in at the cursor", _ZOOMS, _WASD, why_shared=_WASD),
    _of_timeline("zoom_out", ("s", "-"), "Zoom out", "It zooms the timeline.", _WASD, why_shared=_WASD),
    _of_timeline("pan_left", ("a",), "Pan to the left", "", why_shared=_WASD),
    _of_timeline("pan_right", ("d",), "Pan to the right", "It pans the timeline.", why_shared=_WASD),
    _of_timeline("fit", ("f",), "Fit the interval; again: the event, the step", "Only the timeline is fitted."),
    _of_timeline("next_event", (".",), "Next event of the row", "Events are on the timeline."),
    _of_timeline("previous_event", (",",), "Previous event", "Events are on the timeline."),
    _of_timeline("interval_begin", ("(",), "Begin of the interval to the cursor", _MARKED),
    _of_timeline("interval_end", (")",), "End of the interval to the cursor", _MARKED),
    _of_timeline("fold", ("z",), "Open or close the track or section", _TRACKS),
    _of_timeline("fold_all", ("Z",), "Open or close all of them", _TRACKS),
    _of_timeline("next_host", ("J",), "Next host", _HOSTS),
    _of_timeline("previous_host", ("K",), "Previous host", _HOSTS),
    _of_timeline("filter_tracks", ("F",), "Only tracks with these words in their names", _TRACKS),
    _of_timeline("base", ("A",), "Times relative to the trace, the step or the mark", _RELATIVE),
)

READING: tuple[Verb, ...] = (
    Verb("read_on", ("space",), "One screen on", _END, page="texts", why_shared="Every pager has it."),
    Verb("typing_down", ("ctrl+n",), "Next row while you type", _END, page="lists", why_shared=_TYPED),
    Verb("typing_up", ("ctrl+p",), "Previous row while you type", _END, page="lists", why_shared=_TYPED),
)
"""Verbs of texts and of lists that are typed into."""

VERBS: tuple[Verb, ...] = (*MOTIONS, *GOING, *ROWS, *PLACES, *GENERAL, *OWN, *READING)
BY_NAME = {verb.name: verb for verb in VERBS}

GROUPS: tuple[tuple[str, tuple[Verb, ...]], ...] = (
    ("Moving", MOTIONS),
    ("Going", GOING),
    ("Rows", ROWS),
    ("Places in time or in a program", PLACES),
    ("Everywhere", GENERAL),
    ("Memory", tuple(verb for verb in OWN if verb.page == "memory")),
    ("Timeline", tuple(verb for verb in OWN if verb.page == "timeline")),
    ("Reading, typing", READING),
)
"""All verbs as people look for them, for the README."""


OF_ROW = ("there", "timeline", "graph", "program", "buffers", "edit", "copy", "export")
"""Verbs of a row, which work on its card as they do on its page."""
KEEP_CARD = ("edit", "copy", "export")
"""Those of them after which the card stays open."""


def written(verb: Verb) -> tuple[str, ...]:
    """The keys of a verb as a table has them: of the number keys the first and the last."""
    return ("1-9",) if verb.name == "pick" else verb.keys


FORWARD = {"previous_view": "view", "previous_step": "next_step", "previous_peak": "next_peak", "reverse": "sort"}
"""Verbs that go the other way than another one: where that one has nothing to do, they have nothing either."""


def verbs_of(typed: str) -> list[Verb]:
    """What a key means, by Textual's name of it: on some page each."""
    return [verb for verb in VERBS if typed in verb.typed]


def shown_keys(names: Iterable[str]) -> str:
    """The keys of some verbs as people write them: ``j k, down up``; a word that is no verb stands as it is."""
    rows: list[list[str]] = []
    for name in names:
        verb = BY_NAME.get(name)
        keys = (name,) if verb is None else ("1-9",) if name == "pick" else verb.keys
        for place, key in enumerate(keys[:2] if verb is None or verb.why_keys == _ARROWS else keys[:1]):
            rows += [[]] * (place == len(rows))
            rows[place] = [*rows[place], key]
    return ", ".join(map(" ".join, rows))


class Opened:
    """What is open on a page, in the order in which it was opened, whatever opened it."""

    def __init__(self) -> None:
        self._order: list[str] = []

    def note(self, now: Iterable[str]) -> None:
        names = list(now)
        self._order = [name for name in self._order if name in names]
        self._order += [name for name in names if name not in self._order]

    def close(self, now: Mapping[str, Callable[[], object]]) -> bool:
        """Closes what was opened last, of what is open now; False where nothing is."""
        self.note(now)
        if self._order:
            now[self._order[-1]]()
        return bool(self._order)


class KeysAhead:
    """Keys that were typed ahead of a page, by the page's name, until it is read."""

    def __init__(self) -> None:
        self._kept: dict[str, list[tuple[str, str | None]]] = {}

    def keep(self, page: str, key: str, character: str | None) -> str:
        """Keeps a key; says which ones are kept."""
        kept = self._kept.setdefault(page, [])
        kept.append((key, character))
        words = " ".join(shown if shown and shown.strip() else name for name, shown in kept)
        return f"Kept until the page is read: {words}. Esc forgets them."

    def has(self, page: str) -> bool:
        return bool(self._kept.get(page))

    def is_typing(self, page: str) -> bool:
        """Whether the last of them are typed into a search."""
        names = [key for key, _ in self._kept.get(page, ())]
        begun = next((place for place, key in enumerate(reversed(names)) if key == "slash"), None)
        return begun is not None and "enter" not in names[len(names) - begun :]

    def take(self, page: str) -> Sequence[tuple[str, str | None]]:
        return self._kept.pop(page, ())

    def forget(self) -> bool:
        """Keeps none; whether any were kept."""
        had, self._kept = bool(self._kept), {}
        return had
