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
from tpuprof.tui.report.fields import NO_REASON, Field, Figure, OnScreen, Table
from tpuprof.tui.report.json import step_times
from tpuprof.tui.report.units import COUNT, FLAG, NAMES, NUMBER, TEXT, TIME_MS, VERBATIM, Unit, Value, divided, plain

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
    "percent": (NO_REASON, "one of the two is unknown", _NO_FRACTION, "the figure is of the whole capture"),
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

    def reader(attribute: str) -> Callable[[Diff, Rows], list[Any]]:
        read = attrgetter(attribute)
        return lambda diff, rows: [read(of(diff)[row]) for row in rows]

    return tuple(Field(key, unit, reader(attribute), meaning, null) for key, unit, attribute, meaning, null in fields)


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
_OF_OPS = ("name", "old_name", "program", "category", "class", "framework_op")
_TIMES = ("before_ms", "after_ms", "change_ms", "change_fraction", "noise_ms")
OPS: Table[Diff] = Table(
    "ops",
    (Field("rank", COUNT, lambda _, rows: [row + 1 for row in rows], "1 for the largest change"), *_OP_FIELDS),
    lambda diff: len(diff.ops),
    json=tuple(field.key for field in _OP_FIELDS),
    csv=("rank", "mark", *_OF_OPS, *_TIMES, "occurrences.before", "occurrences.after", "matched_by", "hlo_changed"),
)


def _change_figures(of: str, meaning: str) -> tuple[Figure[Diff], ...]:
    """The figures of a change of time; unknown ones without the steps that it is of."""

    def reader(attribute: str) -> Callable[[Diff], Any]:
        read = attrgetter(f"{of}.{attribute}")
        return lambda diff: None if of.startswith("steps.") and diff.steps is None else read(diff)

    return tuple(
        Figure(f"{of}.{key}", unit, reader(attribute), f"{meaning}: {words}", null)
        for key, unit, attribute, words, null in _quantities("time")
    )


FIGURES: tuple[Figure[Diff], ...] = (
    Figure("verdict.sentence", VERBATIM, verdict, "what changed, by what, and what of it is noise"),
    Figure("verdict.mark", VERBATIM, headline_mark, "the mark of the typical step; unknown for different programs"),
    Figure("verdict.different_programs", FLAG, lambda diff: bool(diff.different), "whether the programs are different"),
    Figure("basis", VERBATIM, attrgetter("basis"), "what times are divided by besides cores"),
    Figure("confidence", NUMBER, lambda _: CONFIDENCE, "how many differences of equal runs lie within the noise"),
    *_change_figures("steps.typical", "the mean over the typical steps"),
    *_change_figures("steps.median", "the median step"),
    *_change_figures("steps.mean", "the mean step"),
    *_change_figures("steps.minimum", "the shortest step"),
    *_change_figures("steps.maximum", "the longest step"),
    *_change_figures("steps.odd", "what odd steps add to the mean"),
    *_change_figures("total", "all classes on the mean core"),
    *_change_figures("between_cores", "the slowest core beyond the mean core"),
)


def _step_time(side: Side) -> dict[str, object] | None:
    return None if side.step_time is None else {**step_times(side.step_time), "source": side.step_time.source}


SIDE: tuple[Figure[Side], ...] = (
    Figure("name", VERBATIM, attrgetter("name"), "of the run"),
    Figure("path", VERBATIM, attrgetter("path"), "where it lies"),
    Figure("hosts", NAMES, attrgetter("hosts"), "those that the figures cover"),
    Figure("device_type", VERBATIM, attrgetter("device_type"), "of the device", "no device plane names its type"),
    Figure("core_count", COUNT, attrgetter("core_count"), "TensorCores, or GPUs, of all hosts"),
    Figure("simulated", FLAG, attrgetter("simulated"), "whether its times are composed, not measured"),
    Figure("step_count", COUNT, lambda side: len(side.step_ps), "how many steps it has"),
    Figure("odd_step_count", COUNT, attrgetter("odd_count"), "steps that are not typical"),
    Figure("unit", VERBATIM, attrgetter("unit_name"), "what times are divided by"),
    Figure("unit_count", COUNT, attrgetter("units"), "how many of these there are"),
    Figure("step_time_ms", Unit("ms", plain, NUMBER.words), _step_time, "of all steps", "the profile has no steps"),
    Figure("warnings", NAMES, attrgetter("warnings"), "what is wrong with its profile"),
)

