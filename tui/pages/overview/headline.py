"""The first lines of the overview: its figures, the groups of cores, the verdict, and the latency of a server."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.pages.overview.model import Overview, percent_of_steps
from tpuprof.parsers.pages.overview.verdict import VerdictKind
from tpuprof.parsers.pages.shared.latencies import InferencePage
from tpuprof.parsers.steps.model import GenericBreakdown
from tpuprof.tui.draw.columns import WIDE_CARD, step_time_card
from tpuprof.tui.draw.format import count, duration, percent
from tpuprof.tui.draw.pen import TALL, Pen, cut, hstack
from tpuprof.tui.draw.spans import Line, Span, StyleKey, line_width, small_bar


class _Card(NamedTuple):
    label: str
    value: float | None
    key: StyleKey
    note: str


def _level(value: float | None, good: float, bad: float) -> StyleKey:
    """Colour of a percentage by two thresholds; which of them is larger says which way is good."""
    if value is None:
        return "dim"
    if good < bad:
        return "good" if value <= good else "bad" if value >= bad else "warn"
    return "good" if value >= good else "bad" if value <= bad else "warn"


_HALF = 0.5


def _much(page: Overview) -> bool:
    """Whether some reason is worth half of the step: nothing above it is green then."""
    return any((finding.worth_fraction or 0.0) >= _HALF for finding in page.findings)


def _praised(page: Overview, key: StyleKey) -> StyleKey:
    """The colour of a figure that is not green above such a reason."""
    return "strong" if key == "good" and _much(page) else key


def _cards(page: Overview) -> list[_Card]:
    metrics = page.performance
    if any(isinstance(step.breakdown, GenericBreakdown) for step in page.steps):
        return _gpu_cards(page)
    duty, idle, mxu = metrics.device_duty_cycle_percent, metrics.device_idle_percent, metrics.mxu_utilization_percent
    return [
        _Card("DUTY CYCLE", duty, _praised(page, _level(duty, 90, 50)), "of capture"),
        _Card("IDLE OF CAPTURE", idle, _praised(page, _level(idle, 5, 25)), ""),
        _Card("FLOPS", metrics.flops_utilization_percent, "strong", "of peak"),
        _Card("HBM BW", metrics.memory_bandwidth_utilization_percent, "strong", "of peak"),
        *([_Card("MXU", mxu, "strong", "counter")] if mxu is not None else []),
    ]


def _gpu_cards(page: Overview) -> list[_Card]:
    """What GPUs did, or the host's CPU, of step time."""
    share = partial(percent_of_steps, page.steps)
    other, computes = share("all_other_ps"), page.environment.device_core_count > 0
    launch = "LAUNCH" if computes else "HOST"
    return [
        _Card("COMPUTE", share("device_compute_ps"), "strong", "of steps")
        if computes
        else _Card("OPS", share("host_ops_ps"), "strong", "of steps"),
        _Card("INPUT", share("input_ps"), "strong", "of steps"),
        _Card(launch, share("kernel_launch_ps" if computes else "host_compute_ps"), "strong", "of steps"),
        _Card("OTHER", other, _praised(page, _level(other, 5, 25)), "of steps"),
        *([_Card("16-BIT", page.performance.bits16_percent, "strong", "of compute")] if computes else []),
    ]


_SPARED = (75.0, 99.9, 90.0)  # percentiles that a narrow screen spares, the first one first
_ROOMY = 15  # cells from which on a card says what its figure is of


