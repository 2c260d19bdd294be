"""The waterfall of a step in cells: from the step as measured down to what its ops would take at their roof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


_Bar = tuple[str, StyleKey, float, str]
"""Label, style, time and note of a bar."""


def waterfall(account: StepAccount, pen: Pen, most: int | None = None) -> list[Line]:
    """A bar an owner, each beginning where the one above ends; together they are as long as the step.

    Args:
        most: lines; the smallest owners are put together where there are more.
    """
    shown = _with_rest(account, most, pen)
    width = _bar_width(pen)
    cells = whole_cells([ps for _, _, ps, _ in shown], width)
    lines, at = [_row("measured", pen.glyphs.full * width, 0, "dim", account.step_ps, 1.0, "", pen)], 0
    for (label, style, ps, note), filled in zip(shown, cells, strict=True):
        fraction = ps / account.step_ps if account.step_ps else 0.0
        lines.append(_row(label, pen.glyphs.full * filled, at, style, ps, fraction, note, pen))
        at += filled
    return lines


def _with_rest(account: StepAccount, most: int | None, pen: Pen) -> list[_Bar]:
    """The bars, the largest first and what is ideal last."""
    owners = sorted((each for each in account.owners if each.time_ps > 0), key=lambda each: -each.time_ps)
    ideal = [each for each in owners if each.owner == "ideal"]
    others = [each for each in owners if each.owner != "ideal"]
    room = len(others) if most is None else max(1, most - 1 - len(ideal))
    bars = [
        (OWNER_TITLES[each.owner], CLASS_STYLE[OWNER_CLASS[each.owner]], each.time_ps, _note(each, account, pen))
        for each in others
    ]
    if len(bars) > room:
        rest = bars[room - 1 :]
        names = ", ".join(label for label, *_ in rest)
        together: _Bar = (
            f"{len(rest)} others",
            "dim",
            sum((ps for _, _, ps, _ in rest), 0.0),
            names if _note_width(pen) else "",
        )
        bars = [*bars[: room - 1], together]
    return [*bars, *((OWNER_TITLES["ideal"], CLASS_STYLE[OWNER_CLASS["ideal"]], each.time_ps, "") for each in ideal)]


def _note(of: OwnerTime, account: StepAccount, pen: Pen) -> str:
    if not _note_width(pen):
        return ""
    if len(account.cores) > 1 and of.worst_core_ps >= _STANDS_OUT * of.time_ps:
        return f"{of.worst_core} {duration(of.worst_core_ps)}"
    if len(account.steps) > 1 and of.worst_step_ps >= _STANDS_OUT * of.time_ps:
        return f"step {of.worst_step} {duration(of.worst_step_ps)}"
    return ""


def _note_width(pen: Pen) -> int:
    return 26 if pen.width >= WIDE else 0


def _bar_width(pen: Pen) -> int:
    return max(_LEAST_BAR, pen.width - _LABEL - _TIME - _SHARE - 2 - _note_width(pen))


def _row(label: str, bar: str, at: int, style: StyleKey, ps: float, fraction: float, note: str, pen: Pen) -> Line:
    before, after = " " * at, " " * (_bar_width(pen) - at - len(bar))
    spans: list[Span] = [(f" {label:<{_LABEL - 1}}", "text"), (before, "text"), (bar, style), (after, "text")]
    spans += [
        (f"{duration(ps, pen.glyphs.is_ascii):>{_TIME}}", "strong"),
        (f"{percent(100 * fraction):>{_SHARE}}", "text"),
    ]
    return pen.fit([*spans, (f"  {note}", "dim")])


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
