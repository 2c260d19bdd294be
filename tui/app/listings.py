"""What the header, lists and texts around the page say: runs, hosts, notes, help. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, printable
from tpuprof.tui.draw.format import age, size
from tpuprof.tui.draw.pen import Pen, cut_middle
from tpuprof.tui.draw.spans import Line, line_width
from tpuprof.tui.pages import TABS
from tpuprof.tui.terminal.grammar import BY_NAME
from tpuprof.tui.terminal.theme import AnyLine, AnySpan
from tpuprof.tui.widgets.chrome import APP_NAME, KeyRow, key_lines, pad
from tpuprof.tui.widgets.popup import meanings

if TYPE_CHECKING:
    from tpuprof.parsers.base.errors import Problem
    from tpuprof.parsers.files.logdir import Logdir, Run
    from tpuprof.parsers.pages.overview.model import Overview

ABOUT_NOTES = meanings(
    ("Verdict", "the overview's sentences in full: what the program spends its time on, and the evidence."),
    ("!", "what is wrong with the files or their contents; below it what to try."),
    ("unknown", "figures that the profile does not have, each with its reason. The pages show n/a for them, never 0."),
)


@dataclass(frozen=True, slots=True)
class Heading:
    """What the header says.

    Attributes:
        run: the run's name, or the path that was asked for.
        facts: short phrases on run, host and device; the first ones stay longest when there is little room.
        badge: a warning in capitals, or empty.
    """

    run: str
    facts: tuple[str, ...] = ()
    badge: str = ""


def new_run_sentence(run: Run, now: float) -> str:
    """The line that says that a run has come, and that `r` opens it."""
    hosts = counted(len(run.hosts), "host")
    captured = f", {age(now - run.time)}" if run.time > 0 else ""
    return f"New run {printable(run.name)} ({hosts}, {size(run.size_bytes)}{captured}): r opens it"


def changed_run_sentence(run: Run, hosts_before: int) -> str:
    """The line that says that the shown run has other files than those that were read."""
    now = counted(len(run.hosts), "host")
    words = f"now has {now}" if len(run.hosts) != hosts_before else "has changed"
    return f"{printable(run.name)} {words}: r reads it again"


def heading(
    path: str,
    logdir: Logdir | None,
    run: Run | None,
    host: str | None,
    page: Overview | None,
    new_run: Run | None = None,
    core: str | None = None,
) -> Heading:
    """What the header says; `new_run` is one that has come and that a key opens, `core` all that is shown."""
    if run is None:
        return Heading(path)
    facts = [f"ONLY {_core_words(core, page)}, H: all"] if core else []
    if logdir and len(logdir.runs) > 1 and (run.hosts or run.problems):
        newest = "newest of" if run.path == logdir.runs[0].path else "one of"
        facts.append(f"{newest} {len(logdir.runs)} runs")
    if new_run is not None:
        facts.append("r opens the new run" if new_run.path != run.path else "r reads the new hosts")
    if not core:
        facts.append(_host_words(run, host, page))
    if page is not None and page.environment.device_type:
        facts.append(page.environment.device_type)
    return Heading(run.name, tuple(facts), "" if page is None else _warning(page, 1 if host else len(run.hosts)))


def _warning(page: Overview, host_count: int) -> str:
    """What the reader of any tab must know: times are not measured, a part of the profile is missing, or is unread."""
    environment, read = page.environment, len(page.hosts)
    words = ["SIMULATED TIMES"] if environment.simulated else []
    words += [f"{read:,} OF {host_count:,} HOSTS READ"] if read < host_count else []
    for damage in dict.fromkeys(environment.damage):
        hosts = environment.damage.count(damage)
        which = "FILE" if environment.host_count == 1 else counted(hosts, "FILE", "FILES")
        words.append(f"{which} {damage.upper()}")
    return ", ".join(words)


def _core_words(core: str, page: Overview | None) -> str:
    if ":chip" in core:
        return core
    return f"{'GPU' if page is not None and 'GPU' in (page.environment.device_type or '') else 'CORE'} {core}"


def _host_words(run: Run, host: str | None, page: Overview | None) -> str:
    if host is not None:
        return f"host {host}"
    count = len(run.hosts)
    if not count:
        return "no readable host" if run.problems else "compiled HLO"
    read = len(page.hosts) if page is not None else count
    if read < count:
        return f"{read} of {count} hosts"
    return f"host {run.hosts[0].host}" if count == 1 else f"all {count} hosts"


def sentences(page: Overview | None, problems: Sequence[Problem]) -> list[str]:
    """Everything that is wrong with what is shown, each once."""
    warnings = page.warnings if page is not None else ()
    return list(dict.fromkeys((*warnings, *(problem.sentence for problem in problems))))


def note_lines(
    page: Overview | None,
    problems: Sequence[Problem],
    first: tuple[str, str],
    verdict: Sequence[Line],
    unknown: Sequence[Line],
    pen: Pen,
) -> list[Line]:
    """The tab's own note, the verdict in full, what is wrong and what to do about it, and what is unknown."""
    hints = {problem.sentence: problem.hint for problem in problems}
    blank, (title, note) = pen.fit([]), first
    lines: list[Line] = []
    if note:
        lines.append(pen.fit([(title, "title")]))
        lines += [*pen.wrap_all(note.splitlines(), "text"), blank]
    if page is not None:
        lines += [pen.fit([("Verdict", "title")]), *verdict, blank, pen.fit([("Notes", "title")])]
    for sentence in sentences(page, problems):
        lines += pen.wrap(sentence, "text", [(" ! ", "warn")])
        if hints.get(sentence):
            lines += pen.wrap(hints[sentence], "dim", [("   try: ", "key")])
    return [*lines, *unknown]


