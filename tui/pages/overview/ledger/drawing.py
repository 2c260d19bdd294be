"""A step in bars: one bar on a screen, in a report a waterfall from the step as measured down to what is at the roof.

A report has tables of accounts below it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.findings.ops.losses import CAUSE_TITLES
from tpuprof.parsers.pages.overview.accounts_of_ops import NOT_IN_STEPS
from tpuprof.parsers.pages.overview.ledger import MeanStep, OwnerTime
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS, WAITS, Owner
from tpuprof.parsers.steps.step_account import AccountRow
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.pen import WIDE, Pen, cut_middle, cut_words, shared_prefix
from tpuprof.tui.draw.spans import CLASS_STYLE, ON_CLASS_STYLE, Line, Span, StyleKey, line_width, whole_cells

OWNER_CLASS: Mapping[Owner, OpClass] = {
    "input": "host",
    "compile": "idle",
    "host": "idle",
    "dispatch": "idle",
    "barrier": "collective",
    "collective_wait": "collective",
    "collective_transfer": "collective",
    "host_transfer": "host",
    "copy": "copy",
    "loss": "vector",
    "uncounted": "unknown",
    "between_ops": "idle",
    "ideal": "compute",
}
"""The class of ops whose colour each owner has."""

OWNER_LETTER: Mapping[Owner, str] = dict(zip(OWNERS, "ICHDAWNTMLUGR", strict=True))
"""Stands for an owner where colours or room are missing."""

_LEAST_PART = 0.005
"""Owners with less of a step than this stand together in the one bar of a screen."""


@dataclass(frozen=True)
class Bar:
    """A bar of the waterfall, or a part of the one bar of a screen: an owner, or there the smallest owners together."""

    owners: tuple[OwnerTime, ...]

    @property
    def label(self) -> str:
        return OWNER_TITLES[self.owners[0].owner] if len(self.owners) == 1 else f"{len(self.owners)} others"

    @property
    def letter(self) -> str:
        """What stands for it where there is no room for that."""
        return OWNER_LETTER[self.owners[0].owner] if len(self.owners) == 1 else "O"

    @property
    def op_class(self) -> OpClass:
        return OWNER_CLASS[self.owners[0].owner] if len(self.owners) == 1 else "unknown"

    @property
    def style(self) -> StyleKey:
        """Its colour; none for several owners."""
        return CLASS_STYLE[self.op_class] if len(self.owners) == 1 else "dim"

    @property
    def time_ps(self) -> float:
        return sum((each.time_ps for each in self.owners), 0.0)

    @property
    def names(self) -> frozenset[Owner]:
        return frozenset(each.owner for each in self.owners)


def bars(account: MeanStep) -> tuple[Bar, ...]:
    """The bars of the waterfall, one an owner, the largest first and what is ideal last."""
    return tuple(Bar((each,)) for each in sorted(_with_time(account), key=lambda each: each.owner == "ideal"))


def _with_time(account: MeanStep) -> list[OwnerTime]:
    """Owners with time in the step, the largest first."""
    return sorted((each for each in account.owners if each.time_ps > 0), key=lambda each: -each.time_ps)


def shown_bars(account: MeanStep | None) -> tuple[Bar, ...]:
    """The parts of the one bar of a screen, which the cursor can be on: what is ideal first, then the largest; the
    smallest are together.
    """
    if account is None:
        return ()
    owners = sorted(_with_time(account), key=lambda each: each.owner != "ideal")
    large = [each for each in owners if each.fraction >= _LEAST_PART]
    small = tuple(each for each in owners if each.fraction < _LEAST_PART)
    return (*(Bar((each,)) for each in large), *((Bar(small),) if small else ()))


@dataclass(frozen=True)
class Part:
    """A part of a bar: its name and letter, the class whose colour it has, and its fraction of the whole, 0-1."""

    name: str
    letter: str
    op_class: OpClass
    fraction: float


def stacked_bar(parts: Sequence[Part], pen: Pen, compact: bool = False, cursor: int | None = None) -> list[Line]:
    """One bar with the names of its parts on them, and a legend that gives every share.

    Args:
        compact: one line is enough for the legend: it leaves out what stands on the bar, and has the others' names as
            far as they fit, the largest first, else their letters.
        cursor: index of a part.
    """
    bar: list[Span] = [(" ", "text")]
    on_bar: set[str] = set()
    sizes = whole_cells([part.fraction for part in parts], pen.width - 2)
    for part, cells in zip(parts, sizes, strict=True):
        label = f" {part.name} {percent(part.fraction * 100, 0)} "
        fits = len(label) + 2 * pen.glyphs.letters <= cells
        on_bar |= {part.name} if fits else set()
        if pen.glyphs.letters:
            bar.append((f"{label if fits else '':{part.letter}^{cells}}", CLASS_STYLE[part.op_class]))
        else:
            short = f" {part.letter}" if cells >= _LETTER else ""
            bar.append((f"{label if fits else short:<{cells}}", ON_CLASS_STYLE[part.op_class]))
    legend = _short_legend(parts, on_bar, pen, cursor) if compact else _legend(parts, pen, cursor)
    return [pen.fit(bar), *legend]


_LETTER = 3  # cells from which on a letter stands on a part


def _legend(parts: Sequence[Part], pen: Pen, cursor: int | None) -> list[Line]:
    lines: list[Line] = []
    line: list[Span] = []
    for index, part in enumerate(parts):
        entry = _entry(part, pen, index == cursor)
        if line and 2 + line_width(tuple(line)) + line_width(tuple(entry)) > pen.width:
            lines.append(pen.fit(line))
            line = []
        line += [(" ", "text"), *entry] if line else entry
    return [*lines, pen.fit(line)]


def _short_legend(parts: Sequence[Part], on_bar: Collection[str], pen: Pen, cursor: int | None) -> list[Line]:
    shown = [index for index, part in enumerate(parts) if part.name not in on_bar or index == cursor]
    entries = {index: _entry(parts[index], pen, index == cursor, "") for index in shown}
    for index in sorted(shown, key=lambda index: -parts[index].fraction):
        named = {**entries, index: _entry(parts[index], pen, index == cursor, parts[index].name)}
        if sum(1 + line_width(tuple(entry)) for entry in named.values()) <= pen.width:
            entries = named
    return [pen.fit([span for index in shown for span in ((" ", "text"), *entries[index])][1:])]


def _entry(part: Part, pen: Pen, selected: bool, name: str | None = None) -> list[Span]:
    """A part of the legend, with a cell before it for the cursor's mark: letter and name, or the one that is given."""
    sign = part.letter if pen.glyphs.letters else f"{pen.glyphs.full}{part.letter}"
    style = CLASS_STYLE[part.op_class]
    first: Span = (pen.glyphs.mark, "mark") if selected else (" ", "text")
    shown = part.name if name is None else name
    words: Span = (f" {shown} " if shown else " ", "cursor" if selected else "dim")
    return [first, (sign, style), words, (percent(part.fraction * 100), "cursor" if selected else "text")]


