"""The changes as tables: ops, categories, where the time of a step goes, memory, key figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.diff.model import Change, Diff, OpChange
from tpuprof.tui.draw.bars import CLASS_STYLE
from tpuprof.tui.draw.format import UNKNOWN, count
from tpuprof.tui.draw.layout import clean
from tpuprof.tui.draw.spans import CLASS_LETTER, Glyphs, Line, Span
from tpuprof.tui.draw.table import Column, chosen_columns, each, header_line, row_lines
from tpuprof.tui.pages.diff.draw.words import MARK_STYLES, MARK_WORDS, Kind, noise_time, relative, side_figure, signed

ViewName = Literal["ops", "categories", "time", "steps", "memory", "figures"]
VIEWS: tuple[ViewName, ...] = get_args(ViewName)

HIDING: tuple[ViewName, ...] = ("ops", "categories")
"""Views in which what is the same can be hidden, and that can be sorted; the rows of the others add up, or are few."""

Sort = Literal["change", "slower", "faster", "relative", "before", "after", "name"]
SORTS: tuple[Sort, ...] = get_args(Sort)

SORT_WORDS: dict[Sort, str] = {
    "change": "size of the change",
    "slower": "slower first",
    "faster": "faster first",
    "relative": "relative change",
    "before": "time before",
    "after": "time after",
    "name": "name",
}

_NAME_WIDTH = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """A row.

    Attributes:
        name: what changed.
        change: how.
        kind: what its figures count.
        op_class: for its letter; None for what is of no class.
        op: index into `Diff.ops`; None for what is no op.
        note: words on it: a category, what a sum is of, why it is unknown.
    """

    name: str
    change: Change
    kind: Kind = "time"
    op_class: OpClass | None = None
    op: int | None = None
    note: str = ""


def entries(diff: Diff, view: ViewName) -> tuple[Entry, ...]:
    """The rows of a view, in their own order; none of the steps."""
    if view == "ops":
        return tuple(
            Entry(op.name, op.time, "time", op.op_class, at, op.category or "unknown") for at, op in enumerate(diff.ops)
        )
    if view == "categories":
        return tuple(Entry(item.name, item.time, "time", item.op_class) for item in diff.categories)
    if view == "time":
        return _time(diff)
    if view == "memory":
        return _memory(diff)
    if view == "figures":
        return tuple(Entry(item.label, item.change, "percent", note=_why(diff, item.key)) for item in diff.figures)
    return ()


def _time(diff: Diff) -> tuple[Entry, ...]:
    """The classes, and how they add up to the step."""
    rows = [Entry(item.name, item.time, "time", item.op_class) for item in diff.classes]
    if diff.steps is None:
        return (*rows, Entry("all time", diff.total, note="all classes, on the mean core")) if rows else ()
    if rows:
        rows.append(Entry("slowest core", diff.between_cores, note="beyond the mean core"))
    rows.append(Entry("typical step", diff.steps.typical, note="all of the above" if diff.classes else ""))
    rows.append(Entry("odd steps", diff.steps.odd, note="what they add to the mean"))
    return (*rows, Entry("mean step", diff.steps.mean, note="typical and odd steps"))


def _memory(diff: Diff) -> tuple[Entry, ...]:
    rows: list[Entry] = []
    for module in diff.modules:
        rows.append(Entry(f"{module.name} peak", module.peak, "bytes", note=module.problem or "HBM at once, at most"))
        if module.peak.before is not None or module.peak.after is not None:
            rows.append(Entry(f"{module.name} arguments", module.arguments, "bytes", note="HBM of parameters"))
            rows.append(Entry(f"{module.name} temporaries", module.temporaries, "bytes", note="of the peak"))
    return tuple(rows)


def _why(diff: Diff, key: str) -> str:
    reasons = [diff.unknown.get(f"figures.{key}.{side}", "") for side in ("before", "after")]
    return "; ".join(f"{name}: {why}" for name, why in zip("AB", reasons, strict=True) if why)


def shown(
    diff: Diff, rows: Sequence[Entry], sort: Sort = "change", words: str = "", hides_same: bool = False
) -> tuple[Entry, ...]:
    """The rows that hold all words, without those that are the same where that is wanted, in order.

    Sums that add up keep their order.
    """
    wanted = words.casefold().split()
    found = [row for row in rows if all(word in _searched(diff, row) for word in wanted)]
    if hides_same:
        found = [row for row in found if row.change.mark != "same"]
    return tuple(sorted(found, key=_order(sort))) if is_sortable(rows) else tuple(found)


def is_sortable(rows: Sequence[Entry]) -> bool:
    """Whether the rows are ops or categories, which are in no order of their own."""
    return bool(rows) and all(row.op_class is not None for row in rows)


def _order(sort: Sort) -> Callable[[Entry], tuple[object, ...]]:
    def by_change(row: Entry) -> tuple[object, ...]:
        return (-abs(row.change.delta or 0.0), row.name)

    def by_relative(row: Entry) -> tuple[object, ...]:
        is_one_sided = row.change.mark in ("new", "gone")
        return (not is_one_sided, 0.0 if is_one_sided else -abs(row.change.relative or 0.0), *by_change(row))

    orders: dict[Sort, Callable[[Entry], tuple[object, ...]]] = {
        "change": by_change,
        "slower": lambda row: (-(row.change.delta or 0.0), row.name),
        "faster": lambda row: (row.change.delta or 0.0, row.name),
        "relative": by_relative,
        "before": lambda row: (-(row.change.before or 0.0), row.name),
        "after": lambda row: (-(row.change.after or 0.0), row.name),
        "name": lambda row: (row.name,),
    }
    return orders[sort]


def _searched(diff: Diff, row: Entry) -> str:
    texts = [row.name, row.note, MARK_WORDS[row.change.mark], row.op_class or ""]
    if row.op is not None:
        op = diff.ops[row.op]
        texts += [op.old_name or "", op.program, op.framework_op]
    return "\n".join(texts).casefold()


def table_lines(
    diff: Diff,
    rows: Sequence[Entry],
    width: int,
    glyphs: Glyphs,
    cursor: int = -1,
    sort: Sort = "change",
    first: int = 0,
    room: int | None = None,
) -> list[Line]:
    """Headings and rows.

    Args:
        cursor: index of the row under the cursor, -1 for none.
        first: the first row shown.
        room: how many rows fit; None for all.
    """
    last = len(rows) if room is None else min(len(rows), first + room)
    columns = chosen_columns(_columns(diff, rows, glyphs), width)
    key = {"slower": "change", "faster": "change"}.get(sort, sort)
    is_sorted = is_sortable(rows)
    lines = [header_line(columns, width, glyphs, key if is_sorted else "", sort not in ("faster", "name"))]
    return lines + row_lines(columns, range(first, last), cursor, width, glyphs)


@dataclass(frozen=True, slots=True)
class _Cells:
    """The table's cells, each a text and its style."""

    rows: Sequence[Entry]
    glyphs: Glyphs

    @property
    def _ascii(self) -> bool:
        return self.glyphs.name == "ascii"

    def letter(self, at: int) -> Span:
        kind = self.rows[at].op_class
        return (CLASS_LETTER[kind], CLASS_STYLE[kind]) if kind is not None else ("", "text")

    def mark(self, at: int) -> Span:
        row = self.rows[at]
        return ("" if row.kind == "percent" else MARK_WORDS[row.change.mark]), MARK_STYLES[row.change.mark]

    def delta(self, at: int) -> Span:
        row = self.rows[at]
        return signed(row.change.delta, row.kind, self._ascii), MARK_STYLES[row.change.mark]

    def relative(self, at: int) -> Span:
        row = self.rows[at]
        return ("" if row.kind == "percent" else relative(row.change)), MARK_STYLES[row.change.mark]

    def name(self, at: int) -> Span:
        row = self.rows[at]
        return clean(row.name, self._ascii), "dim" if row.change.mark == "same" else "strong"

    def before(self, at: int) -> Span:
        return self._side(self.rows[at], self.rows[at].change.before)

    def after(self, at: int) -> Span:
        return self._side(self.rows[at], self.rows[at].change.after)

    def _side(self, row: Entry, value: float | None) -> Span:
        return side_figure(row.change, value, row.kind, self._ascii, "-"), "text"

    def noise(self, at: int) -> Span:
        return noise_time(self.rows[at].change, self.glyphs), "dim"

    def note(self, at: int) -> Span:
        row = self.rows[at]
        is_below = row.kind == "bytes" and row.change.mark == "unknown"  # why it is unknown stands below the table
        return ("" if is_below else clean(row.note, self._ascii)), "dim"


