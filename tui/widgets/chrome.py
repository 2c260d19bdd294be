"""What surrounds a page: the footer, and what stands in the place of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass, field
from tpuprof.tui.draw.format import count, size
from tpuprof.tui.draw.pen import Pen, cut_middle, cut_words, label_span
from tpuprof.tui.draw.spans import Glyphs, Line, Span, line_width
from tpuprof.tui.terminal.grammar import BY_NAME, shown_keys, verbs_of
from tpuprof.tui.terminal.theme import AnyKey, AnyLine, AnySpan

if TYPE_CHECKING:
    from tpuprof.parsers.base.errors import ProfileError
    from tpuprof.parsers.hosts.progress import Progress

APP_NAME = "tpuprof-tui"
_LONGEST_WORD = 30  # letters; what is longer is a path or the name of an op

SMALLEST = (60, 15)  # columns and rows below which there is a sentence instead of a page
_LEAST_BAR = 12  # cells of a progress bar beside which the hosts at work are named


def is_too_small(width: int, height: int) -> bool:
    """Whether a terminal has too few cells for a page."""
    return width < SMALLEST[0] or height < SMALLEST[1]


def too_small_lines(pen: Pen, height: int) -> list[AnyLine]:
    """What stands in the place of a page then."""
    words = f"{APP_NAME} needs {SMALLEST[0]}x{SMALLEST[1]} cells; this terminal has {pen.width}x{height}. q quits."
    return list(pen.wrap(words, "text"))


@dataclass(frozen=True)
class KeyRow:
    """A row of a page's table of keys: verbs of the grammar that belong together. Footer, help and press come from it.

    Attributes:
        verbs: their names with blanks between, whose keys it shows; a word that is no verb is shown as it stands.
        short: a word or two for the footer; empty keeps the row out of there.
        title: a sentence for help; empty keeps the row out of there.
        acts: what each verb does; empty where the page does not take the key itself. That of ``pick`` takes a number.
        foot: the keys as the footer has them, where that is not what `shown` begins with.
        rank: the footer has rows of a lower rank first.
    """

    verbs: str
    short: str = ""
    title: str = ""
    acts: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    foot: str = ""
    rank: int = 0

    @property
    def shown(self) -> str:
        return shown_keys(self.verbs.split(" "))


TABS_KEY = KeyRow("pick", "tabs", foot="1-5")

ROW_KEYS = (
    KeyRow("down up", title="Next, previous row"),
    KeyRow("page_down page_up first last", title="One screen down, up; first, last"),
)
"""Keys that move a cursor over rows."""


def motion_keys(
    row: str = "row",
    across: str = "Show other columns",
    enter: str = "The whole card",
    *,
    ends: str = "",
    short: tuple[str, str, str] = ("", "", ""),
    halves: bool = True,
) -> tuple[KeyRow, ...]:
    """The motions of a tab.

    Args:
        row, ends: what the cursor moves over, and what the first and the last one are called where it is not that.
        across, enter: what moving across and Enter do; there are no columns where `across` is empty.
        short: what the footer says of moving over rows, of moving across, and of Enter.
        halves: whether it moves by half a screen too.
    """
    rows, step, details = short
    return (
        KeyRow("down up", rows, f"Next, previous {row}"),
        *([KeyRow("right left", step, across, foot="h l")] if across else []),
        KeyRow("first last", title=f"First, last {ends or row}"),
        KeyRow("page_down page_up", title="One screen down, up"),
        *([KeyRow("half_down half_up", title="Half a screen down, up")] if halves else []),
        KeyRow("open", details, enter, rank=1),
    )


HELPS, LAST = 5, 9  # ranks in the footer: of the key of help, and of the key that always shows


def verb_row(
    verb: str, act: Callable[..., object], title: str = "", short: str = "", *, foot: str = "", rank: int = 0
) -> KeyRow:
    """A row of one verb; without a title of its own, help takes it from the grammar."""
    return KeyRow(verb, short, title or BY_NAME[verb].meaning, {verb: act}, foot, rank)


def footer(keys: Iterable[KeyRow]) -> list[tuple[str, str]]:
    """The keys of the footer, and what they do."""
    rows = sorted((key for key in keys if key.short), key=lambda key: key.rank)
    return [(key.foot or key.shown.partition(", ")[0], key.short) for key in rows]


def act_of(keys: Iterable[KeyRow], typed: str) -> Callable[[], object] | None:
    """What a key does, by Textual's name of it; None where it is in no row."""
    verbs = [verb.name for verb in verbs_of(typed)]
    act = next((key.acts[name] for key in keys for name in verbs if name in key.acts), None)
    return partial(act, int(typed)) if act is not None and "pick" in verbs else act


