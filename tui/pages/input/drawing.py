"""The input pipeline page in cells: how long the steps wait for input, and what the host does meanwhile.

From the top: headline figures, the verdict with what to do next, the waiting of each step, the host's time by part, the
ops in the order of the pipeline, and notes. `compose` fits the page to a screen; the report draws it without a height.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tpuprof.parsers.ops.host_events.input_events import PRODUCE, TRANSFER, WAIT
from tpuprof.parsers.pages.input.model import InputPipelinePage, StepWait
from tpuprof.parsers.pages.overview.model import HIGHLY_INPUT_BOUND
from tpuprof.tui.draw import columns as steps_graph
from tpuprof.tui.draw.columns import ComposedGraph, Cursor, columns_of
from tpuprof.tui.draw.format import UNKNOWN, duration, percent
from tpuprof.tui.draw.pen import NARROW, TALL, WIDE, Pen, cut_middle, hstack, label_span, rows_around
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, line_width, small_bar
from tpuprof.tui.pages.input.fields import BREAKDOWN, OPS
from tpuprof.tui.report.fields import row_words

_PARTS: Mapping[str, tuple[str, StyleKey]] = {
    "Enqueue": ("enqueue", "class.host"),
    "Demanded file read": ("read", "class.copy"),
    "Advanced file read": ("read ahead", "class.vector"),
    "Preprocessing": ("preprocess", "class.compute"),
    "Unknown": ("other", "class.unknown"),
    WAIT: ("wait", "class.host"),
    TRANSFER: ("transfer", "class.copy"),
    PRODUCE: ("produce", "class.compute"),
}
"""What each category is called in a word, and its style; the first ones are those of the breakdown, in its order."""

LEAST_VERDICT, LEAST_GRAPH, LEAST_ROWS = 3, 2, 3  # lines that verdict, graph and table have even on a crowded screen
GOOD_GRAPH = 4  # rows of the graph beyond which further ops come first
FEW_BARS = 3  # parts of the host's time that a screen shows which is not tall

_LEAST_NAME = 30
"""Cells that names have where there is room, however short they are, so that the columns do not stand at the left."""

_SCALED = 0.01  # difference from which on a part of the whole is worth a word
_TOPS = (1, 2, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100)  # percentages at which the axis may end
_DEEPEST = 8  # stages by which a row is indented at most
_Card = list[list[Span]]
_CARDS = (22, 19, 21)  # cells of 80 that the cards but the last one have
_FEW_CARDS = (28, 28)  # the same on a narrow screen, which has no room for the range over the steps


def input_headline(page: InputPipelinePage, pen: Pen) -> list[Line]:
    """Three rows of cards: step time, the share of it that waits for input, and the worst step."""
    widths = [pen.width * share // 80 for share in (_CARDS if pen.width >= NARROW else _FEW_CARDS)]
    cards = [steps_graph.step_time_card(page.step_time, pen.at(widths[0] - 1))]
    cards += [_wait_card(page, pen.glyphs), _range_card(page, pen.glyphs), _worst_card(page, pen.glyphs)]
    if pen.width < NARROW:
        del cards[2]
    widths.append(pen.width - sum(widths))
    blocks = [
        [(*pen.at(room - 1).fit(row), (" ", "text")) for row in card] for card, room in zip(cards, widths, strict=True)
    ]
    return hstack(blocks, widths)


_SAME_PERCENT = 0.1  # percent by which two shares may differ that are said to be the same


def _wait_card(page: InputPipelinePage, glyphs: Glyphs) -> _Card:
    label: list[Span] = [("WAITS FOR INPUT", "dim")]
    waiting = page.bottleneck.input_percent
    if waiting is None:
        return [label, [(UNKNOWN, "dim")], [("unknown", "dim")]]
    key: StyleKey = "good" if waiting < 5 else "bad" if waiting >= 20 else "warn"
    filled, empty = small_bar(waiting / 100, 12, glyphs)
    of = " step to step" if page.bottleneck.steps_lie_apart else " of step time"
    return [label, [(percent(waiting), key), (of, "dim")], [(filled, key), (empty, "rule")]]


def _range_card(page: InputPipelinePage, glyphs: Glyphs) -> _Card:
    label: list[Span] = [("OVER THE STEPS", "dim")]
    waiting = page.infeed_percent
    if waiting is None:
        return [label, [(UNKNOWN, "dim")], []]
    middle: list[Span] = [("median ", "dim"), (percent(waiting.median), "text")]
    span = f"{percent(waiting.minimum)} {glyphs.dash} {percent(waiting.maximum)}"
    deviation = f" {glyphs.sigma} {percent(waiting.standard_deviation)}" * (len(page.steps) > 1)  # one step has none
    return [label, [(span, "strong")], [*middle, (deviation, "dim")]]


def _worst_card(page: InputPipelinePage, glyphs: Glyphs) -> _Card:
    label: list[Span] = [("WORST STEP", "dim")]
    worst = page.worst_step
    if worst is None:
        return [label, [("none waits" if page.infeed_percent is not None else UNKNOWN, "dim")], []]
    step = page.steps[worst]
    core: list[Span] = [("on ", "dim"), (step.core or "", "text")] if step.core else []
    name: list[Span] = [(step.name, "strong"), (f" {percent(step.percent_maximum)}", "strong")]
    return [label, name, core]


def _sign(page: InputPipelinePage) -> tuple[str, StyleKey]:
    """In two words whether input limits the program."""
    is_bound, share = page.bottleneck.is_input_bound, page.bottleneck.input_percent
    if is_bound and share is not None:
        return ("INPUT-BOUND", "bad") if share >= HIGHLY_INPUT_BOUND else ("PARTLY INPUT-BOUND", "warn")
    if is_bound is None:
        return "UNKNOWN" if page.has_input_events else "NO INPUT EVENTS", "warn"
    return "NOT INPUT-BOUND", "good"


def input_verdict(page: InputPipelinePage, pen: Pen, most: int | None = None) -> list[Line]:
    """Whether input limits the program, and what to do about it; at most so many lines."""
    (sign, key), share = _sign(page), page.bottleneck.input_percent
    advice = list(page.next_steps)  # the bottleneck's own are the overview's
    if share is not None and page.infeed_percent is not None:
        mean = page.infeed_percent.average  # it is less where the longer steps wait more
        apart = any((each.percent_maximum or 0) - (each.percent_average or 0) >= _SAME_PERCENT for each in page.steps)
        on_core = " on the core that waits most" if apart else ""
        of_mean = "" if abs(share - mean) < _SAME_PERCENT else f"; the mean step waits {percent(mean)}{on_core}"
        statement = f"Input wait is {percent(share)} of all step time{of_mean}."
        if page.bottleneck.steps_lie_apart:
            statement = (
                f"Input wait is {percent(share)} of the time from a step to the next. Within the steps it is "
                f"{percent(mean)} of their time{on_core}."
            )
    elif page.bottleneck.is_input_bound is False and page.bottleneck.idle_percent is not None:
        idle = percent(max(0.1, page.bottleneck.idle_percent))
        of = "the time from a step to the next" if page.bottleneck.steps_lie_apart else "step time"
        statement = f"Input wait is at most {idle} of {of}, the time that the device is idle."
    else:
        statement = advice.pop(0) if advice else page.bottleneck.statement
    near = pen.narrower(1)  # text ends before the right edge
    lines = near.wrap(statement, "text", [(f" {sign} ", key)], indent=1)
    lines += near.wrap_all(advice, "text", [(f" {pen.glyphs.arrow} ", "key")])
    return lines if most is None else pen.cut_after(lines, most, "W")


def axis_top(steps: Sequence[StepWait]) -> int:
    """Where the axis ends: the next round percentage."""
    most = max((step.percent_maximum or 0.0 for step in steps), default=0.0)
    return next((top for top in _TOPS if most <= top), _TOPS[-1])


def wait_graph(steps: Sequence[StepWait], pen: Pen, height: int, cursor: int | None) -> list[Line]:
    """The graph over `height` rows and a row of step names below.

    A column is solid up to the mean over the cores, and light from there up to the core that waits most; of several
    steps it shows the one that waits most.
    """
    columns = columns_of([step.percent_maximum or 0.0 for step in steps], pen.width, cursor)
    top = axis_top(steps)

    def cell(index: int, row: int) -> Span:
        low, high = top * (height - 1 - row) / height, top * (height - row) / height
        mean, most = steps[index].percent_average or 0.0, steps[index].percent_maximum or 0.0
        if mean > low:
            return (pen.glyphs.column[max(1, round(8 * min(1.0, (mean - low) / (high - low))))], "class.host")
        reaches = most >= (low + high) / 2 or (low == 0 and most > 0)
        return (pen.glyphs.light if reaches else " ", "class.host")

    lines = steps_graph.graph_lines(columns, height, f"{top}%", cell, pen)
    worst = max(columns.shown, key=lambda index: steps[index].percent_maximum or 0.0)
    wanted: list[tuple[int, StyleKey]] = [(cursor, "cursor")] if cursor is not None else []
    wanted += [(worst, "bad")] if steps[worst].percent_maximum else []
    return [*lines, steps_graph.names_line([step.name for step in steps], columns, wanted, pen)]


def wait_detail(steps: Sequence[StepWait], index: int, is_cursor: bool, pen: Pen) -> Line:
    """One line on a step: the one under the cursor, else the one that waits most."""
    step = steps[index]
    name, time = step.name, duration(step.duration_ps, pen.glyphs.is_ascii)
    head = " step " if is_cursor else " worst: step "
    spans: list[Span] = [(head, "dim"), (name, "strong"), (f"  {time}", "strong")]
    if step.wait_ps is None:
        return pen.fit([*spans, (", waiting for input unknown", "dim")])
    if step.core is None and not step.wait_ps:
        return pen.fit([*spans, (", no core waits for input", "dim")])
    spans += [(", waits ", "dim"), (duration(step.wait_ps, pen.glyphs.is_ascii), "text")]
    spans.append((f" = {percent(step.percent_maximum)}", "strong"))
    if step.core is None:
        return pen.fit(spans)
    spans += [(" on ", "dim"), (step.core, "text")]
    least, mean = percent(step.percent_minimum), percent(step.percent_average)
    spread = f"; mean {mean}, least {least}"
    if least != percent(step.percent_maximum) and line_width(tuple(spans)) + len(spread) <= pen.width:
        spans.append((spread, "dim"))
    return pen.fit(spans)


class _Bar(NamedTuple):
    """A part of the host's time."""

    label: str
    key: StyleKey
    size: float