def _columns(diff: Diff, rows: Sequence[Entry], glyphs: Glyphs) -> list[Column]:
    """Every column, the most important first."""
    cells = _Cells(rows, glyphs)
    kinds = {row.kind for row in rows}
    has_ops = any(row.op is not None for row in rows)
    size = 9 if "bytes" in kinds else 8
    columns = [
        Column("", "", 4, each(cells.mark), right=False, fixed=True),
        Column("change", "change", size + 1, each(cells.delta), fixed=True),
        Column("relative", "", 6, each(cells.relative), fixed=True),
        Column("name", "op" if has_ops else "what", _NAME_WIDTH, each(cells.name), right=False, fixed=True, grows=True),
        Column("before", "A", size, each(cells.before)),
        Column("after", "B", size, each(cells.after)),
    ]
    if any(row.op_class is not None for row in rows):
        columns.insert(0, Column("", "", 1, each(cells.letter), fixed=True, keeps_style=True))
    if "percent" in kinds:
        columns = [column for column in columns if column.title or column.width != 4]
    if "time" in kinds:
        columns.append(Column("noise", "noise", 8, each(cells.noise)))
    if any(row.note for row in rows):
        columns.append(Column("note", "category" if has_ops else "", 26, each(cells.note), right=False))
    return columns + (_op_columns(diff, rows, glyphs) if has_ops else [])