# --- the rows of a view, as people read them


def _by_mark(entry: Entry) -> Key:
    return MARK_STYLES[entry.change.mark]


def _side(attribute: str, absent: str) -> Callable[[Entry, bool], str]:
    """A figure of one run, other words where the run has none of it."""
    read = attrgetter(attribute)
    return lambda entry, is_ascii: side_figure(entry.change, read(entry.change), entry.kind, is_ascii, absent)


def _entry(
    key: str,
    words: Callable[[Entry, bool], str],
    meaning: str,
    heading: str = "",
    screen: OnScreen[Changes] | None = None,
    is_text: bool = False,
    is_filtered: bool = False,
) -> Field[Changes]:
    """A field that is written of the whole row."""

    def read(source: Changes, rows: Rows) -> list[Entry]:
        return [source.rows[row] for row in rows]

    unit, filtered = Unit("text", plain, words, is_text), ("change",) if is_filtered else ()
    return Field(key, unit, read, meaning, "", heading, screen, filter=filtered)


def _of_op(key: str, attribute: str, meaning: str, screen: OnScreen[Changes]) -> Field[Changes]:
    """A text of the op that a row is of, which a filter looks at."""
    read = attrgetter(attribute)

    def texts(source: Changes, rows: Rows) -> list[str | None]:
        ops = (source.op(row) for row in rows)
        return [None if op is None else read(op) for op in ops]

    return Field(key, VERBATIM, texts, meaning, "the row is of no op", "", screen, filter=("change",))


def _drawn(draw: Callable[[Changes, int, Glyphs], Span]) -> Callable[[Changes, Glyphs], Cells]:
    return lambda source, glyphs: each(lambda index: draw(source, index, glyphs))


def _drawn_op(draw: Callable[[OpChange, Glyphs], Span]) -> Callable[[Changes, Glyphs], Cells]:
    """Cells of ops, empty for what is none."""

    def cell(source: Changes, index: int, glyphs: Glyphs) -> Span:
        op = source.op(index)
        return ("", "text") if op is None else draw(op, glyphs)

    return _drawn(cell)


def _note(source: Changes, index: int, glyphs: Glyphs) -> Span:
    entry = source.rows[index]
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


def _letter(source: Changes, index: int, _: Glyphs) -> Span:
    op_class = source.rows[index].op_class
    return ("", "text") if op_class is None else (CLASS_LETTER[op_class], CLASS_STYLE[op_class])


def _unless_percent(write: Callable[[Change], str]) -> Callable[[Entry, bool], str]:
    """Words of a change, none of percentages, whose change is one already and whose noise is unknown."""
    return lambda entry, _: "" if entry.kind == "percent" else write(entry.change)


def _where_noise_is_known(write: Callable[[Change, bool], str]) -> Callable[[Entry, bool], str]:
    return lambda entry, is_ascii: "" if entry.change.noise is None else write(entry.change, is_ascii)


def _name(entry: Entry, _: bool) -> str:
    return entry.name


def _name_and_note(entry: Entry, _: bool) -> str:
    return entry.name + (f" ({entry.note})" if entry.note and entry.op is not None else "")


def _delta(entry: Entry, is_ascii: bool) -> str:
    return signed(entry.change.delta, entry.kind, is_ascii)


def _noise(entry: Entry, is_ascii: bool) -> str:
    return noise_time(entry.change, is_ascii)


def _mark(change: Change, _: bool = False) -> str:
    return MARK_WORDS[change.mark]


def _by_whether_changed(entry: Entry) -> Key:
    return "dim" if entry.change.mark == "same" else "strong"


