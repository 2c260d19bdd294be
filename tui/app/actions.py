"""Everything a key can do, in one table: bindings, footer, help and palette are all made from it."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.pages import TABS, TabEntry


@dataclass(frozen=True, slots=True)
class ScreenState:
    """What the screen is at, as far as it decides what is possible.

    Attributes:
        tab: name of the tab that is shown.
        loading, searching: a load is running; a search is in force.
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
        keys, shown: Textual's names of the keys, the first one shown; and that as written for people.
        title: what it does, as a verb.
        short: two words at most, for the footer; empty keeps it out of there.
        possible: whether it would do anything now.
    """

    name: str
    keys: tuple[str, ...]
    shown: str
    title: str
    short: str = ""
    possible: Callable[[ScreenState], bool] = lambda _: True


def _tab(key: str, tab: TabEntry) -> Action:
    name, title = f"show_tab('{tab.name}')", f"Show {tab.title}"
    return Action(name, (key,), key, title, possible=lambda now: now.tab != tab.name)


def _command(
    name: str, key: str, title: str, short: str = "", argument: str = "", shown: str = "", more: tuple[str, ...] = ()
) -> Action:
    """Something that a tab does by itself."""
    action = f"tab_command('{name}'{argument})"
    return Action(action, (key, *more), shown or key, title, short, lambda now: name in now.commands)


_TIMELINE: tuple[Action, ...] = (
    _command("zoom", "w", "Zoom in at the cursor", "zoom", ", 2", more=("plus", "equals_sign")),
    _command("zoom", "s", "Zoom out", argument=", -2", more=("minus",)),
    _command("pan", "a", "Pan to the left", argument=", -1"),
    _command("pan", "d", "Pan to the right", argument=", 1"),
    _command("fit", "f", "Fit the interval; again: the event, the step", "fit"),
    _command("whole", "0", "The whole trace"),
    _command("step", "left_square_bracket", "Previous step", argument=", -1", shown="["),
    _command("step", "right_square_bracket", "Next step", "step", ", 1", shown="]"),
    _command("gap", "left_curly_bracket", "Previous gap longer than 5 % of a step", argument=", -1", shown="{"),
    _command("gap", "right_curly_bracket", "Next gap longer than 5 % of a step", "gap", ", 1", shown="}"),
    _command("event", "full_stop", "Next event of the row", "event", ", 1", shown="."),
    _command("event", "comma", "Previous event of the row", argument=", -1", shown=","),
    _command("mark", "m", "Timing: mark begin, then end; lists what ran between", "mark"),
    _command("interval_end", "left_parenthesis", "Begin of the interval to the cursor", "", ", -1", "("),
    _command("interval_end", "right_parenthesis", "End of the interval to the cursor", "", ", 1", ")"),
    _command("measure", "M", "What ran in the interval, or in the window"),
    _command("follow", "greater_than_sign", "Follow an arrow: to what the event launches or starts", "", ", 1", ">"),
    _command("follow", "less_than_sign", "Follow an arrow back", argument=", -1", shown="<"),
    _command("base", "t", "Times relative to the trace, the step or the mark"),
    _command("fold", "z", "Open or close the track or section", "fold"),
    _command("fold_all", "Z", "Close or open all sections; with several hosts, all hosts"),
    _command("next_host", "J", "Next host, on the same row if it is open", "host", ", 1"),
    _command("next_host", "K", "Previous host", argument=", -1"),
    _command("pin", "p", "Pin the track on top"),
    _command("by_busy", "b", "Tracks by busy time"),
    Action(
        "filter", ("F",), "F", "Only tracks with these words in their names", "", lambda now: "filter" in now.commands
    ),
)

_MEMORY: tuple[Action, ...] = (
    _command("memory_view", "v", "Buffers of a module, or allocators over time", "view"),
    _command("module", "m", "Choose a module, or an allocator", "module"),
    _command("space", "t", "Next memory space: HBM, VMEM, SMEM, ...", "space"),
    _command("memory_sort", "s", "Sort by size, padding, program order", "sort"),
    _command("memory_group", "b", "Group by source line, framework scope, category", "group"),
    _command("peak", "left_curly_bracket", "Previous peak", argument=", -1", shown="{"),
    _command("peak", "right_curly_bracket", "Next peak", argument=", 1", shown="}"),
    _command("at_peak", "p", "Back to the highest peak", "peak"),
    _command("map", "a", "Allocation map, or the working set", "map"),
    _command("figures", "i", "All figures, with what they mean"),
    _command("live_arrays", "L", "Live arrays: who holds the memory, from the file beside", "live arrays"),
    _command("triage", "x", "What to do first: suggestions, and what-if", "what to do"),
)

ACTIONS: tuple[Action, ...] = (
    *map(_tab, "12345", TABS),
    *_TIMELINE,
    *_MEMORY,
    Action("next_tab(1)", ("tab", "right_square_bracket"), "Tab, ]", "Next tab"),
    Action("next_tab(-1)", ("shift+tab", "left_square_bracket"), "Shift+Tab, [", "Previous tab"),
    _command("latencies", "v", "Latencies of requests or runs, and back", "latencies"),
    _command("view", "v", "Next view: profile, HLO ops, framework ops, roofline, kernels", "view"),
    _command("view", "V", "Previous view", argument=", -1"),
    _command(
        "group",
        "b",
        "Group by program, category, scope, source; clones; op types; spans taken for requests",
        "group by",
    ),
    _command("sort", "s", "Sort by time or waste; in a table by the next column", "sort"),
    _command("reverse", "S", "Reverse the order", "reverse"),
    _command("idle", "i", "Idle time, or infeed and outfeed: with or without"),
    _command("top", "t", "Ten children of each node, or all"),
    _command("most", "m", "Only children that make up 90% of the time"),
    _command("compare_op", "c", "Mark the op; on another one: both side by side", "compare"),
    _command("same_op", "o", "Go to the page with more on the op, step, bar or finding", "same op"),
    _command("what_if", "space", "What if: the step without the bar's owner, or the finding's cause; and back"),
    _command("on_timeline", "O", "The op's longest run on the timeline"),
    _command("graph", "g", "The op's graph: operands, users, text of the HLO", "graph"),
    _command("buffers", "B", "The op's buffers in memory"),
    Action("search", ("slash",), "/", "Search; in a table, filter", "search", lambda now: now.has_page),
    Action("next_match(1)", ("n",), "n", "Next match", "next", lambda now: now.searching),
    Action("next_match(-1)", ("N",), "N", "Previous match", "", lambda now: now.searching),
    Action("yank", ("y",), "y", "Copy the selected name", "copy name", lambda now: now.selection is not None),
    Action("runs", ("R",), "R", "Choose a run", "runs", lambda now: now.run_count > 0),
    Action("compare", ("D",), "D", "Compare with another run", "", lambda now: now.run_count > 1),
    Action("hosts", ("H",), "H", "Hosts and cores: compare, choose one", "hosts", lambda now: now.host_count > 0),
    Action("capture", ("C",), "C", "Capture a profile from a running program", "", lambda now: now.can_capture),
    Action("notes", ("w", "W"), "w", "Verdict in full, notes and problems", "notes", lambda now: now.has_notes),
    Action("reload", ("r",), "r", "Look for runs again and reload", "reload", lambda now: not now.loading),
    Action("cancel_load", (), "Esc", "Cancel loading", "cancel", lambda now: now.loading),
    Action("swap_background", ("T",), "T", "Light or dark background", "", lambda now: now.colorful),
    Action("help", ("question_mark",), "?", "Keys, and what the numbers mean", "help"),
    Action("palette", ("ctrl+p",), "ctrl+p", "All commands that work now"),
    Action("go_back", ("escape",), "Esc", "Back one level"),
    Action("suspend_process", ("ctrl+z",), "ctrl+z", "Suspend (fg brings it back)"),
    Action("draw_anew", ("ctrl+l",), "ctrl+l", "Draw the whole screen again"),
    Action("quit", ("q", "Q", "ctrl+c", "ctrl+q"), "q", "Quit (Q does from anywhere)", "quit"),
)

MOTIONS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("j", "down"), "move(0, 1)"),
    (("k", "up"), "move(0, -1)"),
    (("l", "right"), "move(1, 0)"),
    (("h", "left"), "move(-1, 0)"),
    (("g", "home"), "ends(-1)"),
    (("G", "end"), "ends(1)"),
    (("pagedown", "space"), "page(1.0)"),
    (("pageup",), "page(-1.0)"),
    (("ctrl+d",), "page(0.5)"),
    (("ctrl+u",), "page(-0.5)"),
    (("enter",), "enter"),
)
"""Keys and their actions, which each tab understands in its own way."""


OF_THE_APP = ("suspend_process", "draw_anew")  # actions that the app does, whatever is open


def parsed(action: str) -> tuple[str, tuple[object, ...]]:
    """Name and arguments of an action as it stands in the tables: ``move(0, 1)``."""
    name, bracket, rest = action.partition("(")
    return name, literal_eval(f"({rest[:-1]},)") if bracket else ()


ACTIONS_BY_KEY: dict[str, list[str]] = {}
"""Names of actions by Textual's name of a key, which does the first that is possible, where nothing is open."""

for _keys, _name in (*((action.keys, action.name) for action in ACTIONS), *MOTIONS):
    for _key in _keys if _name not in OF_THE_APP else ():
        ACTIONS_BY_KEY.setdefault(_key, []).append(_name)


def by_name(name: str) -> Action:
    """The action of that name, with or without its argument."""
    return next(action for action in ACTIONS if action.name == name or action.name.partition("(")[0] == name)


def key_of(action: Action, situation: ScreenState) -> str:
    """The key of an action as written for people: its first that does nothing else now."""
    earlier = ACTIONS[: ACTIONS.index(action)]
    taken = {key for other in earlier if other.possible(situation) for key in other.keys}
    if not action.keys or action.keys[0] not in taken:
        return action.shown
    return next((key for key in action.keys if key not in taken), action.shown)


def possible(situation: ScreenState) -> list[Action]:
    """The actions of the palette: what would do something now, and is not a matter of a single motion."""
    left_out = {"palette", "go_back", "next_tab(1)", "next_tab(-1)"}
    return [action for action in ACTIONS if action.name not in left_out and action.possible(situation)]
