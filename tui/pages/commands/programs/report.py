"""The report on two compiles: what was expected, the verdict, and the facts by which they differ, in every format."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.pages.program.changes import SAME, Change, ComparedProgram, ComparedPrograms
from tpuprof.parsers.pages.program.expected import Expectation
from tpuprof.parsers.pages.program.ops import ProgramRow
from tpuprof.tui.draw.format import duration
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, Span
from tpuprof.tui.report.declared import Metrics, Section, values_of
from tpuprof.tui.report.fields import Metric, Table, attribute, nested, object_table
from tpuprof.tui.report.json import document, left_out, schema
from tpuprof.tui.report.markdown import comparison_head, joined
from tpuprof.tui.report.page import CommandReport, TextLook
from tpuprof.tui.report.shared.quantities import FINGERPRINT, told, told_words
from tpuprof.tui.report.text import titled_text
from tpuprof.tui.report.units import COUNT, FLAG, TEXT, TEXTS, TIME_MS, TIME_PS, VERBATIM

_FEW = 20
"""Changes of text and Markdown where the call does not say how many."""

_FINGERPRINT = (
    *FINGERPRINT,
    attribute("constants", VERBATIM, "of the values of its constants"),
    attribute("unseen_constants", COUNT, "large constants whose values a text does not hold"),
)
_COMPILED = (
    attribute("name", VERBATIM, "of the module"),
    attribute("origin", VERBATIM, "the file, or the module's label in a profile"),
    attribute("fingerprint", nested(_FINGERPRINT), "whether two are the same", null="its text is cut"),
)
_ONE_SIDED = "that side has no such program, or no such flag"
_UNTOLD = "that side has none that takes time, or reason says why"
_TIMES = (
    attribute("bound_ms", TIME_MS, "what it takes at least", null="problem says why", name="total.bound_ps"),
    attribute("told_ms", told(TIME_MS), "what walking its tiles tells", null="reason says why"),
    attribute("reason", VERBATIM, "why nothing is claimed of its time; empty where something is"),
    attribute("problem", VERBATIM, "why its figures are unknown; empty where they are not"),
)
_UNTIMED = "it is the same program, or there is none to compare it with"
_LEAST = "what all runs of the instructions concerned take in {} at least"
_TOLD = "the same as their tiles tell it of {}"


def _takes(change: Change) -> str:
    """What the instructions concerned take, in words; empty where nothing is known."""
    cost = change.dearer
    least = "" if not cost.bound_ps else f"at least {duration(cost.bound_ps)}"
    return least if cost.told_ps is None else f"told {told_words(cost.told_ps, False)}"


PROGRAMS: Table[Sequence[ComparedProgram]] = object_table(
    "programs",
    (
        attribute("name", VERBATIM, "of the module in B", "program"),
        attribute("verdict", VERBATIM, "same program, text only, tiles only, changed or unknown", "verdict"),
        attribute("why", VERBATIM, "what limits the verdict; empty where nothing does"),
        attribute("before", nested(_COMPILED), "the compile in A", null=_ONE_SIDED),
        attribute("after", nested(_COMPILED), "the compile in B", null=_ONE_SIDED),
        attribute("time_before", nested(_TIMES), "how long A takes", null=_UNTIMED),
        attribute("time", nested(_TIMES), "how long B takes", null=_UNTIMED),
    ),
    markdown=("name", "verdict"),
)
CHANGES: Table[Sequence[Change]] = object_table(
    "changes",
    (
        attribute("program", VERBATIM, "of the module", "program"),
        attribute("kind", VERBATIM, "kernel, loop, product, collective, array, tiles, flag and others", "kind"),
        attribute("what", TEXT, "of what there are more or fewer, or what is set otherwise", "what"),
        attribute("before", TEXT, "how many, or the value, in A", "A", null=_ONE_SIDED),
        attribute("after", TEXT, "how many, or the value, in B", "B", null=_ONE_SIDED),
        attribute("name", TEXT, "an instruction that shows it", "op", null="it is of no instruction"),
        attribute("source", TEXT, "where that comes from", "source", null="the compiler does not say"),
        attribute("bound_before_ps", TIME_PS, _LEAST.format("A"), null=_UNTOLD, name="cost_before.bound_ps"),
        attribute("told_before_ps", told(TIME_PS), _TOLD.format("A"), null=_UNTOLD, name="cost_before.told_ps"),
        attribute("bound_ps", TIME_PS, _LEAST.format("B"), null=_UNTOLD, name="cost.bound_ps"),
        attribute("told_ps", told(TIME_PS), _TOLD.format("B"), null=_UNTOLD, name="cost.told_ps"),
        attribute("reason", VERBATIM, "why nothing is claimed of their time; empty where something is"),
        Metric("takes", TEXT, _takes, "the told time of the side where they take more, else at least", heading="takes"),
    ),
    markdown=("kind", "what", "before", "after", "takes", "source"),
)
EXPECTED: Table[Sequence[Expectation]] = object_table(
    "expectations",
    (
        attribute("expected", TEXT, "as it was written", "expected"),
        attribute("is_kept", FLAG, "whether the programs of B are so", "kept"),
        attribute("count", COUNT, "how many instructions match", "there are"),
        attribute("evidence", TEXTS, "the first of them, with their places in the source", "such as"),
    ),
    markdown=("expected", "is_kept", "count", "evidence"),
)
METRICS: tuple[Metric[ComparedPrograms], ...] = (
    attribute("before", VERBATIM, "the path of A"),
    attribute("after", VERBATIM, "the path of B"),
    attribute("verdict", VERBATIM, "the gravest of the programs' verdicts; only `same program` says: no change"),
    attribute("sentence", VERBATIM, "what that means, and what limits it"),
)


def json(made: ComparedPrograms, _: TextLook, limit: int) -> str:
    """All of it; at most `limit` changes, 0 for all."""
    tables = (Section(EXPECTED, made.expectations), Section(PROGRAMS, made.programs))
    held = values_of((Metrics(METRICS, made), *tables, Section(CHANGES, made.changes, limit=limit)))
    head = {"schema": schema("diff-program"), "warnings": [], **left_out(held.rows, "--limit 0 has all")}
    return document(head, held.values, held.reasons)


def markdown(made: ComparedPrograms, _: TextLook, limit: int) -> str:
    """A comment on a pull request."""
    lines = comparison_head(made.verdict.capitalize(), made.before, made.after, made.sentence, ())
    lines += Section(EXPECTED, made.expectations, "Expected").markdown() if made.expectations else ()
    lines += Section(PROGRAMS, made.programs, "Programs").markdown() if len(made.programs) > 1 else ()
    return joined([*lines, *Section(CHANGES, made.changes, "What changed", limit or _FEW).markdown()])


def _of_times(times: Sequence[ProgramRow]) -> str:
    """What A and B take, in a sentence."""
    said = []
    for side, row in zip("AB", times, strict=True):
        least = duration(row.total.bound_ps) if row.total and row.total.bound_ps else "unknown"
        claim = "no claim" if row.told is None else f"told {told_words(row.told, False)}"
        said.append(f"{side}: {claim}, at least {least}")
    why = "; ".join(dict.fromkeys(row.reason or row.problem for row in times if row.told is None))
    return f"{'; '.join(said)}{f' ({why})' if why else ''}"


def text(made: ComparedPrograms, look: TextLook, limit: int) -> str:
    """What came of expectations, the verdict, and the changes of each program under its name."""
    arrow = look.glyphs.arrow

    def lines(pen: Pen) -> list[Line]:
        drawn: list[Line] = []
        for kept in made.expectations:
            such = f", such as {', '.join(kept.evidence)}" if kept.evidence else ""
            mark: Span = (" kept      ", "good") if kept.is_kept else (" not kept  ", "bad")
            drawn += pen.wrap(f"{kept.expected}: there are {kept.count:,}{such}", "text", [mark])
        if made.programs or not made.expectations:
            drawn += pen.wrap(made.sentence, "text", [(f"{made.verdict.upper()}. ", "strong")])
        left = limit or _FEW
        for each in (each for each in made.programs if each.verdict != SAME or each.changes):
            drawn += [pen.rule(each.name, each.verdict)] if len(made.programs) > 1 else []
            times = [row for row in (each.time_before, each.time) if row is not None]
            drawn += pen.wrap(_of_times(times), "text", [(" ", "dim")]) if times else []
            for change in each.changes[:left]:
                was, now = ("none" if value is None else value for value in (change.before, change.after))
                source = "".join(f"  {said}" for said in (_takes(change), change.source) if said)
                drawn += pen.wrap(
                    f"{change.what}: {was} {arrow} {now}{source}", "text", [(f" {change.kind:<14}", "dim")]
                )
            left = max(0, left - len(each.changes))
        hidden = len(made.changes) - (limit or _FEW)
        return [*drawn, pen.fit([(f" {hidden:,} more: --limit {len(made.changes)}", "dim")])] if hidden > 0 else drawn

    return titled_text(f"{made.before} {arrow} {made.after}", "compiled programs", lines, look)


REPORT = CommandReport(
    lambda made: made, {"json": json, "md": markdown, "text": text}, (CHANGES, PROGRAMS, EXPECTED), METRICS
)