def owner_parts(account: MeanStep) -> list[Part]:
    """The parts of the mean step for one bar, what is ideal first; the smallest owners are put together."""
    whole = account.step_ps or 1.0
    return [
        Part("others" if len(bar.owners) > 1 else bar.label, bar.letter, bar.op_class, bar.time_ps / whole)
        for bar in shown_bars(account)
    ]


_LABEL, _TIME, _SHARE, _LEAST_BAR, _MOST_BAR = 21, 9, 7, 10, 90
_STANDS_OUT = 1.5
"""A core is named where it has this multiple of the mean."""

_TOLD = 0.001
"""It is told in which steps an owner is from this share of a step on."""

_NAMED_BETWEEN = 0.01
"""Steps follow each other closely: what lies between them is named from this share of the period on."""


def waterfall(account: MeanStep, pen: Pen) -> list[Line]:
    """A bar an owner, each beginning where the one above ends; together they are as long as the step."""
    shown = bars(account)
    width, step_ps = _bar_width(pen), account.step_ps
    cells = whole_cells([bar.time_ps for bar in shown], width)
    lines, at = [_row(_Row("measured", width, 0, "dim", step_ps, 1.0, ""), pen)], 0
    for bar, filled in zip(shown, cells, strict=True):
        fraction = bar.time_ps / step_ps if step_ps else 0.0
        row = _Row(bar.label, filled, at, bar.style, bar.time_ps, fraction, _note(bar.owners[0], account, pen))
        lines.append(_row(row, pen))
        at += filled
    return lines


