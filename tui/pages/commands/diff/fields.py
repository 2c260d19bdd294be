"""The quantities of a comparison: of changes, of what has changed (ops, modules, figures), and of each run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from numpy.typing import NDArray

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.words import NO_CATEGORY, NO_FRAMEWORK_OP
from tpuprof.parsers.session.diff.model import Change, Diff, OpChange, Side
from tpuprof.parsers.session.diff.noise import CONFIDENCE, MOST_LAUNCHES, POWER
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNER_WORDS, OWNERS
from tpuprof.tui.draw.format import UNKNOWN, count
from tpuprof.tui.draw.pen import cut
from tpuprof.tui.draw.spans import CLASS_LETTER, CLASS_STYLE, Glyphs, Key, Span
from tpuprof.tui.draw.table import Cells, by_item
from tpuprof.tui.pages.commands.diff.changes import ChangeRow
from tpuprof.tui.pages.commands.diff.verdict import headline_mark, verdict
from tpuprof.tui.pages.commands.diff.words import (
    MARKS,
    QuantityKind,
    noise_time,
    noise_words,
    relative,
    side_figure,
    signed,
)
from tpuprof.tui.report.declared import Values
from tpuprof.tui.report.fields import (
    NO_REASON,
    ColumnSpec,
    Field,
    Metric,
    Table,
    attribute,
    in_order,
    listed,
    metric_reasons,
    metric_values,
    nested,
    object_table,
    of_each,
)
from tpuprof.tui.report.json import schema
from tpuprof.tui.report.shared.quantities import STEP_TIMES
from tpuprof.tui.report.units import COUNT, FLAG, NUMBER, TEXT, TEXTS, TIME_MS, VERBATIM, Unit, Value, divided, plain

# --- a change, as machines read it

NO_OPS = "neither run has an op"
ONE_SIDED = "the run has none of it"
_NO_FRACTION = "it was 0 before, or is unknown"


def _rounded(values: Sequence[Any] | NDArray[Any]) -> list[Value]:
    return [None if value is None else round(value) for value in values]


_UNITS: dict[QuantityKind, tuple[str, Unit]] = {
    "time": ("ms", TIME_MS),
    "bytes": ("bytes", Unit("bytes", _rounded, NUMBER.words)),
    "flops": ("flops", Unit("flops", _rounded, NUMBER.words)),
    "percent": ("percent", Unit("percent", divided(1), NUMBER.words)),
}
_WHY: dict[QuantityKind, tuple[str, str, str, str]] = {
    "time": (ONE_SIDED, ONE_SIDED, _NO_FRACTION, "the spread from step to step is unknown"),
    "bytes": (ONE_SIDED, ONE_SIDED, ONE_SIDED, ONE_SIDED),
    "flops": (ONE_SIDED, ONE_SIDED, _NO_FRACTION, ONE_SIDED),
    "percent": (NO_REASON, "one of the two is unknown", _NO_FRACTION, "the figure is of the whole capture"),
}
"""Why a figure of one run, the change, its fraction and the noise may be unknown."""


def of_change(name: str, kind: QuantityKind, prefix: str = "") -> tuple[Metric[Any], ...]:
    """What JSON has of a change that its source holds under a dotted name."""
    suffix, unit = _UNITS[kind]
    side, delta, fraction, noise = _WHY[kind]
    quantities = (
        ("mark", VERBATIM, "mark", "same, more, less, new, gone or unknown", ""),
        (f"before_{suffix}", unit, "before", "in A", side),
        (f"after_{suffix}", unit, "after", "in B", side),
        (f"change_{suffix}", unit, "delta", "B minus A", delta),
        ("change_fraction", NUMBER, "relative", "the change as a fraction of A", fraction),
        (f"noise_{suffix}", unit, "noise", "half of the interval that contains the differences of equal runs", noise),
    )
    return tuple(
        attribute(prefix + key, unit, meaning, null=null, name=f"{name}.{part}")
        for key, unit, part, meaning, null in quantities
    )


_OF_CLASSES = (
    attribute("name", VERBATIM, "its name"),
    attribute("class", VERBATIM, "the class of its ops", name="op_class"),
    attribute("occurrences.before", NUMBER, "how often its ops run in A", null=ONE_SIDED, name="count.before"),
    attribute("occurrences.after", NUMBER, "how often its ops run in B", null=ONE_SIDED, name="count.after"),
    *of_change("time", "time"),
)
OWNER_CHANGES: Table[Any] = object_table(
    "owners",
    (
        attribute("owner", VERBATIM, "; ".join(f"{owner}: {OWNER_WORDS[owner]}" for owner in OWNERS)),
        Metric("title", VERBATIM, lambda of: OWNER_TITLES[of.owner], "its name in the account of a step"),
        *of_change("mean", "time"),
        *of_change("typical", "time", "typical."),
    ),
)
CLASSES: Table[Any] = object_table("classes", _OF_CLASSES)
CATEGORIES: Table[Any] = object_table("categories", _OF_CLASSES)
_NOT_TOLD = "the profile does not say it"
SETTINGS: Table[Any] = object_table(
    "settings",
    (
        attribute("kind", VERBATIM, "version, flag, program, profiler or other"),
        attribute("name", VERBATIM, "of the setting"),
        attribute("mark", VERBATIM, "same, other, new or gone"),
        attribute("before", VERBATIM, "in A; for secrets only their name", null=_NOT_TOLD),
        attribute("after", VERBATIM, "in B; for secrets only their name", null=_NOT_TOLD),
    ),
)
MODULES: Table[Any] = object_table(
    "modules",
    (
        attribute("name", VERBATIM, "the HLO module"),
        attribute("problem", VERBATIM, "why its memory is unknown"),
        *of_change("peak", "bytes", "peak."),
        *of_change("arguments", "bytes", "arguments."),
        *of_change("temporaries", "bytes", "temporaries."),
    ),
)
KEY_METRICS: Table[Any] = object_table(
    "figures", (attribute("key", VERBATIM, "its key on the overview"), *of_change("change", "percent"))
)

_OLD_NAME = "the op has the same name in both, or is in one run only"
_OP_METRICS = (
    attribute("name", VERBATIM, "its name in B, in A where it is gone"),
    attribute("old_name", VERBATIM, "its name in A where that is another one", null=_OLD_NAME),
    attribute("program", VERBATIM, "its HLO module, without the id"),
    attribute("category", VERBATIM, "its HLO category", null=NO_CATEGORY),
    attribute("class", VERBATIM, "its class", name="op_class"),
    attribute("framework_op", TEXT, "the framework op that it comes from", null=NO_FRAMEWORK_OP),
    attribute("matched_by", VERBATIM, "how it was found in the other run"),
    attribute("hlo_changed", FLAG, "whether its HLO text differs by more than numbers in names", name="text_changed"),
    attribute("occurrences.before", NUMBER, "how often it runs in A", null=ONE_SIDED, name="count.before"),
    attribute("occurrences.after", NUMBER, "how often it runs in B", null=ONE_SIDED, name="count.after"),
    *of_change("time", "time"),
)
_OPS: Table[Sequence[OpChange]] = object_table(
    "ops",
    _OP_METRICS,
    (Field("rank", COUNT, lambda _, rows: [row + 1 for row in rows], "1 for the largest change"),),
    csv=in_order(
        "rank mark name old_name program category class framework_op before_ms after_ms change_ms change_fraction",
        "noise_ms occurrences.before occurrences.after matched_by hlo_changed",
    ),
    markdown=in_order("name mark before_ms after_ms change_ms change_fraction noise_ms category program"),
)
OPS = replace(_OPS, adds=("occurrences.before", "occurrences.after", "before_ms", "after_ms", "change_ms"))


GROUPS: Table[Any] = object_table(
    "groups",
    (
        attribute("name", VERBATIM, "the name of the op with the most time, with their number", name="change.name"),
        Metric("op_count", COUNT, lambda group: len(group.members), "how many ops it sums: an op and its clones"),
        attribute("program", VERBATIM, "their HLO module, without the id", name="change.program"),
        attribute("category", VERBATIM, "their HLO category", null=NO_CATEGORY, name="change.category"),
        attribute("class", VERBATIM, "the class of that op", name="change.op_class"),
        attribute(
            "framework_op", TEXT, "the framework op of that op", null=NO_FRAMEWORK_OP, name="change.framework_op"
        ),
        *of_change("change.time", "time"),
    ),
)


PHASES: Table[Any] = object_table(
    "phases",
    (
        attribute("name", VERBATIM, "the HLO module in B, in A where it is gone; without the id"),
        attribute(
            "old_name", VERBATIM, "its name in A where that is another one", null=_OLD_NAME.replace("op", "module")
        ),
        *of_change("time", "time"),
        attribute("run_count.before", NUMBER, "its runs in A", null=ONE_SIDED, name="runs.before"),
        attribute("run_count.after", NUMBER, "its runs in B", null=ONE_SIDED, name="runs.after"),
        attribute("share.before_percent", NUMBER, "of the time of all ops of A", null=ONE_SIDED, name="share.before"),
        attribute("share.after_percent", NUMBER, "of the time of all ops of B", null=ONE_SIDED, name="share.after"),
        attribute("in_steps", FLAG, "whether its ops are those within steps; else of the whole capture"),
        Metric("classes", listed(CLASSES), lambda phase: phase.ops.classes, "its classes of ops, a run"),
        Metric("ops", listed(OPS), lambda phase: phase.ops.ops, "its ops, a run"),
    ),
)


TABLES: tuple[Table[Any], ...] = (
    OWNER_CHANGES,
    CLASSES,
    CATEGORIES,
    GROUPS,
    OPS,
    MODULES,
    KEY_METRICS,
    PHASES,
    SETTINGS,
)
"""What JSON lists, each the attribute of `Diff` of its key."""


def _change_metrics(of: str, meaning: str, kind: QuantityKind = "time", null: str = "") -> tuple[Metric[Diff], ...]:
    """The figures of a change; unknown ones without the steps that it is of, or because of `null`."""
    figures = of_change(of, kind, f"{of}.")
    return tuple(
        replace(figure, meaning=f"{meaning}: {figure.meaning}", null=figure.null and (null or figure.null))
        for figure in figures
    )


_LAUNCHES: Table[Any] = object_table(
    "launches",
    (
        attribute("name", VERBATIM, "of the run"),
        attribute("path", VERBATIM, "where it lies"),
        attribute("captured", NUMBER, "when, in seconds since 1970"),
        attribute("step_count", COUNT, "how many steps it has"),
        attribute("time_ms", TIME_MS, "of its typical step; without steps of a module run, or of the whole capture"),
        attribute("error_ms", TIME_MS, "its standard error, by its own steps", null="it has no steps, or one"),
    ),
)


def _interval(diff: Diff, sign: int) -> float | None:
    delta, noise = diff.total.delta, diff.total.noise
    return None if delta is None or noise is None else delta + sign * noise


_ALONE = "the side has one launch"
_COUNTED, _HAS_NO = "by the compiler's count, on the mean core", "the profile has no"
_OF_LAUNCHES = nested(
    (
        attribute("before", listed(_LAUNCHES), "those of A", name="launches.before"),
        attribute("after", listed(_LAUNCHES), "those of B", name="launches.after"),
        attribute("mean_ms.before", TIME_MS, "the mean over the launches of A", name="total.before"),
        attribute("mean_ms.after", TIME_MS, "the mean over the launches of B", name="total.after"),
        Metric("spread_ms.before", TIME_MS, lambda diff: diff.launches.spreads[0], "standard deviation in A", _ALONE),
        Metric("spread_ms.after", TIME_MS, lambda diff: diff.launches.spreads[1], "standard deviation in B", _ALONE),
        Metric("interval_ms.low", TIME_MS, lambda diff: _interval(diff, -1), "of B minus A, with `confidence`"),
        Metric("interval_ms.high", TIME_MS, lambda diff: _interval(diff, 1), "of B minus A, with `confidence`"),
        attribute("detect_fraction", NUMBER, "the change of A that is to be found", name="launches.detect"),
        attribute(
            "more_launches_needed",
            COUNT,
            f"of each side, to find that change with a probability of {POWER:g}",
            null=f"more than {MOST_LAUNCHES:,}",
            name="launches.needed",
        ),
        attribute("order_warning", VERBATIM, "why a drift may look like a change", name="launches.order"),
    )
)
METRICS: tuple[Metric[Diff], ...] = (
    Metric(
        "launches",
        _OF_LAUNCHES,
        lambda diff: None if diff.launches is None else diff,
        "of both sides, if either has several: then noise is what differs from launch to launch",
        "each side is one run",
    ),
    Metric("verdict.sentence", VERBATIM, verdict, "what changed, why, and how much of it is noise"),
    Metric(
        "verdict.mark",
        VERBATIM,
        headline_mark,
        "the mark of the typical step; unknown for different programs, or too few launches",
    ),
    Metric("verdict.different_programs", FLAG, lambda diff: bool(diff.different), "whether the programs are different"),
    attribute("basis", VERBATIM, "the divisor of times, besides cores"),
    Metric(
        "confidence", NUMBER, lambda _: CONFIDENCE, "the share of differences of equal runs that lie within the noise"
    ),
    *_change_metrics("steps.typical", "the mean over the typical steps"),
    *_change_metrics("steps.median", "the median step"),
    *_change_metrics("steps.mean", "the mean step"),
    *_change_metrics("steps.minimum", "the shortest step"),
    *_change_metrics("steps.maximum", "the longest step"),
    *_change_metrics("steps.odd", "the effect of odd steps on the mean"),
    *_change_metrics("total", "all owners of a typical step; without steps all classes on the mean core"),
    *_change_metrics("traffic", f"bytes that ops move to and from HBM {_COUNTED}", "bytes", f"{_HAS_NO} bytes of ops"),
    *_change_metrics("work", f"FLOPs of ops {_COUNTED}", "flops", f"{_HAS_NO} FLOPs of ops"),
)


_STEP_TIME = nested((*STEP_TIMES, attribute("source", VERBATIM, "whether marked or inferred, the origin")))
SIDE: tuple[Metric[Side], ...] = (
    attribute("name", VERBATIM, "of the run"),
    attribute("path", VERBATIM, "where it lies"),
    attribute("hosts", TEXTS, "those that the figures cover"),
    attribute("device_type", VERBATIM, "of the device", null="no device plane names its type"),
    attribute("core_count", COUNT, "TensorCores, or GPUs, of all hosts"),
    attribute("simulated", FLAG, "whether its times are simulated, not measured"),
    Metric("step_count", COUNT, lambda side: len(side.step_ps), "how many steps it has"),
    attribute("odd_step_count", COUNT, "steps that are not typical", name="odd_count"),
    attribute("unit", VERBATIM, "the divisor of times", name="unit_name"),
    attribute("unit_count", COUNT, "how many of these there are", name="units"),
    attribute("step_time_ms", _STEP_TIME, "of all steps", null="the profile has no steps"),
    attribute("warnings", TEXTS, "what is wrong with its profile"),
)
SIDES = (
    attribute("before", nested(SIDE), "the run before"),
    attribute("after", nested(SIDE), "the run after"),
)


def head(page: str, diff: Diff) -> Values:
    """What the JSON of a comparison begins with: its schema, named after the page, both runs, and warnings."""
    sides = {"before": diff.before, "after": diff.after}
    of_sides = {name: metric_values(SIDE, side) for name, side in sides.items()}
    why = {f"{name}.{key}": reason for name in sides for key, reason in metric_reasons(SIDE).items()}
    why |= {f"{name}.step_time_ms": side.why_no_steps for name, side in sides.items() if side.why_no_steps}
    return Values({"schema": schema(page), **of_sides, "warnings": list(diff.warnings)}, why)


# --- the rows of a view, as people read them


Entries = Sequence[ChangeRow]  # rows of a view


def _by_mark(entry: ChangeRow) -> Key:
    return MARKS[entry.change.mark].style


def _side(name: str, absent: str) -> Callable[[ChangeRow, bool], str]:
    """A figure of one run, other words where the run has none of it."""
    read, index = attrgetter(name), ("before", "after").index(name)

    def words(entry: ChangeRow, is_ascii: bool) -> str:
        if entry.texts is not None:
            return entry.texts[index] or absent
        return side_figure(entry.change, read(entry.change), entry.kind, is_ascii, absent)

    return words


def _entry(
    key: str,
    words: Callable[[ChangeRow, bool], str],
    meaning: str,
    heading: str = "",
    screen: ColumnSpec[Entries] | None = None,
    is_text: bool = False,
    is_filtered: bool = False,
) -> Field[Entries]:
    """A field that is written of the whole row."""
    unit, filtered = Unit("text", plain, words, is_text), ("change",) if is_filtered else ()
    return Field(
        key, unit, lambda rows, shown: [rows[row] for row in shown], meaning, "", heading, screen, filter=filtered
    )


def _of_op(key: str, name: str, meaning: str, screen: ColumnSpec[Entries]) -> Field[Entries]:
    """A text of the op that a row is of, which a filter looks at."""
    return Field(key, VERBATIM, of_each(f"op.{name}"), meaning, screen=screen, filter=("change",))


def _drawn_op(draw: Callable[[OpChange, Glyphs], Span]) -> Callable[[Entries, Glyphs], Cells]:
    """Cells of ops, empty for what is none."""
    return by_item(lambda entry, glyphs: ("", "text") if entry.op is None else draw(entry.op, glyphs))


def _note(entry: ChangeRow, glyphs: Glyphs) -> Span:
    is_below = entry.kind == "bytes" and entry.change.mark == "unknown"  # why it is unknown stands below the table
    return "" if is_below else entry.note, "dim"


def _count(op: OpChange, glyphs: Glyphs) -> Span:
    """How often an op runs, in both where that differs."""
    before, after = op.count.before, op.count.after
    if op.count.mark == "same" or before is None or after is None:
        return _times(after if after is not None else before), "text"
    return f"{_times(before)}{glyphs.arrow}{_times(after)}", "warn"


def _times(value: float | None) -> str:
    """How often an op runs, a whole number where it is one."""
    if value is None:
        return UNKNOWN
    return count(round(value)) if abs(value - round(value)) < 0.005 else f"{value:.2f}"


def _matched(op: OpChange, _: Glyphs) -> Span:
    words = {"name": "", "text": "same HLO", "origin": "same origin", "none": ""}[op.matched_by]
    return words if not op.text_changed else f"{words or 'same name'}, HLO differs", "dim"


def _letter(entry: ChangeRow, _: Glyphs) -> Span:
    return ("", "text") if entry.op_class is None else (CLASS_LETTER[entry.op_class], CLASS_STYLE[entry.op_class])


def _unless_percent(write: Callable[[Change], str]) -> Callable[[ChangeRow, bool], str]:
    """Words of a change, none of percentages, whose change is one already and whose noise is unknown."""
    return lambda entry, _: "" if entry.kind == "percent" else write(entry.change)


def _where_noise_is_known(write: Callable[[Change, bool], str]) -> Callable[[ChangeRow, bool], str]:
    return lambda entry, is_ascii: "" if entry.change.noise is None else write(entry.change, is_ascii)


def _name_and_note(entry: ChangeRow, _: bool) -> str:
    return entry.name + (f" ({entry.note})" if entry.note and entry.op is not None else "")


def _delta(entry: ChangeRow, is_ascii: bool) -> str:
    return "" if entry.kind == "text" else signed(entry.change.delta, entry.kind, is_ascii)


def _mark(change: Change, _: bool = False) -> str:
    return MARKS[change.mark].word


def _by_whether_changed(entry: ChangeRow) -> Key:
    return "dim" if entry.change.mark == "same" else "strong"


def _dim(_: object) -> Key:
    return "dim"


_LETTER = ColumnSpec("", 1, cells=by_item(_letter), fixed=True, keeps_style=True)
_MARK: ColumnSpec[Entries] = ColumnSpec("", 4, _by_mark, lambda entry, _: _mark(entry.change), fixed=True)
_CHANGE: ColumnSpec[Entries] = ColumnSpec("change", 9, _by_mark, fixed=True)
_RELATIVE: ColumnSpec[Entries] = ColumnSpec("", 6, _by_mark, fixed=True)
_NAME: ColumnSpec[Entries] = ColumnSpec(
    "what", 16, _by_whether_changed, lambda entry, _: entry.name, fixed=True, grows=True
)
_BEFORE: ColumnSpec[Entries] = ColumnSpec("A", 8, words=_side("before", "-"))
_AFTER: ColumnSpec[Entries] = ColumnSpec("B", 8, words=_side("after", "-"))
_NOISE: ColumnSpec[Entries] = ColumnSpec("noise", 9, _dim)
_NOTE = ColumnSpec("category", 26, cells=by_item(_note), is_left=True)
_COUNT = ColumnSpec("count", 9, cells=_drawn_op(_count))
_OLD_NAME_COLUMN: ColumnSpec[Entries] = ColumnSpec("name in A", 18, _dim, lambda value, _: value or "", cut=cut)
_PROGRAM: ColumnSpec[Entries] = ColumnSpec("program", 20, cut=cut)
_FRAMEWORK_CELLS = _drawn_op(lambda op, glyphs: (op.framework_op or UNKNOWN, "dim"))
_FRAMEWORK = ColumnSpec("framework op", 40, cells=_FRAMEWORK_CELLS, is_left=True)
_MATCHED = ColumnSpec("matched by", 22, cells=_drawn_op(_matched), is_left=True)

_BY_MARK = "whether it is more, less, new, gone, or the same within the noise"
_HALF = "half of the interval that contains the differences of equal runs"
_WHY_NOTED = "its category, the parts of a sum, or why it is unknown"
CHANGES: Table[Entries] = Table(
    "changes",
    (
        _entry("letter", lambda entry, _: entry.op_class or "", "the class of ops", "", _LETTER, is_filtered=True),
        _entry("mark", _unless_percent(_mark), _BY_MARK, "", _MARK, is_text=True, is_filtered=True),
        _entry("change", _delta, "B minus A", "change", _CHANGE),
        _entry("relative", _unless_percent(relative), "the change as a percentage of A", "", _RELATIVE),
        _entry("name", _name_and_note, "what changed", "what", _NAME, is_text=True, is_filtered=True),
        _entry("before", _side("before", ""), "in A", "A", _BEFORE),
        _entry("after", _side("after", ""), "in B", "B", _AFTER),
        _entry("noise", lambda entry, is_ascii: noise_time(entry.change, is_ascii), _HALF, "", _NOISE),
        _entry("note", lambda entry, _: entry.note, _WHY_NOTED, "", _NOTE, is_filtered=True),
        _entry("count", lambda _, __: "", "how often the op runs", "", _COUNT),
        _of_op("old_name", "old_name", "its name in A where that is another one", _OLD_NAME_COLUMN),
        _of_op("program", "program", "its HLO module", _PROGRAM),
        _of_op("framework", "framework_op", "the framework op that it comes from", _FRAMEWORK),
        _entry("matched", lambda _, __: "", "how it was found in the other run", "", _MATCHED),
        _entry("noise_share", _where_noise_is_known(noise_words), "the noise as a percentage"),
        _entry("step_mark", _where_noise_is_known(_mark), "its mark, where the noise is known", is_text=True),
    ),
    len,
    json=(),
    markdown=("mark", "change", "relative", "before", "after", "name"),
)

_OF_ROWS = (
    attribute("name", VERBATIM, "what changed"),
    attribute("note", VERBATIM, "a category, what a sum is of, or why it is unknown; may be empty"),
)
_SETTINGS_OF_ROWS: tuple[Metric[Any], ...] = (
    attribute("mark", VERBATIM, "same, other, new or gone", name="change.mark"),
    Metric("before", VERBATIM, lambda row: row.texts[0], "the setting in A", ONE_SIDED),
    Metric("after", VERBATIM, lambda row: row.texts[1], "the setting in B", ONE_SIDED),
)
WRITTEN_ROWS: dict[QuantityKind, Table[Any]] = {
    **{kind: object_table("rows", (*_OF_ROWS, *of_change("change", kind))) for kind in _UNITS},
    "text": object_table("rows", (*_OF_ROWS, *_SETTINGS_OF_ROWS)),
}
"""The rows of a view as a file has them that is written from the screen, by what their figures count."""

OP_COLUMNS = ("count", "old_name", "program", "framework", "matched")  # columns that only ops have

STEP_COLUMNS = ("name", "before", "after", "change", "relative", "noise_share", "step_mark")
"""What Markdown shows of step times."""
