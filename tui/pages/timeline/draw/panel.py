"""The pane below the timeline: the facts of the event under the cursor and of the marked interval, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from tpuprof.parsers.base.op_class import OP_CLASSES, OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.ops.device import HOLDS_OPS
from tpuprof.parsers.timeline.details import adjacent_event, op_facts, self_time
from tpuprof.parsers.timeline.hosts.joined import clock_words
from tpuprof.parsers.timeline.model import HostPart, RateTrack, Timeline, Track
from tpuprof.parsers.timeline.read.classes import is_split
from tpuprof.parsers.timeline.read.flows import Flow
from tpuprof.parsers.timeline.windows import counter_window, mean_rate, mean_value
from tpuprof.tui.draw.format import UNKNOWN, byte_rate, count, duration, percent, with_unit
from tpuprof.tui.draw.pen import Pen, cut_middle, filled
from tpuprof.tui.draw.spans import CLASS_LETTER, CLASS_STYLE, Line, Span, StyleKey, line_width
from tpuprof.tui.pages.timeline.draw.cells import fill_of
from tpuprof.tui.pages.timeline.state import TimelineView

_CLASS_WORDS: dict[OpClass, str] = {"idle": "waiting"}
_SEEN = 1000  # characters of a text that are looked at
_COARSE = 10**8  # picoseconds of which a hundredth, a microsecond, is always shown
_DIGITS = 6  # significant digits of a measured time


@dataclass(frozen=True, slots=True)
class EventFacts:
    """What there is to say of an event; None for what is not known or does not apply.

    Attributes:
        where: its track, and what else says where it is.
        op_class, category: its class, None for a step or a module; and its HLO category.
        start_ps: from the base; base: what that is, such as ``step 7``.
        duration_ps, self_ps: of the event, and without what is nested in it.
        step, step_fraction: the step it is in, and what part of that it lasts, 0-1.
        occurrences: of its name on the track.
        is_op: it runs on a device, so that one expects to read how fast: rates that are None show as ``n/a``.
        flops, hbm_bytes: a second, by the compiler's count, and the share of the peak that this is, 0-1.
        framework_op, source: what it was made from.
        arrows: what leads to it or from it, in words.
    """

    name: str
    where: str = ""
    op_class: OpClass | None = None
    category: str | None = None
    start_ps: int | None = None
    base: str = "trace"
    duration_ps: int | None = None
    self_ps: int | None = None
    step: str | None = None
    step_fraction: float | None = None
    occurrences: int | None = None
    is_op: bool = False
    flops: tuple[float | None, float | None] = (None, None)
    hbm_bytes: tuple[float | None, float | None] = (None, None)
    framework_op: str | None = None
    source: str | None = None
    arrows: tuple[str, ...] = ()


def panel_lines(
    facts: EventFacts | None, pen: Pen, height: int, marks: Sequence[int] = (), base: str = "trace", hint: str = ""
) -> list[Line]:
    """The pane, in exactly so many lines.

    First the name and where it is, then times, rates and provenance; in a line that is left the colours. With few lines
    what comes last gives way, but a marked interval always has its line, the last one.

    Args:
        marks: none, one, or the two ends of an interval, in picoseconds from the base.
        base: what zero is, for the marks.
        hint: said where there is no event.
    """
    tail = [_mark_line(marks, base, pen)] if marks else []
    room = max(0, height - len(tail))
    if facts is None:
        words = pen.wrap(_seen(hint, pen), "dim", [(" ", "text")], indent=1)
        lines = pen.cut_after(words, max(1, room))
    else:
        origin = _texts(((facts.framework_op, "text"), (facts.source, "dim")), pen)
        arrows = _texts([(text, "text") for text in facts.arrows], pen)
        groups = [_times(facts, pen), _rates(facts), origin, arrows]
        lines = [_title(facts, pen), *_laid_out(groups, pen, room - 1)]
    if len(lines) < room:
        lines = [*filled(lines, pen.width, room - 1), _legend(pen)]
    return [*filled(lines, pen.width, room), *tail][:height]


def _legend(pen: Pen) -> Line:
    spans: list[Span] = []
    for op_class in OP_CLASSES:
        sign = CLASS_LETTER[op_class] if pen.glyphs.letters else pen.glyphs.full
        entry: list[Span] = [(f" {sign}", CLASS_STYLE[op_class]), (f" {_CLASS_WORDS.get(op_class, op_class)} ", "dim")]
        spans += entry if line_width([*spans, *entry]) <= pen.width else []
    return pen.fit(spans)


def _seen(text: str, pen: Pen, most: int = _SEEN) -> str:
    """A text of the profile, as much of it as is looked at, fit for cells."""
    return pen.text(text[:most])


Entry = list[Span]


def _title(facts: EventFacts, pen: Pen) -> Line:
    head: Entry = [(" ", "text")]
    if facts.op_class is not None:
        head += [(CLASS_LETTER[facts.op_class], CLASS_STYLE[facts.op_class]), (" ", "text")]
    tail = _seen("  ".join(part for part in (facts.op_class, facts.category, facts.where) if part), pen)
    name = _seen(facts.name, pen)
    room = pen.width - line_width(head)
    kept = len(tail) + 2 if tail and len(tail) + 2 <= room - min(len(name), room * 2 // 3) else 0
    label: Span = (cut_middle(name, room - kept, pen.glyphs), "strong")
    return pen.fit([*head, label, (f"  {tail}" if kept else "", "dim")])


def _times(facts: EventFacts, pen: Pen) -> list[Entry]:
    ascii_only = pen.glyphs.is_ascii
    out: list[Entry] = []
    if facts.duration_ps is not None:
        out.append([("takes ", "dim"), (duration(facts.duration_ps, ascii_only, 4), "strong")])
        if facts.self_ps is not None and facts.self_ps != facts.duration_ps:
            own = f" ({percent(100 * facts.self_ps / facts.duration_ps)})" if facts.duration_ps > 0 else ""
            out.append([("self ", "dim"), (duration(facts.self_ps, ascii_only, 4), "text"), (own, "dim")])
    if facts.start_ps is not None:
        start = instant(facts.start_ps, facts.duration_ps or 1, ascii_only)
        out.append([("at ", "dim"), (start, "text"), (f" of {_seen(facts.base, pen, 40)}", "dim")])
    if facts.step is not None and facts.step_fraction is not None:
        is_base = facts.start_ps is not None and facts.base == f"step {facts.step}"
        whole = "the step" if is_base else f"step {_seen(facts.step, pen, 40)}"
        out.append([(percent(100 * facts.step_fraction), "text"), (f" of {whole}", "dim")])
    if facts.occurrences is not None and facts.occurrences > 1:
        out.append([(f"{pen.glyphs.times}{count(facts.occurrences)}", "text")])
    return out


def _rates(facts: EventFacts) -> list[Entry]:
    rates = (facts.flops, "FLOP/s"), (facts.hbm_bytes, "B/s HBM")
    if not facts.is_op and all(per_second is None for (per_second, _), _ in rates):
        return []
    out: list[Entry] = []
    for (per_second, fraction), unit in rates:
        text = byte_rate(per_second)  # FLOPs have the same prefixes
        known = text not in (UNKNOWN, "-")
        figure, prefix = (text[:-1], text[-1]) if known else (text, "")
        entry: Entry = [(f"{figure} ", "text"), (f"{prefix}{unit}", "dim")]
        if fraction is not None and known:
            entry += [(f" {percent(100 * fraction)}", "warn" if fraction > 1.005 else "text"), (" of peak", "dim")]
        out.append(entry)
    return out


def _texts(texts: Sequence[tuple[str | None, StyleKey]], pen: Pen) -> list[Entry]:
    return [[(_seen(text, pen), key)] for text, key in texts if text]


def _laid_out(groups: Sequence[Sequence[Entry]], pen: Pen, height: int) -> list[Line]:
    """Entries line by line: each group begins its own where there is room for that, else they follow on."""
    apart = [line for group in groups for line in _wrapped(group, pen.width)]
    chosen = apart if len(apart) <= height else _wrapped([entry for group in groups for entry in group], pen.width)
    return [_entries(line, pen) for line in chosen[: max(0, height)]]


def _wrapped(entries: Sequence[Entry], width: int) -> list[list[Entry]]:
    """As many entries a line as fit, at least one."""
    lines: list[list[Entry]] = []
    used = width
    for entry in entries:
        cells = line_width(entry)
        if used + 3 + cells > width:
            lines.append([])
            used = 1 - 3
        lines[-1].append(entry)
        used += 3 + cells
    return lines


def _entries(entries: Sequence[Entry], pen: Pen) -> Line:
    """Entries side by side; the last one is cut where it does not fit, a lone text in the middle."""
    line: list[Span] = [(" ", "text")]
    for number, entry in enumerate(entries):
        room = pen.width - line_width(line) - (3 if number else 0)
        if room <= 0:
            break
        if number:
            line.append(("   ", "text"))
        if line_width(entry) <= room:
            line += entry
        elif len(entry) == 1:
            line.append((cut_middle(entry[0][0], room, pen.glyphs), entry[0][1]))
        else:
            line += pen.at(room).fit(entry)
    return pen.fit(line)


def instant(ps: int, precise_ps: int, ascii_only: bool = False) -> str:
    """An instant after the base, ``12.3457 s``, ``-4.20 µs`` or ``0``, precise to a hundredth of some duration.

    Of one of less than a nanosecond, to that of a nanosecond: no clock is better. But always to a microsecond.
    """
    digits = len(str(abs(ps))) - len(str(max(1000, min(precise_ps, _COARSE)))) + 3
    return duration(ps, ascii_only, max(3, min(digits, 15)))


def _mark_line(marks: Sequence[int], base: str, pen: Pen) -> Line:
    """``m…m  123 µs  from 1.00 ms to 1.12 ms of step 7``."""
    ascii_only = pen.glyphs.is_ascii
    of: Span = (f" of {_seen(base, pen, 40)}", "dim")
    begin, end = min(marks), max(marks)
    if len(marks) == 1:
        again = "   press space again for the other end"
        return pen.fit([(" m ", "mark"), (duration(begin, ascii_only, _DIGITS), "text"), of, (again, "dim")])
    first, last = (instant(ps, end - begin, ascii_only) for ps in (begin, end))
    lasting: Entry = [(f" m{pen.glyphs.ellipsis}m ", "mark"), (duration(end - begin, ascii_only, _DIGITS), "strong")]
    line = [*lasting, ("   from ", "dim"), (first, "text"), (" to ", "dim"), (last, "text"), of]
    keys: Span = ("   ( ) move ends", "dim")
    return pen.fit([*line, keys] if line_width([*line, keys]) <= pen.width else line)


_MOST_ARROWS = 4


def facts_of(view: TimelineView) -> EventFacts | None:
    """The selected event; None where there is none."""
    if view.selected is None or view.event is None:
        return None
    track, index = view.selected
    section = view.timeline.sections[view.event[0]]
    start, end = int(track.start_ps[index]), int(track.end_ps[index])
    number = view.timeline.step_at(start)
    step = None if number is None else view.timeline.steps[number]
    op = op_facts(track, index)
    # what contains others, or starts or awaits one, does not do itself what is counted for it
    works = op.category is not None and op.category not in HOLDS_OPS and not is_split(op.category)
    rates: list[tuple[float | None, float | None]] = []
    for amount, name in ((op.flops, "FLOPS"), (op.hbm_bytes, "HBM")):
        per_second = amount / ((end - start) / 1e12) if works and amount is not None and end > start else None
        peak = next((rate.peak for rate in section.rates if rate.name == name and rate.ops is track), None)
        rates.append((per_second, per_second / peak if per_second is not None and peak is not None else None))
    return EventFacts(
        name=track.label(index),
        where=f"{section.label}, {track.name}",
        op_class=None if fill_of(track.kind) else track.event_class(index),
        category=op.category,
        start_ps=start - view.base_ps,
        base=base_name(view),
        duration_ps=end - start,
        self_ps=self_time(track, index) if track.depth > 1 else end - start,
        step=None if step is None else "~" * view.timeline.steps_are_inferred + step.name,
        step_fraction=None
        if step is None or track.kind == "steps"
        else (end - start) / max(1, step.end_ps - step.start_ps),
        occurrences=int(track.counts[int(track.key[index])]),
        is_op=track.kind == "ops" and works,
        flops=rates[0],
        hbm_bytes=rates[1],
        framework_op=op.framework_op,
        source=op.source,
        arrows=tuple(_arrow_words(view.timeline, flow, start) for flow in view.flows_here()[:_MOST_ARROWS]),
    )


def _arrow_words(timeline: Timeline, flow: Flow, start_ps: int) -> str:
    """``> launch jit_f, 46.1 µs later`` for an arrow from the event, ``<`` for one that leads to it."""
    track = timeline.track((flow.section, flow.track))
    apart = int(track.start_ps[flow.event]) - start_ps
    when = f"{duration(abs(apart))} {'later' if apart >= 0 else 'earlier'}"
    return f"{'>' if flow.direction == 'out' else '<'} {flow.kind} {track.label(flow.event)[:60]}, {when}"


def base_name(view: TimelineView) -> str:
    """What times are relative to, in words."""
    if view.base == "step" and view.step is not None:
        return f"step {view.timeline.steps[view.step].name}"
    return "the mark" if view.base == "mark" and view.marks else "the profile"


def hint_of(view: TimelineView) -> str:
    """What there is to do at an empty place."""
    row = view.rows.current
    if row is None:
        return "no track has that name; Esc shows all tracks"
    if row.kind == "host":
        return _host_words(view.timeline.hosts[row.section])
    if row.kind == "section":
        return "Enter or z opens and closes the section, j goes to its tracks"
    section = view.timeline.sections[row.section]
    if row.kind == "rate":
        return _rate_words(view, section.rates[row.item])
    if row.kind == "counter":
        counter = section.counters[row.item]
        value = float(counter_window(counter, view.cursor_edges)[0])
        known = UNKNOWN if isnan(value) else f"{value:,.6g} {counter.unit}".rstrip()
        mean = mean_value(counter, *view.window.on_trace)
        average = UNKNOWN if mean is None else f"{mean:,.6g} {counter.unit}".rstrip()
        return f"{section.title}, {counter.name}: {known} at the cursor, at most in its cell; {average} over the window"
    track = section.tracks[row.item]
    words = (row.kind == "lane" and _gap_words(track, row.lane, view.cursor_ps)) or (
        "no event here; . goes to the next one, , to the previous one, } to the next long gap"
    )
    return f"{section.title}, {track.name}: {words}"


def _host_words(part: HostPart) -> str:
    if part.problem:
        return part.problem
    known = "not read yet" if part.clock is None else f"clock {clock_words(part.clock)}"
    known = "times are by its clock" if part.clock is not None and part.clock.source == "axis" else known
    return f"{part.host}: {known}. Enter or z opens and closes it, J goes to the next host"


def _gap_words(track: Track, lane: int, instant_ps: int) -> str:
    """How long nothing runs around an instant in a lane, and between what; nothing where that is not in a gap."""
    before = adjacent_event(track, lane, (instant_ps + 1, 0), -1)[1]
    after = adjacent_event(track, lane, (instant_ps, track.depth), 1)[1]
    if before is None or after is None or not track.end_ps[before] <= instant_ps < track.start_ps[after]:
        return ""
    lasting = int(track.start_ps[after]) - int(track.end_ps[before])
    return f"nothing for {duration(lasting)}, from {track.label(before)[:80]} to {track.label(after)[:80]}"


def _rate_words(view: TimelineView, rate: RateTrack) -> str:
    """A rate in the cursor's cell, and what share of the peak that is."""
    per_second = mean_rate(rate, *view.cursor_edges.tolist())
    unit = "FLOP/s" if rate.name == "FLOPS" else "B/s"
    words = f"{rate.name} in the cursor's cell: {with_unit(byte_rate(per_second), unit)}"
    average = mean_rate(rate, *view.window.on_trace)
    if rate.peak is None:
        return f"{words}, {with_unit(byte_rate(average), unit)} over the window; the profile gives no peak"
    here, over = (percent(100 * value / rate.peak) for value in (per_second, average))
    return f"{words}, {here} of peak; {over} over the window"