def _note(of: OwnerTime, account: MeanStep, pen: Pen) -> str:
    """Where an owner stands out."""
    if not _note_width(pen) or of.owner == "ideal":
        return ""
    if of.owner in WAITS and account.waited_for:
        return f"for {account.waited_for}"
    if len(account.cores) > 1 and of.worst_core_ps >= _STANDS_OUT * of.time_ps:
        return f"{of.worst_core} {duration(of.worst_core_ps, pen.glyphs.is_ascii)}"
    if of.is_regular and of.fraction >= _TOLD:
        return f"{of.timing} {duration(of.timing_ps, pen.glyphs.is_ascii)}"
    if len(account.steps) > 1 and of.worst_step_ps >= _STANDS_OUT * of.time_ps:
        return f"step {of.worst_step} {duration(of.worst_step_ps, pen.glyphs.is_ascii)}"
    return ""


def _note_width(pen: Pen) -> int:
    return 26 if pen.width >= WIDE else 0


def _bar_width(pen: Pen) -> int:
    return max(_LEAST_BAR, min(_MOST_BAR, pen.width - _LABEL - _TIME - _SHARE - 2 - _note_width(pen)))


class _Row(NamedTuple):
    """A row of the waterfall: label, cells of its bar and before it, style, time, share, note."""

    label: str
    bar: int
    at: int
    style: StyleKey
    ps: float
    fraction: float
    note: str


def _row(row: _Row, pen: Pen) -> Line:
    before, after = " " * row.at, " " * (_bar_width(pen) - row.at - row.bar)
    spans: list[Span] = [(f" {row.label:<{_LABEL - 1}}", "text"), (before, "text")]
    spans += [(pen.glyphs.full * row.bar, row.style), (after, "text")]
    spans.append((f"{duration(row.ps, pen.glyphs.is_ascii):>{_TIME}}", "strong"))
    spans.append((f"{percent(100 * row.fraction):>{_SHARE}}", "text"))
    note = cut_words(row.note, pen.width - line_width(spans) - 2, pen.glyphs) if row.note else ""
    return pen.fit([*spans, (f"  {note}", "dim")])


def shares_line(page: Overview, pen: Pen) -> list[Line]:
    """What the program reaches of the peak, and how long no op runs.

    The headline's idle time is of the capture, the account is of the steps: where there is room, the line has the time
    without an op in both. Of one group of cores it has that of the capture alone. No line without a share of the peak.
    """
    flops = page.performance.flops_utilization_percent
    if flops is None:
        return []
    on_all = "" if page.group is None else " on all cores"
    spans: list[Span] = [(" FLOPS ", "dim"), (percent(flops), "strong"), (f" of peak{on_all}", "dim")]
    idle: list[Span] = []
    if page.account is not None and page.performance.device_idle_percent is not None:
        in_steps = f" ({percent(100 * page.account.no_op_fraction)} of the steps)" if page.group is None else ""
        idle += [(", IDLE ", "dim"), (percent(page.performance.device_idle_percent), "strong")]
        idle.append((f" of the capture{in_steps}", "dim"))
    fits = idle and line_width((*spans, *idle)) <= pen.width
    return [pen.fit(spans + (idle if fits else [(", from the first op to the last", "dim")]))]


def between_line(account: MeanStep, pen: Pen) -> list[Line]:
    """What lies between steps, where it matters: the period is what the program takes a step."""
    between = account.period_ps - account.step_ps
    if between < _NAMED_BETWEEN * account.period_ps:
        return []
    largest = max(account.owners, key=lambda each: each.between_ps)
    ascii_only = pen.glyphs.is_ascii
    owner = "ops outside steps" if largest.owner == "uncounted" else OWNER_TITLES[largest.owner]
    words = (
        f"Steps start every {duration(account.period_ps, ascii_only)}; {duration(between, ascii_only)} lies between "
    )
    words += f"them, mostly {owner}."
    return pen.wrap(words, "text", [(" ", "text")])


Divided = tuple[str, "Sequence[AccountRow] | None"]
"""What the account of the mean step is divided by, and the accounts; None where these are unknown."""


