"""What the pane below the timeline says: of the selected event, of the marks, or of an empty place."""

from __future__ import annotations

from math import isnan

from tpuprof.parsers.ops.device import HOLDS_OPS
from tpuprof.parsers.timeline.details import OpFacts, op_facts, self_time
from tpuprof.parsers.timeline.model import RateTrack, Section, Track
from tpuprof.parsers.timeline.pick import event_beside
from tpuprof.parsers.timeline.read.classes import is_split
from tpuprof.parsers.timeline.windows import mean_rate
from tpuprof.tui.draw.format import UNKNOWN, duration, flop_rate, percent
from tpuprof.tui.pages.timeline.draw.graphs import counter_values
from tpuprof.tui.pages.timeline.draw.panel import EventFacts, MarkFacts
from tpuprof.tui.pages.timeline.draw.signs import fill_of
from tpuprof.tui.pages.timeline.rows import Row
from tpuprof.tui.pages.timeline.state import TimelineView

_MOST_ARROWS = 4


def facts_of(view: TimelineView) -> EventFacts | None:
    """The selected event; None where there is none."""
    selected = view.selected
    if selected is None or view.event is None:
        return None
    track, index = selected
    section = view.timeline.sections[view.event[0]]
    start, end = int(track.start_ps[index]), int(track.end_ps[index])
    at = view.timeline.step_at(start)
    step = None if at is None else view.timeline.steps[at]
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
        arrows=_arrows(view, start),
    )


def _arrows(view: TimelineView, start_ps: int) -> tuple[str, ...]:
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
    row = view.current
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
