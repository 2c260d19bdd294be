"""Everything a key can do, in one table: bindings, footer, help and palette are all made from it."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable
from typing import Protocol

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.pages import TABS, TabEntry
from tpuprof.tui.terminal.grammar import BY_NAME, FORWARD, verbs_of


@dataclass(frozen=True, slots=True)
class ScreenState:
    """What the screen is at, as far as it decides what is possible.

    Attributes:
        tab: name of the tab that is shown.
        loading, searching: a load is running; there are matches, or runs of an op, to step through.
        has_source: the source line of what is under the cursor is known.
        run_count, host_count, note_count: runs that the path led to, readable hosts of the run, problems and warnings.
        has_page: the tab shows figures.
        selection: what yank would copy, or None.
        colorful: there are colours to change.
        commands: what keys do on this tab alone.
    """

    tab: str = TABS[0].name
    loading: bool = False
    run_count: int = 0
    host_count: int = 0
    note_count: int = 0
    has_page: bool = False
    selection: str | None = None
    searching: bool = False
    has_source: bool = False
    colorful: bool = True
    commands: tuple[str, ...] = ()
    can_capture: bool = False

    @property
    def has_notes(self) -> bool:
        """Whether there is anything to say beside the page."""
        return self.note_count > 0 or self.has_page


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do.

    Attributes:
        name: Textual's action, with its argument where it takes one.
        verb: of the grammar, which has its key; for one of the number keys the number.
        title: what it does, as a verb.
        short: two words at most, for the footer; empty keeps it out of there.
        possible: whether it would do anything now.
    """

    name: str
    verb: str
    title: str
    short: str = ""
    possible: Callable[[ScreenState], bool] = lambda _: True

    @property
    def keys(self) -> tuple[str, ...]:
        """Textual's names of its keys, the first one shown."""
        if self.verb.isdigit():
            return (self.verb,)
        return (*BY_NAME[self.verb].typed, *(BY_NAME["leave"].typed if self.verb == "quit" else ()))

    @property
    def shown(self) -> str:
        """The first key as written for people."""
        return self.verb if self.verb.isdigit() else BY_NAME[self.verb].key

    @property
    def absent(self) -> str:
        """What the last line says where it would do nothing."""
        return "It is already shown." if self.verb.isdigit() else BY_NAME[self.verb].absent


def _tab(key: str, tab: TabEntry) -> Action:
    name, title = f"show_tab('{tab.name}')", f"Show {tab.title}"
    return Action(name, key, title, possible=lambda now: now.tab != tab.name)


def _action(
    name: str, verb: str, title: str = "", short: str = "", possible: Callable[[ScreenState], bool] = lambda _: True
) -> Action:
    """Something to do, called as the grammar calls the verb unless it has a title of its own."""
    return Action(name, verb, title or BY_NAME[verb].meaning, short, possible)


def _command(name: str, verb: str, title: str = "", short: str = "", argument: str = "") -> Action:
    """Something that a tab does by itself."""
    return _action(f"tab_command('{name}'{argument})", verb, title, short, lambda now: name in now.commands)


_TIMELINE: tuple[Action, ...] = (
    _command("zoom", "zoom_in", short="zoom", argument=", 2"),
    _command("zoom", "zoom_out", argument=", -2"),
    _command("pan", "pan_left", argument=", -1"),
    _command("pan", "pan_right", argument=", 1"),
    _command("fit", "fit", short="fit"),
    _command("whole", "whole", "The whole trace"),
    _command("step", "previous_step", "Previous step", argument=", -1"),
    _command("step", "next_step", "Next step", "step", ", 1"),
    _command("gap", "previous_peak", "Previous gap longer than 5% of a step", argument=", -1"),
    _command("gap", "next_peak", "Next gap longer than 5% of a step", "gap", ", 1"),
    _command("event", "next_event", short="event", argument=", 1"),
    _command("event", "previous_event", "Previous event of the row", argument=", -1"),
    _command("mark", "mark", "Timing: mark begin, then end; lists what ran between", "mark"),
    _command("interval_end", "interval_begin", argument=", -1"),
    _command("interval_end", "interval_end", argument=", 1"),
    _command("measure", "figures", "What ran in the interval, or in the window"),
    _command("follow", "follow", "Follow an arrow: to what the event launches or starts", "", ", 1"),
    _command("follow", "follow_back", "Follow an arrow back", argument=", -1"),
    _command("base", "base"),
    _command("fold", "fold", short="fold"),
    _command("fold_all", "fold_all", "Close or open all sections; with several hosts, all hosts"),
    _command("next_host", "next_host", "Next host, on the same row if it is open", "host", ", 1"),
    _command("next_host", "previous_host", argument=", -1"),
    _command("pin", "hold", "Pin the track on top"),
    _command("by_busy", "reverse", "Tracks by busy time, or in their own order"),
    _action("filter", "filter_tracks", possible=lambda now: "filter" in now.commands),
)