def headline(page: Overview, pen: Pen) -> list[Line]:
    """Three rows of cards: label, figure, and its range or a bar; the first one is of the step that is asked for."""
    cards = _cards(page)
    step_width = max(22, min(36, pen.width - 14 * len(cards)))
    each = max(1, (pen.width - step_width) // len(cards))
    card_rows = step_time_card(page.performance.step_time, pen.at(step_width))
    if page.serves and page.inference is not None:
        card_rows = _latency_card(page.inference, pen.at(step_width))
    of_group = "" if page.group is None else f" of group {page.group}"
    if line_width(card_rows[0]) + len(of_group) < step_width:
        card_rows[0].append((of_group, "dim"))
    blocks, widths = [[pen.at(step_width).fit(row) for row in card_rows]], [step_width]
    for place, card in enumerate(cards):
        room = each if place < len(cards) - 1 else pen.width - step_width - each * (len(cards) - 1)
        filled, empty = small_bar((card.value or 0.0) / 100, max(1, min(12, room - 2)), pen.glyphs)
        key: StyleKey = "dim" if card.value is None else card.key
        words = f"{percent(card.value)} {card.note}"
        note = f" {card.note}" if _ROOMY <= room > len(words) and card.value is not None else ""
        rows: list[list[Span]] = [
            [(card.label if len(card.label) < room else card.label.split()[0], "dim")],
            [(percent(card.value), key), (note, "dim")],
            [(filled, key), (empty, "rule")] if card.value is not None else [("unknown", "dim")],
        ]
        blocks.append([pen.at(room).fit(row) for row in rows])
        widths.append(room)
    return hstack(blocks, widths)


def _latency_card(page: InferencePage, pen: Pen) -> list[list[Span]]:
    """Three rows in place of the step time's: the median of requests or runs, how many there are, and the average."""
    total_ps = {each.percentile: each.latency.total_ps for each in page.percentiles}
    mean_ps = page.average.total_ps if page.average else None
    average = duration(mean_ps, pen.glyphs.is_ascii)
    typical = duration(total_ps.get(50.0, mean_ps), pen.glyphs.is_ascii, 4)
    title = " REQUEST " if page.source == "requests" else " MODULE RUN "
    slow: list[Span] = [("  p99 ", "dim"), (duration(total_ps.get(99.0), pen.glyphs.is_ascii), "text")]
    return [
        [(title, "dim"), ("median" if total_ps else "", "dim")],
        [(f" {typical}", "strong"), (f"  n={page.sessions}", "dim")],
        [(" avg ", "dim"), (average, "text"), *(slow if pen.width >= WIDE_CARD else [])],
    ]


_LEAST_OUTSIDE = 0.1
"""Share of the capture before the first op and after the last from which on a line says when ops ran."""


def capture_line(page: Overview, pen: Pen) -> list[Line]:
    """When ops ran in the capture, where much of it lies before the first op or after the last."""
    environment, busy = page.environment, page.environment.busy_between_percent
    begin, end, captured = environment.first_op_ps, environment.last_op_ps, environment.profile_duration_ps
    if busy is None or begin is None or end is None or captured is None:
        return []
    if end <= begin or captured - (end - begin) < _LEAST_OUTSIDE * captured:
        return []
    first, last, whole, silence = (
        duration(ps, pen.glyphs.is_ascii) for ps in (begin, end, captured, environment.silence_ps)
    )
    spans: list[Span] = [(" OPS RAN ", "dim"), (f"from {first} to {last}", "text"), (f" of {whole}, ", "dim")]
    spans += [(percent(busy), "text"), (" busy in between, longest silence ", "dim"), (silence, "text")]
    return [pen.fit(spans)]


_SIGNS: Mapping[VerdictKind, str] = {
    "input-bound": "INPUT-BOUND",
    "host-bound": "HOST-BOUND",
    "compiling": "COMPILING",
    "waiting": "WAITING",
    "collective-bound": "COLLECTIVE-BOUND",
    "transfer-bound": "TRANSFER-BOUND",
    "copy-bound": "COPY-BOUND",
    "idle": "IDLE",
    "uncounted": "BUSY, ROOF UNKNOWN",
    "memory-bound": "MEMORY-BOUND",
    "compute-bound": "COMPUTE-BOUND",
    "untraced": "NOT TRACED",
}

_FAIR, _MUCH = 0.6, 0.2
"""A program bound by its ops is well from this share of its roof on; any other cause is bad from that share on."""


def _sign(page: Overview) -> tuple[str, StyleKey]:
    """The verdict in two words; never green above a finding that is worth half of the step."""
    verdict = None if page.account is None else page.account.verdict
    if verdict is None or verdict.fraction is None:
        most = max(page.shares, key=lambda share: share.time_ps, default=None)
        if most is None or most.fraction < _HALF or most.op_class == "unknown":
            return ("", "text")
        return (f"MOSTLY {most.op_class.upper()}", "warn")
    if verdict.kind not in ("memory-bound", "compute-bound"):
        by = f" FOR {verdict.by}" if verdict.kind == "waiting" and verdict.by else ""
        return (_SIGNS[verdict.kind] + by, "bad" if verdict.fraction >= _MUCH else "warn")
    return (_SIGNS[verdict.kind], "good" if verdict.fraction >= _FAIR and not _much(page) else "warn")


def verdict(page: Overview, pen: Pen, most: int | None = None, with_advice: bool = True) -> list[Line]:
    """What limits the program, and what to do first; at most so many lines."""
    sign, key = _sign(page)
    first: list[Span] = [(f" {sign} ", key)] if sign else [(" ", "text")]
    words = pen.wrap(page.bottleneck.statement, "text", first, indent=1)
    said = page.bottleneck.next_steps if with_advice else ()
    advice = pen.wrap_all(said, "text", [(f" {pen.glyphs.arrow} ", "key")])
    if most is None:
        return words + advice
    kept = max(most - len(advice), min(len(words), most - 1)) if advice else most
    return pen.cut_after(words, kept) + pen.cut_after(advice, most - min(kept, len(words)))


def latency_line(page: Overview, pen: Pen) -> list[Line]:
    """Percentiles of the latency in one line, for a program that serves; the report `inference` takes them apart."""
    inference = page.inference
    if inference is None or not page.infers:
        return []
    if inference.source is None:
        offer = inference.offers[0]
        words = f"  {count(offer.sessions)} spans of {pen.text(offer.subject)} may be the requests (report inference)"
        return [pen.fit([(" LATENCY", "dim"), (words, "dim")])]
    subject = pen.text(inference.subject.partition("(")[0])
    what = "requests" if inference.source == "requests" else f"runs of {subject}"
    tail: Span = (f"  of {count(inference.sessions)} {what}", "dim")
    shown = {row.percentile: duration(row.latency.total_ps, pen.glyphs.is_ascii) for row in inference.percentiles}
    for spared in (-1.0, *_SPARED):
        shown.pop(spared, None)
        metrics: list[Span] = []
        for percentile, text in shown.items():
            metrics += [(f"  p{percentile:g} ", "dim"), (text, "strong")]
        if line_width(tuple(metrics)) + len(tail[0]) + 8 <= pen.width:
            break
    return [pen.fit([(" LATENCY", "dim"), *metrics, tail])]


_MOST_ON_SCREEN = 4
_NAME, _FIGURE = 32, 9


def group_lines(page: Overview, pen: Pen, height: int | None) -> list[Line]:
    """The groups, the largest marked, whose steps the page shows: the first few on a screen, that one on a low one."""
    groups = page.groups
    if not groups:
        return []
    main = page.group
    shown = list(groups if height is None else groups[:_MOST_ON_SCREEN])
    if height is not None and height < TALL:
        shown = [group for group in groups if group.number == main]
    title = f"{len(groups)} groups of cores do not wait for each other"
    lines = [pen.rule(title, f"steps below are those of group {main}")]
    for group in shown:
        role = f" ({group.role})" if group.role else ""
        name = cut(
            pen.text(f"{', '.join(group.programs[:2]) or 'no program'}{role}"), min(_NAME, pen.width // 3), pen.glyphs
        )
        step = duration(group.step_ps, pen.glyphs.is_ascii)
        run = duration(group.run_ps or None, pen.glyphs.is_ascii)
        mark = pen.glyphs.mark if group.number == main else " "
        cores = f"{counted(len(group.core_names), 'core')} {examples(group.core_names, 2)}"
        spans: list[Span] = [(mark, "mark"), (f"{group.number:>3} {name:<{min(_NAME, pen.width // 3)}}", "strong")]
        for what, figure in ((" step", step), ("  run", run), ("  busy", percent(group.busy_percent))):
            spans += [(what, "dim"), (f"{figure:>{_FIGURE}}", "text")]
        lines.append(pen.fit([*spans, (f"  {cores}", "dim")]))
    if len(shown) < len(groups) and len(shown) > 1:
        lines.append(pen.fit([(f"    and {counted(len(groups) - len(shown), 'more group')}: report cores", "dim")]))
    return lines
