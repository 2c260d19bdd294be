"""The pane below the timeline: the facts of the event under the cursor and of the marked interval, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.ops.device import HOLDS_OPS
from tpuprof.parsers.timeline.details import OpFacts, op_facts, self_time
from tpuprof.parsers.timeline.model import RateTrack, Section, Track
from tpuprof.parsers.timeline.pick import event_beside
from tpuprof.parsers.timeline.read.classes import is_split
from tpuprof.parsers.timeline.windows import mean_rate
from tpuprof.tui.draw.bars import CLASS_STYLE
from tpuprof.tui.draw.format import UNKNOWN, byte_rate, count, duration, flop_rate, percent
from tpuprof.tui.draw.layout import clean, cut_middle, fit
from tpuprof.tui.draw.spans import CLASS_LETTER, Glyphs, Line, Span, line_width
from tpuprof.tui.pages.timeline.draw.cells import fill_of
from tpuprof.tui.pages.timeline.draw.graphs import counter_values
from tpuprof.tui.pages.timeline.rows import Row
from tpuprof.tui.pages.timeline.state import TimelineView

_SEEN = 1000
"""Characters of a text that are looked at."""

_COARSE = 10**8
"""Picoseconds of which a hundredth, a microsecond, is always shown."""

_DIGITS = 6
"""Significant digits of a measured time."""


@dataclass(frozen=True, slots=True)
class EventFacts:
    """What there is to say of an event; None for what is not known or does not apply.

    Attributes:
        name: of the event.
        where: its track, and what else says where it is.
        op_class: its class; None for a step or a module.
        category: HLO category.
        start_ps: from the base; base: what that is, such as ``step 7``.
        duration_ps, self_ps: of the event, and without what is nested in it.
        step, step_fraction: the step it is in, and what part of that it lasts, 0-1.
        occurrences: of its name on the track.
        is_op: it runs on a device, so that one expects to read how fast: rates that are None show as ``n/a``.
        flops_per_second, bytes_per_second: by the compiler's count; bytes of HBM.
        flops_fraction, bytes_fraction: of the peak, 0-1.
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
    flops_per_second: float | None = None
    flops_fraction: float | None = None
    bytes_per_second: float | None = None
    bytes_fraction: float | None = None
    framework_op: str | None = None
    source: str | None = None
    arrows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MarkFacts:
    """A mark, or the interval between two.

    Attributes:
        start_ps: of the first, from the base.
        end_ps: of the second; None while there is one only.
        base: what zero is.
    """

    start_ps: int
    end_ps: int | None = None
    base: str = "trace"


def panel_lines(
    facts: EventFacts | None, width: int, height: int, glyphs: Glyphs, marks: MarkFacts | None = None, hint: str = ""
) -> list[Line]:
    """The pane, in exactly so many lines.

    First the name and where it is, then times, rates and provenance. With few lines what comes last gives way, but a
    marked interval always has its line, the last one.

    Args:
        hint: said where there is no event.
    """
    lines: list[Line] = []
    if facts is None:
        lines.append(fit([(f" {clean(hint[:_SEEN], glyphs.is_ascii)}", "dim")], width, glyphs))
    else:
        lines.append(_title(facts, width, glyphs))
        groups = [_times(facts, glyphs), _rates(facts), _origin(facts, glyphs), _arrows(facts, glyphs)]
        room = height - 1 - (marks is not None)
        lines += _laid_out(groups, width, room, glyphs)
    tail = [] if marks is None else [_mark_line(marks, width, glyphs)]
    lines = lines[: max(0, height - len(tail))]
    lines += [fit([], width, glyphs)] * (height - len(lines) - len(tail))
    return (lines + tail)[:height]


Entry = list[Span]


