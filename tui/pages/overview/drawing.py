"""The overview page in cells: what an engineer needs within a minute, the answer first.

From the top: headline figures, the verdict, why it is slow, device time by class, the steps, the top ops, and what this
profile cannot tell. `compose` fits the page to a screen; the report draws it without a height.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.overview.model import Overview, Share, TopOp
from tpuprof.tui.draw.bars import CLASS_STYLE, ON_CLASS_STYLE, small_bar, whole_cells
from tpuprof.tui.draw.columns import Cursor, Frame
from tpuprof.tui.draw.format import UNKNOWN, count, duration, percent
from tpuprof.tui.draw.layout import LOW, NARROW, TALL, WIDE, clean, cut_middle, fit, note_lines, rows_around, rule
from tpuprof.tui.draw.spans import BLOCK, CLASS_LETTER, Glyphs, Line, Span, line_width
from tpuprof.tui.pages.overview.fields import FIGURES, TOP_OPS, findings_heading
from tpuprof.tui.pages.overview.findings import findings_table
from tpuprof.tui.pages.overview.headline import headline, latency_line, split_lines, verdict
from tpuprof.tui.pages.overview.steps import parts_legend, step_detail, step_graph
from tpuprof.tui.report.fields import row_words, short_names


def class_bar(page: Overview, width: int, glyphs: Glyphs, compact: bool = False) -> list[Line]:
    """The cores' time by class of op: one bar with the classes' names on it, and a legend that gives every share.

    Args:
        compact: the legend names classes by letter, so that one line is enough.
    """
    if not page.shares:
        reason = page.unknown.get("performance.device_duty_cycle_percent", "no device ops")
        return [fit([(f" {UNKNOWN}: {clean(reason, glyphs.is_ascii)}", "dim")], width, glyphs)]
    bar: list[Span] = [(" ", "text")]
    sizes = whole_cells([share.fraction for share in page.shares], width - 2)
    for share, cells in zip(page.shares, sizes, strict=True):
        kind, letter = share.op_class, CLASS_LETTER[share.op_class]
        label = f" {kind} {percent(share.fraction * 100, 0)} "
        if glyphs.letters:
            bar.append((f"{label if len(label) + 2 <= cells else '':{letter}^{cells}}", CLASS_STYLE[kind]))
        else:
            short = f" {letter}" if cells >= 3 else ""
            bar.append((f"{label if len(label) <= cells else short:<{cells}}", ON_CLASS_STYLE[kind]))
    return [fit(bar, width, glyphs), *_legend(page.shares, width, glyphs, compact)]


def _legend(shares: Sequence[Share], width: int, glyphs: Glyphs, compact: bool) -> list[Line]:
    lines: list[Line] = []
    line: list[Span] = []
    for share in shares:
        letter = CLASS_LETTER[share.op_class]
        sign = letter if glyphs.letters else f"{glyphs.full}{letter}"
        entry: list[Span] = [(sign, CLASS_STYLE[share.op_class]), (" " if compact else f" {share.op_class} ", "dim")]
        entry.append((percent(share.fraction * 100), "text"))
        if line and 3 + line_width(tuple(line)) + line_width(tuple(entry)) > width:
            lines.append(fit([(" ", "text"), *line], width, glyphs))
            line = []
        line += [("  ", "text"), *entry] if line else entry
    return [*lines, fit([(" ", "text"), *line], width, glyphs)]


def top_ops_table(
    top_ops: Sequence[TopOp], width: int, glyphs: Glyphs, cursor: int | None = None, most: int | None = None
) -> list[Line]:
    """A heading and a row an op: class, share of op time with a bar, self time, count, rate, name.

    Where fewer rows are wanted than there are ops, they are the first ones, or those up to the cursor.
    """
    if not top_ops:
        return [fit([(" no ops", "dim")], width, glyphs)]
    columns = _op_columns(width)
    heading = " ".join(f"{title:>{cells}}" for title, cells in columns.values())
    heading += f"  {'category':<20}" if width >= WIDE else ""
    lines = [fit([(f"   {'':<8}{heading}  op", "dim")], width, glyphs)]
    largest = max(op.self_time_percent for op in top_ops) or 1.0
    prefix = shared_prefix([op.name for op in top_ops])
    for row in rows_around(cursor, len(top_ops), most):
        words = row_words(TOP_OPS, tuple(columns), top_ops, row, glyphs.is_ascii)
        figures = " ".join(f"{text:>{cells}}" for text, (_, cells) in zip(words, columns.values(), strict=True))
        name = top_ops[row].name.removeprefix(prefix)
        lines.append(_op_row(top_ops[row], figures, name, largest, row == cursor, width, glyphs))
    return lines


def _op_columns(width: int) -> dict[str, tuple[str, int]]:
    """Title and cells of the figures that a screen of this width shows, by key."""
    columns = {"self_time_percent": ("self %", 6)}
    columns |= {"cumulative_percent": ("cumul.", 7)} if width >= WIDE else {}
    columns |= {"self_time_ps": ("self time", 9)}
    return columns | ({"occurrences": ("count", 7), "gflops_per_second": ("FLOP/s", 6)} if width >= NARROW else {})


def shared_prefix(names: Sequence[str]) -> str:
    """What the framework names among these all begin with, whole parts only: ``jit(train_step)/``."""
    folders = [name.rpartition("/")[0] for name in names if "/" in name]
    if len(folders) < 2:
        return ""
    shared = takewhile(lambda column: len(set(column)) == 1, zip(*(name.split("/") for name in folders), strict=False))
    return "".join(f"{column[0]}/" for column in shared)


def _op_row(op: TopOp, figures: str, name: str, largest: float, selected: bool, width: int, glyphs: Glyphs) -> Line:
    filled, _ = small_bar(op.self_time_percent / largest, 7, glyphs)
    figures += "  "
    if width >= WIDE:
        category = clean(op.hlo_category or "unknown", glyphs.is_ascii)
        figures += f"{cut_middle(category, 20, glyphs):<20}  "
    room = max(1, width - 11 - len(figures))
    name = cut_middle(clean(name, glyphs.is_ascii), room, glyphs)
    style = CLASS_STYLE[op.op_class]
    spans: list[Span] = [(glyphs.mark if selected else " ", "mark"), (CLASS_LETTER[op.op_class], style), (" ", "text")]
    spans += [(f"{filled:<8}", style), (figures, "cursor" if selected else "text")]
    return fit([*spans, (f"{name:<{room}}", "cursor" if selected else "strong")], width, glyphs)


def environment(page: Overview, ascii_only: bool) -> str:
    """The machine and the capture in one phrase."""
    env = page.environment
    parts = [clean(env.device_type or ("device unknown" if env.device_core_count else "no device"), ascii_only)]
    if env.device_core_count:
        parts.append(counted(env.device_core_count, "GPU" if "GPU" in (env.device_type or "") else "core"))
    parts.append(f"{env.host_count} host{'s' * (env.host_count != 1)}")
    if env.is_training is not None:
        parts.append("training" if env.is_training else "inference")
    if env.profile_duration_ps is not None:
        parts.append(f"{duration(env.profile_duration_ps, ascii_only)} captured")
    return ", ".join(parts)


def notes(page: Overview, width: int, glyphs: Glyphs) -> list[Line]:
    """Warnings, how steps were inferred, and the unknown figures, grouped by reason."""
    time, names = page.performance.step_time, short_names(FIGURES)
    remarks = [*page.warnings, *([time.note] if time is not None and time.note else [])]
    return note_lines(remarks, ((names.get(key, key), why) for key, why in page.unknown.items()), width, glyphs)


def overview(page: Overview, width: int, height: int | None, glyphs: Glyphs = BLOCK) -> list[Line]:
    """The whole page; with a height, its graph and table are made to fit and the notes come below."""
    return list(compose(page, width, height, glyphs, Cursor()).lines)


def compose(
    page: Overview, width: int, height: int | None, glyphs: Glyphs, cursor: Cursor, with_steps: bool | None = None
) -> Frame:
    """Puts the page together. Notes may lie below the screen's end; everything else fits from 80x20 on.

    Args:
        with_steps: whether the graph is that of the steps, or latencies; None leaves it to what the program does.
    """
    with_steps = not page.serves if with_steps is None else with_steps
    tall = height is None or height >= TALL
    lines: list[Line] = headline(page, width, glyphs)
    if tall:
        lines += [*split_lines(page, width, glyphs), fit([], width, glyphs)]
    # on a low screen the findings stand for the advice, of which they are the better half
    most = None if height is None or height >= TALL else 2 if page.findings else 4 if height > LOW else 3
    lines += verdict(page, width, glyphs, most, tall or not page.findings)
    lines += latency_line(page, width, glyphs) if with_steps else []
    lines += _why_slow(page, width, height, glyphs, cursor)
    lines.append(_device_rule(page, width, glyphs))
    crowded = height is not None and height <= LOW and bool(page.findings)
    lines += class_bar(page, width, glyphs, crowded)
    first_step = last_step = -1
    rows = 8 if height is None else max(2 if crowded else 3, min(10, height - len(lines) - len(page.top_ops) - 5))
    if not with_steps:
        lines += _latencies(page, width, rows + 2, glyphs)
    elif page.steps:
        lines.append(_steps_rule(page, width, glyphs))
        first_step = len(lines)
        lines += step_graph(page.steps, width, rows, glyphs, cursor.step)
        lines.append(step_detail(page.steps, cursor.step, width, glyphs))
        last_step = len(lines) - 1
    first_op = -1
    if page.top_ops:
        room = len(page.top_ops) if height is None else max(1 if crowded else 2, height - len(lines) - 2)
        shown = min(len(page.top_ops), room)
        lines.append(rule("Top ops", width, glyphs, _ops_title(page, shown, width, glyphs)))
        first_op = len(lines) + 1
        lines += top_ops_table(page.top_ops, width, glyphs, cursor.op, shown)
    remarks = notes(page, width, glyphs)
    if remarks:
        lines.append(rule("Notes, and what this profile cannot tell", width, glyphs))
        lines += remarks
    return Frame(tuple(fit(line, width, glyphs) for line in lines), first_step, last_step, first_op)


def _ops_title(page: Overview, shown: int, width: int, glyphs: Glyphs) -> str:
    """How many ops there are and are shown, and what their names begin with."""
    title = f"{count(page.op_count)} HLO ops, {count(page.op_event_count)} events"
    if shown < len(page.top_ops):
        title = f"{shown} of the top {len(page.top_ops)}; {title}"
    prefix = clean(shared_prefix([op.name for op in page.top_ops]), glyphs.is_ascii)
    with_prefix = f"names in {prefix}; {title}"
    return with_prefix if prefix and len(with_prefix) + 16 < width else title


def _why_slow(page: Overview, width: int, height: int | None, glyphs: Glyphs, cursor: Cursor) -> list[Line]:
    """The findings, as many as there is room for; a report gives the evidence too."""
    if not page.findings:
        return []
    most = None if height is None or height >= TALL else 3 if height <= LOW else 4
    shown = len(page.findings) if most is None else min(most, len(page.findings))
    more = f"{shown} of {len(page.findings)}, " if shown < len(page.findings) else ""
    title = rule("Why is it slow?", width, glyphs, more + findings_heading(page.findings))
    return [title, *findings_table(page, width, glyphs, cursor.finding, most, with_evidence=height is None)]


def _latencies(page: Overview, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Latency at percentiles, taken apart, and where there is room for it a histogram; so many lines and a heading."""
    from tpuprof.tui.pages.overview.inference import drawing  # noqa: PLC0415 - for programs that serve

    if page.inference is None:
        return []
    whole = len(page.inference.percentiles) + 2
    lines = drawing.session_latencies(
        page.inference, width, min(height, whole) - 1, glyphs, drawing.session_words(page.inference, glyphs)
    )
    room = height - whole - 2
    return lines + (drawing.histogram(page.inference, width, room, glyphs) if room >= _LEAST_HISTOGRAM else [])


_LEAST_HISTOGRAM = 2


def _device_rule(page: Overview, width: int, glyphs: Glyphs) -> Line:
    """The heading of the device section, with the machine and, where the times are simulated, a badge."""
    badge: list[Span] = [(" SIMULATED ", "badge")] if page.environment.simulated else []
    room = width - line_width(tuple(badge))
    phrase = environment(page, glyphs.is_ascii)
    if len(phrase) + 20 > room:
        phrase = phrase.removesuffix(" captured")
    on_host = page.shares and not page.environment.device_core_count
    return (*rule("Time on the host's CPU" if on_host else "Device time", room, glyphs, phrase), *badge)


def _steps_rule(page: Overview, width: int, glyphs: Glyphs) -> Line:
    """The heading of the step graph, with the legend of its colours."""
    time = page.performance.step_time
    kind = "step" if time is None or time.source == "steps" else "module period"
    title = f"{len(page.steps)} {kind}{'s' * (len(page.steps) != 1)}"
    legend = parts_legend(page.steps, glyphs)
    return (*rule("Steps", width - line_width(legend), glyphs, title), *legend)
