"""The list of runs in cells: a row a run, and below it what is known of the run under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted, has_words
from tpuprof.parsers.base.words import SOURCE_WORDS
from tpuprof.tui.draw.format import duration
from tpuprof.tui.draw.pen import NARROW, Pen
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.draw.table import Column, Listing, chosen_columns, header_line, row_lines
from tpuprof.tui.pages.runs.fields import NOT_YET, RUNS, ListedRuns, RunRow, device_words, step_words
from tpuprof.tui.report import fields

if TYPE_CHECKING:  # the list stands before numpy is imported
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.run_facts import RunFacts

DETAIL_LINES = 5  # lines on the run under the cursor, with the rule above them
LEAST_ROWS = 3  # rows of the list that are worth more than the lines below it
_LONGEST_NAME = 32
_NARROW_NAME = 19  # of a run that a profiler named: 2026_11_20_18_04_33
_LEAST_MODULES = 12
_TRACING = {
    "off": "no host events",
    "annotations": "host events without Python calls",
    "python": "host events with Python calls",
}


@dataclass(frozen=True, slots=True)
class RunListing(Listing):
    """The list in one of its orders."""

    sort: str = "age"

    @property
    def descending(self) -> bool:
        """Whether the largest is first; by age the newest is, before it is turned round."""
        return RUNS.is_down(self) != (self.sort == "age")


def ordered(rows: Sequence[RunRow], listing: RunListing) -> list[RunRow]:
    """Rows that come newest first in another order; what is unknown comes last."""
    if listing.sort == "age":
        return list(rows[::-1] if listing.is_reversed else rows)
    return [rows[at] for at in fields.order(RUNS, ListedRuns(rows), listing.sort, listing.descending).tolist()]


def matching(rows: Sequence[RunRow], words: str, now: float) -> list[RunRow]:
    """The rows that hold every word of a filter in any column, whatever the case."""
    if not words.strip():
        return list(rows)
    is_wanted = has_words(words)
    return [row for row, text in zip(rows, searched_texts(rows, now), strict=True) if is_wanted(text)]


def searched_texts(rows: Sequence[RunRow], now: float) -> list[str]:
    """What a filter looks at in each row."""
    return fields.searched_texts(RUNS, ListedRuns(rows, now))


def list_lines(
    rows: Sequence[RunRow], cursor: int, first: int, count: int, listing: RunListing, now: float, pen: Pen
) -> list[Line]:
    """Headings and `count` rows of those in the order of `listing`; `now` is in seconds since 1970."""
    columns = _columns(rows, now, pen)
    lines = [header_line(columns, pen, listing.sort, listing.descending)]
    lines += row_lines(columns, range(first, min(len(rows), first + count)), cursor, pen)
    if not rows:
        lines.append(pen.fit([("   no run has all these words", "dim")]))
    return lines


def _columns(rows: Sequence[RunRow], now: float, pen: Pen) -> list[Column]:
    """The columns that fit, the names of modules only where there is room for some of a name."""
    longest = max((len(pen.text(row.run.name)) for row in rows), default=8)
    widest = max(8, min(longest, _LONGEST_NAME if pen.width >= NARROW else _NARROW_NAME))
    sign, name, *others, modules = fields.screen_columns(RUNS, ListedRuns(rows, now), pen.glyphs)
    columns = [sign, replace(name, width=widest), *others]
    left = pen.width - 1 - sum(column.width + 1 for column in columns)
    if left <= _LEAST_MODULES:
        return chosen_columns(columns, pen.width)
    return [*columns, replace(modules, width=left - 1)]


def detail_lines(row: RunRow | None, pen: Pen) -> list[Line]:
    """What is known of one run, in `DETAIL_LINES` lines: how it was captured, its steps, its modules, what is wrong."""
    if row is None:
        return [pen.rule(""), *(pen.fit([]) for _ in range(DETAIL_LINES - 1))]
    run, facts = row.run, row.facts
    labels = [word for word, is_so in (("newest", row.is_newest), ("open", row.is_shown)) if is_so]
    lines = [pen.rule(run.name, ", ".join(labels))]
    texts = ["reading what it holds" + NOT_YET, "", ""]
    if facts is not None:
        texts = [_capture(run, facts, pen.glyphs), _steps(facts, pen.glyphs), _modules(facts)]
    lines += [pen.fit([(" " + text, "text")]) for text in texts]
    problems = row.problems
    wrong = problems[0].sentence if problems else ""
    wrong += f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
    lines.append(pen.fit([(" ! ", "warn"), (wrong, "text")] if wrong else []))
    return lines


def _capture(run: Run, facts: RunFacts, glyphs: Glyphs) -> str:
    parts = ["SIMULATED TIMES" if facts.simulated else "", device_words(facts) or facts.unknown.get("device_type", "")]
    if facts.duration_ps is not None:
        parts.append(f"{duration(facts.duration_ps, glyphs.is_ascii)} profiled")
    if facts.has_hlo is not None:
        parts.append("compiled HLO" if facts.has_hlo else "no compiled HLO")
    if facts.host_tracing is not None:
        parts.append(_TRACING[facts.host_tracing])
    if len(run.hosts) > 1 and facts.host is not None:
        parts.append(f"read from {facts.host}")
    parts += facts.versions or ()
    return f" {glyphs.dot} ".join(part for part in parts if part)


def _steps(facts: RunFacts, glyphs: Glyphs) -> str:
    if facts.core_step_ps is None:
        return "no step time: " + facts.unknown.get("core_step_ps", "")
    steps = counted(facts.step_count or 0, "step")
    what = f"median of {steps}"
    if facts.step_source != "steps":
        what += f" {SOURCE_WORDS[facts.step_source or 'modules']}"
    return f"step time {step_words(facts, glyphs.is_ascii)}, {what} on one core"


def _modules(facts: RunFacts) -> str:
    if facts.modules is None:
        return "no modules: " + facts.unknown.get("modules", "")
    more = (facts.module_count or 0) - len(facts.modules)
    return "modules " + ", ".join(facts.modules) + (f" and {more:,} more" if more > 0 else "")
