"""The input pipeline page in cells: how long the steps wait for input, and what the host does meanwhile.

From the top: headline figures, the verdict with what to do next, the waiting of each step, the host's time by part, the
ops in the order of the pipeline, and notes. `compose` fits the page to a screen; the report draws it without a height.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tpuprof.parsers.pages.input_page import PRODUCE, TRANSFER, WAIT, InputPipelinePage
from tpuprof.tui.draw.format import UNKNOWN, count, duration, percent
from tpuprof.tui.draw.input_waits import wait_detail, wait_graph
from tpuprof.tui.draw.layout import beside, clean, cut_middle, fit, rule, wrap
from tpuprof.tui.draw.overview import TALL, WIDE, small_bar
from tpuprof.tui.draw.spans import BLOCK, Glyphs, Line, Span, StyleKey, plain

_SHORT: Mapping[str, str] = {
    "Enqueue": "enqueue",
    "Demanded file read": "read",
    "Advanced file read": "read ahead",
    "Preprocessing": "preprocess",
    "Unknown": "other",
    WAIT: "wait",
    TRANSFER: "transfer",
    PRODUCE: "produce",
}
_STYLE: Mapping[str, StyleKey] = {
    "Enqueue": "class.host",
    "Demanded file read": "class.copy",
    "Advanced file read": "class.vector",
    "Preprocessing": "class.compute",
    "Unknown": "class.unknown",
    WAIT: "class.host",
    TRANSFER: "class.copy",
    PRODUCE: "class.compute",
}
LEAST_VERDICT, LEAST_GRAPH, LEAST_ROWS = 3, 2, 3
"""Lines that verdict, graph and table have even on a crowded screen."""

FEW_BARS = 3
"""Parts of the host's time that a screen shows which is not tall."""

_DEEPEST = 8
"""Stages by which a row is indented at most."""


@dataclass(frozen=True, slots=True)
class InputCursor:
    """Where the user points: a step, a row of the op table, each an index or None."""

    step: int | None = None
    op: int | None = None


@dataclass(frozen=True, slots=True)
class InputFrame:
    """The page in lines; where the graph and the rows of the op table begin, -1 for what is not shown."""

    lines: tuple[Line, ...]
    first_step_line: int
    first_op_line: int


# --- headline ------------------------------------------------------------------------------------------------------