_MEMORY: tuple[Action, ...] = (
    _command(
        "memory_view", "view", "Next view: buffers of a module, allocators over time, the map of a module", "view"
    ),
    _command("memory_view", "previous_view", argument=", -1"),
    _command("module", "module", "Choose a module, or an allocator", "module"),
    _command("space", "next_step", "Next memory space: HBM, VMEM, SMEM, ...", "space"),
    _command("space", "previous_step", "Previous memory space", argument=", -1"),
    _command("memory_sort", "sort", "Sort by size, padding, program order", "sort"),
    _command("memory_group", "group", "Group by source line, framework scope, category", "group"),
    _command("peak", "previous_peak", "Previous peak", argument=", -1"),
    _command("peak", "next_peak", "Next peak", argument=", 1"),
    _command("at_peak", "whole", "Back to the highest peak", "peak"),
    _command("figures", "figures", "All figures, with what they mean"),
    _command("live_arrays", "live_arrays", "Live arrays: who holds the memory, from the file beside", "live arrays"),
    _command("triage", "advice", "What to do first: suggestions, and what-if", "what to do"),
)

ACTIONS: tuple[Action, ...] = (
    *map(_tab, "12345", TABS),
    *_TIMELINE,
    *_MEMORY,
    _action("next_tab(1)", "next_tab"),
    _action("next_tab(-1)", "previous_tab"),
    _command("latencies", "view", "Next view: latencies of requests or runs, the model, and back", "latencies"),
    _command("latencies", "previous_view", argument=", -1"),
    _command("view", "view", "Next view: profile, HLO ops, framework ops, roofline, kernels", "view"),
    _command("view", "previous_view", argument=", -1"),
    _command(
        "group",
        "group",
        "Group by program, category, scope, source; clones; op types; spans taken for requests",
        "group by",
    ),
    _command("sort", "sort", "Sort by time or waste; in a table by the next column", "sort"),
    _command("reverse", "reverse", short="reverse"),
    _command("idle", "exclude", "Leave out idle time, or infeed and outfeed; and back"),
    _command("top", "top", "Ten children of each node, those that make up 90%, or all"),
    _command("compare_op", "compare_ops", "Mark the op; on another one: both side by side", "compare"),
    _command("same_op", "there", "Go to the page with more on the op, step, bar or finding", "same op"),
    _command("what_if", "mark", "What if: the step without the bar's owner, or the finding's cause; and back"),
    _command("on_timeline", "timeline", "The op's longest run on the timeline; `n` `N` its other runs"),
    _command("graph", "graph", "The op's graph: operands, users, text of the HLO", "graph"),
    _command("buffers", "buffers", "The op's buffers in memory"),
    _action("edit", "edit", "Open its source line in your editor", "edit", lambda now: now.has_source),
    _action("search", "search", short="search", possible=lambda now: now.has_page),
    _action("next_match(1)", "next_match", short="next", possible=lambda now: now.searching),
    _action("next_match(-1)", "previous_match", possible=lambda now: now.searching),
    _action("yank", "copy", "Copy the selected name", "copy name", lambda now: now.selection is not None),
    _action("export", "export", possible=lambda now: now.has_page),
    _action("runs", "runs", short="runs", possible=lambda now: now.run_count > 0),
    _action("compare", "compare", possible=lambda now: now.run_count > 1),
    _action("hosts", "hosts", short="hosts", possible=lambda now: now.host_count > 0),
    _action("capture", "capture", "Capture a profile from a running program", "", lambda now: now.can_capture),
    _action("notes", "notes", short="notes", possible=lambda now: now.has_notes),
    _action("reload", "reload", short="reload", possible=lambda now: not now.loading),
    _action("cancel_load", "back", "Cancel loading", "cancel", lambda now: now.loading),
    _action("swap_background", "background", possible=lambda now: now.colorful),
    _action("help", "help", short="help"),
    _action("palette", "palette"),
    _action("go_back", "back"),
    _action("suspend_process", "suspend"),
    _action("draw_anew", "repaint", "Paint the whole screen again"),
    _action("quit", "quit", "Quit (Q does from anywhere)", "quit"),
)