def _making(page: InputPipelinePage) -> list[_Bar]:
    if page.breakdown is None:
        return []
    return [_Bar(*part, figure.read(page)) for part, figure in zip(_PARTS.values(), BREAKDOWN, strict=False)]


def host_bars(page: InputPipelinePage, pen: Pen, most: int | None = None) -> list[Line]:
    """The host's time for input: the largest parts of what makes it, at the left, and of what hands it over, or all."""
    making, totals = _making(page), page.totals()
    feeding = [_Bar(*_PARTS[kind], totals[kind]) for kind in (WAIT, TRANSFER, PRODUCE) if kind in totals]
    left = pen.width // 2 if feeding else pen.width
    blocks = [_bars("making input", making, pen.at(left), most)]
    if not making:
        why = pen.at(left - 1).wrap(f"unknown: {page.unknown.get('breakdown_us', '')}", "dim", [(" ", "dim")])
        blocks[0] += [pen.at(left).fit(line) for line in why]
    if feeding:
        blocks.append(_bars("feeding the device", feeding, pen.narrower(left), most))
    return hstack(blocks, [left, pen.width - left][: len(blocks)])


def _bars(title: str, bars: Sequence[_Bar], pen: Pen, most: int | None) -> list[Line]:
    total = sum(bar.size for bar in bars)
    largest = sorted(bars, key=lambda bar: -bar.size)[:most]
    shown = [bar for bar in bars if most is None or (bar in largest and bar.size > 0)]
    room = max(1, min(40, pen.width - 34))
    whole = f"  {duration(total, pen.glyphs.is_ascii)}" if bars else ""
    lines = [pen.fit([(f" {title}", "dim"), (whole, "text")])]
    for bar in shown:
        share = bar.size / total if total else 0.0
        filled, empty = small_bar(share, room, pen.glyphs)
        metrics = f" {duration(bar.size, pen.glyphs.is_ascii):>8} {percent(100 * share) if bar.size else '':>6}"
        label = label_span(f" {bar.label}", 13, "text")
        lines.append(pen.fit([label, (filled, bar.key), (empty, "rule"), (metrics, "text")]))
    return lines