def _title(facts: EventFacts, width: int, glyphs: Glyphs) -> Line:
    """Class, name and track."""
    ascii_only = glyphs.is_ascii
    head: Entry = [(" ", "text")]
    if facts.op_class is not None:
        head += [(CLASS_LETTER[facts.op_class], CLASS_STYLE[facts.op_class]), (" ", "text")]
    tail = "  ".join(part for part in (facts.op_class, facts.category, facts.where) if part)
    tail = clean(tail[:_SEEN], ascii_only)
    name = clean(facts.name[:_SEEN], ascii_only)
    room = width - line_width(tuple(head))
    kept = len(tail) + 2 if tail and len(tail) + 2 <= room - min(len(name), room * 2 // 3) else 0
    return fit(
        [*head, (cut_middle(name, room - kept, glyphs), "strong"), (f"  {tail}" if kept else "", "dim")], width, glyphs
    )


def _times(facts: EventFacts, glyphs: Glyphs) -> list[Entry]:
    ascii_only = glyphs.is_ascii
    out: list[Entry] = []
    if facts.duration_ps is not None:
        out.append([("takes ", "dim"), (duration(facts.duration_ps, ascii_only, 4), "strong")])
        if facts.self_ps is not None and facts.self_ps != facts.duration_ps:
            own = f" ({percent(100 * facts.self_ps / facts.duration_ps)})" if facts.duration_ps > 0 else ""
            out.append([("self ", "dim"), (duration(facts.self_ps, ascii_only, 4), "text"), (own, "dim")])
    if facts.start_ps is not None:
        base = clean(facts.base[:40], ascii_only)
        out.append(
            [
                ("at ", "dim"),
                (instant(facts.start_ps, facts.duration_ps or 1, ascii_only), "text"),
                (f" of {base}", "dim"),
            ]
        )
    if facts.step is not None and facts.step_fraction is not None:
        step = f"step {clean(facts.step[:40], ascii_only)}"
        whole = "the step" if facts.start_ps is not None and facts.base == f"step {facts.step}" else step
        out.append([(percent(100 * facts.step_fraction), "text"), (f" of {whole}", "dim")])
    if facts.occurrences is not None and facts.occurrences > 1:
        out.append([(f"{glyphs.times}{count(facts.occurrences)}", "text")])
    return out


def _rates(facts: EventFacts) -> list[Entry]:
    if not facts.is_op and facts.flops_per_second is None and facts.bytes_per_second is None:
        return []
    flops = None if facts.flops_per_second is None else facts.flops_per_second / 1e9
    rows = (
        (flop_rate(flops), "FLOP/s", facts.flops_fraction),
        (byte_rate(facts.bytes_per_second), "B/s HBM", facts.bytes_fraction),
    )
    out: list[Entry] = []
    for text, unit, fraction in rows:
        known = text not in (UNKNOWN, "-")
        entry: Entry = [(text if known else f"{text} ", "text"), (unit, "dim")]
        if fraction is not None and known:
            entry += [(f" {percent(100 * fraction)}", "warn" if fraction > 1.005 else "text"), (" of peak", "dim")]
        out.append(entry)
    return out


def _origin(facts: EventFacts, glyphs: Glyphs) -> list[Entry]:
    ascii_only = glyphs.is_ascii
    texts = ((facts.framework_op, "text"), (facts.source, "dim"))
    return [[(clean(text[:_SEEN], ascii_only), "text" if key == "text" else "dim")] for text, key in texts if text]


def _arrows(facts: EventFacts, glyphs: Glyphs) -> list[Entry]:
    return [[(clean(text[:_SEEN], glyphs.is_ascii), "text")] for text in facts.arrows]


def _laid_out(groups: Sequence[Sequence[Entry]], width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Entries line by line: each group begins its own where there is room for that, else they follow on."""
    apart = [line for group in groups for line in _wrapped(group, width)]
    chosen = apart if len(apart) <= height else _wrapped([entry for group in groups for entry in group], width)
    return [_entries(line, width, glyphs) for line in chosen[: max(0, height)]]


def _wrapped(entries: Sequence[Entry], width: int) -> list[list[Entry]]:
    """As many entries a line as fit, at least one."""
    lines: list[list[Entry]] = []
    used = width
    for entry in entries:
        cells = line_width(tuple(entry))
        if used + 3 + cells > width:
            lines.append([])
            used = 1 - 3
        lines[-1].append(entry)
        used += 3 + cells
    return lines


def _entries(entries: Sequence[Entry], width: int, glyphs: Glyphs) -> Line:
    """Entries side by side; the last one is cut in the middle where it does not fit."""
    line: list[Span] = [(" ", "text")]
    for number, entry in enumerate(entries):
        room = width - line_width(tuple(line)) - (3 if number else 0)
        if room <= 0:
            break
        if number:
            line.append(("   ", "text"))
        line += entry if line_width(tuple(entry)) <= room else _shortened(entry, room, glyphs)
    return fit(line, width, glyphs)


def _shortened(entry: Entry, room: int, glyphs: Glyphs) -> Sequence[Span]:
    """An entry cut: a lone text in the middle."""
    if len(entry) == 1:
        return [(cut_middle(entry[0][0], room, glyphs), entry[0][1])]
    return fit(entry, room, glyphs)


def instant(ps: int, precise_ps: int, ascii_only: bool = False) -> str:
    """An instant after the base, ``12.3457 s``, ``-4.20 µs`` or ``0``, precise to a hundredth of some duration.

    Of one of less than a nanosecond, to that of a nanosecond: no clock is better. But always to a microsecond.
    """
    digits = len(str(abs(ps))) - len(str(max(1000, min(precise_ps, _COARSE)))) + 3
    return duration(ps, ascii_only, max(3, min(digits, 15)))


def _mark_line(marks: MarkFacts, width: int, glyphs: Glyphs) -> Line:
    """``m…m  123 µs  from 1.00 ms to 1.12 ms of step 7``."""
    ascii_only = glyphs.is_ascii
    base = f" of {clean(marks.base[:40], ascii_only)}"
    if marks.end_ps is None:
        spans: list[Span] = [(" m ", "mark"), (duration(marks.start_ps, ascii_only, _DIGITS), "text"), (base, "dim")]
        return fit([*spans, ("   press m again for the other end", "dim")], width, glyphs)
    begin, end = sorted((marks.start_ps, marks.end_ps))
    spans = [
        (f" m{glyphs.ellipsis}m ", "mark"),
        (duration(end - begin, ascii_only, _DIGITS), "strong"),
        ("   from ", "dim"),
        (instant(begin, end - begin, ascii_only), "text"),
        (" to ", "dim"),
        (instant(end, end - begin, ascii_only), "text"),
        (base, "dim"),
    ]
    return fit(spans, width, glyphs)


_MOST_ARROWS = 4


def facts_of(view: TimelineView) -> EventFacts | None:
    """The selected event; None where there is none."""
    selected = view.selected
    if selected is None or view.event is None:
        return None
    track, index = selected
    section = view.timeline.sections[view.event[0]]
    start, end = int(track.start_ps[index]), int(track.end_ps[index])
    number = view.timeline.step_at(start)
    step = None if number is None else view.timeline.steps[number]
    op = op_facts(track, index)
    seconds = (end - start) / 1e12
    flops, hbm = _work(op.flops, op), _work(op.hbm_bytes, op)
    return EventFacts(
        name=track.label(index),
        where=f"{section.title}, {track.name}",
        op_class=None if fill_of(track.kind) else track.event_class(index),
        category=op.category,
        start_ps=start - view.base_ps,
        base=base_name(view),
        duration_ps=end - start,
        self_ps=self_time(track, index) if track.depth > 1 else end - start,
        step=None if step is None else "~" * view.timeline.steps_are_inferred + step.name,
        step_fraction=None if step is None else (end - start) / max(1, step.end_ps - step.start_ps),
        occurrences=int(track.counts[int(track.key[index])]),
        is_op=track.kind == "ops" and _works(op),
        flops_per_second=flops / seconds if flops is not None and seconds else None,
        flops_fraction=_of_peak(flops, seconds, _rate(section, track, "MXU")),
        bytes_per_second=hbm / seconds if hbm is not None and seconds else None,
        bytes_fraction=_of_peak(hbm, seconds, _rate(section, track, "HBM")),
        framework_op=op.framework_op,
        source=op.source,
        arrows=_arrow_words(view, start),
    )


def _arrow_words(view: TimelineView, start_ps: int) -> tuple[str, ...]:
    """``> launch jit_f, 46.1 µs later`` for each arrow from the event, ``<`` for those that lead to it."""
    words = []
    for flow in view.flows_here()[:_MOST_ARROWS]:
        track = view.timeline.sections[flow.section].tracks[flow.track]
        apart = int(track.start_ps[flow.event]) - start_ps
        when = f"{duration(abs(apart))} {'later' if apart >= 0 else 'earlier'}"
        words.append(f"{'>' if flow.direction == 'out' else '<'} {flow.kind} {track.label(flow.event)[:60]}, {when}")
    return tuple(words)


def _work(amount: float | None, op: OpFacts) -> float | None:
    """Work that an op does while it runs."""
    return amount if _works(op) else None


def _works(op: OpFacts) -> bool:
    """Whether an op itself does what is counted for it: not one that contains others, or starts or awaits one."""
    return op.category is not None and op.category not in HOLDS_OPS and not is_split(op.category)


def _rate(section: Section, track: Track, name: str) -> RateTrack | None:
    """The graph of a rate that the track's ops make."""
    return next((rate for rate in section.rates if rate.name == name and rate.ops is track), None)


def _of_peak(amount: float | None, seconds: float, rate: RateTrack | None) -> float | None:
    if amount is None or not seconds or rate is None or rate.peak is None:
        return None
    return amount / seconds / rate.peak


def base_name(view: TimelineView) -> str:
    """What times are relative to, in words."""
    step = view.step
    if view.base == "step" and step is not None:
        return f"step {view.timeline.steps[step].name}"
    return "the mark" if view.base == "mark" and view.marks else "the profile"


def mark_facts(view: TimelineView) -> MarkFacts | None:
    """The marks; None without any."""
    if not view.marks:
        return None
    times = [mark - view.base_ps for mark in view.marks]
    return MarkFacts(times[0], times[1] if len(times) == 2 else None, base_name(view))


def hint_of(view: TimelineView) -> str:
    """What there is to do at an empty place."""
    row = view.rows.current
    if row is None:
        return "no track is called so; Esc shows all of them"
    if row.kind == "section":
        return "Enter or z opens and closes the section, j goes on to its tracks"
    section = view.timeline.sections[row.section]
    if row.kind == "rate":
        return _rate_words(view, section.rates[row.item])
    if row.kind == "counter":
        value = float(counter_values(section.counters[row.item], view.cursor_edges)[0])
        known = UNKNOWN if isnan(value) else f"{value:,.6g} {section.counters[row.item].unit}".rstrip()
        return f"{section.title}, {section.counters[row.item].name}: {known} at the cursor, at most in its cell"
    where = f"{section.title}, {section.tracks[row.item].name}: "
    return where + (_gap_words(view, row) or "no event here; . and , next and previous one, } next long gap")


def _gap_words(view: TimelineView, row: Row) -> str:
    """How long nothing runs around the cursor in its lane, and between what; nothing for a track of several lanes."""
    track = view.timeline.sections[row.section].tracks[row.item]
    if row.kind != "lane":
        return ""
    before = event_beside(track, row.lane, (view.cursor_ps + 1, 0), -1)[1]
    after = event_beside(track, row.lane, (view.cursor_ps, track.depth), 1)[1]
    if before is None or after is None:
        return ""
    begin, end = int(track.end_ps[before]), int(track.start_ps[after])
    if not begin <= view.cursor_ps < end:
        return ""
    return f"nothing for {duration(end - begin)}, from {track.label(before)[:80]} to {track.label(after)[:80]}"


def _rate_words(view: TimelineView, rate: RateTrack) -> str:
    """A rate in the cursor's cell, and what share of the peak that is."""
    per_second = mean_rate(rate, *view.cursor_edges.tolist())
    words = (
        f"{rate.name} in the cursor's cell: {flop_rate(per_second / 1e9)}{'FLOP/s' if rate.name == 'MXU' else 'B/s'}"
    )
    if rate.peak is None:
        return f"{words}; the profile gives no peak"
    return f"{words}, {percent(100 * per_second / rate.peak)} of peak"
