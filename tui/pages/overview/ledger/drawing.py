"""The waterfall of a step in cells: from the step as measured down to what its ops would take at their roof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.findings.ops.losses import CAUSE_TITLES
from tpuprof.parsers.pages.overview.ledger import Account, OwnerTime, StepAccount
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS, Owner
from tpuprof.tui.draw.bars import CLASS_STYLE, ON_CLASS_STYLE, whole_cells
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.layout import WIDE
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, Span, StyleKey, line_width

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


@dataclass(frozen=True)
class Part:
    """A part of a bar: its name and letter, the class whose colour it has, and its fraction of the whole, 0-1."""

    name: str
    letter: str
    op_class: OpClass
    fraction: float


def stacked_bar(parts: Sequence[Part], pen: Pen, compact: bool = False) -> list[Line]:
    """One bar with the names of its parts on them, and a legend that gives every share.

    Args:
        compact: the legend names parts by letter, so that one line is enough.
    """
    bar: list[Span] = [(" ", "text")]
    sizes = whole_cells([part.fraction for part in parts], pen.width - 2)
    for part, cells in zip(parts, sizes, strict=True):
        label = f" {part.name} {percent(part.fraction * 100, 0)} "
        if pen.glyphs.letters:
            words = f"{label if len(label) + 2 <= cells else '':{part.letter}^{cells}}"
            bar.append((words, CLASS_STYLE[part.op_class]))
        else:
            short = f" {part.letter}" if cells >= _LETTER else ""
            bar.append((f"{label if len(label) <= cells else short:<{cells}}", ON_CLASS_STYLE[part.op_class]))
    return [pen.fit(bar), *_legend(parts, pen, compact)]


_LETTER = 3  # cells from which on a letter stands on a part


def _legend(parts: Sequence[Part], pen: Pen, compact: bool) -> list[Line]:
    lines: list[Line] = []
    line: list[Span] = []
    for part in parts:
        sign = part.letter if pen.glyphs.letters else f"{pen.glyphs.full}{part.letter}"
        entry: list[Span] = [(sign, CLASS_STYLE[part.op_class]), (" " if compact else f" {part.name} ", "dim")]
        entry.append((percent(part.fraction * 100), "text"))
        if line and 3 + line_width(tuple(line)) + line_width(tuple(entry)) > pen.width:
            lines.append(pen.fit([(" ", "text"), *line]))
            line = []
        line += [("  ", "text"), *entry] if line else entry
    return [*lines, pen.fit([(" ", "text"), *line])]


def owner_parts(account: StepAccount) -> list[Part]:
    """The parts of the mean step for one bar, what is ideal first; the smallest owners are put together."""
    owners = sorted(account.owners, key=lambda each: (each.owner != "ideal", -each.time_ps))
    large = [each for each in owners if each.fraction >= _LEAST_PART]
    parts = [
        Part(OWNER_TITLES[each.owner], OWNER_LETTER[each.owner], OWNER_CLASS[each.owner], each.fraction)
        for each in large
    ]
    rest = max(0.0, 1.0 - sum(part.fraction for part in parts))
    return [*parts, Part("others", "O", "unknown", rest)] if len(large) < len(owners) else parts


_LEAST_PART = 0.005

_LABEL, _TIME, _SHARE, _LEAST_BAR = 21, 9, 7, 10
_STANDS_OUT = 1.5
"""A core is named where it has this multiple of the mean."""


@dataclass(frozen=True)
class Bar:
    """A bar of the waterfall: an owner or, as the last but one, the smallest owners together."""

    owners: tuple[OwnerTime, ...]

    @property
    def label(self) -> str:
        """What it is called."""
        return OWNER_TITLES[self.owners[0].owner] if len(self.owners) == 1 else f"{len(self.owners)} others"

    @property
    def style(self) -> StyleKey:
        """Its colour; none for several owners."""
        return CLASS_STYLE[OWNER_CLASS[self.owners[0].owner]] if len(self.owners) == 1 else "dim"

    @property
    def time_ps(self) -> float:
        """Its part of the mean step."""
        return sum((each.time_ps for each in self.owners), 0.0)


def bars(account: StepAccount, most: int | None = None) -> tuple[Bar, ...]:
    """The bars of the waterfall, the largest first and what is ideal last.

    Args:
        most: lines of the waterfall; the smallest owners are put together where there are more.
    """
    owners = sorted((each for each in account.owners if each.time_ps > 0), key=lambda each: -each.time_ps)
    ideal = [Bar((each,)) for each in owners if each.owner == "ideal"]
    others = [each for each in owners if each.owner != "ideal"]
    room = len(others) if most is None else max(1, most - 1 - len(ideal))
    shown = [Bar((each,)) for each in others]
    if len(shown) > room:
        shown = [*shown[: room - 1], Bar(tuple(others[room - 1 :]))]
    return (*shown, *ideal)


def waterfall(account: StepAccount, pen: Pen, most: int | None = None, cursor: int | None = None) -> list[Line]:
    """A bar an owner, each beginning where the one above ends; together they are as long as the step.

    Args:
        most: lines; the smallest owners are put together where there are more.
        cursor: index of a bar.
    """
    shown = bars(account, most)
    width = _bar_width(pen)
    cells = whole_cells([bar.time_ps for bar in shown], width)
    whole = _Row("measured", pen.glyphs.full * width, 0, "dim", account.step_ps, 1.0, "")
    lines, at = [_row(whole, False, pen)], 0
    for index, (bar, filled) in enumerate(zip(shown, cells, strict=True)):
        fraction = bar.time_ps / account.step_ps if account.step_ps else 0.0
        drawn = pen.glyphs.full * filled
        row = _Row(bar.label, drawn, at, bar.style, bar.time_ps, fraction, _note(bar, account, pen))
        lines.append(_row(row, index == cursor, pen))
        at += filled
    return lines


def _note(bar: Bar, account: StepAccount, pen: Pen) -> str:
    """Where an owner stands out, or which owners are put together."""
    if not _note_width(pen):
        return ""
    if len(bar.owners) > 1:
        return ", ".join(OWNER_TITLES[each.owner] for each in bar.owners)
    of = bar.owners[0]
    if of.owner == "ideal":
        return ""
    if len(account.cores) > 1 and of.worst_core_ps >= _STANDS_OUT * of.time_ps:
        return f"{of.worst_core} {duration(of.worst_core_ps, pen.glyphs.is_ascii)}"
    if len(account.steps) > 1 and of.worst_step_ps >= _STANDS_OUT * of.time_ps:
        return f"step {of.worst_step} {duration(of.worst_step_ps, pen.glyphs.is_ascii)}"
    return ""


def _note_width(pen: Pen) -> int:
    return 26 if pen.width >= WIDE else 0


def _bar_width(pen: Pen) -> int:
    return max(_LEAST_BAR, pen.width - _LABEL - _TIME - _SHARE - 2 - _note_width(pen))


class _Row(NamedTuple):
    """A row of the waterfall: its label, its bar and the cells before that, its style, time, share and note."""

    label: str
    bar: str
    at: int
    style: StyleKey
    ps: float
    fraction: float
    note: str


def _row(row: _Row, selected: bool, pen: Pen) -> Line:
    before, after = " " * row.at, " " * (_bar_width(pen) - row.at - len(row.bar))
    key: StyleKey = "cursor" if selected else "text"
    label = f"{row.label:<{_LABEL - 1}}"
    spans: list[Span] = [(pen.glyphs.mark, "mark"), (label, key)] if selected else [(f" {label}", key)]
    spans += [(before, "text"), (row.bar, row.style), (after, "text")]
    metrics = (f"{duration(row.ps, pen.glyphs.is_ascii):>{_TIME}}", f"{percent(100 * row.fraction):>{_SHARE}}")
    spans += [(metrics[0], "cursor" if selected else "strong"), (metrics[1], key)]
    return pen.fit([*spans, (f"  {row.note}", "dim")])


def between_line(account: StepAccount, pen: Pen) -> list[Line]:
    """What lies between steps, where it matters: the period is what the program takes a step."""
    between = account.period_ps - account.step_ps
    if between < _NAMED_BETWEEN * account.period_ps:
        return []
    largest = max(account.owners, key=lambda each: each.between_ps)
    ascii_only = pen.glyphs.is_ascii
    owner = "ops of no step" if largest.owner == "uncounted" else OWNER_TITLES[largest.owner]
    words = f"{duration(between, ascii_only)} more lie between a step and the next, most of it {owner}"
    words += f": a step every {duration(account.period_ps, ascii_only)}."
    return pen.wrap(words, "text", [(" ", "text")])


_NAMED_BETWEEN = 0.01
"""Steps follow each other closely: what lies between them is named from this share of the period on."""


def report_lines(page: Overview, pen: Pen, most: int) -> list[Line]:
    """The verdict, the waterfall, and the accounts of hosts, cores and steps."""
    account = page.account
    if account is None:
        return pen.wrap(page.unknown.get("performance.step_time_ms", "The steps take no time."), "strong")
    lines = [*pen.wrap(account.verdict.statement, "strong"), *waterfall(account, pen), *between_line(account, pen)]
    lines += loss_lines(account, pen)
    for title, accounts in (("Hosts", account.hosts), ("Cores", account.cores), ("Steps", account.steps)):
        if len(accounts) > 1:
            lines += [pen.rule(title, f"{len(accounts)}, means in each"), *_accounts(accounts, account, pen, most)]
    return lines


def loss_lines(account: StepAccount, pen: Pen) -> list[Line]:
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


def _accounts(accounts: tuple[Account, ...], whole: StepAccount, pen: Pen, most: int) -> list[Line]:
    """A row an account: its time, then the owners that have most time, as many as there is room for."""
    owners = sorted((each for each in whole.owners if each.time_ps > 0), key=lambda each: -each.time_ps)
    room = max(1, (pen.width - 32) // 13)
    chosen = [each.owner for each in owners[:room]]
    lines = [_cells("", "time", [_SHORT.get(owner, OWNER_TITLES[owner]) for owner in chosen], pen, "dim")]
    for account in accounts[: most or None]:
        times = [duration(account.owner_ps[OWNERS.index(owner)], pen.glyphs.is_ascii) for owner in chosen]
        lines.append(_cells(account.name, duration(account.time_ps, pen.glyphs.is_ascii), times, pen, "text"))
    rest = len(accounts) - len(accounts[: most or None])
    return lines + ([pen.fit([(f" and {rest} more", "dim")])] if rest else [])


_SHORT: Mapping[Owner, str] = {
    "collective_wait": "coll. waits",
    "collective_transfer": "coll. moves",
    "host_transfer": "host transf.",
    "loss": "below roof",
}
"""Titles that are too long for a column."""


def _cells(name: str, time: str, times: list[str], pen: Pen, style: StyleKey) -> Line:
    return pen.fit([(f" {pen.text(name)[:19]:<20}{time:>10}", style), *((f"{text:>13}", style) for text in times)])