def report_lines(page: Overview, pen: Pen, most: int, divided: Divided | None = None) -> list[Line]:
    """The verdict, the waterfall, and the accounts that are asked for, or those of hosts, cores and steps."""
    account = page.account
    if account is None:
        return pen.wrap(page.unknown.get("performance.step_time_ms", "The steps have no duration."), "strong")
    lines = [*pen.wrap(account.verdict.statement, "strong"), *waterfall(account, pen)]
    lines += [*shares_line(page, pen), *between_line(account, pen)]
    if divided is not None:
        by, found = divided
        if found is None:
            return [*lines, pen.rule(f"By {by}"), *pen.wrap(f"Unknown: {NOT_IN_STEPS}.", "text", [(" ", "text")])]
        prefix = shared_prefix([each.name for each in found]) if by == "scope" else ""
        about = f"{f'names in {prefix}; ' * bool(prefix)}{len(found)}, {_MEANS[by]}"
        named = [replace(each, name=each.name.removeprefix(prefix)) for each in found]
        return [*lines, pen.rule(f"By {by}", about), *_accounts(named, account, pen, most)]
    lines += loss_lines(account, pen)
    for title, accounts in (("Hosts", account.hosts), ("Cores", account.cores), ("Steps", account.steps)):
        if len(accounts) > 1:
            lines += [pen.rule(title, f"{len(accounts)}, means in each"), *_accounts(accounts, account, pen, most)]
    return lines


_MEANS = {
    **dict.fromkeys(("step", "core", "host"), "means in each"),
    **dict.fromkeys(("module", "scope", "op"), "which add up to the mean step"),
}


def loss_lines(account: MeanStep, pen: Pen) -> list[Line]:
    """What computing ops lose against their roof, by cause, with the op that loses most for each."""
    if not account.losses:
        return []
    lost = duration(sum(loss.time_ps for loss in account.losses), pen.glyphs.is_ascii)
    lines = [pen.rule("Below the roof, by cause", f"{lost} of a step")]
    for loss in account.losses:
        spans: list[Span] = [(f" {CAUSE_TITLES[loss.cause]:<{_LABEL - 1}}", "text")]
        spans.append((f"{duration(loss.time_ps, pen.glyphs.is_ascii):>{_TIME}}", "strong"))
        fraction = loss.time_ps / account.step_ps if account.step_ps else 0.0
        spans.append((f"{percent(100 * fraction):>{_SHARE}}", "text"))
        lines.append(pen.fit([*spans, (f"  {counted(loss.ops, 'op')}, most in {loss.op}", "dim")]))
    return lines


def _accounts(accounts: Sequence[AccountRow], whole: MeanStep, pen: Pen, most: int) -> list[Line]:
    """A row an account: its time, then the owners that have most time, as many as there is room for."""
    owners = sorted((each for each in whole.owners if each.time_ps > 0), key=lambda each: -each.time_ps)
    longest = max((len(pen.text(account.name)) for account in accounts), default=0)
    names = max(_NAME, min(longest, pen.width - _OF_TIMES))
    room = max(1, (pen.width - names - _OF_NAME) // _OF_OWNER)
    chosen = [each.owner for each in owners[:room]]
    titles = [_SHORT.get(owner, OWNER_TITLES[owner]) for owner in chosen]
    lines = [_cells("", "time", titles, names, pen, "dim")]
    for account in accounts[: most or None]:
        times = [duration(account.owner_ps[OWNERS.index(owner)], pen.glyphs.is_ascii) for owner in chosen]
        lines.append(_cells(account.name, duration(account.time_ps, pen.glyphs.is_ascii), times, names, pen, "text"))
    rest = len(accounts) - len(accounts[: most or None])
    return lines + ([pen.fit([(f" and {rest} more", "dim")])] if rest else [])


_NAME, _OF_NAME, _OF_OWNER = 19, 13, 13
_OF_TIMES = _OF_NAME + 3 * _OF_OWNER
"""Cells of the shortest column of names, of what stands around it, of an owner, and that long names leave to times."""

_SHORT: Mapping[Owner, str] = {
    "collective_wait": "coll. waits",
    "collective_transfer": "coll. moves",
    "host_transfer": "host transf.",
    "loss": "below roof",
}
"""Titles that are too long for a column."""


def _cells(name: str, time: str, times: list[str], names: int, pen: Pen, style: StyleKey) -> Line:
    label = f" {cut_middle(pen.text(name), names, pen.glyphs):<{names + 1}}{time:>10}"
    return pen.fit([(label, style), *((f"{text:>{_OF_OWNER}}", style) for text in times)])
