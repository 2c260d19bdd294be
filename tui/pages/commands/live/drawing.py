"""The chips right now, on one screen: the answer, a row a device, and the last minutes below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.capture import runtime_metrics
from tpuprof.parsers.capture.runtime_metrics import Device, Reading
from tpuprof.tui.draw.bars import small_bar
from tpuprof.tui.draw.format import UNKNOWN, count, duration
from tpuprof.tui.draw.layout import Composed
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey
from tpuprof.tui.draw.table import Listing

_SPARKS, _BAR, _RATE_SPARKS = 10, 9, 8
_QUEUE = 74  # cells from which on there is room for the queue and the idle time
_GRAPH, _TALL_GRAPH = 4, 8
_INDENT: tuple[Span, ...] = ((" ", "text"),)
_HIGH = 0.95
_GIB = 1 << 30
_US = 1_000_000
_SECOND = 10**12


@dataclass(frozen=True, slots=True)
class LiveView(Listing):
    """What the user looks at; where it `is_paused`, what shows stays as it is, and the readings go on."""

    is_paused: bool = False


def head_line(addresses: Sequence[str], every_seconds: float, view: LiveView, pen: Pen) -> Line:
    """Who is asked, and how often."""
    state = "paused" if view.is_paused else f"every {every_seconds:g} s"
    where = addresses[0] if len(addresses) == 1 else f"{addresses[0]} and {counted(len(addresses) - 1, 'other')}"
    parts: list[Span] = [(" Live", "strong"), (f" {pen.glyphs.dot} {where}", "text")]
    return pen.fit([*parts, (f" {pen.glyphs.dot} {state}", "warn" if view.is_paused else "dim")])


def compose(readings: Sequence[Reading], problem: str, view: LiveView, pen: Pen, height: int) -> Composed:
    """The page.

    Args:
        readings: in order of time; none while nobody has answered yet.
        problem: why there is no reading, or no newer one; empty where there is.
    """
    if not readings:
        text = problem or "asking the runtime for its metrics"
        return Composed(tuple(pen.wrap(text, "warn" if problem else "dim", _INDENT)), -1, 0, 0)
    last = readings[-1]
    lines = pen.wrap(runtime_metrics.headline(last), "strong", _INDENT)
    lines += [pen.fit([(f" {address}: {reason}", "warn")]) for address, reason in list(last.silent.items())[:3]]
    if problem:
        lines.append(pen.fit([(f" No newer figures: {problem}", "warn")]))
    lines.append(pen.fit([(_titles(pen.width), "dim")]))
    graph = min(_TALL_GRAPH, max(_GRAPH, (height - len(lines) - len(last.devices)) // 2))
    below = _below(readings, pen, graph)
    room = max(1, height - len(lines) - len(below))
    first = view.shown_first(room, len(last.devices))
    begin, late = len(lines), runtime_metrics.late_chips(last)
    several = len({device.address for device in last.devices}) > 1
    for place in range(first, min(first + room, len(last.devices))):
        device = last.devices[place]
        before = _history(readings, device)
        spans = _row(device, before, device in late, several, pen)
        mark: Span = (f"{pen.glyphs.mark} ", "mark") if place == view.cursor else ("  ", "text")
        lines.append(pen.fit([mark, *spans]))
    lines += [pen.fit([])] * (len(lines) + len(below) < height and len(last.devices) <= room)
    return Composed((*lines, *below), begin if last.devices else -1, first, room)


def _titles(width: int) -> str:
    text = f"  {'device':<7}{'duty':<{_SPARKS + 6}} {'HBM':<{_BAR}} {'used/total':>13}{'':>7}"
    text += f"{'bandwidth':<{_RATE_SPARKS + 5}}"
    return text + (f"{'queue':>6}{'idle':>9}" if width >= _QUEUE + 9 else f"{'queue':>6}" if width >= _QUEUE else "")


def _history(readings: Sequence[Reading], device: Device) -> list[Device | None]:
    """A device in each of the last readings; None where it was not reported."""
    name = device.address, device.id
    return [
        next((other for other in reading.devices if (other.address, other.id) == name), None)
        for reading in readings[-_SPARKS:]
    ]


def _row(device: Device, before: Sequence[Device | None], is_late: bool, several: bool, pen: Pen) -> list[Span]:
    name = f"{device.address.rpartition(':')[2]}:{device.id}" if several else f"{device.id}"
    duty, share, rate = device.duty_percent, runtime_metrics.hbm_share(device), device.bandwidth_percent
    duties = [None if each is None else each.duty_percent for each in before]
    rates = [None if each is None else each.bandwidth_percent for each in before]
    spans: list[Span] = [
        (f"{name:<7}", "strong" if is_late else "text"),
        (sparkline(duties, _SPARKS, pen.glyphs), "class.compute"),
        (f" {_percent(duty):>4} ", "warn" if is_late else "text"),
    ]
    filled, empty = small_bar(share or 0.0, _BAR, pen.glyphs)
    key: StyleKey = "bad" if share is not None and share >= _HIGH else "text"
    amounts = UNKNOWN
    if device.hbm_used_bytes is not None:
        total = UNKNOWN if device.hbm_total_bytes is None else f"{device.hbm_total_bytes / _GIB:.1f} GiB"
        amounts = f"{device.hbm_used_bytes / _GIB:.1f}/{total}"
    spans += [(f" {filled}", key), (f"{empty} ", "rule"), (f"{amounts:>13}", "text")]
    spans += [(f" {_percent(None if share is None else share * 100):>4}  ", key if share else "dim")]
    spans += [(sparkline(rates, _RATE_SPARKS, pen.glyphs), "class.copy"), (f" {_percent(rate):>4}", "text")]
    if pen.width >= _QUEUE:
        spans.append((f"{count(device.queued_programs):>6}", "text"))
    if pen.width >= _QUEUE + 9:
        idle = None if device.idle_seconds is None else device.idle_seconds * _SECOND
        spans.append((f"{duration(idle, pen.glyphs.is_ascii):>9}", "text"))
    return spans


def sparkline(values: Sequence[float | None], cells: int, glyphs: Glyphs) -> str:
    """The last values as columns of 0 to 100 %, the newest at the right; a blank where nothing was reported."""
    columns = [" " if value is None else glyphs.column[_fill(value)] for value in list(values)[-cells:]]
    return "".join(columns).rjust(cells)


def _percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0f}%"


def _below(readings: Sequence[Reading], pen: Pen, rows: int) -> list[Line]:
    """The mean duty over time, and what concerns no single device."""
    last, cells = readings[-1], max(10, pen.width - 12)
    means = [runtime_metrics.mean_duty(reading) for reading in readings]
    pieces = _grouped(means, cells)
    seconds = last.time_seconds - readings[0].time_seconds
    title = f"mean duty, last {duration(max(seconds, 1.0) * _SECOND, pen.glyphs.is_ascii, 2)}"
    lines = [pen.rule(title)]
    for row in range(rows - 1, -1, -1):
        label = "100%" if row == rows - 1 else "0%" if row == 0 else ""
        text = "".join(" " if value is None else pen.glyphs.column[_fill(value, row, rows)] for value in pieces)
        lines.append(pen.fit([(f" {label:>5} {pen.glyphs.vertical}", "dim"), (text, "class.compute")]))
    if len(readings) > 1 and (done := runtime_metrics.collectives_between(readings[-2], last)) is not None:
        each = duration(done[1] * _US, pen.glyphs.is_ascii)
        text = f" collectives between slices: {done[0]:,} in the last interval, {each} each"
        lines.append(pen.fit([(text, "text")]))
    return lines


def _grouped(values: Sequence[float | None], cells: int) -> list[float | None]:
    """One value a cell: all where they fit, else means of as many neighbours."""
    group = -(-len(values) // cells)
    pieces: list[float | None] = []
    for begin in range(0, len(values), group):
        told = [value for value in values[begin : begin + group] if value is not None]
        pieces.append(sum(told) / len(told) if told else None)
    return pieces


def _fill(percent: float, row: int = 0, rows: int = 1) -> int:
    """Eighths of a cell of a column that is so many rows high, of which row 0 is the lowest; what is not zero shows."""
    eighths = round(min(percent, 100.0) / 100 * 8 * rows)
    if percent > 0 and row == 0:
        eighths = max(eighths, 1)
    return max(0, min(8, eighths - 8 * row))


def meaning_lines(unknown: Mapping[str, str], pen: Pen) -> list[Line]:
    """What the figures mean."""
    rows = [
        ("duty", "share of the last interval in which the TensorCore worked, as the runtime averages it"),
        ("HBM", "allocated and total memory of the device; red from 95% on"),
        ("bandwidth", "share of HBM's peak bandwidth in use"),
        ("queue", "programs that wait for the device"),
        ("idle", "how long the TensorCore has been idle"),
        (UNKNOWN, "the runtime does not report it"),
        *unknown.items(),
    ]
    heading = pen.fit([("What the figures mean", "title")])
    return [heading, *pen.labelled(rows)]