MOTIONS: tuple[tuple[str, str], ...] = (
    ("down", "move(0, 1)"),
    ("up", "move(0, -1)"),
    ("right", "move(1, 0)"),
    ("left", "move(-1, 0)"),
    ("first", "ends(-1)"),
    ("last", "ends(1)"),
    ("page_down", "page(1.0)"),
    ("page_up", "page(-1.0)"),
    ("half_down", "page(0.5)"),
    ("half_up", "page(-0.5)"),
    ("open", "enter"),
)
"""Verbs and their actions, which each tab understands in its own way."""


OF_THE_APP = ("suspend_process", "draw_anew")  # actions that the app does, whatever is open


def parsed(action: str) -> tuple[str, tuple[object, ...]]:
    """Name and arguments of an action as it stands in the tables: ``move(0, 1)``."""
    name, bracket, rest = action.partition("(")
    return name, literal_eval(f"({rest[:-1]},)") if bracket else ()


ACTIONS_BY_KEY: dict[str, list[str]] = {}
"""Names of actions by Textual's name of a key, which does the first that is possible, where nothing is open."""

_MOVED = [(BY_NAME[verb].typed, name) for verb, name in MOTIONS]
for _keys, _name in (*((action.keys, action.name) for action in ACTIONS), *_MOVED):
    for _key in _keys if _name not in OF_THE_APP else ():
        ACTIONS_BY_KEY.setdefault(_key, []).append(_name)


ACTIONS_BY_NAME = {action.name: action for action in ACTIONS}
VERB_OF_MOTION = {name: verb for verb, name in MOTIONS if verb != "open"}


def by_name(name: str) -> Action:
    """The action of that name, with or without its argument."""
    return next(action for action in ACTIONS if action.name == name or action.name.partition("(")[0] == name)


def possible(situation: ScreenState) -> list[Action]:
    """The actions of the palette: all that a key does now."""
    moves = [Action(name, verb, BY_NAME[verb].meaning) for verb, name in MOTIONS] if situation.has_page else []
    return [action for action in (*ACTIONS, *moves) if action.name != "palette" and action.possible(situation)]


UNREAD = "Nothing is read here; `r` looks again."


class Refuses(Protocol):
    """A tab, as far as it says why a key does nothing on it."""

    @property
    def has_page(self) -> bool:
        """Whether it shows figures."""

    def why_not(self, verb: str) -> str:
        """Why a verb does nothing here now, where there is more to say than the grammar has."""


def meant(key: str, situation: ScreenState) -> str | None:
    """The action that a key means now: the first of its actions that would do something."""
    names = ACTIONS_BY_KEY.get(key, [])
    can = (name for name in names if name not in ACTIONS_BY_NAME or ACTIONS_BY_NAME[name].possible(situation))
    return next(can, None)


def why_nothing(key: str, tab: Refuses) -> str:
    """Why a key does nothing now; empty for one that is none of the grammar's."""
    names, verbs = ACTIONS_BY_KEY.get(key, []), verbs_of(key)
    asked = [name for verb in verbs for name in (verb.name, FORWARD.get(verb.name)) if name]
    if own := next(filter(None, map(tab.why_not, asked)), ""):
        return own
    if verbs and not tab.has_page and not any(name.startswith("show_tab") for name in names):
        return UNREAD
    absent = (ACTIONS_BY_NAME[name].absent for name in names if name in ACTIONS_BY_NAME)
    return next(filter(None, (*absent, *(verb.absent for verb in verbs))), "")


_AT_ONCE = frozenset(
    (
        *("show_tab", "next_tab", "runs", "hosts", "compare", "capture", "notes", "reload", "cancel_load", "go_back"),
        *("swap_background", "help", "palette", "quit"),
    )
)
"""Actions that wait for no page."""


def is_of_tab(key: str, situation: ScreenState) -> bool:
    """Whether a key is for what the tab shows, and can't be done without it."""
    names = ACTIONS_BY_KEY.get(key, [])
    is_now = any(name.partition("(")[0] in _AT_ONCE for name in names)
    known = (ACTIONS_BY_NAME[name] for name in names if name in ACTIONS_BY_NAME)
    can = any(action.possible(situation) for action in known if action.name.startswith("tab_command"))
    return bool(names) and not is_now and not can