def key_lines(keys: Iterable[KeyRow], pen: Pen, cells: int = 21) -> list[Line]:
    """The table of keys for help, the keys in a column of so many cells, or of as many as the longest ones take."""
    rows = [key for key in keys if key.title]
    cells = max(cells, min(pen.width // 3, 1 + max((len(key.shown) for key in rows), default=0)))
    lines = [pen.fit([("Keys", "title")])]
    for key in rows:
        lines += pen.wrap(key.title, "text", [label_span(key.shown, cells, "key")])
    return lines


def keys_line(keys: Sequence[tuple[str, str]], width: int, always: int = 1) -> AnyLine:
    """The footer: as many of the keys and their labels as fit, the last `always` of them in any case."""
    groups = [_key_spans(key, label) for key, label in keys[:-always]]
    last = [span for key, label in keys[-always:] for span in _key_spans(key, label)]
    spans: list[AnySpan] = []
    for group in groups:
        if line_width([*spans, *group, *last]) > width:
            break
        spans += group
    return pad([*spans, *last], width, "bar")


def _key_spans(key: str, label: str) -> list[AnySpan]:
    return [(" ", "bar"), (key, "bar.key"), (f" {label} ", "bar.dim")]


def as_many(words: Sequence[str], width: int) -> str:
    """As many of some words as fit whole."""
    ends = accumulate((len(word) + 2 for word in words), initial=-2)
    return "  ".join(words[: sum(end <= width for end in ends) - 1])


def message_line(text: str, pen: Pen) -> AnyLine:
    """The footer while it says something; of a path that is too long its begin and its end, else whole words."""
    has_path = max(map(len, text.split()), default=0) > _LONGEST_WORD
    words = (cut_middle if has_path else cut_words)(text, pen.width - 2, pen.glyphs)
    return pad([(f" {words}", "bar")], pen.width, "bar")


def prompt_line(text: str, found: str, pen: Pen, cursor: int | None = None, syntax: str = "") -> AnyLine:
    """The footer while a search is typed: the text, a cursor, what it finds so far; its syntax before it is typed."""
    cursor = len(text) if cursor is None else cursor
    room = max(8, pen.width - len(found) - 28)
    first = max(0, cursor - room + 2)  # the part before the cursor shows, and what fits of the rest
    before, under, behind = text[first:cursor], text[cursor : cursor + 1], text[cursor + 1 : first + room - 1]
    mark = pen.glyphs.ellipsis if first else ""
    left: list[AnySpan] = [(" /", "bar.key"), (mark + pen.text(before), "bar.strong")]
    left += [(pen.text(under), "panel.cursor"), (pen.text(behind), "bar.strong")] if under else [("_", "bar.key")]
    if syntax and not text:
        left.append((f" {cut_words(syntax, max(0, room - 5), pen.glyphs)}", "bar.dim"))
    right: list[AnySpan] = [(f"{found}  ", "bar"), ("Enter", "bar.key"), (" keep ", "bar.dim"), ("Esc", "bar.key")]
    right.append((" cancel ", "bar.dim"))
    gap = max(1, pen.width - line_width(left) - line_width(right))
    return pad([*left, (" " * gap, "bar"), *right], pen.width, "bar")


def progress_line(progress: Progress, seconds_left: float | None, pen: Pen) -> AnyLine:
    """The footer while something loads: which host, how far, how long yet, and how to stop it."""
    done, total = progress.bytes_done, progress.bytes_total
    host = f"host {progress.host_index + 1}/{progress.host_count} "
    sizes = f"  {size(done)} of {size(total)}"
    metrics = f"{sizes}  {fetched_or_events(progress)}"
    left = "" if seconds_left is None else f"  {wait(seconds_left)} left"
    tail: list[AnySpan] = [("  Esc", "bar.key"), (" cancels ", "bar.dim")]
    room = pen.width - len(host) - len(metrics) - len(left) - line_width(tail) - 1
    if room < 0:
        metrics, room = sizes, room + len(metrics) - len(sizes)
    each = _hosts_at_work(progress, pen.at(room - _LEAST_BAR))
    bar = max(0, min(30, room - len(each)))
    full, rest = progress_bar(done, total, bar, pen.glyphs)
    spans: list[AnySpan] = [(f" {host}", "bar"), (full, "bar.key"), (rest, "bar.dim")]
    spans += [(metrics, "bar"), (left, "bar.strong"), (each, "bar.dim"), *tail]
    return pad(spans, pen.width, "bar")


def fetched_or_events(progress: Progress) -> str:
    """What the bytes so far gave: ``4.1 M events``; ``fetched`` while the file is still on its way."""
    return "fetched" if progress.is_fetching else f"{events(progress.events_done)} events"


def progress_bar(done: int, total: int, cells: int, glyphs: Glyphs) -> tuple[str, str]:
    """The filled part of a bar, and the rest of it."""
    filled = min(cells, round(cells * done / total)) if total else 0
    return glyphs.full * filled, glyphs.light * (cells - filled)


def _hosts_at_work(progress: Progress, pen: Pen) -> str:
    """How far each host is that is read side by side with others, as many as there is room for."""
    words = ""
    for work in progress.at_work if len(progress.at_work) > 1 else ():
        percent = 100 * work.bytes_done // work.bytes_total if work.bytes_total else 0
        more = f"  {pen.text(work.host)} {percent}%"
        if len(words) + len(more) > pen.width:
            break
        words += more
    return words


def events(number: int) -> str:
    """A count of events in few characters: ``512``, ``48 k``, ``4.1 M``."""
    if number >= 999_500:
        return f"{number / 1e6:.1f} M"
    return f"{number / 1e3:.0f} k" if number >= 10_000 else f"{number:,}"


def wait(seconds: float) -> str:
    """A time to wait, roughly: ``1 s``, ``45 s``, ``3 min``."""
    return f"{max(1, round(seconds))} s" if seconds < 99.5 else f"{seconds / 60:.0f} min"


def pad(spans: Sequence[AnySpan], width: int, key: AnyKey) -> AnyLine:
    """A line of exactly `width` cells."""
    line: list[AnySpan] = []
    left = width
    for text, style in spans:
        if not text or left <= 0:
            continue
        line.append((text[:left], style))
        left -= len(text)
    if left > 0:
        line.append((" " * left, key))
    return tuple(line)


def title_line(pen: Pen, left: str, name: str, facts: Iterable[str], simulated: bool = False) -> AnyLine:
    """The title of a screen above the tabs; a fact that has no room, or was said, is left out."""
    badge, said = " SIMULATED TIMES " if simulated else "", ""
    room = pen.width - len(left) - len(badge)
    name = cut_middle(pen.text(name), max(8, room - 1), pen.glyphs)
    for fact in filter(None, map(pen.text, facts)):
        more = f"{said}  {pen.glyphs.dot}  {fact}"
        said = more if len(name) + len(more) < room and fact not in said else said
    title = pad([(left, "bar.dim"), (name, "bar.strong"), (said, "bar")], pen.width - len(badge), "bar")
    return (*title, (badge, "badge")) if badge else title


_WIDEST = 88


@dataclass(frozen=True, slots=True)
class Searching:
    """Folders are being looked through for runs."""

    path: str


@dataclass(frozen=True, slots=True)
class Decoding:
    """A run is being read; no progress yet where `progress` is None."""

    run: str
    progress: Progress | None = None
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """The user cancelled; `run` is empty where it was the search."""

    run: str
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no page, for this reason; `searched` says what was looked for where."""

    error: ProfileError
    searched: tuple[str, ...] = ()
    other_runs: int = 0


State = Searching | Decoding | Stopped | Failed


def state_lines(state: State, pen: Pen, height: int) -> list[Line]:
    """A state in the middle of the page, a third down."""
    inner = min(pen.width - 4, _WIDEST)
    block = _block(state, pen.at(inner))
    left = (pen.width - inner) // 2
    above = max(0, (height - len(block)) // 3)
    blank: Line = ((" " * pen.width, "text"),)
    body: list[Line] = [((" " * left, "text"), *line, (" " * (pen.width - left - inner), "text")) for line in block]
    return [*([blank] * above), *body, *([blank] * (height - above - len(body)))]


def _block(state: State, pen: Pen) -> list[Line]:
    """A heading, what there is to say, and the keys that do something about it."""
    match state:
        case Searching(path):
            head: Span = ("Looking for profiles", "title")
            body, keys = pen.wrap(path, "text"), [("Esc", "stop")]
        case Decoding(run, progress, left):
            head, keys = ("Reading the profile", "title"), [("Esc", "cancels")]
            body = pen.wrap(run, "strong") + _progress(progress, left, pen)
        case Stopped(run, progress):
            head, words = ("Cancelled", "warn"), "Stopped looking for profiles."
            if progress is not None:
                read = f"{size(progress.bytes_done)} of {size(progress.bytes_total)}"
                words = f"Stopped reading {run} at {read}, {count(progress.events_done)} events."
            elif run:
                words = f"Stopped before any of {run} was read."
            body = pen.wrap(words, "text")
            keys = [("r", "load again"), *([("R", "choose another run")] if run else []), ("q", "quit")]
        case Failed(error, searched, runs):
            head, body = ("Nothing to show", "bad"), _why(error, searched, pen)
            keys = [("r", "look again"), *([("R", f"choose among {runs} runs")] if runs > 1 else []), ("q", "quit")]
    foot: list[Span] = [span for key, label in keys for span in ((key, "key"), (f" {label}    ", "dim"))]
    blank = pen.fit([])
    return [pen.fit([head]), blank, *body, blank, pen.fit(foot)]


def _progress(progress: Progress | None, seconds_left: float | None, pen: Pen) -> list[Line]:
    bar, blank = min(50, pen.width - 2), pen.fit([])
    if progress is None:
        return [blank, pen.fit([(pen.glyphs.light * bar, "rule")]), blank]
    done, total = progress.bytes_done, progress.bytes_total
    metrics: list[Span] = [
        (f"host {progress.host_index + 1} of {progress.host_count}", "text"),
        (f"   {size(done)}", "strong"),
        (f" of {size(total)}", "dim"),
        (f"   {fetched_or_events(progress)}", "strong" if progress.is_fetching else "text"),
    ]
    if seconds_left is not None:
        metrics += [(f"   {wait(seconds_left)}", "strong"), (" left", "dim")]
    full, rest = progress_bar(done, total, bar, pen.glyphs)
    drawn: list[Span] = [(full, "key"), (rest, "rule")]
    return [*pen.wrap(progress.host, "dim"), pen.fit(drawn), pen.fit(metrics)]


def _why(error: ProfileError, searched: Sequence[str], pen: Pen) -> list[Line]:
    lines, blank = pen.wrap(error.sentence, "text"), pen.fit([])
    if error.hint:
        lines += [blank, *pen.wrap(error.hint, "text", [("try: ", "key")])]
    if searched:
        places = pen.wrap_all(searched, "dim", [(f"{pen.glyphs.dot} ", "dim")])
        lines += [blank, pen.fit([("Searched", "dim")]), *places]
    return lines
