"""The list of runs in cells: a row a run, and below it what is known of the run under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tpuprof.parsers.base.text import counted, natural_key
from tpuprof.tui.draw.format import UNKNOWN, age, duration, size
from tpuprof.tui.draw.layout import NARROW, clean, fit, rule
from tpuprof.tui.draw.spans import Glyphs, Line, Span
from tpuprof.tui.draw.table import Column, chosen_columns, each, header_line, row_lines

if TYPE_CHECKING:  # the list stands before numpy is imported
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.run_facts import RunFacts

RunOrder = Literal["time", "size", "step"]
ORDERS: tuple[RunOrder, ...] = ("time", "size", "step")

DETAIL_LINES = 5
"""Lines on the run under the cursor, with the rule above them."""

LEAST_ROWS = 3
"""Rows of the list that are worth more than the lines below it."""

NOT_YET = "..."

_LONGEST_NAME = 32
_NARROW_NAME = 19  # of a run that a profiler named: 2026_11_20_18_04_33
_LEAST_MODULES = 12
_TRACING = {
    "off": "no host events",
    "annotations": "host events without Python calls",
    "python": "host events with Python calls",
}


@dataclass(frozen=True, slots=True)
class RunRow:
    """One row.

    Attributes:
        run: the run.
        facts: what is known of it; None as long as nobody has looked.
        is_newest: it is the newest of all runs.
        is_shown: it is the one that is open.
        mark: ``A`` or ``B`` for the first of two runs to compare, else empty.
    """

    run: Run
    facts: RunFacts | None = None
    is_newest: bool = False
    is_shown: bool = False
    mark: str = ""


def newest_first(runs: Sequence[Run]) -> list[Run]:
    """Runs by their time."""
    return sorted(runs, key=lambda run: (-run.time, natural_key(run.name)))


def ordered(rows: Sequence[RunRow], order: RunOrder) -> list[RunRow]:
    """Rows newest, largest or slowest first; those without a step time last.

    Args:
        rows: newest first, as those of one size stay.
    """
    if order == "size":
        return sorted(rows, key=lambda row: -row.run.size_bytes)
    if order == "step":
        return sorted(rows, key=lambda row: -(_step_time(row) or -1))
    return list(rows)


def _step_time(row: RunRow) -> int | None:
    return row.facts.step_time_ps if row.facts is not None else None


def matching(rows: Sequence[RunRow], words: str, now: float) -> list[RunRow]:
    """The rows that hold every word of a filter in any column, whatever the case."""
    wanted = words.casefold().split()
    if not wanted:
        return list(rows)
    return [row for row in rows if all(word in _searched(row, now) for word in wanted)]


def _searched(row: RunRow, now: float) -> str:
    """All that a filter finds a row by."""
    run, facts = row.run, row.facts
    parts = [run.name, run.path, size(run.size_bytes), short_age(run, now), "newest" if row.is_newest else ""]
    parts += [host.host for host in run.hosts]
    parts += [problem.sentence for problem in run.problems]
    if facts is not None:
        parts += [_device(facts), _step_words(facts, True), *(facts.modules or ())]
    return " ".join(parts).casefold()


def list_lines(
    rows: Sequence[RunRow],
    cursor: int,
    first: int,
    count: int,
    order: RunOrder,
    now: float,
    width: int,
    glyphs: Glyphs,
) -> list[Line]:
    """Headings and some rows.

    Args:
        rows: in their order.
        cursor: index of the row under the cursor.
        first, count: which rows are shown.
        now: seconds since 1970.
    """
    columns = _columns(rows, now, width, glyphs)
    lines = [header_line(columns, width, glyphs, order, descending=order != "time")]
    lines += row_lines(columns, range(first, min(len(rows), first + count)), cursor, width, glyphs)
    if not rows:
        lines.append(fit([("   no run has all these words", "dim")], width, glyphs))
    return lines


def _columns(rows: Sequence[RunRow], now: float, width: int, glyphs: Glyphs) -> list[Column]:
    """The columns that fit, the names of modules only where there is room for some of a name."""
    is_ascii = glyphs.name == "ascii"

    def text(value: str) -> str:
        return clean(value, is_ascii)

    def fact(words: str | None, row: RunRow) -> Span:
        if row.facts is None:
            return NOT_YET, "dim"
        return (UNKNOWN, "dim") if words is None else (text(words), "text")

    def step(at: int) -> Span:
        facts = rows[at].facts
        return fact(None if facts is None or facts.step_time_ps is None else _step_words(facts, is_ascii), rows[at])

    def device(at: int) -> Span:
        facts = rows[at].facts
        return fact(None if facts is None else _device(facts) or None, rows[at])

    def modules(at: int) -> Span:
        facts = rows[at].facts
        return fact(None if facts is None or facts.modules is None else ", ".join(facts.modules), rows[at])

    def name(at: int) -> Span:
        run = rows[at].run
        return text(run.name), "strong" if rows[at].is_shown else "text" if run.hosts else "dim"

    longest = max((len(text(row.run.name)) for row in rows), default=8)
    widest = max(8, min(longest, _LONGEST_NAME if width >= NARROW else _NARROW_NAME))
    columns = [
        Column("", "", 1, each(lambda at: _sign(rows[at])), right=False, fixed=True),
        Column("name", "run", widest, each(name), right=False, fixed=True, grows=True),
        Column("hosts", "hosts", 5, each(lambda at: (str(len(rows[at].run.hosts)), "text"))),
        Column("size", "size", 7, each(lambda at: (size(rows[at].run.size_bytes), "text"))),
        Column("time", "age", 6, each(lambda at: (short_age(rows[at].run, now), "text"))),
        Column("step", "step", 8, each(step)),
        Column("", "!", 2, each(lambda at: _problem_sign(rows[at]))),
        Column("device", "device", 14, each(device), right=False),
    ]
    left = width - 1 - sum(column.width + 1 for column in columns)
    if left <= _LEAST_MODULES:
        return chosen_columns(columns, width)
    columns.append(Column("modules", "modules", left - 1, each(modules), right=False))
    return columns


def _sign(row: RunRow) -> Span:
    """What stands before a name: the letter of a run to compare, or a star for the newest."""
    if row.mark:
        return row.mark, "key"
    return ("*", "key") if row.is_newest else (" ", "text")


def _problem_sign(row: RunRow) -> Span:
    count = len(row.run.problems) + (len(row.facts.problems) if row.facts is not None else 0)
    if not row.run.hosts:
        return "!!", "warn"
    return (f"!{count}" if 1 < count < 10 else "!", "warn") if count else ("", "text")


def short_age(run: Run, now: float) -> str:
    """How old a run is, in six cells: ``now``, ``5 min``, ``12 d``."""
    if run.time <= 0:
        return UNKNOWN
    words = age(now - run.time).removesuffix(" ago")
    words = {"just now": "now", "in the future": "future"}.get(words, words)
    return words if len(words) <= 6 else ">99 y"


def _step_words(facts: RunFacts, is_ascii: bool) -> str:
    """The step time; with ``~`` where it was inferred from the periods of a module."""
    if facts.step_time_ps is None:
        return UNKNOWN
    return ("~" if facts.step_source == "modules" else "") + duration(facts.step_time_ps, is_ascii)


def _device(facts: RunFacts) -> str:
    """``TPU v5 Lite x4``; empty where there is none."""
    if facts.device_type is None:
        return ""
    return facts.device_type + (f" x{facts.core_count}" if facts.core_count and facts.core_count > 1 else "")


def detail_lines(row: RunRow | None, width: int, glyphs: Glyphs) -> list[Line]:
    """What is known of one run, in `DETAIL_LINES` lines: how it was captured, its steps, its modules, what is wrong."""
    if row is None:
        return [rule("", width, glyphs), *(fit([], width, glyphs) for _ in range(DETAIL_LINES - 1))]
    is_ascii = glyphs.name == "ascii"
    run, facts = row.run, row.facts
    labels = [word for word, is_so in (("newest", row.is_newest), ("open", row.is_shown)) if is_so]
    lines = [rule(clean(run.name, is_ascii), width, glyphs, ", ".join(labels))]
    texts = ["", "", ""] if facts is None else [_capture(run, facts, glyphs), _steps(facts, glyphs), _modules(facts)]
    if facts is None:
        texts[0] = "reading what it holds" + NOT_YET
    lines += [fit([(" " + clean(text, is_ascii), "text")], width, glyphs) for text in texts]
    wrong = _wrong(run, facts)
    lines.append(fit([(" ! ", "warn"), (clean(wrong, is_ascii), "text")] if wrong else [], width, glyphs))
    return lines


def _capture(run: Run, facts: RunFacts, glyphs: Glyphs) -> str:
    """Device, duration, HLO and the host's events of the host that was read."""
    parts = ["SIMULATED TIMES" if facts.simulated else "", _device(facts) or facts.unknown.get("device_type", "")]
    if facts.duration_ps is not None:
        parts.append(f"{duration(facts.duration_ps, glyphs.name == 'ascii')} profiled")
    if facts.has_hlo is not None:
        parts.append("compiled HLO" if facts.has_hlo else "no compiled HLO")
    if facts.host_tracing is not None:
        parts.append(_TRACING[facts.host_tracing])
    if len(run.hosts) > 1 and facts.host is not None:
        parts.append(f"read from {facts.host}")
    return f" {glyphs.dot} ".join(part for part in parts if part)


def _steps(facts: RunFacts, glyphs: Glyphs) -> str:
    if facts.step_time_ps is None:
        return "no step time: " + facts.unknown.get("step_time_ps", "")
    steps = counted(facts.step_count or 0, "step")
    what = f"median of {steps}" if facts.step_source == "steps" else f"median period of a module, {steps}"
    return f"step time {_step_words(facts, glyphs.name == 'ascii')}, {what} on one core"


def _modules(facts: RunFacts) -> str:
    if facts.modules is None:
        return "no modules: " + facts.unknown.get("modules", "")
    more = (facts.module_count or 0) - len(facts.modules)
    return "modules " + ", ".join(facts.modules) + (f" and {more:,} more" if more > 0 else "")


def _wrong(run: Run, facts: RunFacts | None) -> str:
    """The first problem, and how many more there are."""
    problems = [*run.problems, *(facts.problems if facts is not None else ())]
    if not problems:
        return ""
    more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
    return problems[0].sentence + more