def op_rows(page: InputPipelinePage, pen: Pen, cursor: int | None, most: int | None) -> list[Line]:
    """A heading and a row an op, each below the stage that it feeds.

    Where fewer rows are wanted than there are ops, they are the first ones, or those up to the cursor.
    """
    wide = pen.width >= WIDE
    heading = " ".join(f"{OPS.by_key[key].heading:>{cells}}" for key, cells in _figure_cells(pen.width).items())
    kind = f"{'category':<18} " if wide else f"{'category':<10} " * (pen.width >= NARROW)
    room = _name_room(page, pen.width)
    lines = [pen.fit([(f" {'op':<{room}} {kind}{heading}", "dim")])]
    shown = rows_around(cursor, len(page.stages), most)
    return [*lines, *(_op_row(page, row, row == cursor, pen) for row in shown)]


def _figure_cells(width: int) -> dict[str, int]:
    """Cells of the figures that a screen of this width shows, by key."""
    share = {"total_time_percent": 7} if width >= WIDE else {}
    return {"count": 7, "total_time_ms": 8, **share, "self_time_ms": 8, "self_time_percent": 6}


def _name_room(page: InputPipelinePage, width: int) -> int:
    """Cells for the names: all that the columns leave, but no more than the longest name takes."""
    longest = max((2 * min(stage.depth, _DEEPEST) + len(stage.label) for stage in page.stages), default=0)
    return max(8, min(width - (73 if width >= WIDE else 46 if width >= NARROW else 35), max(longest, _LEAST_NAME)))