def input_headline(page: InputPipelinePage, width: int, glyphs: Glyphs) -> list[Line]:
    """Three rows of cards: step time, the share of it that waits for input, and the worst step."""
    cards = [_time_card(page, glyphs), _wait_card(page, glyphs), _range_card(page, glyphs), _worst_card(page, glyphs)]
    widths = [width * share // 80 for share in _CARDS]
    widths.append(width - sum(widths))
    blocks = [[_apart(row, room, glyphs) for row in card] for card, room in zip(cards, widths, strict=True)]
    return beside(blocks, widths)


_Card = list[list[Span]]
_CARDS = (20, 17, 24)
"""Cells of 80 that the cards but the last one have."""


def _apart(row: list[Span], width: int, glyphs: Glyphs) -> Line:
    """A card's row with a blank behind it."""
    return (*fit(row, width - 1, glyphs), (" ", "text"))


def _time_card(page: InputPipelinePage, glyphs: Glyphs) -> _Card:
    ascii_only, time = glyphs.name == "ascii", page.step_time
    if time is None:
        return [[(" STEP TIME", "dim")], [(f" {UNKNOWN}", "dim")], [(" see the notes", "dim")]]
    inferred = time.source != "steps"
    low, high = duration(time.minimum_ps, ascii_only), duration(time.maximum_ps, ascii_only)
    return [
        [(" STEP TIME ", "dim"), ("inferred" if inferred else "median", "warn" if inferred else "dim")],
        [
            (f" {'~' if inferred else ''}{duration(time.median_ps, ascii_only, 4)}", "strong"),
            (f" n={time.count}", "dim"),
        ],
        [(f" {low} {glyphs.dash} {high}", "text")],
    ]


def _wait_card(page: InputPipelinePage, glyphs: Glyphs) -> _Card:
    label: list[Span] = [("WAITS FOR INPUT", "dim")]
    found = page.infeed_percent
    if found is None:
        return [label, [(UNKNOWN, "dim")], [("unknown", "dim")]]
    key: StyleKey = "good" if found.average < 5 else "bad" if found.average >= 20 else "warn"
    filled, empty = small_bar(found.average / 100, 12, glyphs)
    return [label, [(percent(found.average), key), (" average", "dim")], [(filled, key), (empty, "rule")]]


def _range_card(page: InputPipelinePage, glyphs: Glyphs) -> _Card:
    label: list[Span] = [("OVER THE STEPS", "dim")]
    found = page.infeed_percent
    if found is None:
        return [label, [(UNKNOWN, "dim")], []]
    middle: list[Span] = [("median ", "dim"), (percent(found.median), "text")]
    span = f"{percent(found.minimum)} {glyphs.dash} {percent(found.maximum)}"
    return [label, [(span, "strong")], [*middle, (f" {glyphs.sigma} {percent(found.standard_deviation)}", "dim")]]


def _worst_card(page: InputPipelinePage, glyphs: Glyphs) -> _Card:
    label: list[Span] = [("WORST STEP", "dim")]
    worst = page.worst_step
    if worst is None:
        return [label, [("none waits" if page.infeed_percent is not None else UNKNOWN, "dim")], []]
    step, ascii_only = page.steps[worst], glyphs.name == "ascii"
    core: list[Span] = [("on ", "dim"), (clean(step.core or "", ascii_only), "text")] if step.core else []
    name: list[Span] = [(clean(step.name, ascii_only), "strong"), (f" {percent(step.percent_maximum)}", "class.host")]
    return [label, name, core]


# --- verdict -------------------------------------------------------------------------------------------------------

_SIGNS: Mapping[str, tuple[str, StyleKey]] = {
    "host": ("INPUT-BOUND", "bad"),
    "both": ("PARTLY INPUT-BOUND", "warn"),
    "device": ("NOT INPUT-BOUND", "good"),
    "unknown": ("UNKNOWN", "warn"),
}


def input_verdict(page: InputPipelinePage, width: int, glyphs: Glyphs, most: int | None = None) -> list[Line]:
    """Whether input holds the program up, and what to do about it; at most so many lines."""
    (sign, key), share = _SIGNS[page.bottleneck.classification], page.bottleneck.input_percent
    advice = list(page.next_steps)  # the bottleneck's own statement is the overview's
    if share is not None:
        statement = f"{percent(share)} of step time waits for input."
    elif page.bottleneck.classification == "device":
        idle = percent(page.bottleneck.idle_percent)
        statement = f"Only {idle} of step time is idle, so no more than that waits for input."
    else:
        sign = sign if page.has_input_events else "NO INPUT EVENTS"
        statement = advice.pop(0) if advice else page.bottleneck.statement
    lines = wrap(statement, width, "text", glyphs, [(f" {sign} ", key)], indent=1)
    for sentence in advice:
        lines += wrap(sentence, width, "text", glyphs, [(f" {glyphs.arrow} ", "key")])
    if most is None or len(lines) <= most:
        return lines
    hidden = len(lines) - most
    more = f"{glyphs.ellipsis} (+{hidden} more line{'s' * (hidden != 1)}, w)"
    last = plain(lines[most - 1])[: width - len(more) - 1].rstrip()
    return [*lines[: most - 1], fit([(f"{last} ", "text"), (more, "dim")], width, glyphs)]


# --- the host ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Bar:
    label: str
    key: StyleKey
    size: float


def _making(page: InputPipelinePage) -> list[_Bar]:
    parts = page.breakdown
    if parts is None:
        return []
    sizes = {
        "Enqueue": parts.enqueue_ps,
        "Demanded file read": parts.demanded_file_read_ps,
        "Advanced file read": parts.advanced_file_read_ps,
        "Preprocessing": parts.preprocessing_ps,
        "Unknown": parts.unclassified_ps,
    }
    return [_Bar(_SHORT[name], _STYLE[name], size) for name, size in sizes.items()]


def _feeding(page: InputPipelinePage) -> list[_Bar]:
    totals = page.totals()
    return [_Bar(_SHORT[kind], _STYLE[kind], totals[kind]) for kind in (WAIT, TRANSFER, PRODUCE) if kind in totals]


def host_bars(page: InputPipelinePage, width: int, glyphs: Glyphs, most: int | None = None) -> list[Line]:
    """The host's time for input by part: what makes the input at the left, what hands it over at the right.

    Args:
        most: so many of the largest parts; `None` for all, empty ones too.
    """
    making, feeding = _making(page), _feeding(page)
    left = width // 2 if feeding else width
    blocks = [_bars("making input", making, left, glyphs, most)]
    if not making:
        why = page.unknown.get("breakdown_us", "")
        blocks = [[*blocks[0], *wrap(f"unknown: {why}", left - 1, "dim", glyphs, [(" ", "dim")])]]
        blocks = [[fit(line, left, glyphs) for line in blocks[0]]]
    if feeding:
        blocks.append(_bars("feeding the device", feeding, width - left, glyphs, most))
    return beside(blocks, [left, width - left][: len(blocks)])


def _bars(title: str, bars: Sequence[_Bar], width: int, glyphs: Glyphs, most: int | None) -> list[Line]:
    ascii_only = glyphs.name == "ascii"
    total = sum(bar.size for bar in bars)
    largest = sorted(bars, key=lambda bar: -bar.size)[:most]
    shown = [bar for bar in bars if most is None or (bar in largest and bar.size > 0)]
    room = max(1, min(40, width - 34))
    whole = f"  {duration(total, ascii_only)}" if bars else ""
    lines = [fit([(f" {title}", "dim"), (whole, "text")], width, glyphs)]
    for bar in shown:
        share = bar.size / total if total else 0.0
        filled, empty = small_bar(share, room, glyphs)
        figures = f" {duration(bar.size, ascii_only):>8} {percent(100 * share) if bar.size else '':>6}"
        spans: list[Span] = [(f" {bar.label:<12}", "text"), (filled, bar.key), (empty, "rule"), (figures, "text")]
        lines.append(fit(spans, width, glyphs))
    return lines


# --- the ops -------------------------------------------------------------------------------------------------------


def op_rows(page: InputPipelinePage, width: int, glyphs: Glyphs, cursor: int | None, most: int | None) -> list[Line]:
    """A heading and a row an op, each below the stage that it feeds.

    Where fewer rows are wanted than there are ops, they are the first ones, or those up to the cursor.
    """
    wide = width >= WIDE
    heading = f"{'count':>7} {'total':>8} " + (f"{'total %':>7} " if wide else "") + f"{'self':>8} {'self %':>6}"
    kind = f"{'category':<18} " if wide else f"{'category':<10} "
    room = _name_room(width)
    lines = [fit([(f" {'op':<{room}} {kind}{heading}", "dim")], width, glyphs)]
    shown = len(page.stages) if most is None else min(most, len(page.stages))
    first = max(0, min(cursor or 0, len(page.stages) - 1) - shown + 1)
    for at in range(first, first + shown):
        lines.append(_op_row(page, at, at == cursor, width, glyphs))
    return lines


def _name_room(width: int) -> int:
    return max(8, width - (73 if width >= WIDE else 46))


def _op_row(page: InputPipelinePage, at: int, selected: bool, width: int, glyphs: Glyphs) -> Line:
    stage, ascii_only, wide = page.stages[at], glyphs.name == "ascii", width >= WIDE
    op, room = page.ops[stage.op], _name_room(width)
    indent = "  " * min(stage.depth, _DEEPEST)
    name = cut_middle(clean(stage.label, ascii_only), max(1, room - len(indent)), glyphs)
    category = f"{op.category:<18} " if wide else f"{_SHORT[op.category]:<10} "
    figures = f"{count(op.occurrences):>7} {duration(op.total_ps, ascii_only):>8} "
    figures += f"{percent(op.total_percent):>7} " if wide else ""
    figures += f"{duration(op.self_ps, ascii_only):>8} {percent(op.self_percent):>6}"
    return fit(
        [
            (glyphs.mark if selected else " ", "mark"),
            (f"{indent + name:<{room}} ", "cursor" if selected else "strong"),
            (category, "cursor" if selected else _STYLE[op.category]),
            (figures, "cursor" if selected else "text"),
        ],
        width,
        glyphs,
    )


# --- the whole -----------------------------------------------------------------------------------------------------

_NAMES = {
    "device.step_time_ms": "step time",
    "device.infeed_percent": "waiting for input",
    "breakdown_us": "the host's time by part",
}


def input_notes(page: InputPipelinePage, width: int, glyphs: Glyphs) -> list[Line]:
    """Warnings, how steps were inferred, what the percentages are of, and what is unknown."""
    lines: list[Line] = []
    remarks = [*page.warnings, *([page.step_time.note] if page.step_time is not None and page.step_time.note else [])]
    for remark in remarks:
        lines += wrap(remark, width, "text", glyphs, [(" ! ", "warn")])
    shown = {*(["device.infeed_percent"] if page.steps else []), *(["breakdown_us"] if page.ops else [])}
    reasons: dict[str, list[str]] = {}
    for key, reason in page.unknown.items():
        if key in _NAMES and key not in shown:
            reasons.setdefault(reason, []).append(_NAMES[key])
    for reason, names in reasons.items():
        lines += wrap(f"{', '.join(names)}: {reason}", width, "dim", glyphs, [(" ? ", "dim")])
    if len({op.group for op in page.ops}) > 1:
        words = "percentages of wait, transfer and produce are of these rows' own time, those of the others of theirs"
        lines += wrap(words, width, "dim", glyphs, [("   ", "dim")])
    return lines


def input_pipeline(page: InputPipelinePage, width: int, height: int | None, glyphs: Glyphs = BLOCK) -> list[Line]:
    """The whole page; with a height, its graph and table are made to fit and the notes come below."""
    return list(compose_input(page, width, height, glyphs, InputCursor()).lines)


def compose_input(
    page: InputPipelinePage, width: int, height: int | None, glyphs: Glyphs, cursor: InputCursor
) -> InputFrame:
    """Puts the page together. Notes may lie below the screen's end."""
    tall = height is None or height >= TALL
    lines: list[Line] = input_headline(page, width, glyphs)
    lines += [fit([], width, glyphs)] if tall else []
    bars = host_bars(page, width, glyphs, None if tall else FEW_BARS) if page.ops else []
    crowd = (len(bars) + 3 + min(len(page.ops), LEAST_ROWS) if page.ops else 0) + (LEAST_GRAPH + 3 if page.steps else 0)
    most = None if tall or not page.has_input_events else max(LEAST_VERDICT, (height or 0) - len(lines) - crowd)
    lines += input_verdict(page, width, glyphs, most)
    first_step = first_op = -1
    if page.steps:
        lines.append(_steps_rule(page, width, glyphs))
        first_step = len(lines)
        rest = len(bars) + 3 + min(len(page.ops), LEAST_ROWS + 1) if page.ops else 0
        rows = 8 if height is None else max(LEAST_GRAPH, min(10, height - len(lines) - 2 - rest))
        lines += _steps(page, width, rows, glyphs, cursor.step)
    if page.ops:
        lines += [rule("Host", width, glyphs, "time of its threads, added up"), *bars]
        room = len(page.stages) if height is None else max(LEAST_ROWS, height - len(lines) - 2)
        shown = min(len(page.stages), room)
        lines.append(rule("Input ops", width, glyphs, _ops_title(page, shown)))
        first_op = len(lines) + 1
        lines += op_rows(page, width, glyphs, cursor.op, shown)
    notes = input_notes(page, width, glyphs)
    lines += [rule("Notes, and what this profile cannot tell", width, glyphs), *notes] if notes else []
    return InputFrame(tuple(fit(line, width, glyphs) for line in lines), first_step, first_op)


def _ops_title(page: InputPipelinePage, shown: int) -> str:
    of = f"{shown} of {len(page.ops)}" if shown < len(page.ops) else f"{len(page.ops)}"
    nested = ", each below the one it feeds" if any(stage.depth for stage in page.stages) else ""
    return f"{of} op{'s' * (len(page.ops) != 1)}{nested}"


def _steps_rule(page: InputPipelinePage, width: int, glyphs: Glyphs) -> Line:
    how = {"infeed": "time in infeed ops", "host": "device idle, host waits for input or sends it", None: ""}
    title = f"{len(page.steps)} step{'s' * (len(page.steps) != 1)}"
    words = how[page.source]
    head = "Waiting for input, % of each step"
    right = f"{words}; {title}" if words else title
    return rule(head, width, glyphs, right if len(head) + len(right) + 6 <= width else title)


def _steps(page: InputPipelinePage, width: int, rows: int, glyphs: Glyphs, cursor: int | None) -> list[Line]:
    if page.infeed_percent is None:
        why = page.unknown.get("device.infeed_percent", "")
        return wrap(f"unknown: {why}", width, "dim", glyphs, [(" ", "dim")])
    at = cursor if cursor is not None else page.worst_step
    graph = wait_graph(page.steps, width, rows, glyphs, cursor)
    if at is None:
        return [*graph, fit([(" no step waits for input", "dim")], width, glyphs)]
    return [*graph, wait_detail(page.steps, at, cursor is not None, width, glyphs)]