def _dim(_: object) -> Key:
    return "dim"


_LETTER: OnScreen[Changes] = OnScreen("", "", 1, cells=_drawn(_letter), fixed=True, keeps_style=True)
_MARK: OnScreen[Changes] = OnScreen("", "", 4, _by_mark, lambda entry, _: _mark(entry.change), fixed=True)
_CHANGE: OnScreen[Changes] = OnScreen("change", "change", 9, _by_mark, fixed=True)
_RELATIVE: OnScreen[Changes] = OnScreen("relative", "", 6, _by_mark, fixed=True)
_NAME: OnScreen[Changes] = OnScreen("name", "what", 16, _by_whether_changed, _name, fixed=True, grows=True)
_BEFORE: OnScreen[Changes] = OnScreen("before", "A", 8, words=_side("before", "-"))
_AFTER: OnScreen[Changes] = OnScreen("after", "B", 8, words=_side("after", "-"))
_NOISE: OnScreen[Changes] = OnScreen("", "noise", 8, _dim)
_NOTE: OnScreen[Changes] = OnScreen("", "", 26, cells=_drawn(_note), is_left=True)
_COUNT: OnScreen[Changes] = OnScreen("", "count", 9, cells=_drawn_op(_count))
_OLD_NAME_COLUMN: OnScreen[Changes] = OnScreen("", "name in A", 18, _dim, lambda value, _: value or "", cut=cut)
_PROGRAM: OnScreen[Changes] = OnScreen("", "program", 20, cut=cut)
_FRAMEWORK: OnScreen[Changes] = OnScreen("", "framework op", 40, cells=_drawn_op(_framework_op), is_left=True)
_MATCHED: OnScreen[Changes] = OnScreen("", "matched by", 22, cells=_drawn_op(_matched), is_left=True)

_BY_MARK = "whether it is more, less, new, gone, or the same within the noise"
_PERCENT = "the change as a percentage of what it was in A"
_WHY_NOTED = "its category, what a sum is of, or why it is unknown"
CHANGES: Table[Changes] = Table(
    "changes",
    (
        _entry("letter", lambda entry, _: entry.op_class or "", "the class of ops", "", _LETTER, is_filtered=True),
        _entry("mark", _unless_percent(_mark), _BY_MARK, "", _MARK, is_text=True, is_filtered=True),
        _entry("change", _delta, "in B less in A", "change", _CHANGE),
        _entry("relative", _unless_percent(relative), _PERCENT, "", _RELATIVE),
        _entry("name", _name_and_note, "what changed", "what", _NAME, is_text=True, is_filtered=True),
        _entry("before", _side("before", ""), "in A", "A", _BEFORE),
        _entry("after", _side("after", ""), "in B", "B", _AFTER),
        _entry("noise", _noise, "half of the interval that two equal runs stay within", "", _NOISE),
        _entry("note", lambda entry, _: entry.note, _WHY_NOTED, "", _NOTE, is_filtered=True),
        _entry("count", lambda _, __: "", "how often the op runs", "", _COUNT),
        _of_op("old_name", "old_name", "its name in A where that is another one", _OLD_NAME_COLUMN),
        _of_op("program", "program", "its HLO module", _PROGRAM),
        _of_op("framework", "framework_op", "the framework op that it stems from", _FRAMEWORK),
        _entry("matched", lambda _, __: "", "how it was found in the other run", "", _MATCHED),
        _entry("noise_share", _where_noise_is_known(noise_words), "the noise as a percentage"),
        _entry("step_mark", _where_noise_is_known(_mark), "its mark, where the noise is known", is_text=True),
    ),
    len,
    json=(),
    markdown=("mark", "change", "relative", "before", "after", "name"),
)

OP_COLUMNS = ("count", "old_name", "program", "framework", "matched")
"""Columns that only ops have."""

STEP_COLUMNS = ("name", "before", "after", "change", "relative", "noise_share", "step_mark")
"""What Markdown shows of step times."""
