"""The report on variants that were compiled: which fit, what each needs, and how long its program takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.program.trials import FITS, TOO_LARGE, UNKNOWN, Plan, Trial
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.report.declared import Metrics, Section, values_of
from tpuprof.tui.report.fields import ColumnSpec, Metric, Table, attribute, object_table
from tpuprof.tui.report.json import document, left_out, schema
from tpuprof.tui.report.markdown import joined
from tpuprof.tui.report.page import CommandReport, TextLook
from tpuprof.tui.report.shared.quantities import told
from tpuprof.tui.report.text import titled_text
from tpuprof.tui.report.units import BYTES, TEXT, TIME_PS, VERBATIM


@dataclass(frozen=True, slots=True)
class Tried:
    """What was tried, and what came of it."""

    plan: Plan
    trials: Sequence[Trial]

    @property
    def command(self) -> str:
        return self.plan.command

    @property
    def fitting(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.verdict == FITS]

    @property
    def largest(self) -> str | None:
        """The largest value that fits, of a search."""
        name = self.plan.searched
        values = [int(dict(trial.variant.values)[name]) for trial in self.fitting] if name is not None else []
        return str(max(values)) if values else None

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        name, largest, fitting = self.plan.searched, self.largest, self.fitting
        if largest is not None and any(trial.verdict == TOO_LARGE for trial in self.trials):
            return f"The largest {name} that fits is {largest}, by the compiler."
        if largest is not None:
            return f"{largest} fits, which is the largest {name} that was tried."
        told = [trial for trial in fitting if trial.told is not None]
        shortest = min(told, key=lambda trial: trial.told or (0, 0), default=None)
        unknown = sum(trial.verdict == UNKNOWN for trial in self.trials)
        words = f"The compiler fits {len(fitting)} of {counted(len(self.trials), 'variant')} into memory"
        words += f", and nothing is known of {unknown}" if unknown else ""
        return f"{words}; the shortest is told of {shortest.label}." if shortest and len(told) > 1 else f"{words}."


_TOLD = "what a run takes by its tiles; nobody measured it"
_NOT_TOLD = "why_not_told says why"
_NOT_COMPILED = "reason says why, or it did not fit"
_LOOKS: dict[str, ColumnSpec[Any]] = {
    "label": ColumnSpec("variant", 20, fixed=True, grows=True),
    "verdict": ColumnSpec("verdict", 12, is_left=True),
    "needed_bytes": ColumnSpec("needs", 9),
    "bound_ps": ColumnSpec("at least", 9),
    "told_ps": ColumnSpec("told", 22),
    "change": ColumnSpec("program is", 12, is_left=True),
}
_TABLE: Table[Sequence[Trial]] = object_table(
    "trials",
    (
        attribute("label", TEXT, "the values and flags of a variant", "variant"),
        attribute("verdict", TEXT, "fits, does not fit, or unknown", "verdict"),
        attribute("reason", VERBATIM, "why the verdict is unknown; empty where it is not"),
        attribute("module", TEXT, "the program that it is of", "program", null=_NOT_COMPILED),
        attribute("needed_bytes", BYTES, "HBM, gaps between buffers included", "needs", null=_NOT_COMPILED),
        attribute("there_bytes", BYTES, "HBM of the chip", "of", null="the dump does not name the chip"),
        attribute("bound_ps", TIME_PS, "what a run of it takes at least", "at least", null=_NOT_COMPILED),
        attribute("told_ps", told(TIME_PS), _TOLD, "told", null=_NOT_TOLD, name="told"),
        attribute("why_not_told", VERBATIM, "why nothing is told; empty where something is"),
        attribute("change", TEXT, "from the first one that was compiled", "program is", null=_NOT_COMPILED),
        attribute("ran_ps", TIME_PS, "how long the command ran", "ran"),
    ),
    markdown=("label", "verdict", "needed_bytes", "there_bytes", "bound_ps", "told_ps", "change"),
)
_FIELDS = tuple(replace(field, screen=_LOOKS.get(field.key)) for field in _TABLE.fields)
TRIALS = replace(_TABLE, fields=_FIELDS, screen=tuple(_LOOKS))
METRICS: tuple[Metric[Tried], ...] = (
    attribute("command", VERBATIM, "that ran, with names in braces"),
    attribute("largest", TEXT, "value of a search that fits", null="nothing was searched, or nothing fits"),
    attribute("sentence", VERBATIM, "the answer"),
)


def json(made: Tried, _: TextLook, limit: int) -> str:
    """All of it."""
    held = values_of((Metrics(METRICS, made), Section(TRIALS, made.trials, limit=limit)))
    head = {"schema": schema("try"), "warnings": [], **left_out(held.rows, "--limit 0 has all")}
    return document(head, held.values, held.reasons)


def markdown(made: Tried, _: TextLook, limit: int) -> str:
    """For a pull request."""
    return joined([f"# {made.sentence}", "", *Section(TRIALS, made.trials, "Variants", limit).markdown()])


def text(made: Tried, look: TextLook, limit: int) -> str:
    """The answer, and a row a variant."""

    def lines(pen: Pen) -> list[Line]:
        unknown = [trial for trial in made.trials if trial.reason or trial.why_not_told]
        why = (trial.reason or f"Nothing is told of {trial.module} ({trial.why_not_told})" for trial in unknown)
        said = (made.sentence, *dict.fromkeys(why))
        return [*pen.wrap_all(said, "text", [(" ", "text")]), *Section(TRIALS, made.trials, "", limit).lines(pen, "")]

    return titled_text("Compiled", made.command, lines, look)


REPORT = CommandReport(Tried, {"json": json, "md": markdown, "text": text}, (TRIALS,), METRICS)