def _op_row(page: InputPipelinePage, row: int, selected: bool, pen: Pen) -> Line:
    stage, ascii_only, wide = page.stages[row], pen.glyphs.is_ascii, pen.width >= WIDE
    op, room = page.ops[stage.op], _name_room(page, pen.width)
    indent = "  " * min(stage.depth, _DEEPEST)
    name = cut_middle(stage.label, max(1, room - len(indent)), pen.glyphs)
    short, style = _PARTS[op.category]
    category = f"{op.kind:<18} " if wide else f"{short:<10} " * (pen.width >= NARROW)
    cells = _figure_cells(pen.width)
    words = row_words(OPS, tuple(cells), page.ops, stage.op, ascii_only)
    metrics = " ".join(f"{text:>{size}}" for text, size in zip(words, cells.values(), strict=True))
    spans: list[Span] = [(pen.glyphs.mark if selected else " ", "mark")]
    spans.append((f"{indent + name:<{room}} ", "cursor" if selected else "strong"))
    spans += [(category, "cursor" if selected else style), (metrics, "cursor" if selected else "text")]
    return pen.fit(spans)


_NAMES = {
    "device.step_time_ms": "step time",
    "device.infeed_percent": "waiting for input",
    "breakdown_us": "the host's time by part",
}


def input_notes(page: InputPipelinePage, pen: Pen) -> list[Line]:
    """Warnings, how steps were inferred, what the percentages are of, and what is unknown."""
    time = page.step_time
    remarks = [*page.warnings, *([time.note] if time is not None and time.note else [])]
    shown = {*(["device.infeed_percent"] if page.steps else []), *(["breakdown_us"] if page.ops else [])}
    unknown = ((_NAMES[key], why) for key, why in page.unknown.items() if key in _NAMES and key not in shown)
    return [*pen.notes(remarks, unknown), *figure_notes(page, pen)]


