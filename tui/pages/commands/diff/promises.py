"""The report on promises of findings, in every format: what was promised, what came of it, what came instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.session.diff.model import Change, OwnerChange
from tpuprof.parsers.session.diff.promises import Cause, Verified
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES
from tpuprof.tui.draw.format import UNKNOWN, duration, share
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, StyleKey
from tpuprof.tui.pages.commands.diff import fields
from tpuprof.tui.pages.commands.diff.words import MARKS, noise_time, relative, signed
from tpuprof.tui.report.declared import Metrics, Section, check_writers, values_of
from tpuprof.tui.report.fields import Metric, Table, attribute, object_table
from tpuprof.tui.report.json import document
from tpuprof.tui.report.markdown import comparison_head, escaped, joined, table
from tpuprof.tui.report.page import Check, CommandReport, State, TextLook
from tpuprof.tui.report.text import titled_text
from tpuprof.tui.report.units import FLAG, TIME_MS, VERBATIM

_NONE_FOUND = (
    "that run has no finding of the kind on the same ops, lines or cores: there is no such time, or too little"
)
_A_PART = "the kind claims a part of an owner's time, or a run has no account of its steps"
_NO_STEPS = "the profiles have no steps"
_NO_NOISE = f"{_NO_STEPS}, or one"
_HEADLINES: dict[str, tuple[str, StyleKey]] = {
    "kept": ("Kept", "good"),
    "partly": ("Kept in part", "warn"),
    "moved": ("Not kept", "bad"),
    "not kept": ("Not kept", "bad"),
    "unknown": ("Can't tell", "warn"),
}


def _change_of_cost(of: Metric[Any]) -> Metric[Any]:
    """A figure of the change of a cost, which is unknown where a run has no finding of the kind: little may be left."""

    def read(cause: Cause) -> Any:  # noqa: ANN401 - a figure
        is_known = cause.cost.before is not None and cause.cost.after is not None
        return of.read(cause) if is_known else None

    return replace(of, read=read) if of.key.startswith("change_") else of


def _with_reasons(metrics: Iterable[Metric[Any]], why: str, no_noise: str = _NO_NOISE) -> Iterator[Metric[Any]]:
    """The figures, with why those may be unknown that may."""
    return (replace(of, null=no_noise if "noise" in of.key else why if of.null else "") for of in metrics)


_CAUSE: tuple[Metric[Cause], ...] = (
    attribute("kind", VERBATIM, "of the finding"),
    attribute("name", VERBATIM, "as --claim takes it: the kind, with a number if there are several of the kind"),
    attribute("title", VERBATIM, "of the finding, in A if A has it"),
    attribute("is_claim", FLAG, "whether its promise is checked"),
    attribute("is_estimate", FLAG, "whether its saving comes from a model; else it is measured"),
    *_with_reasons(map(_change_of_cost, fields.of_change("cost", "time")), _NONE_FOUND),
    *_with_reasons(fields.of_change("time", "time", "time."), _A_PART),
)
CAUSES: Table[Sequence[Cause]] = object_table("causes", _CAUSE)
INSTEAD: Table[Sequence[Cause]] = object_table("instead", _CAUSE)
OWNERS: Table[Sequence[OwnerChange]] = object_table(
    "owners_instead",
    (
        attribute("owner", VERBATIM, "the owners whose time in the mean step grew by more than its noise"),
        *fields.of_change("mean", "time"),
    ),
)
METRICS: tuple[Metric[Verified], ...] = (
    attribute(
        "outcome", VERBATIM, "kept, partly, moved (the cause costs less, the step does not), not kept or unknown"
    ),
    Metric("sentence", VERBATIM, lambda made: sentence(made, False), "the outcome in a sentence"),
    attribute(
        "promised_ms", TIME_MS, "how much the claims promised to save in a mean step of A", null="nothing is claimed"
    ),
    attribute("got_ms", TIME_MS, "how much shorter a mean step is in B", null=_NO_STEPS),
    *_with_reasons(fields.of_change("step", "time", "step."), _NO_STEPS, _NO_STEPS),
)


def sentence(made: Verified, ascii_only: bool) -> str:
    """What came of the promises."""
    if made.outcome == "unknown":
        return f"Nothing can be said about the promise: {made.why}."
    names, step = ", ".join(cause.name for cause in made.claims), made.step
    if not made.claims:
        return f"No finding costs less than before; {_of_step(step, ascii_only)}."
    promised = duration(made.promised_ps, ascii_only)
    head = f"{names} promised {promised} a step"
    if made.outcome == "not kept":
        costs = ", ".join(_costs(cause, ascii_only) for cause in made.claims)
        return f"{head}, and costs no less ({costs}); {_of_step(step, ascii_only)}."
    if made.outcome == "moved":
        costs = ", ".join(_costs(cause, ascii_only) for cause in made.claims)
        return f"{head}, and costs less ({costs}), but {_of_step(step, ascii_only)}."
    got, wanted = made.got_ps or 0.0, made.promised_ps or 1.0
    part = "" if made.outcome == "kept" else f": {share(got / wanted)} of it"
    part = "; more than promised, so other changes count too" if got > wanted + (step.noise or 0.0) else part
    return f"{head}, and {_of_step(step, ascii_only)}{part}."


def _costs(cause: Cause, ascii_only: bool) -> str:
    """``36.8 ms before, 2.10 ms after``."""
    after = "none found" if cause.cost.after is None and not cause.unknown else duration(cause.cost.after, ascii_only)
    before = "none found" if cause.cost.before is None else duration(cause.cost.before, ascii_only)
    return f"{before} before, {after} after"


def _of_step(step: Change, ascii_only: bool) -> str:
    """``a step takes 38.1 ms less (-14.9%, noise ±0.4 ms)``."""
    if step.mark == "same":
        return f"a step takes the same within the noise ({noise_time(step, ascii_only)})"
    size = duration(abs(step.delta or 0.0), ascii_only)
    more = "less" if step.mark == "less" else "more"
    return f"a step takes {size} {more} ({relative(step)}, noise {noise_time(step, ascii_only)})"


def json(made: Verified, _: TextLook, __: int) -> str:
    """All of it."""
    tables = (Section(CAUSES, made.causes), Section(INSTEAD, made.instead), Section(OWNERS, made.owners))
    head, held = fields.head("verify", made.diff), values_of((Metrics(METRICS, made), *tables))
    why = {**held.reasons, **head.reasons}
    if unknown := next((cause.unknown for cause in made.causes if cause.unknown), ""):
        why |= {f"causes[].{of}_ms": f"{_NONE_FOUND}; or {unknown}" for of in ("before", "after")}
    return document(head.values, held.values, why)


_HEAD = ("finding", "promised", "after", "change", "noise", "")


def _cells(made: Verified, ascii_only: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for cause in made.causes:
        cost = cause.cost
        before, after = (
            UNKNOWN if cause.unknown and value is None else "-" if value is None else duration(value, ascii_only)
            for value in (cost.before, cost.after)
        )
        estimate = "~" if cause.is_estimate and cost.before is not None else ""
        is_known = cost.before is not None and cost.after is not None
        delta = UNKNOWN if cause.unknown else signed(cost.delta, "time", ascii_only) if is_known else "-"
        noise = noise_time(cost, ascii_only)
        rows.append((cause.name, f"{estimate}{before}", after, delta, noise, MARKS[cost.mark].word))
    return rows


def markdown(made: Verified, _: TextLook, __: int) -> str:
    """A comment on a pull request."""
    diff, title = made.diff, _HEADLINES[made.outcome][0]
    lines = comparison_head(title, diff.before.name, diff.after.name, sentence(made, False), diff.warnings)
    lines += ["", *table(_HEAD, "lrrrrl", _cells(made, False))] if made.causes else []
    return joined([*lines, "", *(f"- {escaped(each)}" for each in _instead(made, False))])


def _instead(made: Verified, ascii_only: bool) -> list[str]:
    found = [f"{of.name}: {of.title} ({_costs(of, ascii_only)})" for of in made.instead]
    grown = [f"{OWNER_TITLES[of.owner]}: {signed(of.mean.delta, 'time', ascii_only)} a step" for of in made.owners]
    return [f"came instead: {each}" for each in (*found, *grown)]


def text(made: Verified, look: TextLook, _: int) -> str:
    """The outcome, the findings of both runs, and what came instead."""
    ascii_only = look.ascii_only

    def lines(pen: Pen) -> list[Line]:
        headline, style = _HEADLINES[made.outcome]
        drawn = pen.wrap(sentence(made, ascii_only), "strong", [(f"{headline}: ", style)])
        drawn += pen.notes(made.diff.warnings, ())
        rows = [_HEAD, *_cells(made, ascii_only)] if made.causes else []
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))] if rows else []
        for number, row in enumerate(rows):
            cells = [
                f"{cell:>{width}}" if at else f"{cell:<{width}}"
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            claim = "*" if number and made.causes[number - 1].is_claim else " "
            drawn.append(pen.fit([(f" {claim} {'  '.join(cells)}", "text" if number else "dim")]))
        drawn += pen.wrap("* its promise is checked; - no such finding in that run.", "dim") if rows else []
        return drawn + pen.wrap_all(_instead(made, ascii_only), "text", [(" ! ", "warn")])

    title = f"{made.diff.before.name} {look.glyphs.arrow} {made.diff.after.name}"
    return titled_text(title, "promises of findings", lines, look)


def checks(made: Verified, _: TextLook, __: int) -> list[Check]:
    """The promise, with what came instead."""
    words = [sentence(made, False), *(f"{each}." for each in _instead(made, False))]
    state: State = "unknown" if made.outcome == "unknown" else "ok" if made.outcome in ("kept", "partly") else "failed"
    return [Check("promise", state, " ".join(words))]


_TABLES = (CAUSES, INSTEAD, OWNERS)
_FORMATS = {"json": json, "md": markdown, "text": text, **check_writers("verify", checks)}
REPORT = CommandReport(lambda made: made, _FORMATS, _TABLES, (*fields.SIDES, *METRICS))
