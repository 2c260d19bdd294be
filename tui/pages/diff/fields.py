"""The quantities of a comparison: of changes, of what has changed (ops, modules, figures), and of each run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.diff.model import Change, Diff, OpChange, Side
from tpuprof.parsers.diff.noise import CONFIDENCE
from tpuprof.tui.draw.bars import CLASS_STYLE
from tpuprof.tui.draw.format import UNKNOWN, count
from tpuprof.tui.draw.layout import clean, cut
from tpuprof.tui.draw.spans import CLASS_LETTER, Glyphs, Key, Span
from tpuprof.tui.draw.table import Cells, each
from tpuprof.tui.pages.diff.changes import Changes, Entry
from tpuprof.tui.pages.diff.words import (
    MARK_STYLES,
    MARK_WORDS,
    Kind,
    headline_mark,
    noise_time,
    noise_words,
    relative,
    side_figure,
    signed,
    verdict,
)
from tpuprof.tui.report.fields import Field, Figure, OnScreen, Table
from tpuprof.tui.report.json import step_times
from tpuprof.tui.report.units import COUNT, FLAG, NUMBER, TEXT, TEXTS, TIME_MS, VERBATIM, Unit, Value, divided, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tpuprof.tui.report.fields import Rows

# --- a change, as machines read it

ONE_SIDED = "the run has none of it"
_NO_NOISE = "the spread from step to step is unknown"
_NO_FRACTION = "it was nothing before, or is unknown"


def _rounded(values: Sequence[Any] | NDArray[Any]) -> list[Value]:
    return [None if value is None else round(value) for value in values]


_UNITS: dict[Kind, tuple[str, Unit]] = {
    "time": ("ms", TIME_MS),
    "bytes": ("bytes", Unit("bytes", _rounded, NUMBER.words)),
    "percent": ("percent", Unit("percent", divided(1), NUMBER.words)),
}
_WHY: dict[Kind, tuple[str, str, str, str]] = {
    "time": (ONE_SIDED, ONE_SIDED, _NO_FRACTION, _NO_NOISE),
    "bytes": (ONE_SIDED, ONE_SIDED, ONE_SIDED, ONE_SIDED),
    "percent": (
        "the profile does not tell",
        "one of the two is unknown",
        _NO_FRACTION,
        "the figure is of the whole capture",
    ),
}
"""Why a figure of one run, the change, its fraction and the noise may be unknown."""


def _quantities(kind: Kind) -> tuple[tuple[str, Unit, str, str, str], ...]:
    """What JSON has of a change: key, unit, attribute of `Change`, meaning, and why it may be unknown."""
    suffix, unit = _UNITS[kind]
    side, delta, fraction, noise = _WHY[kind]
    return (
        ("mark", VERBATIM, "mark", "same, more, less, new, gone or unknown", ""),
        (f"before_{suffix}", unit, "before", "in A", side),
        (f"after_{suffix}", unit, "after", "in B", side),
        (f"change_{suffix}", unit, "delta", "in B less in A", delta),
        ("change_fraction", NUMBER, "relative", "the change as a fraction of what it was in A", fraction),
        (f"noise_{suffix}", unit, "noise", "half of the interval that two equal runs stay within", noise),
    )


_Objects = Callable[[Diff], Sequence[Any]]


def _fields(of: _Objects, *fields: tuple[str, Unit, str, str, str]) -> tuple[Field[Diff], ...]:
    """Fields of some objects of a comparison: key, unit, attribute, meaning, and why it may be unknown."""

    def field(key: str, unit: Unit, attribute: str, meaning: str, null: str) -> Field[Diff]:
        read = attrgetter(attribute)
        return Field(key, unit, lambda diff, rows: [read(of(diff)[row]) for row in rows], meaning, null)

    return tuple(field(*one) for one in fields)


def _changes(of: _Objects, attribute: str, kind: Kind, prefix: str = "") -> tuple[Field[Diff], ...]:
    """The fields of a change that the objects have."""
    quantities = (
        (prefix + key, unit, f"{attribute}.{name}", meaning, null)
        for key, unit, name, meaning, null in _quantities(kind)
    )
    return _fields(of, *quantities)


def _table(key: str, of: _Objects, fields: tuple[Field[Diff], ...]) -> Table[Diff]:
    return Table(key, fields, lambda diff: len(of(diff)), json=tuple(field.key for field in fields))


_CLASSES = attrgetter("classes")
_CATEGORIES = attrgetter("categories")
_MODULES = attrgetter("modules")
_FIGURES = attrgetter("figures")
_OPS = attrgetter("ops")
_NAMED = (("name", VERBATIM, "name", "its name", ""), ("class", VERBATIM, "op_class", "the class of its ops", ""))

CLASSES = _table("classes", _CLASSES, (*_fields(_CLASSES, *_NAMED), *_changes(_CLASSES, "time", "time")))
CATEGORIES = _table("categories", _CATEGORIES, (*_fields(_CATEGORIES, *_NAMED), *_changes(_CATEGORIES, "time", "time")))
MODULES = _table(
    "modules",
    _MODULES,
    (
        *_fields(
            _MODULES,
            ("name", VERBATIM, "name", "the HLO module", ""),
            ("problem", VERBATIM, "problem", "why its memory is unknown", ""),
        ),
        *_changes(_MODULES, "peak", "bytes", "peak."),
        *_changes(_MODULES, "arguments", "bytes", "arguments."),
        *_changes(_MODULES, "temporaries", "bytes", "temporaries."),
    ),
)
KEY_FIGURES = _table(
    "figures",
    _FIGURES,
    (
        *_fields(_FIGURES, ("key", VERBATIM, "key", "its key on the overview", "")),
        *_changes(_FIGURES, "change", "percent"),
    ),
)

_OLD_NAME = "the op has the same name in both, or is in one run only"
_NO_CATEGORY = "the profile has no HLO category for these ops"
_NO_FRAMEWORK_OP = "the profile names no framework op for these ops"
_OP_FIELDS = (
    *_fields(
        _OPS,
        ("name", VERBATIM, "name", "its name in B, in A where it is gone", ""),
        ("old_name", VERBATIM, "old_name", "its name in A where that is another one", _OLD_NAME),
        ("program", VERBATIM, "program", "its HLO module, without the id", ""),
        ("category", VERBATIM, "category", "its HLO category", _NO_CATEGORY),
        ("class", VERBATIM, "op_class", "its class", ""),
        ("framework_op", TEXT, "framework_op", "the framework op that it stems from", _NO_FRAMEWORK_OP),
        ("matched_by", VERBATIM, "matched_by", "how it was found in the other run", ""),
        ("hlo_changed", FLAG, "text_changed", "whether its HLO text differs by more than numbers in names", ""),
        ("occurrences.before", NUMBER, "count.before", "how often it runs in A", ONE_SIDED),
        ("occurrences.after", NUMBER, "count.after", "how often it runs in B", ONE_SIDED),
    ),
    *_changes(_OPS, "time", "time"),
)
OPS: Table[Diff] = Table(
    "ops",
    (Field("rank", COUNT, lambda _, rows: [row + 1 for row in rows], "1 for the largest change"), *_OP_FIELDS),
    lambda diff: len(diff.ops),
    json=tuple(field.key for field in _OP_FIELDS),
    csv=(
        "rank",
        "mark",
        "name",
        "old_name",
        "program",
        "category",
        "class",
        "framework_op",
        "before_ms",
        "after_ms",
        "change_ms",
        "change_fraction",
        "noise_ms",
        "occurrences.before",
        "occurrences.after",
        "matched_by",
        "hlo_changed",
    ),
)


def _change_figures(key: str, of: str, meaning: str) -> tuple[Figure[Diff], ...]:
    """The figures of a change of time; unknown ones without the steps that it is of."""

    def figure(name: str, unit: Unit, attribute: str, words: str, null: str) -> Figure[Diff]:
        read = attrgetter(f"{of}.{attribute}")
        is_of_steps = of.startswith("steps.")
        return Figure(
            f"{key}.{name}",
            unit,
            lambda diff: None if is_of_steps and diff.steps is None else read(diff),
            f"{meaning}: {words}",
            null,
        )

    return tuple(figure(*quantity) for quantity in _quantities("time"))


FIGURES: tuple[Figure[Diff], ...] = (
    Figure("verdict.sentence", VERBATIM, verdict, "what changed, by what, and what of it is noise"),
    Figure("verdict.mark", VERBATIM, headline_mark, "the mark of the typical step; unknown for different programs"),
    Figure("verdict.different_programs", FLAG, lambda diff: bool(diff.different), "whether the programs are different"),
    Figure("basis", VERBATIM, attrgetter("basis"), "what times are divided by besides cores"),
    Figure("confidence", NUMBER, lambda _: CONFIDENCE, "how many differences of equal runs lie within the noise"),
    *_change_figures("steps.typical", "steps.typical", "the mean over the typical steps"),
    *_change_figures("steps.median", "steps.median", "the median step"),
    *_change_figures("steps.mean", "steps.mean", "the mean step"),
    *_change_figures("steps.minimum", "steps.minimum", "the shortest step"),
    *_change_figures("steps.maximum", "steps.maximum", "the longest step"),
    *_change_figures("steps.odd", "steps.odd", "what odd steps add to the mean"),
    *_change_figures("total", "total", "all classes on the mean core"),
    *_change_figures("between_cores", "between_cores", "the slowest core beyond the mean core"),
)


def _step_time(side: Side) -> dict[str, object] | None:
    return None if side.step_time is None else {**step_times(side.step_time), "source": side.step_time.source}


SIDE: tuple[Figure[Side], ...] = (
    Figure("name", VERBATIM, attrgetter("name"), "of the run"),
    Figure("path", VERBATIM, attrgetter("path"), "where it lies"),
    Figure("hosts", TEXTS, attrgetter("hosts"), "those that the figures cover"),
    Figure("device_type", VERBATIM, attrgetter("device_type"), "of the device", "no device plane names its type"),
    Figure("core_count", COUNT, attrgetter("core_count"), "TensorCores, or GPUs, of all hosts"),
    Figure("simulated", FLAG, attrgetter("simulated"), "whether its times are composed, not measured"),
    Figure("step_count", COUNT, lambda side: len(side.step_ps), "how many steps it has"),
    Figure("odd_step_count", COUNT, attrgetter("odd_count"), "steps that are not typical"),
    Figure("unit", VERBATIM, attrgetter("unit_name"), "what times are divided by"),
    Figure("unit_count", COUNT, attrgetter("units"), "how many of these there are"),
    Figure("step_time_ms", Unit("ms", plain, NUMBER.words), _step_time, "of all steps", "the profile has no steps"),
    Figure("warnings", TEXTS, attrgetter("warnings"), "what is wrong with its profile"),
)

# --- the rows of a view, as people read them


def _by_mark(entry: Entry) -> Key:
    return MARK_STYLES[entry.change.mark]


def _words(write: Callable[[Entry, bool], str], is_text: bool = False) -> Unit:
    """How a row is written in one column."""
    return Unit("text", plain, write, is_text)


def _side(attribute: str, absent: str) -> Callable[[Entry, bool], str]:
    """A figure of one run, other words where the run has none of it."""
    read = attrgetter(attribute)
    return lambda entry, is_ascii: side_figure(entry.change, read(entry.change), entry.kind, is_ascii, absent)


def _entry(
    key: str,
    unit: Unit,
    meaning: str,
    heading: str = "",
    screen: OnScreen[Changes] | None = None,
    is_filtered: bool = False,
) -> Field[Changes]:
    """A field that is written of the whole row."""

    def read(source: Changes, rows: Rows) -> list[Entry]:
        return [source.rows[row] for row in rows]

    return Field(key, unit, read, meaning, "", heading, screen, filter=("change",) if is_filtered else ())


def _of_op(
    key: str, read: Callable[[OpChange], str | None], meaning: str, screen: OnScreen[Changes] | None
) -> Field[Changes]:
    """A text of the op that a row is of, which a filter looks at."""

    def texts(source: Changes, rows: Rows) -> list[str | None]:
        return [read(op) if (op := source.op(row)) is not None else None for row in rows]

    return Field(key, VERBATIM, texts, meaning, "the row is of no op", "", screen, filter=("change",))


def _drawn(draw: Callable[[Changes, int, Glyphs], Span]) -> Callable[[Changes, Glyphs], Cells]:
    return lambda source, glyphs: each(lambda at: draw(source, at, glyphs))


def _drawn_op(draw: Callable[[OpChange, Glyphs], Span]) -> Callable[[Changes, Glyphs], Cells]:
    """Cells of ops, empty for what is none."""

    def cell(source: Changes, at: int, glyphs: Glyphs) -> Span:
        op = source.op(at)
        return ("", "text") if op is None else draw(op, glyphs)

    return _drawn(cell)


def _note(source: Changes, at: int, glyphs: Glyphs) -> Span:
    entry = source.rows[at]
    is_below = entry.kind == "bytes" and entry.change.mark == "unknown"  # why it is unknown stands below the table
    return "" if is_below else clean(entry.note, glyphs.name == "ascii"), "dim"


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


def _framework_op(op: OpChange, glyphs: Glyphs) -> Span:
    return clean(op.framework_op or UNKNOWN, glyphs.name == "ascii"), "dim"


def _letter(source: Changes, at: int, _: Glyphs) -> Span:
    op_class = source.rows[at].op_class
    return ("", "text") if op_class is None else (CLASS_LETTER[op_class], CLASS_STYLE[op_class])


def _unless_percent(write: Callable[[Change], str]) -> Callable[[Entry, bool], str]:
    """Words of a change, none of percentages, whose change is one already and whose noise is unknown."""
    return lambda entry, _: "" if entry.kind == "percent" else write(entry.change)


def _where_noise_is_known(write: Callable[[Change, bool], str]) -> Callable[[Entry, bool], str]:
    return lambda entry, is_ascii: "" if entry.change.noise is None else write(entry.change, is_ascii)


def _name_and_note(entry: Entry, _: bool) -> str:
    return entry.name + (f" ({entry.note})" if entry.note and entry.op is not None else "")


def _mark(change: Change, _: bool = False) -> str:
    return MARK_WORDS[change.mark]


def _dim(_: object) -> Key:
    return "dim"


CHANGES: Table[Changes] = Table(
    "changes",
    (
        _entry(
            "letter",
            _words(lambda entry, _: entry.op_class or ""),
            "the class of ops, by its letter",
            screen=OnScreen("", "", 1, cells=_drawn(_letter), fixed=True, keeps_style=True),
            is_filtered=True,
        ),
        _entry(
            "mark",
            _words(_unless_percent(_mark), is_text=True),
            "whether it is more, less, new, gone, or the same within the noise",
            screen=OnScreen("", "", 4, _by_mark, lambda entry, _: _mark(entry.change), fixed=True),
            is_filtered=True,
        ),
        _entry(
            "change",
            _words(lambda entry, is_ascii: signed(entry.change.delta, entry.kind, is_ascii)),
            "in B less in A",
            "change",
            OnScreen("change", "change", 9, _by_mark, fixed=True),
        ),
        _entry(
            "relative",
            _words(_unless_percent(relative)),
            "the change as a percentage of what it was in A",
            screen=OnScreen("relative", "", 6, _by_mark, fixed=True),
        ),
        _entry(
            "name",
            _words(_name_and_note, is_text=True),
            "what changed",
            "what",
            OnScreen(
                "name",
                "what",
                16,
                lambda entry: "dim" if entry.change.mark == "same" else "strong",
                lambda entry, _: entry.name,
                fixed=True,
                grows=True,
            ),
            is_filtered=True,
        ),
        _entry(
            "before", _words(_side("before", "")), "in A", "A", OnScreen("before", "A", 8, words=_side("before", "-"))
        ),
        _entry("after", _words(_side("after", "")), "in B", "B", OnScreen("after", "B", 8, words=_side("after", "-"))),
        _entry(
            "noise",
            _words(lambda entry, is_ascii: noise_time(entry.change, is_ascii)),
            "half of the interval that two equal runs stay within",
            screen=OnScreen("noise", "noise", 8, _dim),
        ),
        _entry(
            "note",
            _words(lambda entry, _: entry.note),
            "its category, what a sum is of, or why it is unknown",
            screen=OnScreen("note", "", 26, cells=_drawn(_note), is_left=True),
            is_filtered=True,
        ),
        _entry(
            "count",
            _words(lambda entry, _: ""),
            "how often the op runs",
            screen=OnScreen("count", "count", 9, cells=_drawn_op(_count)),
        ),
        _of_op(
            "old_name",
            lambda op: op.old_name,
            "its name in A where that is another one",
            OnScreen("old_name", "name in A", 18, _dim, lambda value, _: value or "", cut=cut),
        ),
        _of_op("program", lambda op: op.program, "its HLO module", OnScreen("program", "program", 20, cut=cut)),
        _of_op(
            "framework",
            lambda op: op.framework_op,
            "the framework op that it stems from",
            OnScreen("framework", "framework op", 40, cells=_drawn_op(_framework_op)),
        ),
        _entry(
            "matched",
            _words(lambda entry, _: ""),
            "how it was found in the other run",
            screen=OnScreen("matched", "matched by", 22, cells=_drawn_op(_matched), is_left=True),
        ),
        _entry("noise_share", _words(_where_noise_is_known(noise_words)), "the noise as a percentage", "noise"),
        _entry("step_mark", _words(_where_noise_is_known(_mark), is_text=True), "the mark, where the noise is known"),
    ),
    len,
    json=(),
    markdown=("mark", "change", "relative", "before", "after", "name"),
)

OP_COLUMNS = ("count", "old_name", "program", "framework", "matched")
"""Columns that only ops have."""

STEP_COLUMNS = ("name", "before", "after", "change", "relative", "noise_share", "step_mark")
"""What Markdown shows of step times."""