def _op_columns(diff: Diff, rows: Sequence[Entry], glyphs: Glyphs) -> list[Column]:
    ascii_only = glyphs.name == "ascii"

    def op(at: int) -> OpChange:
        return diff.ops[rows[at].op or 0]

    def times(at: int) -> Span:
        change = op(at).count
        if change.mark == "same" or change.before is None or change.after is None:
            value = change.after if change.after is not None else change.before
            return _times(value), "text"
        return f"{_times(change.before)}{glyphs.arrow}{_times(change.after)}", "warn"

    def program(at: int) -> Span:
        return clean(op(at).program, ascii_only), "text"

    def matched(at: int) -> Span:
        words = {"name": "", "text": "same HLO", "origin": "same origin", "none": ""}[op(at).matched_by]
        return words if not op(at).text_changed else f"{words or 'same name'}, HLO differs", "dim"

    def framework(at: int) -> Span:
        return clean(op(at).framework_op or UNKNOWN, ascii_only), "dim"

    def old_name(at: int) -> Span:
        return clean(op(at).old_name or "", ascii_only), "dim"

    return [
        Column("count", "count", 9, each(times)),
        Column("old_name", "name in A", 18, each(old_name), right=False),
        Column("program", "program", 20, each(program), right=False),
        Column("framework", "framework op", 40, each(framework), right=False),
        Column("matched", "matched by", 22, each(matched), right=False),
    ]


def _times(value: float | None) -> str:
    """How often an op runs, a whole number where it is one."""
    if value is None:
        return UNKNOWN
    return count(round(value)) if abs(value - round(value)) < 0.005 else f"{value:.2f}"