def help_lines(keys: Iterable[KeyRow], meaning: Sequence[Line], pen: Pen) -> list[Line]:
    """The keys that do something now, and what the numbers of the tab mean."""
    lines = key_lines(keys, pen, 19)
    if meaning:
        lines += [pen.fit([]), pen.fit([("What the numbers mean", "title")]), *meaning]
    return lines


def header_lines(heading: Heading, tab: str, notes: int, pen: Pen) -> list[AnyLine]:
    """The two lines on top: where we are; then the tabs and, at the right, what to be aware of: so many notes."""
    badge = f" {heading.badge} " if heading.badge else ""
    tabs = line_width(_tab_spans(tab, pen.width))
    if badge and tabs + len(badge) + 1 > pen.width:  # no room beside the tabs
        place = _place(heading, pen.narrower(len(badge)))
        return [(*place, (badge, "badge")), _tabs("", tab, notes, pen.width)]
    return [_place(heading, pen), _tabs(heading.badge, tab, notes, pen.width)]


def _place(heading: Heading, pen: Pen) -> AnyLine:
    left: list[AnySpan] = [(f" {APP_NAME}  ", "bar.dim")] if pen.width >= 70 else [(" ", "bar")]
    room = pen.width - 1
    name = cut_middle(heading.run, max(8, min(48, room - line_width(left))), pen.glyphs)
    left.append((name, "bar.strong"))
    for fact in heading.facts:
        words = f"  {pen.glyphs.dot}  {pen.text(fact)}"
        if line_width(left) + len(words) <= room:
            left.append((words, "bar"))
    return pad(left, pen.width, "bar")


def _tabs(warning: str, tab: str, notes: int, width: int) -> AnyLine:
    left = _tab_spans(tab, width)
    badge: list[AnySpan] = [(f" {warning} ", "badge"), (" ", "tab")] if warning else []
    long: list[AnySpan] = []
    short: list[AnySpan] = []
    if notes:
        key: AnySpan = (f" {BY_NAME['notes'].key}", "key")
        long, short = [key, (f" {counted(notes, 'note')} ", "warn")], [key, (f" {notes} ", "warn")]
    for right in ([*badge, *long], [*badge, *short], badge or short):
        gap = width - line_width(left) - line_width(right)
        if gap >= 0:
            return pad([*left, (" " * gap, "tab"), *right], width, "tab")
    return pad(left, width, "tab")


def _tab_spans(shown: str, width: int) -> list[AnySpan]:
    spans: list[AnySpan] = [(" ", "tab")]
    for number, tab in enumerate(TABS, 1):
        title = tab.title if width >= 100 else tab.short_title
        if tab.name == shown:
            spans.append((f" {number} {title} ", "tab.active"))
        else:
            spans += [(f" {number}", "tab.key"), (f" {title} ", "tab")]
        spans.append((" ", "tab"))
    return spans