def figure_notes(page: InputPipelinePage, pen: Pen) -> list[Line]:
    """What the figures of the host are of, where that is not plain."""
    notes = []
    own = sum(op.self_ps for op in page.ops if op.group == "input_op")
    parts = sum(bar.size for bar in _making(page))
    if parts and abs(parts - own) > _SCALED * max(parts, own):
        words = "making input: its parts are scaled so that enqueue keeps the share of time that infeed enqueues take"
        notes.append(f"{words}; the table has the ops' own times")
    if len({op.group for op in page.ops}) > 1:
        notes += ["self % adds up to 100% over the ops that make input, and over the ops that feed the device"]
    return pen.wrap_all(notes, "dim", [("   ", "dim")])


def compose_input(page: InputPipelinePage, pen: Pen, height: int | None, cursor: Cursor) -> ComposedGraph:
    """Puts the page together. With a height its graph and table are made to fit; notes may lie below the end."""
    tall = height is None or height >= TALL
    lines: list[Line] = input_headline(page, pen)
    lines += [pen.fit([])] if tall else []
    bars = host_bars(page, pen, None if tall else FEW_BARS) if page.ops else []
    crowd = (len(bars) + 3 + min(len(page.ops), LEAST_ROWS) if page.ops else 0) + (LEAST_GRAPH + 3 if page.steps else 0)
    most = None if tall or not page.has_input_events else max(LEAST_VERDICT, (height or 0) - len(lines) - crowd)
    lines += input_verdict(page, pen, most)
    first_step = last_step = first_op = -1
    shown = 0
    if page.steps:
        lines.append(_steps_rule(page, pen))
        first_step = len(lines)
        rows = 8 if height is None else _graph_rows(height - len(lines) - 2, len(bars) + 3, len(page.stages))
        lines += _steps(page, pen, rows, cursor.step)
        last_step = len(lines) - 1
    if page.ops:
        lines += [pen.rule("Host", "time of its threads, added up"), *bars]
        room = len(page.stages) if height is None else max(LEAST_ROWS, height - len(lines) - 2)
        shown = min(len(page.stages), room)
        title = f"{shown} of " * (shown < len(page.ops)) + f"{len(page.ops)} op{'s' * (len(page.ops) != 1)}"
        title += ", each below the one it feeds" * any(stage.depth for stage in page.stages)
        lines.append(pen.rule("Input ops", title))
        first_op = len(lines) + 1
        lines += op_rows(page, pen, cursor.op, shown)
    notes = input_notes(page, pen)
    lines += [pen.rule("Notes, and what this profile cannot show"), *notes] if notes else []
    listed = steps_graph.rows_from(first_op, "ops", rows_around(cursor.op, len(page.stages), shown))
    return ComposedGraph(tuple(pen.fit(line) for line in lines), first_step, last_step, listed)


def _graph_rows(room: int, around: int, ops: int) -> int:
    """Rows of the graph: beyond a good height only those that the table has no use for.

    Args:
        room: lines for graph and table together; around: those that stand around the rows of the table.
        ops: rows of the table.
    """
    if not ops:
        return max(LEAST_GRAPH, min(10, room))
    least = max(LEAST_GRAPH, min(GOOD_GRAPH, room - around - min(ops, LEAST_ROWS + 1)))
    return max(least, min(10, room - around - ops))


def _steps_rule(page: InputPipelinePage, pen: Pen) -> Line:
    how = {"infeed": "time in infeed ops", "host": "device idle, host waits for input or sends it", None: ""}
    title = f"{len(page.steps)} step{'s' * (len(page.steps) != 1)}"
    words, head = how[page.source], "Waiting for input, % of each step"
    right = f"{words}; {title}" if words else title
    return pen.rule(head, right if len(head) + len(right) + 6 <= pen.width else title)


def _steps(page: InputPipelinePage, pen: Pen, rows: int, cursor: int | None) -> list[Line]:
    if page.infeed_percent is None:
        why = page.unknown.get("device.infeed_percent", "")
        return pen.wrap(f"unknown: {why}", "dim", [(" ", "dim")])
    index = cursor if cursor is not None else page.worst_step
    rows = LEAST_GRAPH if page.worst_step is None else rows
    graph = wait_graph(page.steps, pen, rows, cursor)
    if index is None:
        return [*graph, pen.fit([(" no step waits for input", "dim")])]
    return [*graph, wait_detail(page.steps, index, cursor is not None, pen)]
